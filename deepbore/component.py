"""`Component`: an exchangeable part of a run, its description as plain data, and the way back."""

import dataclasses
import functools
import inspect
import numbers
import re
from collections.abc import Mapping
from copy import copy
from importlib import import_module
from typing import Any, Self, TypeVar, get_args, get_type_hints

from deepbore.errors import DeepBoreError, SettingError
from deepbore.names import ARGUMENTS, meant

P = TypeVar("P")
ROOMS = frozenset(  # of a run's parts
    {"acquisition", "candidates", "classifiers", "data", "labels", "pruners", "strategies"}
)
RECORDS = frozenset({"deepbore.classifiers.Training", "deepbore.data.Budget", "deepbore.labels.DecayingGamma"})
Description = dict[str, Any]  # {"class_path": ..., "init_args": {...}}, as in a LightningCLI configuration
LONGEST_UNKNOWN = 200  # characters that a journal keeps of a setting that it cannot make again
SHOWN = 200  # characters of an argument in a text
FORMER_PATHS = {"deepbore.candidates.Ambitious": "deepbore.candidates.RaisedIncumbent"}  # classes in old journals


class OwnSignature:
    """The signature that `help` shows of a class: that of its `__init__`, or none, and not that of `__new__`."""

    def __get__(self, part: object, kind: type) -> inspect.Signature:
        if part is not None:  # an object that can be called has its own
            raise AttributeError("__signature__")
        if kind.__init__ is object.__init__:  # type: ignore[misc]
            return inspect.Signature()
        own = inspect.signature(kind.__init__)  # type: ignore[misc]
        return own.replace(parameters=list(own.parameters.values())[1:], return_annotation=own.empty)


class Component:
    """An exchangeable part of a run, which remembers its arguments: the header of a journal describes it by them."""

    _arguments: dict[str, Any]

    __signature__ = OwnSignature()

    def __new__(cls, /, *args: Any, **kwargs: Any) -> Self:
        if (args or kwargs) and cls.__init__ is object.__init__:  # it ignores arguments where __new__ exists
            raise SettingError(f"{cls.__name__} has no settings, but got {[*args, *kwargs]}. Give {cls.__name__}().")
        part = super().__new__(cls)
        try:
            bound = inspect.signature(cls.__init__).bind_partial(part, *args, **kwargs)
        except TypeError:
            known = list(inspect.signature(cls.__init__).parameters)[1:]
            if unknown := kwargs.keys() - set(known):
                ours = {name: here for name, here in ARGUMENTS.items() if here.rstrip("=") in known}
                said = meant(min(unknown), known, ours)
                raise TypeError(f"{cls.__name__}() got an unexpected keyword argument {said}") from None
            return part  # `__init__` raises the clearer error
        vars(part)["_arguments"] = {name: plain_partial(value) for name, value in list(bound.arguments.items())[1:]}
        return part

    def __repr__(self) -> str:
        """The call that makes it, with the arguments that were given: `KernelPLS(noisy=True)`."""
        return call_of(type(self), _arguments(self))


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


# --- as text ---------------------------------------------------------------------------------------------------------


def call_of(cls: type, arguments: Mapping[str, Any]) -> str:
    """A call of a class as text.

    Args:
        cls: the class.
        arguments: name -> what is given.

    Example:
        >>> call_of(dict, {"n": 3, "of": [len, "a"]})
        "dict(n=3, of=[len, 'a'])"
    """
    declared = inspect.signature(cls.__init__).parameters  # type: ignore[misc]  # of this very class
    kinds = {name: each.kind for name, each in declared.items()}
    shown: list[str] = []
    for name, value in arguments.items():
        if kinds.get(name) is inspect.Parameter.VAR_POSITIONAL:
            shown += [value_shown(each) for each in value]
        elif kinds.get(name) is inspect.Parameter.VAR_KEYWORD:
            shown += [f"{each}={value_shown(given)}" for each, given in value.items()]
        else:
            shown.append(f"{name}={value_shown(value)}")
    return f"{cls.__name__}({', '.join(shown)})"


def value_shown(value: Any) -> str:
    """A value as one line of text: functions and classes by name, others as Python shows them, without addresses."""
    if isinstance(value, (list, tuple)):
        inner = ", ".join(value_shown(each) for each in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(value) == 1)})"
    if isinstance(value, functools.partial):
        given = [*map(value_shown, value.args), *(f"{name}={value_shown(v)}" for name, v in value.keywords.items())]
        return f"partial({', '.join([value_shown(value.func), *given])})"
    if isinstance(value, type) or inspect.isroutine(value):
        return str(getattr(value, "__name__", value))
    if isinstance(value, Component):
        return repr(value)
    text = without_addresses(" ".join(repr(value).split()))
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


# --- as plain data ---------------------------------------------------------------------------------------------------


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
    path = description.get("class_path", "") if isinstance(description, Mapping) else ""
    return str(path).rpartition(".")[2]


def settings_in(description: Any) -> Mapping[str, Any]:
    """The settings in a description, not made; empty where there are none."""
    settings = description.get("init_args") if isinstance(description, Mapping) else None
    return settings if isinstance(settings, Mapping) else {}


def make(description: Mapping[str, Any], kind: type[P]) -> P:
    """The component that `describe` has described.

    Text names nothing that is not on a list: only components of `ROOMS`, and `RECORDS`, are made, each where a part of
    its kind is expected, so that a journal from elsewhere runs no foreign code.

    Args:
        description: as `describe` gives it.
        kind: the class it must be of.

    Raises:
        SettingError: for a class that is not on the list, or a setting that could not be written down.
    """
    part: P = _part(description, (kind,))
    return part


def _part(description: Any, kinds: tuple[type, ...]) -> Any:
    path = _path_of(description)
    cls = _listed(path)
    if not issubclass(cls, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise SettingError(f"{path} must be a {wanted}, but is {cls!r}. Give the part itself.")
    settings = description.get("init_args", {})
    if not isinstance(settings, Mapping):
        raise SettingError(f"the settings of {path} must stand by their names, but got {settings!r:.100}.")
    hints = get_type_hints(cls.__init__)
    made = {str(name): _setting(value, path, _kinds_in(hints.get(name))) for name, value in settings.items()}
    try:
        return cls(**made)
    except DeepBoreError:
        raise
    except Exception as error:  # whatever a constructor makes of damaged settings
        raise SettingError(f"{path} can't be made: {type(error).__name__}: {error}. Give the part itself.") from error


def _setting(value: Any, path: str, kinds: tuple[type, ...]) -> Any:
    """A setting of the class at a path: plain data, or a part of one of these kinds."""
    if isinstance(value, list):
        return tuple(_setting(each, path, kinds) for each in value)
    if not isinstance(value, Mapping):
        return value
    if "unknown" in value:
        raise SettingError(f"a setting of {path} could not be written down: {value['unknown']}. Give the part itself.")
    if "factory" in value or str(value.get("class_path", "")).startswith("torch."):
        return _made_of_torch(value)
    if not kinds:
        raise SettingError(f"this setting of {path} is no part, but got {value!r:.100}. Give the part itself.")
    if "class_path" not in value and len(records := [kind for kind in kinds if class_path(kind) in RECORDS]) == 1:
        value = {"class_path": class_path(records[0]), "init_args": value}  # as in a configuration of version 0.1
    return _part(value, kinds)


def _kinds_in(hint: Any) -> tuple[type, ...]:
    """The classes of parts in a type hint."""
    if isinstance(hint, type) and (issubclass(hint, Component) or class_path(hint) in RECORDS):
        return (hint,)
    return tuple(kind for each in get_args(hint) for kind in _kinds_in(each))


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
    return FORMER_PATHS.get(path, path)


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
    """Whether two descriptions, perhaps of different processes or versions, describe the same component."""
    return _comparable(one) == _comparable(other)


def _comparable(description: Any) -> str:
    """A description as text without memory addresses and former class paths."""
    text = without_addresses(repr(description))
    for former, path in FORMER_PATHS.items():
        text = text.replace(f"'{former}'", f"'{path}'")
    return text


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


# --- what torch has by name: classes, modules and functions ----------------------------------------------------------

TORCHS = ("torch.nn", "torch.nn.functional", "torch.optim", "torch.optim.lr_scheduler")
UNSAVED = frozenset({"size_average", "reduce", "device", "dtype"})  # arguments that a module of torch.nn does not keep


def plain_partial(value: Any) -> Any:
    """A partial of the class itself, where jsonargparse has made one of its own, which holds the whole parser."""
    if not isinstance(value, functools.partial) or isinstance(value.func, type):
        return value
    classes = [each for each in value.args if isinstance(each, type)]
    is_theirs = getattr(value.func, "__module__", "").startswith("jsonargparse") and len(classes) == 1
    return functools.partial(classes[0], **value.keywords) if is_theirs else value


def _name_in_torch(thing: Any) -> str | None:
    """The public name of a class or function of `TORCHS`."""
    if not getattr(thing, "__module__", None) or not str(thing.__module__).startswith("torch."):
        return None
    name = getattr(thing, "__name__", "")
    return next((f"{m}.{name}" for m in TORCHS if getattr(import_module(m), name, None) is thing), None)


def _described_torch(value: Any) -> Description | None:
    """A class or function of torch, a partial of one, or a module of torch.nn by its arguments; None for all else.

    A factory stands as {"factory": path, "init_args": ...}, an instance as {"class_path": path, "init_args": ...}.
    """
    if isinstance(value, functools.partial):
        made = None if value.args else _described_torch(value.func)
        return None if made is None else {**made, "init_args": {k: _plain(v) for k, v in value.keywords.items()}}
    if path := _name_in_torch(value):
        return {"factory": path}
    if (path := _name_in_torch(type(value))) is None or not path.startswith("torch.nn."):
        return None
    known = {k: p.default for k, p in inspect.signature(type(value).__init__).parameters.items() if k != "self"}
    kept = {k: getattr(value, k, None) for k in known if k not in UNSAVED}
    if any(not isinstance(each, (bool, int, float, str, type(None))) for each in kept.values()):
        return None
    return {"class_path": path, "init_args": {k: each for k, each in kept.items() if each != known[k]}}


def _torchs(path: str) -> Any:
    """The class or function of `TORCHS` of this name, nothing else."""
    module, _, name = path.rpartition(".")
    found = getattr(import_module(module), name, None) if module in TORCHS and not name.startswith("_") else None
    kinds: tuple[type, ...] = ()
    if isinstance(found, type):
        nn, optim = import_module("torch.nn"), import_module("torch.optim")
        kinds = (nn.Module, optim.Optimizer, optim.lr_scheduler.LRScheduler)
    is_function = inspect.isfunction(found) and module == "torch.nn.functional"
    if found is None or not (is_function or (isinstance(found, type) and issubclass(found, kinds))):
        raise SettingError(f"{path} is none of torch's modules, losses or optimizers. Give the part itself.")
    return found


def _made_of_torch(description: Mapping[str, Any]) -> Any:
    """What `_described_torch` has described."""
    path = description.get("factory", description.get("class_path"))
    settings = description.get("init_args", {})
    if not isinstance(path, str) or not isinstance(settings, Mapping):
        raise SettingError(f"a part of torch must have a path and settings, but got {description!r:.100}.")
    found = _torchs(path)
    given = {str(k): tuple(v) if isinstance(v, list) else v for k, v in settings.items()}
    if "factory" in description:
        return functools.partial(found, **given) if given else found
    try:
        return found(**given)
    except Exception as error:  # whatever a constructor makes of damaged settings
        raise SettingError(f"{path} can't be made: {type(error).__name__}: {error}. Give the part itself.") from error


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, numbers.Real):
        return plain_number(value)
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, Component) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        return describe(value)
    return _described_torch(value) or {"unknown": repr(value)[:LONGEST_UNKNOWN]}
