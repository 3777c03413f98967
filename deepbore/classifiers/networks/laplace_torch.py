"""Posteriors over the weights of a user's own network, N(theta_MAP, Sigma_GGN), by laplace-torch.

laplace-torch provides the posterior: precision, decompositions, determinants, samples. This file adds three things:

| laplace-torch | here |
|---|---|
| likelihoods of two logits or more | `TwoLogits`: the softmax of [0, f] is the sigmoid of f |
| no weights of rows | `WeightedGGN` multiplies the curvature of each row |
| Jacobians quadratic in the batch, or without gradients in x | `row_jacobians`: linear, with gradients |

Importing this file imports laplace-torch.

References:
    Daxberger et al., Laplace redux: effortless Bayesian deep learning, 2021.
"""

from copy import deepcopy
from typing import Any

import torch
from laplace import KronLaplace, Laplace
from laplace.curvature import CurvatureInterface
from laplace.utils import Kron
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from deepbore.classifiers.networks.linearised import (
    Factors,
    WeightPosterior,
    Weights,
    flat_jacobian,
    linear_layers,
    row_jacobians,
)
from deepbore.compute.devices import generator_on

TINY = 1e-12


class LaplaceTorchPosterior(WeightPosterior):
    """The posterior of some weights of a network, at their present values.

    Args:
        network: n x e -> n x 1.
        names: of the parameters that have a posterior, as `named_parameters` names them.
        structure: of the precision: "kron" or "diag"; else the full one.
        x: features of the training rows, n x e; without rows the posterior is the prior.
        weight: of the rows, n.
        delta: prior precision, a scalar.

    Attributes:
        laplace: laplace-torch's own object, of a copy of the network with the logits [0, f].
    """

    laplace: Any

    def __init__(self, network: nn.Module, names: list[str], structure: str, x: Tensor, weight: Tensor, delta: Tensor):
        model = TwoLogits(deepcopy(network)).double()
        for name, parameter in model.network.named_parameters():
            parameter.requires_grad_(name in names)
        hessian = structure if structure in ("kron", "diag") else "full"
        delta = delta.double()
        self.laplace = Laplace(model, "classification", "all", hessian, backend=WeightedGGN, prior_precision=delta)
        self.laplace.fit(_all_at_once(x.double(), weight.double()))
        self.log_determinant: Tensor = self.laplace.log_det_ratio
        self.effective = self.laplace.n_params - delta * self._trace()

    def _trace(self) -> Tensor:
        """tr(Sigma)."""
        if isinstance(self.laplace, KronLaplace):
            return self.laplace.posterior_precision.diag(exponent=-1).sum()
        trace: Tensor = self.laplace.posterior_scale.square().sum()
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
            return self.laplace.posterior_precision.bmm(jacobian[:, None], exponent=-0.5)[:, 0]
        scale: Tensor = self.laplace.posterior_scale
        return jacobian @ scale if scale.ndim == 2 else jacobian * scale

    def sample(self, count: int, generator: torch.Generator) -> Weights:
        mean: Tensor = self.laplace.mean
        return [(self.laplace.sample(count, generator_on(mean.device, generator)) - mean)[..., None]]


class TwoLogits(nn.Module):
    """The logits [0, f] (n x 2) of a network with the one logit f, for a softmax over two classes."""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        """Features (n x e) -> n x 2."""
        f = self.network(x)
        return torch.cat([torch.zeros_like(f), f], dim=-1)


class WeightedGGN(CurvatureInterface):
    """The generalised Gauss-Newton matrix of `TwoLogits`, with each row's term multiplied by the row's weight.

    The weights are passed in place of the labels, on which the matrix does not depend. No loss is computed.
    """

    def full(self, x: Any, y: Tensor, **_: Any) -> tuple[Tensor, Tensor]:
        """J^T Lambda J for rows x (n x e) with weights y (n)."""
        jacobian, curvature = self._rows(x, y)
        return torch.zeros(()), jacobian.mT @ (curvature[:, None] * jacobian)

    def diag(self, x: Any, y: Tensor, **_: Any) -> tuple[Tensor, Tensor]:
        """The diagonal of `full`."""
        jacobian, curvature = self._rows(x, y)
        return torch.zeros(()), curvature @ jacobian.square()

    def _rows(self, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        network: nn.Module = self.model.network  # type: ignore[assignment]  # that of TwoLogits
        names = [name for name, p in network.named_parameters() if p.requires_grad]
        logit, jacobian = row_jacobians(network, names, x)
        return jacobian.detach(), (weight * bernoulli_variance(logit)).detach()

    def kron(self, x: Any, y: Tensor, N: int, **_: Any) -> tuple[Tensor, Kron]:
        """For each `nn.Linear` A, the weighted mean of a a^T, and G, the sum of Lambda g g^T; G alone for the bias.

        If a layer is applied to several vectors of one row, each counts as a row (KFAC-expand).
        """
        layers = linear_layers(self.model)
        logit, factors = linear_factors(self.model, layers, x)
        curvature = y * bernoulli_variance(logit)
        blocks: list[Any] = []
        for layer, (a, g, row) in zip(layers, factors, strict=True):
            share = y[row] / y[row].sum().clamp(min=TINY)
            gradients = g.mT @ (curvature[row, None] * g)
            blocks.append([gradients, a.mT @ (share[:, None] * a)])
            blocks.extend([[gradients]] if layer.bias is not None else [])
        return torch.zeros(()), Kron(blocks)


@torch.enable_grad()
def linear_factors(
    model: nn.Module, layers: list[nn.Linear], x: Tensor
) -> tuple[Tensor, list[tuple[Tensor, Tensor, Tensor]]]:
    """The inputs of each layer, and the derivatives of the second logit with respect to its outputs.

    Args:
        model: n x e -> n x 2.
        layers: of the model.
        x: features, n x e.

    Returns:
        The second logit (n), and for each layer a (t x i), g (t x o), and the row of each (t); t is n, or more if the
        layer is applied to several vectors of a row.
    """
    passed: list[tuple[nn.Module, Tensor, Tensor]] = []

    def remember(layer: nn.Module, entering: tuple[Tensor, ...], leaving: Tensor) -> None:
        passed.append((layer, entering[0], leaving))

    hooks = [layer.register_forward_hook(remember) for layer in layers]
    logit = model(x)[:, 1]
    for hook in hooks:
        hook.remove()
    gradients = torch.autograd.grad(logit.sum(), [leaving for _, _, leaving in passed])
    factors = []
    for layer in layers:
        own = [(a, g) for (one, a, _), g in zip(passed, gradients, strict=True) if one is layer]
        rows = [torch.arange(len(x), device=x.device).repeat_interleave(a[0].numel() // a.shape[-1]) for a, _ in own]
        a, g = (torch.cat([each.reshape(-1, each.shape[-1]) for each in side]) for side in zip(*own, strict=True))
        factors.append((a.detach(), g, torch.cat(rows)))
    return logit.detach(), factors


def bernoulli_variance(logit: Tensor) -> Tensor:
    """pi (1 - pi), the curvature of the cross-entropy in the logit."""
    return logit.sigmoid() * (-logit).sigmoid()


def _all_at_once(x: Tensor, weight: Tensor) -> DataLoader[Any]:
    """One batch of all rows, which draws no random numbers; a row of weight 0 if there are none."""
    if not len(x):
        x, weight = x.new_zeros(1, x.shape[1]), weight.new_zeros(1)
    rows = TensorDataset(x, weight)
    return DataLoader(rows, sampler=[slice(None)], batch_size=None, generator=torch.Generator())
