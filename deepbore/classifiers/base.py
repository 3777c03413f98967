"""`Classifier`: what every method to learn from labelled points has in common."""

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn
from torchmetrics.functional.classification import binary_auroc, binary_calibration_error

from deepbore.checks import between, of_kind
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import Posterior
from deepbore.compute.distributed import leave_apart
from deepbore.compute.hooks import hook
from deepbore.compute.linalg import LinAlgError
from deepbore.compute.threads import one_thread
from deepbore.errors import SettingError
from deepbore.labels import Gamma, LabelledBatch, Labelling, default_labels
from deepbore.parts import Part
from deepbore.space import SearchSpace

QUALITY_ROWS = 512
log = logging.getLogger(__name__)


class Diverged(ArithmeticError):
    """A training that ended with scores that are no numbers."""


class Classifier(Part, LightningModule, ABC):
    """Learns from one labelled batch an epoch, and says what it knows of the scores of points.

    The higher a score, the likelier the point is good. A subclass implements `build`, `fit` and `posterior`, and states

    Attributes:
        link: what its scores are: estimates of the label itself, logits, or probits.
        capabilities: what its posterior can do beyond the mean: "std" (deviations, covariances and joint samples),
            "members"; "columns" (a mean and a deviation for each column of the labels).
        columns: how many columns of labels it learns, each by itself; None where it makes one score of all.
        differentiable: whether its scores have gradients in the points.
        distance_aware: whether the deviation grows away from the data, as expected improvement needs; the default
            acquisition goes by it if it is so before the head knows its space.
        closed_form: whether `fit` needs no Trainer: it takes no gradient steps that Lightning knows of.
        kappa: standard deviations that an upper bound adds, if nobody says otherwise.
        generator: the stream of random numbers for weights and minibatches, which classifiers within this one share;
            the run lends its own.
        is_in_a_run: whether a run has taken it, and not given it back.
        ready: whether the latest training succeeded; if not, the loop explores.
        best_label: the label that improvement is measured against, of the latest batch (a scalar tensor), or those of a
            reference and a front ((1 + f) x k); see `Labels`.
    """

    link: Link = Link.LOGIT
    capabilities: frozenset[str] = frozenset()
    columns: int | None = None
    differentiable: bool = True
    distance_aware: bool = False
    kappa: float = 1.0
    closed_form: bool = False

    best_label: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.generator = torch.Generator().manual_seed(0)
        self._counter = nn.Parameter(torch.zeros(()))  # trained by nobody; DDP wants one that could be
        self.is_in_a_run = False
        self._optimizer: torch.optim.Optimizer | None = None
        self.space: SearchSpace | None = None
        self.ready = False
        self._said: set[str] = set()
        self.register_buffer("best_label", torch.ones((), dtype=torch.float64))

    @property
    def generator(self) -> torch.Generator:
        """The stream of random numbers; classifiers within this one draw from the same."""
        return self._generator

    @generator.setter
    def generator(self, generator: torch.Generator) -> None:
        self._generator = generator
        for part in self.children():
            if isinstance(part, Classifier):
                part.generator = generator

    @property
    def has_learned_in_a_run(self) -> bool:
        """Whether a run has trained it; its weights would tell another run of trials that are not its own."""
        return self.space is not None and self.is_in_a_run

    # --- what a method must say --------------------------------------------------------------------------------------

    @abstractmethod
    def build(self, space: SearchSpace, outputs: int) -> None:
        """Makes the parameters for a space of d parameters and labels of k columns."""

    @abstractmethod
    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        """Fits the batch and returns what to log of it, by name."""

    @abstractmethod
    def posterior(self, points: Tensor) -> Posterior:
        """What is known of the scores at points (n x d)."""

    def probability(self, points: Tensor) -> Tensor:
        """Points (n x d) -> expected probability of class 1, or expected label (n); see `Posterior.probability`."""
        return self.posterior(points).probability

    def density_ratio(self, points: Tensor, gamma: float) -> Tensor:
        """r_gamma(x) = pi(x) / gamma, the relative density ratio of good to all points, at most 1 / gamma (BORE eq. 8).

        A density ratio it is for labels by one threshold; of graded labels it is their mean, divided by gamma.

        Args:
            points: n x d.
            gamma: the share of good points, in (0, 1): the gamma of the labels, or more where values tie at tau.

        Raises:
            SettingError: for a gamma outside (0, 1).
        """
        between(0, 1, gamma=gamma)
        return self.probability(points) / gamma

    # --- Lightning ---------------------------------------------------------------------------------------------------

    def bind(self, space: SearchSpace, outputs: int = 1) -> "Classifier":
        """Makes the parameters, once; the trainer does it by itself.

        Raises:
            SettingError: if it is bound to another space already.
        """
        if self.space is None:
            self.space = space
            self.build(space, outputs)
        elif self.space != space:
            raise SettingError("a classifier learns one space, but this one is bound to another. Make a new one.")
        return self

    def become(self, other: "Classifier") -> None:
        """Takes the place of another classifier of its class, such as a copy of what it was before."""
        vars(self).clear()
        vars(self).update(vars(other))

    def default_labels(self, gamma: Gamma | None = None, objectives: int = 1) -> Labelling:
        """The labels that it learns where nobody says otherwise; see `deepbore.labels.default_labels`."""
        return default_labels(self.link is Link.IDENTITY, gamma, objectives, "columns" in self.capabilities)

    def configure_model(self) -> None:
        """Makes the parameters for the trainer's data, and labels that suit, if the data have none."""
        data = self.trainer.datamodule  # type: ignore[attr-defined]  # Lightning's types don't have it
        if data.labels is None:
            data.labels = self.default_labels(objectives=data.observations.k)
        with torch.device("cpu"):  # within this hook Lightning makes tensors on its device, and moves all to it later
            self.bind(data.space, data.labels.outputs)
        leave_apart(self, witness="_counter")

    def configure_optimizers(self) -> Any:
        """An optimizer of nothing, for methods without gradient descent; see `count_step`."""
        if self._optimizer is None:
            self._optimizer = torch.optim.SGD([self._counter], lr=0.0)
        return self._optimizer

    def lightning_optimizer(self) -> Any:
        """This classifier's own optimizer as Lightning wraps it: the steps of the wrapper are counted."""
        wrapped: Any = self.optimizers()
        every = wrapped if isinstance(wrapped, list) else [wrapped]  # several, where one classifier contains another
        return next(each for each in every if each.optimizer is self._optimizer)

    def count_step(self) -> None:
        """Steps the optimizer; `fit` of a method without gradient descent calls it once.

        Lightning counts steps, and writes a checkpoint only where the count has grown. Without a running Trainer
        nothing is counted.
        """
        if self._trainer is not None and self._trainer.training:
            self.lightning_optimizer().step()

    @hook
    def training_step(self, batch: LabelledBatch, batch_idx: int = 0) -> None:
        """Learns the epoch's one batch, and logs what `learned` measures."""
        if measured := self.learned(batch):
            self.log_dict(measured, on_step=False, on_epoch=True, batch_size=batch.n_own)

    def learned(self, batch: LabelledBatch) -> dict[str, Any]:
        """Learns a batch, if its labels differ; `ready` says whether it did.

        Args:
            batch: all rows, those of earlier tasks first.

        Returns:
            What `fit` and `quality` measure, by name; empty where nothing was learned.
        """
        self.ready = False
        if not batch.separable:
            self._say_once(logging.INFO, "no value is better than another yet: exploring until one is")
            return {}
        try:
            with one_thread():
                measured = {**self.fit(batch), **self.quality(batch.own)}
        except (LinAlgError, Diverged) as error:
            self._say_once(logging.WARNING, f"{type(self).__name__} could not be fitted, exploring instead: {error}")
            return {}
        self.keep_best(batch.best)
        self.ready = True
        return measured

    def keep_best(self, best: float | Tensor) -> None:
        """Keeps the label that improvement is measured against, or those of a front ((1 + f) x k)."""
        self.best_label = torch.as_tensor(best, dtype=self.best_label.dtype, device=self.best_label.device)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Makes room for a front of another size than the present one."""
        if (kept := state_dict.get(f"{prefix}best_label")) is not None:
            self.best_label = self.best_label.new_empty(kept.shape)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _say_once(self, level: int, message: str) -> None:
        if message not in self._said:
            self._said.add(message)
            log.log(level, message)

    @torch.no_grad()
    def quality(self, batch: LabelledBatch) -> dict[str, Tensor]:
        """Accuracy, calibration error and AUROC on the training data, of up to 512 rows; labels >= 1/2 are class 1.

        Rows that weigh next to nothing, such as pending trials, are no training data. Where there is one class only,
        the AUROC is NaN.

        Raises:
            Diverged: for scores that are no finite numbers.
        """
        rows = batch.at_even_distances(QUALITY_ROWS)
        good = (rows.z.mean(-1) >= 0.5).long()
        posterior = self.posterior(rows.points)
        if not bool(posterior.mean.isfinite().all()):
            raise Diverged("its scores are no finite numbers. A smaller learning rate may help.")
        probability, score = posterior.probability, posterior.mean.sigmoid()
        has_both = bool(good.any()) and not bool(good.all())
        return {
            "accuracy": ((probability >= 0.5) == good).float().mean(),
            "calibration_error": binary_calibration_error(probability, good, n_bins=10, validate_args=False),
            "auroc": binary_auroc(score, good, validate_args=False) if has_both else score.new_tensor(math.nan),
        }

    def check_points(self, points: Tensor) -> None:
        """Raises ShapeError unless points are n x d of the bound space."""
        if self.space is None:
            raise SettingError("a classifier must know its space first: fit it, or call bind(space).")
        self.space.check_points(points)


def optimizers_of(classifiers: Iterable[Classifier]) -> list[torch.optim.Optimizer]:
    """Those of several classifiers, each of which has one, or a list of those of its parts."""
    made = [each.configure_optimizers() for each in classifiers]
    return [one for some in made for one in (some if isinstance(some, list) else [some])]


def check_base(classifier: Classifier, why: str) -> None:
    """Refuses as the base of another classifier what is none, or knows a space already.

    Args:
        classifier: the base.
        why: it must not, as the error begins.

    Raises:
        SettingError: for such a base.
    """
    of_kind(Classifier, classifier=classifier)
    if classifier.space is not None:
        raise SettingError(f"{why}, but it is bound already. Make a new one.")
