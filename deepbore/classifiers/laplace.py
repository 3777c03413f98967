"""`LaplaceGGN`: a network with a Gaussian posterior over its weights, the BOGGN method."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from deepbore.checks import above, one_of, whole
from deepbore.classifiers.ensemble import MLPClassifier
from deepbore.classifiers.ggn import (
    Diagonal,
    Factors,
    FunctionSpace,
    GGNPosterior,
    Kronecker,
    LinearisedPosterior,
    Weights,
    WeightSpace,
)
from deepbore.classifiers.network import CORESET, NetworkFactory, Training
from deepbore.classifiers.stacked import StackedMLP, with_one
from deepbore.errors import SettingError
from deepbore.labels import LabelledBatch
from deepbore.space import SearchSpace

STRUCTURES = ("full", "kron", "diag", "last_layer")
DELTA_RANGE = (1e-3, 1e4)
FLATTEST = 1e-6  # the least curvature: where the network is certain, pi (1 - pi) is 0 in floating point


class LaplaceGGN(MLPClassifier):
    """MAP training, then the Laplace approximation with the generalised Gauss-Newton matrix (BOGGN, Algorithm 1).

        theta_MAP = argmin  sum_i w_i BCE(z_i, f(x_i; theta)) + delta / 2 |theta|^2
        f(x) ~ N(f(x; theta_MAP), J(x) Sigma_GGN J(x)^T)                          (the linearised network, section 7.5)

    Eq. 3.4 of the paper has the sign of the evidence and the place of the labels wrong; the objective here is the
    standard Bernoulli one, mean over the rows, with the isotropic prior N(0, I / delta) as weight decay. Mean,
    deviation, covariance and joint samples of the posterior are those of the linearised network's logit in closed form;
    its members are samples of the weights, the same functions for the whole of an iteration (Thompson samples).

    laplace-torch has no likelihood of one logit, no weights, and no fast Jacobians with gradients in x, so fit,
    structures and evidence are our own, and tested against it.

    Args:
        hidden: widths of the hidden layers.
        activation: "elu", "relu", "tanh", or "auto" (ELU for d <= 10, else ReLU).
        network: a factory (number of features, 1) -> module whose last `nn.Linear` gives the output, in place of
            `hidden` and `activation`; for `structure="last_layer"`.
        structure: of the posterior's precision: "full", "kron", "diag" (over all layers), or "last_layer" (full, over
            the last one).
        prior_precision: delta > 0, fixed; None to choose it by the evidence, warm from one iteration to the next.
        samples: how many members the posterior has.
        rows: how many observations the posterior rests on at most; the network learns from up to 1024.
        training: steps, learning rate, warm start, ...; the weight decay is the prior's.

    Raises:
        SettingError: for an unknown structure, or a number outside its range.

    References:
        Hassen & Rish, Bayesian optimization by Gauss-Newton networks (BOGGN), 2021.
    """

    def __init__(
        self,
        hidden: tuple[int, ...] = (32, 32),
        activation: str = "auto",
        network: NetworkFactory | None = None,
        structure: str = "full",
        prior_precision: float | None = None,
        samples: int = 16,
        rows: int = 256,
        training: Training | None = None,
    ):
        super().__init__(hidden, activation, network, training)
        one_of(STRUCTURES, structure=structure)
        if network is not None and structure != "last_layer":
            raise SettingError(f'your own network needs structure="last_layer", but got structure={structure!r}.')
        above(0, prior_precision=prior_precision)
        whole(1, samples=samples, rows=rows)
        self.capabilities = frozenset({"std", "members"})
        self.structure, self.prior_precision, self.samples, self.rows = structure, prior_precision, samples, rows
        self.register_buffer("delta", torch.tensor(prior_precision or 1.0, dtype=torch.float64))
        self._weights: tuple[GGNPosterior, Weights] | None = None  # and samples of it

    delta: Tensor

    def build(self, space: SearchSpace, outputs: int) -> None:
        super().build(space, 1)  # of several columns it learns the mean
        self._linearised(torch.zeros(2, self.features.size))  # refuses a network without a last layer
        self._condition_on(torch.zeros(0, self.features.size), torch.zeros(0), torch.tensor(0))

    # --- learning ----------------------------------------------------------------------------------------------------

    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        batch = replace(batch, z=batch.z.mean(-1, keepdim=True))
        decay = float(self.delta / batch.weight.sum().clamp(max=CORESET))  # the loss is a mean over the rows
        self.configure_optimizers().param_groups[0]["weight_decay"] = decay
        return {**super().fit(batch), "prior_precision": float(self.delta)}

    @torch.no_grad()
    def after_training(self, x: Tensor, batch: LabelledBatch) -> None:
        """Chooses delta by the evidence; the posterior itself is made when it is first asked for."""
        seed = torch.randint(2**31, (), generator=self.generator)
        rows = replace(batch, points=x).coreset(self.rows, self.generator)
        self._condition_on(rows.points, rows.weight, seed)
        if self.prior_precision is None:
            self.delta.copy_(self._more_evident_delta())
            self._weights = None

    def _condition_on(self, x: Tensor, weight: Tensor, seed: Tensor) -> None:
        self._rows = {"x": x, "weight": weight, "seed": seed}
        self._weights = None

    def _more_evident_delta(self) -> Tensor:
        """delta = effective parameters / |theta|^2 (MacKay, 1992), halfway there on the logarithm's scale."""
        target = self.weights.effective / self._squared_norm().clamp(min=1e-12)
        return (self.delta * target.to(self.delta)).sqrt().clamp(*DELTA_RANGE)

    def _squared_norm(self) -> Tensor:
        """|theta|^2 of the weights that have a posterior."""
        weights = [*self.net.parameters()]
        if self.structure == "last_layer":
            weights = weights[-2:]  # the weight and the bias of the last layer
        return torch.stack([p.detach().square().sum() for p in weights]).sum()

    @torch.no_grad()
    def log_evidence(self, batch: LabelledBatch) -> Tensor:
        """Laplace's approximation to log p(z | delta) at the current weights (BOGGN eq. 3.3), a scalar.

        Args:
            batch: labels z of the rows behind the posterior.
        """
        z = batch.z.mean(-1, keepdim=True)
        likelihood = -len(batch) * self.loss(self.net(self.encode(batch.points)), z, batch.weight)
        return likelihood - self.delta * self._squared_norm() / 2 - self.weights.log_determinant / 2

    # --- the posterior -----------------------------------------------------------------------------------------------

    @property
    def weights(self) -> GGNPosterior:
        """The posterior of the weights' deviation from the MAP estimate."""
        return self._weights_and_samples()[0]

    @torch.no_grad()
    def _weights_and_samples(self) -> tuple[GGNPosterior, Weights]:
        if self._weights is None:
            output, factors = self._linearised(self._rows["x"].to(self.delta.device))
            p = output.sigmoid()
            curvature = (self._rows["weight"].to(p) * p * (1 - p)).clamp(min=FLATTEST)
            posterior = self._structure(factors)(factors, curvature, float(self.delta))
            generator = torch.Generator().manual_seed(int(self._rows["seed"]))
            self._weights = posterior, posterior.sample(self.samples, generator)
        return self._weights

    def _structure(self, factors: Factors) -> type[GGNPosterior]:
        if self.structure in ("kron", "diag"):
            return {"kron": Kronecker, "diag": Diagonal}[self.structure]
        parameters = sum(a.shape[1] * g.shape[1] for a, g in factors)
        return FunctionSpace if len(factors[0][0]) < parameters else WeightSpace

    def _linearised(self, x: Tensor) -> tuple[Tensor, Factors]:
        """The MAP network's logit (n) for features x (n x e), and the factors of its Jacobian."""
        x = x.to(next(self.net.parameters()).dtype)
        if not isinstance(self.net, StackedMLP):
            return last_layer_factors(self.net.members[0], x)
        output, factors = self.net.jacobian_factors(x)
        return output, factors[-1:] if self.structure == "last_layer" else factors

    # --- predicting --------------------------------------------------------------------------------------------------

    def posterior(self, points: Tensor) -> LinearisedPosterior:
        self.check_points(points)
        mean, factors = self._linearised(self.encode(points))
        return LinearisedPosterior(mean, factors, *self._weights_and_samples(), self.link)

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def get_extra_state(self) -> dict[str, Tensor]:
        """The rows behind the posterior, whose number changes, and the seed of its samples."""
        return self._rows

    def set_extra_state(self, state: dict[str, Tensor]) -> None:
        """Takes up the rows of a checkpoint."""
        self._condition_on(**state)


def last_layer_factors(network: nn.Module, x: Tensor) -> tuple[Tensor, Factors]:
    """A network's output (n), and the factors of its derivative in its last `nn.Linear`.

    Raises:
        SettingError: if the output is not that layer's.
    """
    layers = [layer for layer in network.modules() if isinstance(layer, nn.Linear)]
    entering: list[Tensor] = []
    hooks = [layer.register_forward_pre_hook(lambda _, inputs: entering.append(inputs[0])) for layer in layers[-1:]]
    output = network(x)
    for hook in hooks:
        hook.remove()
    if not entering or not torch.allclose(layers[-1](entering[-1]), output):
        raise SettingError("the last nn.Linear of the network must give its output, but something comes after it.")
    return output.squeeze(-1), [(with_one(entering[-1]), torch.ones_like(output))]
