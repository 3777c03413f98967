"""Values with their noise, and configurations that come again: means, weights, and how they are kept."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from deepbore import Budget, KernelPLS, Ordinal, Outcome, SearchSpace, Study, ValueGradedLabels
from deepbore.data.columns import first_among, regrouped
from deepbore.data.observations import Observations, Status
from deepbore.data.replay import read_record
from deepbore.data.replicates import Replicates
from deepbore.errors import ShapeError, ValueTypeError
from deepbore.labels import LabelledObservations, RankGradedLabels, RungLabels
from deepbore.testing import fit
from plane import LINE, SQUARE

SPACE = SearchSpace({"x": Ordinal(list(range(6)))})

VALUES = st.sampled_from([0.1, 1.0, 1.0, 2.5, float("nan")])

STEPS = st.one_of(
    st.tuples(st.just("add"), st.lists(st.tuples(st.integers(0, 5), VALUES), min_size=1, max_size=4)),
    st.tuples(st.just("ask"), st.integers(0, 5)),
    st.tuples(st.just("tell"), VALUES),
    st.tuples(st.just("earlier task"), st.integers(0, 5)),
    st.tuples(st.just("noisy"), st.integers(0, 5)),
)


def take(observations, step, given):
    """One event; `tell` is for the trial that has waited longest."""
    if step == "add":
        observations.add({"x": [x for x, _ in given]}, [value for _, value in given])
    elif step == "ask":
        observations.reserve(SPACE.encode([{"x": given}]))
    elif step == "tell" and len(waiting := observations.columns.pending_rows):
        observations.tell(int(waiting[0]), given)
    elif step == "earlier task":
        observations.add({"x": given}, 3.0, task="earlier")
    elif step == "noisy":
        observations.add({"x": given}, 2.0, noise=0.5)


def as_if_new(observations):
    return Replicates(observations.columns).average()


@pytest.mark.slow
@given(st.lists(STEPS, max_size=12))
@settings(max_examples=200)
def test_a_look_finds_what_a_first_look_would(steps):
    observations = Observations(SPACE)
    for step in steps:
        take(observations, *step)
        found, anew = observations.averaged, as_if_new(observations)
        assert torch.equal(found.values.nan_to_num(nan=-1), anew.values.nan_to_num(nan=-1))
        assert np.array_equal(found.ranked, anew.ranked)
        assert (found.worth is None) == (anew.worth is None)
        assert found.worth is None or torch.equal(found.worth, anew.worth)


@given(st.lists(STEPS, max_size=12))
def test_pending_rows_are_those_whose_status_says_so(steps):
    observations = Observations(SPACE)
    observations.reserve(observations.points)  # none at all
    for step in steps:
        take(observations, *step)
        some = torch.arange(0, len(observations), 2)
        for rows in (observations, observations.of_task(0), observations.part(some)):
            assert rows.columns.pending_rows.tolist() == (rows.status == Status.PENDING).nonzero().squeeze(-1).tolist()


@given(st.lists(st.integers(0, 4), max_size=12), st.data())
def test_the_first_row_of_a_configuration_among_some_rows_is_one_of_them(keys, drawn):
    first = regrouped(torch.tensor(keys, dtype=torch.long))
    kept = drawn.draw(st.sets(st.sampled_from(range(len(keys))))) if keys else set()
    rows = torch.tensor(sorted(kept), dtype=torch.long)
    expected = [next(i for i, row in enumerate(sorted(kept)) if keys[row] == keys[each]) for each in sorted(kept)]
    assert first_among(rows, first[rows]).tolist() == expected


def test_a_trial_that_joins_costs_no_look_at_all_rows(monkeypatch):
    looks = []
    original = Replicates._of_all_rows
    monkeypatch.setattr(Replicates, "_of_all_rows", lambda self: looks.append(len(self.table)) or original(self))
    study = Study(SearchSpace({f"x{i}": Ordinal(list(range(6))) for i in range(4)}), seed=0, n_initial=4)
    study.add({f"x{i}": [0, 0, 1, 2] for i in range(4)}, [1.0, 2.0, 0.5, 3.0])
    for value in range(5):
        study.tell(study.ask()[0], value)
    assert looks == [4]


@pytest.mark.parametrize("first", [1.0, float("nan")])
def test_a_trial_that_waited_while_its_configuration_came_again_counts_in_the_mean(first):
    observations = Observations(SPACE)
    (row,) = observations.reserve(SPACE.encode([{"x": 1}]))
    observations.add({"x": [1, 1, 2]}, [2.0, 4.0, 9.0])
    assert observations.averaged.values[1:].tolist() == [3.0, 3.0, 9.0]
    observations.tell(row, first)
    assert observations.averaged.values[1:].tolist() == pytest.approx([3.0 if np.isnan(first) else 7 / 3] * 2 + [9.0])


def told(x, values, noise=None):
    observations = Observations(LINE)
    observations.add({"x": x}, values, noise=noise)
    return observations


# --- the door --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [-0.1, math.nan, math.inf, "much"])
def test_a_noise_is_a_finite_standard_deviation(noise):
    with pytest.raises(ValueTypeError, match="noise"):
        Outcome(1.0, noise=noise)


def test_noise_is_kept_with_its_trial_and_in_the_journal(tmp_path):
    study = Study(LINE, journal=tmp_path / "run.jsonl")
    for trial, noise in zip(study.ask(3), [0.5, None, 0.0], strict=True):
        study.tell(trial, 1.0, noise=noise)
    study.add({"x": [0.1, 0.2]}, [1.0, 2.0], noise=[0.1, np.nan])
    study.add({"x": 0.3}, 1.0)
    study.close()
    expected = [0.5, None, 0.0, 0.1, None, None]
    for trials in (study.trials, Study.load(tmp_path / "run.jsonl").trials, read_record(tmp_path / "run.jsonl").trials):
        assert [trial.noise for trial in trials] == expected
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert [line.get("noise") for line in lines if line["event"] == "told"] == [0.5, None, 0.0]


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ShapeError, match="noise"):
        told([0.1, 0.2], [1.0, 2.0], noise=[0.1])
    with pytest.raises(ValueTypeError, match="noise"):
        told([0.1, 0.2], [1.0, 2.0], noise=[0.1, -1])
    study = Observations(LINE, ["minimize", "minimize"])
    (row,) = study.reserve(LINE.points.sobol(1, seed=0))
    with pytest.raises(ValueTypeError, match="noise"):
        study.tell(row, Outcome([1.0, 2.0], noise=0.1))


# --- labels ----------------------------------------------------------------------------------------------------------


def test_a_row_weighs_what_its_noise_says_beside_that_of_others():
    noise = [0.1, 0.2, 0.4, 0.0, 1e6, np.nan]
    labels = RankGradedLabels()(told(np.linspace(0, 1, 6), np.arange(6.0), noise))
    assert labels.weight.tolist() == pytest.approx([4, 1, 0.25, 100, 0.01, 1])


@pytest.mark.parametrize("sd", [0.0, 1e-3, 5.0])
def test_the_same_noise_everywhere_changes_nothing(sd):
    x, values = np.linspace(0, 1, 8), np.random.default_rng(0).normal(size=8)
    plain, noisy = (ValueGradedLabels()(told(x, values, noise)) for noise in (None, sd))
    assert torch.equal(plain.z, noisy.z)
    assert torch.equal(plain.weight, noisy.weight)


def test_kernel_pls_is_heteroscedastic_regression():
    x, values = np.linspace(0, 1, 9), np.random.default_rng(0).normal(size=9)
    noise = np.linspace(0.1, 0.8, 9)
    data = LabelledObservations(told(x, values, noise), ValueGradedLabels())
    head = fit(KernelPLS(length_scale=0.3, regularisation=0.01), data)
    batch = data.labelled()
    z, weight = batch.z[:, 0].double().numpy(), batch.weight.double().numpy()
    assert np.allclose(weight, (np.median(noise) / noise) ** 2)

    def kernel(a, b):
        r = math.sqrt(5) * np.abs(a[:, None] - b) / 0.3
        return (1 + r + r**2 / 3) * np.exp(-r)

    new = np.array([0.03, 0.4, 0.77])
    inverse = np.linalg.inv(kernel(x, x) + np.diag(0.01 / weight))
    posterior = head.posterior(torch.tensor(new)[:, None])
    mean = kernel(new, x) @ inverse @ z
    variance = 1 - np.einsum("ij,jk,ik->i", kernel(new, x), inverse, kernel(new, x))
    assert np.allclose(posterior.mean, mean, atol=1e-6)
    assert np.allclose(posterior.std, np.sqrt(variance), atol=1e-6)


# --- repeats ---------------------------------------------------------------------------------------------------------

ANY_VALUES = st.floats(-5, 5) | st.sampled_from([math.nan, 0.0, 1.0])  # NaN is a failure; some are equal


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), ANY_VALUES, st.floats(0.5, 3)), min_size=1))
@settings(max_examples=100)
def test_rows_of_a_configuration_have_its_weighted_mean(rows):
    x, values, noise = map(np.array, zip(*rows, strict=True))
    found = told(x, values, noise).averaged
    worth = (np.sort(noise)[(len(noise) - 1) // 2] / noise) ** 2
    for row in range(len(x)):
        same = (x == x[row]) & ~np.isnan(values)
        if np.isnan(values[row]):
            assert found.values[row].isnan()
            continue
        assert float(found.values[row]) == pytest.approx(np.average(values[same], weights=worth[same]), abs=1e-9)
        together = found.worth[torch.from_numpy(same)]
        assert float(together.sum()) == pytest.approx(min(worth[same].sum(), 100), rel=1e-6)
        assert int((together > 0).sum()) == 1
    complete = ~np.isnan(values)
    first = {each: int(((x == each) & complete).argmax()) for each in x[complete]}  # each configuration counts once
    trusted = [row for each, row in first.items() if worth[complete & (x == each)].sum() >= 1]
    assert np.array_equal(np.sort(found.values.numpy()[trusted or [*first.values()]]), found.ranked)


def test_where_a_noise_is_missing_a_value_counts_as_one_of_usual_noise_and_failures_for_nothing():
    found = told([0.5, 0.5, 0.5, 0.1], [1.0, 4.0, np.nan, 7.0], [0.1, np.nan, 0.1, np.nan]).averaged
    assert found.values.tolist()[:2] == [2.5, 2.5]
    assert math.isnan(found.values[2])
    assert found.ranked.tolist() == [2.5, 7]
    assert found.worth.tolist() == [0, 2, 1, 1]


def test_a_value_without_noise_all_but_stands_for_its_configuration():
    values = told([0.5, 0.5, 0.9], [1.0, 4.0, 0.0], [0.0, 1.0, 1.0]).averaged.values
    assert float(values[0]) == pytest.approx((100 * 1 + 4) / 101)


def test_asked_or_added_a_configuration_is_the_same():
    study = Study(LINE, n_initial=2)
    for value in (1.0, 3.0):
        study.enqueue({"x": 0.5})
        study.tell(study.ask()[0], value)
    study.add({"x": [0.5, 0.7]}, [5.0, 2.0])
    study.add({"x": [0.5]}, [100.0], task="last year")
    assert study.observations.averaged.values.tolist() == [3, 3, 3, 2, 100]
    assert study.best_trial.value == 1  # what was seen
    assert study.recommended.params == {"x": 0.7}  # 2 is better than the mean of 1, 3 and 5
    assert study.observations.n_distinct == 2


def test_results_of_other_budgets_are_no_repeats():
    observations = Observations(LINE, budget=Budget("epochs", 1, 3))
    observations.add({"x": [0.5, 0.5, 0.5, 0.1]}, [1.0, 4.0, 6.0, 2.0], budgets=[1, 3, 3, 1], noise=[0.1, 0.2, 0.2, 0])
    assert observations.averaged.values.tolist() == [1, 5, 5, 2]
    labels = RungLabels(ValueGradedLabels(gamma=0.9))(observations)
    assert labels.z[1] == labels.z[2]
    assert labels.weight.tolist() == pytest.approx([0.01, 0, 2, 1], abs=1e-5)  # beside its rung's own median


def test_all_rows_of_a_configuration_have_one_label_and_one_of_them_the_weight():
    labels = ValueGradedLabels()(told([0.5, 0.1, 0.5, 0.9], [0.0, 1.0, 4.0, 3.0]))
    assert labels.z[0] == labels.z[2]
    assert labels.weight.tolist() == pytest.approx([0, 1, 2, 1], abs=1e-5)


@given(value=st.floats(-1e9, 1e9), times=st.integers(2, 12), noise=st.sampled_from([None, 0.3]))
def test_the_mean_of_equal_values_is_that_value(value, times, noise):
    observations = told([0.5] * times + [0.1], [value] * (times + 1), noise=noise)
    assert observations.averaged.values.tolist() == [value] * (times + 1)  # 0.1 three times is no 0.1 by sum / 3
    assert observations.averaged.ranked.tolist() == [value] * 2


def test_the_luckiest_of_the_noisiest_values_is_not_what_others_are_measured_by():
    x, noise = np.linspace(0, 1, 21), np.where(np.arange(21) % 2, 5.0, 0.1)
    values = (x - 0.5) ** 2
    values[3] = -10.0  # by chance
    observations = told(x, values, noise)
    assert observations.averaged.ranked[0] == values[10] == 0
    labels = ValueGradedLabels()(observations)
    assert labels.z[10] == labels.z[3] == 1  # the chance counts for little by its weight, and for no more than the best
    assert labels.z[0] < 0.5


def test_without_repeats_nothing_is_touched():
    observations = told(np.linspace(0, 1, 30), np.random.default_rng(0).normal(size=30))
    found = observations.averaged
    assert found.values.data_ptr() == observations.values.data_ptr()
    assert found.ranked is observations.replicates.sorted_values
    assert found.worth is None


def diagonal(n):
    """n configurations along the diagonal, as columns."""
    return {name: np.linspace(0, 1, n).tolist() for name in "xy"}


# regression: this was wrong once
@pytest.mark.parametrize("has_task", [False, True])
def test_noise_of_an_earlier_task_does_not_weigh_this_runs_values(has_task):
    study = Study(SQUARE, seed=0)
    study.add({"x": [0.1, 0.1, 0.9, 0.5], "y": [0.1, 0.1, 0.9, 0.5]}, [0.0, 10, 6, 20], noise=[10, 0.1, 1, 1])
    if has_task:
        study.add(diagonal(9), (1e6 * np.linspace(0, 1, 9)).tolist(), noise=[1e5] * 9, task="old")
    assert study.recommended.params["x"] == 0.9  # 0 +- 10 and 10 +- .1 have a mean of 10
