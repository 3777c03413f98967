"""`Strategy`: what learns from the labelled observations and proposes; `ModelStrategy` is one model."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from deepbore.acquisition import Acquisition, default_acquisition
from deepbore.candidates import Candidates, GreedyBatch, Search
from deepbore.classifiers import Classifier, at_budgets
from deepbore.classifiers.base import optimizers_of
from deepbore.classifiers.feasibility import Feasibility
from deepbore.component import Component
from deepbore.compute.distributed import Ranks
from deepbore.compute.numerics import LinAlgError
from deepbore.data.observations import Observations
from deepbore.data.trial import Budget
from deepbore.errors import SettingError
from deepbore.labels import LabelledBatch, Labelling
from deepbore.space import SearchSpace
from deepbore.validation import of_kind, required

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class View:
    """What a strategy may look at for one proposal. It is the same on all ranks.

    Attributes:
        observations: the trials of this run, pending ones included.
        batch: the first n of them as they were labelled last; None before the first labelling.
        labels: the labelling of the run.
        generator: the stream of random numbers of the run.
        ranks: the processes that propose together.
        feasibility: the model of the black-box constraints; None while none has been violated.
        has_earlier_tasks: whether trials of earlier tasks are known.
        first: the strategy whose acquisition and search are those of the run, in a `Turns`; None elsewhere.
        chosen: points (k x d) that are proposed in the same batch already.
    """

    observations: Observations
    batch: LabelledBatch | None
    labels: Labelling
    generator: torch.Generator
    ranks: Ranks = field(default_factory=Ranks)
    feasibility: Feasibility | None = None
    has_earlier_tasks: bool = False
    first: "ModelStrategy | None" = None
    chosen: Tensor | None = None

    @property
    def space(self) -> SearchSpace:
        """The search space."""
        return self.observations.space

    @cached_property
    def values(self) -> Tensor:
        """Values of the labelled rows, to minimise: means of replicates, NaN for failed and pending trials (n)."""
        n = 0 if self.batch is None else len(self.batch)
        return self.observations.averaged.values[:n]

    @property
    def has_plain_outcomes(self) -> bool:
        """Whether outcomes are one value each, at full budget, without constraints or earlier tasks."""
        observations = self.observations
        has_more = bool(observations.constraints.shape[1]) or observations.budget is not None
        return observations.k == 1 and not has_more and not self.has_earlier_tasks

    def search(self, classifier: Classifier, acquisition: Acquisition) -> Search:
        """A search of the whole space by a trained classifier."""
        return Search(
            acquisition,
            classifier,
            self.observations,
            self.generator,
            self.ranks,
            feasibility=self.feasibility,
            chosen=self.chosen,
        )

    def beside(self, points: Tensor) -> "View":
        """The same view, with more points (k x d) chosen in this batch."""
        return replace(self, chosen=points if self.chosen is None else torch.cat([self.chosen, points]))

    def agreed(self, learn: Callable[[], bool], failure: str) -> bool:
        """Whether `learn` returns True on all ranks; a matrix without a factor is a warning and False.

        Args:
            learn: trains something.
            failure: the warning, with %s for the error.
        """
        try:
            learned = learn()
        except LinAlgError as error:
            log.warning(failure, error)
            learned = False
        return all(self.ranks.gather(learned))


class Proposal(NamedTuple):
    """Points to evaluate next.

    Attributes:
        points: q x d, distinct, none evaluated or pending, on the CPU and the same on all ranks.
        model: the classifier that chose them; None where none did, as in a design.
    """

    points: Tensor
    model: Classifier | None = None


class Strategy(Component, ABC):
    """Learns from the labelled observations and proposes points.

    A subclass implements `propose`, and `models`, `fit`, `state_dict` and `load_state_dict` where it has models or a
    memory of its own. In each iteration the run trains the `models` on the labelled observations, in one `Trainer.fit`,
    and calls `fit` and then `propose`. Random numbers come from `view.generator`, so that a run that is resumed goes on
    the same way; everything else that a strategy remembers is in its `state_dict`.

    Example::

        class RandomShare(Strategy):
            def __init__(self, base: Strategy, share: float = 0.1):
                self.base, self.share = base, share
            ...
    """

    @property
    def models(self) -> tuple[Classifier, ...]:
        """The classifiers that the run trains; the first one is `Study.classifier`."""
        return ()

    def check(self, space: SearchSpace, labels: Labelling) -> None:
        """Raises SettingError unless its parts go together, in this space and with these labels."""

    def at_budgets(self, budget: Budget) -> "Strategy":
        """The same strategy for trials on several budgets (`AtBudgets`).

        Raises:
            SettingError: where it has no such form.
        """
        raise SettingError(
            f"{type(self).__name__} has no form for budgets. Leave out budget=, or implement at_budgets(budget)."
        )

    def applies(self, view: View) -> bool:
        """Whether it has anything to propose from now; asked before each turn, so it has to be quick."""
        return True

    def fit(self, view: View) -> bool:
        """Learns what the run has not trained; whether it is then ready to propose. If not, the design goes on."""
        return all(model.ready for model in self.models)

    @abstractmethod
    def propose(self, view: View, q: int) -> Proposal:
        """q distinct new points.

        Raises:
            SpaceExhausted: if a finite space has fewer than q configurations left.
        """

    def state_dict(self) -> dict[str, Any]:
        """What it remembers from one iteration to the next, its models included: tensors and plain data."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes up what `state_dict` returned; the models are bound to their space by then."""


class ModelStrategy(Strategy):
    """One classifier, whose acquisition is maximised: every method of the papers.

    Args:
        classifier: what learns.
        acquisition: what is maximised; None for `default_acquisition(classifier)`.
        candidates: how it is maximised; None for `GreedyBatch()` over `LocalSearch()`.

    Raises:
        SettingError: for a part of the wrong kind.

    Example:
        >>> from deepbore import KernelPLS, Real, SearchSpace, Study
        >>> study = Study(SearchSpace({"x": Real(0, 1)}), strategy=ModelStrategy(KernelPLS()))
        >>> len(study.ask(2))
        2

    References:
        Tiao et al., BORE: Bayesian optimization by density-ratio estimation, ICML 2021, algorithm 1.
    """

    def __init__(
        self, classifier: Classifier, acquisition: Acquisition | None = None, candidates: Candidates | None = None
    ):
        required(classifier=classifier)
        of_kind(Classifier, classifier=classifier)
        of_kind(Acquisition, acquisition=acquisition)
        of_kind(Candidates, candidates=candidates)
        self.classifier = classifier
        self.acquisition = (acquisition or default_acquisition(classifier)).resolved(classifier)
        self.candidates = candidates or GreedyBatch()

    @property
    def models(self) -> tuple[Classifier, ...]:
        return (self.classifier,)

    def check(self, space: SearchSpace, labels: Labelling) -> None:
        check_columns(labels, self.classifier, self.acquisition)
        self.acquisition.check(self.classifier)
        self.candidates.check(space, self.classifier)

    def at_budgets(self, budget: Budget) -> "ModelStrategy":
        return ModelStrategy(at_budgets(self.classifier, budget), self.acquisition, self.candidates)

    def propose(self, view: View, q: int) -> Proposal:
        search = view.search(self.classifier, self.acquisition)
        return Proposal(self.candidates.propose(search, q), self.classifier)

    def state_dict(self) -> dict[str, Any]:
        """Weights and optimizers of the classifier once it is bound, and what the search remembers."""
        bound = self.classifier.space is not None
        return {
            "weights": dict(self.classifier.state_dict()) if bound else None,
            "optimizers": [each.state_dict() for each in optimizers_of([self.classifier])] if bound else [],
            "ready": self.classifier.ready,
            "candidates": self.candidates.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if state["weights"] is not None:
            self.classifier.load_state_dict(state["weights"])
            for optimizer, each in zip(optimizers_of([self.classifier]), state["optimizers"], strict=True):
                optimizer.load_state_dict(each)
        self.classifier.ready = state["ready"]
        self.candidates.load_state_dict(state["candidates"])


def check_columns(labels: Labelling, classifier: Classifier, acquisition: Acquisition) -> None:
    """Raises SettingError unless all three mean columns by themselves, or none does, and as many of them."""
    if labels.grades_front != acquisition.takes_front:
        one, other = (labels, acquisition) if labels.grades_front else (acquisition, labels)
        raise SettingError(
            f"{type(one).__name__} is about a front of several objectives, which {type(other).__name__} knows nothing "
            "of. LogHypervolumeImprovement goes with ObjectiveLabels and PerColumn, and other acquisitions with "
            "ChebyshevLabels and any classifier. Leave out one of them for the default."
        )
    if classifier.columns not in (None, labels.outputs):
        raise SettingError(
            f"{type(classifier).__name__} has {classifier.columns} column(s), but {type(labels).__name__} has "
            f"{labels.outputs}. Give PerColumn(..., columns={labels.outputs})."
        )
