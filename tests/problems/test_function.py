"""Functions of the user's own, by their path."""

import math
import pickle
import sys

import pytest
from jsonargparse import ArgumentParser

import deepbore
from deepbore.errors import SettingError, SpaceError
from deepbore.problems import FunctionProblem, Problem

SPACE = {"lr": {"type": "real", "low": 1e-5, "high": 0.1, "log": True}}


@pytest.fixture
def module_beside(tmp_path, monkeypatch):
    """A module in the working directory, which is not yet importable."""
    (tmp_path / "my_objectives.py").write_text("limit = 3\ndef objective(params):\n    return params['lr'] * 2\n")
    (tmp_path / "broken_objectives.py").write_text("raise RuntimeError('no data')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    yield
    sys.modules.pop("my_objectives", None)


def test_a_function_by_its_path(module_beside):
    problem = FunctionProblem("my_objectives.objective", SPACE, optimum=2e-5)
    assert problem({"lr": 0.01}) == 0.02
    assert problem.space == deepbore.SearchSpace.from_dict(SPACE)
    assert pickle.loads(pickle.dumps(problem))({"lr": 0.01}) == 0.02  # goes to worker processes


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("objective", "must read 'my_module.objective'"),
        ("no_such_module.f", "'no_such_module.f' must be importable.*No module named"),
        ("broken_objectives.f", "'broken_objectives.f' must be importable.*RuntimeError: no data"),
        ("my_objectives.f", "'my_objectives' has no 'f'"),
        ("my_objectives.limit", "must be callable, but got 'my_objectives.limit'"),
    ],
)
def test_a_path_without_a_function_is_refused(path, message, module_beside):
    with pytest.raises(SettingError, match=message):
        FunctionProblem(path, SPACE)


@pytest.mark.parametrize("settings", [{"direction": "min"}, {"optimum": math.nan}, {"function": 3}])
def test_bad_settings_of_a_function_are_refused(settings):
    with pytest.raises(SettingError):
        FunctionProblem(**({"function": len, "space": SPACE} | settings))


def test_a_bad_space_of_a_function_is_refused():
    with pytest.raises(SpaceError, match="integr"):
        FunctionProblem(len, {"n": {"type": "integr", "low": 1, "high": 3}})


FUNCTION_YAML = """
problem:
  class_path: deepbore.problems.FunctionProblem
  init_args:
    function: my_objectives.objective
    space:
      optimizer: {type: categorical, choices: [sgd, adam]}
      lr: {type: real, low: 1.0e-5, high: 0.1, log: true}
      momentum: {type: real, low: 0.0, high: 0.99, when: {optimizer: [sgd]}}
    direction: maximize
"""


def parsed(text):
    parser = ArgumentParser(exit_on_error=False)
    parser.add_subclass_arguments(Problem, "problem", required=True)
    return parser.instantiate_classes(parser.parse_string(text)).problem


def test_a_function_from_a_configuration_file(module_beside):
    problem = parsed(FUNCTION_YAML)
    assert problem.space.names == ["optimizer", "lr", "momentum"]
    assert problem.direction == "maximize"
    assert problem({"lr": 0.01, "optimizer": "adam"}) == 0.02
