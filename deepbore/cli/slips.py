"""Slips in the settings of `deepbore fit`, found before what takes seconds is imported: names, nesting, types, units.

What is checked here is a selection, with the name that was likely meant; all else is LightningCLI's to say.
"""

import ast
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from deepbore.data.runs import plain_data
from deepbore.errors import SettingError
from deepbore.names import ARGUMENTS, LIKE, did_you_mean, nearest, slip_in
from deepbore.validation import as_path

like = partial(did_you_mean, likeness=LIKE)
LOOP = {  # a test compares these with the records that they are settings of
    "n_trials", "seed", "strategy", "acquisition", "candidates", "n_initial", "pruner", "budget", "noisy", "timeout",
    "stop_when", "max_failures", "batch_size", "workers", "cost_limit",
}  # fmt: skip
EVALUATION = {"workers", "timeout", "retries", "devices"}
FUNCTION = {"function", "space", "direction", "optimum", "directions"}
TOP = {
    "problem", "model", "classifier", "data", "loop", "evaluation", "evaluator", "trainer", "run", "warm_start",
    "warm_start_defaults", "earlier_tasks", "seed_everything", "config",
}  # fmt: skip
LIGHTNINGS = {"optimizer", "lr_scheduler", "print_config", "resume", "help", "help-all"}
GROUPS = {"loop": LOOP, "evaluation": EVALUATION, "data": {"labels"}}
FLAT = {**{name: f"loop.{name}" for name in LOOP}, "labels": "data.labels"}  # as Python has them
ROOMS = {"problem": "problems", "model": "classifiers", "data.labels": "labels", "evaluator": "evaluators"}
ROOMS |= {"loop.acquisition": "acquisition", "loop.candidates": "candidates", "loop.pruner": "pruners"}
WHOLE = {"n_trials", "seed", "n_initial", "max_failures", "batch_size", "workers", "retries"}
UNITS = {"s": 1, "sec": 1, "min": 60, "m": 60, "h": 3600, "hours": 3600, "d": 86400, "days": 86400}
YAML = (".yaml", ".yml", ".json")
ELSEWHERE = {"labels": "data", "classifier": "", "direction": "problem", "directions": "problem", "space": "problem"}
ELSEWHERE |= {"function": "problem", "devices": "evaluation", "retries": "evaluation"} | dict.fromkeys(LOOP, "loop")


def as_nested(args: Sequence[str]) -> list[str]:
    """Arguments in which options have the names of their groups: --n_trials is --loop.n_trials."""
    return [re.sub(r"^--(\w+)(?=$|[.=])", lambda m: f"--{FLAT.get(m[1], m[1])}", arg) for arg in args]


def check_fit(args: Sequence[str]) -> None:
    """Raises SettingError for a slip in the arguments of `deepbore fit`, or in the configurations that they name."""
    for option, value in _options(args):
        if option == "config" and value is not None:
            _check_config(value)
        elif option:
            _check_option(option, value)


def _options(args: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Options with their values. Raises SettingError for a value that belongs to none."""
    at = 0
    while at < len(args):
        option, has_value, value = args[at].partition("=")
        if not option.startswith("-"):
            is_config = args[at].endswith(YAML)
            way = f"Give --config {args[at]}." if is_config else "`deepbore fit --help` says what there is."
            raise SettingError(f"deepbore fit takes options, but got {args[at]!r}. {way}")
        name = "config" if option == "-c" else option.lstrip("-")
        if has_value:
            yield name, value
        elif at + 1 < len(args) and not re.match(r"--?[A-Za-z]", args[at + 1]):
            yield name, args[at + 1]
            at += 1
        else:
            yield name, None
        at += 1


def _check_option(option: str, value: str | None) -> None:
    group, _, name = option.partition(".")
    known = GROUPS.get(group)
    if known is not None and name and name.split(".")[0] not in known:
        options = [f"{group}.{each}" for each in sorted(known)]
        if near := like(option, options, "--{}"):  # LightningCLI refuses what is left
            raise SettingError(f"there is no option --{option}.{near}")
    is_known = known is not None or group in TOP | LIGHTNINGS
    if not is_known and (near := like(option, [*TOP, *FLAT], "--{}")):
        raise SettingError(f"there is no option --{option}.{near}")
    if name in WHOLE | {"timeout"} and group in GROUPS and value is not None:
        _check_number(option, _plain(value), name)
    if option in ROOMS and value is not None and re.fullmatch(r"[\w.]+", value):
        _check_class(option, value)


def _plain(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


# --- a configuration --------------------------------------------------------------------------------------------------


def _check_config(place: str) -> None:
    if "\n" in place or ("{" in place and not Path(place).exists()):
        return  # the text itself
    path = as_path(place, "a configuration")
    if not path.is_file():
        beside = [each.name for each in path.parent.glob("*")] if path.parent.is_dir() else []
        near = nearest(path.name, [each for each in beside if each.endswith(YAML)])
        hint = f" Did you mean {path.with_name(near)}?" if near else ""
        what = "is a folder" if path.is_dir() else "there is no such file"
        raise SettingError(f"--config must name a file of YAML, but {what}: {path}.{hint}")
    try:
        config = plain_data(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):  # no plain YAML: the parser says where
        return
    if isinstance(config, Mapping):
        _check_settings(config)


def _check_settings(config: Mapping[Any, Any]) -> None:
    for name in map(str, config):
        if name in TOP | LIGHTNINGS:
            continue
        if name in ELSEWHERE:
            raise SettingError(f"{name} stands under {ELSEWHERE[name]}, as in {ELSEWHERE[name]}: {{{name}: ...}}.")
        if near := like(name, [*TOP, *FLAT]):
            raise SettingError(f"{name}: there is no such setting.{near}")
    for group, known in GROUPS.items():
        _check_group(group, config.get(group), known)
    for place in ROOMS:
        group, _, name = place.partition(".")
        found = config.get(group) if group != "model" else config.get("model", config.get("classifier"))
        found = found.get(name) if name and isinstance(found, Mapping) else None if name else found
        named = found.get("class_path") if isinstance(found, Mapping) else found
        if isinstance(named, str):
            _check_class(place, named)
    _check_problem(config.get("problem"))


def _check_group(group: str, given: Any, known: Collection[str]) -> None:
    for name, value in given.items() if isinstance(given, Mapping) else ():
        if str(name) not in known:
            near = like(str(name), known)
            place = ELSEWHERE.get(str(name))
            hint = f" It stands under {place}." if place and place != group else near
            if not hint and str(name) in ARGUMENTS:
                hint = f" Here it is {ARGUMENTS[str(name)].rstrip('=')}."
            if hint:  # LightningCLI knows all settings, and refuses what is left
                raise SettingError(f"{group}: there is no setting {name!r}.{hint}")
        _check_number(f"{group}.{name}", value, str(name))


def _check_number(place: str, value: Any, name: str) -> None:
    """Raises SettingError for a number with a unit, or a text in the place of one."""
    if name not in WHOLE | {"timeout"} or not isinstance(value, str) or value in ("null", "None", "", "~"):
        return
    if name == "timeout" and (found := re.fullmatch(r"([\d.]+)\s*([a-z]+)", value.strip().lower())):
        unit = UNITS.get(found[2], UNITS.get(found[2][:1]))
        ways = "" if unit is None else f" Give {float(found[1]) * unit:g}."
        raise SettingError(f"{place} must be a number of seconds, but got {value!r}.{ways}")
    try:
        float(value)
    except ValueError:
        kind = "a number of seconds" if name == "timeout" else "a whole number"
        raise SettingError(f"{place} must be {kind}, but got {value!r}.") from None


def _check_problem(given: Any) -> None:
    """Raises SettingError for a slip in a function of the user's own with its space."""
    if not isinstance(given, Mapping):
        return
    settings = given.get("init_args", {}) if "class_path" in given else given
    is_function = str(given.get("class_path", "FunctionProblem")).rpartition(".")[2] == "FunctionProblem"
    if not is_function or not isinstance(settings, Mapping):
        return
    for name in map(str, settings):
        if name not in FUNCTION and name not in ("class_path", "init_args"):
            near = like(name, FUNCTION) or f" It has {', '.join(sorted(FUNCTION))}."
            raise SettingError(f"problem: FunctionProblem has no setting {name}.{near}")
    directions = settings.get("directions")
    listed = directions.values() if isinstance(directions, Mapping) else directions
    for each in [settings.get("direction"), *(listed if isinstance(listed, list) else list(listed or ()))]:
        if isinstance(each, str) and each not in ("minimize", "maximize"):
            meant = {"mi": "minimize", "ma": "maximize"}.get(each.lower()[:2])
            hint = f" Did you mean {meant}?" if meant else ""
            raise SettingError(f"problem: a direction must be minimize or maximize, but got {each!r}.{hint}")
    space = settings.get("space")
    for name, declared in space.items() if isinstance(space, Mapping) else ():
        if isinstance(declared, Mapping) and name != "constraints" and (slip := slip_in(declared)):
            raise SettingError(f"problem: parameter {name!r} {slip}")


# --- classes of deepbore ----------------------------------------------------------------------------------------------


def _check_class(place: str, given: str) -> None:
    """Raises SettingError for the name of a class of deepbore that is nearly right."""
    if "." in given and not given.startswith(("deepbore.", f"{ROOMS[place]}.")):
        return  # of the user's own
    name, names = given.rpartition(".")[2], _classes(ROOMS[place])
    if name in names:
        return
    if near := like(name, names):
        own = "" if "." in given else f" A class of your own needs its module: my_module.{name}."
        raise SettingError(f"{place}: there is no class {given}.{near}{own}")


@cache
def _classes(room: str) -> frozenset[str]:
    """The names of a room's classes, by its list of exports, which is read and not run."""
    folder = Path(__file__).parents[1] / room
    path = next(path for path in (folder / "__init__.pyi", folder / "__init__.py") if path.is_file())
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    return frozenset(name for name in names if name[:1].isupper())
