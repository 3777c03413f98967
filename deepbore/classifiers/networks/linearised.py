"""Networks linearised in their weights, and Gaussian posteriors of these weights, N(theta_MAP, Sigma_GGN).

The derivative of the output with respect to the weights of a layer is the outer product of two short vectors, a(x) and
g(x) (see `StackedMLP.jacobian_factors`), so that inner products of whole Jacobians cost no more than a forward pass. A
whole Jacobian, n x P, is the same with a = J and g = 1.

The prior is N(0, I / delta). Lambda is diagonal: the weight of each row times pi (1 - pi), as in the generalised
Gauss-Newton (GGN) matrix of the Bernoulli likelihood. A row of weight 2 counts as two rows, in every structure.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
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
FLATTEST = 1e-6  # least curvature: where the network is certain, pi (1 - pi) is 0 in floating point


# --- the posterior of the outputs ------------------------------------------------------------------------------------


class WeightPosterior(ABC):
    """The Gaussian posterior of the weights' deviation from the MAP estimate, N(0, Sigma).

    Attributes:
        log_determinant: log det(Sigma^-1 / delta), with the prior N(0, I / delta).
        effective: number of parameters that the data determine (MacKay, 1992): tr(I - delta Sigma).
    """

    log_determinant: Tensor
    effective: Tensor

    @abstractmethod
    def variance(self, factors: Factors) -> Tensor:
        """J(x) Sigma J(x)^T for n points (n), with gradients in their factors."""

    @abstractmethod
    def covariance(self, factors: Factors) -> Tensor:
        """J(x) Sigma J(x')^T for all pairs of n points (n x n), with gradients in their factors."""

    @abstractmethod
    def sample(self, count: int, generator: torch.Generator) -> Weights:
        """Deviations from the MAP estimate, for each layer count x i x o."""


class LinearisedPosterior(GaussianPosterior):
    """The logit of a linearised network, f(x) ~ N(f(x; theta_MAP), J(x) Sigma J(x)^T), in closed form.

    Its members are samples of the weights: the same functions for all points and for a whole iteration. Standard
    deviations and members are computed on first use.

    Args:
        mean: the network's logit, n.
        factors: of its Jacobian.
        weights: the posterior of the weights.
        samples: of the weights' deviation.
        link: the meaning of the scores.
    """

    def __init__(self, mean: Tensor, factors: Factors, weights: WeightPosterior, samples: Weights, link: Link):
        super().__init__(mean, None, link)
        self.factors = in_double_precision(factors)
        self.weights, self.samples = weights, samples

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
        return self.mean + linear_outputs(self.factors, deviations).to(self.mean)


# --- Jacobians as factors --------------------------------------------------------------------------------------------


def in_double_precision(factors: Factors) -> Factors:
    """The same factors as doubles."""
    return [(a.double(), g.double()) for a, g in factors]


def inner_products(left: Factors, right: Factors) -> Tensor:
    """J(x) J(x')^T for all pairs of points (n x m): the sum over layers of (a(x) . a(x')) (g(x) . g(x'))."""
    return torch.stack([(a @ b.mT) * (g @ h.mT) for (a, g), (b, h) in zip(left, right, strict=True)]).sum(0)


def flat_jacobian(factors: Factors) -> Tensor:
    """The derivative of the output with respect to all P weights, n x P."""
    return torch.cat([(a[:, :, None] * g[:, None, :]).flatten(1) for a, g in factors], dim=-1)


def linear_outputs(factors: Factors, weights: Weights) -> Tensor:
    """J(x) theta for several theta: factors of n points, weights s x i x o -> s x n."""
    return torch.stack([((a @ w) * g).sum(-1) for (a, g), w in zip(factors, weights, strict=True)]).sum(0)


# --- the posterior of the weights, from factors ----------------------------------------------------------------------


class GGNPosterior(WeightPosterior):
    """Sigma = (J^T Lambda J + delta I)^-1, or an approximation of it in one of several structures.

    Args:
        factors: of the n training rows.
        logit: the network's output for them, n.
        weight: of the rows, n.
        delta: prior precision, a scalar.
    """

    def __init__(self, factors: Factors, logit: Tensor, weight: Tensor, delta: Tensor):
        self.factors = in_double_precision(factors)
        self.weight, self.delta, p = weight.double(), delta.double(), logit.double().sigmoid()
        self.curvature = (self.weight * p * (1 - p)).clamp(min=FLATTEST)  # the diagonal of Lambda
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Computes the decompositions that predictions use."""

    def normal(self, count: int, generator: torch.Generator) -> Weights:
        """Standard normal numbers, for each layer count x i x o."""
        return [self.randn(generator, count, a.shape[1], g.shape[1]) for a, g in self.factors]

    def randn(self, generator: torch.Generator, *shape: int) -> Tensor:
        """Standard normal numbers, drawn on the generator's device."""
        drawn = torch.randn(shape, generator=generator, dtype=torch.float64, device=generator.device)
        return drawn.to(self.curvature.device)


class FunctionSpace(GGNPosterior):
    """The full Sigma through the n x n matrix of inner products, for n < P (BOGGN section 7.5)."""

    def prepare(self) -> None:
        self.root = self.curvature.sqrt()
        kernel = inner_products(self.factors, self.factors)
        scaled = self.root[:, None] * kernel * self.root / self.delta
        identity = torch.eye(len(scaled)).to(scaled)
        self.cholesky = torch.linalg.cholesky(identity + scaled)
        self.inverse = torch.linalg.solve_triangular(self.cholesky, identity, upper=False)
        self.log_determinant = 2 * self.cholesky.diagonal().log().sum()
        self.effective = len(scaled) - self.inverse.square().sum()
        self.whitening = (self.root / self.delta)[:, None] * self.inverse.mT

    def variance(self, factors: Factors) -> Tensor:
        prior = torch.stack([a.square().sum(-1) * g.square().sum(-1) for a, g in factors]).sum(0) / self.delta
        variance: Tensor = prior - self._explained(factors).square().sum(-1)
        return variance

    def covariance(self, factors: Factors) -> Tensor:
        explained = self._explained(factors)
        covariance: Tensor = inner_products(factors, factors) / self.delta - explained @ explained.mT
        return covariance

    def _explained(self, factors: Factors) -> Tensor:
        """The root of the variance that the data explain, n x rows."""
        explained: Tensor = inner_products(factors, self.factors) @ self.whitening
        return explained

    def sample(self, count: int, generator: torch.Generator) -> Weights:
        """Matheron's rule: a draw from the prior, corrected by its errors on the data."""
        prior = [draw / self.delta**0.5 for draw in self.normal(count, generator)]
        noise = self.randn(generator, count, len(self.root))
        errors = self.root * linear_outputs(self.factors, prior) + noise
        correction = (errors @ self.inverse.mT @ self.inverse) * self.root / self.delta  # count x n
        return [
            draw - torch.einsum("sn,ni,no->sio", correction, a, g)
            for draw, (a, g) in zip(prior, self.factors, strict=True)
        ]


class WeightSpace(GGNPosterior):
    """The full Sigma as a P x P matrix, for P <= n."""

    def prepare(self) -> None:
        jacobian = flat_jacobian(self.factors)
        identity = torch.eye(jacobian.shape[1]).to(jacobian)
        precision = jacobian.mT @ (self.curvature[:, None] * jacobian) + self.delta * identity
        cholesky = torch.linalg.cholesky(precision)
        self.inverse = torch.linalg.solve_triangular(cholesky, identity, upper=False)
        self.log_determinant = 2 * cholesky.diagonal().div(self.delta**0.5).log().sum()
        self.effective = len(identity) - self.delta * self.inverse.square().sum()

    def variance(self, factors: Factors) -> Tensor:
        variance: Tensor = (flat_jacobian(factors) @ self.inverse.mT).square().sum(-1)
        return variance

    def covariance(self, factors: Factors) -> Tensor:
        roots: Tensor = flat_jacobian(factors) @ self.inverse.mT
        return roots @ roots.mT

    def sample(self, count: int, generator: torch.Generator) -> Weights:
        normal = self.normal(count, generator)
        flat = torch.cat([draw.flatten(1) for draw in normal], dim=-1) @ self.inverse
        parts = flat.split([draw[0].numel() for draw in normal], dim=-1)
        return [part.reshape(draw.shape) for part, draw in zip(parts, normal, strict=True)]


class Kronecker(GGNPosterior):
    """Layer by layer, A (x) G with A the mean of a a^T and G the sum of Lambda g g^T (KFAC; Martens & Grosse, 2015)."""

    def prepare(self) -> None:
        self.bases, self.precisions = [], []
        share = self.weight / self.weight.sum().clamp(min=FLATTEST)
        for a, g in self.factors:
            a_values, a_basis = torch.linalg.eigh(a.mT @ (share[:, None] * a))
            g_values, g_basis = torch.linalg.eigh(g.mT @ (self.curvature[:, None] * g))
            self.bases.append((a_basis, g_basis))
            self.precisions.append(a_values.clamp(min=0)[:, None] * g_values.clamp(min=0) + self.delta)
        self.log_determinant = sum_of([(p / self.delta).log() for p in self.precisions])
        self.effective = sum_of([1 - self.delta / p for p in self.precisions])

    def variance(self, factors: Factors) -> Tensor:
        return diagonal_variance(self._rotated(factors), self.precisions)

    def covariance(self, factors: Factors) -> Tensor:
        return diagonal_covariance(self._rotated(factors), self.precisions)

    def _rotated(self, factors: Factors) -> Factors:
        return [(a @ a_basis, g @ g_basis) for (a, g), (a_basis, g_basis) in zip(factors, self.bases, strict=True)]

    def sample(self, count: int, generator: torch.Generator) -> Weights:
        return [
            a_basis @ (draw * precision.rsqrt()) @ g_basis.mT
            for draw, (a_basis, g_basis), precision in zip(
                self.normal(count, generator), self.bases, self.precisions, strict=True
            )
        ]


class Diagonal(GGNPosterior):
    """Every weight independent of the others: the diagonal of the GGN."""

    def prepare(self) -> None:
        self.precisions = [a.square().mT @ (self.curvature[:, None] * g.square()) + self.delta for a, g in self.factors]
        self.log_determinant = sum_of([(p / self.delta).log() for p in self.precisions])
        self.effective = sum_of([1 - self.delta / p for p in self.precisions])

    def variance(self, factors: Factors) -> Tensor:
        return diagonal_variance(factors, self.precisions)

    def covariance(self, factors: Factors) -> Tensor:
        return diagonal_covariance(factors, self.precisions)

    def sample(self, count: int, generator: torch.Generator) -> Weights:
        normal = self.normal(count, generator)
        return [draw * precision.rsqrt() for draw, precision in zip(normal, self.precisions, strict=True)]


def ggn_posterior(structure: str, logit: Tensor, factors: Factors, weight: Tensor, delta: Tensor) -> GGNPosterior:
    """The posterior of the weights in a structure, by the cheaper of two equal forms where there are two.

    Args:
        structure: "kron" or "diag"; else the full Sigma.
        logit: of the n training rows, n.
        factors: of the training rows.
        weight: of the rows, n.
        delta: prior precision, a scalar.
    """
    parameters = sum(a.shape[1] * g.shape[1] for a, g in factors)
    if structure == "kron":
        return Kronecker(factors, logit, weight, delta)
    if structure == "diag":
        return Diagonal(factors, logit, weight, delta)
    full = FunctionSpace if len(logit) < parameters else WeightSpace
    return full(factors, logit, weight, delta)


def diagonal_variance(factors: Factors, precisions: Weights) -> Tensor:
    """The variance of the outputs (n) for independent weights with the given precisions (i x o per layer)."""
    variances = [
        ((a.square() @ precision.reciprocal()) * g.square()).sum(-1)
        for (a, g), precision in zip(factors, precisions, strict=True)
    ]
    return torch.stack(variances).sum(0)


def diagonal_covariance(factors: Factors, precisions: Weights) -> Tensor:
    """The covariance of the outputs (n x n) for independent weights with the given precisions (i x o per layer)."""
    roots = flat_jacobian(factors) * torch.cat([precision.rsqrt().flatten() for precision in precisions])
    return roots @ roots.mT


def sum_of(parts: Sequence[Tensor]) -> Tensor:
    """The sum of all entries of several tensors."""
    return torch.stack([part.sum() for part in parts]).sum()


# --- linearising a network -------------------------------------------------------------------------------------------


class Linearised(ABC):
    """A network of one output, linearised in the weights that have a posterior."""

    @abstractmethod
    def __call__(self, x: Tensor) -> tuple[Tensor, Factors]:
        """The output (n) at features x (n x e), and the factors of its Jacobian, both with gradients in x."""

    @abstractmethod
    def weights(self) -> list[Tensor]:
        """The weights that have a posterior."""

    def squared_norm(self) -> Tensor:
        """|theta|^2 of these weights."""
        return sum_of([p.detach().square() for p in self.weights()])


class BuiltInNetwork(Linearised):
    """A built-in network, layer by layer.

    Args:
        net: of one member.
        structure: "last_layer", or one over all layers.
    """

    def __init__(self, net: StackedMLP, structure: str):
        self.net, self.only_last = net, structure == "last_layer"

    def __call__(self, x: Tensor) -> tuple[Tensor, Factors]:
        output, factors = self.net.jacobian_factors(x)
        return output, factors[-1:] if self.only_last else factors

    def weights(self) -> list[Tensor]:
        return [*(self.net.layers[-1] if self.only_last else self.net).parameters()]


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
