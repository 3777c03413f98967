"""Preferences: pairs of trials that were compared. Light to import."""

from deepbore.data.directions import Direction
from deepbore.data.outcomes import Outcome
from deepbore.errors import SettingError, TrialError, ValueTypeError

Pair = tuple[int, int]  # rows of the preferred trial and of the other one


def check_pair(pair: Pair) -> None:
    """Raises TrialError for a trial that is compared with itself."""
    if pair[0] == pair[1]:
        raise TrialError(f"two trials are compared, but got trial {pair[0]} twice. Name another one.")


def check_directions(directions: tuple[Direction, ...]) -> None:
    """Raises SettingError unless the one value is to be maximised, as utilities are."""
    if directions != ("maximize",):
        raise SettingError(
            f"preferences say what is better, and have no directions, but got {', '.join(directions)}. Leave it out."
        )


def check_told(row: int, outcome: Outcome) -> None:
    """Raises ValueTypeError unless an outcome says nothing in a run of preferences but that a trial has failed."""
    if not outcome.has_failed:
        raise refuse_values(f"trial {row} was told {outcome.values}")
    for name, given in {"constraints": outcome.constraints, "noise": outcome.noise}.items():
        if given not in ((), None):
            raise refuse_values(f"trial {row} was told {name}={given}")


def refuse_values(what: str) -> ValueTypeError:
    """The error of a run of preferences that is told values, or what goes with them."""
    return ValueTypeError(
        f"in a study of preferences trials are compared and have no values of their own, but {what}. Call "
        "prefer(better, worse), or tell(trial, failed=True) if a trial can't be shown; for values make a study without "
        "preferences=True."
    )
