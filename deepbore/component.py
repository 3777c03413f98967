"""`Component`: an exchangeable part of a run, its description as plain data, and the way back."""

import dataclasses
import inspect
import numbers
import re
from collections.abc import Mapping
from copy import copy
from importlib import import_module
from typing import Any, Self, TypeVar

from deepbore.errors import SettingError

P = TypeVar("P")
ROOMS = frozenset({"acquisition", "candidates", "classifiers", "data", "labels", "strategies"})  # of a run's parts
RECORDS = frozenset({"deepbore.classifiers.Training", "deepbore.data.Budget", "deepbore.labels.DecayingGamma"})
Description = dict[str, Any]  # {"class_path": ..., "init_args": {...}}, as in a LightningCLI configuration


class Component:
    """An exchangeable part of a run, which remembers its arguments: the header of a journal describes it by them."""

    _arguments: dict[str, Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if (args or kwargs) and cls.__init__ is object.__init__:  # it ignores arguments where __new__ exists
            raise SettingError(f"{cls.__name__} has no settings, but got {[*args, *kwargs]}. Give {cls.__name__}().")
        part = super().__new__(cls)
        try:
            bound = inspect.signature(cls.__init__).bind_partial(part, *args, **kwargs)
        except TypeError:  # `__init__` raises the clearer error
            return part
        vars(part)["_arguments"] = dict(list(bound.arguments.items())[1:])
        return part


def with_settings(part: P, **settings: Any) -> P:
    """A copy of a component with some settings changed, as if made with them; each is an attribute of the same name.

    Example:
        >>> from deepbore.acquisition import UpperConfidenceBound
        >>> describe(with_settings(UpperConfidenceBound(), kappa=2.0))["init_args"]
        {'kappa': 2.0}
    """
    other = copy(part)
    vars(other).update(settings, _arguments={**_arguments(part), **settings})
    return other


def describe(part: Any) -> Description:
    """A component as plain JSON data: its class and the arguments that were given.

    Args:
        part: a `Component`, or a dataclass of settings.

    Example:
        >>> from deepbore.candidates import LocalSearch
        >>> describe(LocalSearch(samples=10))
        {'class_path': 'deepbore.candidates.LocalSearch', 'init_args': {'samples': 10}}
    """
    return {
        "class_path": class_path(type(part)),
        "init_args": {name: _plain(v) for name, v in _arguments(part).items()},
    }


def class_path(cls: type) -> str:
    """The import path of a class; for those of deepbore that of its room, which is stable when files move."""
    own = cls.__module__.split(".")
    return f"deepbore.{own[1]}.{cls.__name__}" if own[0] == "deepbore" else f"{cls.__module__}.{cls.__qualname__}"


def class_name(description: Mapping[str, Any]) -> str:
    """The name of the class in a description, without its module; empty where there is none."""
    return str(description.get("class_path", "")).rpartition(".")[2]


def make(description: Mapping[str, Any], kind: type[P]) -> P:
    """The component that `describe` has described.

    Text names nothing that is not on a list: only components of `ROOMS`, and `RECORDS` as their settings, are made, so
    that a journal from elsewhere runs no foreign code.

    Args:
        description: as `describe` gives it.
        kind: the class it must be of.

    Raises:
        SettingError: for a class that is not on the list, or a setting that could not be written down.
    """
    path = _path_of(description)
    cls = _listed(path)
    if not issubclass(cls, kind):
        raise SettingError(f"{path} must be a {kind.__name__}, but is {cls!r}. Give the part itself.")
    part: P = cls(**_settings(description, path))
    return part


def _listed(path: str) -> type:
    """The component of deepbore, or the record of settings, at a class path; nothing else is imported or looked up."""
    module, _, name = path.rpartition(".")
    package, _, room = module.partition(".")
    if package != "deepbore":
        raise SettingError(f"{path} is not a class of deepbore, so it is not imported. Give the part itself.")
    cls = getattr(import_module(module), name, None) if room in ROOMS else None
    is_own = isinstance(cls, type) and cls.__module__.startswith(f"{module}.")
    if not isinstance(cls, type) or not is_own or not (issubclass(cls, Component) or path in RECORDS):
        raise SettingError(f"{path} is no part of a run, so it is not made. Give the part itself.")
    return cls


def _path_of(description: Any) -> str:
    path = description.get("class_path") if isinstance(description, Mapping) else None
    if not isinstance(path, str):
        raise SettingError(f"a part must have a class_path, but got {description!r:.100}. Give the part itself.")
    return path


def _settings(description: Mapping[str, Any], path: str) -> dict[str, Any]:
    settings = description.get("init_args", {})
    if not isinstance(settings, Mapping):
        raise SettingError(f"the settings of {path} must stand by their names, but got {settings!r:.100}.")
    return {str(name): _made(value, path) for name, value in settings.items()}


def has_default_settings(part: Component) -> bool:
    """Whether a component has only default settings, given or not."""
    defaults = inspect.signature(type(part).__init__).parameters
    return all(name in defaults and defaults[name].default == value for name, value in _arguments(part).items())


def without_addresses(text: str) -> str:
    """A text without memory addresses, which differ between processes.

    Example:
        >>> without_addresses("{'unknown': '<function net at 0x7f3c02>'}")
        "{'unknown': '<function net>'}"
    """
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


def alike(one: Any, other: Any) -> bool:
    """Whether two descriptions, perhaps of different processes, are equal but for memory addresses."""
    return without_addresses(repr(one)) == without_addresses(repr(other))


def _arguments(part: Any) -> dict[str, Any]:
    if dataclasses.is_dataclass(part):
        return {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}
    arguments: dict[str, Any] = vars(part).get("_arguments", {})
    return arguments


def is_number(value: Any) -> bool:
    """Whether it is a real number, of Python or NumPy; bool is none."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def plain_number(value: numbers.Real) -> int | float:
    """A number of Python or NumPy as Python's own."""
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, numbers.Real):
        return plain_number(value)
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, Component) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        return describe(value)
    return {"unknown": repr(value)[:200]}


def _made(value: Any, path: str) -> Any:
    if isinstance(value, list):
        return tuple(_made(each, path) for each in value)
    if isinstance(value, Mapping):
        if "unknown" in value:
            raise SettingError(
                f"a setting of {path} could not be written down: {value['unknown']}. Give the part itself."
            )
        inner = _path_of(value)
        return _listed(inner)(**_settings(value, inner))
    return value
