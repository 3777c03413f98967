"""What a run logs, counted by hand."""

import math
from itertools import pairwise

import pytest
import torch
from sklearn.metrics import roc_auc_score

from deepbore import Study
from deepbore.data.outcome import Outcome
from deepbore.labels import LabelledBatch
from deepbore.loop.metrics import Metrics, exact, hypervolume_so_far, progress
from plane import LINE

BOTH = ["minimize", "minimize"]


def told(values, study=None):
    """A study that was told values by turns, None for trials that stay pending."""
    study = Study(LINE, n_initial=2000, seed=0) if study is None else study
    for trial, value in zip(study.ask(len(values)), values, strict=True):
        if value is not None:
            study.tell(trial, None if value == "failed" else value, failed=value == "failed")
    return study.observations


def labelled(*z):
    return LabelledBatch(torch.zeros(len(z), 1), torch.tensor(z)[:, None], torch.ones(len(z)))


def relabelled(metrics, observations, *z):
    metrics.relabelled(labelled(*z), observations)
    return metrics


def test_nothing_is_known_at_first():
    metrics = Metrics()
    assert math.isnan(metrics.label_flips)
    assert math.isnan(metrics.brier_score)
    assert metrics.known == {}


def test_flips_are_labels_that_have_crossed_a_half_since_of_rows_told_before():
    metrics, observations = Metrics(), told([1.0, 2.0, 3.0, 4.0, None])
    assert relabelled(metrics, observations, 0.9, 0.5, 0.4, 0.0, 0.0).known == {}
    assert relabelled(metrics, observations, 0.4, 0.9, 0.6, 0.1, 1.0).known == {"label_flips": 0.5}
    assert relabelled(metrics, observations, 0.4, 0.9, 0.6, 0.1, 1.0).label_flips == 0


@pytest.mark.parametrize("n", [512, 513, 1500])
def test_of_many_rows_every_second_or_third_is_compared(n):
    metrics, observations = Metrics(), told([1.0] * n)
    step = math.ceil(n / 512)
    relabelled(metrics, observations, *[0.0] * n)
    relabelled(metrics, observations, *[float(row % step == 0 and row < n // 2) for row in range(n)])
    compared = range(0, n, step)
    assert metrics.label_flips == pytest.approx(sum(row < n // 2 for row in compared) / len(compared))


def test_the_brier_score_is_the_mean_squared_error_of_forecasts_that_were_told():
    study, metrics = Study(LINE, n_initial=2000, seed=0), Metrics()
    observations = told([1.0], study)
    with metrics.forecast(1, torch.tensor([0.5, 0.25, 1.0])):
        trials = study.ask(3)
    relabelled(metrics, observations, 1.0, 0.0, 0.0, 0.0)
    assert math.isnan(metrics.brier_score)
    for trial in trials[:2]:
        study.tell(trial, 2.0)
    assert relabelled(metrics, observations, 1.0, 1.0, 0.0, 0.0).brier_score == pytest.approx((0.25 + 0.0625) / 2)
    assert relabelled(metrics, observations, 1.0, 0.0, 1.0, 0.0).brier_score == pytest.approx((0.25 + 0.0625) / 2)
    study.tell(trials[2], 2.0)
    relabelled(metrics, observations, 1.0, 1.0, 0.0, 0.0)
    assert metrics.known == pytest.approx({"label_flips": 2 / 3, "brier_score": (0.25 + 0.0625 + 1) / 3})


def test_the_latest_fifty_forecasts_count():
    study, metrics = Study(LINE, n_initial=2000, seed=0), Metrics()
    with metrics.forecast(0, torch.cat([torch.ones(10), torch.zeros(49)])):
        observations = told([1.0] * 59, study)
    assert relabelled(metrics, observations, *[0.0] * 59).brier_score == pytest.approx(1 / 50)


def test_a_proposal_that_fails_has_no_forecast():
    study, metrics = Study(LINE, n_initial=2000, seed=0), Metrics()
    with metrics.forecast(0, torch.ones(1)):
        observations = told([1.0], study)
    with pytest.raises(ZeroDivisionError), metrics.forecast(1, torch.ones(1)):
        raise ZeroDivisionError
    with metrics.forecast(1, None):
        told([1.0], study)
    assert relabelled(metrics, observations, 0.0, 0.0).brier_score == 1
    assert metrics.state_dict()["forecasts"] == {}
    assert metrics.state_dict()["errors"] == [1]


def test_rows_of_earlier_tasks_have_no_labels_of_this_run():
    study, metrics = Study(LINE, n_initial=2000, seed=0), Metrics()
    observations = told([1.0, None], study)
    study.add({"x": [0.1, 0.2, 0.3]}, [1.0, 2.0, 3.0], task="before")
    with metrics.forecast(5, torch.tensor([0.5])):
        told([2.0], study)
    relabelled(metrics, observations, 0.0, 0.0, 1.0)
    assert metrics.brier_score == 0.25
    assert relabelled(metrics, observations, 1.0, 1.0, 1.0).label_flips == 0.5  # of the two rows that were told


def test_metrics_go_on_from_what_they_remember():
    study = Study(LINE, n_initial=2000, seed=0)
    one, other = Metrics(), Metrics()
    observations = told([1.0, 2.0], study)
    with one.forecast(2, torch.tensor([0.5, 0.25])):
        told([1.0, None], study)
    relabelled(one, observations, 0.0, 1.0, 1.0, 0.0)
    relabelled(one, observations, 1.0, 1.0, 1.0, 0.0)
    other.load_state_dict(one.state_dict())
    assert other.known == one.known == {"label_flips": pytest.approx(1 / 3), "brier_score": 0.25}
    study.tell(3, 1.0)
    for each in (one, other):
        relabelled(each, observations, 1.0, 0.0, 1.0, 1.0)
    assert other.known == one.known == {"label_flips": pytest.approx(1 / 3), "brier_score": (0.25 + 0.5625) / 2}
    with other.forecast(4, torch.ones(1)):
        pass
    assert one.state_dict()["forecasts"] == {}


def test_progress_counts_trials_and_failures():
    observations = told([2.0, 1.0, "failed", None])
    assert progress(observations) == {"trials": 4, "failed_trials": 1, "best_value": 1}
    nothing = progress(told([None]))
    assert math.isnan(nothing.pop("best_value"))
    assert nothing == {"trials": 1, "failed_trials": 0}


def in_front(values, directions=BOTH):
    return told(values, Study(LINE, directions=directions, n_initial=2000, seed=0))


def test_the_hypervolume_begins_at_the_worst_of_the_first_ten_that_have_not_failed():
    values = [[0.0, 3.0], "failed", [4.0, 1.0], *[[3.5, 2.5]] * 8, [99.0, 99.0], [1.0, 2.0]]
    front = [(0.0, 3.0), (1.0, 2.0), (4.0, 1.0)]
    expected = sum((after[0] - before[0]) * (3.0 - before[1]) for before, after in pairwise([*front, (4.0, 0.0)]))
    found = progress(in_front(values))
    assert found.pop("hypervolume") == expected
    assert math.isnan(found.pop("best_value"))
    assert found == {"trials": 13, "failed_trials": 1}


def test_pending_trials_keep_their_place_among_the_first():
    values = [[0.0, 3.0], *[None] * 8, [4.0, 1.0], [99.0, 99.0]]
    assert hypervolume_so_far(in_front(values)) == {"hypervolume": 0}
    assert hypervolume_so_far(in_front([None, *values[:9], [4.0, 1.0]])) == {"hypervolume": 0}


def test_a_front_that_is_not_feasible_has_no_volume():
    values = [Outcome([0.0, 0.0], constraints=[1.0]), Outcome([1.0, 1.0], constraints=[0.0])]
    values += [Outcome([3.0, 2.0], constraints=[-1.0])]
    assert hypervolume_so_far(in_front(values)) == {"hypervolume": 2}
    assert hypervolume_so_far(in_front(values[:1])) == {"hypervolume": 0}


def test_there_is_no_volume_of_nothing_nor_of_more_than_four_objectives():
    assert hypervolume_so_far(in_front([None, "failed"])) == {}
    for k, known in ((4, True), (5, False)):
        found = hypervolume_so_far(in_front([[0.0] * k, [2.0] * k], ["minimize"] * k))
        assert found == ({"hypervolume": 16} if known else {})


def test_logged_numbers_are_exact():
    value = 1e9 + 1 / 1024
    assert float(exact({"a": value})["a"]) == value


def test_calibration_and_ranking_of_forecasts_agree_with_scikit_learn():
    study, metrics = Study(LINE, n_initial=2000, seed=0), Metrics()
    expected = torch.rand(40, generator=torch.Generator().manual_seed(0))
    label = (torch.rand(40, generator=torch.Generator().manual_seed(1)) < expected).float()
    with metrics.forecast(0, expected):
        observations = told([1.0] * 40, study)
    found = relabelled(metrics, observations, *label.tolist()).of_forecasts
    assert found["forecast_auroc"] == pytest.approx(roc_auc_score(label.numpy(), expected.numpy()))
    bins = (expected * 5).long()
    gaps = [float((expected - label)[bins == b].sum().abs()) for b in range(5)]
    assert found["forecast_calibration_error"] == pytest.approx(sum(gaps) / 40, abs=1e-6)
    again = Metrics()
    again.load_state_dict(metrics.state_dict())
    assert again.of_forecasts == found


# regression: grades were compared as classes
def test_forecasts_of_the_right_grade_have_no_calibration_error():
    study, metrics = Study(LINE, n_initial=2000, seed=0), Metrics()
    with metrics.forecast(0, torch.full((12,), 0.25)):
        observations = told([1.0] * 12, study)
    assert relabelled(metrics, observations, *[0.2, 0.3] * 6).of_forecasts["forecast_calibration_error"] < 1e-7


def test_a_few_forecasts_and_those_of_one_class_have_no_ranking():
    metrics = Metrics()
    with metrics.forecast(0, torch.full((9,), 0.25)):
        observations = told([1.0] * 9)
    assert relabelled(metrics, observations, *[0.0] * 9).of_forecasts == {}
    metrics, study = Metrics(), Study(LINE, n_initial=2000, seed=0)
    with metrics.forecast(0, torch.full((12,), 0.25)):
        observations = told([1.0] * 12, study)
    assert relabelled(metrics, observations, *[0.0] * 12).of_forecasts == {"forecast_calibration_error": 0.25}
