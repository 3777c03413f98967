"""Modes of torch: calls change none of the caller's, and the caller's change no proposal."""

import math
import threading
import time
import warnings

import numpy as np
import pytest
import torch

import deepbore
from deepbore import KernelPLS, Study, minimize
from objectives import bowl
from plane import LINE, PLANE


def go_on(study, n):
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, bowl(trial.params))


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


# regression: modes of torch
def test_a18_modes_around_ask_and_optimize_change_nothing():
    plain = minimize(bowl, PLANE, 6, n_initial=4).values.tolist()
    with torch.inference_mode(), torch.autocast("cpu"):
        within = minimize(bowl, PLANE, 6, n_initial=4).values.tolist()
    assert within == plain


# regression: each of these was wrong once
def test_runs_that_overlap_in_threads_leave_the_filters_of_warnings_as_they_were():
    minimize(lambda params: params["x"], LINE, 4, n_initial=2)  # libraries change filters while they are imported
    before = list(warnings.filters)

    def run(k):
        minimize(lambda params: time.sleep(0.02 * k) or params["x"], LINE, 4 + 2 * k, n_initial=2)

    threads = [threading.Thread(target=run, args=(k,)) for k in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert warnings.filters == before


@pytest.fixture
def in_double():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def precise(params):
    """Values that are all the same in single precision."""
    return float((torch.tensor(params["x"]) - 0.3).square() * 1e-9 + 1.0)


def test_an_objective_is_evaluated_in_the_default_dtype_of_the_caller(in_double):
    asked, run = Study(LINE, seed=0), Study(LINE, seed=0)
    for _ in range(12):
        (trial,) = asked.ask()
        asked.tell(trial, precise(trial.params))
    run.optimize(precise, 12)
    assert [trial.value for trial in run.trials] == [trial.value for trial in asked.trials]
    assert torch.get_default_dtype() == torch.float64


def modes(*_):
    device = torch.empty(0).device.type
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu"), device


@pytest.mark.parametrize(
    "mode",
    [torch.no_grad, torch.inference_mode, lambda: torch.autocast("cpu", torch.bfloat16), lambda: torch.device("meta")],
)
def test_objective_and_callbacks_see_the_modes_of_the_caller(mode):
    seen = []

    def objective(params):
        seen.append(modes())
        return params["x"]

    with mode():
        own = modes()
        Study(LINE, seed=0).optimize(objective, 12, callbacks=[lambda *_: seen.append(modes())])
        assert modes() == own
    assert set(seen) == {own}


def test_two_runs_in_two_threads_leave_the_default_dtype_as_it_was(in_double):
    gate = threading.Event()
    first = threading.Thread(target=lambda: Study(LINE).optimize(lambda _: float(gate.wait(5)), 1))

    def second(params):
        gate.set()
        first.join()  # which has begun before, and ends before
        return params["x"]

    first.start()
    Study(LINE).optimize(second, 1)
    assert torch.get_default_dtype() == torch.float64


def test_minimize_runs_in_the_default_dtype_of_the_caller(in_double):
    assert math.isclose(minimize(precise, LINE, 12, seed=0).best_params["x"], 0.3, abs_tol=0.05)


@pytest.mark.parametrize("how", ["asked", "optimized", "recommended", "loaded"])
def test_a_program_in_which_numpy_raises_has_the_same_run_and_raises_in_its_own_code(tmp_path, how):
    def objective(params):
        assert np.geterr() == dict.fromkeys(("divide", "over", "under", "invalid"), "raise")
        return bowl(params)

    def tried(name):
        study = Study(PLANE, seed=2, n_initial=4, journal=tmp_path / name)
        study.optimize(objective if name == "raising" else bowl, 14 if how == "optimized" else 6, progress=False)
        if how == "loaded":
            study.close()
            study = Study.load(tmp_path / name)
        if how == "recommended":
            assert study.recommended is not None
        go_on(study, 4)
        return study.trials

    plain = tried("plain")
    before = np.seterr(all="raise")
    try:
        assert [trial.params for trial in tried("raising")] == [trial.params for trial in plain]
        assert set(np.geterr().values()) == {"raise"}
    finally:
        np.seterr(**before)


def test_modes_of_numpy_that_an_objective_sets_stay_where_they_were_set():
    def ignoring(params):
        with np.errstate(all="ignore"):
            return float(np.log(np.zeros(1))[0] * 0 + 1) if params["x"] > 2 else bowl(params)

    before = np.geterr()
    minimize(ignoring, PLANE, 6, n_initial=4, progress=False)
    assert np.geterr() == before
