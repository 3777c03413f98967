"""`RelativeRatio`: the relative density ratio of good to all points, by least squares (RuLSIF)."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from deepbore.classifiers.base import Classifier
from deepbore.classifiers.kernel.kernels import rbf
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import PointEstimate
from deepbore.labels.datamodule import LabelledBatch
from deepbore.space import SearchSpace
from deepbore.space.features import Coordinates, squared_distances
from deepbore.validation import above, whole

LENGTH_SCALES = [0.03 * 10 ** (k / 4) for k in range(9)]  # for one parameter; distances grow with the root of d
REGULARISATIONS = [10.0**k for k in range(-8, 1)]


class RelativeRatio(Classifier):
    """Least-squares fit of the relative density ratio of good to all points: RuLSIF (Yamada et al. 2013).

    With the density l of the good points and g of all others, the alpha-relative density ratio is

        r_alpha(x) = l(x) / (alpha l(x) + (1 - alpha) g(x)).                                                        (1)

    The model f is a sum of Gaussian kernels around b good points that minimises the squared distance to r_alpha under
    the mixture alpha l + (1 - alpha) g, which is, up to a constant,

        J(f) = alpha / 2 E_l[f^2] + (1 - alpha) / 2 E_g[f^2] - E_l[f],    f(x) = sum_j theta_j k(x, c_j).           (2)

    With sample means for expectations, and lambda / 2 |theta|^2 added, the minimum is

        theta = (H + lambda I)^-1 h,    H = alpha mean_l[k k^T] + (1 - alpha) mean_g[k k^T],    h = mean_l[k],      (3)

    with the vector k of all k(x, c_j). A row with label z in [0, 1] and weight w counts w z in the means over l and
    w (1 - z) in those over g: a graded label counts in both. alpha is gamma = sum(w z) / sum(w), the share of good
    rows. Then r_gamma is BORE's relative ratio (Tiao et al. 2021, eq. 4) and gamma r_gamma the class probability
    (ibid., eq. 8), which is the score. In H a row counts w / sum(w), independent of its label, and (3) is the ridge
    regression of the labels on the kernels.

    The length scale and lambda minimise J of (2) on a grid by leave-one-out: the terms of each row in (2), with the f
    of (3) from the sums over all other rows, in closed form. Up to a constant, gamma^2 J is half the mean squared error
    of the held-out labels. As with other models that estimate labels, the score is clipped to [0, 1] only for a
    probability or a ratio: a clipped score has no gradient.

    It is a point estimate: a run with it explores only by its candidates.

    Departures from the paper: leave-one-out in place of five folds; a grid in units of a parameter's range in place of
    the median distance, as new points concentrate where values are good; a coreset beyond `rows` observations.

    Args:
        length_scale: of the kernel, the same for all parameters, in units of a parameter's range; None for the best of
            the grid, 0.03 to 3 times the square root of the number of parameters.
        regularisation: lambda > 0, fixed; None for the best of the grid, 1e-8 to 1.
        centres: b, drawn from l if there are more good rows.
        rows: maximal number of observations to learn from.

    Raises:
        SettingError: for a number outside its range.

    Example:
        >>> from deepbore.testing import TOY_SPACES, fit, toy_data
        >>> space = TOY_SPACES["continuous"]
        >>> fit(RelativeRatio(), toy_data(space)).density_ratio(space.points.sobol(4, seed=0), gamma=0.5).shape
        torch.Size([4])

    References:
        Yamada, Suzuki, Kanamori, Hachiya & Sugiyama, Relative density-ratio estimation for robust distribution
        comparison, 2013.
        Tiao et al., BORE: Bayesian optimization by density-ratio estimation, 2021.
    """

    link = Link.IDENTITY
    closed_form = True

    def __init__(
        self,
        length_scale: float | None = None,
        regularisation: float | None = None,
        centres: int = 100,
        rows: int = 500,
    ):
        super().__init__()
        above(0, length_scale=length_scale, regularisation=regularisation)
        whole(1, centres=centres, rows=rows)
        self.length_scale, self.regularisation = length_scale, regularisation
        self.b, self.rows = centres, rows

    chosen: Tensor  # length scale and lambda
    _centres: Tensor  # b x c
    _theta: Tensor  # gamma times the theta of (3), b

    def build(self, space: SearchSpace, outputs: int) -> None:
        self.coordinates = Coordinates(space.points)
        grid = [scale * math.sqrt(len(space)) for scale in LENGTH_SCALES]
        self.length_scales = grid if self.length_scale is None else [self.length_scale]
        self.regularisations = REGULARISATIONS if self.regularisation is None else [self.regularisation]
        self.register_buffer("chosen", torch.ones(2, dtype=torch.float64))
        self._keep(torch.zeros(0, self.coordinates.size, dtype=torch.float64), torch.zeros(0, dtype=torch.float64))

    # --- learning ----------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        batch = batch.coreset(self.rows, self.generator)
        x, z, weight = self.coordinates(batch.points), batch.z.double().mean(-1), batch.weight.double()
        centres, share = x[self._drawn(z * weight)], weight / weight.sum()
        regularisation = x.new_tensor(self.regularisations)
        fits = [left_out(gaussian(x, centres, scale), z, share, regularisation) for scale in self.length_scales]
        errors = torch.stack([fit.error for fit in fits])
        scale, strength = divmod(int(errors.argmin()), len(regularisation))
        self.chosen.copy_(x.new_tensor([self.length_scales[scale], self.regularisations[strength]]))
        self._keep(centres, fits[scale].theta[:, strength])
        return {
            "loss": errors.min(),
            "rows": float(len(batch)),
            "length_scale": self.chosen[0],
            "regularisation": self.chosen[1],
        }

    def _drawn(self, good: Tensor) -> Tensor:
        """Indices of the rows at the centres of kernels, given the counts w z of all rows in l (n)."""
        candidates = good.nonzero().squeeze(-1)
        if len(candidates) <= self.b:
            return candidates
        drawn = torch.multinomial(good[candidates].cpu(), self.b, generator=self.generator)
        return candidates[drawn.to(candidates.device)]

    def _keep(self, centres: Tensor, theta: Tensor) -> None:
        """Keeps tensors that move with the module; their size varies, so that they are in the extra state."""
        self.register_buffer("_centres", centres, persistent=False)
        self.register_buffer("_theta", theta, persistent=False)

    # --- predicting --------------------------------------------------------------------------------------------------

    def posterior(self, points: Tensor) -> PointEstimate:
        self.check_points(points)
        kernels = gaussian(self.coordinates(points.to(self._centres)), self._centres, self.chosen[0])
        return PointEstimate(kernels @ self._theta, self.link, type(self).__name__)

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def get_extra_state(self) -> dict[str, Tensor]:
        """The centres and coefficients of the kernels, whose number varies."""
        return {"centres": self._centres, "theta": self._theta}

    def set_extra_state(self, state: dict[str, Tensor]) -> None:
        """Restores the centres and coefficients of a checkpoint."""
        self._keep(state["centres"].to(self.chosen), state["theta"].to(self.chosen))


def gaussian(x: Tensor, centres: Tensor, length_scale: Tensor | float) -> Tensor:
    """k(x, c) = exp(-|x - c|^2 / (2 length_scale^2)): n x c and b x c -> n x b."""
    return rbf(squared_distances(x, centres) / length_scale**2)


@dataclass(frozen=True)
class LeftOut:
    """Least-squares fits with m values of lambda, and their leave-one-out errors.

    Attributes:
        theta: gamma times the theta of (3), b x m.
        error: mean squared error of held-out labels, m.
    """

    theta: Tensor
    error: Tensor


def left_out(kernels: Tensor, z: Tensor, share: Tensor, regularisation: Tensor) -> LeftOut:
    """The fits of (3) with each lambda, from one decomposition of H.

    Without row i, which counts p_i, H and h lose p_i k_i k_i^T and p_i z_i k_i. By the formula of Sherman and Morrison
    the prediction of its label by all other rows is, with u_i = k_i^T (H + lambda I)^-1 k_i and the fit s_i,

        s_(-i) = (s_i - p_i u_i z_i) / (1 - p_i u_i).

    Args:
        kernels: k of all rows, n x b.
        z: labels, n.
        share: p, the weights of the rows, n, of sum 1.
        regularisation: m values of lambda.
    """
    values, vectors = torch.linalg.eigh(kernels.mT @ (share[:, None] * kernels))
    rotated = kernels @ vectors
    inverse = 1 / (values.clamp(min=0)[:, None] + regularisation)  # b x m
    theta = inverse * (rotated.mT @ (share * z))[:, None]
    leverage = share[:, None] * (rotated.square() @ inverse)
    predicted = (rotated @ theta - leverage * z[:, None]) / (1 - leverage)
    return LeftOut(vectors @ theta, share @ (predicted - z[:, None]).square())
