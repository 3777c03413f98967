"""`Conditions`: the dependencies between parameters, and which parameters are active in a point."""

import math
import operator
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deepbore.errors import PointError, SpaceError
from deepbore.space.condition import Condition
from deepbore.space.parameters import Parameter

Span = tuple[float, float]  # first and last level, both included; of a continuous parent least and greatest value

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
COMPARISON = re.compile(r"\s*(<=|>=|==|!=|<|>)\s*(\S.*?)\s*", re.DOTALL)


@dataclass(frozen=True)
class Rule:
    """A condition in terms of points: the parameter in column `parent` has a level in one of the `spans`."""

    parent: int
    spans: tuple[Span, ...]  # ascending and disjoint

    def holds(self, level: Tensor) -> Tensor:
        """Whether it holds for levels of the parent, entry by entry."""
        holds = torch.zeros_like(level, dtype=torch.bool)
        for first, last in self.spans:
            holds = holds | (level == first if first == last else (level >= first) & (level <= last))
        return holds


@dataclass(frozen=True)
class Family:
    """Columns whose rules have the same parents: one computation says which of them are active.

    Attributes:
        columns: of a point, m; a slice where they stand side by side.
        parents: the columns of the parents, one for each rule of a column.
        first: of each parent the first levels of s spans, the different ones of all columns.
        last: of each parent the last levels of these spans.
        spans: of each parent the numbers of the spans of each column, m x most, the first again where it has fewer.
    """

    columns: list[int] | slice
    parents: list[int]
    first: list[Tensor]
    last: list[Tensor]
    spans: list[Tensor]

    @classmethod
    def of(cls, columns: list[int], rules: Sequence[tuple[Rule, ...]]) -> "Family":
        """Columns with their rules; those of each have the same parents in the same order."""
        first, last, spans = [], [], []
        for place in range(len(rules[0])):
            of_columns = [each[place].spans for each in rules]
            different = list(dict.fromkeys(span for several in of_columns for span in several))
            number = {span: row for row, span in enumerate(different)}
            most = max(map(len, of_columns))
            rows = [[number[each] for each in several] for several in of_columns]
            first.append(torch.tensor([begins for begins, _ in different], dtype=torch.float64, device="cpu"))
            last.append(torch.tensor([ends for _, ends in different], dtype=torch.float64, device="cpu"))
            spans.append(torch.tensor([row + row[:1] * (most - len(row)) for row in rows], device="cpu"))
        are_side_by_side = columns == list(range(columns[0], columns[-1] + 1))
        where = slice(columns[0], columns[-1] + 1) if are_side_by_side else columns
        return cls(where, [rule.parent for rule in rules[0]], first, last, spans)

    def active(self, active: Tensor, levels: Mapping[int, Tensor]) -> Tensor:
        """Which of the columns are active (... x m booleans).

        Args:
            active: which of all columns are active (... x d), known of the parents.
            levels: column of a parent -> its levels (...).
        """
        found: Tensor | None = None
        for parent, first, last, spans in zip(self.parents, self.first, self.last, self.spans, strict=True):
            level = levels[parent][..., None]
            begins, ends, rows = (_on(each, level.device) for each in (first, last, spans))
            within = (level >= begins) & (level <= ends) & active[..., parent, None]
            holds, *others = (within.index_select(-1, each) for each in rows.T)
            for each in others:
                holds = holds | each
            found = holds if found is None else found & holds
        assert found is not None
        return found


def _on(known: Tensor, device: torch.device) -> Tensor:
    """A small tensor on the CPU, on a device."""
    return known if device.type == "cpu" else torch.tensor(known.tolist(), dtype=known.dtype, device=device)


class Conditions:
    """The directed acyclic graph of the conditions in a space, with an arrow from each parent to its children.

    Args:
        parameters: name -> parameter, in the order of a point's columns.

    Attributes:
        columns: the columns of conditional parameters.
        rules: column of a conditional parameter -> its rules, which must all hold.
        children: column -> the columns that depend on it.
        order: all columns, each after its parents.

    Raises:
        SpaceError: for a condition on an unknown parent or on a value that the parent can't have, for conditions that
            never hold together, or for a circle.
    """

    def __init__(self, parameters: Mapping[str, Parameter]):
        self._names = list(parameters)
        self._parameters = list(parameters.values())
        column_of = {name: column for column, name in enumerate(parameters)}
        self.rules: dict[int, tuple[Rule, ...]] = {}
        for name, parameter in parameters.items():
            if parameter.conditions:
                rules = (_rule(name, condition, parameters, column_of) for condition in parameter.conditions)
                self.rules[column_of[name]] = tuple(rules)
        self.columns = list(self.rules)
        self.children: dict[int, list[int]] = {}
        for column in self.rules:
            for parent in self.parents(column):
                self.children.setdefault(parent, []).append(column)
        self.order = self.parents_first()
        self._refuse_impossible()
        self._families = self._in_families()

    def parents(self, column: int) -> tuple[int, ...]:
        """The columns that a column depends on, without duplicates."""
        return tuple(dict.fromkeys(rule.parent for rule in self.rules.get(column, ())))

    def descendants(self, column: int) -> set[int]:
        """The columns that depend on a column, directly or not."""
        children = self.children.get(column, [])
        return set(children).union(*map(self.descendants, children))

    def parents_first(self, late: Callable[[int], Any] | None = None) -> list[int]:
        """All columns in depth-first order, each after its parents.

        Args:
            late: key that sorts siblings; None for the order of the parameters.

        Raises:
            SpaceError: if conditions form a circle.
        """
        roots = [column for column in range(len(self._names)) if column not in self.rules]
        order, stack = [], sorted(roots, key=late, reverse=True)
        waits = {column: len(self.parents(column)) for column in self.rules}
        while stack:
            order.append(stack.pop())
            for child in sorted(self.children.get(order[-1], []), key=late, reverse=True):
                waits[child] -= 1
                if not waits[child]:
                    stack.append(child)
        if len(order) < len(self._names):
            stuck = [self._names[column] for column in sorted(set(range(len(self._names))) - set(order))]
            raise SpaceError(f"conditions must not form a circle, but these parameters wait for each other: {stuck}.")
        return order

    def _refuse_impossible(self) -> None:
        """Raises SpaceError for a parameter whose several conditions can't hold together."""
        if all(len(rules) == 1 for rules in self.rules.values()):
            return  # each parent has a level that activates its child
        for column in self.order:
            if not self.is_possible(column):
                raise SpaceError(
                    f"the conditions of {self._names[column]!r}, and of the parameters that it depends on, never hold "
                    "together, so it could never be active. Mend them, or leave it out."
                )

    def is_possible(self, column: int, fixed: Mapping[int, float] | None = None) -> bool:
        """Whether a parameter is active in any point in which some parameters have given levels.

        Args:
            column: column of the parameter.
            fixed: column -> level of other parameters.
        """
        wanted: dict[int, tuple[Span, ...]] = {place: ((level, level),) for place, level in (fixed or {}).items()}
        seen, stack = {column}, [column]
        while stack:
            for rule in self.rules.get(stack.pop(), ()):
                wanted[rule.parent] = _common(wanted[rule.parent], rule.spans) if rule.parent in wanted else rule.spans
                if not wanted[rule.parent]:
                    return False
                if rule.parent not in seen:
                    seen.add(rule.parent)
                    stack.append(rule.parent)
        return True

    # --- points ------------------------------------------------------------------------------------------------------

    def level(self, column: int, entries: Tensor) -> Tensor:
        """The values that rules compare: levels, or native values of a continuous parameter."""
        parameter = self._parameters[column]
        if not parameter.is_continuous:
            return parameter.to_level(entries)
        natives = np.asarray(parameter.identity(entries.reshape(-1)), dtype=np.float64)
        return torch.from_numpy(natives).to(entries.device).reshape(entries.shape)

    def active(self, points: Tensor) -> Tensor:
        """Which parameters are active in each point: n x d booleans, on the device of the points."""
        points = points.detach()
        active = torch.ones_like(points, dtype=torch.bool)
        levels: dict[int, Tensor] = {}
        for family in self._families:
            for parent in family.parents:
                if parent not in levels:
                    levels[parent] = self.level(parent, points[..., parent])
            active[..., family.columns] = family.active(active, levels)  # a slice is written much faster
        return active

    def _in_families(self) -> "list[Family]":
        """The conditional columns in groups that are found together, each after the groups of its parents."""
        families: list[Family] = []
        done: set[int] = set()
        for column in self.order:
            if column in done or column not in self.rules:
                continue
            parents = [rule.parent for rule in self.rules[column]]
            alike = [each for each in self.columns if [rule.parent for rule in self.rules[each]] == parents]
            families.append(Family.of(alike, [self.rules[each] for each in alike]))
            done |= set(alike)
        return families

    def is_active(
        self, column: int, found: Mapping[int, Tensor], levels: Mapping[int, Tensor], always: Tensor
    ) -> Tensor:
        """Whether one parameter is active (n booleans).

        Args:
            column: column of the parameter.
            found: column -> whether the parameter is active (n booleans), of all parents.
            levels: column -> levels (n), of all parents.
            always: True n times, returned for a parameter without a condition.
        """
        active = always
        for place, rule in enumerate(self.rules.get(column, ())):
            holds = found[rule.parent] & rule.holds(levels[rule.parent])
            active = holds if place == 0 else active & holds
        return active


# --- rules from conditions -------------------------------------------------------------------------------------------


def _rule(name: str, condition: Condition, parameters: Mapping[str, Parameter], column_of: Mapping[str, int]) -> Rule:
    parent = parameters.get(condition.parent)
    if parent is None:
        raise SpaceError(f"{name!r} depends on {condition.parent!r}, which is not among {list(parameters)}.")
    try:
        return Rule(column_of[condition.parent], spans_of(condition, parent))
    except SpaceError as error:
        raise SpaceError(
            f"the condition of {name!r} names impossible values of {condition.parent!r}: {error}."
        ) from None


def spans_of(condition: Condition, parent: Parameter) -> tuple[Span, ...]:
    """Ascending, disjoint spans of a parent's levels in which a condition holds.

    Args:
        condition: the condition.
        parent: the parameter that it names.

    Raises:
        SpaceError: for a value that the parent can't have, a comparison of unordered values, or a condition that never
            holds.
    """
    spans: list[Span] = []
    exact = []
    for value in condition.values:
        written = COMPARISON.fullmatch(value) if isinstance(value, str) else None
        if written is None or _is_value(parent, value):
            exact.append(value)
        else:
            spans += _compared(parent, written[1], written[2])
    if exact:
        spans += _spans(_levels_of(parent, exact))
    if not spans:
        raise SpaceError(f"{list(condition.values)} never holds")
    return _merged(spans, parent.is_continuous)


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


def _spans(levels: Sequence[int]) -> list[Span]:
    """Spans of consecutive levels among ascending ones."""
    spans = [[level for _, level in each] for _, each in groupby(enumerate(levels), lambda pair: pair[1] - pair[0])]
    return [(span[0], span[-1]) for span in spans]


def _merged(spans: Sequence[Span], continuous: bool) -> tuple[Span, ...]:
    """Spans in ascending order, adjacent and overlapping ones merged."""
    joined: list[Span] = []
    for first, last in sorted(spans):
        if joined and first <= joined[-1][1] + (0 if continuous else 1):
            joined[-1] = joined[-1][0], max(joined[-1][1], last)
        else:
            joined.append((first, last))
    return tuple(joined)


def _compared(parent: Parameter, sign: str, text: str) -> list[Span]:
    """Spans of a parent's levels in which a comparison holds."""
    if parent.is_numeric:
        bound = _number(text)
        return _between(parent, sign, bound) if parent.is_continuous else _among(parent, sign, bound)
    if parent.levels is None:
        raise SpaceError(f"'{sign} {text}' needs a parent whose values are numbers")
    natives = parent.decode_plain(parent.from_level(torch.arange(parent.levels, dtype=torch.float64)))
    if all(isinstance(native, (int, float)) and not isinstance(native, bool) for native in natives):
        bound = _number(text)
        return _spans([level for level, native in enumerate(natives) if OPERATORS[sign](native, bound)])
    if not parent.is_ordered and sign not in ("==", "!="):
        raise SpaceError(f"'{sign} {text}' needs an order, which categories have none of: use Ordinal, or name values")
    try:
        (named,) = _levels_of(parent, [parent.read(text)])
    except PointError as error:
        raise SpaceError(str(error).rstrip(".")) from None
    return _spans([level for level in range(parent.levels) if OPERATORS[sign](level, named)])


def _number(text: str) -> float:
    try:
        bound = float(text)
    except ValueError:
        bound = math.nan
    if not math.isfinite(bound):
        raise SpaceError(f"numbers are compared with a number, but got {text!r}")
    return bound


def _among(parent: Parameter, sign: str, bound: float) -> list[Span]:
    """Levels of ascending numbers, found by bisection as there may be very many."""
    count = parent.levels or 0

    def native(level: int) -> float:
        (value,) = parent.decode_plain(parent.from_level(torch.tensor([level], dtype=torch.float64)))
        return float(value)

    left, right = (search(range(count), bound, key=native) for search in (bisect_left, bisect_right))
    spans: dict[str, list[Span]] = {
        "<": [(0, left - 1)], "<=": [(0, right - 1)], ">": [(right, count - 1)], ">=": [(left, count - 1)],
        "==": [(left, right - 1)], "!=": [(0, left - 1), (right, count - 1)],
    }  # fmt: skip
    return [(first, last) for first, last in spans[sign] if first <= last]


def _between(parent: Parameter, sign: str, bound: float) -> list[Span]:
    """Interval of values of a continuous parameter."""
    below, above = math.nextafter(bound, -math.inf), math.nextafter(bound, math.inf)
    spans: dict[str, Span] = {
        "<": (-math.inf, below), "<=": (-math.inf, bound), ">": (above, math.inf), ">=": (bound, math.inf),
    }  # fmt: skip
    scale = parent.scale
    if sign not in spans or scale is None:
        raise SpaceError(f"'{sign} {bound:g}' is too narrow for a continuous parameter: compare by <, <=, > or >=")
    first, last = spans[sign]
    return [(first, last)] if first <= scale.high and last >= scale.low else []


def _common(spans: tuple[Span, ...], others: tuple[Span, ...]) -> tuple[Span, ...]:
    """Intersection of two lists of spans."""
    pairs = ((max(a[0], b[0]), min(a[1], b[1])) for a in spans for b in others)
    return tuple((first, last) for first, last in pairs if first <= last and not math.isnan(first))
