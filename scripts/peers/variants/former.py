"""The default as it was, what was added to it, and what one setting changes in today's.

`VARIANTS` are of two kinds. "deepbore:hard-labels" and the like change one thing in the default, mostly by settings
that everybody has. "deepbore:former+..." add something to the default as it was before: prototypes, which lost.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

import deepbore as db
from deepbore.candidates.base import Search, sorted_by_value
from deepbore.candidates.local import adam_ascent
from deepbore.labels.datamodule import LabelledBatch
from deepbore.labels.threshold import ThresholdFamily
from peers.variants.settings import Settings, by


class BetweenValueAndRank(ThresholdFamily):
    """(1 - a) u + a r for each a of `mixes`, one column each: u graded by value with no tail, r graded by rank."""

    def __init__(self, mixes: Sequence[float] = (0.0, 0.5, 1.0)):
        super().__init__(0.5)
        self.mixes, self.outputs = list(mixes), len(mixes)

    def label(self, values: Tensor, ranked: np.ndarray, tau: float) -> tuple[Tensor, Tensor]:
        by_rank, weight = db.RankGradedLabels().label(values, ranked, tau)
        by_value, _ = db.ValueGradedLabels(tail=0).label(values, ranked, tau)
        by_rank = by_value if tau == ranked[0] else by_rank
        return torch.stack([(1 - a) * by_value + a * by_rank for a in self.mixes], dim=-1), weight


class CappedLabels(db.ValueGradedLabels):
    """At most 100 rows count as good, however long the run."""

    def proportion(self, n: int) -> float:
        return min(super().proportion(n), 100 / n)


class UnshiftedTail(db.ValueGradedLabels):
    """The default's labels less the label of tau, from -c to 1: the kernel's prior mean is tau, not the worst."""

    def label(self, values: Tensor, ranked: np.ndarray, tau: float) -> tuple[Tensor, Tensor]:
        z, weight = super().label(values, ranked, tau)
        return (z if tau == ranked[0] else (1 + self.tail) * z - self.tail), weight


class ToThePeak(db.LocalSearch):
    """L-BFGS-B from the best point without black-box constraints, too."""

    def _refines(self, search: Search) -> bool:
        return True


class FormerKernel(db.KernelPLS):
    """`KernelPLS` with the bounds that it had: the least logarithms of the amplitude (`floor`) and of lambda (`least`).

    A floor of -.7, or a prior of small `spread`, keeps branches never visited within reach of improvement.
    """

    def __init__(self, floor: float = -4.0, spread: float = 2.0, least: float = -13.0):
        super().__init__()
        self.floor, self.spread, self.least = floor, spread, least

    def build(self, space: db.SearchSpace, outputs: int) -> None:
        super().build(space, outputs)
        self._prior[-2, 1] = self.spread
        self._bounds[-2:] = [(self.floor, 4.0), (self.least, 1.0)]


class PosteriorMean(FormerKernel):
    """Improvement over the greatest posterior mean of a row, in place of the greatest label."""

    def keep_best(self, best: float | Tensor) -> None:
        super().keep_best(float((self._kernel(self.theta)(self._x, self._x) @ self._coefficients).max()))


class Forecasting(PosteriorMean):
    """Learns each column of the labels with settings of its own, and uses the one that it forecasts best.

    The score of a column is the log probability of each label given all others (leave one out, in closed form), where
    "the label" is the interval that is nearer to it than to any other: so columns of other scales compare.
    """

    def build(self, space: db.SearchSpace, outputs: int) -> None:
        super().build(space, outputs)
        self.settings = [self.theta.clone() for _ in range(outputs)]

    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        batch = batch.coreset(self.rows, self.generator)
        logs, scores = [], []
        for column, settings in enumerate(self.settings):
            self.theta.copy_(settings)
            logs.append(super().fit(replace(batch, z=batch.z[:, column : column + 1])))
            self.settings[column] = self.theta.clone()
            scores.append(self.forecast_score())
        chosen = int(np.argmax(scores))
        self.theta.copy_(self.settings[chosen])
        self._remember(self._x, torch.stack([batch.z[:, chosen].double(), batch.weight.double()], dim=-1))
        return logs[chosen]

    def forecast_score(self) -> float:
        z, diagonal = self._data[:, 0], self._root.square().sum(0)
        mean, std = z - self._coefficients / diagonal, diagonal.rsqrt()
        levels, place = z.unique(return_inverse=True)
        middle, end = (levels[1:] + levels[:-1]) / 2, torch.full((1,), torch.inf).to(z)
        low, high = torch.cat([-end, middle])[place], torch.cat([middle, end])[place]
        forecast = torch.special.ndtr((high - mean) / std) - torch.special.ndtr((low - mean) / std)
        return float((forecast + 1e-6).log().sum())


class LocalRows(FormerKernel):
    """Where there are too many rows, half of the coreset are those nearest to the best; the rest newest and random.

    If `regrade`, three quarters are, none are random, and the labels are graded anew, from their median to the best.
    """

    def __init__(self, regrade: bool = False, **bounds: float):
        super().__init__(**bounds)
        self.regrade = regrade

    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        batch = batch.take(batch.learned.nonzero().squeeze(-1))
        if len(batch) <= self.rows:
            return super().fit(batch)
        x = self.coordinates(batch.points) * (-self.theta[:-2]).exp()[self.coordinates.owner]
        distance = (x - x[batch.z[:, 0].argmax()]).square().sum(-1)
        newest, near = (self.rows // 4, 3 * self.rows // 4) if self.regrade else (self.rows // 6, self.rows // 2)
        last = torch.arange(len(batch) - newest, len(batch), device=x.device)
        kept = torch.cat([last, distance.topk(near, largest=False).indices]).unique()
        if self.regrade:
            chosen = batch.take(kept)
            above = (chosen.z - chosen.z.median()).clamp(min=0)
            return super().fit(replace(chosen, z=above / above.max().clamp(min=1e-12)))
        others = torch.randperm(len(batch), generator=self.generator).to(x.device)
        others = others[~torch.isin(others, kept)][: self.rows - len(kept)]
        return super().fit(batch.take(torch.cat([kept, others]).sort().values))


class ShortScales(db.KernelPLS):
    """No length scale beyond e times the whole range: no parameter is ever quite ignored."""

    def build(self, space: db.SearchSpace, outputs: int) -> None:
        super().build(space, outputs)
        self._bounds[: len(space)] = [(-4.6, 1.0)] * len(space)


class HalfBounds(db.LocalSearch):
    """Half of the proposals maximise an upper confidence bound in place of expected improvement."""

    def ranked(self, search: Search, q: int) -> Tensor:
        bound = float(torch.rand(1, generator=search.generator)) < 0.5
        return super().ranked(replace(search, acquisition=db.UpperConfidenceBound(1.0)) if bound else search, q)


class TrustRegion(db.LocalSearch):
    """Three quarters of the proposals stay in a box around the best that grows by success and shrinks by failure.

    Its sides follow the kernel's length scales (Eriksson et al., Scalable global optimization via local Bayesian
    optimization, 2019: TuRBO). For real parameters; where a run is resumed the box has its first size again.
    """

    def __init__(self) -> None:
        super().__init__()
        self.side, self.wins, self.losses = 0.8, 0, 0
        self.before: float | None = None

    def ranked(self, search: Search, q: int) -> Tensor:
        rows = search.observations.centres.best_rows(1)
        self._learn(float(search.observations.values[rows[0], 0]), len(search.space))
        if float(torch.rand(1, generator=search.generator)) >= 0.75:
            self.before = None  # what comes of it says nothing of the box
            return super().ranked(search, q)
        centre, upper = search.points(rows)[0], search.space.points.bounds[1].to(search.device)
        scale = search.classifier.theta[:-2].exp()
        half = self.side / 2 * (scale / scale.log().mean().exp()).clamp(0.05, 20)
        low, high = (centre - half).clamp(min=0), torch.minimum(centre + half, upper)
        moved, chance = torch.rand(2, self.samples, len(centre), generator=search.stream, device=low.device)
        points = torch.where(chance < min(1, 20 / len(centre)), low + (high - low) * moved, centre)
        points, values = search.best_first(search.space.points.snap(points))
        tops = adam_ascent(
            search.gradient, points[: self.climbers], search.space.points.continuous_columns, upper, self.steps
        )
        tops, their_values = search.best_first(search.space.points.snap(torch.minimum(torch.maximum(tops, low), high)))
        return sorted_by_value(torch.cat([tops, points]), torch.cat([their_values, values]))[0]

    def _learn(self, best: float, d: int) -> None:
        if self.before is not None:  # it came from the box
            won = best < self.before - 1e-3 * abs(self.before)
            self.wins, self.losses = (self.wins + 1, 0) if won else (0, self.losses + 1)
        if self.wins >= 3:
            self.side, self.wins = min(1.6, 2 * self.side), 0
        if self.losses >= max(4, d):
            self.side, self.losses = self.side / 2, 0
        self.side, self.before = (0.8 if self.side < 0.5**7 else self.side), best


def former(**changes: object) -> Settings:
    """The default as it was before, with changes: no tail, lambda above e^-13."""
    return {"labels": db.ValueGradedLabels(tail=0), "classifier": FormerKernel()} | changes


def mixed(*mixes: float, **kernel: float) -> Settings:
    """Labels between value and rank; the kernel forecasts where there are several."""
    return former(labels=BetweenValueAndRank(mixes), classifier=Forecasting(**kernel))


def local(least: float = -20.0, regrade: bool = False, **changes: object) -> Settings:
    return former(classifier=LocalRows(regrade, least=least)) | changes


VARIANTS: dict[str, Callable[[], Settings]] = {
    "deepbore:hard-labels": lambda: {"labels": db.ValueGradedLabels(tail=0)},
    "deepbore:tail-.25": lambda: {"labels": db.ValueGradedLabels(tail=0.25)},
    "deepbore:tail-1": lambda: {"labels": db.ValueGradedLabels(tail=1)},
    "deepbore:tail-2": lambda: {"labels": db.ValueGradedLabels(tail=2)},
    "deepbore:unshifted-tail": lambda: {"labels": UnshiftedTail()},
    "deepbore:unshifted-tail+ambitious": lambda: {"labels": UnshiftedTail(), "candidates": db.RaisedIncumbent()},
    "deepbore:hard-labels+ambitious": lambda: {
        "labels": db.ValueGradedLabels(tail=0),
        "candidates": db.RaisedIncumbent(),
    },
    "deepbore:ambitious": lambda: {"candidates": db.RaisedIncumbent()},
    "deepbore:to-the-peak": lambda: by(ToThePeak()),
    "deepbore:classifier-alone": dict,
    "deepbore:short-scales": lambda: {"classifier": ShortScales()},
    "deepbore:former": former,
    "deepbore:former+fine-lambda": lambda: former(classifier=db.KernelPLS()),
    "deepbore:former+ambitious": lambda: former(candidates=db.RaisedIncumbent()),
    "deepbore:former+ambitious-by-1": lambda: former(candidates=db.RaisedIncumbent(margin=1.0)),
    "deepbore:former+ambitious+posterior-mean": lambda: former(
        candidates=db.RaisedIncumbent(), classifier=PosteriorMean()
    ),
    "deepbore:former+posterior-mean": lambda: former(classifier=PosteriorMean()),
    "deepbore:former+posterior-mean+amplitude-floor": lambda: former(classifier=PosteriorMean(floor=-0.7)),
    "deepbore:former+posterior-mean+tight-amplitude": lambda: former(classifier=PosteriorMean(spread=0.3)),
    "deepbore:former+halfway": lambda: mixed(0.5),
    "deepbore:former+halfway+tight-amplitude": lambda: mixed(0.5, spread=0.3),
    "deepbore:former+ranks": lambda: mixed(1.0),
    "deepbore:former+forecasts": lambda: mixed(0.0, 0.5, 1.0),
    "deepbore:former+forecasts+tight-amplitude": lambda: mixed(0.0, 0.5, 1.0, spread=0.3),
    "deepbore:former+forecasts+focus-.5": lambda: mixed(0.0, 0.5, 1.0) | by(db.LocalSearch(focus=0.5)),
    "deepbore:former+UCB": lambda: former(acquisition=db.UpperConfidenceBound(1.0)),
    "deepbore:former+half-UCB": lambda: former(**by(HalfBounds())),
    "deepbore:former+focus-0": lambda: former(**by(db.LocalSearch(focus=0.0))),
    "deepbore:former+focus-.5": lambda: former(**by(db.LocalSearch(focus=0.5))),
    "deepbore:former+focus-.75": lambda: former(**by(db.LocalSearch(focus=0.75))),
    "deepbore:former+capped": lambda: former(labels=CappedLabels(tail=0)),
    "deepbore:former+capped+local": lambda: local(-13.0, labels=CappedLabels(tail=0)),
    "deepbore:former+capped+local+box": lambda: local(-13.0, labels=CappedLabels(tail=0), **by(TrustRegion())),
    "deepbore:former+fine-lambda+local": local,
    "deepbore:former+fine-lambda+regraded": lambda: local(regrade=True),
    "deepbore:former+fine-lambda+regraded-.9": lambda: local(regrade=True, labels=db.ValueGradedLabels(0.9, tail=0)),
}
