"""Defects that reading and attacking the code has found, each with what it promised."""

import copy
import json
import math
import os
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import EarlyStopping
from torch import nn

import deepbore as db
from deepbore.classifiers import fourier_logistic
from deepbore.cli.load import load_run
from deepbore.data.lines import written
from deepbore.data.observations import Observations
from deepbore.data.record import read_record
from deepbore.data.thresholds import best_among, best_and_tau, threshold
from deepbore.errors import JournalError, PointError, SettingError, SpaceExhausted, ValueTypeError
from deepbore.labels import Labels, ThresholdLabels, preferences
from deepbore.plots import history, pairs, report, slices
from deepbore.plots.held_out import held_out
from deepbore.plots.html_report import record_of
from deepbore.plots.optimization_history import gamma_of
from deepbore.plots.page.charts import axis_of
from deepbore.plots.predictions import is_good, judged_rows
from deepbore.plots.value_axis import ValueAxis
from deepbore.space import counting
from deepbore.testing import TOY_SPACES, fit, toy_data

SQUARE = db.SearchSpace({"x": db.Real(0, 1), "y": db.Real(0, 1)})
BELOW_A_REAL = db.SearchSpace({"a": db.Real(0, 100), "b": db.Real(0, 1, when=db.Condition("a", "> 50"))})


def told(study, n, value=lambda params: (params["x"] - 0.3) ** 2 + params["y"]):
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, value(trial.params))
    return study


# --- spaces ----------------------------------------------------------------------------------------------------------


def test_earlier_results_keep_what_hangs_on_a_real_parameter():
    study = db.Study(BELOW_A_REAL)
    study.add({"a": [60.0, 40.0], "b": [0.7, 0.7]}, [1.0, 2.0])
    assert [trial.params for trial in study.trials] == [{"a": 60.0, "b": 0.7}, {"a": 40.0}]


@pytest.mark.parametrize("space", [*TOY_SPACES.values(), BELOW_A_REAL])
def test_columns_come_back_as_the_points_that_they_were(space):
    points = space.sobol(50, seed=0)
    torch.testing.assert_close(space.encode_columns(space.decode_columns(points)), points)


@pytest.mark.parametrize("kind", [db.Categorical, db.Ordinal])
def test_a_frame_may_have_nan_for_the_choice_none(kind):
    pandas = pytest.importorskip("pandas")
    space = db.SearchSpace({"k": kind([1, None, 3]), "x": db.Real(0, 1)})
    study = db.Study(space)
    study.add(pandas.DataFrame({"k": [1, None], "x": [0.1, 0.2]}), [1, 2])
    assert [trial.params["k"] for trial in study.trials] == [1, None]
    frame = study.to_frame()
    again = db.Study(space)
    again.add(frame[["k", "x"]], frame["value"])
    assert [trial.params for trial in again.trials] == [trial.params for trial in study.trials]
    with pytest.raises(PointError, match="nan"):
        db.Study(db.SearchSpace({"k": kind([1, 3])})).add({"k": [float("nan")]}, [1.0])


# --- searches --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [db.GreedyBatch, db.ThompsonBatch, db.Ambitious], ids=lambda base: base.__name__)
@pytest.mark.parametrize("name", ["mixed", "finite"])
def test_a_relaxed_search_goes_with_any_search_of_the_box(base, name):
    spaces = {
        "mixed": db.SearchSpace({"x": db.Real(0, 1), "c": db.Categorical(["a", "b", "c"])}),
        "finite": db.SearchSpace({"k": db.Ordinal([0, 1, 2, 3]), "l": db.Ordinal([0, 1, 2, 3, 4])}),
    }
    head = db.Relaxed(db.DeepEnsemble(members=2, training=db.Training(steps=5)))
    study = db.Study(spaces[name], n_initial=4, classifier=head, candidates=db.RelaxedSearch(base()))
    told(study, 5, lambda params: float(len(str(params))))
    asked = [trial.params for trial in study.ask(3)]
    seen = [trial.params for trial in study.trials[:5]]
    assert all(asked.count(params) == 1 and params not in seen for params in asked)


@pytest.mark.parametrize("search", [db.MultiStartLBFGS, db.BoTorchBatch], ids=lambda search: search.__name__)
def test_botorch_climbs_what_an_ambitious_search_asks_for(search):
    def proposals(candidates):
        study = told(db.Study(SQUARE, seed=0, n_initial=6, candidates=candidates), 8)
        return study.ask()[0].params

    assert proposals(db.Ambitious(search(), share=1.0)) != proposals(search())


# --- heads -----------------------------------------------------------------------------------------------------------

NETWORKS = (db.MLPClassifier, db.DeepEnsemble, db.HyperDeepEnsemble, db.MCDropout, db.LaplaceGGN)


@pytest.mark.parametrize("head", NETWORKS, ids=lambda head: head.__name__)
def test_a_study_with_a_network_goes_through_pickle(head):
    study = told(db.Study(SQUARE, seed=0, n_initial=3, classifier=head(training=db.Training(steps=5))), 5)
    again = pickle.loads(pickle.dumps(study))
    assert again.ask()[0].params == study.ask()[0].params


class WithASpareLayer(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        self.used, self.spare = nn.Linear(features, outputs), nn.Linear(features, 7)

    def forward(self, x):
        return self.used(x)


def test_a_network_may_have_parameters_that_its_output_does_not_hang_on():
    head = db.MLPClassifier(network=WithASpareLayer, training=db.Training(steps=3))
    assert fit(head, toy_data(SQUARE)).ready


def test_a_network_of_the_users_own_leaves_every_global_stream_alone(monkeypatch):
    reseeded = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", reseeded.append)
    before = torch.get_rng_state()
    head = db.MLPClassifier(network=WithASpareLayer)
    head.generator = torch.Generator().manual_seed(0)
    head.bind(SQUARE)
    assert torch.equal(torch.get_rng_state(), before)
    assert not reseeded


def test_pending_trials_do_not_weaken_the_prior_of_a_laplace_network():
    head = db.LaplaceGGN(training=db.Training(steps=2), prior_precision=1.0)
    study = told(db.Study(SQUARE, seed=0, n_initial=4, classifier=head), 10)
    for q in (1, 60, 1):
        study.ask(q)
        assert head.configure_optimizers().param_groups[0]["weight_decay"] == pytest.approx(0.1)


def test_members_are_chosen_by_the_rows_of_this_run():
    def foretold(begin):
        head = db.HyperDeepEnsemble(training=db.Training(steps=2))
        told(begin(db.Study(SQUARE, seed=0, n_initial=4, classifier=head)), 12)
        return len(head.foretold.unique(dim=1)[0])  # before they are foretold all are alike

    assert foretold(with_a_task) == foretold(lambda study: study) == 8


def test_members_are_chosen_by_rows_that_were_told():
    head = db.HyperDeepEnsemble(training=db.Training(steps=2))
    study = told(db.Study(SQUARE, seed=0, n_initial=4, classifier=head), 10)
    study.ask(70)
    chosen = head.chosen.clone()
    study.ask()  # of none of the last rows anybody knows who was right
    assert torch.equal(head.chosen, chosen)


def test_a_fourier_head_at_the_end_of_its_length_scales_stops_climbing(monkeypatch):
    tries = []
    original = fourier_logistic.maximise_bound
    monkeypatch.setattr(fourier_logistic, "maximise_bound", lambda *given: tries.append(1) or original(*given))
    study = told(db.Study(SQUARE, seed=0, n_initial=10, classifier=db.FourierLogistic()), 10, lambda p: p["x"] + p["y"])
    most = 0
    for _ in range(6):
        tries.clear()
        told(study, 1, lambda p: p["x"] + p["y"])
        most = max(most, len(tries))
    assert most <= 25


# --- earlier tasks ---------------------------------------------------------------------------------------------------


def with_a_task(study, rows=8):
    x = np.linspace(0, 1, rows)
    study.add({"x": x, "y": x[::-1]}, (x - 0.3) ** 2, task="before")
    return study


def test_labels_that_remember_go_on_beside_an_earlier_task(tmp_path):
    def new(**journal):
        labels = db.EmphasiseChanges(db.ValueGradedLabels())
        return db.Study(SQUARE, seed=0, n_initial=4, labels=labels, **journal)

    path = tmp_path / "run.jsonl"
    study = told(with_a_task(new(journal=path)), 12)
    study.close()
    assert told(db.Study.load(path), 2).trials[-1].params == told(with_a_task(new()), 14).trials[-1].params


def test_a_deep_copy_has_earlier_tasks_of_its_own():
    study = told(db.Study(SQUARE, seed=0, n_initial=2), 5)
    one, other = copy.deepcopy(study), copy.deepcopy(study)
    pickled = with_a_task(pickle.loads(pickle.dumps(study)))
    untouched = pickle.loads(pickle.dumps(study))
    assert with_a_task(one).ask()[0].params == pickled.ask()[0].params
    with_a_task(study)
    assert other.ask()[0].params == untouched.ask()[0].params


# --- records and pictures --------------------------------------------------------------------------------------------


def test_a_record_has_later_notes_of_the_trial_that_goes_on(tmp_path):
    path = tmp_path / "run.jsonl"
    space = db.SearchSpace({"x": db.Real(0, 1)})
    study = db.Study(space, budget=db.Budget("epochs", 1, 9), n_initial=3, journal=path)
    for trial in study.ask(3):
        study.tell(trial, trial.id)
    (promoted,) = study.ask()
    study.annotate(promoted.resume_from, {"host": "n7"})
    study.close()
    assert read_record(Path(path)).trials[3].resume_from.attributes == {"host": "n7"}


def test_no_threshold_of_values_of_all_budgets_is_drawn(tmp_path):
    path = tmp_path / "run.jsonl"
    study = db.Study(db.SearchSpace({"x": db.Real(0, 1)}), budget=db.Budget("epochs", 1, 9), n_initial=3, journal=path)
    told(study, 6, lambda params: params["x"])
    for run in (study, read_record(path)):
        assert not [line for line in history(run).axes[0].lines if str(line.get_label()).startswith("tau")]


def test_a_prediction_is_judged_by_trials_of_the_largest_budget():
    study = db.Study(db.SearchSpace({"x": db.Real(0, 1)}), budget=db.Budget("epochs", 1, 9), n_initial=9, seed=0)
    while int((study.observations.budgets == 9).sum()) < 4:
        (trial,) = study.ask()
        study.tell(trial, (trial.params["x"] - 0.3) ** 2 + 1 / trial.budget)
    rows = judged_rows(study.observations, 100)
    assert (study.observations.budgets[rows] == 9).all()
    said = held_out(study, folds=2, epochs=1)
    assert set(np.flatnonzero(~np.isnan(said))) <= set(rows.tolist())


def test_trials_of_earlier_tasks_are_not_judged():
    study = told(with_a_task(db.Study(SQUARE, seed=0, n_initial=4)), 10)
    assert judged_rows(study.observations, 100).tolist() == list(range(8, 18))
    assert np.isnan(held_out(study, folds=2, epochs=1)[:8]).all()


@pytest.mark.parametrize("n", [7, 2000, 4321])
def test_tau_is_drawn_of_many_values_at_no_more_than_a_picture_shows(n):
    values = np.random.default_rng(0).normal(size=n)
    values[3] = math.nan
    best, taus = best_and_tau(values, 0.5)
    assert taus[-1] == threshold(np.sort(values[~np.isnan(values)]), 0.5)
    assert best[-1] == np.nanmin(values)
    exact = [threshold(np.sort(values[: k + 1][~np.isnan(values[: k + 1])]), 0.5) for k in range(n)]
    assert n > 2000 or taus.tolist() == exact
    assert np.abs(taus - exact)[min(n, 100) - 1 :].max() < 0.1


@pytest.mark.parametrize(("low", "high", "every"), [(1e-3, 10, 1), (1e-12, 1, 2), (2, 30, None)])
def test_a_logarithmic_axis_has_powers_of_ten_where_there_are_several(low, high, every):
    assert axis_of(ValueAxis(low, high, True, False), "value").get("dtick") == every


def test_observations_of_a_part_know_their_best():
    observations = Observations(SQUARE)
    observations.add({"x": [0.1, 0.2, 0.3], "y": [0.0, 0.0, 0.0]}, [3.0, 1.0, 2.0])
    assert observations.part(torch.tensor([0, 2])).best.value == 2.0


# --- runs with budgets, as they are shown ----------------------------------------------------------------------------


@pytest.fixture
def by_budget(tmp_path):
    """A run whose cheapest trials have the best values, and its journal."""
    path = tmp_path / "journal.jsonl"
    study = db.Study(SQUARE, budget=db.Budget("epochs", 1, 9), journal=path, seed=0)
    x = [0.1, 0.2, 0.3, 0.4, 0.5]
    study.add({"x": x, "y": x}, [0.1, 0.5, 0.6, 0.3, 0.4], budgets=[1, 1, 1, 9, 9])
    study.fit()
    return study, read_record(path)


def test_the_record_of_a_study_is_that_of_its_journal(by_budget):
    study, record = by_budget
    made = record_of(study)
    assert made.best.id == record.best.id == study.best_trial.id == 3
    assert made.header == {name: value for name, value in record.header.items() if name in made.header}
    assert "0.3 in trial 3" in report(study)


def test_the_best_so_far_is_at_the_largest_budget(by_budget):
    study, record = by_budget
    curve = [0.1, 0.1, 0.1, 0.3, 0.3]
    assert best_among(record.trials, "minimize", has_budget=True).tolist() == curve
    for run in (study, record):
        (line,) = (each for each in history(run).axes[0].lines if each.get_label() == "best so far")
        assert line.get_ydata().tolist() == curve


def test_no_tau_of_utilities_is_drawn_over_values(tmp_path):
    path = tmp_path / "journal.jsonl"
    study = db.Study(SQUARE, preferences=True, journal=path, seed=0)
    for _ in range(4):
        one, other = study.ask(2)
        study.prefer(one, other)
    study.fit()
    labels = study.labels(study.observations)
    assert labels.metrics == {}
    assert is_good(study, labels).sum() == (labels.z[:, 0] > 0).sum() > 0
    assert gamma_of(read_record(path).header) is None


def test_forgotten_comparisons_leave_positive_weights(monkeypatch):
    monkeypatch.setattr(preferences, "LATEST", 1)
    study = db.Study(SQUARE, preferences=True, seed=0)
    for _ in range(2):
        one, other = study.ask(2)
        study.prefer(one, other)
    weight = study.labels(study.observations).weight
    assert (weight > 0).all()
    assert weight[:2].max() < 1e-3


# --- what goes on, and what is refused -------------------------------------------------------------------------------


def test_an_executor_of_a_pool_that_broke_goes_on_in_the_next_run(tmp_path):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        evaluator = db.ExecutorEvaluator(partial(dies_once, tmp_path / "died"), pool, retries=1)
        study = db.Study(SQUARE, seed=0)
        for _ in range(2):
            study.optimize(evaluator, 2)
    assert [trial.status.name for trial in study.trials] == ["COMPLETE"] * 4


def dies_once(mark, params):
    if not mark.exists():
        mark.touch()
        os._exit(1)
    return params["x"]


def test_of_outcomes_that_do_not_go_together_none_counts():
    suggester = db.Suggester(SQUARE, seed=0)
    one, other = suggester.ask(2)
    with pytest.raises(ValueTypeError, match="trial 1: the number of constraints must be 1"):
        suggester.tell({one.id: db.Outcome(1, constraints=[1.0]), other.id: db.Outcome(1, constraints=[1.0, 2.0])})
    assert [trial.status.name for trial in suggester.study.trials] == ["PENDING"] * 2


class TheirLabels(ThresholdLabels):
    objectives = None

    def __call__(self, observations):
        return Labels.none(observations)


@pytest.mark.parametrize("within", [False, True])
def test_a_run_of_two_objectives_is_looked_at_without_labels_that_are_somebody_elses(tmp_path, within):
    labels = db.labels.EmphasiseChanges(TheirLabels()) if within else TheirLabels()
    path = tmp_path / "journal.jsonl"
    study = db.Study(SQUARE, directions=["minimize"] * 2, classifier=db.KernelPLS(), labels=labels, journal=path)
    told(study, 3, lambda params: [params["x"], params["y"]])
    study.close()
    assert type(load_run(tmp_path).labels).__name__ == "ChebyshevLabels"


def test_only_feasible_rows_may_be_the_best_beside_an_earlier_task(monkeypatch):
    seen = []
    learn = db.KernelPLS.learn
    monkeypatch.setattr(db.KernelPLS, "learn", lambda self, batch: seen.append(batch) or learn(self, batch))
    study = db.Study(SQUARE, seed=0, classifier=db.KernelPLS(noisy=True), n_initial=4)
    x = np.linspace(0.05, 0.95, 12)
    study.add({"x": x, "y": x[::-1].copy()}, ((x - 0.3) ** 2).tolist(), task="earlier")
    for row in range(8):
        (trial,) = study.ask()
        study.tell(trial, (trial.params["x"] - 0.3) ** 2, constraints=[1.0 if row % 2 else -1.0])
    study.ask()
    batch = next(batch for batch in reversed(seen) if batch.n_earlier)
    assert batch.constraints[: batch.n_earlier].isnan().all()
    assert len(batch.constraints) == len(batch)
    assert batch.constraints[batch.n_earlier :].isfinite().any()


def test_training_for_no_number_of_epochs_is_refused():
    with pytest.raises(SettingError, match="epochs"):
        told(db.Study(SQUARE), 3).fit(epochs=None)


def test_a_network_that_cannot_be_called_is_refused_where_it_is_given():
    with pytest.raises(SettingError, match="network"):
        db.MCDropout(network=5)


@pytest.mark.parametrize(
    ("settings", "told", "rule"),
    [
        ({"preferences": True}, {"values": [1.0]}, "compared"),
        ({"budget": db.Budget("epochs", 1, 9)}, {"values": [1.0], "budget": 9.0}, "has a budget of 1"),
    ],
)
def test_a_record_refuses_what_a_study_refuses(tmp_path, settings, told, rule):
    path = tmp_path / "journal.jsonl"
    study = db.Study(SQUARE, journal=path, seed=0, **settings)
    (trial,) = study.ask()
    study.close()
    lines = path.read_text().splitlines()
    version, crc = json.loads(lines[0])["version"], int(json.loads(lines[-1])["crc"], 16)
    with path.open("ab") as file:
        file.write(written({"event": "told", "trial": trial.id, **told}, version, crc)[0])
    for look in (read_record, db.Study.load):
        with pytest.raises(JournalError, match=rule):
            look(path)


# --- the ends of numbers, and of spaces ------------------------------------------------------------------------------


def test_a_large_value_that_falls_by_little_is_logged_as_it_is():
    stopping = EarlyStopping("best_value", patience=4)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = Trainer(max_epochs=-1, accelerator="cpu", callbacks=[stopping], enable_model_summary=False, **quiet)
    study = db.Study(SQUARE, seed=0, classifier=db.RandomForest(trees=5), n_initial=3)
    study.optimize(lambda params, trial: 2e7 - 0.01 * trial.id, 14, trainer=trainer)
    assert len(study.trials) == 14
    assert float(stopping.best_score) == pytest.approx(2e7 - 0.13, abs=1e-6)


def idle(high, **settings):
    """A space of 8 configurations once "opt" is fixed: then "period" is never active."""
    period = db.Integer(1, high, log=True, when={"opt": "sgd"})
    depth = db.Integer(1, 8)
    return db.SearchSpace({"opt": db.Categorical(["sgd", "adam"]), "depth": depth, "period": period}, **settings)


@pytest.mark.parametrize("settings", [{}, {"constraints": ["period <= 100000 * depth"]}])
def test_a_parameter_that_is_never_active_costs_nothing(settings):
    space = idle(10**13, **settings)
    assert space.with_fixed({"opt": "adam"}).cardinality == 8
    study = db.Study(space, seed=0)
    study.fix({"opt": "adam"})
    study.optimize(lambda params: params["depth"], 20)
    assert sorted(trial.params["depth"] for trial in study.trials) == list(range(1, 9))


@pytest.fixture
def uncounted(monkeypatch):
    """A space of 20 configurations that counts as infinite, as large ones with constraints do."""
    monkeypatch.setattr(counting, "MOST", 1)
    space = db.SearchSpace({name: db.Integer(2, 9) for name in NAMES}, constraints=[f"{' + '.join(NAMES)} <= 9"])
    assert math.isinf(space.cardinality)
    return space


NAMES = ("max_depth", "min_samples_leaf", "max_leaf_nodes")


@pytest.mark.parametrize("batch_size", [1, 8])
def test_a_space_that_is_small_without_being_known_to_be_ends_the_run(uncounted, batch_size, caplog):
    found = db.minimize(lambda params: params["max_depth"], uncounted, 30, batch_size=batch_size, seed=0)
    assert len(found.study.trials) == 20
    assert "the run ends" in caplog.text
    with pytest.raises(SpaceExhausted):
        found.study.ask()


def test_a_search_of_scikit_learn_ends_with_such_a_space(uncounted):
    trees, sklearn = pytest.importorskip("sklearn.tree"), pytest.importorskip("deepbore.integrations.sklearn")
    search = sklearn.DeepBoreSearchCV(trees.DecisionTreeClassifier(), uncounted, n_iter=30, batch_size=8, cv=2)
    search.fit(np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2)
    assert len(search.cv_results_["params"]) == 20


def test_an_empty_cell_is_not_guessed_at():
    choices = db.Categorical([None, ""])
    with pytest.raises(PointError, match="tell choices apart"):
        choices.read("")
    assert db.Categorical(["", "a"]).read("") == ""
    assert db.Categorical([None, "a"]).read("") is None


def test_pictures_reach_to_the_ends_of_numbers(recwarn):
    space = db.SearchSpace({"x": db.Real(1e-290, 1e300, log=True), "y": db.Real(0, 1)})
    study = db.Study(space, seed=0)
    told(study, 12, lambda params: params["y"])
    study.fit()
    for picture in (slices, pairs):
        picture(study).canvas.draw()
    assert not [each for each in recwarn if "deepbore" in each.filename]


# --- what a program prints -------------------------------------------------------------------------------------------

PROGRAM = """
import deepbore as db
space = db.SearchSpace({"x": db.Real(0, 1), "y": db.Real(0, 1)})
study = db.Study(space, n_initial=3, seed=0, SETTINGS)
for _ in range(6):
    (trial,) = study.ask()
    study.tell(trial, VALUE)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "value"),
    [
        ("directions=['minimize'] * 2", "[trial.params['x'], trial.params['y'] - trial.params['x']]"),
        ("classifier=db.KernelPLS()", "trial.params['x']"),
        ("classifier=db.GPClassifier(), candidates=db.MultiStartLBFGS()", "trial.params['x']"),
        ("classifier=db.KernelPLS(), acquisition=db.UpperConfidenceBound(), candidates=db.BoTorchBatch()", "trial.id"),
    ],
)
def test_a_study_warns_of_nothing_that_its_user_cannot_mend(settings, value):
    program = PROGRAM.replace("SETTINGS", settings).replace("VALUE", value)
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=300)
    assert "Warning" not in done.stderr
