"""`Conditions`: which parameters depend on which, and which are active in a point."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

from deepbore.errors import PointError, SpaceError
from deepbore.space.condition import Condition
from deepbore.space.parameters import Parameter


@dataclass(frozen=True)
class Rule:
    """One condition in terms of points: the parameter in column `parent` has a level in one of the `spans`."""

    parent: int
    spans: tuple[tuple[int, int], ...]  # first and last level of each, ascending and apart

    @property
    def levels(self) -> list[int]:
        return [level for first, last in self.spans for level in range(first, last + 1)]

    def holds(self, level: Tensor) -> Tensor:
        """Whether it holds for levels of the parent, entry by entry."""
        holds = torch.zeros_like(level, dtype=torch.bool)
        for first, last in self.spans:
            holds = holds | (level == first if first == last else (level >= first) & (level <= last))
        return holds


class Conditions:
    """The forest that the conditions of a space make: each parameter has at most one parent.

    Args:
        parameters: name -> parameter, in the order of a point's columns.

    Attributes:
        columns: of the conditional parameters.
        rules: column -> its rule, for the conditional parameters.
        children: column -> the columns that depend on it.
        order: all columns, each parent before what depends on it.

    Raises:
        SpaceError: for a condition on an unknown or continuous parent, on a value that it can't have, or a circle.
    """

    def __init__(self, parameters: Mapping[str, Parameter]):
        self._names = list(parameters)
        self._parameters = list(parameters.values())
        column_of = {name: column for column, name in enumerate(parameters)}
        self.rules: dict[int, Rule] = {}
        for name, parameter in parameters.items():
            if parameter.when is not None:
                spans = _spans(_levels_named(name, parameter.when, parameters))
                self.rules[column_of[name]] = Rule(column_of[parameter.when.parent], spans)
        self.columns = list(self.rules)
        self.children: dict[int, list[int]] = {}
        for column, rule in self.rules.items():
            self.children.setdefault(rule.parent, []).append(column)
        self.order = self._parents_first()

    def _parents_first(self) -> list[int]:
        """Every column after its parent and beside its siblings; a stack, since chains may be long."""
        order, stack = [], [column for column in reversed(range(len(self._names))) if column not in self.rules]
        while stack:
            order.append(stack.pop())
            stack.extend(reversed(self.children.get(order[-1], [])))
        if len(order) < len(self._names):
            stuck = [self._names[column] for column in sorted(set(range(len(self._names))) - set(order))]
            raise SpaceError(f"conditions must not form a circle, but these parameters wait for each other: {stuck}.")
        return order

    # --- points ------------------------------------------------------------------------------------------------------

    def active(self, points: Tensor) -> Tensor:
        """Which parameters are active in each point: n x d booleans, on the device of the points."""
        points = points.detach()
        if not self.rules:
            return torch.ones_like(points, dtype=torch.bool)
        always = torch.ones(points.shape[:-1], dtype=torch.bool, device=points.device)
        levels = {parent: self._parameters[parent].to_level(points[..., parent]) for parent in self.children}
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
            found: whether its parent is active, by column.
            levels: its parent's levels, by column.
            always: n times True, for a parameter without a condition.
        """
        rule = self.rules.get(column)
        return always if rule is None else found[rule.parent] & rule.holds(levels[rule.parent])

    # --- counting ----------------------------------------------------------------------------------------------------

    def count(self) -> float:
        """The number of distinct configurations, exactly; `math.inf` if a parameter is continuous."""
        if any(parameter.is_continuous for parameter in self._parameters):
            return math.inf  # every parameter is active in some configuration
        counts: dict[int, int] = {}
        for column in reversed(self.order):
            counts[column] = self._count_below(column, counts)
        return math.prod(counts[column] for column in self.order if column not in self.rules)

    def _count_below(self, column: int, counts: Mapping[int, int]) -> int:
        """Configurations of a parameter and all that depends on it, given those of its children."""
        of_level: dict[int, int] = {}
        for child in self.children.get(column, []):
            for level in self.rules[child].levels:
                of_level[level] = of_level.get(level, 1) * counts[child]
        return (self._parameters[column].levels or 0) - len(of_level) + sum(of_level.values())


def _levels_named(name: str, when: Condition, parameters: Mapping[str, Parameter]) -> list[int]:
    """The parent's levels that a condition names, ascending."""
    parent = parameters.get(when.parent)
    if parent is None:
        raise SpaceError(f"{name!r} depends on {when.parent!r}, which is not among {list(parameters)}.")
    if parent.is_continuous:
        raise SpaceError(f"{name!r} depends on {when.parent!r}, which is continuous and so has no values to name.")
    try:
        return sorted({int(level) for level in parent.to_level(parent.encode(when.values)).tolist()})
    except PointError as error:
        raise SpaceError(f"the condition of {name!r} names impossible values of {when.parent!r}: {error}") from None


def _spans(levels: list[int]) -> tuple[tuple[int, int], ...]:
    """Ascending levels as runs of neighbours: first and last of each."""
    runs = [[level for _, level in run] for _, run in groupby(enumerate(levels), lambda pair: pair[1] - pair[0])]
    return tuple((run[0], run[-1]) for run in runs)
