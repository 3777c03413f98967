"""`DeepPLS`: deep probabilistic least squares, networks with a Bayesian last layer."""

import torch
from torch import Tensor

from deepbore.classifiers.fourier import FourierFeatures
from deepbore.classifiers.last_layer import fit_last_layer
from deepbore.classifiers.link import Link
from deepbore.classifiers.network import NetworkClassifier, Training
from deepbore.classifiers.posterior import LinearPosterior
from deepbore.labels.datamodule import LabelledBatch
from deepbore.space import SearchSpace
from deepbore.validation import whole

FOURIER = 100


class DeepPLS(NetworkClassifier):
    """m networks that fit the labels by least squares, each with a Gaussian posterior over its last layer.

    Least squares is a proper scoring rule: it estimates P(y <= tau | x) from labels by one threshold as PLS does
    (Oliveira et al. 2022, section 3.1), and from labels graded by value improvement over many thresholds (see
    `ValueGradedLabels`). After each training the last layers are solved again in closed form, on the
    hidden features and on random Fourier features beside them: the variance of these grows with the distance from all
    data, so that the upper bound leaves a local optimum where the networks alone agree that the rest is bad.

    Args:
        hidden: widths of the hidden layers.
        activation: "elu", "relu", "tanh", or "auto" (ELU for d <= 10, else ReLU).
        members: m >= 1.
        fourier: number of Fourier features, 0 for none; None for 100 if the space has real parameters, else none, for
            between levels the networks alone proved better.
        training: steps, learning rate, warm start, ...

    Raises:
        SettingError: for a number outside its range.
    """

    link = Link.IDENTITY
    capabilities = frozenset({"std"})
    kappa = 2.0  # 1 ends in a poorer cell of a table more often

    def __init__(
        self,
        hidden: tuple[int, ...] = (32, 32),
        activation: str = "relu",
        members: int = 3,
        fourier: int | None = None,
        training: Training | None = None,
    ):
        super().__init__(hidden, activation, None, members, training)
        whole(0, fourier=fourier)
        self.fourier = fourier

    last_mean: Tensor  # m x h
    last_root: Tensor  # m x h x h

    def build(self, space: SearchSpace, outputs: int) -> None:
        super().build(space, outputs)
        count = (FOURIER if space.continuous_columns else 0) if self.fourier is None else self.fourier
        self.distance_aware = count > 0
        self.waves = FourierFeatures(self.features.size, count, self.generator)
        h = self.hidden[-1] + count + 1
        self.register_buffer("last_mean", torch.zeros(self.members, h))
        self.register_buffer("last_root", torch.eye(h).repeat(self.members, 1, 1))

    # --- learning ----------------------------------------------------------------------------------------------------

    def loss(self, outputs: Tensor, z: Tensor, weight: Tensor) -> Tensor:
        return ((outputs - z).square() * weight[:, None]).mean((1, 2)).sum()

    def loss_gradient(self, outputs: Tensor, z: Tensor, weight: Tensor) -> Tensor:
        return (outputs - z) * (2 * weight[:, None] / z.numel())

    @torch.no_grad()
    def after_training(self, x: Tensor, batch: LabelledBatch) -> None:
        """Solves the last layers for the mean label."""
        z = batch.z.mean(-1)
        if self.distance_aware:
            self.waves.choose_length_scale(x, z, batch.weight)
        posterior = fit_last_layer(self._last_features(x), z, batch.weight)
        self.last_mean.copy_(posterior.mean)
        self.last_root.copy_(posterior.root)

    # --- predicting --------------------------------------------------------------------------------------------------

    def posterior(self, points: Tensor) -> LinearPosterior:
        """Gaussian: the variance of the last layers and the spread of the members together."""
        self.check_points(points)
        return LinearPosterior(self._last_features(self.encode(points)), self.last_mean, self.last_root, self.link)

    def _last_features(self, x: Tensor) -> Tensor:
        """Features (n x e) -> what the last layers see: hidden units, waves and a constant for the bias (m x n x h)."""
        hidden = self.net.hidden(x)  # type: ignore[operator]  # torch says that it may be a tensor
        shared = torch.cat([self.waves(x), torch.ones_like(x[:, :1])], dim=-1)
        return torch.cat([hidden, shared.expand(self.members, -1, -1)], dim=-1)
