"""Failures that are crashes by chance, and those that say something of where they happened."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern

from deepbore import Categorical, KernelPLS, Real, SearchSpace, Study
from deepbore.classifiers.kernel.least_squares import BaseKernelPLS, drop_random_failures
from deepbore.data.observations import Observations
from deepbore.errors import SettingError
from deepbore.labels import LabelledBatch, LabelledObservations
from deepbore.testing import fit

PLANE = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})


def bowl(params):
    return (params["x"] - 0.3) ** 2 + (params["y"] - 0.6) ** 2


def data(points, failed):
    """The bowl's values at points (n x 2), but for those that have failed (n booleans)."""
    observations = Observations(PLANE)
    values = np.where(failed, np.nan, (points[:, 0] - 0.3) ** 2 + (points[:, 1] - 0.6) ** 2)
    observations.add({"x": points[:, 0], "y": points[:, 1]}, values)
    return LabelledObservations(observations)


def scattered(n, seed=0):
    return np.random.default_rng(seed).random((n, 2))


def left(points, failed):
    """Which of the rows that have failed are learned as bad."""
    classifier = fit(KernelPLS(), data(points, failed), epochs=1)
    learned = {tuple(row) for row in classifier._x.numpy().round(9).tolist()}
    return [tuple(point) in learned for point in points[failed].round(9).tolist()]


def test_a_crash_beside_the_best_row_teaches_nothing():
    points = np.concatenate([scattered(40), [[0.3, 0.6], [0.31, 0.6]]])
    failed = np.arange(len(points)) == len(points) - 1
    at = torch.tensor([[0.305, 0.6]], dtype=torch.float64)
    doubting, believing = (fit(KernelPLS(crashes=c), data(points, failed), epochs=1) for c in (True, False))
    without = fit(KernelPLS(), data(points[:-1], failed[:-1]), epochs=1)
    expected = [float(each.posterior(at).mean) for each in (doubting, believing, without)]
    assert expected[0] == pytest.approx(expected[2], abs=1e-6)
    assert expected[1] < expected[0] - 0.05


def test_a_region_that_fails_is_learned_as_bad():
    points = scattered(60)
    failed = points[:, 0] > 0.7
    assert np.mean(left(points, failed)) > 0.8


def test_a_second_failure_beside_the_first_confirms_it():
    beside = np.array([[0.32, 0.6], [0.322, 0.601]])
    points, n = np.concatenate([scattered(40), beside]), 40
    failed = np.arange(n + 2) >= n
    assert left(points[:-1], failed[:-1]) == [False]
    assert left(points, failed) == [True, True]


def test_what_others_expect_is_the_fit_without_the_row(monkeypatch):
    points, heads, learn = scattered(15), [], BaseKernelPLS.learn_all
    failed = np.isin(np.arange(15), [3, 8, 11])
    monkeypatch.setattr(BaseKernelPLS, "learn_all", lambda head, rows: heads.append(head) or learn(head, rows))
    classifier, expected = KernelPLS().bind(PLANE), []
    drop_random_failures(
        data(points, failed).labelled(),
        lambda rows: expected.append(classifier._leave_one_out(rows)) or expected[0],
    )
    theta, z = heads[0].theta.numpy(), (~failed).astype(float) - (~failed).mean()
    kernel = Matern(np.exp(theta[:2]), nu=2.5) * math.exp(theta[2])
    for row in range(15):
        others = np.arange(15) != row
        process = GaussianProcessRegressor(kernel, alpha=math.exp(theta[3]) + 1e-8, optimizer=None)
        theirs = process.fit(points[others], z[others]).predict(points[[row]])
        assert float(expected[0][row]) == pytest.approx(float(theirs[0]), abs=1e-4)


@given(st.lists(st.tuples(st.booleans(), st.floats(-0.5, 1.5)), min_size=1, max_size=12))
@settings(deadline=None)
def test_only_failures_where_a_success_is_likelier_are_left_out(rows):
    failed, expected = torch.tensor([f for f, _ in rows]), torch.tensor([e for _, e in rows], dtype=torch.float64)
    n = len(rows)
    numbers = torch.arange(n, dtype=torch.float64)[:, None]
    batch = LabelledBatch(numbers, torch.ones(n, 1), torch.ones(n), failed=failed)
    usual = (~failed).double().mean()
    kept = drop_random_failures(batch, lambda _: expected - usual)
    # what is expected plus and less the share of successes need not be the same float
    sure = [k for k, (f, e) in enumerate(rows) if not f or e < 0.5 - 1e-9]
    doubtful = [k for k, (f, e) in enumerate(rows) if f and abs(e - 0.5) <= 1e-9]
    assert set(sure) <= set(kept.points[:, 0].long().tolist()) <= set(sure + doubtful)
    assert kept.failures.tolist() == [bool(failed[k]) for k in kept.points[:, 0].long().tolist()]


def test_without_failures_nothing_is_asked():
    batch = data(scattered(10), np.zeros(10, dtype=bool)).labelled()
    assert batch.failed is None
    assert drop_random_failures(batch, pytest.fail) is batch


def test_a_pending_trial_is_no_failure():
    study = Study(PLANE, seed=0, n_initial=3)
    first, second, _ = study.ask(3)
    study.tell(first, failed=True)
    study.tell(second, 1.0)
    assert study._state.data.labelled().failed.tolist() == [True, False, False]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_one_evaluation_in_seven_that_crashes_does_not_keep_a_run_from_the_optimum(seed):
    space = SearchSpace({"x": Real(0, 1), "y": Real(0, 1), "z": Real(0, 1), "kind": Categorical(["a", "b"])})
    chance, study = np.random.default_rng(seed), Study(space, seed=seed)
    for _ in range(45):
        (trial,) = study.ask()
        value = bowl(trial.params) + (trial.params["z"] - 0.5) ** 2 + 0.1 * (trial.params["kind"] == "b")
        study.tell(trial, math.nan if chance.random() < 1 / 7 else value)
    assert study.best_trial.value < 1e-6  # where each failure is bad it is 2e-3


@pytest.mark.slow
def test_a_run_that_is_loaded_goes_on_as_it_would_have(tmp_path):
    def go_on(study, n):
        asked = []
        for _ in range(n):
            (trial,) = study.ask()
            asked.append(trial.params)
            study.tell(trial, math.nan if trial.id % 4 == 0 else bowl(trial.params))
        return asked

    expected = go_on(Study(PLANE, seed=1), 22)
    part = Study(PLANE, seed=1, journal=tmp_path / "run.jsonl")
    begun = go_on(part, 16)
    part.close()
    assert begun + go_on(Study.load(tmp_path / "run.jsonl"), 6) == expected


def test_failures_of_earlier_tasks_stay_failures():
    study = Study(PLANE, seed=0, n_initial=4)
    points = scattered(30)
    values = np.where(points[:, 0] > 0.7, np.nan, points[:, 1])
    study.add({"x": points[:, 0], "y": points[:, 1]}, values, task="before")
    for _ in range(6):
        (trial,) = study.ask()
        study.tell(trial, trial.params["y"])
    batch = study._state.data.batch()
    assert batch.n_earlier > 0
    assert int(batch.failures.sum()) == int(batch.failures[: batch.n_earlier].sum()) > 0


def test_crashes_is_a_yes_or_no():
    with pytest.raises(SettingError, match="crashes"):
        KernelPLS(crashes="often")


def test_failures_are_looked_at_where_most_is_noise_and_rows_are_many():
    chance = np.random.default_rng(0)
    points, noise = scattered(1500), np.where(chance.random(1500) < 0.3, 0.2, 0.01)
    values = (points[:, 0] - 0.3) ** 2 + (points[:, 1] - 0.6) ** 2 + noise * chance.standard_normal(1500)
    values[chance.random(1500) < 0.05] = np.nan
    study = Study(PLANE, seed=0)
    study.add({"x": points[:, 0], "y": points[:, 1]}, values, noise=noise)  # some of its coreset weigh next to nothing
    study.ask()
    learned = study.classifier
    assert len(learned._x) > 190  # all of the coreset but crashes by chance
    assert float(learned._data[:, 1].min()) < 1e-3
