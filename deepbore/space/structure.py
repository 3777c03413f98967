"""`SpaceStructure`: what a space declares, and what can be asked of that."""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor

from deepbore.space.conditions import Conditions
from deepbore.space.constraints import Constraint, Constraints, Given
from deepbore.space.counting import count
from deepbore.space.declaration import checked_fixed, checked_parameters, free_name
from deepbore.space.layout import Layout
from deepbore.space.parameters import Parameter
from deepbore.space.runs import Run, runs

COUNTABLE = 10**300  # configurations from which a space counts as infinite; floats end at 1.8e308
MANY = 10  # real parameters from which a space is wide: chosen with what is done there, see docs/ablation.md


class SpaceStructure:
    """The declaring half of `SearchSpace`: parameters, conditions, constraints and fixed values.

    Args:
        parameters: name -> parameter, or pairs of them; see `SearchSpace`, as all that follow.
        constraints: what must hold.
        fixed: name -> value of parameters that stand still.
    """

    def __init__(
        self,
        parameters: Mapping[str, Parameter] | Iterable[tuple[str, Parameter]],
        constraints: Sequence[Given | Constraint] | Given,
        fixed: Mapping[str, Any] | None,
    ):
        self.parameters = checked_parameters(parameters)
        self.names = list(self.parameters)
        self._columns = list(self.parameters.values())
        self._conditions = Conditions(self.parameters)
        self._constraints = Constraints(constraints, self.parameters)
        self._still = checked_fixed(fixed or {}, self.parameters)
        self._layout = Layout(self._columns, self._conditions, self._constraints, self._still)

    # --- structure ---------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """d, the number of parameters."""
        return len(self.names)

    def __repr__(self) -> str:
        constraints = f", constraints={list(map(str, self.constraints))}" if self._constraints else ""
        return f"SearchSpace({self.parameters}{constraints}{f', fixed={self.fixed}' if self._still else ''})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SpaceStructure) or list(self.parameters.items()) != list(other.parameters.items()):
            return False
        return self.constraints == other.constraints and self._still == other._still

    def __hash__(self) -> int:
        return hash(tuple(self.names))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # nothing in it changes

    @cached_property
    def is_continuous(self) -> bool:
        """Whether every parameter is continuous and unconditional."""
        return all(p.is_continuous and p.when is None for p in self._columns)

    @cached_property
    def is_wide(self) -> bool:
        """Whether there are ten parameters or more, all of them real."""
        return self.is_continuous and len(self._columns) >= MANY

    @property
    def is_conditional(self) -> bool:
        """Whether any parameter carries a condition."""
        return bool(self._conditions.rules)

    @property
    def constraints(self) -> list[Constraint]:
        """What forbids combinations."""
        return self._constraints.each

    @cached_property
    def fixed(self) -> dict[str, Any]:
        """Parameters that stand still, and their values."""
        return {self.names[column]: self._native(column, entry) for column, entry in self._still.items()}

    def _native(self, column: int, entry: float) -> Any:
        return self._columns[column].decode(torch.tensor([entry], dtype=torch.float64))[0]

    @property
    def is_fixed(self) -> bool:
        """Whether any parameter stands still."""
        return bool(self._still)

    @property
    def is_restricted(self) -> bool:
        """Whether there are points that may not be proposed."""
        return bool(self._constraints) or self.is_fixed

    @cached_property
    def moving_columns(self) -> tuple[int, ...]:
        """Columns of the continuous parameters that are not fixed."""
        return tuple(column for column in self.continuous_columns if column not in self._still)

    @cached_property
    def free_columns(self) -> tuple[int, ...]:
        """Columns of the parameters that are not fixed."""
        return tuple(column for column in range(len(self)) if column not in self._still)

    @cached_property
    def continuous_columns(self) -> tuple[int, ...]:
        """Columns of the continuous parameters, conditional ones included."""
        return tuple(column for column, p in enumerate(self._columns) if p.is_continuous)

    @cached_property
    def runs(self) -> list[Run]:
        """The columns, in runs of neighbours that work alike."""
        return runs(self._columns)

    @cached_property
    def bounds(self) -> Tensor:
        """Least and greatest entries of a point, 2 x d: [0, 1] for numeric columns, [0, K - 1] for level indices."""
        least = [self._still.get(column, 0.0) for column in range(len(self))]
        return torch.tensor(
            [least, [self._still.get(column, p.upper) for column, p in enumerate(self._columns)]], dtype=torch.float64
        )

    @cached_property
    def cardinality(self) -> float:
        """The number of distinct configurations that may be proposed, exactly.

        `math.inf` if a parameter is continuous, from 1e300 on, and where constraints can't be counted by looking at
        20 million combinations, of which one costs ten where there are divisions, powers or texts, and a hundred where
        a function is called.
        """
        found = count(self._layout)
        return found if found < COUNTABLE else math.inf

    # --- points -----------------------------------------------------------------------------------------------------

    @property
    def parents_first(self) -> list[str]:
        """The names, each after those that its conditions ask of."""
        return [self.names[column] for column in self._conditions.order]

    def active(self, points: Tensor) -> Tensor:
        """Which parameters are active in each point: n x d booleans."""
        return self._conditions.active(points)

    def permitted(self, points: Tensor) -> Tensor:
        """Which points may be proposed: constraints hold, and what is fixed stands where it should (n booleans).

        Raises:
            SpaceError: if a constraint can't be computed.
        """
        active = self.active(points)
        found = torch.ones(len(points), dtype=torch.bool, device=points.device)
        for column in self._still:
            level = self._conditions.level(column, points[:, column])
            found &= (level == self._layout.level_where_fixed(column)) | ~active[:, column]
        return found & self._constraints.hold(points, active) if self._constraints else found

    @cached_property
    def restricted_groups(self) -> list[tuple[list[int], Constraints]]:
        """Columns that constraints tie together, and these constraints."""
        with_columns = list(zip(self.constraints, self._constraints.columns, strict=True))
        tied = [(group, [one for one, own in with_columns if own[0] in group]) for group in self._layout.groups()]
        return [(group, Constraints(constraints, self.parameters)) for group, constraints in tied if constraints]

    def stand_still(self, points: Tensor) -> Tensor:
        """The points with fixed parameters where they stand, active or not (n x d)."""
        still, where = (each.to(points.device) for each in self._stands)
        return torch.where(still, where.to(points), points)

    @cached_property
    def _stands(self) -> tuple[Tensor, Tensor]:
        """Which columns are fixed, and where (d each)."""
        columns = range(len(self))
        where = torch.tensor([self._still.get(column, 0.0) for column in columns], dtype=torch.float64)
        return torch.tensor([column in self._still for column in columns]), where

    def to_dict(self) -> dict[str, Any]:
        """The declaration as plain JSON data; `from_dict` takes it back."""
        declared: dict[str, Any] = {name: parameter.to_dict() for name, parameter in self.parameters.items()}
        if self._constraints:
            declared[free_name("constraints", self.parameters)] = self._constraints.plain()
        if self._still:
            declared[free_name("fixed", self.parameters)] = [self.fixed]
        return declared
