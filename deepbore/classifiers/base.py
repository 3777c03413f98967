"""`Classifier`: the interface of all models of labelled points, and what they share. It imports no Lightning."""

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn

from deepbore.classifiers.link import Link
from deepbore.classifiers.optimization import Optimization
from deepbore.classifiers.posterior import MomentFormula, Posterior
from deepbore.component import Component
from deepbore.compute.devices import one_thread
from deepbore.compute.numerics import LinAlgError, calibration_error, mean_ranks
from deepbore.errors import SettingError
from deepbore.labels import Gamma, LabelledBatch, LabelledObservations, Labelling, default_labels
from deepbore.space import SearchSpace
from deepbore.validation import between, of_kind

QUALITY_ROWS = 512  # of the training data, at most, that `Classifier.quality` judges by
log = logging.getLogger(__name__)
Kept = TypeVar("Kept", bound=torch.optim.Optimizer)


class Diverged(ArithmeticError):
    """Scores that are not finite after training."""


class Classifier(Component, nn.Module, ABC):
    """A model that learns one labelled batch per epoch, and predicts the posterior distribution of scores.

    A higher score means that a point is more likely to be good. A subclass implements `build`, `fit` and `posterior`,
    and declares the attributes `link` to `closed_form` where they differ from the defaults. It is a plain `nn.Module`;
    one whose gradient steps a Trainer may take is a `TrainedClassifier`, a LightningModule.

    Attributes:
        link: the meaning of the scores: estimates of the label itself, logits, or probits.
        capabilities: properties of the posterior beyond its mean: "std" (standard deviations, covariances and joint
            samples), "members", "columns" (a mean and a standard deviation for each column of the labels).
        columns: the number of label columns, each learned separately; None for one score of all columns.
        differentiable: whether the scores have gradients with respect to the points.
        distance_aware: whether the standard deviation grows with the distance from the data, as expected improvement
            needs. The default acquisition depends on its value before `bind`.
        learns_grades: whether graded labels suit it better than classes by one threshold although its scores are logits
            or probits, as for networks: cross-entropy with a grade as the label is a proper scoring rule, too.
        closed_form: whether `fit` takes no gradient steps, and so needs neither a Trainer nor Lightning, and keeps no
            optimizer.
        kappa: the default number of standard deviations of an upper confidence bound.
        generator: random numbers for weights and minibatches, shared with the classifiers within this one; in a run,
            the run's own generator.
        run: the random numbers of the run that it learns in; None outside of a run.
        ready: whether the latest training succeeded; if not, the loop explores.
        best_label: the label that improvement is measured against, of the latest batch (a scalar tensor), or those of a
            reference and a front ((1 + f) x k); see `Labels`.
        optimization: the optimizers and schedulers of the latest training; None before the first.
    """

    link: Link = Link.LOGIT
    capabilities: frozenset[str] = frozenset()
    columns: int | None = None
    differentiable: bool = True
    distance_aware: bool = False
    kappa: float = 1.0
    learns_grades: bool = False
    closed_form: bool = False

    best_label: Tensor

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if "training_step" in vars(cls) and not hasattr(cls, "minibatches"):
            raise SettingError(
                f"a classifier with a training_step is a TrainedClassifier, but {cls.__name__} is a plain one. Derive "
                "it from deepbore.classifiers.TrainedClassifier, or implement fit(batch) in place of training_step."
            )

    def __init__(self) -> None:
        super().__init__()
        self.optimization: Optimization | None = None
        self._waiting: Mapping[str, Any] = {}  # the state for optimizers that are not made yet
        self.generator = torch.Generator().manual_seed(0)
        self.run: torch.Generator | None = None
        self.space: SearchSpace | None = None
        self.ready = False
        self._logged: set[str] = set()
        self.register_buffer("best_label", torch.ones((), dtype=torch.float64))

    @property
    def generator(self) -> torch.Generator:
        """The source of random numbers, shared with the classifiers within this one."""
        return self._generator

    @generator.setter
    def generator(self, generator: torch.Generator) -> None:
        self._generator = generator
        for part in self.parts_within:
            part.generator = generator

    @property
    def has_learned_in_a_run(self) -> bool:
        """Whether a run has trained it: in another run its weights would carry over that run's trials."""
        return self.space is not None and self.run is not None

    # --- implemented by each model -----------------------------------------------------------------------------------

    @abstractmethod
    def build(self, space: SearchSpace, outputs: int) -> None:
        """Creates the parameters for a space of d parameters and labels of k columns."""

    @abstractmethod
    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        """Fits the model to the batch, and returns metrics by name, to be logged."""

    @abstractmethod
    def posterior(self, points: Tensor) -> Posterior:
        """The posterior distribution of the scores at points (n x d)."""

    @property
    def explained(self) -> float:
        """The share of the variance of the better labels that it forecasts, in (-inf, 1]; 0 where nothing is known."""
        return 0.0

    # --- predicting --------------------------------------------------------------------------------------------------

    def gradient(self, points: Tensor, formula: MomentFormula) -> Tensor | None:
        """The gradients of a formula of the posterior's moments in the points (n x d).

        None, as in most classifiers, where only torch finds them.
        """
        return None

    def probability(self, points: Tensor) -> Tensor:
        """Points (n x d) -> expected probability of class 1, or expected label (n); see `Posterior.probability`."""
        return self.posterior(points).probability

    def density_ratio(self, points: Tensor, gamma: float) -> Tensor:
        """r_gamma(x) = pi(x) / gamma, the relative density ratio of good to all points, at most 1 / gamma (BORE eq. 8).

        With labels by one threshold it is a density ratio; with graded labels, the mean label divided by gamma.

        Args:
            points: n x d.
            gamma: the share of good points, in (0, 1): the gamma of the labels, or more where values tie at tau.

        Raises:
            SettingError: for a gamma outside (0, 1).
        """
        between(0, 1, gamma=gamma)
        return self.probability(points) / gamma

    # --- optimizers, of models with gradient steps -------------------------------------------------------------------

    def configure_optimizers(self) -> Any:
        """The optimizer, in any form that Lightning documents; none by default."""
        return None

    def optimizers_made(self) -> Optimization:
        """The optimizers and schedulers of `configure_optimizers`, made at the first call."""
        if self.optimization is None:
            self.adopt(Optimization.of(self.configure_optimizers()))
        assert self.optimization is not None
        return self.optimization

    def adopt(self, made: Optimization) -> None:
        """Continues with new optimizers and schedulers in the state of the former ones."""
        if state := self._own_learning_state():
            made.load_state_dict(state)
        self.optimization, self._waiting = made, {}

    def keep_optimizer(self, make: Callable[[], Kept]) -> Kept:
        """The optimizer that `make` returned at the first call, so that its state lasts over all fits."""
        if self.optimization is None:
            self.adopt(Optimization.of(make()))
        assert self.optimization is not None
        return cast(Kept, self.optimization.optimizers[0])

    def kept_optimizers(self) -> list[torch.optim.Optimizer]:
        """The optimizers whose state lasts over all fits, of this classifier and of those within it."""
        own = [] if type(self).closed_form else self.optimizers_made().optimizers
        return [*own, *(optimizer for part in self.parts_within for optimizer in part.kept_optimizers())]

    def learning_states(self) -> list[Mapping[str, Any]]:
        """The states of optimizers and schedulers, one for each classifier with gradient steps, this one first."""
        own = [] if type(self).closed_form else [self._own_learning_state()]  # the class: a wrapper has none of its own
        return [*own, *(state for part in self.parts_within for state in part.learning_states())]

    def load_learning_states(self, states: Iterator[Mapping[str, Any]]) -> None:
        """Restores what `learning_states` returned."""
        if not type(self).closed_form:
            self._load_own_learning_state(next(states, {}))
        for part in self.parts_within:
            part.load_learning_states(states)

    def _own_learning_state(self) -> Mapping[str, Any]:
        return self._waiting if self.optimization is None else self.optimization.state_dict()

    def _load_own_learning_state(self, state: Mapping[str, Any]) -> None:
        if self.optimization is None:
            self._waiting = state
        elif state:
            self.optimization.load_state_dict(state)
        else:
            self.optimization = None

    def lightning_optimizer(self) -> Any:
        """The optimizer, for `fit` to step, as in version 0.3; one without parameters where there is none."""
        own = self.optimizers_made().optimizers
        return own[0] if own else torch.optim.SGD([nn.Parameter(torch.zeros(()))], lr=0.0)

    def count_step(self) -> None:
        """Does nothing, since version 0.4: Lightning counts the steps of the module around this one."""

    # --- learning ----------------------------------------------------------------------------------------------------

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return self.best_label.device

    @property
    def parts_within(self) -> "list[Classifier]":
        """The classifiers that this one contains."""
        return [part for part in self.children() if isinstance(part, Classifier)]

    def bind(self, space: SearchSpace, outputs: int = 1) -> "Classifier":
        """Creates the parameters at the first call; a Trainer calls this itself.

        Raises:
            SettingError: if the classifier is bound to another space already.
        """
        if self.space is None:
            try:
                self.space = space
                self.build(space, outputs)
            except BaseException:  # half built, as after an interrupt: the next call begins anew
                self.space = None
                raise
        elif self.space != space:
            raise SettingError("a classifier learns one space, but this one is bound to another. Make a new one.")
        return self

    def bind_to(self, data: LabelledObservations) -> None:
        """Creates the parameters for some data, and default labels if the data have none."""
        if data.labels is None:
            data.labels = self.default_labels(objectives=data.observations.k)
        with torch.device("cpu"):  # in a hook of Lightning's the default device is the accelerator; it moves all later
            self.bind(data.space, data.labels.outputs)

    def become(self, other: "Classifier") -> None:
        """Takes over the whole state of another classifier of its class, such as an earlier copy of itself."""
        vars(self).clear()
        vars(self).update(vars(other))

    def default_labels(self, gamma: Gamma | None = None, objectives: int = 1) -> Labelling:
        """The default labels for this classifier; see `deepbore.labels.default_labels`."""
        graded = self.link is Link.IDENTITY or self.learns_grades
        return default_labels(graded, gamma, objectives, "columns" in self.capabilities)

    def learned(self, batch: LabelledBatch, measure: bool = True) -> dict[str, Any]:
        """Learns a batch, if its labels differ; `ready` says whether it did.

        Args:
            batch: all rows, those of earlier tasks first.
            measure: whether the quality of the fit is wanted.

        Returns:
            What `fit` and `quality` measure, by name; empty where nothing was learned.
        """
        return self.completed(lambda: self.fit(batch), batch, measure) if self.may_learn(batch) else {}

    def may_learn(self, batch: LabelledBatch) -> bool:
        """Whether the labels of a batch differ; `ready` is False until it is learned."""
        self.ready = False
        if not batch.separable:
            self._log_once(logging.INFO, "no value is better than another yet: exploring until one is")
        return batch.separable

    def completed(
        self, learn: Callable[[], dict[str, Any]], batch: LabelledBatch, measure: bool = True
    ) -> dict[str, Any]:
        """Completes the learning of a batch by a function, and sets `ready` if it succeeds; see `learned`."""
        try:
            with one_thread():
                measured = learn()
                if measure:
                    measured = {**measured, **self.quality(batch.own)}
                else:
                    self._judged(batch.own)
        except (LinAlgError, Diverged) as error:
            self._log_once(logging.WARNING, f"{type(self).__name__} could not be fitted, exploring instead: {error}")
            return {}
        self.keep_best(batch.best)
        self.ready = True
        return measured

    def keep_best(self, best: float | Tensor) -> None:
        """Sets `best_label`: a scalar, or the labels of a reference and a front ((1 + f) x k)."""
        self.best_label = torch.as_tensor(best, dtype=self.best_label.dtype, device=self.best_label.device)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Resizes `best_label` before loading: the checkpoint's front may have another size."""
        state_dict.pop(f"{prefix}_counter", None)  # of version 0.3
        if (kept := state_dict.get(f"{prefix}best_label")) is not None:
            self.best_label = self.best_label.new_empty(kept.shape)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _log_once(self, level: int, message: str) -> None:
        if message not in self._logged:
            self._logged.add(message)
            log.log(level, message)

    @torch.no_grad()
    def quality(self, batch: LabelledBatch) -> dict[str, Tensor]:
        """Accuracy, calibration error and AUROC on up to 512 rows of the training data.

        Labels >= 1/2 are class 1, but for the calibration error, which compares with the labels themselves. Rows of
        negligible weight, such as pending trials, are left out. With one class only, the AUROC is NaN.

        Raises:
            Diverged: for scores that are not finite.
        """
        from torchmetrics.functional.classification import binary_auroc  # takes seconds

        rows, posterior = self._judged(batch)
        z = rows.z.mean(-1)
        good, probability = (z >= 0.5).long(), posterior.probability
        score = mean_ranks(posterior.mean) / len(good)  # sigmoids of large scores would be equal
        has_both = bool(good.any()) and not bool(good.all())
        return {
            "accuracy": ((probability >= 0.5) == good).float().mean(),
            "calibration_error": calibration_error(probability, z, 10),
            "auroc": binary_auroc(score, good, validate_args=False) if has_both else score.new_tensor(math.nan),
        }

    @torch.no_grad()
    def _judged(self, batch: LabelledBatch) -> tuple[LabelledBatch, Posterior]:
        """Up to 512 rows to learn from, and the posterior there. Raises Diverged for scores that are not finite."""
        rows = batch.at_even_distances(QUALITY_ROWS)
        posterior = self.posterior(rows.points)
        if not bool(posterior.mean.isfinite().all()):
            raise Diverged("its scores are not finite. A smaller learning rate may help.")
        return rows, posterior

    def check_points(self, points: Tensor) -> None:
        """Raises ShapeError unless points are n x d of the bound space."""
        if self.space is None:
            raise SettingError("a classifier must know its space first: fit it, or call bind(space).")
        self.space.points.check_points(points)


def check_base(classifier: Classifier, why: str) -> None:
    """Checks that the base of another classifier is a classifier, and not bound to a space yet.

    Args:
        classifier: the base.
        why: the reason, with which the message begins.

    Raises:
        SettingError: for any other base.
    """
    of_kind(Classifier, classifier=classifier)
    if classifier.space is not None:
        raise SettingError(f"{why}, but it is bound already. Make a new one.")
