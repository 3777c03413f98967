"""`DeepPLS`: deep probabilistic least squares, networks with a Bayesian last layer."""

import torch
from torch import Tensor

from deepbore.classifiers.link import Link
from deepbore.classifiers.networks.last_layer import FourierFeatures, fit_last_layer
from deepbore.classifiers.networks.network import (
    Loss,
    NetworkClassifier,
    NetworkFactory,
    OptimizerFactory,
    SchedulerFactory,
    Training,
)
from deepbore.classifiers.networks.stacked import Given
from deepbore.classifiers.posterior import LinearPosterior
from deepbore.labels.datamodule import LabelledBatch
from deepbore.space import SearchSpace
from deepbore.validation import whole

FOURIER = 100  # default number of Fourier features


class DeepPLS(NetworkClassifier):
    """m networks fitted to the labels by (probabilistic) least squares, with a Gaussian posterior of each last layer.

    Least squares is a proper scoring rule: from labels by one threshold it estimates P(y <= tau | x), as PLS does
    (Oliveira et al. 2022, section 3.1); from labels graded by value, the improvement over many thresholds (see
    `ValueGradedLabels`). After each training the last layers are solved in closed form, on the hidden features and on
    random Fourier features. The variance of the latter grows with the distance from all data, so that an upper
    confidence bound leaves a local optimum even where the networks alone agree that all other points are bad.

    Args:
        hidden: widths of the hidden layers.
        activation: of torch, by name, class or function; "auto" for ELU if d <= 10, else ReLU.
        members: m >= 1.
        fourier: number of Fourier features, 0 for none; None for 100 if the space has real parameters, else none: in
            discrete spaces the networks alone proved better.
        training: steps, learning rate, warm start, ...
        network: a factory (number of features, number of outputs) -> module, or a module to copy, in place of `hidden`
            and `activation`; its last layer must be an `nn.Linear`.
        optimizer: a function of the parameters, as `partial(torch.optim.AdamW, lr=1e-3)`; None for Adam.
        lr_scheduler: a function of the optimizer, as `partial(ExponentialLR, gamma=0.99)`; see `Training.lr_interval`.
        loss: a function of scores and labels (B x k each), for the hidden layers; None for squared errors.
        rows: maximal number of rows that an iteration learns from; None for as many as its steps can see, so that every
            row is seen in time.

    Raises:
        SettingError: for a number outside its range.
    """

    link = Link.IDENTITY
    capabilities = frozenset({"std"})
    kappa = 2.0  # 1 ends in worse cells of tabular problems more often

    def __init__(
        self,
        hidden: tuple[int, ...] = (32, 32),
        activation: Given = "relu",
        members: int = 3,
        fourier: int | None = None,
        training: Training | None = None,
        network: NetworkFactory | None = None,
        optimizer: OptimizerFactory | None = None,
        lr_scheduler: SchedulerFactory | None = None,
        loss: Loss | None = None,
        rows: int | None = None,
    ):
        super().__init__(hidden, activation, network, members, training, optimizer, lr_scheduler, loss, rows)
        whole(0, fourier=fourier)
        self.fourier = fourier

    last_mean: Tensor  # m x h
    last_root: Tensor  # m x h x h

    def build(self, space: SearchSpace, outputs: int) -> None:
        super().build(space, outputs)
        count = (FOURIER if space.points.continuous_columns else 0) if self.fourier is None else self.fourier
        self.distance_aware = count > 0
        self.waves = FourierFeatures(self.features.size, count, self.generator)
        h = self.net.width + count + 1
        self.register_buffer("last_mean", torch.zeros(self.members, h))
        self.register_buffer("last_root", torch.eye(h).repeat(self.members, 1, 1))

    # --- learning ----------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def after_training(self, x: Tensor, batch: LabelledBatch) -> None:
        """Solves the last layers for the mean label over the columns."""
        z = batch.z.mean(-1)
        if self.distance_aware:
            self.waves.choose_length_scale(x, z, batch.weight)
        posterior = fit_last_layer(self._last_features(x), z, batch.weight)
        self.last_mean.copy_(posterior.mean)
        self.last_root.copy_(posterior.root)

    # --- predicting --------------------------------------------------------------------------------------------------

    def posterior(self, points: Tensor) -> LinearPosterior:
        """A Gaussian with the variance of the last layers and the spread of the members."""
        self.check_points(points)
        return LinearPosterior(self._last_features(self.encode(points)), self.last_mean, self.last_root, self.link)

    def _last_features(self, x: Tensor) -> Tensor:
        """Features (n x e) -> inputs of the last layers (m x n x h): hidden units, Fourier features and a constant."""
        hidden = self.net.hidden(x)
        shared = torch.cat([self.waves(x), torch.ones_like(x[:, :1])], dim=-1)
        return torch.cat([hidden, shared.expand(self.members, -1, -1)], dim=-1)
