"""`LaplaceGGN`: a network with a Gaussian posterior over its weights, by laplace-torch; BOGGN's is one of its forms."""

from dataclasses import replace
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from deepbore.classifiers.link import Link
from deepbore.classifiers.networks.linearised import (
    BY_WEIGHTS,
    BuiltInNetwork,
    Factors,
    Linearised,
    LinearisedPosterior,
    OwnNetwork,
    WeightPosterior,
    Weights,
    bernoulli_variance,
)
from deepbore.classifiers.networks.network import (
    NetworkClassifier,
    NetworkFactory,
    OptimizerFactory,
    SchedulerFactory,
    Training,
)
from deepbore.classifiers.networks.stacked import Given, StackedMLP
from deepbore.compute.torch_state import import_quietly
from deepbore.errors import SettingError
from deepbore.labels import Gamma, LabelledBatch, Labelling
from deepbore.space import SearchSpace
from deepbore.validation import above, one_of, whole

if TYPE_CHECKING:
    from deepbore.classifiers.networks.laplace_torch import Approximate, Directions

STRUCTURES = ("full", "kron", "diag", "last_layer")
LIKELIHOODS = ("gaussian", "bernoulli")
GAMMA = 1 / 3  # of the default labels (BOGGN section 5)
DELTA_RANGE = (1e-3, 1e4)
FLATTEST = 1e-6  # least curvature: where the network is certain, pi (1 - pi) is 0 in floating point
WEAK = 1e-2  # the first delta: under a strong prior a new network may shrink to a constant, and remain one
FIRST_NOISE = 1e-2  # the first standard deviation of the labels' noise


class LaplaceGGN(NetworkClassifier):
    """A trained network with the Laplace approximation, by the generalised Gauss-Newton matrix (GGN).

    | likelihood | trained by | prior of the weights | outputs |
    |---|---|---|---|
    | "gaussian" | squared error | N(theta, I / delta), theta the trained weights | estimates of the label |
    | "bernoulli" | cross-entropy | N(0, I / delta), as weight decay | logits: BOGGN, Algorithm 1 |

        f(x) ~ N(f(x; theta) + J(x) m, J(x) Sigma J(x)^T)                         (the linearised network, section 7.5)
        Sigma = (J^T Lambda J + delta I)^-1

    With the Gaussian likelihood Lambda is the inverse variance of the labels' noise, and m one Gauss-Newton step from
    the trained weights, Sigma J^T Lambda (z - f). So the network is the mean of a Gaussian process with the kernel
    J J^T / delta, which learns what training has left. Prior precision and noise maximise the marginal likelihood of
    laplace-torch in each iteration, with weak priors from the scale of the labels.

    With the Bernoulli likelihood m is 0, and delta is chosen by MacKay's fixed point, unless it is given. In the search
    for optima this has two faults, so it is for the paper's recipe only. The prior of all weights is tied to their
    size, though the labels determine few of them: delta can grow until the network is a constant. And classes tell
    little about logits far from the threshold: their deviation is tens of logits, which leads upper bounds to corners.
    Eq. 3.4 of the paper has the wrong sign of the evidence and misplaced labels; the objective here is the standard
    one, mean over the rows.

    Mean, standard deviation, covariance and joint samples of the posterior are in closed form; its members are samples
    of the weights, the same functions for a whole iteration (Thompson samples). For "kron" and "diag" m is 0: a step
    with an approximation of Sigma may lead anywhere.

    Args:
        hidden: widths of the hidden layers.
        activation: of torch, by name, class or function; "auto" is ELU for d <= 10, else ReLU.
        network: a factory (number of features, 1) -> module, in place of `hidden` and `activation`. For "full" and
            "diag" `torch.func.vmap` must be able to vectorise it; for "kron" its weights must all be of `nn.Linear`
            layers, too; for "last_layer" its last `nn.Linear` must give the output.
        structure: of the posterior's precision: "full", "kron", "diag" (over all layers), or "last_layer" (full, over
            the last one).
        prior_precision: delta > 0, fixed; None to choose it by the evidence, warm from one iteration to the next.
        samples: number of members of the posterior.
        rows: maximal number of observations for the posterior, weighted to count as all of them; the network learns
            from as many as its steps can see.
        training: steps, learning rate, warm start, ...; for "bernoulli" the weight decay is the prior's.
        likelihood: "gaussian" for labels graded by value, "bernoulli" for labels by one threshold.
        optimizer: a function of the parameters, as `partial(torch.optim.AdamW, lr=1e-3)`; None for Adam.
        lr_scheduler: a function of the optimizer, as `partial(ExponentialLR, gamma=0.99)`; see `Training.lr_interval`.

    Raises:
        SettingError: for an unknown structure or likelihood, or a number outside its range.

    References:
        Hassen & Rish, Bayesian optimization by Gauss-Newton networks (BOGGN), 2021.
        Immer, Korzepa & Bauer, Improving predictions of Bayesian neural nets via local linearization, 2021.
    """

    def __init__(
        self,
        hidden: tuple[int, ...] = (32, 32),
        activation: Given = "tanh",
        network: NetworkFactory | None = None,
        structure: str = "full",
        prior_precision: float | None = None,
        samples: int = 16,
        rows: int = 256,
        training: Training | None = None,
        likelihood: str = "gaussian",
        optimizer: OptimizerFactory | None = None,
        lr_scheduler: SchedulerFactory | None = None,
    ):
        super().__init__(hidden, activation, network, 1, training, optimizer, lr_scheduler)
        one_of(STRUCTURES, structure=structure)
        one_of(LIKELIHOODS, likelihood=likelihood)
        if optimizer is not None and likelihood == "bernoulli":
            raise SettingError(
                'likelihood="bernoulli" has its prior in the weight decay of Adam. Leave out optimizer=.'
            )
        above(0, prior_precision=prior_precision)
        whole(1, samples=samples, rows=rows)
        self.capabilities = frozenset({"std", "members"})
        self.structure, self.prior_precision, self.samples, self.rows = structure, prior_precision, samples, rows
        self.is_gaussian = self.distance_aware = self.learns_grades = likelihood == "gaussian"
        self.link = Link.IDENTITY if self.is_gaussian else Link.LOGIT
        self.register_buffer("delta", torch.tensor(prior_precision or WEAK, dtype=torch.float64))
        if self.is_gaussian:
            self.register_buffer("noise", torch.tensor(FIRST_NOISE, dtype=torch.float64))
        self._weights: dict[torch.device, tuple[WeightPosterior, Weights]] = {}  # and samples, by device

    delta: Tensor
    noise: Tensor
    linearised: Linearised

    def build(self, space: SearchSpace, outputs: int) -> None:
        super().build(space, 1)  # of several columns it learns the mean
        if isinstance(self.net, StackedMLP):
            self.linearised = BuiltInNetwork(self.net, self.structure)
        else:
            self.linearised = OwnNetwork(self.net.members[0], self.structure, self.features.size)
        self._condition_on(torch.zeros(0, self.features.size), torch.zeros(0), torch.tensor(0), torch.zeros(0))

    def default_labels(self, gamma: Gamma | None = None, objectives: int = 1) -> Labelling:
        """The default labels, graded with BOGGN's gamma of 1/3 unless it is given; by one threshold for "bernoulli"."""
        return super().default_labels(GAMMA if gamma is None and self.is_gaussian else gamma, objectives)

    # --- learning ----------------------------------------------------------------------------------------------------

    def before_training(self, batch: LabelledBatch) -> LabelledBatch:
        """The mean labels; with the Bernoulli likelihood it sets the prior's weight decay."""
        if not self.is_gaussian:
            decay = float(self.delta) / max(1, batch.n_learned)  # of a mean loss
            self.optimizers_made().optimizers[0].param_groups[0]["weight_decay"] = decay
        self._batch = replace(batch, z=batch.z.mean(-1, keepdim=True))
        return self._batch

    def after_training(self, x: Tensor, batch: LabelledBatch) -> dict[str, Any]:
        """Conditions the posterior, and chooses the prior precision (and the noise)."""
        self._condition_on_some_of(self._batch)
        if self.is_gaussian:
            self._choose_delta_and_noise()
            return {"prior_precision": self.delta.clone(), "noise": self.noise.clone()}
        if self.prior_precision is None:
            self.delta.copy_(self._more_evident_delta())
        return {"prior_precision": self.delta.clone()}

    @torch.no_grad()
    def _condition_on_some_of(self, batch: LabelledBatch) -> None:
        """Conditions the posterior on a coreset that weighs as much as the whole batch."""
        seed = torch.randint(2**31, (), generator=self.generator, device=self.generator.device)
        rows = batch.coreset(self.rows, self.generator)
        weight = rows.weight * (batch.weight.sum() / rows.weight.sum())
        self._condition_on(self.encode(rows.points), weight, seed, rows.z[:, 0])

    def _condition_on(self, x: Tensor, weight: Tensor, seed: Tensor, z: Tensor | None = None) -> None:
        self._rows = {"x": x, "weight": weight, "seed": seed} | ({"z": z} if z is not None and self.is_gaussian else {})
        self._weights = {}

    @torch.enable_grad()
    def _choose_delta_and_noise(self) -> None:
        """Sets prior precision and noise by the marginal likelihood, warm from the last ones."""
        with torch.no_grad():
            directions = self._directions()
        fixed = self.prior_precision is not None
        delta, noise = directions.most_evident(self.delta, self.noise, fixed)
        self.delta.copy_(delta)
        self.noise.copy_(noise)
        self._weights = {}

    @torch.no_grad()
    def _more_evident_delta(self) -> Tensor:
        """delta = effective parameters / |theta|^2 (MacKay, 1992), by half a step in the logarithm.

        Effective parameters are counted by the full Sigma in every structure: Kronecker factors and the diagonal
        overestimate them, so that delta would grow until the network is a constant.
        """
        effective = self._directions().at(self.delta).effective
        target = effective / self.linearised.squared_norm().clamp(min=1e-12)
        return (self.delta * target.to(self.delta)).sqrt().clamp(*DELTA_RANGE)

    @torch.no_grad()
    def log_evidence(self, batch: LabelledBatch) -> Tensor:
        """Laplace's approximation to log p(z | delta) at the current weights (BOGGN eq. 3.3), a scalar.

        Args:
            batch: labels z of the rows behind the posterior; for a Gaussian likelihood their own are used.
        """
        if self.is_gaussian:
            found = self._directions().at(self.delta.clone(), self.noise.clone())
            return found.laplace.log_marginal_likelihood()
        z = batch.z.mean(-1, keepdim=True)
        likelihood = -len(batch) * self.loss(self.net(self.encode(batch.points)), z, batch.weight)
        squared_norm = self.linearised.squared_norm()
        return likelihood - self.delta * squared_norm / 2 - self.weight_posterior.log_determinant / 2

    # --- the posterior -----------------------------------------------------------------------------------------------

    @property
    def weight_posterior(self) -> WeightPosterior:
        """The posterior of the weights' deviation from the trained ones."""
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
        if self.structure not in BY_WEIGHTS:
            noise = self.noise.clone() if self.is_gaussian else None
            return self._directions().at(self.delta.clone(), noise)
        network, names = self.linearised.module()
        noise = self.noise if self.is_gaussian else None
        x, weight = (self._rows[name].to(self.delta.device) for name in ("x", "weight"))
        approximate: type[Approximate] = laplace_torch().Approximate
        return approximate(network, names, self.structure, x, weight, self.delta.clone(), noise)

    def _directions(self) -> "Directions":
        """The full GGN of the rows, before a prior precision is set."""
        rows = {name: each.to(self.delta.device) for name, each in self._rows.items()}
        output, factors = self._linearised(rows["x"])
        directions: type[Directions] = laplace_torch().Directions
        if self.is_gaussian:
            return directions(factors, rows["weight"], rows["z"] - output)
        curvature = rows["weight"] * bernoulli_variance(output.double())
        return directions(factors, curvature.clamp(min=FLATTEST))

    def _linearised(self, x: Tensor) -> tuple[Tensor, Factors]:
        """The trained network's output (n) for features x (n x e), and the factors of its Jacobian."""
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


def laplace_torch() -> ModuleType:
    """The module that imports laplace-torch, which takes seconds, at the first training."""
    import_quietly("laplace")
    return import_module("deepbore.classifiers.networks.laplace_torch")
