"""`Classifier`: what every method to learn from labelled points has in common."""

import logging
import math
from abc import ABC, abstractmethod
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn
from torchmetrics.functional.classification import binary_auroc, binary_calibration_error

from deepbore.datamodule import LabelledBatch
from deepbore.errors import SettingError
from deepbore.labels import suited_labels
from deepbore.ranks import leave_apart
from deepbore.space import SearchSpace
from deepbore.threads import one_thread

QUALITY_ROWS = 512
log = logging.getLogger(__name__)


class Classifier(LightningModule, ABC):
    """Learns from one labelled batch an epoch, and scores points: the higher, the likelier to be good.

    Scores are logits for classifiers that minimise cross-entropy, estimates of the label itself for those that minimise
    squared error, which say so in `estimates_labels`. Those whose deviation grows with the distance from the data say
    so in `distance_aware`. A subclass implements `build`, `learn` and `scores`, and perhaps
    `gaussian`; it states in `differentiable` whether its scores have gradients in the points.

    Attributes:
        generator: the stream of random numbers for weights and minibatches; the loop sets its own.
        ready: whether the latest training succeeded; if not, the loop explores.
    """

    differentiable: bool = True
    estimates_labels: bool = False
    distance_aware: bool = False  # whether the deviation grows away from the data, as expected improvement needs
    kappa: float = 1.0  # standard deviations that an upper bound adds, if nobody says otherwise

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.generator = torch.Generator().manual_seed(0)
        self._counter = nn.Parameter(torch.zeros(()))  # trained by nobody; DDP wants one that could be
        self._optimizer: torch.optim.Optimizer | None = None
        self.space: SearchSpace | None = None
        self.ready = False
        self._said: set[str] = set()

    # --- what a method must say --------------------------------------------------------------------------------------

    @abstractmethod
    def build(self, space: SearchSpace, outputs: int) -> None:
        """Makes the parameters for a space of d parameters and labels of k columns."""

    @abstractmethod
    def learn(self, batch: LabelledBatch) -> dict[str, Any]:
        """Fits the batch and returns what to log of it, by name."""

    @abstractmethod
    def scores(self, points: Tensor) -> Tensor:
        """Points (n x d) -> scores of m members or posterior samples (m x n); m = 1 for a point estimate."""

    def gaussian(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Points (n x d) -> mean (n) and standard deviation (n) of the score; here over the members."""
        scores = self.scores(points)
        return scores.mean(0), scores.std(0, correction=0)

    def covariance(self, points: Tensor) -> Tensor:
        """Points (n x d) -> covariance of their scores (n x n).

        Here over the members; what `gaussian` knows of variance beyond theirs is taken as independent.
        """
        shared = covariance_over_members(self.scores(points))
        beyond = self.gaussian(points)[1].square() - shared.diagonal()
        return shared + beyond.clamp(min=0).diag_embed()

    def sample(self, points: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Points (n x d) -> joint posterior samples of their scores (count x n); here members drawn at random.

        Raises:
            SettingError: for a point estimate, which has no posterior.
        """
        scores = self.scores(points)
        if len(scores) == 1:
            name = type(self).__name__
            raise SettingError(f"samples need several members, but {name} has one score a point. Use a DeepEnsemble.")
        return scores[torch.randint(len(scores), (count,), generator=generator).to(scores.device)]

    def probability(self, points: Tensor) -> Tensor:
        """Points (n x d) -> probability of class 1, or expected label (n), for showing, not for maximising.

        Estimated labels are clipped to [0, 1] here and only here (Oliveira et al. 2022, eq. 20): a clipped score has no
        gradient.
        """
        scores = self.scores(points)
        return scores.mean(0).clamp(0, 1) if self.estimates_labels else scores.sigmoid().mean(0)

    def density_ratio(self, points: Tensor, gamma: float) -> Tensor:
        """r_gamma(x) = pi(x) / gamma, the relative density ratio of good to all points, at most 1 / gamma (BORE eq. 8).

        Args:
            points: n x d.
            gamma: the proportion of good points that the labels were made with, in (0, 1).

        Raises:
            SettingError: for a gamma outside (0, 1).
        """
        if not 0 < gamma < 1:
            raise SettingError(f"0 < gamma < 1 must hold, but got gamma={gamma}.")
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

    def configure_model(self) -> None:
        """Makes the parameters for the trainer's data, and labels that suit, if the data have none."""
        data = self.trainer.datamodule  # type: ignore[attr-defined]  # Lightning's types don't have it
        data.labels = data.labels or suited_labels(self.estimates_labels)
        self.bind(data.space, data.labels.outputs)
        leave_apart(self, witness="_counter")

    def configure_optimizers(self) -> Any:
        """An optimizer of nothing, for methods without gradient descent: `step` it once an iteration.

        Lightning counts steps, and writes a checkpoint only where the count has grown.
        """
        if self._optimizer is None:
            self._optimizer = torch.optim.SGD([self._counter], lr=0.0)
        return self._optimizer

    def lightning_optimizer(self) -> Any:
        """This classifier's own optimizer as Lightning wraps it: the steps of the wrapper are counted."""
        wrapped: Any = self.optimizers()
        every = wrapped if isinstance(wrapped, list) else [wrapped]  # several, where one classifier contains another
        return next(each for each in every if each.optimizer is self._optimizer)

    def training_step(self, batch: LabelledBatch, batch_idx: int = 0) -> None:
        """Learns the epoch's one batch, if there is anything to tell apart; `ready` says whether it did."""
        self.ready = False
        if not batch.separable:
            self._say_once(logging.INFO, "no value is better than another yet: exploring until one is")
            return
        try:
            with one_thread():
                measured = {**self.learn(batch), **self.quality(batch)}
        except torch.linalg.LinAlgError as error:  # type: ignore[attr-defined]  # torch's types lack it
            self._say_once(logging.WARNING, f"{type(self).__name__} could not be fitted, exploring instead: {error}")
            return
        self.ready = True
        self.log_dict(measured, on_step=False, on_epoch=True, batch_size=len(batch))

    def _say_once(self, level: int, message: str) -> None:
        if message not in self._said:
            self._said.add(message)
            log.log(level, message)

    @torch.no_grad()
    def quality(self, batch: LabelledBatch) -> dict[str, Tensor]:
        """Accuracy, calibration error and AUROC on the training data, of up to 512 rows; labels >= 1/2 are class 1."""
        step = math.ceil(len(batch) / QUALITY_ROWS)
        points, good = batch.points[::step], (batch.z[::step].mean(-1) >= 0.5).long()
        probability = self.probability(points)
        return {
            "accuracy": ((probability >= 0.5) == good).float().mean(),
            "calibration_error": binary_calibration_error(probability, good, n_bins=10, validate_args=False),
            "auroc": binary_auroc(self.scores(points).mean(0).sigmoid(), good, validate_args=False),
        }

    def check_points(self, points: Tensor) -> None:
        """Raises ShapeError unless points are n x d of the bound space."""
        if self.space is None:
            raise SettingError("a classifier must know its space first: fit it, or call bind(space).")
        self.space.check_points(points)


def covariance_over_members(scores: Tensor) -> Tensor:
    """Scores (m x n) -> their covariance between points (n x n), members counting equally."""
    deviations = scores - scores.mean(0)
    return deviations.mT @ deviations / len(scores)
