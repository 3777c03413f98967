"""A call that fails changes nothing, and neither do the modes that torch is in or the threads that call."""

import resource
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

import deepbore
from deepbore import KernelPLS, LogExpectedImprovement, Ordinal, Real, SearchSpace, Study
from deepbore.errors import JournalError, SettingError, SpaceExhausted, TrialError

PLANE = SearchSpace({"x": Real(-1, 1), "y": Real(-1, 1)})


def bowl(params):
    return (params["x"] - 0.3) ** 2 + (params["y"] + 0.2) ** 2


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
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, OSError])
@pytest.mark.parametrize("make", [KernelPLS, lambda: deepbore.DeepPLS(training=deepbore.Training(steps=5))])
def test_a_failed_ask_leaves_the_study_as_it_was(error, make):
    failing, sound = (Study(PLANE, seed=3, n_initial=5, classifier=make(), acquisition=Failing()) for _ in range(2))
    for study in (failing, sound):
        go_on(study, 12)
    pending = [failing.ask(8), sound.ask(8)]
    failing.recipe.acquisition.armed = error()
    with pytest.raises(error):
        failing.ask()
    assert len(failing.trials) == 20
    for study, trials in zip((failing, sound), pending, strict=True):
        for trial in trials:
            study.tell(trial, bowl(trial.params))
    go_on(failing, 3)
    go_on(sound, 3)
    assert failing.trials == sound.trials
    assert len({str(trial.params) for trial in failing.trials}) == 23


@pytest.mark.slow
def test_an_ask_that_the_disk_has_no_room_for_changes_nothing(tmp_path):
    whole, short = (Study(PLANE, seed=1, n_initial=4, journal=tmp_path / f"{name}.jsonl") for name in ("a", "b"))
    go_on(whole, 10)
    go_on(short, 8)
    kept = (tmp_path / "b.jsonl").read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(kept) + 10, limits[1]))
    try:
        with pytest.raises(JournalError, match="can't be written"):
            short.ask()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tmp_path / "b.jsonl").read_bytes() == kept
    go_on(short, 2)
    assert short.trials == whole.trials


@pytest.mark.parametrize("n_enqueued", [0, 1, 2])
def test_trials_that_an_interrupt_kept_from_the_caller_are_given_next(tmp_path, monkeypatch, n_enqueued):
    study = Study(PLANE, seed=1, n_initial=4, journal=tmp_path / "run.jsonl")
    for x in (0.25, 0.5)[:n_enqueued]:
        study.enqueue({"x": x, "y": x})
    reserve = study.observations.reserve

    def interrupted(points):
        reserve(points)
        raise KeyboardInterrupt

    monkeypatch.setattr(study.observations, "reserve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        study.ask(2)
    monkeypatch.undo()
    trials = study.ask(3)
    assert [trial.id for trial in trials] == [0, 1, 2]
    assert len({str(trial.params) for trial in trials}) == 3


def test_an_ask_for_more_than_is_left_leaves_the_queue_alone():
    study = Study(SearchSpace({"k": Ordinal([1, 2, 3])}))
    study.enqueue({"k": 3})
    with pytest.raises(SpaceExhausted, match="4 new configurations"):
        study.ask(4)
    assert not study.trials
    assert study.ask()[0].params == {"k": 3}


def test_what_is_enqueued_is_tried_though_a_finite_space_is_used_up():
    study = Study(SearchSpace({"k": Ordinal([1, 2, 3])}))
    for trial in study.ask(3):
        study.tell(trial, trial.params["k"])
    study.enqueue({"k": 2})
    assert study.ask()[0].params == {"k": 2}
    for k in (3, 1, 1):
        study.enqueue({"k": k})
    study.optimize(lambda params: params["k"], 5)  # three that come again, and nothing else is left
    assert [trial.params["k"] for trial in study.trials[4:]] == [3, 1, 1]
    with pytest.raises(SpaceExhausted, match=r"3 of all 3 are evaluated or pending\. Ask for fewer, or enqueue"):
        study.ask()


def test_a_queue_takes_the_place_of_the_configurations_in_it():
    study = Study(SearchSpace({"k": Ordinal([1, 2, 3])}))
    for k in (1, 1, 3):
        study.enqueue({"k": k})
    with pytest.raises(SpaceExhausted, match="4 new configurations were asked for, but 0 of all 3 are evaluated"):
        study.ask(5)
    assert [trial.params["k"] for trial in study.ask(4)] == [1, 1, 3, 2]


def test_a_best_configuration_may_be_tried_again_and_again():
    study = Study(SearchSpace({"k": Ordinal([1, 2, 3])}), seed=0)
    for trial in study.ask(3):
        study.tell(trial, trial.params["k"])
    study.enqueue(study.best_trial.params)
    study.optimize(bowl_of_k, 9, callbacks=[lambda study, trial: study.enqueue(study.best_trial.params)])
    assert len(study.trials) == 12


def bowl_of_k(params):
    return (params["k"] - 2) ** 2


def test_where_all_that_is_not_fixed_is_used_up_the_error_says_how_to_go_on():
    study = Study(SearchSpace({"k": Ordinal([1, 2, 3]), "x": Ordinal([0, 1])}))
    study.fix({"k": 2, "x": 1})
    study.ask()
    with pytest.raises(SpaceExhausted, match=r"1 of all 1 with what is fixed are .* or release .* fix\(\{\}\)"):
        study.ask()


# --- Ctrl-C ----------------------------------------------------------------------------------------------------------


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


# --- modes of torch, threads -----------------------------------------------------------------------------------------


@pytest.fixture
def double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.slow
@pytest.mark.parametrize("make", [KernelPLS, lambda: deepbore.DeepEnsemble(training=deepbore.Training(steps=5))])
@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad, lambda: torch.autocast("cpu")])
def test_modes_of_torch_change_nothing(mode, make):
    plain, within = (Study(PLANE, seed=2, n_initial=4, classifier=make()) for _ in range(2))
    go_on(plain, 8)
    with mode():
        go_on(within, 8)
    assert within.trials == plain.trials


@pytest.mark.slow
def test_another_default_dtype_changes_nothing(double):
    within = deepbore.minimize(bowl, PLANE, n_trials=12, n_initial=4)
    torch.set_default_dtype(torch.float32)
    assert within.values.tolist() == deepbore.minimize(bowl, PLANE, n_trials=12, n_initial=4).values.tolist()


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
    assert study.observations.n_complete == len({str(trial.params) for trial in study.trials}) == 16
    assert Study.load(tmp_path / "run.jsonl").trials == study.trials


def test_a_study_runs_within_a_thread():
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(deepbore.minimize, bowl, PLANE, 12).result()
    assert len(result.values) == 12


# --- what does not belong --------------------------------------------------------------------------------------------


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
        (lambda: Study({"x": Real(0, 1)}), r"Give SearchSpace\("),
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
