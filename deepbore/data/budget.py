"""`Budget`: what an evaluation may spend, in rungs. Light to import."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import count, takewhile
from typing import Any

from deepbore.component import plain_number
from deepbore.errors import SettingError
from deepbore.validation import above, required

EXACT = 2**53  # up to which floating-point numbers hold every whole one
ROUNDING = 1e-9  # relative: low * factor^k may miss high by so much


@dataclass(frozen=True)
class Budget:
    """Cheap fidelities: what a trial may spend, from a little for all to the most for the best.

    The budgets are the rungs low * factor^k, k = 0, 1, ..., up to high: 1, 3, 9, 27, 81 epochs for
    `Budget("epochs", 1, 81)`. New configurations begin at the lowest; of the results of a rung the best 1 / factor are
    promoted to the next.

    Args:
        unit: of what is spent, such as "epochs"; for people.
        low: the least that a trial may spend, > 0.
        high: the most; above all rungs if it is none of them.
        factor: between two rungs, > 1.

    Raises:
        SettingError: for a setting outside its range, or a `high` that leaves a single rung.

    Example:
        >>> Budget("epochs", 1, 100).rungs
        (1, 3, 9, 27, 81)

    References:
        Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020 (ASHA).
    """

    unit: str
    low: float
    high: float
    factor: float = 3

    def __post_init__(self) -> None:
        if not (isinstance(self.unit, str) and self.unit):
            raise SettingError(f"unit must name what is spent, as 'epochs', but got unit={self.unit!r:.100}.")
        required(low=self.low, high=self.high, factor=self.factor)
        above(0, low=self.low)
        above(1, factor=self.factor)
        above(self.low, high=self.high)
        for name in ("low", "high", "factor"):  # NumPy's can't be written down
            object.__setattr__(self, name, plain_number(getattr(self, name)))
        if not math.isfinite(self.high) or len(self.rungs) < 2:
            raise SettingError(
                f"low * factor <= high must hold, high finite, so that there are two rungs, but got low={self.low}, "
                f"high={self.high} and factor={self.factor}."
            )

    @cached_property
    def rungs(self) -> tuple[float, ...]:
        """The budgets, ascending; those that are whole numbers as integers, which a command line may ask for."""
        rungs: Iterator[float] = (self.low * self.factor**k for k in count())
        spent = takewhile(lambda rung: rung <= self.high * (1 + ROUNDING), rungs)
        return tuple(int(rung) if rung < EXACT and float(rung).is_integer() else float(rung) for rung in spent)

    @property
    def top(self) -> float:
        """The largest of the rungs."""
        return self.rungs[-1]

    def rung_of(self, budget: float | None) -> int:
        """The number of the rung with this budget, counted from 0, the lowest.

        Raises:
            SettingError: for anything but a rung.
        """
        for number, rung in enumerate(self.rungs):
            if budget is not None and math.isclose(rung, budget, rel_tol=ROUNDING):
                return number
        raise SettingError(f"a budget must be one of {', '.join(map(str, self.rungs))} {self.unit}, but got {budget}.")

    def plain(self, budget: float) -> float:
        """A budget as it was declared: a whole number of epochs stays one."""
        return self.rungs[self.rung_of(budget)]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the header of a journal: `Budget(**data)` is the same again."""
        return asdict(self)
