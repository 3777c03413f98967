"""`LaplaceGGN`: a network with a Gaussian posterior over its weights, the BOGGN method."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from deepbore.classifiers.networks.linearised import (
    BuiltInNetwork,
    Factors,
    Linearised,
    LinearisedPosterior,
    OwnNetwork,
    WeightPosterior,
    Weights,
    ggn_posterior,
)
from deepbore.classifiers.networks.network import NetworkClassifier, NetworkFactory, Training
from deepbore.classifiers.networks.stacked import StackedMLP
from deepbore.compute.torch_state import import_quietly
from deepbore.labels import LabelledBatch
from deepbore.space import SearchSpace
from deepbore.validation import above, one_of, whole

STRUCTURES = ("full", "kron", "diag", "last_layer")
MOST_FULL = 1000  # weights whose full Sigma laplace-torch inverts; with more, a matrix of rows costs less
DELTA_RANGE = (1e-3, 1e4)
WEAK = 1e-2  # the first delta: under a strong prior a new network may shrink to a constant, and remain one


class LaplaceGGN(NetworkClassifier):
    """MAP training, then the Laplace approximation with the generalised Gauss-Newton matrix (BOGGN, Algorithm 1).

        theta_MAP = argmin  sum_i w_i BCE(z_i, f(x_i; theta)) + delta / 2 |theta|^2
        f(x) ~ N(f(x; theta_MAP), J(x) Sigma_GGN J(x)^T)                          (the linearised network, section 7.5)

    Eq. 3.4 of the paper has the wrong sign of the evidence and misplaced labels; the objective here is the standard
    Bernoulli one, mean over the rows, with the isotropic prior N(0, I / delta) as weight decay. Mean, standard
    deviation, covariance and joint samples of the posterior are those of the linearised network's logit in closed form;
    its members are samples of the weights, the same functions for a whole iteration (Thompson samples).

    | network | posterior of the weights |
    |---|---|
    | built-in | deepbore, layer by layer, without whole Jacobians |
    | your own | laplace-torch |
    | your own, "full", more than 1000 weights | deepbore, by a matrix of rows in place of weights |

    All give the same values, except that "kron" treats a bias together with its layer's weights in built-in networks,
    and separately in your own.

    Args:
        hidden: widths of the hidden layers.
        activation: "elu", "relu", "tanh", or "auto" (ELU for d <= 10, else ReLU).
        network: a factory (number of features, 1) -> module, in place of `hidden` and `activation`. For "full" and
            "diag" `torch.func.vmap` must be able to vectorise it; for "kron" its weights must all be of `nn.Linear`
            layers, too; for "last_layer" its last `nn.Linear` must give the output.
        structure: of the posterior's precision: "full", "kron", "diag" (over all layers), or "last_layer" (full, over
            the last one).
        prior_precision: delta > 0, fixed; None to choose it by the evidence, warm from one iteration to the next.
        samples: number of members of the posterior.
        rows: maximal number of observations for the posterior, weighted to count as all of them; the network learns
            from up to 1024.
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
        super().__init__(hidden, activation, network, 1, training)
        one_of(STRUCTURES, structure=structure)
        above(0, prior_precision=prior_precision)
        whole(1, samples=samples, rows=rows)
        self.capabilities = frozenset({"std", "members"})
        self.structure, self.prior_precision, self.samples, self.rows = structure, prior_precision, samples, rows
        self.register_buffer("delta", torch.tensor(prior_precision or WEAK, dtype=torch.float64))
        self._weights: dict[torch.device, tuple[WeightPosterior, Weights]] = {}  # and samples, by device

    delta: Tensor
    linearised: Linearised

    def build(self, space: SearchSpace, outputs: int) -> None:
        super().build(space, 1)  # of several columns it learns the mean
        if isinstance(self.net, StackedMLP):
            self.linearised = BuiltInNetwork(self.net, self.structure)
        else:
            self.linearised = OwnNetwork(self.net.members[0], self.structure, self.features.size)
        self._condition_on(torch.zeros(0, self.features.size), torch.zeros(0), torch.tensor(0))

    # --- learning ----------------------------------------------------------------------------------------------------

    def before_training(self, batch: LabelledBatch) -> LabelledBatch:
        """The mean labels; sets the prior's weight decay."""
        decay = float(self.delta) / max(1, batch.n_learned)  # of a mean loss
        self.optimizers_made().optimizers[0].param_groups[0]["weight_decay"] = decay
        self._batch = replace(batch, z=batch.z.mean(-1, keepdim=True))
        return self._batch

    def after_training(self, x: Tensor, batch: LabelledBatch) -> dict[str, Any]:
        """Conditions the posterior, and moves the prior precision."""
        self._condition_on_some_of(self._batch)
        if self.prior_precision is None:
            self.delta.copy_(self._more_evident_delta())
        return {"prior_precision": self.delta.clone()}

    @torch.no_grad()
    def _condition_on_some_of(self, batch: LabelledBatch) -> None:
        """Conditions the posterior on a coreset that weighs as much as the whole batch."""
        seed = torch.randint(2**31, (), generator=self.generator, device=self.generator.device)
        rows = batch.coreset(self.rows, self.generator)
        weight = rows.weight * (batch.weight.sum() / rows.weight.sum())
        self._condition_on(self.encode(rows.points), weight, seed)

    def _condition_on(self, x: Tensor, weight: Tensor, seed: Tensor) -> None:
        self._rows = {"x": x, "weight": weight, "seed": seed}
        self._weights = {}

    @torch.no_grad()
    def _more_evident_delta(self) -> Tensor:
        """delta = effective parameters / |theta|^2 (MacKay, 1992), by half a step in the logarithm.

        Effective parameters are counted by the full Sigma in every structure: Kronecker factors and the diagonal
        overestimate them, so that delta would grow until the network is a constant.
        """
        x, weight = self._remembered()
        effective = ggn_posterior("full", *self._linearised(x), weight, self.delta).effective
        target = effective / self.linearised.squared_norm().clamp(min=1e-12)
        return (self.delta * target.to(self.delta)).sqrt().clamp(*DELTA_RANGE)

    @torch.no_grad()
    def log_evidence(self, batch: LabelledBatch) -> Tensor:
        """Laplace's approximation to log p(z | delta) at the current weights (BOGGN eq. 3.3), a scalar.

        Args:
            batch: labels z of the rows behind the posterior.
        """
        z = batch.z.mean(-1, keepdim=True)
        likelihood = -len(batch) * self.loss(self.net(self.encode(batch.points)), z, batch.weight)
        squared_norm = self.linearised.squared_norm()
        return likelihood - self.delta * squared_norm / 2 - self.weight_posterior.log_determinant / 2

    # --- the posterior -----------------------------------------------------------------------------------------------

    @property
    def weight_posterior(self) -> WeightPosterior:
        """The posterior of the weights' deviation from the MAP estimate."""
        return self._weights_and_samples()[0]

    @torch.no_grad()
    def _weights_and_samples(self) -> tuple[WeightPosterior, Weights]:
        device = self.delta.device
        if device not in self._weights:
            posterior = self._conditioned()
            generator = torch.Generator(device).manual_seed(int(self._rows["seed"]))
            self._weights[device] = posterior, posterior.sample(self.samples, generator)
        return self._weights[device]

    def _conditioned(self) -> WeightPosterior:
        """The posterior of the weights, given the rows."""
        x, weight = self._remembered()
        delta, own = self.delta.clone(), self.linearised
        is_large = self.structure == "full" and sum(p.numel() for p in own.weights()) > MOST_FULL
        if isinstance(own, OwnNetwork) and not is_large:
            import_quietly("laplace")
            from deepbore.classifiers.networks.laplace_torch import LaplaceTorchPosterior  # takes seconds

            return LaplaceTorchPosterior(own.network, own.names, self.structure, x, weight, delta)
        return ggn_posterior(self.structure, *self._linearised(x), weight, delta)

    def _remembered(self) -> tuple[Tensor, Tensor]:
        """Features (n x e) and weights (n) of the rows behind the posterior."""
        return self._rows["x"].to(self.delta.device), self._rows["weight"].to(self.delta.device)

    def _linearised(self, x: Tensor) -> tuple[Tensor, Factors]:
        """The MAP network's logit (n) for features x (n x e), and the factors of its Jacobian."""
        return self.linearised(x.to(next(self.net.parameters()).dtype))

    # --- predicting --------------------------------------------------------------------------------------------------

    def posterior(self, points: Tensor) -> LinearisedPosterior:
        self.check_points(points)
        mean, factors = self._linearised(self.encode(points))
        return LinearisedPosterior(mean, factors, *self._weights_and_samples(), self.link)

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def get_extra_state(self) -> dict[str, Tensor]:
        """The rows behind the posterior, whose number varies, and the seed of its samples."""
        return self._rows

    def set_extra_state(self, state: dict[str, Tensor]) -> None:
        """Restores the rows of a checkpoint."""
        self._condition_on(**state)
