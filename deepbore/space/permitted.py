"""Drawing points that constraints permit: by rejection, group by group, and by a random walk where that finds few."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from deepbore.errors import SpaceError
from deepbore.space.constraints import Constraints

if TYPE_CHECKING:
    from deepbore.space.search_space import SearchSpace

DRAWS, FEWEST = 20, 20_000  # points that are drawn for each that is wanted, at most, and in any case
FIRST = 512  # points of the first drawing in a group
TRIES = 10  # neighbours of a point, before it stays where it is
WALK = 5  # steps of the walk that parts points drawn twice
HALVINGS = 8  # of the way back from a forbidden point
SEARCH = 100_000  # points that are drawn in search of the first permitted ones
KNOWN = 64  # permitted points that a space remembers


def permitted_sample(space: "SearchSpace", n: int, generator: torch.Generator) -> Tensor:
    """n independent permitted points, uniform over each parameter's scale (n x d).

    What is forbidden is drawn again; only the columns of its group, since groups know nothing of each other. Where
    fewer than one in twenty is permitted, points that were found are taken again, and moved by a few random steps
    through permitted neighbours.
    """
    points = space.sample_any(n, generator)
    scarce = torch.zeros(n, dtype=torch.bool, device=points.device)
    for group, constraints in space.restricted_groups:
        rows = (~constraints.hold(points, space.active(points))).nonzero().squeeze(-1)
        if len(rows):
            found = _drawn(space, constraints, len(rows), max(FEWEST, DRAWS * n), generator)
            if len(found):
                pool, again = found, torch.arange(len(rows), device=points.device) % len(found)
            else:
                pool = space.known_points.to(points)
                again = torch.randint(len(pool), (len(rows),), generator=generator, device=points.device)
            columns = torch.tensor(group, device=points.device)
            points[rows[:, None], columns] = pool[again][:, columns]
            scarce[rows[len(found) :]] = True
    if scarce.any():
        points[scarce] = _walked(space, points[scarce], generator)
    return points


def _drawn(
    space: "SearchSpace", constraints: Constraints, wanted: int, most: int, generator: torch.Generator
) -> Tensor:
    """Up to so many points whose group is permitted, after at most so many draws."""
    found = [space.sample_any(0, generator)]
    count, drawn, block = 0, 0, FIRST
    while count < wanted and drawn < most:
        points = space.sample_any(block, generator)
        found.append(points[constraints.hold(points, space.active(points))])
        count, drawn = count + len(found[-1]), drawn + block
        block = min(2 * block, 2**14)
    return torch.cat(found)[:wanted]


def _walked(space: "SearchSpace", points: Tensor, generator: torch.Generator) -> Tensor:
    for _ in range(WALK):
        points = space.neighbour_of_each(points, generator)
    return points


def permitted_sobol(space: "SearchSpace", n: int, seed: int, skip: int, device: torch.device | str) -> Tensor:
    """Points number `skip` ... `skip` + n - 1 of those in the Sobol sequence of this seed that are permitted (n x d).

    Where few are, they end early, and random points of the same seed follow.
    """
    found: list[Tensor] = []
    count, drawn, block = 0, 0, max(64, 2 * n)
    while count < skip + n and drawn < FEWEST + DRAWS * (skip + n):
        points = space.sobol_any(block, seed, drawn)
        found.append(points[space.permitted(points)])
        count, drawn = count + len(found[-1]), drawn + block
    points = torch.cat(found)[skip : skip + n]
    if len(points) < n:
        stream = torch.Generator().manual_seed((1_000_003 * seed + skip) % 2**63)
        points = torch.cat([points, permitted_sample(space, n - len(points), stream)])
    return points.to(device)


def permitted_neighbours(space: "SearchSpace", points: Tensor, once: Callable[[Tensor], Tensor]) -> Tensor:
    """One permitted neighbour of each point (n x d); the point itself, snapped, where several tries find none.

    Args:
        space: with constraints.
        points: n x d.
        once: points -> one neighbour of each, permitted or not.
    """
    neighbours = once(points)
    for _ in range(TRIES):
        rows = (~space.permitted(neighbours)).nonzero().squeeze(-1)
        if not len(rows):
            return neighbours
        neighbours[rows] = once(points[rows])
    forbidden = ~space.permitted(neighbours)
    neighbours[forbidden] = space.snap(points[forbidden])
    return neighbours


def drawn_back(space: "SearchSpace", starts: Tensor, ends: Tensor) -> Tensor:
    """Points (k x d) where climbers that went from permitted starts to `ends` may stand: forbidden ones go back half
    of the way, and half of the rest, ..., and to their start in the end. Both are snapped."""
    starts, points = space.snap(starts), space.snap(ends).clone()  # which may be the ends themselves
    for step in range(1, HALVINGS + 1):
        rows = (~space.permitted(points)).nonzero().squeeze(-1)
        if not len(rows):
            return points
        share = 0.0 if step == HALVINGS else 0.5**step
        points[rows] = space.snap(starts[rows] + share * (ends[rows] - starts[rows]))
    return points


def first_permitted(space: "SearchSpace") -> Tensor:
    """Some permitted points, the same in every process (k x d).

    Raises:
        SpaceError: if there are none, or so few that neither counting nor many random points find one.
    """
    generator = torch.Generator().manual_seed(0)
    points = space.sample_any(KNOWN, generator)
    for group, constraints in space.restricted_groups:
        columns = torch.tensor(group)
        found = _drawn(space, constraints, KNOWN, SEARCH, generator)
        if not len(found) and len(group) == len(space):
            return _enumerated(space)
        known = found[:, columns] if len(found) else _alone(space, group, constraints).known_points
        points[:, columns] = known[torch.arange(KNOWN) % len(known)]
    return points


def _alone(space: "SearchSpace", group: Sequence[int], constraints: Constraints) -> "SearchSpace":
    """The space of the parameters of one group, which may be finite where the whole one is not."""
    names = [space.names[column] for column in group]
    return type(space)(
        {name: space.parameters[name] for name in names},
        constraints=constraints.each,
        fixed={name: value for name, value in space.fixed.items() if name in names},
    )


def _enumerated(space: "SearchSpace") -> Tensor:
    """Permitted points of a finite space, spread over all of them."""
    if 0 < space.cardinality * len(space) <= 1e8:
        points = space.enumerate()
        return points[torch.from_numpy(np.linspace(0, len(points) - 1, KNOWN).astype(np.int64))]
    what = "no configuration meets" if not space.cardinality else f"none of {SEARCH:,} random configurations meets"
    fixed = f" with the fixed values {space.fixed}" if space.fixed else ""
    rules = "; ".join(map(str, space.constraints))
    raise SpaceError(f"{what} the constraints{fixed}: {rules}. Loosen them, or mend what contradicts another.")
