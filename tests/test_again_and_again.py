"""What is evaluated again and again: a baseline in every sweep, a configuration that always fails."""

import numpy as np
import pytest

from deepbore import Budget, Categorical, Integer, Real, SearchSpace, Study, ThresholdLabels, ValueGradedLabels
from deepbore.data.observations import Observations
from deepbore.data.replicates import MOST
from deepbore.errors import PointError

LINE = SearchSpace({"x": Real(0, 1)})
ELSEWHERE = np.linspace(0, 0.9, 30)


def with_one(value: float, times: int) -> Observations:
    """Thirty configurations, and one that has been evaluated so many times (NaN: it fails)."""
    observations = Observations(LINE)
    observations.add({"x": [*ELSEWHERE, *[1.0] * times]}, [*ELSEWHERE, *[value] * times])
    return observations


@pytest.mark.parametrize("value", [-1.0, 0.31, 5.0], ids=["best", "middling", "worst"])
@pytest.mark.parametrize("labels", [ValueGradedLabels(), ThresholdLabels()], ids=["graded", "hard"])
def test_a_configuration_moves_no_threshold_however_often_it_is_evaluated(labels, value):
    once, often = (labels(with_one(value, times)) for times in (1, 40))
    assert often.metrics["tau"] == once.metrics["tau"]
    assert np.array_equal(often.z[:31], once.z[:31])


def test_no_row_is_worth_more_than_a_hundred_others():
    labels = ValueGradedLabels()(with_one(-1.0, 300))
    assert labels.weight.sum() == pytest.approx(30 + MOST, abs=0.01)


def test_failures_of_one_configuration_are_one_row():
    once, often = (ValueGradedLabels()(with_one(np.nan, times)) for times in (1, 300))
    assert often.weight.sum() == pytest.approx(float(once.weight.sum()), abs=0.01)
    assert int((often.weight > 0.5).sum()) == 31


def test_the_best_rows_are_distinct_configurations():
    observations = with_one(-1.0, 25)
    assert observations.points[observations.best_rows(4), 0].tolist() == pytest.approx([1, *ELSEWHERE[:3]])
    assert len(observations.best_rows(100)) == 31


def test_trials_are_what_each_is_by_itself():
    space = SearchSpace({"x": Real(0, 1), "k": Integer(1, 4), "act": Categorical(["a", None], when={"k": [1, 2]})})
    study = Study(space, direction="maximize", seed=0, budget=Budget("epochs", 1, 9))
    study.add({"x": [0.1, 0.2], "k": [1, 3], "act": [None, "a"]}, [1.0, 3.0], budgets=[1, 3])
    for number in range(14):
        (trial,) = study.ask()
        if number % 3 == 0:
            study.tell(trial, failed=True)
        elif number % 5:
            study.tell(trial, float(number), noise=0.1)
    assert study.trials == [study.observations.trial(row) for row in range(len(study.observations))]
    assert [trial.id for trial in study.pending] == study.observations.pending_rows.tolist() != []


def test_a_front_of_thousands_takes_no_pairs():
    a = np.random.default_rng(0).permutation(3000) / 3000
    study = Study(LINE, directions=["minimize", "minimize"])
    study.add({"x": np.linspace(0, 1, 3001)}, np.stack([[*a, 0.5], [*(1 - a), 0.6]], axis=-1))
    front = study.pareto_front
    assert [trial.values[0] for trial in front] == sorted(a)
    assert 3000 not in {trial.id for trial in front}


def test_budgets_beyond_sixty_three_bits():
    study = Study(LINE, seed=0, budget=Budget("FLOPs", 1e17, 1e20, factor=10))
    for _ in range(15):
        (trial,) = study.ask()
        study.tell(trial, trial.params["x"])
    assert {trial.budget for trial in study.trials} >= {1e17, 1e18}


def test_what_a_constraint_keeps_inactive_is_not_enumerated():
    space = SearchSpace(
        {
            "opt": Categorical(["sgd", "adam"]),
            "k": Integer(1, 40),
            "seed": Integer(0, 10**12, when={"opt": "sgd"}),
        },
        constraints=["opt == 'adam'"],
    )
    assert len(space.enumerate()) == 40


@pytest.mark.parametrize("column", [np.array([0.1 + 5j, 0.2]), np.array([3, 4], dtype="datetime64[D]")])
def test_what_is_no_number_is_refused_as_a_parameter(column):
    with pytest.raises(PointError, match="must be numbers"):
        Study(SearchSpace({"x": Real(0, 9)})).add({"x": column}, [1.0, 2.0])


def test_values_may_have_gradients():
    import torch

    study = Study(LINE)
    study.add({"x": [0.1, 0.2]}, [torch.tensor(1.0, requires_grad=True), 2.0])
    assert study.best_trial.value == 1
