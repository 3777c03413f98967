"""Functions and classes that are made explicit here, not when deepbore is imported."""

import inspect
from typing import Unpack

import pytest

from deepbore.study.options import MAX_FAILURES, RunArguments, RunOptions, StudyArguments, StudyOptions, explicit


def toy():
    @explicit
    def optimised(objective, n_trials: int = 5, **options: Unpack[RunArguments]):
        """Something that runs.

        Args:
            objective: what is run.
            options: how it runs:
                all of it.

        Returns:
            what it was given.
        """
        return objective, n_trials, options

    return optimised


def test_options_stand_in_the_signature_with_their_defaults():
    parameters = inspect.signature(toy()).parameters
    assert list(parameters)[:2] == ["objective", "n_trials"]
    assert set(list(parameters)[2:]) == set(RunArguments.__annotations__)
    assert parameters["n_trials"].default == 5
    assert parameters["max_failures"].default == MAX_FAILURES
    assert all(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in RunArguments.__annotations__)
    annotations = {name: each.type for name, each in RunOptions.__dataclass_fields__.items()}
    assert {name: parameters[name].annotation for name in annotations} == annotations


def test_entries_of_options_stand_in_the_docstring_in_place_of_theirs():
    lines = inspect.getdoc(toy()).splitlines()
    first, last = lines.index("    objective: what is run."), lines.index("Returns:")
    entries = inspect.getdoc(RunOptions).partition("Args:\n")[2].partition("\n\n")[0].splitlines()
    assert sorted(lines[first + 1 : last - 1]) == sorted(entries)
    assert lines[0] == "Something that runs."
    assert lines[-1] == "    what it was given."
    assert len(entries) > len(RunArguments.__annotations__)


def test_a_function_is_called_with_what_was_given():
    optimised = toy()
    assert optimised(1, timeout=2.0, n_trials=3) == (1, 3, {"timeout": 2.0})
    assert optimised.__name__ == "optimised"
    with pytest.raises(TypeError, match=r"optimised\(\) got .* 'timeuot'\. Did you mean 'timeout'\?"):
        optimised(1, timeuot=2.0)
    with pytest.raises(TypeError, match=r"keyword argument 'zzz'$"):
        optimised(1, zzz=2.0)


def test_a_class_is_made_explicit_in_its_place():
    class Made:
        """A study.

        Args:
            options: what it is made of.
        """

        def __init__(self, space, **options: Unpack[StudyArguments]):
            self.given = space, options

    assert explicit(Made) is Made
    assert Made(1, seed=3).given == (1, {"seed": 3})
    shown = inspect.signature(Made).parameters
    assert set(shown) == {"space", *StudyArguments.__annotations__}
    assert [line for line in Made.__doc__.splitlines() if line.startswith("    seed: ")]
    assert "options:" not in Made.__doc__
    with pytest.raises(TypeError, match=r"Made\(\) got"):
        Made(1, timeout=3)


def test_parts_are_the_options_that_a_journal_describes():
    given = {"n_initial": 4, "gamma": 0.3}
    parts = StudyOptions(seed=5, **given).parts
    assert {name: value for name, value in parts.items() if value is not None} == given
    assert "seed" not in parts


@pytest.mark.parametrize(
    ("given", "directions"),
    [
        ({}, ["minimize"]),
        ({"direction": "maximize"}, ["maximize"]),
        ({"preferences": True}, ["maximize"]),
        ({"preferences": True, "direction": "minimize"}, ["minimize"]),
        ({"directions": ["maximize", "minimize"]}, ["maximize", "minimize"]),
    ],
)
def test_there_is_a_direction_for_each_objective(given, directions):
    assert StudyOptions(**given).all_directions == directions
