"""What a condition says of its parent's levels: values by name, and comparisons such as ">= 2"."""

import math
import operator
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import torch

from deepbore.errors import PointError, SpaceError
from deepbore.space.condition import Condition
from deepbore.space.parameters import Parameter

Span = tuple[float, float]  # first and last level, both included; of a continuous parent first and last value

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
WRITTEN = re.compile(r"\s*(<=|>=|==|!=|<|>)\s*(\S.*?)\s*", re.DOTALL)


def spans_of(condition: Condition, parent: Parameter) -> tuple[Span, ...]:
    """Where in its parent a condition holds, ascending and apart.

    Args:
        condition: one.
        parent: the parameter that it names.

    Raises:
        SpaceError: for a value that the parent can't have, a comparison that it knows no order for, or one that never
            holds. The message says what is wrong with the values.
    """
    spans: list[Span] = []
    exact = []
    for value in condition.values:
        written = WRITTEN.fullmatch(value) if isinstance(value, str) else None
        if written is None or _is_value(parent, value):
            exact.append(value)
        else:
            spans += _where(parent, written[1], written[2])
    if exact:
        spans += _runs(_levels_of(parent, exact))
    if not spans:
        raise SpaceError(f"{list(condition.values)} never holds")
    return _apart(spans, parent.is_continuous)


# --- values ----------------------------------------------------------------------------------------------------------


def _is_value(parent: Parameter, text: str) -> bool:
    try:
        parent.encode([text])
    except PointError:
        return False
    return True


def _levels_of(parent: Parameter, values: Sequence[Any]) -> list[int]:
    if parent.is_continuous:
        raise SpaceError('a continuous parameter has no values to name, but takes a comparison, such as "> 0.5"')
    try:
        return sorted({int(level) for level in parent.to_level(parent.encode(values)).tolist()})
    except PointError as error:
        raise SpaceError(str(error).rstrip(".")) from None


def _runs(levels: Sequence[int]) -> list[Span]:
    """Ascending levels as runs of neighbours: first and last of each."""
    runs = [[level for _, level in run] for _, run in groupby(enumerate(levels), lambda pair: pair[1] - pair[0])]
    return [(run[0], run[-1]) for run in runs]


def _apart(spans: Sequence[Span], continuous: bool) -> tuple[Span, ...]:
    """Ascending spans, joined where they meet."""
    joined: list[Span] = []
    for first, last in sorted(spans):
        if joined and first <= joined[-1][1] + (0 if continuous else 1):
            joined[-1] = joined[-1][0], max(joined[-1][1], last)
        else:
            joined.append((first, last))
    return tuple(joined)


# --- comparisons -----------------------------------------------------------------------------------------------------


def _where(parent: Parameter, sign: str, text: str) -> list[Span]:
    if parent.is_numeric:
        bound = _number(text)
        return _between(parent, sign, bound) if parent.is_continuous else _among(parent, sign, bound)
    if parent.levels is None:
        raise SpaceError(f"'{sign} {text}' needs a parent whose values are numbers")
    natives = parent.decode(parent.from_level(torch.arange(parent.levels, dtype=torch.float64)))
    if all(isinstance(native, (int, float)) and not isinstance(native, bool) for native in natives):
        bound = _number(text)
        return _runs([level for level, native in enumerate(natives) if OPERATORS[sign](native, bound)])
    if not parent.is_ordered and sign not in ("==", "!="):
        raise SpaceError(f"'{sign} {text}' needs an order, which categories have none of: use Ordinal, or name values")
    try:
        (named,) = _levels_of(parent, [parent.read(text)])
    except PointError as error:
        raise SpaceError(str(error).rstrip(".")) from None
    return _runs([level for level in range(parent.levels) if OPERATORS[sign](level, named)])


def _number(text: str) -> float:
    try:
        bound = float(text)
    except ValueError:
        bound = math.nan
    if not math.isfinite(bound):
        raise SpaceError(f"numbers are compared with a number, but got {text!r}")
    return bound


def _among(parent: Parameter, sign: str, bound: float) -> list[Span]:
    """Levels of ascending numbers, of which there may be very many."""
    count = parent.levels or 0

    def native(level: int) -> float:
        (value,) = parent.decode(parent.from_level(torch.tensor([level], dtype=torch.float64)))
        return float(value)

    left, right = (search(range(count), bound, key=native) for search in (bisect_left, bisect_right))
    spans: dict[str, list[Span]] = {
        "<": [(0, left - 1)], "<=": [(0, right - 1)], ">": [(right, count - 1)], ">=": [(left, count - 1)],
        "==": [(left, right - 1)], "!=": [(0, left - 1), (right, count - 1)],
    }  # fmt: skip
    return [(first, last) for first, last in spans[sign] if first <= last]


def _between(parent: Parameter, sign: str, bound: float) -> list[Span]:
    """A stretch of a continuous parameter."""
    below, above = math.nextafter(bound, -math.inf), math.nextafter(bound, math.inf)
    spans: dict[str, Span] = {
        "<": (-math.inf, below), "<=": (-math.inf, bound), ">": (above, math.inf), ">=": (bound, math.inf),
    }  # fmt: skip
    scale = parent.scale
    if sign not in spans or scale is None:
        raise SpaceError(f"'{sign} {bound:g}' is too narrow for a continuous parameter: compare by <, <=, > or >=")
    first, last = spans[sign]
    return [(first, last)] if first <= scale.high and last >= scale.low else []
