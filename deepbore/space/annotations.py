"""The parameters that annotations declare: of a dataclass, a pydantic model, any class, or a function."""

import dataclasses
import inspect
import types
from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from deepbore.errors import SpaceError
from deepbore.space.parameters import Categorical, Integer, Parameter, Real
from deepbore.space.parameters.base import UNSET

BOUNDS = {"ge": "low", "le": "high", "gt": "low", "lt": "high", "multiple_of": "step"}  # of annotated-types


def parameters_of(annotated: Any, given: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """Name -> parameter, in the order of the fields; see `SearchSpace.from_annotations`.

    Raises:
        SpaceError: naming the fields without default that give no parameter, and given names that are no fields.
    """
    hints, defaults = _hints(annotated), _defaults(annotated)
    if unknown := given.keys() - hints.keys():
        raise SpaceError(f"parameters must be among the fields {list(hints)}, but got {sorted(unknown)}.")
    found, left_open = {}, []
    for name, hint in hints.items():
        parameter = given[name] if name in given else _parameter(name, hint)
        default = defaults.get(name, UNSET)
        if parameter is None:
            left_open += [name] if default is UNSET else []
            continue
        is_set = default is UNSET or parameter.default is not UNSET
        found[name] = parameter if is_set else _with_default(name, parameter, default)
    if left_open or not found:
        raise SpaceError(
            f"{left_open or 'the fields'} of {_called(annotated)} say no range of values. Say it in the annotation, "
            "as in lr: Annotated[float, Real(0, 1)], or beside it: from_annotations(Settings, lr=Real(0, 1))."
        )
    return found


def _hints(annotated: Any) -> dict[str, Any]:
    """Name -> annotation of the fields, or of a function's arguments."""
    if inspect.isroutine(annotated):
        names = list(inspect.signature(annotated).parameters)
        hints = get_type_hints(annotated, include_extras=True)
        return {name: hints.get(name, Any) for name in names}
    cls = annotated if isinstance(annotated, type) else type(annotated)
    hints = get_type_hints(cls, include_extras=True)
    if dataclasses.is_dataclass(cls):
        hints = {each.name: hints[each.name] for each in dataclasses.fields(cls) if each.init}
    fields = getattr(cls, "model_fields", None)  # of pydantic, which keeps bounds beside the type
    if isinstance(fields, Mapping):
        hints = {name: Annotated[field.annotation, (*field.metadata,)] for name, field in fields.items()}
    elif not hints:
        raise SpaceError(f"a space is read off annotations, but {_called(annotated)} has none.")
    return hints


def _defaults(annotated: Any) -> dict[str, Any]:
    """Name -> default of the fields that have one; of an instance, its values."""
    if inspect.isroutine(annotated):
        signature = inspect.signature(annotated).parameters.values()
        return {each.name: each.default for each in signature if each.default is not each.empty}
    if not isinstance(annotated, type):
        return {name: getattr(annotated, name) for name in _hints(annotated) if hasattr(annotated, name)}
    if isinstance(fields := getattr(annotated, "model_fields", None), Mapping):
        return {
            name: field.get_default(call_default_factory=True)
            for name, field in fields.items()
            if not field.is_required()
        }
    if dataclasses.is_dataclass(annotated):
        missing = dataclasses.MISSING
        each = [
            (f.name, f.default if f.default_factory is missing else f.default_factory())
            for f in dataclasses.fields(annotated)
        ]
        return {name: default for name, default in each if default is not missing}
    return {name: getattr(annotated, name) for name in _hints(annotated) if hasattr(annotated, name)}


def _parameter(name: str, hint: Any) -> Parameter | None:
    """The parameter that an annotation declares; None if it says no range."""
    notes: list[Any] = []
    while get_origin(hint) is Annotated:
        hint, *more = get_args(hint)
        notes = [*more, *notes]
    notes = [one for note in notes for one in (note if isinstance(note, tuple) else [note])]
    notes = [one for note in notes for one in getattr(note, "metadata", [note])]  # of a Field within Annotated
    declared = [note for note in notes if isinstance(note, Parameter)]
    if declared:
        return declared[-1]
    if (choices := _choices(hint)) is not None:
        return Categorical(choices)
    bounds = {ours: getattr(note, theirs) for note in notes for theirs, ours in BOUNDS.items() if _has(note, theirs)}
    if hint not in (int, float) or not {"low", "high"} <= bounds.keys():
        return None
    if hint is int:  # beyond an open bound there is the next whole number
        bounds["low"] += any(_has(note, "gt") for note in notes)
        bounds["high"] -= any(_has(note, "lt") for note in notes)
    elif any(_has(note, bound) for note in notes for bound in ("gt", "lt")):
        raise SpaceError(f"the bounds of {name!r} must be values of it: ge= and le= in place of gt= and lt=.")
    return (Integer if hint is int else Real)(**bounds)


def _has(note: Any, bound: str) -> bool:
    return getattr(note, bound, None) is not None


def _choices(hint: Any) -> list[Any] | None:
    """The values of a type that lists them; None for another."""
    if hint is bool:
        return [False, True]
    if hint is None or hint is type(None):
        return [None]
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return list(hint)
    if get_origin(hint) in (Union, types.UnionType):
        each = [_choices(one) for one in get_args(hint)]
        return None if None in each else [choice for some in each for choice in some or ()]
    return None


def _with_default(name: str, parameter: Parameter, default: Any) -> Parameter:
    try:
        return dataclasses.replace(parameter, default=default)  # type: ignore[type-var]
    except SpaceError as error:
        raise SpaceError(f"the default of {name!r}: {error}") from None


def _called(annotated: Any) -> str:
    named = annotated if isinstance(annotated, type) or inspect.isroutine(annotated) else type(annotated)
    return str(getattr(named, "__name__", named))
