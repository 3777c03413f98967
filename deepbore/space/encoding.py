"""The traffic between native configurations and points, many rows at once; it runs on the CPU."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from deepbore.errors import PointError
from deepbore.space.conditions import Conditions
from deepbore.space.parameters.choice import is_missing
from deepbore.space.runs import run_by_run

if TYPE_CHECKING:
    from deepbore.space.search_space import SearchSpace

Params = dict[str, Any]

# --- configurations --------------------------------------------------------------------------------------------------


def encode(space: "SearchSpace", configurations: Sequence[Mapping[str, Any]]) -> Tensor:
    """Configurations (n dicts) -> points (n x d); see `SearchSpace.encode`."""
    for params in configurations:
        if not isinstance(params, Mapping):
            raise PointError(f"a configuration must map names to values, but got {params!r}. Give a list of dicts.")
        _check_names(space, params)
    if space.is_conditional:
        configurations = [_without_gaps(space, params) for params in configurations]
    points = np.zeros((len(configurations), len(space)))
    given = np.zeros(points.shape, dtype=bool)
    for column, name in enumerate(space.names):
        on = [name in params for params in configurations]
        if any(on):
            rows = slice(None) if all(on) else given[:, column]
            given[:, column] = on
            points[rows, column] = _encode_column(
                space, name, [params[name] for params in compress(configurations, on)]
            )
    active = space.active(torch.from_numpy(points)).numpy()
    for row in (given != active).any(1).nonzero()[0]:
        _refuse(space, configurations[row], active[row])
    return torch.from_numpy(points)


def decode(space: "SearchSpace", points: Tensor) -> list[Params]:
    """Points (n x d) -> configurations (n dicts); see `SearchSpace.decode`."""
    names = space.names
    natives = [p.decode(points[:, column]) for column, p in enumerate(space.parameters.values())]
    rows = (zip(names, row, strict=True) for row in zip(*natives, strict=True))
    if not space.is_conditional:
        return [dict(row) for row in rows]
    return [dict(compress(row, on)) for row, on in zip(rows, space.active(points).tolist(), strict=True)]


def _without_gaps(space: "SearchSpace", params: Mapping[str, Any]) -> Mapping[str, Any]:
    """A configuration without the parameters that have None or NaN, as inactive ones have in a row of a table.

    Those stay that are always active, or have None among their choices.
    """

    def is_gap(name: str, value: Any) -> bool:
        parameter = space.parameters[name]
        is_nothing = value is None or is_missing(value)
        return is_nothing and bool(parameter.conditions) and None not in getattr(parameter, "choices", ())

    return {name: value for name, value in params.items() if not is_gap(name, value)}


def _check_names(space: "SearchSpace", names: Iterable[Any]) -> None:
    if unknown := [name for name in names if name not in space.parameters]:
        raise PointError(f"parameters must be among {space.names}, but got {unknown}.")


def _refuse(space: "SearchSpace", params: Mapping[str, Any], active: np.ndarray) -> None:
    """Raises PointError for a configuration whose names are not those of its active parameters."""
    wanted = set(compress(space.names, active))
    if missing := wanted - set(params):
        raise PointError(f"every active parameter needs a value, but {sorted(missing)} have none in {dict(params)}.")
    surplus = sorted(set(params) - wanted)
    raise PointError(f"inactive parameters must be left out, but {surplus} stand in {dict(params)}.")


def _encode_column(space: "SearchSpace", name: str, values: Sequence[Any]) -> np.ndarray:
    try:
        return space.parameters[name].encode(values).numpy()
    except PointError as error:
        raise PointError(f"parameter {name!r}: {error}") from None


# --- columns ---------------------------------------------------------------------------------------------------------


def encode_columns(space: "SearchSpace", conditions: Conditions, columns: Mapping[str, Sequence[Any]]) -> Tensor:
    """Columns of native values (name -> n values) -> points (n x d); see `SearchSpace.encode_columns`."""
    n = _length(space, columns)
    points = torch.zeros(n, len(space), dtype=torch.float64)
    always = torch.ones(n, dtype=torch.bool)
    found: dict[int, Tensor] = {}
    levels: dict[int, Tensor] = {}
    for column in conditions.order:
        name = space.names[column]
        found[column] = active = conditions.is_active(column, found, levels, always)
        rows = active.numpy()
        values = columns[name] if rows.all() else _picked(columns[name], rows)
        points.numpy()[rows, column] = _encode_column(space, name, values)
        if column in conditions.children:
            levels[column] = conditions.level(column, points[:, column])
    return points


def decode_columns(space: "SearchSpace", points: Tensor) -> dict[str, list[Any]]:
    """Points (n x d) -> columns of native values; see `SearchSpace.decode_columns`."""
    active = space.active(points)
    columns = {}
    for column, (name, parameter) in enumerate(space.parameters.items()):
        natives, on = parameter.decode(points[:, column]), active[:, column]
        if not bool(on.all()):
            natives = [native if each else None for native, each in zip(natives, on.tolist(), strict=True)]
        columns[name] = natives
    return columns


def _length(space: "SearchSpace", columns: Mapping[str, Sequence[Any]]) -> int:
    """How many rows the columns have. Raises PointError unless every parameter has one, of the same length."""
    _check_names(space, columns)
    if missing := [name for name in space.names if name not in columns]:
        raise PointError(f"every parameter needs a column, but {missing} are missing.")
    for name in space.names:
        if isinstance(columns[name], (str, bytes)) or not hasattr(columns[name], "__len__"):
            raise PointError(f"column {name!r} must be a list of values, one for each row, but is {columns[name]!r}.")
    lengths = {name: len(columns[name]) for name in space.names}
    if len(set(lengths.values())) > 1:
        raise PointError(f"columns must have one length, but got {lengths}.")
    return next(iter(lengths.values()))


def _picked(values: Sequence[Any], rows: np.ndarray) -> Sequence[Any]:
    """The values in these rows."""
    if isinstance(values, (list, tuple)):
        return list(compress(values, rows.tolist()))
    picked: np.ndarray = np.asarray(values)[rows]
    return picked  # type: ignore[return-value]  # an array is as good as a sequence here


# --- identities ------------------------------------------------------------------------------------------------------


def identify(space: "SearchSpace", points: Tensor) -> list[Hashable]:
    """What tells configurations apart (n): the bytes of a row of numbers, one for each parameter, NaN if inactive."""
    levels = run_by_run(space.runs, lambda parameter, column: parameter.to_level(column), points)
    numbers = np.array(levels.numpy(), order="C")
    for column in space.continuous_columns:
        numbers[:, column] = space.parameters[space.names[column]].identity(points[:, column])
    numbers += 0.0  # -0.0 equals 0.0, but has other bytes
    if space.is_conditional:
        numbers[~space.active(points).numpy()] = np.nan
    identities: list[Hashable] = numbers.view(f"V{numbers.itemsize * len(space)}").ravel().tolist()
    return identities
