"""`Strategy`: learning from labelled observations and proposing points; `ModelStrategy`: one model."""

import logging
import math
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
from deepbore.classifiers.expense import Expense
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
BETA = 10.0  # trials after which what is believed of the best point counts once


@dataclass(frozen=True)
class View:
    """The data that a strategy gets for one proposal, the same on all ranks.

    Attributes:
        observations: the trials of this run, pending ones included.
        batch: the first n of them with their latest labels; None before the first labelling.
        labels: the labelling of the run.
        generator: random numbers of the run.
        ranks: the processes that propose together.
        feasibility: the model of the black-box constraints; None if no trial has violated any.
        has_earlier_tasks: whether there are trials of earlier tasks.
        first: in a `Turns`, its first strategy, whose acquisition and search the others use; else None.
        chosen: points (k x d) already selected for the same batch.
        seed: of the run.
        expense: what evaluations are expected to cost; None where that is no matter, or unknown.
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
    seed: int = 0
    expense: Expense | None = None

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
        """Whether there is one objective, without budgets, constraints or earlier tasks."""
        observations = self.observations
        has_more = bool(observations.constraints.shape[1]) or observations.budget is not None
        return observations.k == 1 and not has_more and not self.has_earlier_tasks

    @property
    def prior_weight(self) -> float:
        """The exponent beta / n of what is believed of the best point, after n trials; 0 where nothing is."""
        return BETA / max(1, len(self.observations.columns.finished_rows)) if self.space.points.has_prior else 0.0

    def search(self, classifier: Classifier, acquisition: Acquisition) -> Search:
        """The context of a search in the whole space with a trained classifier."""
        return Search(
            acquisition,
            classifier,
            self.observations,
            self.generator,
            self.ranks,
            feasibility=self.feasibility,
            chosen=self.chosen,
            prior_weight=self.prior_weight,
            expense=self.expense,
        )

    def beside(self, points: Tensor) -> "View":
        """The same view with more points (k x d) already selected for the batch."""
        return replace(self, chosen=points if self.chosen is None else torch.cat([self.chosen, points]))

    def agreed(self, learn: Callable[[], bool], failure: str) -> bool:
        """Whether `learn` returns True on all ranks; a `LinAlgError` is logged as a warning, and means False.

        Args:
            learn: trains a model.
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
        model: the classifier that proposed them; None for those of a design.
    """

    points: Tensor
    model: Classifier | None = None


class Strategy(Component, ABC):
    """A method that learns from the labelled observations and proposes points.

    A subclass implements `propose`; with models or other state also `models`, `fit`, `state_dict` and
    `load_state_dict`. In each iteration the run trains the `models` on the labelled observations, in one `Trainer.fit`,
    and calls `fit` and then `propose`. Random numbers come from `view.generator`, and all other state is in
    `state_dict`, so that a resumed run continues identically.

    Example::

        class RandomShare(Strategy):
            def __init__(self, base: Strategy, share: float = 0.1):
                self.base, self.share = base, share
            ...
    """

    uses_models: bool = True  # whether the run trains the models before a proposal
    every: int = 2  # beside a first strategy in `Turns`: due at every so many proposals for which it applies

    @property
    def models(self) -> tuple[Classifier, ...]:
        """The classifiers that the run trains; the first one is `Study.classifier`."""
        return ()

    def n_left(self, observations: Observations) -> float:
        """How many new configurations it can still propose, where that is fewer than the space has."""
        return math.inf

    def check(self, space: SearchSpace, labels: Labelling) -> None:
        """Raises SettingError unless it works in this space and with these labels."""

    def at_budgets(self, budget: Budget) -> "Strategy":
        """The same strategy for trials on several budgets (`AtBudgets`).

        Raises:
            SettingError: if it does not support budgets.
        """
        raise SettingError(
            f"{type(self).__name__} does not support budgets. Leave out budget=, or implement at_budgets(budget)."
        )

    def applies(self, view: View) -> bool:
        """Whether it can propose anything now; called before each turn, so it must be fast."""
        return True

    def is_urgent(self, view: View) -> bool:
        """In `Turns`, whether the next point is its own, whoever's the last was; asked for each while it applies."""
        return False

    def fit(self, view: View) -> bool:
        """Trains what the run does not; whether it is ready to propose. If not, a point of the design is used."""
        return all(model.ready for model in self.models)

    @abstractmethod
    def propose(self, view: View, q: int) -> Proposal:
        """q distinct new points.

        Raises:
            SpaceExhausted: if a finite space has fewer than q configurations left.
        """

    def accepts(self, space: SearchSpace, points: Tensor) -> Tensor:
        """Which points (n x d) of the space it may propose (n booleans), asked before others are proposed for it."""
        return torch.ones(len(points), dtype=torch.bool, device=points.device)

    def state_dict(self) -> dict[str, Any]:
        """The state between iterations, that of its models included: tensors and plain data."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores what `state_dict` returned; the models are bound to their space before."""


class ModelStrategy(Strategy):
    """One classifier, an acquisition and an optimiser of it: every method of the papers.

    Args:
        classifier: the model.
        acquisition: the function to maximise; None for `default_acquisition(classifier)`.
        candidates: the optimiser; None for `GreedyBatch()` over `LocalSearch()`.

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
        self.candidates.check_acquisition(self.acquisition)

    def at_budgets(self, budget: Budget) -> "ModelStrategy":
        return ModelStrategy(at_budgets(self.classifier, budget), self.acquisition, self.candidates)

    def propose(self, view: View, q: int) -> Proposal:
        search = view.search(self.classifier, self.acquisition)
        return Proposal(self.candidates.propose(search, q), self.classifier)

    def accepts(self, space: SearchSpace, points: Tensor) -> Tensor:
        return self.candidates.accepts(space, points)

    def state_dict(self) -> dict[str, Any]:
        """Weights and optimizers of the classifier once it is bound, and the state of `candidates`."""
        bound = self.classifier.space is not None
        return {
            "weights": dict(self.classifier.state_dict()) if bound else None,
            "optimizers": self.classifier.learning_states() if bound else [],
            "ready": self.classifier.ready,
            "candidates": self.candidates.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if state["weights"] is not None:
            self.classifier.load_state_dict(state["weights"])
            self.classifier.load_learning_states(iter(state["optimizers"]))
        self.classifier.ready = state["ready"]
        self.candidates.load_state_dict(state["candidates"])


def check_columns(labels: Labelling, classifier: Classifier, acquisition: Acquisition) -> None:
    """Raises SettingError unless labels, classifier and acquisition agree on the columns."""
    if labels.grades_front != acquisition.takes_front:
        one, other = (labels, acquisition) if labels.grades_front else (acquisition, labels)
        raise SettingError(
            f"{type(one).__name__} needs the front of several objectives, but {type(other).__name__} does not use "
            "it. LogHypervolumeImprovement goes with ObjectiveLabels and PerColumn, and other acquisitions with "
            "ChebyshevLabels and any classifier. Leave out one of them for the default."
        )
    if classifier.columns not in (None, labels.outputs):
        raise SettingError(
            f"{type(classifier).__name__} has {classifier.columns} column(s), but {type(labels).__name__} has "
            f"{labels.outputs}. Give PerColumn(..., columns={labels.outputs})."
        )
