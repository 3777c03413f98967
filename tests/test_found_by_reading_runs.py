"""Runs at their edges: defects that reading and attacking the code has found."""

import json
import math
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
import pytest
from lightning.pytorch.callbacks import EarlyStopping

import deepbore as db
from deepbore.cli.load import load_run
from deepbore.data.lines import written
from deepbore.data.record import read_record
from deepbore.errors import JournalError, PointError, SettingError, SpaceExhausted, ValueTypeError
from deepbore.labels import Labels, ThresholdLabels
from deepbore.plots import pairs, slices
from deepbore.space import counting
from test_found_by_reading import SQUARE, told
from trainers import quiet_trainer

# --- what goes on, and what is refused -------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_executor_of_a_pool_that_broke_goes_on_in_the_next_run(tmp_path):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        evaluator = db.ExecutorEvaluator(partial(dies_once, tmp_path / "died"), pool, retries=1)
        study = db.Study(SQUARE, seed=0)
        for _ in range(2):
            study.optimize(evaluator, 2)
    assert [trial.status.name for trial in study.trials] == ["COMPLETE"] * 4


@pytest.mark.slow
def test_the_pool_in_its_place_takes_as_few_tasks_a_process(tmp_path):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        evaluator = db.ExecutorEvaluator(partial(own_process, tmp_path / "died"), pool)
        trials = db.minimize(evaluator, SQUARE, 4, seed=0).study.trials
    values = [trial.value for trial in trials if trial.value is not None]
    assert len(set(values)) == len(values) == 3


def dies_once(mark, params):
    if not mark.exists():
        mark.touch()
        os._exit(1)
    return params["x"]


def own_process(mark, params):
    dies_once(mark, params)
    return os.getpid()


def test_of_outcomes_that_do_not_go_together_none_counts():
    suggester = db.DistributedStudy(SQUARE, seed=0)
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
    trainer = quiet_trainer(callbacks=[stopping])
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


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [1, 8])
def test_a_space_that_is_small_without_being_known_to_be_ends_the_run(uncounted, batch_size, caplog):
    found = db.minimize(lambda params: params["max_depth"], uncounted, 30, batch_size=batch_size, seed=0)
    assert len(found.study.trials) == 20
    assert "the run ends" in caplog.text
    with pytest.raises(SpaceExhausted):
        found.study.ask()


@pytest.mark.slow
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
