"""Checks of the contract of a type of parameter."""

import json
from typing import Any

import torch
from torch import Tensor

from deepbore.errors import PointError, SpaceError
from deepbore.space import Parameter, SearchSpace
from deepbore.space.features import Coordinates
from deepbore.testing.require import require, require_equal, require_raises, require_shape

N = 50
MANY = 1000  # the most levels that are checked
ROUNDING = 1e-9
EVEN, LOOSE = 20_000, 0.01  # uniform numbers of a check of densities, and its tolerance


def check_parameter(parameter: Parameter) -> None:
    """Runs all checks of a parameter.

    Args:
        parameter: an unconditional one.

    Raises:
        AssertionError: with the violated rule and the values.

    Example:
        >>> from deepbore import Integer
        >>> check_parameter(Integer(8, 1024, log=True))
    """
    column = parameter.from_uniform(torch.linspace(0, 1, N, dtype=torch.float64))
    check_column(parameter, column, "from_uniform")
    check_native_values(parameter, column)
    check_levels(parameter, column)
    check_moves(parameter, column)
    check_beliefs(parameter)
    check_plain_data(parameter)
    check_space_of(parameter)


def check_column(parameter: Parameter, column: Tensor, what: str) -> None:
    """Entries of a column are finite and within [0, upper]."""
    require_shape(column, (N,), what)
    low, high = float(column.min()), float(column.max())
    inside = low >= 0 and high <= parameter.upper
    require(inside, f"{what} must stay within [0, upper] = [0, {parameter.upper}], but reaches [{low:.6g}, {high:.6g}]")


def check_native_values(parameter: Parameter, column: Tensor) -> None:
    """Native values survive encoding and writing; an invalid value raises PointError."""
    values = parameter.decode(column)
    require(len(values) == N, f"decode of {N} entries must give {N} values, but gives {len(values)}")
    again = parameter.decode(parameter.encode(values))
    for value, other in zip(values, again, strict=True):
        require(_same(value, other), f"decode(encode(value)) must be the value, but {value!r} becomes {other!r}")
    for value in values:
        read = parameter.read(str(value))
        require(_same(read, value), f"read({str(value)!r}) must be {value!r}, but is {read!r}")
    require_raises(PointError, lambda: parameter.encode([object()]), "encode of what is no value")
    require_raises(PointError, lambda: parameter.encode([parameter.read("no such value")]), 'read of "no such value"')
    identity, many = [float(each) for each in parameter.identity(column)], [str(value) for value in values]
    count, expected = len(set(identity)), len(set(many))
    require(count == expected, f"identity must tell {expected} different values apart, but gives {count} numbers")


def check_levels(parameter: Parameter, column: Tensor) -> None:
    """The number of levels is right, and levels convert to entries of the column and back."""
    if parameter.levels is None:
        require(parameter.is_continuous, "a parameter without levels must be continuous, but says it is not")
        require_equal(parameter.to_level(column), column, "to_level must leave a continuous parameter as it is")
        return
    require(parameter.levels >= 2, f"there must be at least 2 levels, but levels is {parameter.levels}")
    level = torch.arange(min(parameter.levels, MANY), dtype=torch.float64)
    back = parameter.to_level(parameter.from_level(level))
    require_equal(back, level, "to_level(from_level(k)) must be k")
    count = len({str(value) for value in parameter.decode(parameter.from_level(level))})
    require(count == len(level), f"{len(level)} levels must have as many values, but have {count}")


def check_moves(parameter: Parameter, column: Tensor) -> None:
    """A move stays within the column, and changes the level of a parameter with levels."""
    generator = torch.Generator().manual_seed(11)
    u, v = torch.rand(2, N, dtype=torch.float64, generator=generator)
    steps = 0.3 * torch.randn(N, dtype=torch.float64, generator=generator)
    moved = parameter.moved(column, u, v, steps)
    check_column(parameter, moved, "moved")
    if parameter.levels is not None:
        stayed = int((parameter.to_level(moved) == parameter.to_level(column)).sum())
        require(stayed == 0, f"a move must go to another level, but {stayed} of {N} stay")


def check_beliefs(parameter: Parameter) -> None:
    """What is believed of the best value is a distribution: entries are drawn as often as its density says."""
    uniform = (torch.arange(EVEN, dtype=torch.float64) + 0.5) / EVEN
    drawn = parameter.from_uniform(uniform)
    density = parameter.log_prior(drawn).exp()
    require_shape(density, (EVEN,), "log_prior")
    mean = float(density.mean())
    require(
        abs(mean - 1) < LOOSE, f"the density of log_prior must be 1 on average over random entries, but is {mean:.4g}"
    )
    if parameter.belief is None:
        return
    believed = parameter.from_uniform(parameter.belief.quantile(uniform))
    low, high = float(believed.min()), float(believed.max())
    inside = low >= 0 and high <= parameter.upper
    require(inside, f"believed entries must stay within [0, {parameter.upper}], but reach [{low:.6g}, {high:.6g}]")
    middle = float((drawn * density).mean())
    gap = abs(float(believed.mean()) - middle) / parameter.upper
    require(
        gap < LOOSE, f"believed entries must have the mean of log_prior, {middle:.4g}, but have {believed.mean():.4g}"
    )


def check_plain_data(parameter: Parameter) -> None:
    """Written as JSON, a space with it is read back as it was; equal parameters have equal hashes."""
    space = SearchSpace({"p": parameter})
    try:
        again = SearchSpace.from_dict(json.loads(json.dumps(space.to_dict())))
    except (TypeError, SpaceError) as error:
        raise AssertionError(f"to_dict must be plain JSON data that from_dict reads, but: {error}") from error
    read = again.parameters["p"]
    require(read == parameter, f"from_dict(to_dict()) must give the parameter {parameter}, but gives {read}")
    require(hash(read) == hash(parameter), "equal parameters must have equal hashes (make it a frozen dataclass)")


def check_space_of(parameter: Parameter) -> None:
    """In a space it is sampled and encoded, and its readings are in [-1, 1]."""
    space = SearchSpace({"p": parameter})
    points = space.points.sample(N, torch.Generator().manual_seed(12))
    again = space.encode(space.decode(points))
    require_equal(again, space.points.snap(points), "a sampled point, decoded and encoded, must be the same", ROUNDING)
    features = space.points.features(points)
    require_shape(features, (N, space.points.features.size), "features")
    readings = features[:, : len(parameter.readings())]
    low, high = (float(readings.min()), float(readings.max())) if readings.shape[1] else (0.0, 0.0)
    require(low >= -1 and high <= 1, f"readings must be in [-1, 1], but are in [{low:.3g}, {high:.3g}]")
    require(bool(features.isfinite().all()), "descriptors must be finite")
    coordinates = Coordinates(space.points)(points)
    require_shape(coordinates, (N, coordinates.shape[-1]), "coordinates")


def _same(value: Any, other: Any) -> bool:
    """Whether two native values are equal, floats up to rounding."""
    if isinstance(value, float) and isinstance(other, float):
        return abs(value - other) <= ROUNDING * max(1.0, abs(value))
    return bool(value == other)
