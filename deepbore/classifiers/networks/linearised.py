"""Networks linearised in their weights, and the posterior of their output from a Gaussian posterior of the weights.

The derivative of the output with respect to the weights of a layer is the outer product of two short vectors, a(x) and
g(x) (see `StackedMLP.jacobian_factors`), so that inner products of whole Jacobians cost no more than a forward pass. A
whole Jacobian, n x P, is the same with a = J and g = 1. The posteriors of the weights are in `laplace_torch`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from deepbore.classifiers.link import Link
from deepbore.classifiers.networks.stacked import StackedMLP, with_one
from deepbore.classifiers.posterior import GaussianPosterior
from deepbore.errors import SettingError

Factors = Sequence[tuple[Tensor, Tensor]]  # for each layer a (n x i) and g (n x o)
Weights = list[Tensor]  # for each layer i x o, after any leading dimensions
LEAST_VARIANCE = 1e-12
BY_WEIGHTS = ("kron", "diag")  # structures that look at single weights, not at directions among them


# --- the posterior of the outputs ------------------------------------------------------------------------------------


class WeightPosterior(ABC):
    """The Gaussian posterior of the weights' deviation from the trained ones, N(m, Sigma).

    Attributes:
        log_determinant: log det(Sigma^-1 / delta), with the prior N(0, I / delta).
        effective: number of parameters that the data determine (MacKay, 1992): tr(I - delta Sigma).
    """

    log_determinant: Tensor
    effective: Tensor

    def shift(self, factors: Factors) -> Tensor | None:
        """J(x) m for n points (n), with gradients in their factors; None if m is 0."""
        return None

    @abstractmethod
    def variance(self, factors: Factors) -> Tensor:
        """J(x) Sigma J(x)^T for n points (n), with gradients in their factors."""

    @abstractmethod
    def covariance(self, factors: Factors) -> Tensor:
        """J(x) Sigma J(x')^T for all pairs of n points (n x n), with gradients in their factors."""

    @abstractmethod
    def sample(self, count: int, generator: torch.Generator) -> Weights:
        """Samples of the deviation, for each layer count x i x o."""


class LinearisedPosterior(GaussianPosterior):
    """The output of a linearised network, f(x) ~ N(f(x; theta) + J(x) m, J(x) Sigma J(x)^T), in closed form.

    Its members are samples of the weights: the same functions for all points and for a whole iteration. Standard
    deviations and members are computed on first use.

    Args:
        output: of the network, n.
        factors: of its Jacobian.
        weights: the posterior of the weights.
        samples: of the weights' deviation.
        link: the meaning of the scores.
    """

    def __init__(self, output: Tensor, factors: Factors, weights: WeightPosterior, samples: Weights, link: Link):
        self.factors = in_double_precision(factors)
        self.output, self.weights, self.samples = output, weights, samples
        shift = weights.shift(self.factors)
        super().__init__(output if shift is None else output + shift, None, link)  # a shift needs double precision

    @cached_property
    def std(self) -> Tensor:
        return self.weights.variance(self.factors).clamp(min=LEAST_VARIANCE).sqrt().to(self.mean)

    @cached_property
    def members(self) -> Tensor:  # type: ignore[override]  # computed once
        return self._outputs(self.samples)

    def covariance(self) -> Tensor:
        return self.weights.covariance(self.factors).to(self.mean)

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Exact samples, by new samples of the weights; the cost is linear in n."""
        return self._outputs(self.weights.sample(count, generator))

    def _outputs(self, deviations: Weights) -> Tensor:
        return self.output + linear_outputs(self.factors, deviations).to(self.mean)


# --- Jacobians as factors --------------------------------------------------------------------------------------------


def in_double_precision(factors: Factors) -> Factors:
    """The same factors as doubles."""
    return [(a.double(), g.double()) for a, g in factors]


def inner_products(left: Factors, right: Factors) -> Tensor:
    """J(x) J(x')^T for all pairs of points (n x m): the sum over layers of (a(x) . a(x')) (g(x) . g(x'))."""
    return torch.stack([(a @ b.mT) * (g @ h.mT) for (a, g), (b, h) in zip(left, right, strict=True)]).sum(0)


def bernoulli_variance(logit: Tensor) -> Tensor:
    """pi (1 - pi), the curvature of the cross-entropy in the logit."""
    return logit.sigmoid() * (-logit).sigmoid()


def flat_jacobian(factors: Factors) -> Tensor:
    """The derivative of the output with respect to all P weights, n x P."""
    return torch.cat([(a[:, :, None] * g[:, None, :]).flatten(1) for a, g in factors], dim=-1)


def in_order_of_linear(factors: Factors) -> Tensor:
    """The same Jacobian, n x P, in the order of the parameters of `nn.Linear` layers: weights (o x i), then biases."""
    parts = [((g[:, :, None] * a[:, None, :-1]).flatten(1), g) for a, g in factors]
    return torch.cat([part for pair in parts for part in pair], dim=-1)


def linear_outputs(factors: Factors, weights: Weights) -> Tensor:
    """J(x) theta for several theta: factors of n points, weights s x i x o -> s x n."""
    return torch.stack([((a @ w) * g).sum(-1) for (a, g), w in zip(factors, weights, strict=True)]).sum(0)


# --- linearising a network -------------------------------------------------------------------------------------------


class Linearised(ABC):
    """A network of one output, linearised in the weights that have a posterior."""

    @abstractmethod
    def __call__(self, x: Tensor) -> tuple[Tensor, Factors]:
        """The output (n) at features x (n x e), and the factors of its Jacobian, both with gradients in x."""

    @abstractmethod
    def weights(self) -> list[Tensor]:
        """The weights that have a posterior."""

    @abstractmethod
    def module(self) -> tuple[nn.Module, list[str]]:
        """The network as a module, n x e -> n x 1, and the names of its parameters that have a posterior."""

    def squared_norm(self) -> Tensor:
        """|theta|^2 of these weights."""
        return torch.stack([p.detach().square().sum() for p in self.weights()]).sum()


class BuiltInNetwork(Linearised):
    """A built-in network, layer by layer.

    Args:
        net: of one member.
        structure: "full", "kron", "diag" or "last_layer".
    """

    def __init__(self, net: StackedMLP, structure: str):
        self.net, self.structure = net, structure

    def __call__(self, x: Tensor) -> tuple[Tensor, Factors]:
        output, factors = self.net.jacobian_factors(x)
        if self.structure in BY_WEIGHTS:
            return output, [(in_order_of_linear(factors), torch.ones_like(output)[:, None])]
        return output, factors[-1:] if self.structure == "last_layer" else factors

    def weights(self) -> list[Tensor]:
        return [*(self.net.layers[-1] if self.structure == "last_layer" else self.net).parameters()]

    def module(self) -> tuple[nn.Module, list[str]]:
        made = of_linear_layers(self.net)
        return made, [name for name, _ in made.named_parameters()]


class Elementwise(nn.Module):
    """A function of tensors as a module.

    Args:
        function: of a tensor of any shape, with the same shape.
    """

    def __init__(self, function: Callable[[Tensor], Tensor]):
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        """The function of x."""
        return self.function(x)


@torch.no_grad()
def of_linear_layers(net: StackedMLP) -> nn.Sequential:
    """A copy of a network of one member, n x e -> n x 1, made of `nn.Linear`, as laplace-torch needs it."""
    parts: list[nn.Module] = []
    for stacked in net.layers:
        weight, bias = stacked.weight[0].mT, stacked.bias[0, 0]  # type: ignore[index]  # torch: Module
        linear = nn.Linear(weight.shape[1], weight.shape[0]).to(weight)
        linear.weight.copy_(weight)
        linear.bias.copy_(bias)
        parts += [linear, Elementwise(net.activation)]
    return nn.Sequential(*parts[:-1])


class OwnNetwork(Linearised):
    """A user's own network: whole Jacobians by `torch.func`, or the factors of its last layer.

    Args:
        network: n x e -> n x 1.
        structure: "full", "kron", "diag" or "last_layer".
        features: e.

    Raises:
        SettingError: if the network does not allow this structure, or its Jacobian has no gradient.
    """

    def __init__(self, network: nn.Module, structure: str, features: int):
        self.network, self.structure = network.eval(), structure
        self.names = parameters_behind(network, structure)
        self._check(features)

    def __call__(self, x: Tensor) -> tuple[Tensor, Factors]:
        network = self.network.eval()
        if self.structure == "last_layer":
            return last_layer_factors(network, x)
        output, jacobian = row_jacobians(network, self.names, x)
        return output, [(jacobian, torch.ones_like(output)[:, None])]

    def weights(self) -> list[Tensor]:
        return [self.network.get_parameter(name) for name in self.names]

    def module(self) -> tuple[nn.Module, list[str]]:
        return self.network, self.names

    def _check(self, features: int) -> None:
        x = torch.zeros(2, features, requires_grad=True)
        try:
            output, ((a, _),) = self(x)
            torch.autograd.grad(output.sum() + a.sum(), x)
        except RuntimeError as error:
            raise SettingError(
                f'structure="{self.structure}" needs the derivative of your network with respect to its weights, but '
                f"it can't be had for several rows at once (torch.func.vmap), or has no gradient: {error}. Try "
                '"last_layer".'
            ) from error


def parameters_behind(network: nn.Module, structure: str) -> list[str]:
    """Names of the parameters that have a posterior: those of the last `nn.Linear`, or all that are trained.

    Args:
        network: n x e -> n x 1.
        structure: "full", "kron", "diag" or "last_layer".

    Raises:
        SettingError: if the parameters do not allow this structure.
    """
    if structure == "last_layer":
        last = {id(p) for p in last_linear(network).parameters()}
        return [name for name, p in network.named_parameters() if id(p) in last]
    trained = {name: p for name, p in network.named_parameters() if p.requires_grad}
    linear = [id(p) for layer in linear_layers(network) for p in layer.parameters()]
    if structure == "kron" and linear != [id(p) for p in trained.values()]:
        raise SettingError(
            'structure="kron" needs a network whose weights are all of nn.Linear layers, and all trained, but yours '
            'has others. Use "last_layer", "diag" or "full".'
        )
    return list(trained)


def row_jacobians(network: nn.Module, names: list[str], x: Tensor) -> tuple[Tensor, Tensor]:
    """The network's output (n), and its derivative in the named parameters (n x P), both with gradients in x.

    Every row gets its own copy of the parameters, so that one backward pass gives all derivatives: as fast as
    `torch.func.vmap(grad(...))`, through which `nn.LayerNorm` has wrong gradients in x.
    """
    parameters = dict(network.named_parameters())

    def output_of(chosen: dict[str, Tensor], row: Tensor) -> Tensor:
        output: Tensor = functional_call(network, chosen, (row[None],))
        return output.squeeze()

    differentiable = torch.is_grad_enabled()
    with torch.enable_grad():
        chosen = {name: _for_each_row(parameters[name], len(x)) for name in names}
        output = vmap(output_of)(chosen, x)
        jacobian = torch.autograd.grad(output.sum(), list(chosen.values()), create_graph=differentiable)
    flat = torch.cat([each.flatten(1) for each in jacobian], dim=-1)
    return (output, flat) if differentiable else (output.detach(), flat)


def _for_each_row(parameter: Tensor, n: int) -> Tensor:
    return parameter.detach().expand(n, *parameter.shape).requires_grad_(True)


def last_layer_factors(network: nn.Module, x: Tensor) -> tuple[Tensor, Factors]:
    """A network's output (n), and the factors of its derivative in its last `nn.Linear`.

    Raises:
        SettingError: if the output is not that layer's.
    """
    layer = last_linear(network)
    entering: list[Tensor] = []
    hook = layer.register_forward_pre_hook(lambda _, inputs: entering.append(inputs[0]))
    output = network(x)
    hook.remove()
    if not entering or not torch.allclose(layer(entering[-1]), output):
        raise SettingError("the last nn.Linear of the network must give its output, but something comes after it.")
    a = entering[-1] if layer.bias is None else with_one(entering[-1])
    return output.squeeze(-1), [(a, torch.ones_like(output))]


def last_linear(network: nn.Module) -> nn.Linear:
    """The last `nn.Linear`, in the order of `network.modules()`.

    Raises:
        SettingError: if there is none.
    """
    layers = linear_layers(network)
    if not layers:
        raise SettingError('structure="last_layer" needs a network with an nn.Linear, but yours has none.')
    return layers[-1]


def linear_layers(network: nn.Module) -> list[nn.Linear]:
    """All `nn.Linear`, in the order of `network.modules()`."""
    return [layer for layer in network.modules() if isinstance(layer, nn.Linear)]
