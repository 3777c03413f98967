"""What jsonargparse says of a wrong name or value, in fewer words and with the name that was meant."""

import difflib
import inspect
import re
from collections.abc import Collection
from importlib import import_module

ROOMS = {
    "model": "classifiers",
    "problem": "problems",
    "data.labels": "labels",
    "loop.acquisition": "acquisition",
    "loop.candidates": "candidates",
    "evaluator": "evaluators",
}
_KEY = re.compile(r'Parser key "([\w.]+)"')
_CLASS = re.compile(r"(?:Expected a dot import path string|Given value): ([\w.]+)\s*$", re.MULTILINE)
_OPTION = re.compile(r"[Uu]nrecognized arguments: --([\w.]+)")
_INSIDE = "Problem with given class_path '"
_NO_SETTING = re.compile(r"Option '([\w.]+)' is not accepted")
_NO_CLASS = re.compile(r"module '([\w.]+)' has no attribute '(\w+)'")
_STRANGER = re.compile(r"Import path ([\w.]+) does not correspond to a subclass of (\w+)")
_KIND = re.compile(r"Expected a (.+?)\. Got value: (.*)|Subtypes: \[(.+)\][\s\S]*?Given value: (.*)")


def explained(message: str, options: Collection[str]) -> str:
    """A message of jsonargparse; of an unknown class, option or setting, or of a wrong value, only that.

    Args:
        message: what jsonargparse says.
        options: the names of those that exist.
    """
    key, given, option = _KEY.search(message), _CLASS.search(message), _OPTION.search(message)
    if option:
        return f"there is no option --{option[1]}.{_like(option[1], options, '--')}"
    if key and _INSIDE in message:
        return _explained_inside(key[1], message) or message
    if key and (stranger := _STRANGER.search(message)):
        return f"{key[1]}: {stranger[1]} is no {stranger[2]}."
    if key is None or given is None or key[1] not in ROOMS:
        return message
    room = f"deepbore.{ROOMS[key[1]]}"
    names: list[str] = import_module(room).__all__
    name = given[1].rpartition(".")[2]
    if name in names:
        return message
    meant = _like(name, names) or f" Of {room} there are {', '.join(n for n in names if n[0].isupper())}."
    return f"{key[1]}: there is no class {given[1]}.{meant} A class of your own needs its module: my_module.{name}."


def _explained_inside(key: str, message: str) -> str | None:
    """What is wrong with the settings of a class, or of one in its settings: the innermost one; None if unknown."""
    path, _, said = message.rpartition(_INSIDE)[2].partition("':")
    name = path.rpartition(".")[2]
    said = said.lstrip()
    if missing := _NO_CLASS.match(said):
        room, wrong = missing.groups()
        return f"{key}: there is no class {room}.{wrong}.{_like(wrong, _public(room))}"
    if missing := _NO_SETTING.match(said):
        if "." in missing[1]:  # of a part within: jsonargparse says the same of a value that does not fit
            return f"{key}: {missing[1]} of {name} does not fit: there is no such setting, or its value is wrong."
        known = _settings(path)
        meant = _like(missing[1], known) or (f" It has {', '.join(known)}." if known else " It has none: name a class.")
        return f"{key}: {name} has no setting {missing[1]}.{meant}"
    if (setting := _KEY.match(said)) and (wrong := _KIND.search(said)):
        kinds = re.sub(r"<class '(?:[\w.]+\.)?(\w+)'>", r"\1", wrong[1] or wrong[3]).replace("NoneType", "null")
        rule = f"{setting[1]} of {name} must be {kinds.replace(', ', ' or ')}"
        return f"{key}: {rule}, but got {wrong[2] or wrong[4]}."
    return None


def _public(module: str) -> list[str]:
    return [name for name in dir(import_module(module)) if not name.startswith("_")]


def _settings(path: str) -> list[str]:
    """The names of a class's settings."""
    module, _, name = path.rpartition(".")
    parameters = inspect.signature(getattr(import_module(module), name)).parameters.values()
    return [one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]


def _like(name: str, names: Collection[str], before: str = "") -> str:
    near = [each for each in names if each.endswith(f".{name}")] or difflib.get_close_matches(
        name, names, n=1, cutoff=0.7
    )
    return f" Did you mean {before}{near[0]}?" if near else ""
