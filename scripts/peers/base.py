"""`Peer`: an optimiser that the benchmark drives.

`HandlePeer` is one that knows configurations by handles of its own, `PointPeer` one that works on points of the unit
cube.
"""

import time
from abc import ABC, abstractmethod
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor

from deepbore.data.outcome import Outcome
from deepbore.space import Params, SearchSpace


class Peer(ABC):
    """An optimiser that minimises, driven by ask and tell.

    Args:
        space: where to search.
        seed: of everything random.
        n_initial: evaluations of its own initial design.
        noisy: whether the same configuration may give another value next time.
        workers: how many configurations are asked for at a time.
        constrained: whether outcomes have black-box constraints.
    """

    packages: tuple[str, ...] = ()  # whose versions stand in the results

    def __init__(
        self,
        space: SearchSpace,
        seed: int,
        n_initial: int = 10,
        noisy: bool = False,
        workers: int = 1,
        constrained: bool = False,
    ):
        self.space, self.seed, self.n_initial, self.noisy, self.workers = space, seed, n_initial, noisy, workers
        self.constrained = constrained
        self.params = list[Params]()  # what was told, in this order
        self.values = list[float | None]()  # None for a failure

    @abstractmethod
    def ask(self, q: int) -> list[Params]:
        """The next q configurations; fewer, or none, where a finite space has no more."""

    def tell(self, params: Params, value: float | None) -> None:
        """Takes the value of a configuration that was asked for; None if it failed."""
        self.params.append(params)
        self.values.append(value)

    def tell_outcome(self, params: Params, outcome: Outcome) -> None:
        """Takes all of an outcome; to one that knows of no constraints what is infeasible has failed."""
        self.tell(params, outcome.values[0] if outcome.is_feasible else None)

    def recommend(self) -> Params:
        """What it would choose now: the best observed configuration, unless the method knows better."""
        complete = [(value, row) for row, value in enumerate(self.values) if value is not None]
        return self.params[min(complete)[1] if complete else 0]

    @property
    def version(self) -> str:
        """The packages that it runs, with their versions."""
        return ", ".join(f"{package} {version(package)}" for package in self.packages)

    def clock(self) -> float:
        """Seconds of processor time so far: what else runs on the machine does not count."""
        return time.process_time()

    def close(self) -> None:  # most have started nothing
        """Ends what it has started."""

    def filled(self) -> list[float]:
        """The values told, failures as bad as the worst value seen."""
        seen = [value for value in self.values if value is not None]
        worst = max(seen, default=0.0)
        return [worst if value is None else value for value in self.values]


class HandlePeer(Peer):
    """A peer whose optimiser knows each configuration that it asked for by a handle of its own: a trial, a row."""

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.pending = list[tuple[Params, Any]]()  # configurations with their handles

    @abstractmethod
    def suggest(self, q: int) -> list[tuple[Params, Any]]:
        """The next q configurations with their handles; fewer, or none, where a finite space has no more."""

    @abstractmethod
    def observe(self, handle: Any, value: float | None) -> None:
        """Tells the optimiser the value of what it knows by a handle; None if it failed."""

    def observe_outcome(self, handle: Any, outcome: Outcome) -> None:
        """Tells the optimiser all of an outcome, constraints included."""
        self.observe(handle, outcome.values[0] if outcome.is_feasible else None)

    def ask(self, q: int) -> list[Params]:
        asked = self.suggest(q)
        self.pending += asked
        return [params for params, _ in asked]

    def tell(self, params: Params, value: float | None) -> None:
        super().tell(params, value)
        self.observe(self._handle(params), value)

    def tell_outcome(self, params: Params, outcome: Outcome) -> None:
        super().tell(params, outcome.values[0] if outcome.is_feasible else None)
        self.observe_outcome(self._handle(params), outcome)

    def _handle(self, params: Params) -> Any:
        row = next(row for row, (asked, _) in enumerate(self.pending) if asked == params)
        return self.pending.pop(row)[1]


def one_hot(space: SearchSpace, points: Tensor) -> Tensor:
    """Points of the unit cube (... x d) -> features (... x e): categories one-hot, other columns as they are."""
    columns = []
    for p, column in zip(space.parameters.values(), points.unbind(-1), strict=True):
        level = (column * p.upper).round().long()
        is_number = p.kind != "categorical"
        columns.append(column[..., None] if is_number else torch.nn.functional.one_hot(level, p.levels).to(points))
    return torch.cat(columns, -1)


class PointPeer(Peer):
    """A peer that sees points of the unit cube.

    Level k = 0 ... K - 1 of an ordinal or a category stands at k / (K - 1), an inactive parameter at 0. The initial
    design is a scrambled Sobol sequence.
    """

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.generator = torch.Generator().manual_seed(self.seed)
        self.upper = self.space.points.bounds[1]
        self.points = torch.empty(0, len(self.space), dtype=torch.float64)  # scaled, in the order of `values`
        self.seen = set()  # identities of what was asked
        self.designed = 0

    @abstractmethod
    def propose(self, q: int) -> Tensor:
        """The next q points after the design, q x d in the unit cube; they need not lie on levels."""

    def ask(self, q: int) -> list[Params]:
        from_design = q if not self.values else min(q, max(0, self.n_initial - self.designed))
        points = self.space.points.sobol(from_design, self.seed, skip=self.designed)
        self.designed += from_design
        if from_design < q:
            proposed = self.space.points.snap(self.propose(q - from_design).double() * self.upper)
            points = torch.cat([points, proposed])
        self.seen.update(self.space.points.identify(points))
        return self.space.decode(points)

    def tell(self, params: Params, value: float | None) -> None:
        super().tell(params, value)
        self.points = torch.cat([self.points, self.space.encode([params]) / self.upper])

    def random(self, n: int) -> Tensor:
        """n random configurations (n x d in the unit cube)."""
        return self.space.points.sample(n, self.generator) / self.upper

    def is_seen(self, points: Tensor) -> list[bool]:
        """Which of the points (n x d in the unit cube) were asked for before, once rounded to levels."""
        return [name in self.seen for name in self.space.points.identify(self.space.points.snap(points * self.upper))]

    def fresh(self, points: Tensor, tries: int = 100) -> Tensor:
        """The points with random new ones in place of those that were asked for before, if any are found."""
        points = points.clone()
        for row, seen in enumerate(self.is_seen(points)):
            pool = self.random(tries) if seen else points[:0]
            new = [index for index, known in enumerate(self.is_seen(pool)) if not known]
            if new:
                points[row] = pool[new[0]]
        return points
