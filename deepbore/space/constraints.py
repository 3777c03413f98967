"""`Constraints`: combinations of values that a space forbids, and what can be asked of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deepbore.errors import SpaceError
from deepbore.space.expression import Expression, Natives
from deepbore.space.parameters import Parameter

Activity = Mapping[str, np.ndarray]  # name -> whether the parameter is active (n booleans)
Given = str | Callable[[dict[str, Any]], bool]


class Constraint(ABC):
    """What configurations must fulfil.

    Attributes:
        names: the parameters that it looks at.
        is_known: whether it can be computed.
        takes_arrays: whether arrays of numbers do, in place of Python's own objects.
        effort: what a row takes, in that of an expression over arrays.
    """

    names: tuple[str, ...]
    is_known = True
    takes_arrays = False
    effort = 100

    @abstractmethod
    def holds(self, natives: Natives, active: Activity) -> np.ndarray:
        """Whether configurations fulfil it (n booleans). Raises SpaceError where that can't be computed."""

    @abstractmethod
    def plain(self) -> Any:
        """It as plain JSON data, as far as that goes."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constraint) and self.plain() == other.plain()

    def __hash__(self) -> int:
        return hash(str(self.plain()))


class Written(Constraint):
    """An expression; one that names an inactive parameter holds."""

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
            found[rows] = self._computed({name: natives[name][rows] for name in self.names})
        return found

    def _computed(self, natives: Natives) -> np.ndarray:
        try:
            return self.expression.holds(natives)
        except (ArithmeticError, TypeError, ValueError) as error:
            culprit = next(each for each in self._rows(natives) if not self._can(each))
            values = {name: value[0] for name, value in culprit.items()}
            raise SpaceError(
                f"the constraint {self.expression.text!r} can't be computed for {values}: {error}. Ask for that "
                "before, as in: b != 0 and a / b < 2"
            ) from error

    def _rows(self, natives: Natives) -> Iterable[Natives]:
        for row in range(len(natives[self.names[0]])):
            yield {name: values[row : row + 1] for name, values in natives.items()}

    def _can(self, natives: Natives) -> bool:
        try:
            self.expression.holds(natives)
        except (ArithmeticError, TypeError, ValueError):
            return False
        return True


class Function(Constraint):
    """A function of the configuration, which has active parameters only."""

    def __init__(self, function: Callable[[dict[str, Any]], bool], parameters: Mapping[str, Parameter]):
        self.function, self.names = function, tuple(parameters)

    def __str__(self) -> str:
        name = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        return f"{getattr(self.function, '__module__', '')}.{name}".strip(".")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Function) and self.function == other.function

    __hash__ = Constraint.__hash__

    def plain(self) -> dict[str, str]:
        return {"function": str(self)}

    def holds(self, natives: Natives, active: Activity) -> np.ndarray:
        n = len(active[self.names[0]])
        found = np.empty(n, dtype=bool)
        for row in range(n):
            found[row] = self._verdict({name: natives[name][row] for name in self.names if active[name][row]})
        return found

    def _verdict(self, params: dict[str, Any]) -> bool:
        try:
            verdict = self.function(dict(params))
        except Exception as error:
            raise SpaceError(
                f"the constraint {self} has failed for {params}: {type(error).__name__}: {error}. It gets what the "
                "objective gets: inactive parameters are left out."
            ) from error
        if not isinstance(verdict, (bool, np.bool_)):
            raise SpaceError(f"the constraint {self} must return True or False, but gave {verdict!r} for {params}.")
        return bool(verdict)


class Lost(Constraint):
    """A function that a journal could only name. Rows of the journal were allowed; what else is, nobody knows."""

    is_known = False

    def __init__(self, name: str, parameters: Mapping[str, Parameter]):
        self.name, self.names = name, tuple(parameters)

    def __str__(self) -> str:
        return self.name

    def plain(self) -> dict[str, str]:
        return {"function": self.name}

    def holds(self, natives: Natives, active: Activity) -> np.ndarray:
        raise SpaceError(
            f"the function {self.name} forbids some configurations, and a journal can't keep it: the run can be looked "
            "at, but not go on. Give the space again: Study.load(journal, space=SearchSpace(..., constraints=[...]))."
        )


class Constraints:
    """All constraints of a space.

    Args:
        given: expressions (see `Expression`), functions configuration -> True or False, or what `plain` gives of them.
        parameters: name -> parameter, in the order of a point's columns.

    Attributes:
        each: one by one.
        columns: those that each looks at, of every constraint.
        names: of all parameters.

    Raises:
        SpaceError: for what is neither expression nor function, and for an expression that can't be meant.
    """

    def __init__(self, given: Any, parameters: Mapping[str, Parameter]):
        several = [given] if isinstance(given, str) or callable(given) else given
        if not isinstance(several, (list, tuple)):
            raise SpaceError(f'constraints must be a list, as in ["batch * width <= 4096"], but got {given!r}.')
        self.each = [_constraint(one, parameters) for one in several]
        self._parameters, self.names = parameters, list(parameters)
        column_of = {name: column for column, name in enumerate(parameters)}
        self.columns = [tuple(column_of[name] for name in constraint.names) for constraint in self.each]
        pairs = list(zip(self.each, self.columns, strict=True))
        rough = {column for constraint, columns in pairs if not constraint.takes_arrays for column in columns}
        self._quick = {column for columns in self.columns for column in columns} - rough

    def __bool__(self) -> bool:
        return bool(self.each)

    def plain(self) -> list[Any]:
        """Them as plain JSON data."""
        return [constraint.plain() for constraint in self.each]

    @property
    def are_known(self) -> bool:
        """Whether all can be computed."""
        return all(constraint.is_known for constraint in self.each)

    def met(self, points: Tensor, active: Tensor, known_only: bool = False) -> np.ndarray:
        """Which constraints points meet.

        Args:
            points: n x d.
            active: n x d booleans.
            known_only: whether those that are lost count as met; else they raise.

        Returns:
            n x the number of constraints.

        Raises:
            SpaceError: where that can't be computed.
        """
        points, activity = points.detach().cpu(), active.cpu().numpy()
        needed = {column for columns in self.columns for column in columns}
        natives, on = {}, {}
        for column in needed:
            name = self.names[column]
            natives[name], on[name] = self.natives(column, points[:, column]), activity[:, column]
        met = np.ones((len(points), len(self.each)), dtype=bool)
        for place, constraint in enumerate(self.each):
            if constraint.is_known or not known_only:
                met[:, place] = constraint.holds(natives, on)
        return met

    def natives(self, column: int, entries: Tensor) -> np.ndarray:
        """Native values for `Constraint.holds`, of entries of a column (n): numbers only where that gives the same."""
        natives = self._parameters[self.names[column]].decode(entries)
        return np.array(natives) if column in self._quick and natives else as_objects(natives)

    def hold(self, points: Tensor, active: Tensor) -> Tensor:
        """Which points meet all constraints (n booleans, on the device of the points)."""
        return torch.from_numpy(self.met(points, active).all(1)).to(points.device)


def as_objects(natives: Sequence[Any]) -> np.ndarray:
    """Native values as an array of Python's own objects, with which arithmetic is Python's."""
    array = np.empty(len(natives), dtype=object)
    array[:] = natives
    return array


def _constraint(given: Any, parameters: Mapping[str, Parameter]) -> Constraint:
    if isinstance(given, Constraint):
        return given
    if isinstance(given, str):
        return Written(given, parameters)
    if callable(given):
        return Function(given, parameters)
    if isinstance(given, Mapping) and set(given) == {"function"} and isinstance(given["function"], str):
        return Lost(given["function"], parameters)
    raise SpaceError(
        'a constraint must be an expression, such as "batch * width <= 4096", or a function of the configuration, but '
        f"got {given!r}."
    )
