"""Real training runs: what scikit-learn gives, and ranges that are grids of levels."""

import numpy as np
import pytest
import torch

from deepbore.errors import PointError, SettingError
from deepbore.problems import TrainingRun
from deepbore.problems.benchmarks.training import RUNS, RUNS_OF_STATSMODELS
from deepbore.space import Integer, Ordinal, Real


def outcome_of(problem, params):
    """A value, or the name of the error that there is in its place."""
    try:
        return problem(params)
    except Exception as error:  # whatever scikit-learn raises
        return type(error).__name__


@pytest.mark.parametrize("name", RUNS)
def test_a_training_run_gives_a_value_or_fails_by_itself_and_always_the_same(name):
    problem, again = TrainingRun(name), TrainingRun(name)
    sobol = problem.space.decode(problem.space.points.sobol(3, seed=0))
    values = [outcome_of(problem, params) for params in sobol]
    assert [value for value in values if isinstance(value, float)]
    assert {value for value in values if isinstance(value, str)} <= {
        "ValueError",
        "AttributeError",
        "NotImplementedError",
    }
    torch.manual_seed(5)
    np.random.seed(5)
    assert repr(outcome_of(again, sobol[0])) == repr(values[0])
    assert problem.optimum is None


@pytest.mark.parametrize("name", RUNS_OF_STATSMODELS)
def test_data_of_statsmodels_are_whole_and_good_for_their_models(name):
    pytest.importorskip("statsmodels")
    problem = TrainingRun(name)
    assert np.isfinite(problem._x).all()
    assert len(problem._x) == len(problem._y) >= 200
    values = [outcome_of(problem, params) for params in problem.space.decode(problem.space.points.sobol(3, seed=0))]
    assert [value for value in values if isinstance(value, float) and np.isfinite(value)]


@pytest.mark.parametrize(
    ("name", "params", "bar"),
    [
        ("svm-digits", {"kernel": "rbf", "C": 10.0, "gamma": 1e-3}, 0.96),
        (
            "mlp-wine",
            {"scaler": "standard", "width": 32, "depth": 1, "activation": "tanh", "alpha": 1e-2, "solver": "lbfgs"},
            0.95,
        ),
        ("pipeline-digits", {"model": "bayes", "scaler": "none", "components": 20, "bayes_var_smoothing": 1e-9}, 0.85),
    ],
)
def test_a_good_model_is_good(name, params, bar):
    assert bar < TrainingRun(name)(params) < 1.0


def test_a_training_run_is_what_scikit_learn_gives():
    from sklearn.datasets import load_iris
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.svm import SVC

    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    scores = cross_val_score(
        SVC(C=0.7, kernel="poly", gamma=0.2, degree=3, coef0=1.0), *load_iris(return_X_y=True), cv=folds
    )
    params = {"kernel": "poly", "C": 0.7, "gamma": 0.2, "degree": 3, "coef0": 1.0}
    assert TrainingRun("svm-iris")(params) == pytest.approx(scores.mean(), rel=1e-12)


def test_settings_that_do_not_go_together_fail_with_scikit_learns_errors():
    logistic = {"scaler": "standard", "solver": "sag", "class_weight": None, "max_iter": 50}
    with pytest.raises(ValueError, match="Solver sag supports only 'l2' or None penalties"):
        TrainingRun("logistic-cancer")(logistic | {"penalty": "l1", "C": 1.0})
    assert TrainingRun("logistic-cancer")(logistic | {"penalty": "none"}) < 0.2
    with pytest.raises(NotImplementedError, match="shrinkage not supported"):
        TrainingRun("pipeline-wine")(
            {
                "model": "linear",
                "scaler": "none",
                "components": 5,
                "linear_solver": "svd",
                "linear_shrinks": True,
                "linear_shrinkage": 0.5,
            }
        )


def test_training_that_diverges_is_reported_as_it_is():
    wild = {"learning_rate": 1.0, "width": 64, "depth": 3, "activation": "relu", "batch_size": 32, "dropout": 0.0}
    wild |= {"weight_decay": 0.1, "optimizer": "sgd", "momentum": 0.99}
    assert not np.isfinite(TrainingRun("network-diabetes")(wild))


def test_a_training_run_that_is_none_is_refused():
    with pytest.raises(SettingError, match="name must be one of"):
        TrainingRun("svm")
    with pytest.raises(PointError):
        TrainingRun("svm-iris")({"kernel": "linear", "C": 1.0, "gamma": 1.0})


@pytest.mark.parametrize("name", RUNS)
def test_on_levels_ranges_are_grids_from_end_to_end(name):
    ranges, levels = TrainingRun(name).space.parameters, TrainingRun(name, levels=4).space.parameters
    assert list(levels) == list(ranges)
    for each, parameter in ranges.items():
        assert levels[each].when == parameter.when
        if isinstance(parameter, Real | Integer):
            assert isinstance(levels[each], Ordinal)
            assert (levels[each].choices[0], levels[each].choices[-1]) == (parameter.low, parameter.high)
            assert 2 <= len(levels[each].choices) <= 4
        else:
            assert levels[each] == parameter


def test_levels_are_evenly_spaced_on_their_own_scale_and_configurations_on_them_have_the_same_values():
    on_levels = TrainingRun("boosting-wine", levels=4)
    assert on_levels.space.parameters["learning_rate"].choices == (0.001, 0.01, 0.1, 1.0)
    assert on_levels.space.parameters["n_estimators"].choices == (5, 10, 20, 40)
    assert on_levels.space.parameters["max_depth"].choices == (1, 3, 4, 6)
    (params,) = on_levels.space.decode(on_levels.space.points.sobol(1, seed=0))
    assert on_levels(params) == TrainingRun("boosting-wine")(params)
    with pytest.raises(PointError, match="learning_rate"):
        on_levels(params | {"learning_rate": 0.02})
    with pytest.raises(SettingError, match="levels"):
        TrainingRun("boosting-wine", levels=1)
