"""`Condition`: when a parameter is active."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deepbore.errors import SpaceError


@dataclass(frozen=True)
class Condition:
    """A condition of a parameter, which is active only where `parent` is active and has one of `values`.

    A comparison is a text: ">= 2", "< 0.5", "!= adam". It compares numbers, or the positions of an ordinal's choices;
    a real parent takes comparisons only. A text that is itself a choice of the parent is no comparison.

    Args:
        parent: name of the parameter that it depends on.
        values: a value of the parent or a comparison, or a list of these, of which one must hold.

    Raises:
        SpaceError: if the parent is no text, or no value is given.

    Example:
        >>> Condition("optimizer", "sgd").values
        ('sgd',)
        >>> Condition("layers", ">= 2").values
        ('>= 2',)
    """

    parent: str
    values: Any

    def __post_init__(self) -> None:
        if not isinstance(self.parent, str):
            raise SpaceError(f'a condition names its parent first, as in Condition("optimizer", "sgd"), not {self}.')
        object.__setattr__(self, "values", _listed(self.values))
        if not self.values:
            raise SpaceError(f"a condition needs a value of its parent, but {self.parent!r} got none.")


When = Condition | Mapping[str, Any] | Sequence[Condition | Mapping[str, Any]]


def as_when(when: Any) -> Condition | tuple[Condition, ...] | None:
    """The argument `when=` as one condition, or as several that must all hold; None for None.

    Args:
        when: a `Condition`, a dict {parent: value, list or comparison}, a list of these, or None.

    Raises:
        SpaceError: for anything else.
    """
    if when is None or isinstance(when, Condition):
        return when
    found = tuple(_conditions(when, when))
    if not found:
        raise SpaceError(
            f"when needs a condition, but got {when!r}. Leave it out for a parameter that is always there."
        )
    return found[0] if len(found) == 1 else found


def conditions_of(when: Any) -> tuple[Condition, ...]:
    """All conditions in `when=`; none for None."""
    found = as_when(when)
    return () if found is None else (found,) if isinstance(found, Condition) else found


def as_plain_data(when: Any) -> Any:
    """Conditions as plain JSON data: {parent: [values]}, or a list of these if a parent has several."""
    found = conditions_of(when)
    each = [{condition.parent: list(condition.values)} for condition in found]
    together = {condition.parent: list(condition.values) for condition in found}
    return together if len(together) == len(each) else each


def _conditions(when: Any, given: Any) -> list[Condition]:
    if isinstance(when, Condition):
        return [when]
    if isinstance(when, Mapping):
        return [Condition(parent, values) for parent, values in when.items()]
    if isinstance(when, (list, tuple)):
        return [condition for each in when for condition in _conditions(each, given)]
    raise SpaceError(
        'when must be a Condition, as in when=Condition("optimizer", "sgd"), a dict, as in {"optimizer": "sgd"}, or a '
        f"list of these that must all hold, not {given!r}."
    )


def _listed(values: Any) -> tuple[Any, ...]:
    """One value or several as a tuple of Python values; sets in an order that is the same in every process."""
    if isinstance(values, (set, frozenset)):
        values = sorted(values, key=lambda value: (type(value).__name__, repr(value)))
    if hasattr(values, "tolist"):  # an array, a column of a data frame, or one of their scalars
        values = values.tolist()
    several = values if isinstance(values, (list, tuple, range)) else [values]
    return tuple(value.item() if hasattr(value, "item") else value for value in several)
