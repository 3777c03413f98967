"""What a study recommends where values are noisy: the configuration that the classifier expects most of."""

import shutil

import numpy as np
import pytest
from lightning.pytorch import Callback

import deepbore
from cases import QUICK
from deepbore import Categorical, EmphasiseChanges, Outcome, SearchSpace, Study, ThresholdLabels, labels
from deepbore.cli.inspect import summary
from deepbore.errors import SettingError
from deepbore.loop.lightning import new_trainer
from deepbore.loop.recommending import considered_rows
from deepbore.loop.state import WARMUP_EPOCHS, snapshot_path
from deepbore.study.study import Result
from objectives import bowl
from plane import LINE, PLANE

LEVELS = SearchSpace({"c": Categorical(["a", "b", "c"])})


def told(study, n, objective=bowl):
    """The study after n more trials."""
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, objective(trial.params))
    return study


# --- how good it is --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_under_heavy_noise_it_is_better_than_the_luckiest_value():
    recommended, luckiest = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x, y = rng.uniform(-1, 1, (2, 60))
        study = Study(PLANE, seed=seed)
        study.add({"x": x, "y": y}, (x - 0.3) ** 2 + (y + 0.2) ** 2 + 0.5 * rng.standard_normal(60))
        recommended.append(bowl(study.recommended.params))
        luckiest.append(bowl(study.best_trial.params))
    assert np.mean(recommended) < 0.7 * np.mean(luckiest)


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_without_noise_it_is_as_good_as_the_best(direction):
    sign = 1 if direction == "minimize" else -1
    study = told(Study(PLANE, direction=direction, seed=1), 20, lambda params: sign * bowl(params))
    assert bowl(study.recommended.params) < 1.1 * bowl(study.best_trial.params) + 1e-5


@pytest.mark.slow
def test_it_counts_all_that_has_been_told():
    study = told(Study(PLANE, seed=0), 14)
    recommended = study.recommended
    grid = np.linspace(-0.9, -0.7, 5)
    x, y = (each.ravel() for each in np.meshgrid(grid, grid))
    study.add({"x": x, "y": y}, -5 + (x + 0.8) ** 2 + (y + 0.8) ** 2)
    assert study.recommended.value < -4.9 < recommended.value
    assert Result.of(study).recommended == study.recommended


def test_it_counts_failures_of_trials_that_were_pending_when_it_was_asked():
    study, noise = Study(PLANE, n_initial=4), np.random.default_rng(0)
    x = np.linspace(-1, 1, 21)
    study.add({"x": x, "y": 0 * x}, np.minimum((x - 0.5) ** 2 + 0.01, (x + 0.5) ** 2) + noise.normal(0, 0.1, 21))
    place = study.recommended.params["x"]
    for away in (-0.05, -0.03, -0.01, 0.01, 0.03, 0.05):
        study.enqueue({"x": place + away, "y": 0.0})
    asked = study.ask(6)
    assert study.recommended.params["x"] == place
    for trial in asked:
        study.tell(trial, failed=True)
    assert abs(study.recommended.params["x"] - place) > 0.15


# --- what it leaves alone --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "parts",
    [
        dict,
        lambda: {"classifier": deepbore.DeepEnsemble(training=QUICK)},
        lambda: {"classifier": deepbore.RandomForest(trees=10)},
        lambda: {"classifier": deepbore.MCDropout(training=QUICK), "labels": EmphasiseChanges(ThresholdLabels(0.3))},
    ],
    ids=["KernelPLS", "DeepEnsemble", "RandomForest", "MCDropout, EmphasiseChanges"],
)
def test_suggestions_are_the_same_whoever_asks_for_it(parts):
    plain, looked_at = (Study(PLANE, seed=4, n_initial=5, **parts()) for _ in range(2))
    for n in (3, 2, 1):
        told(plain, n)
        told(looked_at, n)
        assert looked_at.recommended is not None
        (one,), (other,) = plain.ask(), looked_at.ask()
        assert one.params == other.params
        assert looked_at.recommended is not None  # while a trial is pending, too
        for study, trial in ((plain, one), (looked_at, other)):
            study.tell(trial, bowl(trial.params))
    assert plain.trials == looked_at.trials


@pytest.mark.slow
def test_a_run_may_ask_for_it_while_it_goes_on():
    class Looks(Callback):
        def on_train_epoch_end(self, trainer, pl_module):
            seen.append(study.recommended)

    def objective(params):
        seen.append(study.recommended)
        return bowl(params)

    seen = []
    study = Study(PLANE, seed=2, n_initial=4)
    trainer = new_trainer()
    trainer.callbacks.append(Looks())
    result = study.optimize(objective, 9, trainer=trainer)
    assert len(seen) == 9 + 5
    assert seen[0] is None
    assert result.values.tolist() == deepbore.minimize(bowl, PLANE, 9, seed=2, n_initial=4).values.tolist()


@pytest.mark.slow
def test_a_loaded_study_recommends_the_same_and_goes_on_the_same(tmp_path):
    path = tmp_path / "run.jsonl"
    study = told(Study(PLANE, seed=3, n_initial=5, journal=path), 12, lambda params: round(bowl(params), 1))
    recommended = study.recommended
    study.close()
    kept, other = path.read_bytes(), tmp_path / "copy.jsonl"
    for file in (path, snapshot_path(path)):
        shutil.copy(file, file.with_name(file.name.replace("run", "copy")))
    loaded = Study.load(other)
    assert loaded.recommended == recommended
    assert other.read_bytes() == kept
    assert loaded.ask()[0].params == study.ask()[0].params


@pytest.mark.slow
def test_where_a_classifier_has_to_learn_anew_its_copy_does_so_too(tmp_path):
    class Counting(deepbore.KernelPLS):
        fits = 0

        def fit(self, batch):
            Counting.fits += 1
            return super().fit(batch)

    path = tmp_path / "run.jsonl"
    told(Study(PLANE, n_initial=5, journal=path), 7).close()
    snapshot_path(path).unlink()
    loaded = Study.load(path, classifier=Counting())
    for epochs in (1 + WARMUP_EPOCHS, 1):
        Counting.fits = 0
        assert loaded.recommended is not None
        assert Counting.fits == epochs
        told(loaded, 1)  # the classifier itself has learned anew


# --- which trials count ----------------------------------------------------------------------------------------------


def test_while_there_is_nothing_to_learn_it_is_the_best_trial():
    study = Study(PLANE, n_initial=6)
    assert study.recommended is None
    assert Result.of(study).recommended is None
    (trial,) = study.ask()
    assert study.recommended is None
    study.tell(trial, failed=True)
    assert study.recommended is None
    told(study, 3)
    assert study.recommended == study.best_trial
    constant = told(Study(PLANE, n_initial=3), 5, lambda params: 1.0)
    assert constant.recommended == constant.best_trial == constant.trials[0]


@pytest.mark.slow
def test_failed_infeasible_pending_and_foreign_trials_are_not_recommended():
    study = Study(PLANE, n_initial=5)
    told(study, 12, lambda p: Outcome(bowl(p), constraints=[p["x"] - 0.1]) if p["y"] > -0.1 else float("nan"))
    x = np.linspace(-1, 1, 30)
    study.add({"x": x, "y": x}, x**2 - 100, task="another")
    study.ask(3)
    recommended = study.recommended
    assert recommended.value is not None
    assert recommended.task is None
    assert recommended.params["x"] <= 0.1
    assert recommended.params["y"] > -0.1
    allowed = [trial.id for trial in study.trials if trial.value is not None and trial.task is None]
    assert set(considered_rows(study.observations)) < set(allowed)


def test_trials_of_an_equal_configuration_are_one():
    study = Study(LEVELS, n_initial=4)
    values = {"a": [0.0, 5, 5, 6, 5, 6], "b": [2, 1, 2, 1, 2, 1, 1], "c": [9.0, 8]}
    for c, each in values.items():
        study.add({"c": [c] * len(each)}, each)
    assert study.best_trial.params == {"c": "a"}
    assert study.recommended.params == {"c": "b"}
    assert study.recommended.value == 1
    assert study.recommended.id == 7  # the first of its best
    assert considered_rows(study.observations) == [7, 0, 14]  # by their means: 1.4, 4.5 and 8.5


def test_of_equal_expectations_the_best_value_decides_and_then_the_first():
    class Indifferent(deepbore.RandomForest):
        def predict(self, x):
            return super().predict(x) * 0 + 0.5

    study = Study(PLANE, n_initial=3, classifier=Indifferent(trees=2))
    study.add({"x": [0.1, 0.2, 0.3, 0.4], "y": [0.0, 0.0, 0.0, 0.0]}, [2.0, 1.0, 1.0, 3.0])
    assert study.recommended == study.best_trial == study.trials[1]


def test_of_many_trials_the_best_values_and_the_newest_are_considered():
    study = Study(PLANE)
    values = np.arange(100.0)
    study.add({"x": np.linspace(-1, 1, 100), "y": np.zeros(100)}, values)
    assert considered_rows(study.observations, 10) == [*range(10), *range(90, 100)]
    assert len(considered_rows(study.observations)) == 100


# --- what it can't do ------------------------------------------------------------------------------------------------


def test_several_objectives_have_none():
    class Both(labels.Labelling):
        objectives = 2

        def __call__(self, observations):
            return labels.Labels.none(observations)

    study = Study(PLANE, directions=["minimize", "maximize"], labels=Both())
    with pytest.raises(SettingError, match="no single best"):
        _ = study.recommended


def test_a_classifier_that_can_not_be_copied_is_named():
    class Locked(deepbore.KernelPLS):
        def __deepcopy__(self, memo):
            raise TypeError("cannot pickle '_thread.lock' object")

    study = told(Study(PLANE, n_initial=3, classifier=Locked()), 4)
    with pytest.raises(SettingError, match="Locked"):
        _ = study.recommended
    told(study, 1)


# --- on the command line ---------------------------------------------------------------------------------------------


def test_a_summary_shows_it_where_it_is_another_than_the_best():
    study = Study(LEVELS, n_initial=4)
    study.add({"c": ["a", "a", "a", "b", "b"]}, [0.0, 6, 5, 2, 1])
    best = ["best value 0 in trial 0 (5 trials)", "  c: a"]
    assert (
        summary(study.observations.ledger).splitlines()
        == summary(study.observations.ledger, recommended=study.best_trial).splitlines()
        == best
    )
    shown = summary(study.observations.ledger, recommended=study.trials[4]).splitlines()
    assert shown == [*best, "recommended if values are noisy: trial 4, value 1", "  c: b"]


def test_before_the_end_of_the_design_a_configuration_is_shown_by_its_best_value():
    study = Study(LEVELS)
    study.add({"c": ["a", "a", "b"]}, [3.0, 1.0, 5.0])
    assert (study.recommended.id, study.recommended.value) == (1, 1.0)


@pytest.mark.slow
def test_a_look_leaves_what_labels_remember():
    weights = []
    for looks in (False, True):
        settings = {"labels": EmphasiseChanges(ThresholdLabels()), "classifier": deepbore.MLPClassifier(training=QUICK)}
        study = told(Study(PLANE, seed=0, n_initial=3, **settings), 6)
        if looks:
            study.fit(1)
        study.ask()
        weights.append(study._state.data.latest.weight.tolist())
    assert weights[0][-1] == 2  # what was told last is new
    assert weights[1] == weights[0]


# regression: this was wrong once
def test_a_recommendation_hears_of_comparisons_between_trials_that_were_compared_before():
    study = Study(LINE, seed=0, preferences=True, n_initial=4)
    trials = study.ask(4)
    for i, one in enumerate(trials):
        for other in trials[i + 1 :]:
            study.prefer(one, other)
    assert study.recommended.id == 0
    for _ in range(20):
        for other in trials[:3]:
            study.prefer(trials[3], other)
    assert study.recommended.id == study.best_trial.id == 3
