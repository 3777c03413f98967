"""`Conditions`: which parameters depend on which, and which are active in a point."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deepbore.errors import SpaceError
from deepbore.space.comparison import Span, spans_of
from deepbore.space.condition import Condition
from deepbore.space.parameters import Parameter


@dataclass(frozen=True)
class Rule:
    """One condition in terms of points: the parameter in column `parent` has a level in one of the `spans`."""

    parent: int
    spans: tuple[Span, ...]  # first and last level of each, ascending and apart

    def holds(self, level: Tensor) -> Tensor:
        """Whether it holds for levels of the parent, entry by entry."""
        holds = torch.zeros_like(level, dtype=torch.bool)
        for first, last in self.spans:
            holds = holds | (level == first if first == last else (level >= first) & (level <= last))
        return holds


class Conditions:
    """The graph that the conditions of a space make: an arrow from each parent to what depends on it, no circles.

    Args:
        parameters: name -> parameter, in the order of a point's columns.

    Attributes:
        columns: of the conditional parameters.
        rules: column -> its rules, which must all hold, for the conditional parameters.
        children: column -> the columns that depend on it.
        order: all columns, each after its parents.

    Raises:
        SpaceError: for a condition on an unknown parent, on a value that it can't have, one that never holds together
            with others, or a circle.
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

    def parents(self, column: int) -> tuple[int, ...]:
        """The columns that one depends on, each once."""
        return tuple(dict.fromkeys(rule.parent for rule in self.rules.get(column, ())))

    def parents_first(self, late: Callable[[int], Any] | None = None) -> list[int]:
        """Every column after its parents and beside its siblings; a stack, since chains may be long.

        Args:
            late: of siblings that with the greater key comes later; None for the order of the parameters.

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
            return  # and then each parent can have a level that activates its child
        for column in self.order:
            if not self.is_possible(column):
                raise SpaceError(
                    f"the conditions of {self._names[column]!r}, and of the parameters that it depends on, never hold "
                    "together, so it could never be active. Mend them, or leave it out."
                )

    def is_possible(self, column: int, fixed: Mapping[int, float] | None = None) -> bool:
        """Whether a parameter is active in some point, given the levels of some parameters."""
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
        """What conditions on a parameter look at: its level; of a continuous one its native value."""
        parameter = self._parameters[column]
        if not parameter.is_continuous:
            return parameter.to_level(entries)
        natives = np.asarray(parameter.identity(entries.reshape(-1)), dtype=np.float64)
        return torch.from_numpy(natives).to(entries.device).reshape(entries.shape)

    def active(self, points: Tensor) -> Tensor:
        """Which parameters are active in each point: n x d booleans, on the device of the points."""
        points = points.detach()
        if not self.rules:
            return torch.ones_like(points, dtype=torch.bool)
        always = torch.ones(points.shape[:-1], dtype=torch.bool, device=points.device)
        levels = {parent: self.level(parent, points[..., parent]) for parent in self.children}
        found: dict[int, Tensor] = {}
        for column in self.order:
            found[column] = self.is_active(column, found, levels, always)
        return torch.stack([found[column] for column in range(points.shape[-1])], dim=-1)

    def is_active(
        self, column: int, found: Mapping[int, Tensor], levels: Mapping[int, Tensor], always: Tensor
    ) -> Tensor:
        """Whether one parameter is active, n booleans.

        Args:
            column: of the parameter.
            found: whether its parents are active, by column.
            levels: its parents' levels, by column.
            always: n times True, for a parameter without a condition.
        """
        active = always
        for place, rule in enumerate(self.rules.get(column, ())):
            holds = found[rule.parent] & rule.holds(levels[rule.parent])
            active = holds if place == 0 else active & holds
        return active


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


def _common(spans: tuple[Span, ...], others: tuple[Span, ...]) -> tuple[Span, ...]:
    """Where two lists of spans overlap."""
    pairs = ((max(a[0], b[0]), min(a[1], b[1])) for a in spans for b in others)
    return tuple((first, last) for first, last in pairs if first <= last and not math.isnan(first))
