"""`Direction`: whether a value is minimised or maximised. Light to import."""

from collections.abc import Sequence
from typing import Literal, get_args

from deepbore.errors import SettingError
from deepbore.validation import one_of

Direction = Literal["minimize", "maximize"]


def sign_of(direction: Direction) -> float:
    """What turns a value to be minimised, and such a one back: 1, and -1 where it is maximised."""
    return 1.0 if direction == "minimize" else -1.0


def checked_directions(directions: Sequence[Direction] | Direction) -> tuple[Direction, ...]:
    """The direction of each of k >= 1 values; a single one may stand alone.

    Raises:
        SettingError: for another direction, or none.
    """
    if not isinstance(directions, (str, Sequence)):
        raise SettingError(f'directions must be a list, as in ["minimize", "maximize"], but got {directions!r:.100}.')
    checked = (directions,) if isinstance(directions, str) else tuple(directions)
    if not checked:
        raise SettingError('at least one direction is needed, such as "minimize", but got none.')
    for direction in checked:
        one_of(get_args(Direction), direction=direction)
    return checked
