"""The arguments of studies and runs: one record, with which signatures, docstrings, types and commands agree."""

import inspect
from dataclasses import FrozenInstanceError, fields

import pytest

import deepbore
from deepbore import Budget, Real, SearchSpace, Study, maximize, minimize
from deepbore.cli.config import ELSEWHERE, OF_THE_COMMAND, LoopSettings
from deepbore.errors import SettingError
from deepbore.study.options import Arguments, Options, RunArguments, RunOptions, StudyArguments, StudyOptions
from deepbore.study.study import study_of

LINE = SearchSpace({"x": Real(-1, 1)})


def names(record):
    return {field.name for field in fields(record)}


def listed(function):
    """The keyword-only parameters of a function, by name."""
    parameters = inspect.signature(function).parameters.values()
    return {each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY}


def test_type_checkers_see_the_fields_of_the_records():
    for record, arguments in [(StudyOptions, StudyArguments), (RunOptions, RunArguments)]:
        assert {field.name: field.type for field in fields(record)} == arguments.__annotations__
    assert names(Options) - Arguments.__annotations__.keys() == {"direction"}


@pytest.mark.parametrize(
    ("function", "arguments"),
    [(minimize, Arguments), (maximize, Arguments), (Study, StudyArguments), (Study.optimize, RunArguments)],
    ids=["minimize", "maximize", "Study", "optimize"],
)
def test_signature_and_docstring_list_every_option(function, arguments):
    shown = listed(function)
    assert shown.keys() - {"trainer"} == arguments.__annotations__.keys()
    assert {name: shown[name] for name in arguments.__annotations__} == {
        field.name: field.default for field in fields(Options) if field.name in arguments.__annotations__
    }
    entries = inspect.getdoc(function).partition("Args:\n")[2].partition("\n\n")[0].splitlines()
    documented = {entry.strip().partition(":")[0] for entry in entries if not entry.startswith("     ")}
    assert shown.keys() <= documented
    assert "options" not in documented


def test_a_command_has_each_option_that_no_other_group_decides():
    assert names(Options) >= ELSEWHERE | OF_THE_COMMAND
    assert names(LoopSettings) - ELSEWHERE - OF_THE_COMMAND == {
        "n_trials", "seed", "strategy", "acquisition", "candidates", "n_initial", "pruner", "budget", "noisy",
        "timeout", "cost_limit", "stop_when", "max_failures", "batch_size", "workers",
    }  # fmt: skip


# regression: a page of the docs says so, and it was refused for a while
def test_a_single_direction_may_stand_alone():
    assert Study(LINE, directions="maximize").observations.directions == ("maximize",)


def test_a_name_that_is_no_option_is_refused_with_the_nearest_one():
    with pytest.raises(TypeError, match=r"minimize\(\) got an unexpected .* 'sed'. Did you mean 'seed'\?"):
        minimize(lambda params: 0.0, LINE, 3, sed=1)
    with pytest.raises(TypeError, match=r"Study\(\) got an unexpected keyword argument 'zzz'$"):
        Study(LINE, zzz=1)
    with pytest.raises(TypeError, match=r"optimize\(\) got .* 'time_out'. Did you mean 'timeout'\?"):
        Study(LINE).optimize(lambda params: 0.0, 3, time_out=1)
    with pytest.raises(TypeError, match="direction in its name"):
        maximize(lambda params: 0.0, LINE, 3, direction="minimize")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"direction": "minimize", "directions": ["minimize"]}, "not both"),
        ({"preferences": True, "budget": Budget("epochs", 1, 9)}, "a study of preferences has no budgets"),
        ({"preferences": 1}, "preferences must be one of"),
        ({"if_exists": "append"}, "if_exists must be one of"),
        ({"seed": 0.5}, "seed must be a whole number"),
        ({"budget": 9}, "budget must be a Budget"),
        ({"device": "tpu9"}, "device must be"),
        ({"timeout": 0}, "timeout > 0"),
        ({"batch_size": None}, "batch_size must be given"),
        ({"max_failures": 0}, "max_failures >= 1"),
        ({"callbacks": [3]}, "callbacks must be a list of functions"),
        ({"progress": "yes"}, "progress must be one of"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_options_are_checked_when_the_record_is_made(settings, says):
    with pytest.raises(SettingError, match=says):
        Options(**settings)


def test_a_record_is_frozen_and_makes_the_same_study_as_its_arguments():
    options = StudyOptions(seed=3, n_initial=2)
    with pytest.raises(FrozenInstanceError):
        options.seed = 4
    points = [
        [trial.params for trial in study.ask(3)]
        for study in (study_of(LINE, options), Study(LINE, seed=3, n_initial=2))
    ]
    assert points[0] == points[1]
    assert Study(LINE, preferences=True).observations.directions == ("maximize",)


def test_a_former_name_warns_and_works():
    with pytest.warns(DeprecationWarning, match="DistributedStudy"):
        former = deepbore.Suggester
    assert former is deepbore.DistributedStudy
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = deepbore.study.nothing
