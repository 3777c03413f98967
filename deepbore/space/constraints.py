"""`Constraints`: combinations of values that a space forbids, as expressions or functions."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deepbore.errors import SpaceError
from deepbore.space.expression import Expression, Natives
from deepbore.space.parameters import Parameter
from deepbore.space.structure import SpaceStructure

Activity = Mapping[str, np.ndarray]  # name -> whether the parameter is active (n booleans)
Given = str | Callable[[dict[str, Any]], bool]


class Constraint(ABC):
    """A condition that every proposed configuration must fulfil.

    Attributes:
        names: names of its parameters.
        is_known: whether it can be evaluated.
        takes_arrays: whether it takes arrays of numbers; else arrays of Python objects.
        effort: cost of a row, relative to an expression that takes arrays.
    """

    names: tuple[str, ...]
    is_known = True
    takes_arrays = False
    effort = 100

    @abstractmethod
    def holds(self, natives: Natives, active: Activity) -> np.ndarray:
        """Whether configurations fulfil it (n booleans).

        Args:
            natives: name -> values (n) of its parameters, names of choices; arbitrary where a parameter is inactive.
            active: name -> whether the parameter is active (n booleans).

        Raises:
            SpaceError: where it can't be evaluated.
        """

    @abstractmethod
    def plain(self) -> Any:
        """Plain JSON data: the expression, or the name of a function."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constraint) and self.plain() == other.plain()

    def __hash__(self) -> int:
        return hash(str(self.plain()))


class ExpressionConstraint(Constraint):
    """An expression; it holds where one of its parameters is inactive."""

    def __init__(self, text: str, parameters: Mapping[str, Parameter]):
        self.expression = Expression(text, parameters)
        self.names = self.expression.names
        self.takes_arrays = self.expression.is_plain
        self.effort = 1 if self.takes_arrays else 10

    def __str__(self) -> str:
        return self.expression.text

    def plain(self) -> str:
        return self.expression.text

    def holds(self, natives: Natives, active: Activity) -> np.ndarray:
        rows = np.flatnonzero(np.logical_and.reduce([active[name] for name in self.names]))
        found = np.ones(len(active[self.names[0]]), dtype=bool)
        if len(rows):
            found[rows] = self._evaluated({name: natives[name][rows] for name in self.names})
        return found

    def _evaluated(self, natives: Natives) -> np.ndarray:
        try:
            return self.expression.holds(natives)
        except (ArithmeticError, TypeError, ValueError) as error:
            failing = next(each for each in self._rows(natives) if not self._can_evaluate(each))
            values = {name: value[0] for name, value in failing.items()}
            raise SpaceError(
                f"the constraint {self.expression.text!r} can't be computed for {values}: {error}. Exclude it "
                "first, as in: b != 0 and a / b < 2"
            ) from error

    def _rows(self, natives: Natives) -> Iterable[Natives]:
        for row in range(len(natives[self.names[0]])):
            yield {name: values[row : row + 1] for name, values in natives.items()}

    def _can_evaluate(self, natives: Natives) -> bool:
        try:
            self.expression.holds(natives)
        except (ArithmeticError, TypeError, ValueError):
            return False
        return True


class FunctionConstraint(Constraint):
    """A function of the configuration, which contains active parameters only."""

    def __init__(self, function: Callable[[dict[str, Any]], bool], parameters: Mapping[str, Parameter]):
        self.function, self.names, self._parameters = function, tuple(parameters), parameters

    def __str__(self) -> str:
        name = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        return f"{getattr(self.function, '__module__', '')}.{name}".strip(".")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionConstraint) and self.function == other.function

    __hash__ = Constraint.__hash__

    def plain(self) -> dict[str, str]:
        return {"function": str(self)}

    def holds(self, natives: Natives, active: Activity) -> np.ndarray:
        n = len(active[self.names[0]])
        found = np.empty(n, dtype=bool)
        for row in range(n):
            on = [name for name in self.names if active[name][row]]
            found[row] = self._call({name: self._parameters[name].native(natives[name][row]) for name in on})
        return found

    def _call(self, params: dict[str, Any]) -> bool:
        try:
            verdict = self.function(dict(params))
        except Exception as error:
            raise SpaceError(
                f"the constraint {self} has failed for {params}: {type(error).__name__}: {error}. Its argument is "
                "that of the objective: inactive parameters are left out."
            ) from error
        if not isinstance(verdict, (bool, np.bool_)):
            raise SpaceError(f"the constraint {self} must return True or False, but gave {verdict!r} for {params}.")
        return bool(verdict)


class UnknownConstraint(Constraint):
    """A function read from a journal, which keeps only its name; so it can't be evaluated."""

    is_known = False

    def __init__(self, name: str, parameters: Mapping[str, Parameter]):
        self.name, self.names = name, tuple(parameters)

    def __str__(self) -> str:
        return self.name

    def plain(self) -> dict[str, str]:
        return {"function": self.name}

    def holds(self, natives: Natives, active: Activity) -> np.ndarray:
        raise SpaceError(
            f"the function {self.name} is a constraint of which a journal keeps only the name: the run can be read, "
            "but not resumed. Give the space again: Study.load(journal, space=SearchSpace(..., constraints=[...]))."
        )


class Constraints:
    """All constraints of a space, and with its fixed values the points that may be proposed.

    Args:
        given: expressions (see `Expression`), functions configuration -> True or False, or their `plain` data.
        structure: the structure of the space.

    Attributes:
        each: the constraints.
        columns: columns of each constraint's parameters.
        are_known: whether all can be evaluated.
        is_restricted: whether there are constraints or fixed values, so that not every point may be proposed.

    Raises:
        SpaceError: for anything but expressions and functions, or an invalid expression.
    """

    def __init__(self, given: Any, structure: SpaceStructure):
        several = [given] if isinstance(given, str) or callable(given) else given
        if not isinstance(several, (list, tuple)):
            raise SpaceError(f'constraints must be a list, as in ["batch * width <= 4096"], but got {given!r}.')
        self.structure = structure
        self.each = [_constraint(one, structure.parameters) for one in several]
        column_of = {name: column for column, name in enumerate(structure.names)}
        self.columns = [tuple(column_of[name] for name in constraint.names) for constraint in self.each]
        self.are_known = all(constraint.is_known for constraint in self.each)
        self.is_restricted = bool(self.each) or structure.is_fixed
        pairs = list(zip(self.each, self.columns, strict=True))
        objects = {column for constraint, columns in pairs if not constraint.takes_arrays for column in columns}
        self._array_columns = {column for columns in self.columns for column in columns} - objects

    def plain(self) -> list[Any]:
        """Plain JSON data of each."""
        return [constraint.plain() for constraint in self.each]

    @cached_property
    def groups(self) -> list[tuple[list[int], "Constraints"]]:
        """Independent groups of columns, and the constraints of each; groups without a constraint are left out."""
        with_columns = list(zip(self.each, self.columns, strict=True))
        tied = [
            (group, [one for one, columns in with_columns if columns[0] in group])
            for group in self.structure.tied_columns(self.columns)
        ]
        return [(group, Constraints(constraints, self.structure)) for group, constraints in tied if constraints]

    def met(self, points: Tensor, known_only: bool = False) -> np.ndarray:
        """Which constraints points meet (n x number of constraints).

        Args:
            points: n x d.
            known_only: whether unknown constraints count as met; else they raise.

        Raises:
            SpaceError: where a constraint can't be evaluated.
        """
        activity = self.structure.active(points).cpu().numpy()
        points, names = points.detach().cpu(), self.structure.names
        columns = {column for columns in self.columns for column in columns}
        natives = {names[column]: self.natives(column, points[:, column]) for column in columns}
        active = {names[column]: activity[:, column] for column in columns}
        met = np.ones((len(points), len(self.each)), dtype=bool)
        for place, constraint in enumerate(self.each):
            if constraint.is_known or not known_only:
                met[:, place] = constraint.holds(natives, active)
        return met

    def natives(self, column: int, entries: Tensor) -> np.ndarray:
        """Values for `Constraint.holds` of entries of a column (n): as numbers if all constraints take them."""
        natives = self.structure.of_column[column].decode_plain(entries)
        return np.array(natives) if column in self._array_columns and natives else as_objects(natives)

    def hold(self, points: Tensor) -> Tensor:
        """Which points meet all constraints (n booleans, on the device of the points)."""
        return torch.from_numpy(self.met(points).all(1)).to(points.device)

    def permitted(self, points: Tensor) -> Tensor:
        """Which points may be proposed: all constraints hold, and fixed parameters have their values (n booleans).

        Raises:
            SpaceError: where a constraint can't be evaluated.
        """
        conditions, found = self.structure.conditions, torch.ones(len(points), dtype=torch.bool, device=points.device)
        if self.structure.is_fixed:
            active = self.structure.active(points)
            for column, fixed in self.structure.fixed_levels.items():
                found &= (conditions.level(column, points[:, column]) == fixed) | ~active[:, column]
        return found & self.hold(points) if self.each else found


def as_objects(natives: Sequence[Any]) -> np.ndarray:
    """Native values as an array of Python objects, whose arithmetic is exact for integers."""
    array = np.empty(len(natives), dtype=object)
    array[:] = natives
    return array


def _constraint(given: Any, parameters: Mapping[str, Parameter]) -> Constraint:
    if isinstance(given, Constraint):
        return given
    if isinstance(given, str):
        return ExpressionConstraint(given, parameters)
    if callable(given):
        return FunctionConstraint(given, parameters)
    if isinstance(given, Mapping) and set(given) == {"function"} and isinstance(given["function"], str):
        return UnknownConstraint(given["function"], parameters)
    raise SpaceError(
        'a constraint must be an expression, such as "batch * width <= 4096", or a function of the configuration, but '
        f"got {given!r}."
    )
