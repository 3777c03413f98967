"""Programs as problems: the arguments of an argparse parser, or of a function as typer has it, are the space.

A parser says names, types, choices and defaults, and seldom ranges: `tune` says what is searched, and where the program
does not. Typer is not needed: a function's annotations are read, and what `typer.Option` says in them.
"""

import argparse
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import torch

from deepbore.data.outcome import Outcome
from deepbore.data.trial import Direction
from deepbore.errors import SettingError, SpaceError
from deepbore.names import did_you_mean
from deepbore.problems import Problem
from deepbore.problems.base import as_direction, imported
from deepbore.space import Params, SearchSpace
from deepbore.space.parameters import Parameter

Tuned = Mapping[str, Mapping[str, Any] | Parameter | None] | Sequence[str]
TYPES = {int: "integer", float: "real"}


@dataclass(frozen=True)
class Argument:
    """What a program says of one of its arguments.

    Attributes:
        name: as its code has it.
        kind: int, float, bool, str; None for anything else.
        low: the least value; None where it says none.
        high: the greatest value; None where it says none.
        choices: names, or values; empty for none.
        default: without it; None where there is none.
    """

    name: str
    kind: type | None
    low: float | None = None
    high: float | None = None
    choices: tuple[Any, ...] = ()
    default: Any = None

    def declared(self, given: Mapping[str, Any] | Parameter | None) -> Any:
        """The declaration of the parameter, with what the program says of it where that is not given.

        Raises:
            SpaceError: where neither says a range, or both contradict each other.
        """
        if isinstance(given, Parameter):
            return given
        said = dict(given or {})
        if "type" in said:
            return said
        if self.kind is bool:
            return {"type": "categorical", "choices": [False, True], **said}
        if self.choices or "choices" in said:
            return self._among(said)
        if self.kind not in TYPES:
            raise SpaceError(
                f"{self.name!r} of the program is neither a number nor has it choices. Give some: {self.name}: "
                "{choices: [a, b]}."
            )
        ends = {"low": said.pop("low", self.low), "high": said.pop("high", self.high)}
        if None in ends.values():
            raise SpaceError(
                f"{self.name!r} of the program is {self.kind.__name__}, without a range. Say in which one it is "
                f"searched: {self.name}: {self._example()}."
            )
        if self.kind is int and not all(float(end).is_integer() for end in ends.values()):
            raise SpaceError(f"{self.name!r} of the program is int, but its range is {list(ends.values())}.")
        return {"type": TYPES[self.kind], **ends, **said}

    def _example(self) -> str:
        """A range around the default, as one may write it."""
        if isinstance(self.default, int | float) and self.default > 0:
            low, high = self.default / 10, self.default * 10
            low, high = (max(1, round(low)), round(high)) if self.kind is int else (low, high)
            return f"{{low: {low:g}, high: {high:g}, log: true}}"
        return "{low: 0, high: 1}"

    def _among(self, said: dict[str, Any]) -> dict[str, Any]:
        choices = list(said.pop("choices", self.choices))
        if wrong := [each for each in choices if self.choices and each not in self.choices]:
            raise SpaceError(f"{self.name!r} of the program must be one of {list(self.choices)}, but not {wrong[0]!r}.")
        is_ordered = all(type(each) in TYPES for each in choices) and choices == sorted(choices)
        return {"type": "ordinal" if is_ordered and len(choices) > 1 else "categorical", "choices": choices, **said}


# --- argparse --------------------------------------------------------------------------------------------------------


def arguments_of(program: argparse.ArgumentParser | Callable[..., Any]) -> dict[str, Argument]:
    """The arguments of a program that can be tuned, by name.

    Args:
        program: a parser; or a function, as typer has it.
    """
    if isinstance(program, argparse.ArgumentParser):
        found = [_of_action(action) for action in program._actions if _is_one_value(action)]
        return {each.name: each for each in found}
    hints = get_type_hints(program, include_extras=True)
    return {name: _of_parameter(each, hints.get(name)) for name, each in inspect.signature(program).parameters.items()}


def _is_one_value(action: argparse.Action) -> bool:
    """Whether an argument is a switch, or has one value."""
    is_switch = isinstance(action.const, bool) or isinstance(action, argparse.BooleanOptionalAction)
    return is_switch if action.nargs == 0 else action.nargs in (None, "?")  # --help and --version are none


def _of_action(action: argparse.Action) -> Argument:
    if action.nargs == 0:
        return Argument(action.dest, bool, default=action.default)
    kind: Any = str if action.type is None else action.type
    known = kind if kind in (int, float, str) else None
    return Argument(action.dest, known, choices=tuple(action.choices or ()), default=action.default)


def _as_words(action: argparse.Action, value: Any) -> list[str]:
    """An argument as it stands on the command line."""
    if not action.option_strings:
        return [str(value)]
    flag = max(action.option_strings, key=len)
    if isinstance(action, argparse.BooleanOptionalAction):
        names = [each for each in action.option_strings if each.startswith("--no-") != bool(value)]
        return [names[0]]
    if action.nargs == 0:
        return [flag] if bool(value) == bool(action.const) else []
    return [f"{flag}={value}"] if flag.startswith("--") else [flag, str(value)]


# --- functions -------------------------------------------------------------------------------------------------------


def _of_parameter(parameter: inspect.Parameter, hint: Any) -> Argument:
    """What the signature of a function says of an argument, typer's words in it, too."""
    options = [parameter.default]
    if get_origin(hint) is Annotated:
        hint, *more = get_args(hint)
        options += more
    ends = {name: getattr(option, name) for option in options for name in ("min", "max") if hasattr(option, name)}
    choices: tuple[Any, ...] = get_args(hint) if get_origin(hint) is Literal else ()
    if isinstance(hint, type) and issubclass(hint, Enum):
        choices = tuple(each.value for each in hint)
    known = hint if hint in (int, float, bool, str) else None
    return Argument(parameter.name, known, ends.get("min"), ends.get("max"), choices, _default(parameter))


def _default(parameter: inspect.Parameter) -> Any:
    """The default of an argument, also of one by `typer.Option(default)`; None where it must be given."""
    return _written(parameter) if _has_default(parameter) else None


def _has_default(parameter: inspect.Parameter) -> bool:
    return _written(parameter) not in (inspect.Parameter.empty, ...)


def _written(parameter: inspect.Parameter) -> Any:
    """The default as the signature has it, or as `typer.Option` in it has it."""
    return getattr(parameter.default, "default", parameter.default)


def _native(hint: Any, value: Any) -> Any:
    """A value as a function takes it: the members of an enumeration in place of theirs."""
    hint = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return hint(value) if isinstance(hint, type) and issubclass(hint, Enum) else value


# --- both ------------------------------------------------------------------------------------------------------------


def space_of(program: argparse.ArgumentParser | Callable[..., Any], tune: Tuned) -> SearchSpace:
    """The search space of a program's arguments.

    Args:
        program: an argparse parser; or a function, as typer has it.
        tune: what is searched, by name: `{}` or None where the program says choices or a range; else what it does not
            say, as {"low": 1e-5, "high": 0.1, "log": True} or {"choices": [16, 32]}, or a parameter.

    Raises:
        SpaceError: for an argument that there is not, or of which neither says a range, by name.

    Example:
        >>> parser = argparse.ArgumentParser()
        >>> _ = parser.add_argument("--lr", type=float, default=1e-3)
        >>> _ = parser.add_argument("--act", choices=["relu", "tanh"])
        >>> space_of(parser, {"lr": {"low": 1e-5, "high": 0.1, "log": True}, "act": None})
        SearchSpace({'lr': Real(1e-05, 0.1, log=True), 'act': Categorical(['relu', 'tanh'])})
    """
    known = arguments_of(program)
    named = tune if isinstance(tune, Mapping) else dict.fromkeys(tune)
    if not named:
        raise SpaceError(f"tune must name arguments of the program that are searched, of {list(known)}, but is empty.")
    for name in named:
        _check_known(name, known)
    parts = {name: known[name].declared(given) for name, given in named.items()}
    plain = SearchSpace.from_dict({name: each for name, each in parts.items() if not isinstance(each, Parameter)})
    return SearchSpace(
        {name: each if isinstance(each, Parameter) else plain.parameters[name] for name, each in parts.items()}
    )


def _check_known(name: str, known: Mapping[str, Argument]) -> None:
    if name in known:
        return
    hint = did_you_mean(name.lstrip("-").replace("-", "_"), known) or " Those with several values can't be tuned."
    raise SpaceError(f"an argument must be one of {list(known)}, but got {name!r}.{hint}")


class ProgramProblem(Problem):
    """A program with argparse, or with typer, as a problem: its arguments are the space, and it runs in this process.

    In a configuration of `deepbore fit`:

        problem:
          class_path: deepbore.integrations.programs.ProgramProblem
          init_args:
            program: train.py:parser
            run: train.py:main
            tune: {lr: {low: 1.0e-5, high: 0.1, log: true}, act: {}}

    Args:
        program: an argparse parser, or a function that makes one; without `run`, a function as typer has it, or its
            app. Or the import path of one of these.
        run: what an argparse program does. Its argument is what the parser has read; one with a default, as
            `main(argv=None)`, gets the words of the command line, and one without an argument finds them in `sys.argv`.
        tune: what is searched; see `space_of`.
        fixed: further arguments, name -> value.
        direction: "minimize" or "maximize" what the program returns.

    Raises:
        SettingError: for a program that is none, an argument that it refuses, or one that is missing.
        SpaceError: see `space_of`.
    """

    def __init__(
        self,
        program: Any,
        tune: dict[str, Any] | list[str],
        run: Any = None,
        fixed: dict[str, Any] | None = None,
        direction: Direction = "minimize",
    ):
        self._given = (program, tune, run, fixed, direction)
        self.fixed, self.directions = dict(fixed or {}), (as_direction(direction),)
        self.run = imported(run) if isinstance(run, str) else run
        self.program = _made(imported(program) if isinstance(program, str) else program, self.run is not None)
        self.space = space_of(self.program, tune)
        known = _everything(self.program)
        for name in self.fixed:
            if name not in known or name in self.space.parameters:
                raise SettingError(f"fixed must name arguments of the program that are not tuned, but got {name!r}.")

    def __reduce__(self) -> tuple[Any, ...]:
        """As it was given: a parser does not go to another process, its import path does."""
        return type(self), self._given

    def prepare(self) -> None:
        """Has the parser read a configuration. Raises SettingError for what it refuses, or what is missing."""
        (params,) = self.space.decode(self.space.points.sample(1, torch.Generator().manual_seed(0)))
        if isinstance(self.program, argparse.ArgumentParser):
            self._read(self.program, self._words(self.program, params))
        else:
            self._values(self.program, params)

    def __call__(self, params: Params) -> float | Outcome:
        """What the program returns for a configuration."""
        if not isinstance(self.program, argparse.ArgumentParser):
            returned: float | Outcome = self.program(**self._values(self.program, params))
            return returned
        words = self._words(self.program, params)
        takes = [each for each in inspect.signature(self.run).parameters.values() if each.kind is not each.KEYWORD_ONLY]
        if not takes:
            returned = _with_words(self.run, words)
        elif takes[0].default is not inspect.Parameter.empty:
            returned = self.run(words)
        else:
            returned = self.run(self._read(self.program, words))
        return returned

    def _words(self, parser: argparse.ArgumentParser, params: Params) -> list[str]:
        values = {**self.fixed, **params}
        return [word for each in parser._actions if each.dest in values for word in _as_words(each, values[each.dest])]

    def _read(self, parser: argparse.ArgumentParser, words: list[str]) -> argparse.Namespace:
        try:
            return parser.parse_args(words)
        except SystemExit:
            raise SettingError(
                f"the parser must take the arguments {' '.join(words)}, but refuses them: see above. What is required "
                "and not tuned is given by fixed={'name': value}."
            ) from None

    def _values(self, function: Callable[..., Any], params: Params) -> dict[str, Any]:
        hints = get_type_hints(function, include_extras=True)
        values = {name: each.default for name, each in arguments_of(function).items()} | self.fixed | params
        for name, parameter in inspect.signature(function).parameters.items():
            if name not in self.fixed and name not in params and not _has_default(parameter):
                raise SettingError(
                    f"{name!r} of the program has no default. Tune it, or give fixed={{{name!r}: value}}."
                )
        return {name: _native(hints.get(name), value) for name, value in values.items()}


def _made(program: Any, is_argparse: bool) -> argparse.ArgumentParser | Callable[..., Any]:
    """The parser, or the function, of what was given as a program."""
    if is_argparse:
        made = program() if callable(program) else program
        if isinstance(made, argparse.ArgumentParser):
            return made
        raise SettingError(f"with run= the program must be an argparse parser, or make one, but is {made!r:.100}.")
    if isinstance(program, argparse.ArgumentParser):
        raise SettingError("a parser does not run by itself. Give run=, what the program does with its arguments.")
    commands = getattr(program, "registered_commands", None)  # of a typer app
    if commands is not None and len(commands) != 1:
        raise SettingError(f"an app must have one command, but has {len(commands)}. Give the function of one.")
    found = commands[0].callback if commands else program
    if not callable(found):
        raise SettingError(f"a program is a parser with run=, a function or a typer app, but got {program!r:.100}.")
    return found  # type: ignore[no-any-return]


def _everything(program: argparse.ArgumentParser | Callable[..., Any]) -> set[str]:
    if isinstance(program, argparse.ArgumentParser):
        return {action.dest for action in program._actions}
    return set(inspect.signature(program).parameters)


def _with_words(run: Callable[[], Any], words: list[str]) -> Any:
    """Runs a program that reads `sys.argv`."""
    before, sys.argv = sys.argv, [sys.argv[0], *words]
    try:
        return run()
    finally:
        sys.argv = before
