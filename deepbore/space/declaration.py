"""A search space as plain data, and as the user declares it."""

from collections.abc import Iterable, Mapping
from typing import Any

from deepbore.errors import PointError, SpaceError
from deepbore.space.parameters import Parameter, parameter_from_dict


def checked_parameters(given: Any) -> dict[str, Parameter]:
    """Parameters by name, from a mapping or pairs. Raises SpaceError unless names and parameters are some."""
    try:
        pairs = [(name, parameter) for name, parameter in (given.items() if isinstance(given, Mapping) else given)]
    except (TypeError, ValueError):
        raise SpaceError(f'a space is declared as {{"lr": Real(...), ...}}, but got {given!r:.100}.') from None
    if not pairs:
        raise SpaceError("a search space needs at least one parameter, but got none.")
    for name, parameter in pairs:
        if not isinstance(name, str) or not name:
            raise SpaceError(f"parameter names must be non-empty strings, but got {name!r}.")
        if not isinstance(parameter, Parameter):
            kinds = "Real, Integer, Ordinal or Categorical"
            raise SpaceError(f"parameter {name!r} must be a {kinds}, but got {type(parameter).__name__}.")
    if len(dict(pairs)) < len(pairs):
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise SpaceError(f"parameter names must differ, but {twice} stand more than once.")
    return dict(pairs)


def checked_fixed(given: Any, parameters: Mapping[str, Parameter]) -> dict[int, float]:
    """Fixed values as column -> entry. Raises SpaceError for an unknown name, or a value outside."""
    if not isinstance(given, Mapping):
        raise SpaceError(f'fixed values are a dict, as in {{"optimizer": "adam"}}, but got {given!r}.')
    column_of = {name: column for column, name in enumerate(parameters)}
    entries = {}
    for name, value in given.items():
        if name not in parameters:
            raise SpaceError(f"fixed parameters must be among {list(parameters)}, but got {name!r}.")
        try:
            entries[column_of[name]] = float(parameters[name].encode([value])[0])
        except PointError as error:
            raise SpaceError(f"the fixed parameter {name!r}: {error}") from None
    return entries


def split(declared: Any) -> tuple[dict[str, Parameter], Any, dict[str, Any]]:
    """Parameters, constraints and fixed values in plain data: a list can't declare a parameter, so it is one of these.

    Raises:
        SpaceError: for anything that does not make a valid space.
    """
    if not isinstance(declared, Mapping):
        raise SpaceError(f"a space is declared by a mapping, name: {{type: ...}}, but got {declared!r:.100}.")
    rest = dict(declared)
    constraints = rest.pop("constraints") if isinstance(rest.get("constraints"), str) else _list_of("constraints", rest)
    fixed = _list_of("fixed", rest)
    for name, settings in rest.items():
        if not isinstance(settings, Mapping):
            raise SpaceError(f"parameter {name!r} must be declared by a mapping with a type, but got {settings!r}.")
    parameters = {name: parameter_from_dict(name, settings) for name, settings in rest.items()}
    return parameters, constraints, {name: value for each in fixed for name, value in dict(each).items()}


def free_name(name: str, taken: Iterable[str]) -> str:
    """This name, or where it is taken the first of name_, name__, ... that is not."""
    while name in taken:
        name += "_"
    return name


def _list_of(name: str, declared: dict[str, Any]) -> Any:
    """Takes the list of this name, or the `free_name` beside a parameter, out of a declaration; else an empty one."""
    key = free_name(name, [each for each, settings in declared.items() if isinstance(settings, Mapping)])
    return declared.pop(key) if isinstance(declared.get(key), (list, tuple)) else []
