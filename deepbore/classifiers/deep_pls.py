"""`DeepPLS`: deep probabilistic least squares, networks with a Bayesian last layer."""

import torch
from torch import Tensor

from deepbore.classifiers.base import covariance_over_members
from deepbore.classifiers.fourier import FourierFeatures
from deepbore.classifiers.last_layer import fit_last_layer
from deepbore.classifiers.network import NetworkClassifier, Training
from deepbore.errors import SettingError
from deepbore.labels.datamodule import LabelledBatch
from deepbore.space import Real, SearchSpace

FOURIER = 100


class DeepPLS(NetworkClassifier):
    """m networks that fit the labels by least squares, each with a Gaussian posterior over its last layer.

    Least squares is a proper scoring rule: it estimates P(y <= tau | x) from labels by one threshold as PLS does
    (Oliveira et al. 2022, section 3.1), and expected improvement from labels graded by value (see
    `deepbore.labels.graded_by_value`). After each training the last layers are solved again in closed form, on the
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

    estimates_labels = True
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
        if fourier is not None and fourier < 0:
            raise SettingError(f"fourier >= 0 must hold, but got fourier={fourier}.")
        self.fourier = fourier

    last_mean: Tensor  # m x h
    last_root: Tensor  # m x h x h

    def build(self, space: SearchSpace, outputs: int) -> None:
        super().build(space, outputs)
        has_reals = any(isinstance(p, Real) for p in space.parameters.values())
        count = (FOURIER if has_reals else 0) if self.fourier is None else self.fourier
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

    def scores(self, points: Tensor) -> Tensor:
        self.check_points(points)
        return self._mean(self._last_features(self.encode(points)))

    def gaussian(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Mean (n) and standard deviation (n): last-layer variance and the members' spread together."""
        self.check_points(points)
        phi = self._last_features(self.encode(points))
        means = self._mean(phi)  # m x n
        variance = (phi @ self.last_root).square().sum(-1)  # m x n
        return means.mean(0), (variance.mean(0) + means.var(0, correction=0)).sqrt()

    def covariance(self, points: Tensor) -> Tensor:
        """Of the last layers, their mean over the members, and of the members' means (n x n)."""
        self.check_points(points)
        phi = self._last_features(self.encode(points))
        roots = phi @ self.last_root  # m x n x h
        return (roots @ roots.mT).mean(0) + covariance_over_members(self._mean(phi))

    def _last_features(self, x: Tensor) -> Tensor:
        """Features (n x e) -> what the last layers see: hidden units, waves and a constant for the bias (m x n x h)."""
        hidden = self.net.hidden(x)  # type: ignore[operator]  # torch says that it may be a tensor
        shared = torch.cat([self.waves(x), torch.ones_like(x[:, :1])], dim=-1)
        return torch.cat([hidden, shared.expand(self.members, -1, -1)], dim=-1)

    def _mean(self, phi: Tensor) -> Tensor:
        return (phi @ self.last_mean[..., None]).squeeze(-1)
