"""What jsonargparse says of a name that does not exist, in fewer words and with the name that was meant."""

import difflib
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


def explained(message: str, options: Collection[str]) -> str:
    """A message of jsonargparse; of an unknown class or option only that, and what it is like.

    Args:
        message: what jsonargparse says.
        options: the names of those that exist.
    """
    key, given, option = _KEY.search(message), _CLASS.search(message), _OPTION.search(message)
    if option:
        return f"there is no option --{option[1]}.{_like(option[1], options, '--')}"
    if key is None or given is None or key[1] not in ROOMS:
        return message
    room = f"deepbore.{ROOMS[key[1]]}"
    names: list[str] = import_module(room).__all__
    name = given[1].rpartition(".")[2]
    if name in names:
        return message
    meant = _like(name, names) or f" Of {room} there are {', '.join(n for n in names if n[0].isupper())}."
    return f"{key[1]}: there is no class {given[1]}.{meant} A class of your own needs its module: my_module.{name}."


def _like(name: str, names: Collection[str], before: str = "") -> str:
    near = [each for each in names if each.endswith(f".{name}")] or difflib.get_close_matches(
        name, names, n=1, cutoff=0.7
    )
    return f" Did you mean {before}{near[0]}?" if near else ""
