"""`Conditions`: which parameters depend on which, and which are active in a point."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from deepbore.errors import PointError, SpaceError
from deepbore.space.parameters import Condition, Parameter


class Conditions:
    """The forest that the conditions of a space make: each parameter has at most one parent.

    Args:
        parameters: name -> parameter, in the order of a point's columns.

    Raises:
        SpaceError: for a condition on an unknown or continuous parent, on a value that it can't have, or a circle.
    """

    def __init__(self, parameters: Mapping[str, Parameter]):
        self.parameters = dict(parameters)
        self.when: dict[str, Condition] = {n: p.when for n, p in self.parameters.items() if p.when is not None}
        for name, when in self.when.items():
            self._check(name, when)
        self.children = {
            name: [child for child, when in self.when.items() if when.parent == name] for name in self.parameters
        }
        self.roots = [name for name in self.parameters if name not in self.when]
        self.order = [name for root in self.roots for name in self._below(root)]  # parents before children
        if len(self.order) < len(self.parameters):
            stuck = [name for name in self.parameters if name not in self.order]
            raise SpaceError(f"conditions must not form a circle, but these parameters wait for each other: {stuck}.")
        columns = {name: column for column, name in enumerate(self.parameters)}
        self.columns = [columns[name] for name in self.when]  # of the conditional parameters
        self._rules = [
            (columns[name], columns[self.when[name].parent], self._levels_that_activate(name))
            for name in self.order
            if name in self.when
        ]

    def _check(self, name: str, when: Condition) -> None:
        parent = self.parameters.get(when.parent)
        if parent is None:
            raise SpaceError(f"{name!r} depends on {when.parent!r}, which is not among {list(self.parameters)}.")
        if parent.levels is None:
            raise SpaceError(f"{name!r} depends on {when.parent!r}, which is continuous and so has no values to name.")
        try:
            parent.encode(when.values)
        except PointError as error:
            raise SpaceError(f"the condition of {name!r} names impossible values of {when.parent!r}: {error}") from None

    def _below(self, name: str) -> list[str]:
        return [name, *(below for child in self.children[name] for below in self._below(child))]

    def _levels_that_activate(self, name: str) -> list[float]:
        parent = self.parameters[self.when[name].parent]
        levels: list[float] = parent.to_level(parent.encode(self.when[name].values)).tolist()
        return levels

    def active(self, points: Tensor) -> Tensor:
        """Which parameters are active in each point: n x d booleans."""
        active = torch.ones(points.shape, dtype=torch.bool, device=points.device)
        parameters = list(self.parameters.values())
        for column, parent, levels in self._rules:
            level = parameters[parent].to_level(points[..., parent])
            matches = torch.stack([level == wanted for wanted in levels]).any(0)
            active[..., column] = active[..., parent] & matches
        return active

    def count(self) -> float:
        """The number of distinct configurations; `math.inf` if a parameter is continuous."""
        return math.prod(self._count(root) for root in self.roots)

    def _count(self, name: str) -> float:
        """Configurations of a parameter and all that depends on it."""
        levels, children = self.parameters[name].levels, self.children[name]
        if levels is None:
            return math.inf
        named = {value for child in children for value in self.when[child].values}
        with_children = sum(math.prod(self._count(c) for c in children if v in self.when[c].values) for v in named)
        return levels - len(named) + with_children
