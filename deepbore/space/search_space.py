"""`SearchSpace`: named parameters, and the traffic between native configurations and points."""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from deepbore.errors import PointError, ShapeError, SpaceError
from deepbore.space.conditions import Conditions
from deepbore.space.features import Features
from deepbore.space.neighbours import moved
from deepbore.space.parameters import Categorical, Condition, Integer, Ordinal, Parameter, Real, parameter_from_dict

__all__ = ["Categorical", "Condition", "Integer", "Ordinal", "Real", "SearchSpace"]

Params = dict[str, Any]


class SearchSpace:
    """The domain of an optimisation: d named parameters, some perhaps conditional on others.

    A point is a float64 row of d numbers (see `deepbore.space.parameters`). Inactive parameters hold 0 in it and are left
    out of the configuration, so equal configurations are equal points.

    Args:
        parameters: name -> parameter, or pairs of them, in the order of a point's columns.

    Raises:
        SpaceError: for an empty space, a name that is no string or stands twice, or a condition on an unknown,
            continuous or circular parent.

    Example:
        >>> space = SearchSpace({"lr": Real(1e-5, 1e-1, log=True), "act": Categorical(["relu", "tanh"])})
        >>> space.decode(space.encode([{"lr": 0.001, "act": "tanh"}]))
        [{'lr': 0.001, 'act': 'tanh'}]
    """

    def __init__(self, parameters: Mapping[str, Parameter] | Iterable[tuple[str, Parameter]]):
        pairs = list(parameters.items() if isinstance(parameters, Mapping) else parameters)
        self.parameters: dict[str, Parameter] = dict(pairs)
        if len(self.parameters) < len(pairs):
            names = [name for name, _ in pairs]
            twice = sorted({name for name in names if names.count(name) > 1})
            raise SpaceError(f"parameter names must differ, but {twice} stand more than once.")
        self.names = list(self.parameters)
        self._check()
        self._conditions = Conditions(self.parameters)

    def _check(self) -> None:
        if not self.parameters:
            raise SpaceError("a search space needs at least one parameter, but got none.")
        for name, parameter in self.parameters.items():
            if not isinstance(name, str) or not name:
                raise SpaceError(f"parameter names must be non-empty strings, but got {name!r}.")
            if not isinstance(parameter, Parameter):
                kinds = "Real, Integer, Ordinal or Categorical"
                raise SpaceError(f"parameter {name!r} must be a {kinds}, but got {type(parameter).__name__}.")

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
        return all(p.is_continuous and p.when is None for p in self.parameters.values())

    @cached_property
    def continuous_columns(self) -> tuple[int, ...]:
        """Columns of the continuous parameters, conditional ones included."""
        return tuple(column for column, p in enumerate(self.parameters.values()) if p.is_continuous)

    @cached_property
    def bounds(self) -> Tensor:
        """Least and greatest entries of a point, 2 x d: [0, 1] for numeric columns, [0, K - 1] for level indices."""
        return torch.tensor([[0.0] * len(self), [p.upper for p in self._columns]], dtype=torch.float64)

    @cached_property
    def cardinality(self) -> float:
        """The number of distinct configurations; `math.inf` if a parameter is continuous."""
        return self._conditions.count()

    @property
    def _columns(self) -> list[Parameter]:
        return list(self.parameters.values())

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
        for name in self._conditions.order:
            active = self.active(points)[:, self.names.index(name)]
            values = columns[name]
            if not bool(active.all()):
                values = [value for value, on in zip(values, active.tolist(), strict=True) if on]
            points[active, self.names.index(name)] = self._encode_column(name, values)
        return points

    def decode(self, points: Tensor) -> list[Params]:
        """Points (n x d) -> configurations (n dicts), numbers between two levels going to the nearer one."""
        self.check_points(points)
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
            raise PointError(
                f"every active parameter needs a value, but {sorted(missing)} have none in {dict(params)}."
            )
        if surplus := set(params) - wanted:
            raise PointError(f"inactive parameters must be left out, but {sorted(surplus)} stand in {dict(params)}.")

    def check_points(self, points: Tensor) -> None:
        """Raises ShapeError unless points are n x d."""
        if points.ndim != 2 or points.shape[-1] != len(self):
            raise ShapeError(f"points must have shape n x {len(self)}, but got {tuple(points.shape)}.")

    # --- points ------------------------------------------------------------------------------------------------------

    def active(self, points: Tensor) -> Tensor:
        """Which parameters are active in each point: n x d booleans."""
        return self._conditions.active(points)

    def snap(self, points: Tensor) -> Tensor:
        """The points of the configurations that `points` decode to: levels rounded, inactive parameters 0 (n x d).

        Keeps gradients in the columns of real parameters.
        """
        columns = [p.from_level(p.to_level(points[..., i])) for i, p in enumerate(self._columns)]
        return self._masked(torch.stack(columns, dim=-1))

    def identify(self, points: Tensor) -> list[Hashable]:
        """What tells two configurations apart: equal for two points exactly if they decode to equal values (n)."""
        points = points.detach().cpu()
        active = self.active(points).T.tolist() if self._conditions.columns else None
        columns: list[list[Any]] = []
        for i, p in enumerate(self._columns):
            values = p.decode(points[:, i]) if isinstance(p, Real) else p.to_level(points[:, i]).tolist()
            columns.append(
                values if active is None else [v if on else None for v, on in zip(values, active[i], strict=True)]
            )
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
        return self._masked(points)

    def _masked(self, points: Tensor) -> Tensor:
        """The points with 0 in place of inactive parameters."""
        return points * self.active(points) if self._conditions.columns else points

    def neighbours(self, points: Tensor, n: int, generator: torch.Generator) -> Tensor:
        """n random neighbours of the given points, each with one or two parameters changed (n x d).

        Categories move to any other level, ordinals to any other with a liking for the next; numeric
        parameters take a Gaussian step whose scale is log-uniform between 1e-3 and 0.5, reflected at the bounds.

        Args:
            points: centres, k x d; each neighbour picks one at random.
        """
        self.check_points(points)
        return self.neighbour_of_each(points[torch.randint(len(points), (n,), generator=generator)], generator)

    def neighbour_of_each(self, points: Tensor, generator: torch.Generator) -> Tensor:
        """One random neighbour of each point, in their order (n x d); see `neighbours`."""
        n, d = points.shape
        first = torch.randint(d, (n, 1), generator=generator)
        second = torch.randint(d, (n, 1), generator=generator)
        both = torch.rand(n, 1, generator=generator) < 0.5
        columns = torch.arange(d)
        changed = (columns == first) | ((columns == second) & both)
        neighbours = torch.where(changed, moved(self._columns, points, generator), points)
        if self._conditions.columns:  # what the change has switched on starts anywhere
            switched_on = self.active(neighbours) & ~self.active(points)
            neighbours = torch.where(switched_on, self.sample(n, generator), neighbours)
        return self.snap(neighbours)

    def enumerate(self) -> Tensor:
        """Every point of a finite space (cardinality x d).

        Raises:
            SpaceError: if a parameter is continuous.
        """
        if math.isinf(self.cardinality):
            raise SpaceError("only a finite space can be enumerated, but this one has a continuous parameter.")
        columns = [p.from_level(torch.arange(p.levels or 0, dtype=torch.float64)) for p in self._columns]
        grid = torch.cartesian_prod(*columns).reshape(-1, len(self))
        return torch.unique(self._masked(grid), dim=0) if self._conditions.columns else grid

    @property
    def features(self) -> Features:
        """A new first layer for a network on this space: points (n x d) -> features (n x e)."""
        return Features(self._columns, self._conditions.columns, self.active)

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
        return cls({name: parameter_from_dict(name, settings) for name, settings in declared.items()})
