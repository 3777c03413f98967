"""Variants with other heads beside the kernel: weighed by their forecasts, or deep ones once there are many rows.

docs/ablation.md has what came of them ("The last leads").
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

import deepbore as db
from deepbore.classifiers import Classifier, Link, Posterior
from deepbore.classifiers.posterior import GaussianPosterior
from deepbore.errors import SettingError
from deepbore.labels.datamodule import LabelledBatch

RESOLUTION = 0.05  # of labels in [0, 1]: differences below it make no forecast better than another
MEMORY = 0.9  # what a forecast's score counts one trial later


class OwnSteps:
    """A classifier whose optimizer no trainer has wrapped: another one that contains it trains it."""

    def lightning_optimizer(self) -> Any:
        return self.configure_optimizers()  # type: ignore[attr-defined]  # of `Classifier`


class Forest(OwnSteps, db.RandomForest):
    """`RandomForest`, trained by what contains it."""


class Network(OwnSteps, db.DeepPLS):
    """`DeepPLS`, trained by what contains it."""


class HeadsByForecasts(db.KernelPLS):
    """The kernel and other heads, weighed by how well each forecast the labels of trials it had not seen.

    The score of a head is the sum of the log densities that it gave to each new trial's label before it learned it,
    those of older trials counting less; weights are proportional to its exponential, as in Bayesian model averaging.

    Args:
        others: heads beside this kernel, with a deviation, not bound to a space yet.
    """

    differentiable = True

    def __init__(self, others: Sequence[Classifier]):
        super().__init__()
        self.others = torch.nn.ModuleList(others)
        self.scores = torch.zeros(1 + len(others), dtype=torch.float64)
        self.seen = 0

    def build(self, space: db.SearchSpace, outputs: int) -> None:
        super().build(space, outputs)
        for other in self.others:
            other.bind(space, outputs)

    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        told = batch.take(batch.learned.nonzero().squeeze(-1))
        if 0 < self.seen < len(told):
            new = told.take(torch.arange(self.seen, len(told)))
            forecasts = torch.stack([self.log_density(part, new) for part in self.parts(new.points)])
            for forecast in forecasts.T:
                self.scores = MEMORY * self.scores + forecast
        self.seen = len(told)
        for other in self.others:
            other.generator = self.generator
            other.fit(batch)
        return super().fit(batch)

    @torch.no_grad()
    def log_density(self, forecast: Posterior, rows: LabelledBatch) -> Tensor:
        """Of the labels of n rows, at the resolution of labels (n)."""
        std = (forecast.std.double().square() + RESOLUTION**2).sqrt()
        return torch.distributions.Normal(forecast.mean.double(), std).log_prob(rows.z.double().mean(-1))

    @property
    def weights(self) -> Tensor:
        """Of the heads, the kernel's first; they add up to 1."""
        return self.scores.softmax(0)

    def parts(self, points: Tensor) -> list[Posterior]:
        """What each head knows of the points (n x d)."""
        return [super().posterior(points), *(other.posterior(points) for other in self.others)]

    def posterior(self, points: Tensor) -> "MixturePosterior":
        return MixturePosterior(self.parts(points), self.weights.to(points))


class Marginals(GaussianPosterior):
    """A Gaussian for each point by itself."""

    def covariance(self) -> Tensor:
        raise SettingError("what these points have to do with each other is not known. Ask for one at a time.")


class MixturePosterior(Marginals):
    """A mixture with weights, with its mean and deviation.

    Args:
        parts: k posteriors of n points.
        weights: k, which add up to 1.
    """

    def __init__(self, parts: Sequence[Posterior], weights: Tensor):
        self.parts, self.weights = parts, weights
        means, stds = (torch.stack([getattr(each, name).double() for each in parts]) for name in ("mean", "std"))
        mean = weights @ means
        super().__init__(mean, (weights @ (stds.square() + (means - mean).square())).sqrt(), parts[0].link)


class MixtureImprovement(db.LogExpectedImprovement):
    """The logarithm of the mean expected improvement of all parts, by weight."""

    def __call__(self, posterior: Posterior, best: Tensor | float) -> Tensor:
        if not isinstance(posterior, MixturePosterior):
            return super().__call__(posterior, best)
        each = [super(MixtureImprovement, self).__call__(part, best) for part in posterior.parts]
        return (torch.stack(each) + posterior.weights.log()[:, None]).logsumexp(0)


class DeepBeyond(db.KernelPLS):
    """The kernel at first, and a deep head of all rows beyond.

    Args:
        deep: the head, not bound to a space yet.
        after: trials from which on it takes over.
    """

    def __init__(self, deep: Classifier, after: int = 500):
        super().__init__()
        self.deep, self.after = deep, after
        self.has_taken_over = False

    def build(self, space: db.SearchSpace, outputs: int) -> None:
        super().build(space, outputs)
        self.deep.bind(space, outputs)

    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        logged = super().fit(batch)
        self.has_taken_over = batch.n_learned >= self.after
        if self.has_taken_over:
            self.deep.generator = self.generator
            self.deep.fit(batch)
        return logged

    def posterior(self, points: Tensor) -> Posterior:
        return self.deep.posterior(points) if self.has_taken_over else super().posterior(points)


class Vbll(Classifier):
    """A network with a variational Bayesian last layer, as BoTorch's community has it, of labels graded by value.

    It continues from the weights of the last iteration, as the heads do. Prior, noise and covariance of the last layer
    are learned with the network, by one bound on the evidence (Harrison et al., Variational Bayesian last layers, 2024;
    Brunzema et al., Bayesian optimization via continual variational last layer training, 2025).

    Args:
        hidden: width of the hidden layers, of which there are two.
        steps: passes through the rows in an iteration.
    """

    link = Link.IDENTITY
    capabilities = frozenset({"std"})
    distance_aware = learns_grades = closed_form = True

    def __init__(self, hidden: int = 64, steps: int = 100):
        super().__init__()
        self.hidden, self.steps = hidden, steps

    def build(self, space: db.SearchSpace, outputs: int) -> None:
        from botorch_community.models.vblls import VBLLModel

        self.features = space.points.features
        self.model = VBLLModel(in_features=space.points.features.size, hidden_features=self.hidden, num_layers=2)
        self.network = self.model.model.double()

    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        told = batch.take(batch.learned.nonzero().squeeze(-1))
        settings = {"num_epochs": self.steps, "patience": self.steps, "batch_size": 64, "lr": 3e-3}
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.manual_seed(int(torch.randint(2**31, (), generator=self.generator)))
            z = told.z.double().mean(-1, keepdim=True)
            self.model.fit(self.features(told.points), z, optimization_settings=settings)
        return {}

    def posterior(self, points: Tensor) -> Marginals:
        self.network.eval()
        found = self.model(self.features(points))
        return Marginals(found.mean.squeeze(-1), found.variance.squeeze(-1).sqrt(), self.link)


def weighed(*others: Classifier) -> dict[str, object]:
    return {
        "classifier": HeadsByForecasts(others),
        "acquisition": MixtureImprovement(),
        "candidates": db.GreedyBatch(),
    }


VARIANTS: dict[str, Callable[[], dict[str, object]]] = {
    "deepbore:kernel+forest": lambda: weighed(Forest()),
    "deepbore:kernel+network": lambda: weighed(Network()),
    "deepbore:networks-beyond-500": lambda: {"classifier": DeepBeyond(Network()), "candidates": db.GreedyBatch()},
}
LATER: dict[str, Callable[[], dict[str, object]]] = {"deepbore:vbll": lambda: {"classifier": Vbll()}}
