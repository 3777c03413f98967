"""Selection of q new, distinct and permitted points, down a ranking."""

from collections.abc import Callable, Hashable
from typing import TypeVar

import torch
from torch import Tensor

from deepbore.data.observations import Observations
from deepbore.errors import SpaceExhausted

T = TypeVar("T")
ENUMERABLE = 1_000_000  # a finite space up to this size is searched for its last unseen points one by one
ROUNDS = 50  # of 100 q random points, before a space is held to have nothing new


def require_room(observations: Observations, q: int, chosen: Tensor | None = None) -> None:
    """Raises SpaceExhausted if a finite space has fewer than q configurations left besides those that are chosen."""
    left, space = observations.n_left - (0 if chosen is None else len(chosen)), observations.space
    if left >= q:
        return
    seen, all_ = int(space.cardinality - left), int(space.cardinality)
    still = " with what is fixed" if space.is_fixed else ""
    out = "release the others by fix({})" if space.is_fixed else "enqueue what may come again"
    raise SpaceExhausted(
        f"{q} new configurations were asked for, but {seen} of all {all_}{still} are evaluated or pending. Ask for "
        f"fewer, or {out}."
    )


def distinct(
    ranked: Tensor, observations: Observations, q: int, generator: torch.Generator, chosen: Tensor | None = None
) -> Tensor:
    """The first q points of a ranking whose configurations are new and differ, filled up at random (q x d, on the CPU).

    Of the ranking only the rows that are looked at leave their device.

    Args:
        ranked: points, best first, k x d.
        observations: what has been seen.
        q: how many are wanted.
        generator: stream for the filling.
        chosen: points (k x d) that count as seen, too.

    Raises:
        SpaceExhausted: if the space has fewer than q configurations left, before a random number is drawn; or if all of
            many random ones have been seen.
    """
    require_room(observations, q, chosen)
    space = observations.space
    walk = Walk(observations, q, chosen)
    walk.down(ranked)
    if not walk.is_over:
        walk.down(space.sample(100 * q, generator))
    if not walk.is_over and space.cardinality <= ENUMERABLE:
        rest = space.enumerate()
        order = torch.randperm(len(rest), generator=generator, device=generator.device)
        walk.down(rest[order.to(rest.device)])
    for _ in range(ROUNDS):
        if walk.is_over:
            return walk.points
        walk.down(space.sample(100 * q, generator))
    raise SpaceExhausted(
        f"{q} new configurations were asked for, but {ROUNDS * 100 * q} random ones hold only {len(walk.rows)}: nearly "
        f"all of the space is evaluated or pending ({observations.n_distinct} configurations). Ask for fewer."
    )


def as_many(find: Callable[[int], T], q: int) -> T | None:
    """What is found for q, or for half, a quarter, ... of it while the space has not so many; None where it has none.

    Args:
        find: for a number of new configurations; raises SpaceExhausted.
        q: how many are wanted.
    """
    while q:
        try:
            return find(q)
        except SpaceExhausted:
            q //= 2
    return None


def fresh_rows(ranked: Tensor, observations: Observations, count: int, chosen: Tensor | None = None) -> Tensor:
    """Rows of the first `count` configurations of a ranking (k x d), or fewer, that are new, permitted, and differ."""
    walk = Walk(observations, count, chosen)
    walk.down(ranked)
    return torch.tensor(walk.rows, dtype=torch.long, device=ranked.device)


class Walk:
    """Takes unseen, permitted configurations off rankings, best first, each once, until there are enough.

    Args:
        observations: what has been seen.
        count: how many are wanted.
        chosen: points (k x d) that count as seen, too.
    """

    def __init__(self, observations: Observations, count: int, chosen: Tensor | None = None):
        self.observations, self.count = observations, count
        self._chosen = set() if chosen is None or not len(chosen) else set(observations.space.identify(chosen.cpu()))
        self.rows: list[int] = []  # of the rankings, in the order of taking
        self._taken: dict[Hashable, Tensor] = {}

    @property
    def is_over(self) -> bool:
        """Whether there are enough."""
        return len(self._taken) >= self.count

    @property
    def points(self) -> Tensor:
        """What was taken, on the CPU (k x d)."""
        return torch.stack(list(self._taken.values()))

    def down(self, ranked: Tensor) -> None:
        """Takes points (n x d) in their order; they leave their device window by window."""
        window = max(16, self.count)
        for start in range(0, len(ranked), window):
            if self.is_over:
                return
            self._take(ranked[start : start + window].cpu(), start)

    def _take(self, part: Tensor, start: int) -> None:
        identities = self.observations.space.identify(part)
        new = self.observations.unseen(part)
        if self.observations.space.is_restricted:
            permitted = self.observations.space.permitted(part).tolist()
            new = [each and may for each, may in zip(new, permitted, strict=True)]
        for row, (point, identity) in enumerate(zip(part, identities, strict=True), start):
            if self.is_over:
                return
            if new[row - start] and identity not in self._taken and identity not in self._chosen:
                self._taken[identity] = point
                self.rows.append(row)
