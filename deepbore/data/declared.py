"""`Declared`: the parameters that a journal declares, which its events are checked by without the search space."""

from collections.abc import Iterable, Mapping
from typing import Any

from deepbore.component import is_number
from deepbore.data.events import Asked, Enqueued, Event, Fixed, Imported
from deepbore.data.log import Line
from deepbore.data.trial import LARGEST, Budget

Scalar = str | int | float | bool | None
NUMBERS, CHOICES = ("real", "integer"), ("ordinal", "categorical")  # types of parameters; others are the user's own


def header_of(created: Line) -> dict[str, Any]:
    """The header of a run, from its first event; version 0.1 named one "direction".

    Raises:
        LookupError, TypeError: for an event that declares no run.
    """
    header = {name: each for name, each in created.items() if name != "event"}
    header["directions"] = header["directions"] if "directions" in header else [header["direction"]]
    for name, kept in {"space": header["space"], "recipe": header.get("recipe", {})}.items():
        if not isinstance(kept, dict):
            raise TypeError(f"the {name} must be a mapping, but got {kept!r:.100}.")
    if not isinstance(header["seed"], int):
        raise TypeError(f"the seed must be a whole number, but got {header['seed']!r}.")
    return header


def budget_of(header: Mapping[str, Any]) -> Budget | None:
    """The budget that a header declares; None where there is none."""
    return Budget(**header["budget"]) if "budget" in header else None


def current(line: Line, names: Iterable[str]) -> Line:
    """A line as this version writes it: in version 0.1 one earlier result had "params" and "value".

    Args:
        line: of any version.
        names: of the parameters.
    """
    if line["event"] != "added" or "params" not in line:
        return line
    params = {name: [line["params"].get(name)] for name in [*names, *line["params"]]}
    return {"event": "added", "columns": params, "values": [line["value"]]}


class Declared:
    """The parameters that a header declares: name -> type, bounds, ...; see `SearchSpace.to_dict`.

    Args:
        header: of the run.

    Raises:
        ValueError: for the declaration of a parameter that can't be shown.
    """

    def __init__(self, header: Mapping[str, Any]):
        declared = header["space"].items()
        self.parameters = {name: each for name, each in declared if isinstance(each, dict)}  # constraints are lists
        for name, declared in self.parameters.items():
            _check_declared(name, declared)
        self._choices = {
            name: frozenset(each["choices"]) for name, each in self.parameters.items() if each["type"] in CHOICES
        }

    @property
    def optional(self) -> frozenset[str]:
        """Names of the parameters that have no None among their values: it says that they are inactive."""
        return frozenset(name for name in self.parameters if None not in self._choices.get(name, ()))

    def check(self, event: Event) -> None:
        """Raises ValueError for a parameter in an event that is not declared, or a value of another kind."""
        if isinstance(event, (Asked, Fixed, Enqueued)):
            self._check_names(event.params)
            for name, value in event.params.items():
                if not self._is_of_kind(name, value):
                    raise ValueError(f"parameter {name!r} can't have the value {value!r:.100}.")
        elif isinstance(event, Imported) and event.columns is not None:
            self._check_columns(event.columns)

    def _check_columns(self, columns: Mapping[str, Any]) -> None:
        self._check_names(columns)
        for name, column in columns.items():
            kinds = {type(value): value for value in column}  # one of each: a million take no time
            kinds.pop(type(None), None)  # inactive
            several = kinds.values() if self.parameters[name]["type"] in NUMBERS else column
            wrong = [each for each in several if each is not None and not self._is_of_kind(name, each)]
            if not isinstance(column, list) or wrong:
                raise ValueError(f"parameter {name!r} can't have the values {wrong[:3]!r:.100}.")

    def _check_names(self, params: Mapping[str, Any]) -> None:
        if not params.keys() <= self.parameters.keys():
            raise ValueError(f"parameters must be among {sorted(self.parameters)}, but got {sorted(params)}.")

    def _is_of_kind(self, name: str, value: Any) -> bool:
        """Whether it is a number, one of the choices, or anything where the type of the parameter is the user's."""
        if name in self._choices:
            return isinstance(value, Scalar) and value in self._choices[name]  # the names, where they are a mapping
        return _is_finite(value) if self.parameters[name]["type"] in NUMBERS else True


def _check_declared(name: str, declared: Mapping[str, Any]) -> None:
    if not isinstance(declared.get("type"), str):
        raise ValueError(f"parameter {name!r} must have a type, but got {declared!r:.100}.")
    if declared["type"] in NUMBERS:
        low, high, step = declared["low"], declared["high"], declared.get("step", 1)
        if not (all(map(_is_finite, (low, high, step))) and low < high and step > 0):
            raise ValueError(f"parameter {name!r} must have low < high, but got {declared!r:.100}.")
    elif declared["type"] in CHOICES:
        choices = declared["choices"]
        if not isinstance(choices, list | dict) or not all(isinstance(each, Scalar) for each in choices):
            raise ValueError(f"parameter {name!r} must have choices, but got {declared!r:.100}.")


def _is_finite(value: Any) -> bool:
    return is_number(value) and -LARGEST <= value <= LARGEST
