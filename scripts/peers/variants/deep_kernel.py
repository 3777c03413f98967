"""Networks of all rows as the mean, and a kernel with its deviation of what they leave.

docs/ablation.md has what came of it ("A thousand evaluations").
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from deepbore.classifiers.kernel.least_squares import KernelPLS
from deepbore.classifiers.link import Link
from deepbore.classifiers.networks.network import NetworkClassifier, Training
from deepbore.classifiers.networks.stacked import Given
from deepbore.classifiers.posterior import GaussianPosterior
from deepbore.labels.datamodule import LabelledBatch
from deepbore.space import SearchSpace
from deepbore.validation import whole
from peers.variants.settings import Settings

KERNEL_ROWS = 200  # default maximum of rows of the kernel: its cost is cubic in their number


class DeepKernel(NetworkClassifier):
    """m networks fitted to the labels by least squares, and a kernel fitted to what their mean leaves.

        pi(x) = f(x) + k(x)^T (K + lambda I)^-1 (z - f(X)),    f the mean of the networks

    The networks learn from all rows at a constant cost, but are coarse where rows are close together, and do not say
    how sure they are. The kernel learns few rows, a quarter of them the best and a quarter the newest, and has a
    deviation that grows with the distance from them. So the sum is as coarse as the networks far from these rows, and
    as fine as a kernel near the best. Deviations are those of the kernel (eq. 13 and Theorem 1 of Oliveira et al. 2022,
    for the residuals): what the networks are wrong about together is what the kernel finds left.

    Args:
        hidden: widths of the hidden layers.
        activation: of torch, by name, class or function; "auto" for ELU if d <= 10, else ReLU.
        members: m >= 1.
        kernel_rows: the maximum number of rows of the kernel, >= 1.
        training: steps, learning rate, warm start, ...

    Raises:
        SettingError: for a number outside its range.

    References:
        Oliveira, Tiao & Ramos, Batch Bayesian optimisation via density-ratio estimation with guarantees, NeurIPS 2022.
        Qiu, Meyerson & Miikkulainen, Quantifying point-prediction uncertainty in neural networks via residual
        estimation with an I/O kernel, ICLR 2020 (a Gaussian process of what a network leaves).
    """

    link = Link.IDENTITY
    capabilities = frozenset({"std"})
    distance_aware = True
    kernel: KernelPLS

    def __init__(
        self,
        hidden: tuple[int, ...] = (128, 128),
        activation: Given = "silu",
        members: int = 3,
        kernel_rows: int = KERNEL_ROWS,
        training: Training | None = None,
    ):
        super().__init__(hidden, activation, members=members, training=training)
        whole(1, kernel_rows=kernel_rows)
        self.kernel_rows = kernel_rows

    def build(self, space: SearchSpace, outputs: int) -> None:
        super().build(space, outputs)
        self.kernel = KernelPLS(rows=self.kernel_rows, crashes=False, additive=False)
        self.kernel.bind(space)

    # --- learning ----------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def after_training(self, x: Tensor, batch: LabelledBatch) -> None:
        """The kernel learns what the networks leave of the mean label over the columns."""
        rows = batch.coreset(self.kernel_rows, self.generator)
        left = rows.z.double().mean(-1) - self.network_mean(rows.points)
        self.kernel.learn_all(replace(rows, z=left[:, None]))

    def network_mean(self, points: Tensor) -> Tensor:
        """The mean of the networks over members and columns at points (n x d): n, in double precision."""
        mean: Tensor = self.member_outputs(self.encode(points)).double().mean((0, 2))
        return mean

    # --- predicting --------------------------------------------------------------------------------------------------

    def posterior(self, points: Tensor) -> "ResidualPosterior":
        """The kernel's Gaussian around the networks' mean and the kernel's."""
        self.check_points(points)
        return ResidualPosterior(self.network_mean(points), self.kernel.posterior(points))


class ResidualPosterior(GaussianPosterior):
    """A Gaussian posterior of residuals, around a mean that they are residuals of.

    Args:
        base: n.
        residual: the posterior of what is left, at the same points.
    """

    def __init__(self, base: Tensor, residual: GaussianPosterior):
        super().__init__(base + residual.mean, None, residual.link)
        self.residual = residual

    @property
    def std(self) -> Tensor:
        return self.residual.std

    @property
    def scale(self) -> Tensor:
        return self.residual.scale

    def covariance(self) -> Tensor:
        return self.residual.covariance()


VARIANTS: dict[str, Callable[[], Settings]] = {"deepbore:deep-kernel": lambda: {"classifier": DeepKernel()}}
