"""Ask and tell, notes, journals: the public interface."""

import copy
import json
import math
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

import deepbore
import deepbore.acquisition
from deepbore import (
    Budget,
    Categorical,
    Condition,
    HyperDeepEnsemble,
    Integer,
    KernelPLS,
    LogExpectedImprovement,
    Ordinal,
    Outcome,
    Real,
    SearchSpace,
    Study,
    ThresholdLabels,
    minimize,
)
from deepbore.errors import (
    DeprecatedUse,
    JournalError,
    PointError,
    SettingError,
    SpaceExhausted,
    TrialError,
    ValueTypeError,
)
from deepbore.labels import ObjectiveLabels
from deepbore.study.study import FORMER, Result
from deepbore.testing import TOY_SPACES
from objectives import bowl
from plane import DESIGN, LINE, PLANE
from processes import ENV


def go_on(study, n):
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, bowl(trial.params))


class Failing(LogExpectedImprovement):
    """Raises an error whenever one is armed."""

    def __init__(self):
        self.armed = None

    def __call__(self, posterior, best):
        if self.armed is not None:
            error, self.armed = self.armed, None
            raise error
        return super().__call__(posterior, best)


@pytest.mark.slow
@pytest.mark.parametrize("call", ["ask", "optimize", "minimize"])
def test_ctrl_c_reaches_the_caller_as_keyboard_interrupt(call):
    def pressed(params):
        if len(seen) == 7:
            signal.raise_signal(signal.SIGINT)
        seen.append(params)
        return bowl(params)

    seen: list[dict] = []
    acquisition = Failing()
    study = Study(PLANE, n_initial=3, acquisition=acquisition)
    go_on(study, 3)
    if call == "ask":
        acquisition.armed = KeyboardInterrupt()
    calls = {
        "ask": study.ask,
        "optimize": lambda: study.optimize(pressed, 20),
        "minimize": lambda: deepbore.minimize(pressed, PLANE, n_trials=20, n_initial=3),
    }
    with pytest.raises(KeyboardInterrupt):
        calls[call]()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    go_on(study, 2)  # what was told stays, and it goes on


@pytest.mark.slow
def test_threads_share_a_study_one_call_at_a_time(tmp_path):
    study = Study(PLANE, n_initial=6, journal=tmp_path / "run.jsonl")
    begin = threading.Barrier(4)

    def work():
        begin.wait()
        for _ in range(4):
            (trial,) = study.ask()
            study.tell(trial, bowl(trial.params))

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(work) for _ in range(4)]:
            future.result()
    assert study.observations.ledger.statistics.n_complete == len({str(trial.params) for trial in study.trials}) == 16
    assert Study.load(tmp_path / "run.jsonl").trials == study.trials


def test_a_study_runs_within_a_thread():
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(deepbore.minimize, bowl, PLANE, 12).result()
    assert len(result.values) == 12


def test_a_trial_of_another_study_is_refused():
    one, other = Study(PLANE, seed=0), Study(PLANE, seed=1)
    one.ask()
    (foreign,) = other.ask()
    with pytest.raises(TrialError, match="told to the run that gave it"):
        one.tell(foreign, -123)
    assert one.best_trial is None


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Study(PLANE).ask(1.5), "whole number >= 1"),
        (lambda: Study(PLANE).ask(True), "whole number >= 1"),
        (lambda: Study(PLANE, seed=None), "seed must be a whole number"),
        (lambda: Study(PLANE, seed=2**63), r"-2\*\*63 <= seed < 2\*\*63, but got"),
        (lambda: Study(Real(0, 1)), r"Give SearchSpace\("),
        (lambda: Study(PLANE, classifier=KernelPLS), r"Give KernelPLS\(\)"),
        (lambda: Study(PLANE, labels=KernelPLS()), "labels must be a Labelling"),
        (lambda: Study(PLANE, acquisition="ei"), "acquisition must be an Acquisition"),
        (
            lambda: Study(PLANE, directions=["minimize", "maximize"], labels=deepbore.ValueGradedLabels()),
            "grade several",
        ),
        (lambda: Study(PLANE, direction="minimize", directions=["minimize"]), "not both"),
        (lambda: Study(PLANE, device="tpu9"), "device"),
        (lambda: Study(PLANE).optimize(bowl, -1), "n_trials >= 0"),
        (lambda: Study(PLANE).optimize(bowl, 2.5), "whole number"),
        (lambda: Study(PLANE, classifier=deepbore.MLPClassifier(), acquisition=deepbore.UpperConfidenceBound()), "std"),
        (lambda: Study(PLANE, acquisition=deepbore.PosteriorSample()), "members"),
        (lambda: Study(PLANE, classifier=deepbore.GPClassifier(), acquisition=LogExpectedImprovement()), "probit"),
        (lambda: Study(PLANE, classifier=deepbore.XGBoost(), candidates=deepbore.ThompsonBatch()), "XGBoost"),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_is_evaluated(make, says):
    with pytest.raises(SettingError, match=says):
        make()


def test_numpys_numbers_are_welcome():
    study = Study(PLANE, seed=np.int64(3), n_initial=np.int32(4))
    assert len(study.ask(np.int64(2))) == 2
    assert study.ask()[0].params == Study(PLANE, seed=3, n_initial=4).ask(3)[2].params


def test_numbers_of_numpy_are_numbers():
    assert ObjectiveLabels(2, reference=np.array([1, 2])).reference == (1.0, 2.0)
    assert ObjectiveLabels(2, reference=np.array([1, 2], dtype=np.float32)).reference == (1.0, 2.0)
    HyperDeepEnsemble(width=(np.int64(8), np.int64(32)))
    with pytest.raises(SettingError, match="2 finite numbers"):
        ObjectiveLabels(2, reference=[True, 2])


def test_notes_join_what_a_trial_has_and_survive(tmp_path):
    path = tmp_path / "run.jsonl"
    study = Study(PLANE, journal=path, n_initial=DESIGN)
    first, second = study.ask(2)
    study.annotate(first, {"host": "node7", "n": 1})
    study.tell(first, Outcome(0.5, attributes={"epoch": 3}))
    study.annotate(first.id, {"n": 2, "curve": [1.0, float("nan")], "of": {"depth": 2}})
    study.annotate(second, {})
    study.add({"x": 0.5, "y": 0.5}, 1.0)
    study.annotate(2, {"from": "last year"})
    noted = {"host": "node7", "n": 2, "epoch": 3, "curve": [1.0, None], "of": {"depth": 2}}
    study.close()
    for each in (study, Study.load(path)):
        assert [trial.attributes for trial in each.trials] == [noted, {}, {"from": "last year"}]
    events = [json.loads(line)["event"] for line in path.read_text().splitlines()]
    assert events == ["created", "asked", "asked", "annotated", "told", "annotated", "added", "annotated"]
    assert study.to_frame()["attribute_host"].tolist()[0] == "node7"
    from deepbore.data.replay import read_record

    assert [trial.attributes for trial in read_record(path).trials] == [noted, {}, {"from": "last year"}]


@pytest.mark.parametrize("bad", [{"x": object()}, {1: 2}, [("a", 1)], {"f": len}, "note", None])
def test_notes_that_are_no_json_are_refused_and_change_nothing(tmp_path, bad):
    study = Study(PLANE, journal=tmp_path / "run.jsonl")
    (trial,) = study.ask()
    kept = (tmp_path / "run.jsonl").read_text()
    with pytest.raises(ValueTypeError, match="plain JSON data by name"):
        study.annotate(trial, bad)
    with pytest.raises(TrialError, match="exist"):
        study.annotate(7, {"a": 1})
    assert study.trials[0].attributes == {}
    assert (tmp_path / "run.jsonl").read_text() == kept


@pytest.mark.slow
def test_threads_that_ask_and_tell_never_get_the_same_trial(tmp_path):
    space = SearchSpace({"k": Ordinal(list(range(500)))})
    study = Study(space, n_initial=1000, journal=tmp_path / "run.jsonl")
    begin, given = threading.Barrier(8), []

    def work(q):
        begin.wait()
        for _ in range(8):
            trials = study.ask(q)
            given.extend(trials)
            for trial in trials:
                study.annotate(trial, {"thread": q})
                study.tell(trial, float(trial.params["k"]))
            study.add({"k": 0}, 1.0, task="old")

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(work, 1 + k % 3) for k in range(8)]:
            future.result()
    assert len(given) == len({trial.id for trial in given}) == len({trial.params["k"] for trial in given})
    own = [trial for trial in study.trials if trial.task is None]
    assert sorted(trial.id for trial in own) == sorted(trial.id for trial in given)
    assert all(trial.value == trial.params["k"] for trial in own)
    study.close()
    assert Study.load(tmp_path / "run.jsonl").trials == study.trials


MIXED = TOY_SPACES["mixed"]


def mixed(params):
    loss = abs(math.log10(params["lr"]) + 2.5) + abs(math.log2(params["units"]) - 6) / 4
    return loss + (0.5 if params["optimizer"] == "adam" else abs(params["momentum"] - 0.9))


@pytest.mark.slow
@pytest.mark.parametrize(("objective", "space"), [(bowl, PLANE), (mixed, MIXED)])
def test_minimize_beats_random_search_many_times_over(objective, space):
    random = [objective(params) for params in space.decode(space.points.sample(1000, torch.Generator().manual_seed(1)))]
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
    assert np.array_equal(Result.of(study).values, deepbore.minimize(bowl, PLANE, n_trials=18, seed=5).values)


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
    assert result.best_trial is None
    with pytest.raises(deepbore.errors.NoBestTrial, match="none of 14 trials has a feasible value"):
        _ = result.best_params
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
    assert loaded.ask()[0].params == MIXED.decode(MIXED.points.sobol(1, seed=4, skip=4))[0]  # the design goes on
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


# regression: numbers of NumPy's and torch's
def test_c5_scalars_arrays_and_seeds_of_numpy_and_torch_are_welcome():
    study = Study(PLANE, seed=np.uint32(3), n_initial=np.int64(4), gamma=np.float64(0.5))
    study.enqueue({"x": np.float32(0.5), "y": np.int8(0)})
    values = [np.float32(0.5), np.array(0.25), torch.tensor(1.0), np.array([2.0]), np.int64(3), True + 1]
    for value in values:
        study.tell(study.ask(np.int32(1))[0], value)
    assert [trial.value for trial in study.trials] == [0.5, 0.25, 1.0, 2.0, 3.0, 2.0]
    study.add({"x": np.linspace(0, 1, 3), "y": torch.zeros(3)}, np.arange(3))
    study.add({"x": np.float64(0.1), "y": np.array(0.2)}, np.float64(4))
    assert study.observations.ledger.statistics.n_complete == 10
    result = minimize(
        lambda params: np.float32(bowl(params)), PLANE, np.int64(3), timeout=np.float64(60), n_initial=DESIGN
    )
    assert len(result.values) == 3
    assert type(result.best_value) is float


# regression: wrong parts and numbers are found before the design
@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"classifier": KernelPLS}, r"Give KernelPLS\(\)"),
        ({"classifier": deepbore.ThresholdLabels()}, "classifier must be a Classifier"),
        ({"labels": deepbore.LocalSearch()}, "labels must be a Labelling"),
        ({"candidates": "local"}, "candidates must be a Candidates"),
        ({"acquisition": deepbore.UpperConfidenceBound}, r"Give UpperConfidenceBound\(\)"),
        ({"n_trials": -1}, "n_trials >= 1"),
        ({"n_trials": 0}, "n_trials >= 1"),
        ({"n_trials": 2.5}, "n_trials must be a whole number"),
        ({"n_trials": "10"}, "n_trials must be a whole number"),
        ({"n_trials": True}, "n_trials must be a whole number"),
    ],
)
def test_c6_c7_are_found_before_anything_is_evaluated(settings, says):
    calls = []
    given = {"n_trials": 5, **settings}
    with pytest.raises(SettingError, match=says):
        minimize(lambda params: calls.append(1) or 1.0, PLANE, **given)
    assert not calls


# regression: typed keywords
RIGHT = """
import deepbore
from deepbore import NoImprovement, Study, TargetReached, maximize, minimize


def f(params: dict[str, float]) -> float:
    return params["x"] ** 2


def look(study: Study, trial: deepbore.Trial) -> None:
    study.annotate(trial, {"best": study.best_trial.value if study.best_trial else None})
    study.stop()


space = deepbore.SearchSpace({"x": deepbore.Real(0, 1)})
rules = [NoImprovement(trials=20), TargetReached(0.1)]
result = minimize(f, space, 5, seed=0, timeout=60, stop_when=rules, callbacks=[look], progress=False, max_failures=3)
maximize(f, space, None, timeout=1.5, stop_when=TargetReached(1), journal="run.jsonl", if_exists="load")
value: float = result.best_value
study = deepbore.Study(space, direction="maximize", classifier=deepbore.DeepPLS(), if_exists="error")
study.optimize(f, 5, timeout=60, stop_when=deepbore.ExpectedImprovementBelow(share=0.01), callbacks=(look,))
for trial in study.ask(2):
    study.tell(trial, 0.5)
trace: str | None = study.trials[0].traceback
"""

WRONG = """
minimize(f, space, 5, sede=0)
deepbore.minimise
minimize(f, space, 5, if_exists="append")
minimize(f, space, 5, callbacks=[f])
minimize(f, space, "5")
Study(space, direction="up")
study.optimize(f, 5, time_out=3)
study.optimize(f, 5, stop_when=NoImprovement)
NoImprovement(20, 3)
study.annotate(0, "note")
Study.load("run.jsonl", clasifier=None)
"""


@pytest.mark.slow
def test_c8_mypy_finds_what_is_wrong_and_only_that(tmp_path):
    right, wrong = tmp_path / "right_code.py", tmp_path / "wrong_code.py"
    right.write_text(RIGHT)
    wrong.write_text(RIGHT + WRONG)
    first = len(RIGHT.splitlines()) + 2
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", "--follow-imports=silent"]
    done = subprocess.run([*command, right, wrong], cwd=tmp_path, env=ENV, capture_output=True, text=True, check=False)
    said = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert [line for line in said if "right_code.py" in line] == []
    found = {int(line.split(":")[1]) for line in said}
    assert found == set(range(first, first + len(WRONG.strip().splitlines()))), done.stdout


def test_c8_a_misspelt_keyword_or_name_is_an_error_that_names_it():
    with pytest.raises(TypeError, match=r"minimize\(\) got an unexpected keyword argument 'sede'"):
        minimize(bowl, PLANE, 5, sede=0)
    with pytest.raises(TypeError, match="'time_out'"):
        Study(PLANE).optimize(bowl, 5, time_out=3)


# regression: a misspelt name
@pytest.mark.parametrize(
    ("name", "meant"), [("KernelPSL", "KernelPLS"), ("minimise", "minimize"), ("Integr", "Integer")]
)
def test_c12_a_misspelt_name_says_what_was_meant(name, meant):
    with pytest.raises(AttributeError, match=f"Did you mean '{meant}'"):
        getattr(deepbore, name)


def test_c12_a_name_like_no_other_is_an_error_as_ever():
    with pytest.raises(AttributeError, match="no attribute 'zebra'"):
        _ = deepbore.zebra


# regression: a script that is run twice
TWICE = """
import deepbore
space = deepbore.SearchSpace({"x": deepbore.Real(-1, 1)})
study = deepbore.Study(space, seed=0, journal="run.jsonl", if_exists="load", n_initial=50)
while len(study.trials) < 4:
    (trial,) = study.ask()
    study.tell(trial, trial.params["x"] ** 2)
result = deepbore.minimize(lambda p: p["x"] ** 2, space, 3, journal="other.jsonl", if_exists="load", n_initial=50)
print(len(study.trials), len(result.values))
"""


def test_c13_a_script_may_be_run_twice(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    kept = []
    for _ in range(2):
        names: dict = {}
        exec(TWICE, names)
        names["study"].close()
        names["result"].study.close()
        kept.append([(tmp_path / name).read_bytes() for name in ("run.jsonl", "other.jsonl")])
    assert capsys.readouterr().out == "4 3\n4 3\n"
    assert kept[0] == kept[1]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"space": SearchSpace({"x": Real(-1, 2), "y": Real(-1, 1)})}, r"'x' in the space is .*2.*, was .*1"),
        ({"space": SearchSpace({"x": Real(-1, 1)})}, "'y' is no longer in the space"),
        ({"space": SearchSpace({**PLANE.parameters, "z": Real(0, 1)})}, "'z' is new in the space"),
        ({"space": SearchSpace({"y": Real(-1, 1), "x": Real(-1, 1)})}, "the order of the space is"),
        ({"direction": "maximize"}, "direction is maximize, was minimize"),
        ({"seed": 4}, "seed is 4, was 3"),
        ({"classifier": deepbore.DeepPLS()}, r"classifier is DeepPLS\(\), was KernelPLS\(rows=99\)"),
        ({"classifier": None}, r"classifier is not given, was KernelPLS\(rows=99\)"),
        ({"n_initial": 9}, "n_initial is 9, was 5"),
    ],
)
def test_c13_another_run_than_the_journals_is_refused_with_what_differs(tmp_path, settings, says):
    path = tmp_path / "run.jsonl"
    own = {"space": PLANE, "seed": 3, "journal": path, "n_initial": 5, "classifier": KernelPLS(rows=99)}
    Study(**own).close()
    same = Study(**{**own, "if_exists": "load", "classifier": KernelPLS(rows=99)})
    same.close()
    with pytest.raises(JournalError, match=says):
        Study(**{**own, "if_exists": "load", **settings})
    with pytest.raises(JournalError, match="if_exists='load'"):
        Study(**own)


# regression: another study's trial
def test_a13_another_studys_trial_is_refused_by_tell_and_annotate():
    one, other = Study(PLANE, seed=0), Study(PLANE, seed=1)
    one.ask()
    (foreign,) = other.ask()
    for call in (lambda: one.tell(foreign, -123), lambda: one.annotate(foreign, {"a": 1})):
        with pytest.raises(TrialError, match="told to the run that gave it"):
            call()
    assert one.trials[0].value is None
    assert one.trials[0].attributes == {}


PROGRAM = """
import deepbore as db
space = db.SearchSpace({"x": db.Real(0, 1), "y": db.Real(0, 1)})
study = db.Study(space, n_initial=3, seed=0, SETTINGS)
for _ in range(6):
    (trial,) = study.ask()
    study.tell(trial, VALUE)
"""


# regression: each of these was wrong once
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


NINE_EPOCHS = Budget("epochs", 1, 9)


def test_a_report_is_of_a_trial_of_this_study():
    study, other = Study(LINE, budget=NINE_EPOCHS, seed=0), Study(LINE, budget=NINE_EPOCHS, seed=5)
    (trial,), _ = other.ask(), study.ask()
    with pytest.raises(TrialError, match="told to the run that gave it"):
        study.report(trial, 1.0, step=1)


def test_of_three_reports_the_best_goes_on_with_the_next_budget():
    study = Study(LINE, budget=NINE_EPOCHS, n_initial=10, seed=0)
    first, second, third = study.ask(3)
    assert not study.report(first, 2.0, step=1)
    assert not study.report(second, 3.0, step=1)
    assert study.report(third, 1.0, step=1)
    promoted = study.trials[-1]
    assert (promoted.resume_from.id, promoted.budget) == (third.id, 3)
    assert study.report(third, 0.9, step=2)  # below its budget nothing is decided
    assert not study.report(third, 0.8, step=3)
    assert [trial.value for trial in study.trials] == [2.0, 3.0, 1.0, 0.8]


@pytest.mark.parametrize("name", FORMER)
def test_a_name_that_few_use_has_moved_and_warns(name):
    study = Study(LINE, seed=3)
    with pytest.warns(DeprecatedUse, match=f"study.{name} is now "):
        getattr(study, name)


def test_names_that_many_use_are_at_the_study_too():
    study = Study(LINE, seed=3)
    one, other = study.ask(2)
    study.tell(one, 1.0)
    assert study.observations is study.state.observations
    assert study.space is study.state.space
    assert study.classifier is study.state.classifier
    assert [trial.id for trial in study.pending] == [trial.id for trial in study.trials.pending] == [other.id]
    assert study.pareto_front == study.trials.front == [study.best_trial]
    assert study.suspicious == study.trials.suspicious == []
    assert study.to_frame().equals(study.trials.to_frame())
    assert study.trials[:1] == [study.best_trial]


def test_a_csv_file_is_added_as_results_in_memory_are(tmp_path):
    (tmp_path / "results.csv").write_text("x,loss\n0.25,1\n0.5,\n")
    study = Study(LINE)
    study.add(tmp_path / "results.csv", "loss")
    study.add_csv(str(tmp_path / "results.csv"), value="loss")
    assert [trial.value for trial in study.trials] == [1, None, 1, None]


@pytest.mark.parametrize("beside", [{"noise": 0.1}, {"values": [1.0]}, {"budgets": [3]}])
def test_what_stands_in_a_csv_file_is_not_given_beside_it(tmp_path, beside):
    (tmp_path / "results.csv").write_text("x,value\n0.25,1\n")
    study = Study(LINE)
    with pytest.raises(ValueTypeError, match=f"in columns, but got {next(iter(beside))}="):
        study.add(tmp_path / "results.csv", **beside)
    assert not study.trials


def test_results_in_memory_need_values():
    with pytest.raises(SettingError, match="values"):
        Study(LINE).add({"x": [0.5]})
