"""`Encoding`: native configurations to points and back, many rows at once, on the CPU."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import compress
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deepbore.errors import PointError
from deepbore.space.constraints import Constraints
from deepbore.space.parameters import Parameter
from deepbore.space.parameters.choice import is_missing
from deepbore.space.structure import SpaceStructure

Params = dict[str, Any]
OPEN = -1.0  # entry of a point whose parameter is still to be proposed


class Encoding:
    """Conversion between configurations or columns of native values, and points.

    Args:
        structure: the structure of the space.
        constraints: its constraints; forbidden configurations are refused.
    """

    def __init__(self, structure: SpaceStructure, constraints: Constraints):
        self.structure, self.constraints = structure, constraints
        self._discrete = [group for group in structure.column_groups if not group.parameter.is_continuous]

    # --- configurations ----------------------------------------------------------------------------------------------

    def encode(self, configurations: Sequence[Mapping[str, Any]]) -> Tensor:
        """Configurations (n dicts) -> points (n x d); see `SearchSpace.encode`."""
        for params in configurations:
            if not isinstance(params, Mapping):
                raise PointError(f"a configuration must map names to values, but got {params!r}. Give a list of dicts.")
            self.check_names(params)
        if self.structure.is_conditional:
            configurations = [self.without_gaps(params) for params in configurations]
        points = np.zeros((len(configurations), len(self.structure.names)))
        given = np.zeros(points.shape, dtype=bool)
        for column, (name, parameter) in enumerate(self.structure.parameters.items()):
            on = [name in params for params in configurations]
            if any(on):
                rows = slice(None) if all(on) else given[:, column]
                given[:, column] = on
                values = [params[name] for params in compress(configurations, on)]
                points[rows, column] = _encoded(name, parameter, values)
        self._check_active(configurations, given, torch.from_numpy(points))
        return self._permitted(torch.from_numpy(points))

    def encode_part(self, params: Mapping[str, Any]) -> Tensor:
        """A configuration, or a part of one -> a point (d), OPEN where parameters are missing.

        See `SearchSpace.encode_part`.
        """
        structure = self.structure
        point = torch.zeros(len(structure.names), dtype=torch.float64)
        params = structure.with_parents(self.without_gaps(params))
        levels: dict[int, float] = {}
        for column in structure.conditions.order:
            name, parameter = structure.names[column], structure.of_column[column]
            may_be = structure.conditions.is_possible(column, levels)
            if name in params:
                if not may_be:
                    raise PointError(f"inactive parameters must be left out, but {name!r} stands in {dict(params)}.")
                point[column] = float(_encoded(name, parameter, [params[name]])[0])
                levels[column] = float(structure.conditions.level(column, point[[column]])[0])
            elif may_be:
                point[column] = OPEN
        return point

    def changed(self, params: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
        """A configuration with changes, without what these make inactive; see `Points.changed`."""
        structure, changes = self.structure, self.without_gaps(changes)
        both = {**params, **changes}
        levels: dict[int, float] = {}
        for column in structure.conditions.order:
            name, parameter = structure.names[column], structure.of_column[column]
            if name in both and name not in changes and not structure.conditions.is_possible(column, levels):
                del both[name]
            elif name in both:
                entry = torch.as_tensor(_encoded(name, parameter, [both[name]]))
                levels[column] = float(structure.conditions.level(column, entry)[0])
        return both

    def decode(self, points: Tensor) -> list[Params]:
        """Points (n x d) -> configurations (n dicts); see `SearchSpace.decode`."""
        natives = [p.decode(points[:, column]) for column, p in enumerate(self.structure.of_column)]
        rows = (zip(self.structure.names, row, strict=True) for row in zip(*natives, strict=True))
        if not self.structure.is_conditional:
            return [dict(row) for row in rows]
        return [dict(compress(row, on)) for row, on in zip(rows, self.structure.active(points).tolist(), strict=True)]

    def check_names(self, names: Iterable[Any]) -> None:
        """Raises PointError for a name that no parameter has."""
        if unknown := [name for name in names if name not in self.structure.parameters]:
            raise PointError(f"parameters must be among {self.structure.names}, but got {unknown}.")

    def without_gaps(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """A configuration without None and NaN, by which a row of a table marks inactive parameters.

        They are kept for parameters that are always active, or have None among their choices.
        """

        def is_gap(name: str, value: Any) -> bool:
            parameter = self.structure.parameters[name]
            is_nothing = value is None or is_missing(value)
            has_none = any(choice is None for choice in getattr(parameter, "choices", ()))
            return is_nothing and bool(parameter.conditions) and not has_none

        return {name: value for name, value in params.items() if not is_gap(name, value)}

    def _check_active(self, configurations: Sequence[Mapping[str, Any]], given: np.ndarray, points: Tensor) -> None:
        """Raises PointError for a configuration whose names (`given`, n x d) are not those of active parameters."""
        active = self.structure.active(points).numpy() if self.structure.is_conditional else np.ones_like(given)
        for row in (given != active).any(1).nonzero()[0]:
            params, wanted = configurations[row], set(compress(self.structure.names, active[row]))
            if missing := sorted(wanted - set(params)):
                raise PointError(f"every active parameter needs a value, but {missing} have none in {dict(params)}.")
            surplus = sorted(set(params) - wanted)
            raise PointError(f"inactive parameters must be left out, but {surplus} stand in {dict(params)}.")

    def _permitted(self, points: Tensor) -> Tensor:
        """The points. Raises PointError if a constraint forbids one."""
        if self.constraints.each:
            met = self.constraints.met(points, known_only=True)
            for row in np.flatnonzero(~met.all(1)):
                broken = self.constraints.each[int(met[row].argmin())]
                raise PointError(f"the constraint {str(broken)!r} forbids {self.decode(points[row : row + 1])[0]}.")
        return points

    # --- columns -----------------------------------------------------------------------------------------------------

    def encode_columns(self, columns: Mapping[str, Sequence[Any]]) -> Tensor:
        """Columns of native values (name -> n values) -> points (n x d); see `Points.encode_columns`."""
        n = self._length(columns)
        points = torch.zeros(n, len(self.structure), dtype=torch.float64)
        always = torch.ones(n, dtype=torch.bool)
        found: dict[int, Tensor] = {}
        levels: dict[int, Tensor] = {}
        conditions = self.structure.conditions
        for column in conditions.order:
            name, parameter = self.structure.names[column], self.structure.of_column[column]
            found[column] = active = conditions.is_active(column, found, levels, always)
            rows = active.numpy()
            values = columns[name] if rows.all() else _picked(columns[name], rows)
            points.numpy()[rows, column] = _encoded(name, parameter, values, np.flatnonzero(rows))
            if column in conditions.children:
                levels[column] = conditions.level(column, points[:, column])
        return self._permitted(points)

    def decode_columns(self, points: Tensor) -> dict[str, list[Any]]:
        """Points (n x d) -> columns of values as tables have them; see `SearchSpace.decode_columns`."""
        active = self.structure.active(points)
        columns = {}
        for column, (name, parameter) in enumerate(self.structure.parameters.items()):
            natives, on = parameter.decode_plain(points[:, column]), active[:, column]
            if not bool(on.all()):
                natives = [native if each else None for native, each in zip(natives, on.tolist(), strict=True)]
            columns[name] = natives
        return columns

    def _length(self, columns: Mapping[str, Sequence[Any]]) -> int:
        """Number of rows. Raises PointError unless every parameter has a column, all of one length."""
        names = self.structure.names
        self.check_names(columns)
        if missing := [name for name in names if name not in columns]:
            raise PointError(
                f"every parameter needs a column, but {missing} are missing. Give None where one is inactive; "
                "add(..., defaults={name: value}) says what others were."
            )
        for name in names:
            if isinstance(columns[name], (str, bytes)) or not hasattr(columns[name], "__len__"):
                raise PointError(
                    f"column {name!r} must be a list of values, one for each row, but is {columns[name]!r}."
                )
        lengths = {name: len(columns[name]) for name in names}
        if len(set(lengths.values())) > 1:
            raise PointError(f"columns must have one length, but got {lengths}.")
        return next(iter(lengths.values()))

    # --- identities --------------------------------------------------------------------------------------------------

    def identify(self, points: Tensor) -> list[Hashable]:
        """Keys (n) that are equal for two points exactly if these decode to equal configurations.

        A key is the bytes of one number for each parameter: its level, or the `identity` of a continuous one, or NaN
        where it is inactive.
        """
        numbers = np.empty(tuple(points.shape))
        for group in self._discrete:
            numbers[:, group.columns] = group.parameter.to_level(points[:, group.columns]).numpy()
        for column in self.structure.continuous_columns:
            numbers[:, column] = self.structure.of_column[column].identity(points[:, column])
        numbers += 0.0  # -0.0 equals 0.0, but has other bytes
        if self.structure.is_conditional:
            numbers[~self.structure.active(points).numpy()] = np.nan
        keys: list[Hashable] = numbers.view(f"V{numbers.itemsize * numbers.shape[1]}").ravel().tolist()
        return keys


def _encoded(
    name: str, parameter: Parameter, values: Sequence[Any], rows: Sequence[int] | np.ndarray | None = None
) -> np.ndarray:
    """A column of values; `rows` are their numbers, which the error names."""
    try:
        return parameter.encode(values).numpy()
    except PointError as error:
        where = "" if rows is None else f"row {rows[_first_wrong(parameter, list(values))]}, "
        raise PointError(f"{where}parameter {name!r}: {error}") from None


def _first_wrong(parameter: Parameter, values: Sequence[Any]) -> int:
    """The first of the values, some of them wrong, that is wrong: by halves."""
    start, end = 0, len(values)
    while end - start > 1:
        middle = (start + end) // 2
        try:
            parameter.encode(values[start:middle])
            start = middle
        except PointError:
            end = middle
    return start


def _picked(values: Sequence[Any], rows: np.ndarray) -> Sequence[Any]:
    """The values in the rows of a mask."""
    if isinstance(values, (list, tuple)):
        return list(compress(values, rows.tolist()))
    picked: np.ndarray = np.asarray(values)[rows]
    return picked  # type: ignore[return-value]  # an array serves as a sequence
