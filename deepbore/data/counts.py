"""How many values and constraints a row takes."""

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
