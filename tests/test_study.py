"""Ask and tell, minimize and maximize, journals: the public interface."""

import copy
import math
import pickle
import warnings

import numpy as np
import pytest
import torch

import deepbore
import deepbore.acquisition
from deepbore import Categorical, Condition, Integer, Ordinal, Real, SearchSpace, Study, ThresholdLabels
from deepbore.errors import (
    JournalError,
    PointError,
    SettingError,
    SpaceExhausted,
    TrialError,
    ValueTypeError,
)
from deepbore.testing import TOY_SPACES

MIXED = TOY_SPACES["mixed"]
PLANE = SearchSpace({"x": Real(-1, 1), "y": Real(-1, 1)})


def bowl(params):
    return (params["x"] - 0.3) ** 2 + (params["y"] + 0.2) ** 2


def mixed(params):
    loss = abs(math.log10(params["lr"]) + 2.5) + abs(math.log2(params["units"]) - 6) / 4
    return loss + (0.5 if params["optimizer"] == "adam" else abs(params["momentum"] - 0.9))


@pytest.mark.slow
@pytest.mark.parametrize(("objective", "space"), [(bowl, PLANE), (mixed, MIXED)])
def test_minimize_beats_random_search_many_times_over(objective, space):
    random = [objective(params) for params in space.decode(space.sample(1000, torch.Generator().manual_seed(1)))]
    result = deepbore.minimize(objective, space, n_trials=45, seed=0)
    assert len(result.values) == 45
    assert result.best_value == min(result.values) == objective(result.best_params)
    assert result.best_value < np.quantile(random, 0.005)


@pytest.mark.slow
def test_maximize_is_minimize_the_other_way_up():
    up = deepbore.maximize(lambda p: -bowl(p), PLANE, n_trials=20, seed=3)
    down = deepbore.minimize(bowl, PLANE, n_trials=20, seed=3)
    assert np.array_equal(up.values, -down.values)
    assert up.best_params == down.best_params
    assert up.best_value == -down.best_value


@pytest.mark.slow
def test_the_same_seed_gives_the_same_run_and_leaves_global_streams_alone():
    before = torch.random.get_rng_state()
    runs = [deepbore.minimize(mixed, MIXED, n_trials=16, seed=seed).values for seed in (0, 0, 1)]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.slow
def test_ask_and_tell_is_the_same_run_as_minimize():
    study = Study(PLANE, seed=5)
    for _ in range(18):
        (trial,) = study.ask()
        study.tell(trial, bowl(trial.params))
    assert np.array_equal(study.result.values, deepbore.minimize(bowl, PLANE, n_trials=18, seed=5).values)


def test_batches_are_distinct_and_told_in_any_order():
    study = Study(MIXED, seed=0, n_initial=6)
    for _ in range(4):
        trials = study.ask(4)
        assert len({str(trial.params) for trial in study.trials}) == len(study.trials)
        for trial in reversed(trials):
            study.tell(trial.id, mixed(trial.params))
    assert [trial.id for trial in study.trials] == list(range(16))
    assert study.best_trial.value == min(trial.value for trial in study.trials)


@pytest.mark.slow
def test_fit_trains_on_the_trials_so_far_and_proposes_nothing(tmp_path):
    path = tmp_path / "run.jsonl"
    deepbore.minimize(bowl, PLANE, n_trials=20, seed=0, journal=path)
    study, kept = Study.load(path), path.read_text()
    assert not study.classifier.ready
    classifier = study.fit()
    assert classifier is study.classifier
    assert classifier.ready
    best, corner = classifier.probability(PLANE.encode([study.best_trial.params, {"x": -1, "y": 1}]))
    assert best > 0.9
    assert corner < 0.1
    assert len(study.trials) == 20
    assert path.read_text() == kept
    again = Study.load(path).fit()
    assert torch.equal(classifier.probability(study.observations.points), again.probability(study.observations.points))


def test_fit_leaves_the_runs_stream_where_it_is():
    class First(deepbore.acquisition.Acquisition):
        def __call__(self, posterior, best):
            return posterior.mean * 0  # so that only the stream decides what is proposed

    def proposed(look):
        network = deepbore.MLPClassifier(training=deepbore.Training(steps=3, warm_start=False))  # draws weights
        study = Study(PLANE, n_initial=4, classifier=network, acquisition=First(), candidates=deepbore.RandomSearch(50))
        for q in (4, 1):
            for trial in study.ask(q):
                study.tell(trial, bowl(trial.params))
        if look:
            study.fit(epochs=2)
        return study.ask()[0].params

    assert proposed(look=True) == proposed(look=False)


def test_fit_without_any_value_is_not_ready():
    assert not Study(PLANE).fit(epochs=1).ready
    with pytest.raises(SettingError, match="epochs=0"):
        Study(PLANE).fit(epochs=0)


@pytest.mark.slow
def test_pending_trials_are_not_proposed_again():
    space = SearchSpace({"k": Ordinal(list(range(30)))})
    study = Study(space, seed=0, n_initial=5)
    for trial in study.ask(5):
        study.tell(trial, abs(trial.params["k"] - 20))
    asked = [study.ask()[0].params["k"] for _ in range(20)]
    assert len(set(asked)) == 20


@pytest.mark.slow
def test_failures_are_recorded_and_their_region_is_left():
    def crashes(params):
        if params["x"] < 0:
            raise RuntimeError("simulator diverged")
        return bowl(params) if params["y"] < 0.8 else float("nan")

    with pytest.warns(RuntimeWarning, match="simulator diverged"):
        result = deepbore.minimize(crashes, PLANE, n_trials=40, seed=0)
    failed = np.isnan(result.values)
    assert 0 < failed.sum() < 12
    assert failed[20:].sum() < failed[:20].sum()
    assert result.best_value < 0.02


def test_a_run_in_which_everything_fails_explores_to_the_end():
    with pytest.warns(RuntimeWarning, match="nan"):
        result = deepbore.minimize(lambda params: math.nan, PLANE, n_trials=14, seed=0, max_failures=None)
    assert np.isnan(result.values).all()
    assert result.best_params is None
    assert math.isnan(result.best_value)
    assert len({str(trial.params) for trial in result.study.trials}) == 14


def test_a_constant_objective_is_explored():
    result = deepbore.minimize(lambda params: 1.0, PLANE, n_trials=20, seed=0)
    points = np.array([list(trial.params.values()) for trial in result.study.trials])
    assert (points.std(0) > 0.4).all()


def test_a_finite_space_is_exhausted_and_says_so():
    space = SearchSpace({"k": Ordinal([1, 2, 3]), "c": Categorical(["a", "b", "c", "d"])})
    result = deepbore.minimize(lambda p: p["k"] + ord(p["c"]), space, n_trials=50, seed=0)
    assert len(result.values) == 12
    assert result.best_params == {"k": 1, "c": "a"}
    with pytest.raises(SpaceExhausted, match="all 12 are evaluated"):
        result.study.ask()


@pytest.mark.slow
def test_earlier_results_are_learned_from_and_not_repeated():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, (2, 200))
    study = Study(PLANE, seed=0)
    study.add({"x": x, "y": y}, (x - 0.3) ** 2 + (y + 0.2) ** 2)
    best = study.best_trial.value
    for _ in range(5):
        (trial,) = study.ask()
        study.tell(trial, bowl(trial.params))
    assert study.best_trial.value < best


def test_data_frames_go_in_and_out():
    pandas = pytest.importorskip("pandas")
    study = Study(MIXED, direction="maximize", seed=0)
    columns = {"lr": [0.1, 0.01], "units": [8, 16], "optimizer": ["adam", "sgd"], "momentum": [None, 0.5]}
    study.add(pandas.DataFrame({**columns, "nesterov": [None, True]}), pandas.Series([1.0, 2.0]))
    (trial,) = study.ask()
    frame = study.to_frame()
    assert list(frame.columns) == ["id", *MIXED.names, "value", "status"]
    assert frame.status.tolist() == ["complete", "complete", "pending"]
    assert frame.value.tolist()[:2] == [1.0, 2.0]
    assert frame.lr[2] == trial.params["lr"]


def test_the_console_stays_quiet(capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        deepbore.minimize(bowl, PLANE, n_trials=12, seed=0)
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


@pytest.mark.slow
def test_every_part_can_be_exchanged():
    study = Study(
        PLANE,
        seed=0,
        classifier=deepbore.MLPClassifier(),
        acquisition=deepbore.ClassProbability(),
        candidates=deepbore.EpsilonGreedy(deepbore.MultiStartLBFGS(restarts=3), epsilon=0.1),
        labels=ThresholdLabels(1 / 3),
        n_initial=5,
    )
    assert study.optimize(bowl, 25).best_value < 0.05


# --- journals --------------------------------------------------------------------------------------------------------


def test_a_study_is_loaded_from_its_journal(tmp_path):
    path = tmp_path / "run.jsonl"
    study = Study(MIXED, direction="maximize", seed=4, journal=path)
    first, second, third = study.ask(3)
    study.tell(second, 0.5)
    study.tell(first, failed=True)
    study.add({"lr": [0.1], "units": [8], "optimizer": ["adam"], "momentum": [None], "nesterov": [None]}, [0.7])
    loaded = Study.load(path)
    assert loaded.trials == study.trials
    study.close()
    assert loaded.best_trial.value == 0.7
    loaded.tell(third.id, 0.9)
    assert loaded.ask()[0].params == MIXED.decode(MIXED.sobol(1, seed=4, skip=4))[0]  # the design goes on
    assert Study.load(path).best_trial.value == 0.9


def test_a_journal_is_not_written_over(tmp_path):
    Study(PLANE, journal=tmp_path / "run.jsonl")
    with pytest.raises(JournalError, match=r"Study\.load"):
        Study(PLANE, journal=tmp_path / "run.jsonl")


def test_events_that_do_not_fit_are_refused(tmp_path):
    path = tmp_path / "run.jsonl"
    Study(PLANE, journal=path)
    with path.open("a") as file:
        file.write('{"event": "asked", "trial": 7, "params": {"x": 0, "y": 0}}\n')
    with pytest.raises(JournalError, match="does not fit"):
        Study.load(path)


# --- bad input -------------------------------------------------------------------------------------------------------


def test_bad_tells_lose_nothing():
    study = Study(PLANE, seed=0)
    trials = study.ask(3)
    study.tell(trials[0], 1.0)
    with pytest.raises(TrialError, match="told once"):
        study.tell(trials[0], 2.0)
    with pytest.raises(ValueTypeError, match="number"):
        study.tell(trials[1], "high")
    with pytest.raises(TrialError, match=r"0 \.\.\. 2 exist, but got 9"):
        study.tell(9, 1.0)
    with pytest.raises(PointError, match="'z'"):
        study.add({"x": [0], "y": [0], "z": [0]}, [1])
    study.tell(trials[1], float("-inf"))
    assert [trial.status.name for trial in study.trials] == ["COMPLETE", "FAILED", "PENDING"]
    assert study.best_trial.value == 1.0


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Study(PLANE, gamma=1.5), "0 < gamma < 1 must hold, but got gamma=1.5"),
        (lambda: Study(PLANE, gamma=0.2, labels=ThresholdLabels()), "not both"),
        (lambda: Study(PLANE, direction="up"), "direction"),
        (lambda: Study(PLANE, n_initial=0), "n_initial >= 1"),
        (lambda: Study(PLANE).ask(0), "q >= 1"),
        (lambda: deepbore.UpperConfidenceBound(-1), "kappa >= 0"),
        (lambda: deepbore.QuantileBound(1.5), "level <= 1"),
        (lambda: deepbore.RandomSearch(0), "samples >= 1"),
        (lambda: deepbore.EpsilonGreedy(deepbore.RandomSearch(), 2), "epsilon <= 1"),
    ],
)
def test_bad_settings_are_refused(make, says):
    with pytest.raises(SettingError, match=says):
        make()


def test_gradient_candidates_on_a_discrete_space_are_refused_with_the_way_out():
    space = SearchSpace({"k": Integer(1, 9), "x": Real(0, 1, when=Condition("k", [1, 2]))})
    with pytest.raises(SettingError, match="Use LocalSearch, DifferentialEvolution or RandomSearch"):
        Study(space, candidates=deepbore.MultiStartLBFGS(), n_initial=2)


def test_a_study_with_a_journal_is_not_copied(tmp_path):
    study = Study(PLANE, journal=tmp_path / "run.jsonl")
    for copied in (copy.deepcopy, pickle.dumps):
        with pytest.raises(JournalError, match=r"can't be copied or pickled, as .*run\.jsonl has one writer"):
            copied(study)
    assert copy.deepcopy(Study(PLANE)).ask()
