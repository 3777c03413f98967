"""`SearchSpace`: named parameters, and the traffic between native configurations and points."""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from deepbore.errors import ShapeError, SpaceError
from deepbore.space import encoding
from deepbore.space.conditions import Conditions
from deepbore.space.enumeration import every_point
from deepbore.space.features import Features
from deepbore.space.neighbours import neighbour_of_each
from deepbore.space.parameters import Parameter, parameter_from_dict
from deepbore.space.runs import Run, run_by_run, runs

Params = dict[str, Any]

COUNTABLE = 10**300  # configurations from which a space counts as infinite; floats end at 1.8e308
MOST_ENTRIES = 10**9  # of all points of a space together: 8 GB


class SearchSpace:
    """The domain of an optimisation: d named parameters, some perhaps conditional on others.

    A point is a float64 row of d numbers (see `deepbore.space.parameters`). Inactive parameters hold 0 in it and are
    left out of the configuration, so equal configurations are equal points. What takes points works on the device that
    they live on, and what draws them on the device of the generator; native configurations live on the CPU.

    Args:
        parameters: name -> parameter, or pairs of them, in the order of a point's columns.

    Raises:
        SpaceError: for an empty space, a name that is no string or stands twice, or a condition on an unknown,
            continuous or circular parent.

    Example:
        >>> from deepbore import Categorical, Real
        >>> space = SearchSpace({"lr": Real(1e-5, 1e-1, log=True), "act": Categorical(["relu", "tanh"])})
        >>> space.decode(space.encode([{"lr": 0.001, "act": "tanh"}]))
        [{'lr': 0.001, 'act': 'tanh'}]
    """

    def __init__(self, parameters: Mapping[str, Parameter] | Iterable[tuple[str, Parameter]]):
        self.parameters = _checked(list(parameters.items() if isinstance(parameters, Mapping) else parameters))
        self.names = list(self.parameters)
        self._columns = list(self.parameters.values())
        self._conditions = Conditions(self.parameters)

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

    def __deepcopy__(self, memo: dict[int, Any]) -> "SearchSpace":
        return self  # nothing in it changes

    @cached_property
    def is_continuous(self) -> bool:
        """Whether every parameter is continuous and unconditional."""
        return all(p.is_continuous and p.when is None for p in self._columns)

    @property
    def is_conditional(self) -> bool:
        """Whether any parameter carries a condition."""
        return bool(self._conditions.rules)

    @cached_property
    def continuous_columns(self) -> tuple[int, ...]:
        """Columns of the continuous parameters, conditional ones included."""
        return tuple(column for column, p in enumerate(self._columns) if p.is_continuous)

    @cached_property
    def runs(self) -> list[Run]:
        """The columns, in runs of neighbours that work alike."""
        return runs(self._columns)

    @cached_property
    def bounds(self) -> Tensor:
        """Least and greatest entries of a point, 2 x d: [0, 1] for numeric columns, [0, K - 1] for level indices."""
        return torch.tensor([[0.0] * len(self), [p.upper for p in self._columns]], dtype=torch.float64)

    @cached_property
    def cardinality(self) -> float:
        """The number of distinct configurations; `math.inf` if a parameter is continuous, or from 1e300 on."""
        count = self._conditions.count()
        return count if count < COUNTABLE else math.inf

    # --- native configurations <-> points ----------------------------------------------------------------------------

    def encode(self, configurations: Sequence[Mapping[str, Any]]) -> Tensor:
        """Configurations (n dicts) -> points (n x d).

        Raises:
            PointError: for an unknown, missing or inactive parameter, or a value outside its parameter.
        """
        return encoding.encode(self, configurations)

    def encode_columns(self, columns: Mapping[str, Sequence[Any]]) -> Tensor:
        """Columns of native values (name -> n values; a dict or a DataFrame) -> points (n x d).

        What stands in a column where its parameter is inactive is ignored.

        Raises:
            PointError: for an unknown or missing column, columns of different length, or a value outside.
        """
        return encoding.encode_columns(self, self._conditions, columns)

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
        return self._masked(run_by_run(self.runs, lambda p, column: p.from_level(p.to_level(column)), points))

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """n independent points, uniform over each parameter's scale (n x d), on the generator's device."""
        return self._masked(self.draw(n, generator))

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """n independent values of every parameter, whether it would be active there or not (n x d)."""
        u = torch.rand((n, len(self)), dtype=torch.float64, generator=generator, device=generator.device)
        return run_by_run(self.runs, lambda p, column: p.from_uniform(column), u)

    def sobol(self, n: int, seed: int, skip: int = 0, device: torch.device | str = "cpu") -> Tensor:
        """Points number `skip` ... `skip` + n - 1 of the scrambled Sobol sequence of this seed (n x d)."""
        u = SobolEngine(len(self), scramble=True, seed=seed).fast_forward(skip).draw(n, dtype=torch.float64)
        if skip == 0:
            u[:1] = u[:1].float()  # which torch holds in its default dtype, whatever that is
        return self._from_uniform(u.to(device))

    def _from_uniform(self, u: Tensor) -> Tensor:
        return self._masked(run_by_run(self.runs, lambda p, column: p.from_uniform(column), u))

    def _masked(self, points: Tensor) -> Tensor:
        """The points with 0 in place of inactive parameters."""
        return torch.where(self.active(points), points, 0.0) if self.is_conditional else points

    def neighbours(self, points: Tensor, n: int, generator: torch.Generator) -> Tensor:
        """n random neighbours of the given points, each with one or two parameters changed (n x d).

        Categories move to any other level, ordinals to any other with a liking for the next; numeric
        parameters take a Gaussian step whose scale is log-uniform between 1e-3 and 0.5, reflected at the bounds.

        Args:
            points: centres, k x d; each neighbour picks one at random.
            n: how many.
            generator: stream of random numbers, drawn on its own device.
        """
        self.check_points(points)
        centres = torch.randint(len(points), (n,), generator=generator, device=generator.device)
        return neighbour_of_each(self, points[centres.to(points.device)], generator)

    def neighbour_of_each(self, points: Tensor, generator: torch.Generator) -> Tensor:
        """One random neighbour of each point, in their order (n x d); see `neighbours`."""
        self.check_points(points)
        return neighbour_of_each(self, points, generator)

    def enumerate(self) -> Tensor:
        """Every point of a finite space (cardinality x d), sorted by the columns.

        Raises:
            SpaceError: if a parameter is continuous, or the points would take more than 8 GB.
        """
        if any(p.is_continuous for p in self._columns):
            raise SpaceError("only a finite space can be enumerated, but this one has a continuous parameter.")
        if self.cardinality * len(self) > MOST_ENTRIES:
            raise SpaceError(
                f"at most {MOST_ENTRIES:,} entries can be enumerated, but the space has {self.cardinality:.3g} points "
                f"of {len(self)}. Use sample or sobol."
            )
        return every_point(self._columns, self._conditions)

    @property
    def features(self) -> Features:
        """A new first layer for a network on this space: points (n x d) -> features (n x e)."""
        return Features(self)

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


def _checked(pairs: list[tuple[str, Parameter]]) -> dict[str, Parameter]:
    """The pairs as a dict. Raises SpaceError unless names and parameters are some."""
    if not pairs:
        raise SpaceError("a search space needs at least one parameter, but got none.")
    for name, parameter in pairs:
        if not isinstance(name, str) or not name:
            raise SpaceError(f"parameter names must be non-empty strings, but got {name!r}.")
        if not isinstance(parameter, Parameter):
            kinds = "Real, Integer, Ordinal or Categorical"
            raise SpaceError(f"parameter {name!r} must be a {kinds}, but got {type(parameter).__name__}.")
    if len(dict(pairs)) < len(pairs):
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise SpaceError(f"parameter names must differ, but {twice} stand more than once.")
    return dict(pairs)
