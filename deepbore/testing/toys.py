"""Small spaces, a smooth objective on any of them, toy outcomes, a toy classifier, and a fit without a loop."""

import torch
from torch import Tensor

from deepbore.classifiers.base import Classifier
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import GaussianPosterior, MembersPosterior, PointEstimate, Posterior
from deepbore.classifiers.wrappers import ColumnsPosterior
from deepbore.data.observations import Direction, Observations
from deepbore.data.outcome import Outcome
from deepbore.data.trial import sign_of
from deepbore.labels import LabelledBatch, LabelledObservations, Labelling
from deepbore.loop.engine import learn
from deepbore.space import Categorical, Condition, Integer, Ordinal, Real, SearchSpace

TOY_SPACES = {
    "continuous": SearchSpace({"x": Real(0, 1), "y": Real(-5, 5), "lr": Real(1e-5, 1e-1, log=True)}),
    "finite": SearchSpace({"k": Ordinal([1, 2, 4, 8, 16]), "c": Categorical(["a", "b", "c"]), "n": Integer(1, 6)}),
    "mixed": SearchSpace(
        {
            "lr": Real(1e-5, 1e-1, log=True),
            "units": Integer(8, 1024, log=True),
            "optimizer": Categorical(["sgd", "adam"]),
            "momentum": Real(0, 0.99, when=Condition("optimizer", "sgd")),
            "nesterov": Categorical([True, False], when=Condition("optimizer", "sgd")),
        }
    ),
}


def toy_objective(space: SearchSpace, points: Tensor, shift: float = 0.0) -> Tensor:
    """A smooth bowl around the middle of each scale, plus a shift: points (n x d) -> values (n), the least 0."""
    centre = 0.5 * space.points.bounds[1].floor()
    return ((points - centre) / space.points.bounds[1].clamp(min=1) - shift).square().sum(-1)


def toy_data(space: SearchSpace, n: int = 60, labels: Labelling | None = None, seed: int = 0) -> LabelledObservations:
    """n random configurations with the bowl's values."""
    observations = Observations(space)
    points = space.points.sample(n, torch.Generator().manual_seed(seed))
    rows = observations.reserve(points)
    for row, value in zip(rows, toy_objective(space, points).tolist(), strict=True):
        observations.tell(row, value)
    return LabelledObservations(observations, labels)


def toy_outcomes(
    objectives: int = 1, constraints: int = 0, n: int = 40, direction: Direction = "minimize"
) -> Observations:
    """n outcomes of bowls around different points, the last two equal, then a failed and a pending row.

    Args:
        objectives: k, number of bowls.
        constraints: number of constraints, each violated by a third of the rows.
        n: rows with values.
        direction: "maximize" for the negated values.
    """
    space = TOY_SPACES["continuous"]
    observations = toy_observations(objectives, direction)
    points = space.points.sample(n, torch.Generator().manual_seed(0))
    values = sign_of(direction) * torch.stack([toy_objective(space, points, 0.2 * k) for k in range(objectives)], -1)
    limits = points[:, :constraints] - 2 / 3
    values[-1], limits[-1] = values[-2], limits[-2]
    for row, value, limit in zip(observations.reserve(points), values.tolist(), limits.tolist(), strict=True):
        observations.tell(row, Outcome(value, constraints=limit))
    failed, _pending = observations.reserve(space.points.sample(2, torch.Generator().manual_seed(5)))
    observations.tell(failed, Outcome.failure("a toy"))
    return observations


def toy_observations(objectives: int = 1, direction: Direction = "minimize") -> Observations:
    """Empty observations of k objectives in the continuous toy space."""
    return Observations(TOY_SPACES["continuous"], [direction] * objectives)


def fit(classifier: Classifier, data: LabelledObservations, epochs: int = 10) -> Classifier:
    """Trains a classifier for some epochs, as the loop does, without proposals."""
    learn([classifier], data, epochs, torch.device("cpu"))
    return classifier


class ToyClassifier(Classifier):
    """A classifier with just the declared link and capabilities: its score is linear, and it learns nothing.

    Args:
        link: of the scores.
        capabilities: none for a point estimate, "std" for a Gaussian, "std" and "members" for four members,
            "columns" for a Gaussian in one column.
    """

    closed_form = True

    def __init__(self, link: Link, capabilities: frozenset[str]):
        super().__init__()
        self.link, self.capabilities = link, capabilities
        self.bind(TOY_SPACES["continuous"])

    def build(self, space: SearchSpace, outputs: int) -> None:
        """Does nothing."""

    def fit(self, batch: LabelledBatch) -> dict[str, float]:
        """Does nothing."""
        return {}

    def posterior(self, points: Tensor, lift: float = 0.0) -> Posterior:
        """Scores that are the sum of a point's coordinates plus `lift`; certain where the first coordinate is 0."""
        mean, std = points.sum(-1) + lift, points[:, 0]
        if "members" in self.capabilities:
            sides = torch.tensor([-1.0, 1.0, 0.5, -0.5]).to(points)
            return MembersPosterior(mean + sides[:, None] * std, self.link)
        if "std" in self.capabilities:
            return _Independent(mean, std, self.link)
        if "columns" in self.capabilities:
            return ColumnsPosterior([_Independent(mean, std, self.link)], self.link)
        return PointEstimate(mean, self.link, "ToyClassifier")

    @property
    def points(self) -> Tensor:
        """Nine points, the first of which has a certain score."""
        points = TOY_SPACES["continuous"].points.sample(9, torch.Generator().manual_seed(6))
        points[0, 0] = 0.0
        return points


class _Independent(GaussianPosterior):
    def covariance(self) -> Tensor:
        return self.std.square().diag()
