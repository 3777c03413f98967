"""`SpaceStructure`: the columns of a space's points, their conditions and fixed values."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, Self

import torch
from torch import Tensor

from deepbore.errors import PointError, SpaceError
from deepbore.space.conditions import Conditions
from deepbore.space.parameters import Parameter, parameter_from_dict
from deepbore.space.parameters.base import UNSET
from deepbore.text import is_writable

HIGH = 10  # number of real parameters from which a space is high-dimensional, see docs/ablation.md


@dataclass(frozen=True)
class ColumnGroup:
    """Neighbouring columns of points whose parameters are equal in `Parameter.alike`, to be processed in one call.

    Args:
        parameter: the first of them, whose methods serve all.
        columns: the columns.
    """

    parameter: Parameter
    columns: slice


class SpaceStructure:
    """The parameters of a space as columns of points: which are active, fixed, continuous or tied to each other.

    Args:
        parameters: name -> parameter, or pairs of them, in the order of a point's columns.
        fixed: name -> value of fixed parameters.

    Attributes:
        parameters: name -> parameter.
        names: names of the columns.
        of_column: parameters of the columns.
        conditions: dependencies between the columns.
        fixed_entries: column -> entry of a point, of fixed parameters.
        column_groups: the columns, in groups that are processed together.
        is_conditional: whether any parameter has a condition.
        is_fixed: whether any parameter is fixed.

    Raises:
        SpaceError: for an empty space, a name that is no string or not unique, an invalid condition or fixed value.
    """

    def __init__(
        self,
        parameters: Mapping[str, Parameter] | Iterable[tuple[str, Parameter]],
        fixed: Mapping[str, Any] | None = None,
    ):
        self.parameters = _checked_parameters(parameters)
        self.names = list(self.parameters)
        self.of_column = list(self.parameters.values())
        self.conditions = Conditions(self.parameters)
        self.fixed_entries = _checked_fixed(fixed or {}, self.parameters)
        self.column_groups = _column_groups(self.of_column)
        self.is_conditional, self.is_fixed = bool(self.conditions.rules), bool(self.fixed_entries)

    def __len__(self) -> int:
        """d, the number of parameters."""
        return len(self.names)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # immutable

    # --- columns -----------------------------------------------------------------------------------------------------

    @cached_property
    def is_continuous(self) -> bool:
        """Whether every parameter is continuous and unconditional."""
        return all(parameter.is_continuous and parameter.when is None for parameter in self.of_column)

    @cached_property
    def is_high_dimensional(self) -> bool:
        """Whether there are ten parameters or more, all of them ordered and unconditional."""
        return len(self) >= HIGH and all(each.is_ordered and each.when is None for each in self.of_column)

    @cached_property
    def continuous_columns(self) -> tuple[int, ...]:
        """Columns of continuous parameters, including conditional ones."""
        return tuple(column for column, parameter in enumerate(self.of_column) if parameter.is_continuous)

    @cached_property
    def library_columns(self) -> tuple[int, ...]:
        """Columns of libraries that are not fixed."""
        libraries = (column for column, parameter in enumerate(self.of_column) if parameter.is_library)
        return tuple(column for column in libraries if column not in self.fixed_entries)

    @cached_property
    def moving_columns(self) -> tuple[int, ...]:
        """Columns of continuous parameters that are not fixed."""
        climbing = (column for column, parameter in enumerate(self.of_column) if parameter.climbs)
        return tuple(column for column in climbing if column not in self.fixed_entries)

    @cached_property
    def believed_columns(self) -> tuple[int, ...]:
        """Columns of parameters of whose best values something is believed, and that are not fixed."""
        return tuple(column for column in self.free_columns if self.of_column[column].belief is not None)

    @cached_property
    def free_columns(self) -> tuple[int, ...]:
        """Columns of parameters that are not fixed."""
        return tuple(column for column in range(len(self)) if column not in self.fixed_entries)

    @cached_property
    def unused_columns(self) -> frozenset[int]:
        """Columns of parameters that the fixed values make inactive everywhere."""
        conditional = self.conditions.columns if self.is_fixed else []
        return frozenset(c for c in conditional if not self.conditions.is_possible(c, self.fixed_levels))

    @cached_property
    def bounds(self) -> Tensor:
        """Least and greatest entries of a point (2 x d)."""
        entries = self.fixed_entries
        least = [entries.get(column, 0.0) for column in range(len(self))]
        greatest = [entries.get(column, parameter.upper) for column, parameter in enumerate(self.of_column)]
        return torch.tensor([least, greatest], dtype=torch.float64)

    def tied_columns(self, ties: Iterable[Sequence[int]]) -> list[list[int]]:
        """The columns in independent groups: conditions and other ties connect columns of the same group only.

        Within a group parents come before their children. Columns of one tie are close to each other, then columns
        with fewer descendants come first, so that a search through the group keeps few of them open.

        Args:
            ties: columns that must be in one group, such as those of a constraint.
        """
        ties = list(ties)
        root_of = _roots(len(self), [*((c, *self.conditions.parents(c)) for c in self.conditions.columns), *ties])
        groups: dict[int, list[int]] = {}
        for column in self._search_order(ties):
            groups.setdefault(root_of[column], []).append(column)
        return list(groups.values())

    def _search_order(self, ties: Sequence[Sequence[int]]) -> list[int]:
        tie_of: dict[int, int] = {}
        for place, columns in enumerate(ties):
            for column in columns:
                tie_of.setdefault(column, place)
        descendants = dict.fromkeys(range(len(self)), 1)  # with the column itself
        for column in reversed(self.conditions.order):
            for parent in self.conditions.parents(column):
                descendants[parent] += descendants[column]
        return self.conditions.parents_first(lambda column: (tie_of.get(column, len(ties)), descendants[column]))

    # --- fixed values ------------------------------------------------------------------------------------------------

    @cached_property
    def fixed(self) -> dict[str, Any]:
        """Name -> native value of fixed parameters."""
        return {
            self.names[column]: self.of_column[column].decode(torch.tensor([entry], dtype=torch.float64))[0]
            for column, entry in self.fixed_entries.items()
        }

    @cached_property
    def fixed_levels(self) -> dict[int, float]:
        """Column -> level that conditions compare, of fixed parameters."""
        return {
            column: float(self.conditions.level(column, torch.tensor([entry], dtype=torch.float64))[0])
            for column, entry in self.fixed_entries.items()
        }

    def without_unused(self, params: Mapping[str, Any], surely: bool = False) -> dict[str, Any]:
        """Those of some parameters' values that may be active beside the others, or surely are (name -> value)."""
        levels: dict[int, float] = {}
        kept = {}
        for column in self.conditions.order:
            name, parents = self.names[column], self.conditions.parents(column)
            is_decided = not surely or all(parent in levels for parent in parents)
            if name in params and is_decided and self.conditions.is_possible(column, levels):
                entry = self.of_column[column].encode([params[name]])
                levels[column] = float(self.conditions.level(column, entry)[0])
                kept[name] = params[name]
        return {name: kept[name] for name in params if name in kept}

    def with_parents(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Some parameters' values with those of their parents, where there is only one that makes them active.

        Raises:
            PointError: for a parameter whose parent is missing, and may have several values.
        """
        complete = dict(params)
        for column in reversed(self.conditions.order):
            for rule in self.conditions.rules.get(column, ()) if self.names[column] in complete else ():
                parent, (first, last) = self.names[rule.parent], rule.spans[0]
                if parent in complete:
                    continue
                if len(rule.spans) > 1 or first != last or self.of_column[rule.parent].is_continuous:
                    raise PointError(
                        f"{self.names[column]!r} is active for some values of {parent!r} only, but got {dict(params)}. "
                        f"Give {parent!r}, too."
                    )
                level = self.of_column[rule.parent].from_level(torch.tensor([first], dtype=torch.float64))
                complete[parent] = self.of_column[rule.parent].decode(level)[0]
        return complete

    def is_unbounded(self, column: int) -> bool:
        """Whether a column has infinitely many values: it is continuous and not fixed."""
        return self.of_column[column].is_continuous and column not in self.fixed_entries

    # --- points ------------------------------------------------------------------------------------------------------

    def active(self, points: Tensor) -> Tensor:
        """Which parameters are active in each point (n x d booleans)."""
        return self.conditions.active(points)

    def by_group(self, work: Callable[..., Tensor], *points: Tensor) -> Tensor:
        """`work(parameter, *columns)` of each column group, concatenated.

        Args:
            work: a parameter, and the columns of its group in each of `points` (... x width) -> ... x width.
            points: ... x d each.
        """
        if len(self.column_groups) == 1:
            return work(self.column_groups[0].parameter, *points)
        found = [work(group.parameter, *(each[..., group.columns] for each in points)) for group in self.column_groups]
        return torch.cat(found, dim=-1)

    def believed(self, u: Tensor, likeliest_first: bool = False, doubted: Tensor | None = None) -> Tensor:
        """Uniform numbers (n x d) with the distribution of what is believed of the best values, column by column.

        Args:
            u: from which `Parameter.from_uniform` makes entries.
            likeliest_first: whether the first row has the likeliest numbers.
            doubted: rows that stay uniform, n booleans; None for none.
        """
        even, u = u, u.clone()
        for column in self.believed_columns:
            belief = self.of_column[column].belief
            assert belief is not None
            u[:, column] = belief.quantile(u[:, column])
            if likeliest_first:
                u[:1, column] = belief.mode
        return u if doubted is None else torch.where(doubted[:, None], even, u)

    def log_priors(self, points: Tensor) -> Tensor:
        """Log densities of the entries of points (n x d) in the b believed columns, 0 where inactive (n x b)."""
        if not self.believed_columns:
            return torch.zeros(len(points), 0, dtype=torch.float64, device=points.device)
        each = [self.of_column[column].log_prior(points[:, column].double()) for column in self.believed_columns]
        found = torch.stack(each, dim=-1)
        if not self.is_conditional:
            return found
        return torch.where(self.active(points)[:, list(self.believed_columns)], found, 0.0)

    def snap(self, points: Tensor) -> Tensor:
        """Points with levels rounded, fixed parameters at their values, and inactive parameters 0 (n x d)."""
        return self.masked(self.by_group(lambda p, column: p.from_level(p.to_level(column)), points))

    def masked(self, points: Tensor) -> Tensor:
        """Points with fixed parameters at their values, and inactive parameters 0 (n x d)."""
        points = self.apply_fixed(points)
        return torch.where(self.active(points), points, 0.0) if self.is_conditional else points

    def apply_fixed(self, points: Tensor) -> Tensor:
        """Points with fixed parameters at their values, active or not (n x d)."""
        if not self.is_fixed:
            return points
        is_fixed, entries = (each.to(points.device) for each in self._fixed_tensors)
        return torch.where(is_fixed, entries.to(points), points)

    @cached_property
    def _fixed_tensors(self) -> tuple[Tensor, Tensor]:
        """Whether each column is fixed, and its entry (d each)."""
        columns = range(len(self))
        entries = torch.tensor([self.fixed_entries.get(column, 0.0) for column in columns], dtype=torch.float64)
        return torch.tensor([column in self.fixed_entries for column in columns]), entries


def _column_groups(parameters: Sequence[Parameter]) -> list[ColumnGroup]:
    """The columns in as few groups as possible."""
    groups, start = [], 0
    for _, alike in groupby(parameters, lambda parameter: parameter.alike):
        members = list(alike)
        groups.append(ColumnGroup(members[0], slice(start, start + len(members))))
        start += len(members)
    return groups


def _roots(count: int, ties: Iterable[Sequence[int]]) -> list[int]:
    """For each column the representative of its group, by union-find."""
    root = list(range(count))

    def find(column: int) -> int:
        while root[column] != column:
            root[column] = root[root[column]]
            column = root[column]
        return column

    for first, *others in ties:
        for other in others:
            root[find(other)] = find(first)
    return [find(column) for column in range(count)]


# --- declarations ----------------------------------------------------------------------------------------------------


def _checked_parameters(given: Any) -> dict[str, Parameter]:
    """Name -> parameter, from a mapping or pairs. Raises SpaceError for anything else."""
    try:
        pairs = [(name, parameter) for name, parameter in (given.items() if isinstance(given, Mapping) else given)]
    except (TypeError, ValueError):
        raise SpaceError(f'a space is declared as {{"lr": Real(...), ...}}, but got {given!r:.100}.') from None
    if not pairs:
        raise SpaceError("a search space needs at least one parameter, but got none.")
    for name, parameter in pairs:
        if not isinstance(name, str) or not name:
            raise SpaceError(f"parameter names must be non-empty strings, but got {name!r}.")
        if not is_writable(name):
            raise SpaceError(f"parameter names must be whole characters, but {name!r} has half of one. Rename it.")
        if not isinstance(parameter, Parameter):
            kinds = "Real, Integer, Ordinal, Categorical or Library"
            several = isinstance(parameter, (list, tuple))
            way_out = f" Give Categorical({parameter!r:.100}), or Real and Integer for a range." if several else ""
            raise SpaceError(f"parameter {name!r} must be a {kinds}, but got {type(parameter).__name__}.{way_out}")
        try:
            parameter.encode([parameter.default] if parameter.default is not UNSET else [])
        except PointError as error:
            raise SpaceError(f"the default of {name!r}: {error}") from None
    if len(dict(pairs)) < len(pairs):
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise SpaceError(f"parameter names must differ, but {twice} stand more than once.")
    return dict(pairs)


def _checked_fixed(given: Any, parameters: Mapping[str, Parameter]) -> dict[int, float]:
    """Column -> entry of fixed parameters. Raises SpaceError for an unknown name, or a value outside its parameter."""
    if not isinstance(given, Mapping):
        raise SpaceError(f'fixed values are a dict, as in {{"optimizer": "adam"}}, but got {given!r}.')
    column_of = {name: column for column, name in enumerate(parameters)}
    entries = {}
    for name, value in given.items():
        if name not in parameters:
            raise SpaceError(f"fixed parameters must be among {list(parameters)}, but got {name!r}.")
        try:
            entries[column_of[name]] = float(parameters[name].encode([value])[0])
        except PointError as error:
            raise SpaceError(f"the fixed parameter {name!r}: {error}") from None
    return entries


def read_declaration(declared: Any) -> tuple[dict[str, Parameter], Any, dict[str, Any]]:
    """Parameters, constraints and fixed values of a space in plain data.

    Constraints and fixed values are lists, which no parameter can be declared by; so their keys may also be names of
    parameters (see `free_name`).

    Raises:
        SpaceError: for anything that does not declare parameters.
    """
    if not isinstance(declared, Mapping):
        raise SpaceError(f"a space is declared by a mapping, name: {{type: ...}}, but got {declared!r:.100}.")
    rest = dict(declared)
    constraints = rest.pop("constraints") if isinstance(rest.get("constraints"), str) else _list_of("constraints", rest)
    fixed = _list_of("fixed", rest)
    for name, settings in rest.items():
        if not isinstance(settings, Mapping):
            raise SpaceError(f"parameter {name!r} must be declared by a mapping with a type, but got {settings!r}.")
    parameters = {name: parameter_from_dict(name, settings) for name, settings in rest.items()}
    return parameters, constraints, {name: value for each in fixed for name, value in dict(each).items()}


def free_name(name: str, taken: Iterable[str]) -> str:
    """The name, or the first of name_, name__, ... that is not taken."""
    while name in taken:
        name += "_"
    return name


def _list_of(name: str, declared: dict[str, Any]) -> Any:
    """The list with this name, or with its `free_name` beside a parameter, removed from a declaration; else empty."""
    key = free_name(name, [each for each, settings in declared.items() if isinstance(settings, Mapping)])
    return declared.pop(key) if isinstance(declared.get(key), (list, tuple)) else []
