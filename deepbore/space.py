"""`SearchSpace`: named parameters, and the traffic between native configurations and points."""

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from deepbore.errors import PointError, ShapeError, SpaceError
from deepbore.features import Features
from deepbore.parameters import Categorical, Condition, Integer, Ordinal, Parameter, Real

__all__ = ["Categorical", "Condition", "Integer", "Ordinal", "Real", "SearchSpace"]

Params = dict[str, Any]
SMALLEST_STEP, LARGEST_STEP = 1e-3, 0.5  # of a neighbour along a numeric parameter, in [0, 1]


class SearchSpace:
    """The domain of an optimisation: d named parameters, some perhaps conditional on others.

    A point is a float64 row of d numbers (see `deepbore.parameters`). Inactive parameters hold 0 in it and are left
    out of the configuration, so equal configurations are equal points.

    Args:
        parameters: name -> parameter, in the order of a point's columns.

    Raises:
        SpaceError: for an empty space, a name that is no string, or a condition on an unknown, continuous, later
            deactivated or circular parent.

    Example:
        >>> space = SearchSpace({"lr": Real(1e-5, 1e-1, log=True), "act": Categorical(["relu", "tanh"])})
        >>> space.decode(space.encode([{"lr": 0.001, "act": "tanh"}]))
        [{'lr': 0.001, 'act': 'tanh'}]
    """

    def __init__(self, parameters: Mapping[str, Parameter]):
        self.parameters = dict(parameters)
        self.names = list(self.parameters)
        self._check()
        self._by_parent = {name: self._children(name) for name in self.names}
        self._order = [name for root in self._roots for name in self._below(root)]  # parents before children
        if len(self._order) < len(self.names):
            stuck = [name for name in self.names if name not in self._order]
            raise SpaceError(f"conditions must not form a circle, but these parameters wait for each other: {stuck}.")

    def _check(self) -> None:
        if not self.parameters:
            raise SpaceError("a search space needs at least one parameter, but got none.")
        for name, parameter in self.parameters.items():
            if not isinstance(name, str) or not name:
                raise SpaceError(f"parameter names must be non-empty strings, but got {name!r}.")
            if not isinstance(parameter, Parameter):
                kinds = "Real, Integer, Ordinal or Categorical"
                raise SpaceError(f"parameter {name!r} must be a {kinds}, but got {type(parameter).__name__}.")
            if parameter.when is not None:
                self._check_condition(name, parameter.when)

    def _check_condition(self, name: str, when: Condition) -> None:
        parent = self.parameters.get(when.parent)
        if parent is None:
            raise SpaceError(f"{name!r} is conditional on {when.parent!r}, which is not among {self.names}.")
        if parent.levels is None:
            raise SpaceError(f"{name!r} is conditional on {when.parent!r}, which is continuous and so has no values to name.")
        try:
            parent.encode(when.values)
        except PointError as error:
            raise SpaceError(f"the condition of {name!r} names impossible values of {when.parent!r}: {error}") from None

    # --- structure ---------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """d, the number of parameters."""
        return len(self.names)

    def __repr__(self) -> str:
        return f"SearchSpace({self.parameters})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SearchSpace) and list(self.parameters.items()) == list(other.parameters.items())

    def __hash__(self) -> int:
        return hash(tuple(self.names))

    @cached_property
    def is_continuous(self) -> bool:
        """Whether every parameter is real and unconditional."""
        return all(isinstance(p, Real) and p.when is None for p in self.parameters.values())

    @cached_property
    def bounds(self) -> Tensor:
        """Least and greatest entries of a point, 2 x d: [0, 1] for numeric columns, [0, K - 1] for level indices."""
        upper = [1.0 if isinstance(p, (Real, Integer)) else float((p.levels or 2) - 1) for p in self._columns]
        return torch.tensor([[0.0] * len(self), upper], dtype=torch.float64)

    @cached_property
    def cardinality(self) -> float:
        """The number of distinct configurations; `math.inf` if a parameter is continuous."""
        return math.prod(self._count(root) for root in self._roots)

    def _count(self, name: str) -> float:
        """Configurations of a parameter and all that depends on it."""
        levels, children = self.parameters[name].levels, self._by_parent[name]
        if levels is None:
            return math.inf
        named = {value for child in children for value in self._when(child).values}
        with_children = sum(math.prod(self._count(c) for c in children if v in self._when(c).values) for v in named)
        return levels - len(named) + with_children

    @property
    def _columns(self) -> list[Parameter]:
        return list(self.parameters.values())

    @property
    def _roots(self) -> list[str]:
        return [name for name in self.names if self.parameters[name].when is None]

    def _when(self, name: str) -> Condition:
        when = self.parameters[name].when
        assert when is not None
        return when

    def _children(self, parent: str) -> list[str]:
        return [name for name, p in self.parameters.items() if p.when is not None and p.when.parent == parent]

    def _below(self, name: str) -> list[str]:
        return [name, *(below for child in self._by_parent[name] for below in self._below(child))]

    # --- native configurations <-> points ----------------------------------------------------------------------------

    def encode(self, configurations: Sequence[Mapping[str, Any]]) -> Tensor:
        """Configurations (n dicts) -> points (n x d).

        Raises:
            PointError: for an unknown, missing or inactive parameter, or a value outside its parameter.
        """
        points = torch.zeros(len(configurations), len(self), dtype=torch.float64)
        for row, params in enumerate(configurations):
            self._check_names(params)
            for name, value in params.items():
                points[row, self.names.index(name)] = self._encode_column(name, [value])[0]
        for params, active in zip(configurations, self.active(points).tolist(), strict=True):
            self._check_active(params, active)
        return points

    def encode_columns(self, columns: Mapping[str, Sequence[Any]]) -> Tensor:
        """Columns of native values (name -> n values; a dict or a DataFrame) -> points (n x d).

        What stands in a column where its parameter is inactive is ignored, as long as it is None, NaN or a value of
        the parameter.

        Raises:
            PointError: for an unknown or missing column, columns of different length, or a value outside.
        """
        self._check_names(columns)
        if missing := [name for name in self.names if name not in columns]:
            raise PointError(f"every parameter needs a column, but {missing} are missing.")
        lengths = {name: len(columns[name]) for name in self.names}
        if len(set(lengths.values())) > 1:
            raise PointError(f"columns must have one length, but got {lengths}.")
        points = torch.zeros(next(iter(lengths.values())), len(self), dtype=torch.float64)
        for name in self._order:
            active = self.active(points)[:, self.names.index(name)]
            values = columns[name]
            if not bool(active.all()):
                values = [value for value, on in zip(values, active.tolist(), strict=True) if on]
            points[active, self.names.index(name)] = self._encode_column(name, values)
        return points

    def decode(self, points: Tensor) -> list[Params]:
        """Points (n x d) -> configurations (n dicts), numbers between two levels going to the nearer one."""
        self._check_points(points)
        points = points.detach().cpu()
        active = self.active(points).tolist()
        natives = [p.decode(points[:, column]) for column, p in enumerate(self._columns)]
        rows = zip(zip(*natives, strict=True), active, strict=True)
        return [{n: v for n, v, on in zip(self.names, row, act, strict=True) if on} for row, act in rows]

    def _encode_column(self, name: str, values: Sequence[Any]) -> Tensor:
        try:
            return self.parameters[name].encode(values)
        except PointError as error:
            raise PointError(f"parameter {name!r}: {error}") from None

    def _check_names(self, names: Any) -> None:
        if unknown := [name for name in names if name not in self.parameters]:
            raise PointError(f"parameters must be among {self.names}, but got {unknown}.")

    def _check_active(self, params: Mapping[str, Any], active: Sequence[bool]) -> None:
        wanted = {name for name, on in zip(self.names, active, strict=True) if on}
        if missing := wanted - set(params):
            raise PointError(f"every active parameter needs a value, but {sorted(missing)} have none in {dict(params)}.")
        if surplus := set(params) - wanted:
            raise PointError(f"inactive parameters must be left out, but {sorted(surplus)} stand in {dict(params)}.")

    def _check_points(self, points: Tensor) -> None:
        if points.ndim != 2 or points.shape[-1] != len(self):
            raise ShapeError(f"points must have shape n x {len(self)}, but got {tuple(points.shape)}.")

    # --- points ------------------------------------------------------------------------------------------------------

    def active(self, points: Tensor) -> Tensor:
        """Which parameters are active in each point: n x d booleans."""
        active = torch.ones(points.shape, dtype=torch.bool, device=points.device)
        for name in self._order:
            if (when := self.parameters[name].when) is None:
                continue
            parent, column = self.names.index(when.parent), self.names.index(name)
            level = self.parameters[when.parent].to_level(points[..., parent])
            places = self.parameters[when.parent].to_level(self.parameters[when.parent].encode(when.values)).tolist()
            matches = torch.stack([level == place for place in places]).any(0)
            active[..., column] = active[..., parent] & matches
        return active

    def snap(self, points: Tensor) -> Tensor:
        """The points of the configurations that `points` decode to: levels rounded, inactive parameters 0 (n x d).

        Keeps gradients in the columns of real parameters.
        """
        columns = [p.from_level(p.to_level(points[..., i])) for i, p in enumerate(self._columns)]
        snapped = torch.stack(columns, dim=-1)
        return snapped if not self._conditional else snapped * self.active(snapped)

    def identify(self, points: Tensor) -> list[Hashable]:
        """What tells two configurations apart: equal for two points exactly if they decode to equal values (n)."""
        points = points.detach().cpu()
        active = self.active(points).T.tolist() if self._conditional else None
        columns: list[list[Any]] = []
        for i, p in enumerate(self._columns):
            values = p.decode(points[:, i]) if isinstance(p, Real) else p.to_level(points[:, i]).tolist()
            columns.append(values if active is None else [v if on else None for v, on in zip(values, active[i], strict=True)])
        return list(zip(*columns, strict=True))

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """n independent points, uniform over each parameter's scale (n x d)."""
        return self._from_uniform(torch.rand(n, len(self), dtype=torch.float64, generator=generator))

    def sobol(self, n: int, seed: int, skip: int = 0) -> Tensor:
        """Points number `skip` ... `skip` + n - 1 of the scrambled Sobol sequence of this seed (n x d)."""
        engine = SobolEngine(len(self), scramble=True, seed=seed)
        return self._from_uniform(engine.fast_forward(skip).draw(n, dtype=torch.float64))

    def _from_uniform(self, u: Tensor) -> Tensor:
        points = torch.stack([p.from_uniform(u[:, i]) for i, p in enumerate(self._columns)], dim=-1)
        return points * self.active(points)

    def neighbours(self, points: Tensor, n: int, generator: torch.Generator) -> Tensor:
        """n random neighbours of the given points, each with one or two parameters changed (n x d).

        Categories move to any other level, ordinals to any other with a liking for the next; numeric
        parameters take a Gaussian step whose scale is log-uniform between 1e-3 and 0.5, reflected at the bounds.

        Args:
            points: centres, k x d; each neighbour picks one at random.
        """
        self._check_points(points)
        d = len(self)
        centres = points[torch.randint(len(points), (n,), generator=generator)]
        first = torch.randint(d, (n, 1), generator=generator)
        second = torch.randint(d, (n, 1), generator=generator)
        both = torch.rand(n, 1, generator=generator) < 0.5
        columns = torch.arange(d)
        changed = (columns == first) | ((columns == second) & both)
        moved = torch.where(changed, self._moved(centres, generator), centres)
        if self._conditional:  # what the change has switched on starts anywhere
            switched_on = self.active(moved) & ~self.active(centres)
            moved = torch.where(switched_on, self.sample(n, generator), moved)
        return self.snap(moved)

    def _moved(self, points: Tensor, generator: torch.Generator) -> Tensor:
        """Every parameter of every point moved to a near or another value."""
        u, v = (torch.rand(points.shape, dtype=torch.float64, generator=generator) for _ in range(2))
        scale = SMALLEST_STEP * (LARGEST_STEP / SMALLEST_STEP) ** v
        stepped = points + scale * torch.randn(points.shape, dtype=torch.float64, generator=generator)
        moved = 1 - (stepped % 2 - 1).abs()  # mirrored at 0 and 1
        for column in self._with_levels:
            moved[:, column] = self._other_level(column, points[:, column], u[:, column], v[:, column])
        return moved

    def _other_level(self, column: int, place: Tensor, u: Tensor, v: Tensor) -> Tensor:
        """Another level of a parameter: half of the time the next one up or down, where levels have an order."""
        parameter = self._columns[column]
        count, level = parameter.levels or 1, parameter.to_level(place)
        other = (u * (count - 1)).floor().clamp(max=count - 2)
        other = other + (other >= level)
        if not isinstance(parameter, Categorical):
            step = torch.where(u < 0.5, -1.0, 1.0)
            beside = torch.where((level + step < 0) | (level + step >= count), level - step, level + step)
            other = torch.where(v < 0.5, beside, other)
        return parameter.from_level(other)

    @cached_property
    def _with_levels(self) -> list[int]:
        return [i for i, p in enumerate(self._columns) if p.levels is not None]

    @cached_property
    def _conditional(self) -> list[int]:
        return [i for i, p in enumerate(self._columns) if p.when is not None]

    def enumerate(self) -> Tensor:
        """Every point of a finite space (cardinality x d).

        Raises:
            SpaceError: if a parameter is continuous.
        """
        if math.isinf(self.cardinality):
            raise SpaceError("only a finite space can be enumerated, but this one has a continuous parameter.")
        columns = [p.from_level(torch.arange(p.levels or 0, dtype=torch.float64)) for p in self._columns]
        grid = torch.cartesian_prod(*columns).reshape(-1, len(self))
        return grid if not self._conditional else torch.unique(grid * self.active(grid), dim=0)

    @property
    def features(self) -> Features:
        """A new first layer for a network on this space: points (n x d) -> features (n x e)."""
        return Features(self._columns, self._conditional, self.active)

    # --- plain data --------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The declaration as plain JSON data; `from_dict` takes it back."""
        return {name: parameter.to_dict() for name, parameter in self.parameters.items()}

    @classmethod
    def from_dict(cls, declared: Mapping[str, Mapping[str, Any]]) -> "SearchSpace":
        """The space that YAML or JSON describes.

        Args:
            declared: name -> {type: real | integer | ordinal | categorical, low, high, log | choices,
                when: {parent: [values]}}.

        Raises:
            SpaceError: for anything that does not make a valid space.

        Example:
            >>> SearchSpace.from_dict({"lr": {"type": "real", "low": 1e-5, "high": 0.1, "log": True}}).names
            ['lr']
        """
        for name, settings in declared.items():
            if not isinstance(settings, Mapping):
                raise SpaceError(f"parameter {name!r} must be declared by a mapping with a type, but got {settings!r}.")
        return cls({name: Parameter.from_dict(name, settings) for name, settings in declared.items()})
