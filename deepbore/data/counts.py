"""What an outcome must have: how many values and constraints, and which budget. Light to import."""

import math
from dataclasses import replace

from deepbore.data.budget import ROUNDING, Budget
from deepbore.data.outcomes import Outcome
from deepbore.errors import ValueTypeError


def check_counts(outcome: Outcome, k: int, c: int) -> None:
    """Raises ValueTypeError unless an outcome has k values, and c constraints; any number of these while c is 0."""
    if not outcome.has_failed and len(outcome.values) != k:
        raise ValueTypeError(
            f"the number of objective values must be {k}, as that of directions, but got {outcome.values}."
        )
    if outcome.noise is not None and k > 1:
        raise ValueTypeError(
            f"a noise belongs to one value, but the outcome has {k} and noise={outcome.noise}. Leave it out."
        )
    if outcome.constraints or not outcome.has_failed:
        check_width(len(outcome.constraints), c, c)


def check_width(width: int, least: int, c: int) -> None:
    """Raises ValueTypeError for fewer constraints than the least, or another number than c, but for none."""
    if width < least or (c and width not in (0, c)):
        raise ValueTypeError(
            f"the number of constraints must be {c}, as in the first outcome, or earlier result, that had any, but "
            f"got {width}. Give Outcome(value, constraints=[...])."
        )


def width_of(outcome: Outcome) -> int:
    """How many constraints the rows of a run have from this outcome on, if none had any; 0 for as many as before."""
    return len(outcome.constraints) if all(map(math.isfinite, outcome.constraints)) else 0


def with_own_budget(budget: Budget | None, row: int, own: float, outcome: Outcome) -> Outcome:
    """The outcome, where there are rungs with the trial's own budget in place of the number that it is told by.

    Raises:
        ValueTypeError: for an outcome of another budget.
    """
    if budget is None or outcome.budget is None:
        return outcome
    if not math.isclose(outcome.budget, own, rel_tol=ROUNDING):
        raise ValueTypeError(
            f"trial {row} has a budget of {own:g} {budget.unit}, but its outcome is of {outcome.budget:g}. "
            "Leave the outcome's budget out; what else was spent can be an attribute."
        )
    return replace(outcome, budget=own)
