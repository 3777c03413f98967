"""Posteriors over the weights of a linearised network, N(theta + m, Sigma_GGN), by laplace-torch.

laplace-torch provides precisions, decompositions, determinants, the marginal likelihood and samples. This file adds:

| laplace-torch | here |
|---|---|
| P x P numbers for the full GGN | `Directions`: the n directions that rows determine, where the GGN is diagonal |
| likelihoods of two logits or more | `TwoLogits`: the softmax of [0, f] is the sigmoid of f |
| no weights of rows | `WeightedGGN` multiplies the curvature of each row |
| Jacobians quadratic in the batch, or without gradients in x | `row_jacobians`: linear, with gradients |

Lambda is diagonal: the weight of each row, times pi (1 - pi) for the Bernoulli likelihood. A row of weight 2 counts as
two rows, in every structure. Importing this file imports laplace-torch.

References:
    Daxberger et al., Laplace redux: effortless Bayesian deep learning, 2021.
    Immer, Korzepa & Bauer, Improving predictions of Bayesian neural nets via local linearization, 2021.
"""

from copy import deepcopy
from typing import Any

import torch
from laplace import DiagLaplace, KronLaplace, Laplace
from laplace.curvature import CurvatureInterface
from laplace.utils import Kron
from torch import Tensor, nn
from torch.nn.utils import skip_init
from torch.utils.data import DataLoader, TensorDataset

from deepbore.classifiers.networks.linearised import (
    Factors,
    WeightPosterior,
    Weights,
    bernoulli_variance,
    flat_jacobian,
    in_double_precision,
    inner_products,
    linear_layers,
    linear_outputs,
    row_jacobians,
)
from deepbore.compute.devices import generator_on

TINY = 1e-12
AMPLITUDE = (-2.3, 2.0)  # log of the outputs' mean variance under the prior, of labels in [0, 1]: mean, deviation
NOISE = (-9.2, 3.0)  # log of the variance of the labels' noise, likewise
DEVIATIONS = 5.0
ROUNDS = 8  # of L-BFGS on the marginal likelihood


# --- the whole GGN ---------------------------------------------------------------------------------------------------


class Directions(WeightPosterior):
    """The full Sigma = (J^T Lambda J + delta I)^-1, in the directions that the rows determine.

    With Lambda^1/2 J = U S V^T the precision is diag(S^2) + delta in the r <= n directions V, and delta in all others.
    laplace-torch's `DiagLaplace` of a linear model in the coordinates V^T theta is then exact, for any number of
    weights. Coordinates of a point's Jacobian need inner products only: J(x) V = J(x) J^T Lambda^1/2 U S^-1.

    Args:
        factors: of the Jacobian of n rows.
        curvature: the diagonal of Lambda, n.
        residual: labels minus outputs (n), for a Gaussian likelihood; None if theta is the MAP estimate already.

    Attributes:
        laplace: laplace-torch's own object.
    """

    laplace: DiagLaplace

    def __init__(self, factors: Factors, curvature: Tensor, residual: Tensor | None = None):
        self.factors = in_double_precision(factors)
        root = curvature.double().sqrt()
        kernel = inner_products(self.factors, self.factors)
        squares, basis = torch.linalg.eigh(root[:, None] * kernel * root)
        kept = squares > TINY * squares.sum()
        if not bool(kept.any()):  # no rows, or none that depends on the weights: one direction that nothing determines
            squares, basis, kept = root.new_zeros(1), root.new_zeros(len(root), 1), torch.ones(1, dtype=torch.bool)
        self.singular = squares[kept].sqrt()
        self.into = root[:, None] * basis[:, kept] / self.singular.clamp(min=TINY)  # n x r
        whitened = root.new_zeros(len(root)) if residual is None else root * residual.double()
        self.target, self.power = whitened @ basis[:, kept], whitened.square().sum()  # U^T Lambda^1/2 (z - f)
        self.is_shifted = residual is not None
        self.amplitude = kernel.diagonal().mean() if len(root) else root.new_ones(())
        self.laplace = self._laplace(float(curvature.sum()))

    def _laplace(self, rows: float) -> DiagLaplace:
        coordinates = {"in_features": len(self.singular), "out_features": 1, "bias": False}
        linear = skip_init(nn.Linear, **coordinates, dtype=torch.float64, device=self.singular.device)  # draws nothing
        made = DiagLaplace(linear, "regression")
        made.H, made.n_outputs = self.singular.square(), 1
        made.n_data = rows  # type: ignore[assignment]  # a sum of weights
        return made

    def at(self, delta: Tensor, noise: Tensor | None = None) -> "Directions":
        """The posterior at a prior precision and a standard deviation of the labels' noise (1 if None); itself."""
        own = self.laplace
        own.prior_precision, own.sigma_noise = delta, 1.0 if noise is None else noise
        with torch.no_grad():
            precision = own.posterior_precision
            own.mean = self.singular * self.target / (own.sigma_noise.square() * precision)  # one Gauss-Newton step
            misfit = (self.target - self.singular * own.mean).square().sum() - self.target.square().sum()
            own.loss = (self.power + misfit) / 2
            self.log_determinant = own.log_det_ratio.detach()
            self.effective = (1 - own.prior_precision_diag / precision).sum()
        return self

    def most_evident(self, delta: Tensor, noise: Tensor, delta_is_fixed: bool = False) -> tuple[Tensor, Tensor]:
        """Prior precision and noise of the greatest marginal likelihood, times weak priors, from these on.

        The gradient is that at a fixed mean: the mean maximises the posterior, so that its own derivative adds nothing.
        """
        found = torch.stack([delta, noise]).double().log().requires_grad_(True)
        mean, deviation = self._prior
        lowest, highest = mean - DEVIATIONS * deviation, mean + DEVIATIONS * deviation
        optimizer = torch.optim.LBFGS([found], max_iter=ROUNDS, line_search_fn="strong_wolfe")

        def loss() -> Tensor:
            optimizer.zero_grad()
            within = found.clamp(lowest, highest)  # labels that are met exactly would have no noise at all
            precision, spread = within.exp()
            self.at(precision.detach(), spread.detach())
            value: Tensor = -self.laplace.log_marginal_likelihood(precision, spread) + self._surprise(within)
            value.backward()
            if delta_is_fixed and found.grad is not None:
                found.grad[0] = 0
            return value.detach()

        optimizer.step(loss)
        best = found.detach().clamp(lowest, highest).exp()
        return best[0], best[1]

    @property
    def _prior(self) -> tuple[Tensor, Tensor]:
        """Means and deviations of the logarithms of delta and the noise: the labels' scale bounds both."""
        mean = torch.stack([self.amplitude.log() - AMPLITUDE[0], self.amplitude.new_tensor(NOISE[0] / 2)])
        return mean, self.amplitude.new_tensor([AMPLITUDE[1], NOISE[1] / 2])

    def _surprise(self, found: Tensor) -> Tensor:
        """Minus the log prior of the logarithms of delta and the noise, up to a constant."""
        mean, deviation = self._prior
        return ((found - mean) / deviation).square().sum() / 2

    # --- predicting --------------------------------------------------------------------------------------------------

    def coordinates(self, factors: Factors) -> Tensor:
        """J(x) V, n x r, with gradients in the factors."""
        coordinates: Tensor = inner_products(factors, self.factors) @ self.into
        return coordinates

    def shift(self, factors: Factors) -> Tensor | None:
        mean: Tensor = self.laplace.mean  # type: ignore[assignment]  # laplace-torch: or a number
        return self.coordinates(factors) @ mean if self.is_shifted else None

    def variance(self, factors: Factors) -> Tensor:
        determined = self.coordinates(factors)
        squares = torch.stack([a.square().sum(-1) * g.square().sum(-1) for a, g in factors]).sum(0)
        others: Tensor = (squares - determined.square().sum(-1)).clamp(min=0) / self.laplace.prior_precision
        return others + self.laplace.functional_variance(determined[:, None])[:, 0, 0]

    def covariance(self, factors: Factors) -> Tensor:
        determined = self.coordinates(factors)
        others = (inner_products(factors, factors) - determined @ determined.mT) / self.laplace.prior_precision
        covariance: Tensor = others + self.laplace.functional_covariance(determined[:, None])
        return covariance

    def sample(self, count: int, generator: torch.Generator) -> Weights:
        """Draws from the prior, in which what the rows determine is replaced by draws of laplace-torch."""
        scale = self.laplace.prior_precision.rsqrt()
        prior = [_normal(generator, count, a.shape[1], g.shape[1]).to(a) * scale for a, g in self.factors]
        drawn = self.laplace.sample(count, generator_on(self.into.device, generator))
        correction = (drawn - linear_outputs(self.factors, prior) @ self.into) @ self.into.mT  # count x n
        return [
            draw + torch.einsum("sn,ni,no->sio", correction, a, g)
            for draw, (a, g) in zip(prior, self.factors, strict=True)
        ]


def _normal(generator: torch.Generator, *shape: int) -> Tensor:
    """Standard normal numbers, drawn on the generator's device."""
    return torch.randn(shape, generator=generator, dtype=torch.float64, device=generator.device)


# --- approximations of the GGN ---------------------------------------------------------------------------------------


class Approximate(WeightPosterior):
    """The posterior of the weights of a network by Kronecker factors, or by the diagonal of the GGN.

    Args:
        network: n x e -> n x 1.
        names: of the parameters that have a posterior, as `named_parameters` names them.
        structure: "kron" or "diag".
        x: features of the training rows, n x e; without rows the posterior is the prior.
        weight: of the rows, n.
        delta: prior precision, a scalar.
        noise: standard deviation of the labels' noise, for a Gaussian likelihood; None for the Bernoulli one.

    Attributes:
        laplace: laplace-torch's own object, of a copy of the network.
    """

    laplace: Any

    def __init__(
        self,
        network: nn.Module,
        names: list[str],
        structure: str,
        x: Tensor,
        weight: Tensor,
        delta: Tensor,
        noise: Tensor | None = None,
    ):
        copied = deepcopy(network).double()
        for name, parameter in copied.named_parameters():
            parameter.requires_grad_(name in names)
        model, kind = (TwoLogits(copied), "classification") if noise is None else (OneOutput(copied), "regression")
        settings: dict[str, Any] = {} if noise is None else {"sigma_noise": noise.double()}
        delta = delta.double()
        self.laplace = Laplace(model, kind, "all", structure, backend=WeightedGGN, prior_precision=delta, **settings)
        self.laplace.fit(_all_at_once(x.double(), weight.double()))
        self.log_determinant: Tensor = self.laplace.log_det_ratio
        self.effective = self.laplace.n_params - delta * self._trace()

    def _trace(self) -> Tensor:
        """tr(Sigma)."""
        if isinstance(self.laplace, KronLaplace):
            diagonal: Tensor = self.laplace.posterior_precision.diag(exponent=-1)
            return diagonal.sum()
        trace: Tensor = self.laplace.posterior_variance.sum()
        return trace

    def variance(self, factors: Factors) -> Tensor:
        return self._roots(factors).square().sum(-1)

    def covariance(self, factors: Factors) -> Tensor:
        roots = self._roots(factors)
        return roots @ roots.mT

    def _roots(self, factors: Factors) -> Tensor:
        """J(x) Sigma^(1/2), n x P, whose square is much cheaper than laplace-torch's own predictive variance."""
        jacobian = flat_jacobian(factors)
        if isinstance(self.laplace, KronLaplace):
            roots: Tensor = self.laplace.posterior_precision.bmm(jacobian[:, None], exponent=-0.5)[:, 0]
            return roots
        scaled: Tensor = jacobian * self.laplace.posterior_scale
        return scaled

    def sample(self, count: int, generator: torch.Generator) -> Weights:
        mean: Tensor = self.laplace.mean
        return [(self.laplace.sample(count, generator_on(mean.device, generator)) - mean)[..., None]]


class OneOutput(nn.Module):
    """The output of a network with one output (n x 1), for a regression."""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        """Features (n x e) -> n x 1."""
        output: Tensor = self.network(x)
        return output


class TwoLogits(OneOutput):
    """The logits [0, f] (n x 2) of a network with the one logit f, for a softmax over two classes."""

    def forward(self, x: Tensor) -> Tensor:
        """Features (n x e) -> n x 2."""
        f = super().forward(x)
        return torch.cat([torch.zeros_like(f), f], dim=-1)


class WeightedGGN(CurvatureInterface):
    """The generalised Gauss-Newton matrix of a network, with each row's term multiplied by the row's weight.

    The weights are passed in place of the labels, on which the matrix does not depend. No loss is computed.
    """

    def diag(self, x: Any, y: Tensor, **_: Any) -> tuple[Tensor, Tensor]:
        """The diagonal of J^T Lambda J for rows x (n x e) with weights y (n)."""
        network: nn.Module = self.model.network  # type: ignore[assignment]  # that of OneOutput
        names = [name for name, p in network.named_parameters() if p.requires_grad]
        output, jacobian = row_jacobians(network, names, x)
        return torch.zeros(()), self._curvature(output, y) @ jacobian.detach().square()

    def kron(self, x: Any, y: Tensor, N: int, **_: Any) -> tuple[Tensor, Kron]:
        """For each `nn.Linear` A, the weighted mean of a a^T, and G, the sum of Lambda g g^T; G alone for the bias.

        If a layer is applied to several vectors of one row, each counts as a row (KFAC-expand).
        """
        layers = linear_layers(self.model)
        output, factors = linear_factors(self.model, layers, x)
        weight = y.flatten()
        curvature = self._curvature(output, weight)
        blocks: list[Any] = []
        for layer, (a, g, row) in zip(layers, factors, strict=True):
            share = weight[row] / weight[row].sum().clamp(min=TINY)
            gradients = g.mT @ (curvature[row, None] * g)
            blocks.append([gradients, a.mT @ (share[:, None] * a)])
            blocks.extend([[gradients]] if layer.bias is not None else [])
        return torch.zeros(()), Kron(blocks)

    def _curvature(self, output: Tensor, weight: Tensor) -> Tensor:
        """The diagonal of Lambda for outputs (n) of rows with weights (n, or n x 1)."""
        weight = weight.flatten()
        return (weight * bernoulli_variance(output)).detach() if self.likelihood == "classification" else weight


@torch.enable_grad()
def linear_factors(
    model: nn.Module, layers: list[nn.Linear], x: Tensor
) -> tuple[Tensor, list[tuple[Tensor, Tensor, Tensor]]]:
    """The inputs of each layer, and the derivatives of the last output with respect to its outputs.

    Args:
        model: n x e -> n x 1, or n x 2.
        layers: of the model.
        x: features, n x e.

    Returns:
        The last output (n), and for each layer a (t x i), g (t x o), and the row of each (t); t is n, or more if the
        layer is applied to several vectors of a row.
    """
    passed: list[tuple[nn.Module, Tensor, Tensor]] = []

    def remember(layer: nn.Module, entering: tuple[Tensor, ...], leaving: Tensor) -> None:
        passed.append((layer, entering[0], leaving))

    hooks = [layer.register_forward_hook(remember) for layer in layers]
    output = model(x)[:, -1]
    for hook in hooks:
        hook.remove()
    gradients = torch.autograd.grad(output.sum(), [leaving for _, _, leaving in passed])
    factors = []
    for layer in layers:
        own = [(a, g) for (one, a, _), g in zip(passed, gradients, strict=True) if one is layer]
        rows = [torch.arange(len(x), device=x.device).repeat_interleave(a[0].numel() // a.shape[-1]) for a, _ in own]
        a, g = (torch.cat([each.reshape(-1, each.shape[-1]) for each in side]) for side in zip(*own, strict=True))
        factors.append((a.detach(), g, torch.cat(rows)))
    return output.detach(), factors


def _all_at_once(x: Tensor, weight: Tensor) -> DataLoader[Any]:
    """One batch of all rows (weights n x 1), which draws no random numbers; a row of weight 0 if there are none."""
    if not len(x):
        x, weight = x.new_zeros(1, x.shape[1]), weight.new_zeros(1)
    rows = TensorDataset(x, weight[:, None])
    return DataLoader(rows, sampler=[slice(None)], batch_size=None, generator=torch.Generator())
