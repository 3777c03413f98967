"""What a process has of its own is after every door of deepbore as it was before, and does no harm within."""

import gc
import linecache
import locale
import logging
import multiprocessing
import os
import random
import resource
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from contextlib import closing, contextmanager
from decimal import getcontext

import joblib
import matplotlib as mpl
import numpy as np
import optuna
import pytest
import torch

import deepbore
import objectives
from deepbore import Integer, MedianPruner, Real, Study, TrialPruned, minimize
from deepbore.cli.main import main
from deepbore.errors import ObjectiveError
from deepbore.evaluators import ProcessEvaluator
from deepbore.integrations.optuna import DeepBoreSampler
from deepbore.integrations.shared import Leader
from deepbore.integrations.sklearn import DeepBoreSearchCV
from deepbore.study.server import StudyServer
from deepbore.worker.shared import work
from plane import PLANE

SPACE = {"x": Real(0, 1), "n": Integer(0, 5)}


def value(params):
    return (params["x"] - 0.3) ** 2 + params["n"]


def hashed(array):
    return hash(np.asarray(array).tobytes())


THINGS = {
    # NumPy, random, decimal
    "np.errstate": np.geterr,
    "np.seterrcall": np.geterrcall,
    "np.printoptions": lambda: repr(np.get_printoptions()),
    "np.random": lambda: hashed(np.random.get_state()[1]),
    "np.random's place": lambda: np.random.get_state()[2],
    "random": lambda: hash(random.getstate()),
    "decimal": lambda: repr(getcontext()),
    # torch
    "torch.random": lambda: hashed(torch.random.get_rng_state()),
    "torch dtype": torch.get_default_dtype,
    "torch device": torch.get_default_device,
    "torch threads": torch.get_num_threads,
    "torch interop threads": torch.get_num_interop_threads,
    "torch deterministic": torch.are_deterministic_algorithms_enabled,
    "torch deterministic warns": torch.is_deterministic_algorithms_warn_only_enabled,
    "torch grad": torch.is_grad_enabled,
    "torch inference": torch.is_inference_mode_enabled,
    "torch anomaly": torch.is_anomaly_enabled,
    "torch anomaly checks": torch.is_anomaly_check_nan_enabled,
    "torch autocast": lambda: torch.is_autocast_enabled("cpu"),
    "torch matmul": torch.get_float32_matmul_precision,
    "torch denormal": lambda: float(torch.tensor([1e-310], dtype=torch.float64) * 1),
    "torch fills": lambda: torch.utils.deterministic.fill_uninitialized_memory,
    "torch warn always": torch.is_warn_always_enabled,
    "torch tf32": lambda: (torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32),
    "torch cudnn": lambda: (
        torch.backends.cudnn.enabled,
        torch.backends.cudnn.benchmark,
        torch.backends.cudnn.deterministic,
    ),
    "torch mkldnn": lambda: torch.backends.mkldnn.enabled,
    "torch printoptions": lambda: repr(vars(torch._tensor_str.PRINT_OPTS)),
    "torch sharing": torch.multiprocessing.get_sharing_strategy,
    "torch function modes": torch._C._len_torch_function_stack,
    # processes, signals, sockets
    "start method": lambda: multiprocessing.get_start_method(allow_none=True),
    "start executable": multiprocessing.spawn.get_executable,
    "children": lambda: len(multiprocessing.active_children()),
    "socket timeout": socket.getdefaulttimeout,
    "signals": lambda: {number: signal.getsignal(number) for number in signal.valid_signals()},
    "signal mask": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, []),
    "wakeup fd": lambda: (fd := signal.set_wakeup_fd(-1), signal.set_wakeup_fd(fd))[0],
    "timers": lambda: [signal.getitimer(each) for each in (signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)],
    "cwd": os.getcwd,
    "environ": lambda: dict(os.environ),
    "umask": lambda: (mask := os.umask(0o22), os.umask(mask))[0],
    "niceness": lambda: os.nice(0),
    "affinity": lambda: os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None,
    "limits": lambda: [resource.getrlimit(each) for each in (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE)],
    "threads": lambda: sorted(
        each.name for each in threading.enumerate() if each.name.startswith("deepbore") and each.is_alive()
    ),
    "stack size": threading.stack_size,
    "thread hooks": lambda: (threading.excepthook, threading.gettrace(), threading.getprofile()),
    # Python
    "sys.path": lambda: list(sys.path),
    "sys.argv": lambda: list(sys.argv),
    "sys streams": lambda: (sys.stdin, sys.stdout, sys.stderr),
    "sys hooks": lambda: (sys.excepthook, sys.displayhook, sys.unraisablehook, sys.breakpointhook),
    "sys tracing": lambda: (sys.gettrace(), sys.getprofile()),
    "recursion limit": sys.getrecursionlimit,
    "switch interval": sys.getswitchinterval,
    "digits of integers": sys.get_int_max_str_digits,
    "meta path": lambda: len(sys.meta_path),
    "gc": lambda: (gc.isenabled(), gc.get_threshold(), gc.get_debug()),
    "gc callbacks": lambda: len(gc.callbacks),
    "locale": lambda: locale.setlocale(locale.LC_ALL),
    "time zone": lambda: time.tzname,
    "tempdir": lambda: tempfile.tempdir,
    "bytecode": lambda: sys.dont_write_bytecode,
    "lines of files": lambda: linecache.getlines,
    # warnings, logging, packages
    "warnings filters": lambda: list(warnings.filters),
    "warnings shown by": lambda: warnings.showwarning,
    "logging root": lambda: (logging.root.level, list(logging.root.handlers), logging.root.manager.disable),
    "logging class": lambda: (logging.getLoggerClass(), logging.getLogRecordFactory(), logging.raiseExceptions),
    "loggers": lambda: {
        name: (logging.getLogger(name).level, logging.getLogger(name).propagate)
        for name in ("deepbore", "lightning.pytorch", "optuna", "torch", "sklearn")
    },
    "optuna verbosity": optuna.logging.get_verbosity,
    "matplotlib": lambda: {name: each for name, each in mpl.rcParams.items() if name != "backend"},
}


def snapshot():
    return {name: read() for name, read in THINGS.items()}


def pruned(params, trial):
    for step in range(3):
        trial.report(value(params), step)
        if trial.should_prune():
            raise TrialPruned
    return value(params)


def of_minimize(_folder):
    minimize(value, SPACE, 14, seed=0, progress=False)


def of_failures(_folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ObjectiveError):
            minimize(lambda params: 1 / 0, SPACE, 3, max_failures=2, progress=False)


def of_an_interrupt(_folder):
    def interrupted(_params):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        minimize(interrupted, SPACE, 3, progress=False)


def of_ask_and_tell(folder):
    with closing(Study(SPACE, seed=0, n_initial=3, journal=folder / "ask.jsonl")) as study:
        for _ in range(6):
            trial = study.ask_one()
            study.tell(trial, value(trial.params))
    with closing(Study.load(folder / "ask.jsonl")) as study:
        study.fit()


def of_a_pruner(_folder):
    minimize(pruned, SPACE, 6, seed=0, pruner=MedianPruner(startup_trials=2), strategy="random", progress=False)


def of_workers(_folder):
    minimize(ProcessEvaluator(objectives.bowl, workers=2), PLANE, 4, seed=0, progress=False)


def of_networks(_folder):
    minimize(value, SPACE, 6, seed=0, n_initial=4, classifier=deepbore.MCDropout(), progress=False)


def of_scikit_learn(_folder):
    tree = pytest.importorskip("sklearn.tree").DecisionTreeClassifier(random_state=0)
    X = np.linspace(0, 1, 40)[:, None]
    DeepBoreSearchCV(tree, {"max_depth": Integer(1, 9)}, n_iter=3, cv=2).fit(X, X[:, 0] > 0.5)


def of_optuna(_folder):
    study = optuna.create_study(sampler=DeepBoreSampler(seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), 12)


def of_a_shared_study(folder):
    storage = optuna.storages.InMemoryStorage()
    worker = threading.Thread(target=work, args=(value, storage, "s"), kwargs={"poll": 0.01, "patience": 20})
    worker.start()
    with closing(Study(SPACE, seed=0, journal=folder / "lead.jsonl", strategy="random")) as study:
        Leader(storage, "s", study, poll=0.02).run(4)
    worker.join()


def of_a_server(_folder):
    with StudyServer(Study(SPACE, seed=0)) as server:
        server.tell(server.ask(), 1.0)


def of_the_command_line(folder):
    with closing(Study(SPACE, seed=0, n_initial=3, journal=folder / "run.jsonl")) as study:
        study.optimize(value, 6, progress=False)
    for command in (["best"], ["report"]):
        main([*command, str(folder / "run.jsonl")])


def of_pictures(_folder):
    result = minimize(value, SPACE, 6, seed=0, n_initial=4, progress=False)
    deepbore.plots.history(result.study)
    mpl.pyplot.close("all")


@pytest.fixture
def others_have_begun():
    """Other packages change things when they are imported and used for the first time, with or without deepbore."""
    pytest.importorskip("lightning.pytorch")
    pytest.importorskip("matplotlib.pyplot")
    mpl.use("agg")
    joblib.Parallel(n_jobs=None)(joblib.delayed(abs)(each) for each in [1])


DOORS = [each for name, each in sorted(globals().items()) if name.startswith("of_")]
SLOW = {of_workers, of_networks, of_the_command_line, of_pictures}


@pytest.mark.parametrize(
    "door", [pytest.param(each, id=each.__name__, marks=pytest.mark.slow if each in SLOW else ()) for each in DOORS]
)
@pytest.mark.usefixtures("quiet_optuna", "others_have_begun")
def test_a_door_leaves_the_process_as_it_was(door, tmp_path, capsys):
    before = snapshot()
    door(tmp_path)
    after = snapshot()
    assert [name for name in THINGS if before[name] != after[name]] == []


def test_the_snapshot_has_sixty_things_and_sees_a_change(monkeypatch):
    assert len(THINGS) >= 60
    before = snapshot()
    monkeypatch.setenv("DEEPBORE_CHANGED", "1")
    random.random()
    with np.errstate(all="raise"):
        after = snapshot()
    assert {name for name in THINGS if before[name] != after[name]} == {"np.errstate", "environ", "random"}


@contextmanager
def warnings_raised():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


@contextmanager
def half_precision():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float16)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


ODD = {
    "errors of NumPy": lambda: np.errstate(all="raise"),
    "inference": torch.inference_mode,
    "no gradients": torch.no_grad,
    "warnings": warnings_raised,
    "half precision": half_precision,
}


@pytest.mark.parametrize("odd", ODD)
def test_what_a_program_has_set_changes_no_proposal(odd):
    def run():
        return [trial.params for trial in minimize(value, SPACE, 13, seed=0, progress=False).study.trials]

    plain = run()
    with ODD[odd]():
        assert run() == plain
