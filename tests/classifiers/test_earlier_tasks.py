"""Earlier tasks: graded among themselves, weighed by what they forecast of this run, and forgotten as it goes on."""

import copy
import json
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from scipy.stats import spearmanr

import cases
import deepbore as db
from deepbore import Categorical, Real, SearchSpace, Study
from deepbore.classifiers.kernel.least_squares import ROWS
from deepbore.compute.numerics import rank_correlation
from deepbore.errors import SettingError, TableError
from deepbore.labels import Labelling, Labels, ValueGradedLabels
from deepbore.study.study import share
from plane import SQUARE
from thread_ranks import on_ranks
from tried import tried, with_a_task

PLANE = SearchSpace({"x": Real(-1, 1), "y": Real(-1, 1), "c": Categorical(["a", "b", "c"])})


def bowl(params):
    return (params["x"] - 0.6) ** 2 + (params["y"] + 0.4) ** 2 + (params["c"] != "b")


def table(n=60, seed=1, of=bowl):
    """Columns and values of n random rows of a task."""
    rows = PLANE.decode(PLANE.points.sample(n, torch.Generator().manual_seed(seed)))
    return {name: [row[name] for row in rows] for name in PLANE.names}, np.array([of(row) for row in rows])


def new(task=None, scale=1.0, shift=0.0, **settings):
    """A study, perhaps with rows of an earlier task whose values are the bowl's on another scale."""
    study = Study(PLANE, seed=3, **settings)
    if task is not None:
        columns, values = table()
        study.add(columns, scale * values + shift, task=task)
    return study


def go_on(study, n, of=bowl):
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, of(trial.params))


def earlier(study):
    return study._state.earlier


def own(study):
    return [trial for trial in study.trials if trial.task is None]


# --- labels and weights ----------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=2, max_size=30))
def test_the_rank_correlation_is_spearmans(pairs):
    one, other = (torch.tensor(column, dtype=torch.float64) for column in zip(*pairs, strict=True))
    found = float(rank_correlation(one, other))
    varies = len(one.unique()) > 1 and len(other.unique()) > 1
    assert found == pytest.approx(spearmanr(one, other).statistic if varies else 0.0, abs=1e-12)


def test_values_of_other_tasks_do_not_touch_the_labels_of_this_run():
    plain, with_task = new(), new("old", scale=1e6, shift=-1e9)
    columns, values = table(20, seed=7)
    for study in (plain, with_task):
        study.add(columns, values)
    labelled = [study._state.data.labelled() for study in (plain, with_task)]
    assert torch.equal(labelled[0].points, labelled[1].points)
    assert torch.equal(labelled[0].z, labelled[1].z)
    assert labelled[0].metrics == labelled[1].metrics


@settings(max_examples=5)
@given(st.floats(0.01, 100), st.floats(-100, 100))
def test_the_scale_of_a_tasks_values_does_not_matter(scale, shift):
    points = PLANE.points.sobol(20, seed=0)
    with torch.no_grad():
        ours, theirs = (earlier(study).forecasts(points) for study in (new("old"), new("old", scale, shift)))
    assert torch.allclose(ours, theirs, atol=2e-3)


def test_a_task_weighs_what_it_forecasts_of_this_run():
    study = Study(PLANE, seed=0)
    columns, values = table()
    study.add(columns, values, task="same")
    study.add(columns, -values, task="reversed")
    study.add(columns, np.random.default_rng(0).permutation(values), task="random")
    study.add(columns, np.ones(60), task="constant")
    assert study.observations.ledger.task_names == ("same", "reversed", "random", "constant")
    study.add(*table(30, seed=9))
    batch = study._state.data.labelled()
    weights = earlier(study).weights(batch).tolist()
    forecasts = earlier(study).forecasts(batch.points).detach()
    rho = [spearmanr(forecasts[:, t], batch.z[:, 0]).statistic for t in (0, 1, 2)]
    assert rho[0] > 0.8 > -0.5 > rho[1]
    assert weights == pytest.approx([max(0.0, each) ** 4 / 2 / 9 for each in rho] + [0.0])  # (10 / 30)^2 = 1 / 9
    assert weights[2] < weights[0] / 20
    few = batch.take(torch.arange(5))
    assert 0 < float(earlier(study).weights(few)[0]) <= 0.5


def test_the_rows_of_tasks_fill_up_what_this_run_leaves_of_the_coreset_and_then_vanish():
    study = Study(PLANE, seed=0)
    columns, values = table(400)
    study.add(columns, values, task="old")
    study.add({name: column[:50] for name, column in columns.items()}, values[:50], task="older")
    before = 0
    for n, has_any in ((20, True), (40, True), (160, False), (10, False)):
        study.add(*table(n, seed=n))
        batch = study._state.data.labelled()
        joined = earlier(study).joined(batch)
        before += n
        assert len(batch) == before
        assert len(joined) <= max(ROWS, before)
        assert (len(joined) > before) is has_any
        for name in ("points", "z", "weight"):
            assert torch.equal(getattr(joined, name)[len(joined) - before :], getattr(batch, name))
        assert (joined.weight[: len(joined) - before] <= 0.5).all()


def test_a_task_without_anything_to_tell_apart_is_passed_over():
    study = Study(PLANE, seed=0, n_initial=4)
    columns, _ = table(3)
    study.add(columns, [1.0, 1.0, 1.0], task="constant")
    study.add(columns, [np.nan] * 3, task="failed")
    go_on(study, 8)
    assert earlier(study).forecasts(PLANE.points.sobol(3, seed=0)).tolist() == [[0, 0]] * 3
    assert len(own(study)) == 8


def test_own_rows_alone_are_a_view_of_the_run():
    study = new("old")
    study.add({"x": 0.5, "y": 0.5, "c": "a"}, 3.0)
    study.add(*table(5, seed=4), task="older")
    go_on(study, 2)
    study.annotate(study.trials[-1], {"host": "node7"})
    alone = study.observations.of_task(0)
    assert [alone.trial(k).params for k in range(3)] == [trial.params for trial in own(study)]
    assert alone.trial(2).attributes == {"host": "node7"}
    assert alone.best.value == study.best_trial.value
    since = study.observations.ledger.ranking.n_since_best
    assert (
        len(alone),
        alone.ledger.n_asked,
        alone.ledger.statistics.n_complete,
        alone.ledger.ranking.n_since_best,
    ) == (3, 2, 3, since)
    assert study.observations.of_task(1).replicates.sorted_values.tolist() == sorted(table()[1])
    assert new().observations.of_task(0).ledger.task_names == ()


# --- the design ------------------------------------------------------------------------------------------------------


def test_the_design_begins_where_tasks_forecast_the_best_and_takes_turns_with_sobol_points():
    study, plain = new("old"), new()
    for of in (plain, study):
        for trial in of.ask(10):
            of.tell(trial, bowl(trial.params))
    values = [trial.value for trial in own(study)]
    assert max(values[::2]) < 0.5 < np.mean([trial.value for trial in plain.trials])
    assert [trial.params for trial in own(study)[1::2]] == [trial.params for trial in plain.trials[:5]]


def test_the_design_is_the_same_one_by_one():
    together, one_by_one = new("old"), new("old")
    asked = [trial.params for trial in together.ask(6)]
    assert [one_by_one.ask()[0].params for _ in range(6)] == asked


def test_rows_of_other_tasks_are_no_part_of_the_design_and_own_results_are():
    study = new("old", n_initial=6)
    assert study._state.n_missing == 6
    study.add(*table(4, seed=5))
    assert study._state.n_missing == 2


def test_a_fixed_parameter_stays_fixed_in_the_design():
    study = new("old")
    study.fix({"c": "a"})
    assert {trial.params["c"] for trial in study.ask(6)} == {"a"}


# --- runs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["KernelPLS", pytest.param("RandomForest", marks=pytest.mark.slow)])
def test_a_related_task_saves_evaluations(name):
    plain, helped = (new(task, 1e3, -5.0, classifier=cases.CLASSIFIERS[name]()) for task in (None, "old"))
    for study in (plain, helped):
        go_on(study, 14)
    assert helped.best_trial.value < plain.best_trial.value
    assert helped.recommended.task is None


@pytest.mark.slow
def test_a_loaded_study_goes_on_bit_for_bit_with_tasks_added_on_the_way(tmp_path):
    whole, part = (new("old", n_initial=4, journal=tmp_path / f"{k}.jsonl") for k in "ab")
    for study in (whole, part):
        go_on(study, 7)
        study.add(*table(20, seed=8), task="older")
        study.add(*table(5, seed=6), task="old")
        go_on(study, 2)
    part.close()
    loaded = Study.load(tmp_path / "b.jsonl")
    for study in (whole, loaded):
        go_on(study, 5)
    assert torch.equal(loaded.observations.points, whole.observations.points)
    assert loaded.recommended == whole.recommended


def test_ranks_propose_alike():
    def asks(ranks):
        study = new("old", n_initial=4)
        share(study, ranks)
        asked = []
        for _ in range(4):
            trials = study.ask(2)
            asked += [trial.params for trial in trials]
            for trial in trials:
                study.tell(trial, bowl(trial.params))
        return asked

    one, other = on_ranks(asks)
    assert one == other


def test_heads_are_fitted_once_and_again_only_after_rows_were_added(monkeypatch):
    graded = []
    label = ValueGradedLabels.__call__
    monkeypatch.setattr(ValueGradedLabels, "__call__", lambda self, rows: graded.append(len(rows)) or label(self, rows))
    study = new("old", n_initial=3)
    study.add(*table(30, seed=2), task="older")
    go_on(study, 6)
    assert sorted(n for n in graded if n >= 30) == [30, 60]
    study.add(*table(5, seed=3), task="older")
    go_on(study, 2)
    assert sorted(n for n in graded if n >= 30) == [30, 35, 60]


@pytest.mark.slow
def test_a_task_of_many_rows_costs_a_suggestion_no_more_than_one_of_few():
    study = Study(PLANE, seed=0, n_initial=4)
    n = 300_000
    x, y = np.random.default_rng(0).uniform(-1, 1, (2, n))
    study.add({"x": x, "y": y, "c": np.full(n, "b")}, (x - 0.6) ** 2 + (y + 0.4) ** 2, task="large")
    go_on(study, 8)
    (task,) = earlier(study).tasks
    assert task.rows == n
    assert len(task.batch) == ROWS
    assert len(earlier(study).joined(study._state.data.labelled())) <= ROWS
    assert study.best_trial.value < 0.1


# --- doors -----------------------------------------------------------------------------------------------------------


def written(path, n=40):
    columns, values = table(n)
    rows = [",".join(map(str, row)) for row in zip(*columns.values(), values, strict=True)]
    path.write_text("\n".join(["x,y,c,value", *rows]))
    return columns, values


def test_a_csv_file_of_a_task(tmp_path):
    columns, values = written(tmp_path / "old.csv")
    one, other = Study(PLANE), Study(PLANE)
    one.add_csv(tmp_path / "old.csv", task="old")
    other.add(columns, values, task="old")
    assert one.observations.ledger.task_names == ("old",)
    assert torch.equal(one.observations.points, other.observations.points)
    with pytest.raises(TableError, match=r"none\.csv can't be read"):
        one.add_csv(tmp_path / "none.csv", task="old")


class Weighed(Labelling):
    """Two objectives in one column, by weights that may be others each time."""

    objectives = 2

    def __call__(self, observations):
        return Labels.none(observations)


def test_labels_that_change_their_meaning_refuse_earlier_tasks():
    study = Study(PLANE, directions=["minimize", "minimize"], labels=Weighed())
    columns, values = table(5)
    with pytest.raises(SettingError, match="can't be compared with this run's"):
        study.add(columns, np.stack([values, -values], -1), task="old")
    study.add(columns, np.stack([values, -values], -1))


def test_the_journal_names_the_task(tmp_path):
    new("old", journal=tmp_path / "run.jsonl").close()
    (_, added) = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert (added["event"], added["task"], len(added["values"])) == ("added", "old", 60)


def elsewhere(params):
    """A bowl whose best point is none of the other one's."""
    return (params["x"] + 0.7) ** 2 + (params["y"] - 0.6) ** 2 + (params["c"] != "a")


def test_the_design_begins_with_the_best_of_all_tasks_together_and_then_of_each_in_turn():
    study = Study(PLANE, seed=0)
    study.add(*table(), task="one")
    study.add(*table(seed=2, of=elsewhere), task="other")
    asked = PLANE.encode([trial.params for trial in study.ask(6)])[::2]
    with torch.no_grad():
        chosen = earlier(study).forecasts(asked)
        others = earlier(study).forecasts(torch.cat([study.observations.points, PLANE.points.sobol(1000, seed=0)]))
    assert float(chosen[0].mean()) >= others.mean(-1).max() - 1e-3
    assert float(chosen[1, 0]) >= others[:, 0].max() - 1e-3
    assert float(chosen[2, 1]) >= others[:, 1].max() - 1e-3
    assert chosen[1, 1] < chosen[0].mean() > chosen[2, 0]


def test_what_a_task_weighs_does_not_hang_on_pending_trials():
    study = new("old")
    study.add(*table(12, seed=9))
    weights = [earlier(study).weights(study._state.data.labelled())]
    trials = study.ask(4)
    weights.append(earlier(study).weights(study._state.data.labelled()))
    assert torch.equal(*weights)
    assert float(weights[0]) > 0.1
    for trial in trials:
        study.tell(trial, -bowl(trial.params))
    assert float(earlier(study).weights(study._state.data.labelled())) < float(weights[0])
    assert len(own(study)) == 16


# regression: each of these was wrong once
@pytest.mark.slow
def test_labels_that_remember_go_on_beside_an_earlier_task(tmp_path):
    def new(**journal):
        labels = db.EmphasiseChanges(db.ValueGradedLabels())
        return db.Study(SQUARE, seed=0, n_initial=4, labels=labels, **journal)

    path = tmp_path / "run.jsonl"
    study = tried(with_a_task(new(journal=path)), 12)
    study.close()
    assert tried(db.Study.load(path), 2).trials[-1].params == tried(with_a_task(new()), 14).trials[-1].params


@pytest.mark.slow
def test_a_deep_copy_has_earlier_tasks_of_its_own():
    study = tried(db.Study(SQUARE, seed=0, n_initial=2), 5)
    one, other = copy.deepcopy(study), copy.deepcopy(study)
    pickled = with_a_task(pickle.loads(pickle.dumps(study)))
    untouched = pickle.loads(pickle.dumps(study))
    assert with_a_task(one).ask()[0].params == pickled.ask()[0].params
    with_a_task(study)
    assert other.ask()[0].params == untouched.ask()[0].params
