"""Selection of q new, distinct and permitted points, down a ranking."""

from collections.abc import Callable, Hashable
from typing import TypeVar

import torch
from torch import Tensor

from deepbore.data.observations import Observations
from deepbore.errors import SpaceExhausted

T = TypeVar("T")
ENUMERABLE = 1_000_000  # finite spaces up to this size are enumerated to find the last new configurations
ROUNDS = 50  # of 100 q random points each, before giving up


def require_room(observations: Observations, q: int, chosen: Tensor | None = None) -> None:
    """Raises SpaceExhausted if a finite space has fewer than q new configurations, not counting those chosen."""
    left, space = observations.columns.n_left - (0 if chosen is None else len(chosen)), observations.space
    if left >= q:
        return
    seen, all_ = int(space.cardinality - left), int(space.cardinality)
    still = " with what is fixed" if space.points.is_fixed else ""
    out = "release the others by fix({})" if space.points.is_fixed else "enqueue what may come again"
    raise SpaceExhausted(
        f"{q} new configurations were asked for, but {seen} of all {all_}{still} are evaluated or pending. Ask for "
        f"fewer, or {out}."
    )


def select_new(
    ranked: Tensor, observations: Observations, q: int, generator: torch.Generator, chosen: Tensor | None = None
) -> Tensor:
    """The best q new and distinct configurations of a ranking, with random ones if there are fewer (q x d, on the CPU).

    Args:
        ranked: points, best first, k x d.
        observations: evaluated and pending trials, whose configurations are not new.
        q: the number of points.
        generator: for the random ones.
        chosen: more points (k x d) that are not new.

    Raises:
        SpaceExhausted: if a finite space has fewer than q new configurations (checked before a random number is drawn),
            or if many random points contain fewer.
    """
    require_room(observations, q, chosen)
    space = observations.space
    selector = UniqueSelector(observations, q, chosen)
    selector.add(ranked)
    if not selector.is_full:
        selector.add(space.points.sample(100 * q, generator))
    if not selector.is_full and space.cardinality <= ENUMERABLE:
        rest = space.points.enumerate()
        order = torch.randperm(len(rest), generator=generator, device=generator.device)
        selector.add(rest[order.to(rest.device)])
    for _ in range(ROUNDS):
        if selector.is_full:
            return selector.points
        selector.add(space.points.sample(100 * q, generator))
    raise SpaceExhausted(
        f"{q} new configurations were asked for, but {ROUNDS * 100 * q} random ones hold only {len(selector.rows)}: "
        f"nearly all of the space is evaluated or pending ({observations.n_distinct} configurations). Ask for fewer."
    )


def largest_possible_batch(find: Callable[[int], T], q: int) -> T | None:
    """`find(q)`, or of q/2, q/4, ... if the space has fewer new configurations; None if it has none.

    Args:
        find: returns new configurations, given their number, or raises SpaceExhausted.
        q: the number of configurations.
    """
    while q:
        try:
            return find(q)
        except SpaceExhausted:
            q //= 2
    return None


def first_new_rows(ranked: Tensor, observations: Observations, count: int, chosen: Tensor | None = None) -> Tensor:
    """At most `count` rows of a ranking (k x d), the best that are new, permitted and distinct."""
    selector = UniqueSelector(observations, count, chosen)
    selector.add(ranked)
    return torch.tensor(selector.rows, dtype=torch.long, device=ranked.device)


class UniqueSelector:
    """Selection of new, permitted and distinct configurations from rankings, up to a number.

    Args:
        observations: evaluated and pending trials, whose configurations are not new.
        count: the number to select.
        chosen: more points (k x d) that are not new.
    """

    def __init__(self, observations: Observations, count: int, chosen: Tensor | None = None):
        self.observations, self.count = observations, count
        chosen = observations.points[:0] if chosen is None else chosen
        self._chosen = set(observations.space.points.identify(chosen.cpu()))
        self.rows: list[int] = []  # of the selected points in their ranking
        self._taken: dict[Hashable, Tensor] = {}

    @property
    def is_full(self) -> bool:
        """Whether enough are selected."""
        return len(self._taken) >= self.count

    @property
    def points(self) -> Tensor:
        """The selected points, on the CPU (k x d)."""
        return torch.stack(list(self._taken.values()))

    def add(self, ranked: Tensor) -> None:
        """Selects from a ranking (n x d). Rows are copied to the CPU in small blocks, no more than needed."""
        block = max(16, self.count)
        for start in range(0, len(ranked), block):
            if self.is_full:
                return
            self._take(ranked[start : start + block].cpu(), start)

    def _take(self, part: Tensor, start: int) -> None:
        identities = self.observations.space.points.identify(part)
        new = self.observations.columns.unseen(part)
        if self.observations.space.points.is_restricted:
            permitted = self.observations.space.points.permitted(part).tolist()
            new = [each and may for each, may in zip(new, permitted, strict=True)]
        for row, (point, identity) in enumerate(zip(part, identities, strict=True), start):
            if self.is_full:
                return
            if new[row - start] and identity not in self._taken and identity not in self._chosen:
                self._taken[identity] = point
                self.rows.append(row)
