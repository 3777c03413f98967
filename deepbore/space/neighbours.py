"""Random neighbours of points: one or two parameters moved."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from deepbore.space.parameters.moves import random_steps
from deepbore.space.runs import run_by_run

if TYPE_CHECKING:
    from deepbore.space.search_space import SearchSpace


def neighbour_of_each(space: "SearchSpace", points: Tensor, generator: torch.Generator) -> Tensor:
    """One random neighbour of each point, in their order and on their device (n x d).

    See `SearchSpace.neighbours`. What a change switches on starts at the value of a random point.

    Args:
        space: the search space.
        points: n x d.
        generator: stream of random numbers, drawn on its own device.
    """
    changed = _changed(points.shape, generator, space.free_columns).to(points.device)
    neighbours = torch.where(changed, moved(space, points, generator), points)
    if space.is_fixed:
        neighbours = space.stand_still(neighbours)  # which may switch others on, too
    if space.is_conditional:
        switched_on = space.active(neighbours) & ~space.active(points)
        anywhere = space.draw(len(points), generator).to(points.device)
        neighbours = torch.where(switched_on, anywhere, neighbours)
    return space.snap(neighbours)


def moved(space: "SearchSpace", points: Tensor, generator: torch.Generator) -> Tensor:
    """Every parameter of every point moved to a near or another value (n x d); see `Parameter.moved`."""
    device = generator.device
    u, v = (torch.rand(points.shape, dtype=torch.float64, generator=generator, device=device) for _ in range(2))
    z = torch.randn(points.shape, dtype=torch.float64, generator=generator, device=device)
    draws = [each.to(points.device) for each in (u, v, random_steps(v, z))]
    return run_by_run(space.runs, lambda parameter, *columns: parameter.moved(*columns), points, *draws)


def likelier_back(space: "SearchSpace", points: Tensor, neighbours: Tensor) -> Tensor:
    """How much likelier it is to come back from a neighbour, as a logarithm (n).

    Of what a move switches on or off each value is as likely as any other, by which a density is measured.
    """
    each = run_by_run(space.runs, lambda parameter, *columns: parameter.likelier_back(*columns), points, neighbours)
    return torch.where(space.active(points) & space.active(neighbours), each, 0.0).sum(-1)


def _changed(shape: torch.Size, generator: torch.Generator, free: Sequence[int]) -> Tensor:
    """One or two random columns of each row, among the free ones: n x d booleans on the generator's device."""
    (n, d), device = shape, generator.device
    if not free:
        return torch.zeros(n, d, dtype=torch.bool, device=device)
    first, second = (torch.randint(len(free), (n, 1), generator=generator, device=device) for _ in range(2))
    if len(free) < d:
        of = torch.tensor(free, device=device)
        first, second = of[first], of[second]
    both = torch.rand(n, 1, dtype=torch.float32, generator=generator, device=device) < 0.5
    columns = torch.arange(d, device=device)
    return (columns == first) | ((columns == second) & both)
