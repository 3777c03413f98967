"""`SearchSpace`: named parameters, and the traffic between native configurations and points."""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from deepbore.errors import PointError, ShapeError, SpaceError
from deepbore.space import encoding
from deepbore.space.constraints import Constraint, Given
from deepbore.space.declaration import split
from deepbore.space.encoding import Params
from deepbore.space.enumeration import every_point
from deepbore.space.features import Features
from deepbore.space.neighbours import likelier_back, neighbour_of_each
from deepbore.space.parameters import Parameter
from deepbore.space.permitted import first_permitted, permitted_neighbours, permitted_sample, permitted_sobol
from deepbore.space.runs import run_by_run
from deepbore.space.structure import SpaceStructure

MOST_ENTRIES = 10**9  # of all points of a space together: 8 GB


class SearchSpace(SpaceStructure):
    """The domain of an optimisation: d named parameters, some perhaps conditional on others.

    A point is a float64 row of d numbers (see `deepbore.space.parameters`). Inactive parameters hold 0 in it and are
    left out of the configuration, so equal configurations are equal points. What takes points works on the device that
    they live on, and what draws them on the device of the generator; native configurations live on the CPU.

    Constraints forbid combinations, such as `"batch * width <= 4096"`: they are never proposed, and not taken as
    results. An expression holds where a parameter that it names is inactive; a function gets active parameters only.

    Args:
        parameters: name -> parameter, or pairs of them, in the order of a point's columns.
        constraints: what must hold: expressions over names of parameters (arithmetic, comparisons, `in`, and, or, not),
            and functions configuration -> True or False. A journal keeps expressions; functions it only names.
        fixed: name -> value, parameters that stand still where they are active; see `with_fixed`.

    Raises:
        SpaceError: for an empty space, a name that is no string or stands twice, a condition on an unknown or circular
            parent, an expression that can't be meant, or constraints that no configuration was found to meet.

    Example:
        >>> from deepbore import Categorical, Integer, Real
        >>> space = SearchSpace({"lr": Real(1e-5, 1e-1, log=True), "act": Categorical(["relu", "tanh"])})
        >>> space.decode(space.encode([{"lr": 0.001, "act": "tanh"}]))
        [{'lr': 0.001, 'act': 'tanh'}]
        >>> SearchSpace({"a": Integer(1, 9), "b": Integer(1, 9)}, constraints=["a < b", "a * b <= 20"]).cardinality
        19
    """

    def __init__(
        self,
        parameters: Mapping[str, Parameter] | Iterable[tuple[str, Parameter]],
        *,
        constraints: Sequence[Given | Constraint] | Given = (),
        fixed: Mapping[str, Any] | None = None,
    ):
        super().__init__(parameters, constraints, fixed)
        if self._constraints and self._constraints.are_known:
            self.known_points = first_permitted(self)

    def with_fixed(self, params: Mapping[str, Any]) -> "SearchSpace":
        """The same space, in which some parameters stand still at these values, where they are active, and no others.

        Points, features and the configurations that can be encoded are the same: only what is drawn differs.

        Args:
            params: name -> value; an empty one releases all.

        Raises:
            SpaceError: for an unknown name, a value outside, or values that constraints forbid.

        Example:
            >>> from deepbore import Integer
            >>> SearchSpace({"a": Integer(1, 9), "b": Integer(1, 3)}).with_fixed({"a": 5}).cardinality
            3
        """
        if params is None:
            raise SpaceError("fixed values are a dict, but got None. Give {} to release all.")
        return SearchSpace(self.parameters, constraints=self.constraints, fixed=params)

    @cached_property
    def released(self) -> "SearchSpace":
        """The same space, with nothing fixed."""
        return self.with_fixed({}) if self._still else self

    # --- native configurations <-> points ----------------------------------------------------------------------------

    def encode(self, configurations: Sequence[Mapping[str, Any]]) -> Tensor:
        """Configurations (n dicts) -> points (n x d).

        Raises:
            PointError: for an unknown, missing or inactive parameter, a value outside its parameter, or a combination
                that a constraint forbids.
        """
        return self._checked(encoding.encode(self, configurations))

    def encode_columns(self, columns: Mapping[str, Sequence[Any]]) -> Tensor:
        """Columns of native values (name -> n values; a dict or a DataFrame) -> points (n x d).

        What stands in a column where its parameter is inactive is ignored.

        Raises:
            PointError: for an unknown or missing column, columns of different length, a value outside, or a combination
                that a constraint forbids.
        """
        return self._checked(encoding.encode_columns(self, self._conditions, columns))

    def _checked(self, points: Tensor) -> Tensor:
        """The points. Raises PointError if a constraint forbids one."""
        if self._constraints:
            met = self._constraints.met(points, self.active(points), known_only=True)
            for row in np.flatnonzero(~met.all(1)):
                broken = self.constraints[int(met[row].argmin())]
                raise PointError(f"the constraint {str(broken)!r} forbids {self.decode(points[row : row + 1])[0]}.")
        return points

    def decode(self, points: Tensor) -> list[Params]:
        """Points (n x d) -> configurations (n dicts), numbers between two levels going to the nearer one."""
        self.check_points(points)
        return encoding.decode(self, points.detach().cpu())

    def decode_columns(self, points: Tensor) -> dict[str, list[Any]]:
        """Points (n x d) -> columns of native values (name -> n values), None where a parameter is inactive."""
        self.check_points(points)
        return encoding.decode_columns(self, points.detach().cpu())

    def identify(self, points: Tensor) -> list[Hashable]:
        """What tells two configurations apart: equal for two points exactly if they decode to equal values (n)."""
        self.check_points(points)
        return encoding.identify(self, points.detach().cpu())

    def check_points(self, points: Tensor) -> None:
        """Raises ShapeError unless points are a tensor, n x d."""
        if not isinstance(points, Tensor):
            raise ShapeError(f"points must be a tensor of shape n x {len(self)}, but got {points!r:.100}.")
        if points.ndim != 2 or points.shape[-1] != len(self):
            raise ShapeError(f"points must have shape n x {len(self)}, but got {tuple(points.shape)}.")

    # --- points ------------------------------------------------------------------------------------------------------

    def snap(self, points: Tensor) -> Tensor:
        """The points of the configurations that `points` decode to: levels rounded, inactive parameters 0 (n x d).

        Fixed parameters are put where they stand; what a constraint forbids stays forbidden (see `permitted`). Keeps
        gradients in the columns of real parameters.
        """
        return self._masked(run_by_run(self.runs, lambda p, column: p.from_level(p.to_level(column)), points))

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """n independent permitted points, uniform over each parameter's scale (n x d), on the generator's device."""
        return permitted_sample(self, n, generator) if self._constraints else self.sample_any(n, generator)

    def sample_any(self, n: int, generator: torch.Generator) -> Tensor:
        """As `sample`, whatever the constraints say."""
        return self._masked(self.draw(n, generator))

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """n independent values of every parameter, whether it would be active there or not (n x d)."""
        u = torch.rand((n, len(self)), dtype=torch.float64, generator=generator, device=generator.device)
        return run_by_run(self.runs, lambda p, column: p.from_uniform(column), u)

    def sobol(self, n: int, seed: int, skip: int = 0, device: torch.device | str = "cpu") -> Tensor:
        """Points number `skip` ... `skip` + n - 1 of the scrambled Sobol sequence of this seed (n x d).

        Those that constraints forbid are left out, and not counted.
        """
        if self._constraints:
            return permitted_sobol(self, n, seed, skip, device)
        return self.sobol_any(n, seed, skip, device)

    def sobol_any(self, n: int, seed: int, skip: int = 0, device: torch.device | str = "cpu") -> Tensor:
        """As `sobol`, whatever the constraints say."""
        if len(self) > SobolEngine.MAXDIM:  # beyond, torch knows no sequence, and random points are as good
            stream = torch.Generator().manual_seed(seed)
            return self.sample_any(skip + n, stream)[skip:].to(device)
        u = SobolEngine(len(self), scramble=True, seed=seed).fast_forward(skip).draw(n, dtype=torch.float64)
        if skip == 0:
            u[:1] = u[:1].float()  # which torch holds in its default dtype, whatever that is
        return self._masked(run_by_run(self.runs, lambda p, column: p.from_uniform(column), u.to(device)))

    def in_the_middle(self, points: Tensor) -> Tensor:
        """The points with each continuous parameter, unless it is fixed, in the middle of its scale (n x d)."""
        return self._masked(
            points.index_fill(1, torch.tensor(self.moving_columns, dtype=torch.long, device=points.device), 0.5)
        )

    def _masked(self, points: Tensor) -> Tensor:
        """The points with fixed parameters where they stand, and 0 in place of inactive ones."""
        points = self.stand_still(points) if self._still else points
        return torch.where(self.active(points), points, 0.0) if self.is_conditional else points

    def neighbours(self, points: Tensor, n: int, generator: torch.Generator) -> Tensor:
        """n random neighbours of the given points, each with one or two parameters changed (n x d).

        Categories move to any other level, what has levels in an order to any other with a liking for the next; the
        rest takes a Gaussian step whose scale is log-uniform between 1e-3 and 0.5, reflected at the bounds.

        Args:
            points: centres, k x d; each neighbour picks one at random.
            n: how many.
            generator: stream of random numbers, drawn on its own device.
        """
        self.check_points(points)
        centres = torch.randint(len(points), (n,), generator=generator, device=generator.device)
        return self.neighbour_of_each(points[centres.to(points.device)], generator)

    def neighbour_of_each(self, points: Tensor, generator: torch.Generator) -> Tensor:
        """One random neighbour of each point, in their order (n x d); see `neighbours`.

        Where constraints forbid several in a row it is the point itself.
        """
        self.check_points(points)
        once = partial(neighbour_of_each, self, generator=generator)
        return permitted_neighbours(self, points, once) if self._constraints else once(points)

    def likelier_back(self, points: Tensor, neighbours: Tensor) -> Tensor:
        """log q(neighbour -> point) - log q(point -> neighbour) of each point and its `neighbour_of_each` (n).

        What balances the moves of a Metropolis-Hastings step. Constraints that forbid neighbours are left out of it.
        """
        return likelier_back(self, points, neighbours)

    def enumerate(self) -> Tensor:
        """Every point of a finite space (cardinality x d), sorted by the columns.

        Raises:
            SpaceError: if a parameter is continuous, or the points would take more than 8 GB.
        """
        if any(self._layout.is_free(column) for column in self.continuous_columns) and math.isinf(self.cardinality):
            raise SpaceError("only a finite space can be enumerated, but this one has a continuous parameter.")
        if self.cardinality * len(self) > MOST_ENTRIES:
            raise SpaceError(
                f"at most {MOST_ENTRIES:,} entries can be enumerated, but the space has {self.cardinality:.3g} points "
                f"of {len(self)}. Use sample or sobol."
            )
        return self._every_permitted.clone() if self._constraints else every_point(self._layout)

    @cached_property
    def _every_permitted(self) -> Tensor:
        """What `enumerate` gives, kept where it takes more than it is: most combinations may be forbidden."""
        return every_point(self._layout)

    @property
    def features(self) -> Features:
        """A new first layer for a network on this space: points (n x d) -> features (n x e)."""
        return Features(self)

    # --- plain data --------------------------------------------------------------------------------------------------

    @classmethod
    def from_dict(cls, declared: Mapping[str, Any]) -> "SearchSpace":
        """The space that YAML or JSON describes.

        Args:
            declared: name -> {type: real | integer | ordinal | categorical, low, high, log, step | choices,
                when: {parent: values or comparison, ...}}; beside them `constraints: [expression, ...]`.

        Raises:
            SpaceError: for anything that does not make a valid space.

        Example:
            >>> SearchSpace.from_dict({"lr": {"type": "real", "low": 1e-5, "high": 0.1, "log": True}}).names
            ['lr']
        """
        parameters, constraints, fixed = split(declared)
        return cls(parameters, constraints=constraints, fixed=fixed)
