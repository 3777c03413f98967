"""`Sampler`: designs, random points and neighbours of points that may be proposed."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from deepbore.compute.devices import stream_seed
from deepbore.errors import SpaceError
from deepbore.space.constraints import Constraints
from deepbore.space.enumeration import Enumeration
from deepbore.space.parameters.base import random_steps
from deepbore.space.structure import SpaceStructure

DRAWS, FEWEST_DRAWS = 20, 20_000  # limits of random points: for each wanted one, and in total if that is more
FIRST = 512  # random points of the first attempt in a group
TRIES = 10  # attempts to find a permitted neighbour
WALK = 5  # random steps that separate copies of a point
HALVINGS = 8  # of the segment from a permitted point to a forbidden one
SEARCH = 100_000  # random points in search of the first permitted ones
DOUBTED = 4  # every so many points of a sequence with a prior stay uniform
KNOWN = 64  # permitted points that are kept


class Sampler:
    """Random and quasi-random points of a space, permitted by its constraints and fixed values.

    Forbidden points are drawn again. Only the columns of a violated group of constraints are replaced, since groups are
    independent. Where fewer than one in twenty random points is permitted, permitted points are used repeatedly, each
    moved by a few random steps through permitted neighbours.

    Args:
        structure: the structure of the space.
        constraints: its constraints.
        enumeration: its enumeration, for a space with few permitted points.

    Attributes:
        known_points: some points that the constraints permit (k x d); none without constraints.

    Raises:
        SpaceError: if constraints permit no point, or so few that neither enumeration nor random points find one.
    """

    def __init__(self, structure: SpaceStructure, constraints: Constraints, enumeration: Enumeration):
        self.structure, self.constraints, self.enumeration = structure, constraints, enumeration
        has_known = constraints.each and constraints.are_known
        self.known_points = self._first_permitted() if has_known else structure.bounds[:0]

    # --- random points -----------------------------------------------------------------------------------------------

    def sample(self, n: int, generator: torch.Generator, prior: bool = False) -> Tensor:
        """Random permitted points (n x d); see `Points.sample`."""
        points = self.sample_any(n, generator, prior)
        if not self.constraints.each:
            return points
        repeated = torch.zeros(n, dtype=torch.bool, device=points.device)
        for group, constraints in self.constraints.groups:
            rows = (~constraints.hold(points)).nonzero().squeeze(-1)
            if len(rows):
                found = self._drawn(constraints, len(rows), max(FEWEST_DRAWS, DRAWS * n), generator, prior)
                if len(found):
                    pool, again = found, torch.arange(len(rows), device=points.device) % len(found)
                else:
                    pool = self.known_points.to(points)
                    again = torch.randint(len(pool), (len(rows),), generator=generator, device=points.device)
                columns = torch.tensor(group, device=points.device)
                points[rows[:, None], columns] = pool[again][:, columns]
                repeated[rows[len(found) :]] = True
        if repeated.any():
            points[repeated] = self._walked(points[repeated], generator)
        return points

    def sample_any(self, n: int, generator: torch.Generator, prior: bool = False) -> Tensor:
        """Random points, permitted by constraints or not (n x d)."""
        return self.structure.masked(self.draw(n, generator, prior))

    def draw(self, n: int, generator: torch.Generator, prior: bool = False) -> Tensor:
        """Random values of every parameter, active or not (n x d)."""
        u = torch.rand((n, len(self.structure)), dtype=torch.float64, generator=generator, device=generator.device)
        u = self.structure.believed(u) if prior else u
        return self.structure.by_group(lambda p, column: p.from_uniform(column), u)

    def _drawn(
        self, constraints: Constraints, wanted: int, most: int, generator: torch.Generator, prior: bool = False
    ) -> Tensor:
        """Up to `wanted` random points that meet the constraints of a group, from about `most` attempts."""
        found = [self.sample_any(0, generator)]
        count, drawn, block = 0, 0, FIRST
        while count < wanted and drawn < most:
            points = self.sample_any(block, generator, prior)
            found.append(points[constraints.hold(points)])
            count, drawn = count + len(found[-1]), drawn + block
            block = min(2 * block, 2**14)
        return torch.cat(found)[:wanted]

    def _walked(self, points: Tensor, generator: torch.Generator) -> Tensor:
        for _ in range(WALK):
            points = self.neighbour_of_each(points, generator)
        return points

    # --- designs -----------------------------------------------------------------------------------------------------

    def sobol(self, n: int, seed: int, skip: int, device: torch.device | str, prior: bool = False) -> Tensor:
        """Permitted points of a scrambled Sobol sequence (n x d); see `Points.sobol`."""
        if not self.constraints.each:
            return self.sobol_any(n, seed, skip, device, prior, DOUBTED)
        if not (prior and self.structure.believed_columns):
            return self._permitted(n, seed, skip, False).to(device)
        doubted = is_doubted(skip, n, DOUBTED)
        uniform = self._permitted(int(doubted.sum()), seed, skip // DOUBTED, False)
        points = uniform.new_zeros(n, len(self.structure))
        points[doubted] = uniform
        points[~doubted] = self._permitted(n - len(uniform), seed, skip - skip // DOUBTED, True)
        return points.to(device)

    def _permitted(self, n: int, seed: int, skip: int, prior: bool) -> Tensor:
        """Permitted points of one sequence: uniform, or all with the prior (n x d)."""
        found = [self.structure.bounds[:0]]
        count, drawn, block = 0, 0, max(64, 2 * n)
        while count < skip + n and drawn < FEWEST_DRAWS + DRAWS * (skip + n):
            points = self.sobol_any(block, seed, drawn, "cpu", prior)
            found.append(points[self.constraints.permitted(points)])
            count, drawn = count + len(found[-1]), drawn + block
        points = torch.cat(found)[skip : skip + n]
        if len(points) < n:  # few are permitted: random points of the same seed follow
            stream = torch.Generator().manual_seed((1_000_003 * stream_seed(seed) + skip) % 2**63)
            points = torch.cat([points, self.sample(n - len(points), stream, prior)])
        return points

    def sobol_any(
        self, n: int, seed: int, skip: int, device: torch.device | str, prior: bool = False, doubted: int = 0
    ) -> Tensor:
        """Points of a scrambled Sobol sequence, permitted by constraints or not (n x d).

        Args:
            n: how many points.
            seed: of the sequence.
            skip: number of the first point.
            device: of the points.
            prior: whether they are drawn from what is believed of the best point.
            doubted: every so many of these stay uniform; 0 for none.
        """
        d, seed = len(self.structure), stream_seed(seed)
        if d > SobolEngine.MAXDIM:  # torch has no longer sequence; random points are as good in so many dimensions
            stream = torch.Generator().manual_seed(seed)
            return self.sample_any(skip + n, stream, prior)[skip:].to(device)
        u = SobolEngine(d, scramble=True, seed=seed).fast_forward(skip).draw(n, dtype=torch.float64)
        if skip == 0:
            u[:1] = u[:1].float()  # torch keeps the first point in its default dtype
        if prior:
            u = self.structure.believed(u, skip == 0, is_doubted(skip, n, doubted) if doubted else None)
        return self.structure.masked(self.structure.by_group(lambda p, column: p.from_uniform(column), u.to(device)))

    def in_the_middle(self, points: Tensor) -> Tensor:
        """Points with each parameter that gradients move, and of which nothing is believed, in its middle (n x d)."""
        unsaid = sorted({*self.structure.moving_columns} - {*self.structure.believed_columns})
        columns = torch.tensor(unsaid, dtype=torch.long, device=points.device)
        return self.structure.snap(points.index_fill(1, columns, 0.5))

    # --- neighbours --------------------------------------------------------------------------------------------------

    def neighbours(self, points: Tensor, n: int, generator: torch.Generator) -> Tensor:
        """Random neighbours of random rows of `points` (n x d); see `Points.neighbours`."""
        centres = torch.randint(len(points), (n,), generator=generator, device=generator.device)
        return self.neighbour_of_each(points[centres.to(points.device)], generator)

    def neighbour_of_each(self, points: Tensor, generator: torch.Generator) -> Tensor:
        """One random permitted neighbour of each point (n x d); see `Points.neighbour_of_each`."""
        neighbours = self._neighbour_of_each(points, generator)
        if not self.constraints.each:
            return neighbours
        for _ in range(TRIES):
            rows = (~self.constraints.permitted(neighbours)).nonzero().squeeze(-1)
            if not len(rows):
                return neighbours
            neighbours[rows] = self._neighbour_of_each(points[rows], generator)
        forbidden = ~self.constraints.permitted(neighbours)
        neighbours[forbidden] = self.structure.snap(points[forbidden])
        return neighbours

    def _neighbour_of_each(self, points: Tensor, generator: torch.Generator) -> Tensor:
        """One random neighbour of each point, permitted by constraints or not (n x d).

        Parameters that a change activates take random values.
        """
        structure = self.structure
        changed = _changed(points.shape, generator, structure.free_columns).to(points.device)
        neighbours = torch.where(changed, self._moved(points, generator), points)
        if structure.is_conditional:
            neighbours = structure.apply_fixed(neighbours)  # which may activate others, too
            activated = structure.active(neighbours) & ~structure.active(points)
            anywhere = self.draw(len(points), generator).to(points.device)
            neighbours = torch.where(activated, anywhere, neighbours)
        return structure.snap(neighbours)

    def _moved(self, points: Tensor, generator: torch.Generator) -> Tensor:
        """Points with every parameter moved (n x d); see `Parameter.moved`."""
        device = generator.device
        u, v = (torch.rand(points.shape, dtype=torch.float64, generator=generator, device=device) for _ in range(2))
        z = torch.randn(points.shape, dtype=torch.float64, generator=generator, device=device)
        draws = [each.to(points.device) for each in (u, v, random_steps(v, z))]
        return self.structure.by_group(lambda parameter, *columns: parameter.moved(*columns), points, *draws)

    def likelier_back(self, points: Tensor, neighbours: Tensor) -> Tensor:
        """Log ratio of the probabilities of the reverse and the forward moves (n); see `Points.likelier_back`.

        Parameters that a move activates or deactivates are left out: their values are uniform, by which densities are
        measured.
        """
        structure = self.structure
        ratios = structure.by_group(lambda parameter, *columns: parameter.likelier_back(*columns), points, neighbours)
        return torch.where(structure.active(points) & structure.active(neighbours), ratios, 0.0).sum(-1)

    # --- feasible points ---------------------------------------------------------------------------------------------

    def project_to_feasible(self, starts: Tensor, ends: Tensor) -> Tensor:
        """Permitted points on the segments from permitted points; see `Points.project_to_feasible`."""
        snap = self.structure.snap
        if not self.constraints.is_restricted:
            return snap(ends)
        starts, points = snap(starts), snap(ends).clone()  # `snap` may return its argument
        for step in range(1, HALVINGS + 1):
            rows = (~self.constraints.permitted(points)).nonzero().squeeze(-1)
            if not len(rows):
                return points
            share = 0.0 if step == HALVINGS else 0.5**step
            points[rows] = snap(starts[rows] + share * (ends[rows] - starts[rows]))
        return points

    def _first_permitted(self) -> Tensor:
        """Some permitted points, the same in every process (k x d)."""
        generator = torch.Generator().manual_seed(0)
        points = self.sample_any(KNOWN, generator)
        for group, constraints in self.constraints.groups:
            columns = torch.tensor(group)
            found = self._drawn(constraints, KNOWN, SEARCH, generator)
            if not len(found) and len(group) == len(self.structure):
                return self._enumerated()
            known = found[:, columns] if len(found) else self._of_group(group, constraints).known_points
            points[:, columns] = known[torch.arange(KNOWN) % len(known)]
        return points

    def _of_group(self, group: Sequence[int], constraints: Constraints) -> "Sampler":
        """The sampler of one group, whose space may be finite even if the whole one is not."""
        names = [self.structure.names[column] for column in group]
        parameters = {name: self.structure.parameters[name] for name in names}
        fixed = {name: value for name, value in self.structure.fixed.items() if name in names}
        structure = SpaceStructure(parameters, fixed)
        own = Constraints(constraints.each, structure)
        return Sampler(structure, own, Enumeration(structure, own))

    def _enumerated(self) -> Tensor:
        """Permitted points of a finite space, evenly spread over its enumeration."""
        cardinality = self.enumeration.cardinality
        if 0 < cardinality * len(self.structure) <= 1e8:
            points = self.enumeration.points()
            return points[torch.from_numpy(np.linspace(0, len(points) - 1, KNOWN).astype(np.int64))]
        what = "no configuration meets" if not cardinality else f"none of {SEARCH:,} random configurations meets"
        fixed = f" with the fixed values {self.structure.fixed}" if self.structure.is_fixed else ""
        rules = "; ".join(map(str, self.constraints.each))
        raise SpaceError(
            f"{what} the constraints{fixed}: {rules}. Loosen them, or correct those that contradict each other."
        )


def is_doubted(skip: int, n: int, every: int) -> Tensor:
    """Which of the points number `skip` ... of a sequence with a prior stay uniform (n booleans)."""
    return torch.arange(skip, skip + n) % every == every - 1


def _changed(shape: torch.Size, generator: torch.Generator, free: Sequence[int]) -> Tensor:
    """One or two random free columns of each row: n x d booleans on the generator's device."""
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
