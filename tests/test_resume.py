"""A run goes on as if nothing had happened: after loading, after SIGKILL, after Ctrl-C."""

import hashlib
import json
import logging
import os
import pickle
import random
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

import cases
from deepbore import Real, SearchSpace, Study
from deepbore.cli.main import main
from deepbore.data.observations import Status
from deepbore.errors import JournalError, PointError
from deepbore.loop.state import MAGIC
from deepbore.testing import TOY_SPACES

PLANE = SearchSpace({"x": Real(-1, 1), "y": Real(1e-3, 1, log=True)})
TESTS = Path(__file__).parent


def bowl(params):
    return (params["x"] - 0.3) ** 2 + (params["y"] - 0.2) ** 2


def events(journal):
    """All events but the first, which has the run's own id, and without the checksums, which depend on it."""
    lines = journal.read_text().splitlines()[1:]
    return [json.loads(line, parse_constant=pytest.fail) | {"crc": None} for line in lines]


def go_on(study, n):
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, bowl(trial.params))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["KernelPLS", "RandomForest"])
def test_a_loaded_study_goes_on_bit_for_bit(tmp_path, name):
    make = cases.CLASSIFIERS[name]
    whole, part = (Study(PLANE, seed=3, classifier=make(), n_initial=6, journal=tmp_path / f"{k}.jsonl") for k in "ab")
    go_on(whole, 30)
    go_on(part, 15)
    part.close()
    loaded = Study.load(tmp_path / "b.jsonl", classifier=make(), n_initial=6)
    go_on(loaded, 15)
    assert torch.equal(loaded.observations.points, whole.observations.points)
    assert events(tmp_path / "a.jsonl") == events(tmp_path / "b.jsonl")


@pytest.mark.slow
@pytest.mark.parametrize("name", cases.CLASSIFIERS)
def test_every_classifier_goes_on_bit_for_bit_at_any_moment(tmp_path, name):
    make, space = cases.CLASSIFIERS[name], TOY_SPACES["mixed"]
    whole = Study(space, seed=1, classifier=make(), n_initial=4)
    part = Study(space, seed=1, classifier=make(), n_initial=4, journal=tmp_path / "run.jsonl")
    for k in range(14):
        for study in (whole, part):
            (trial,) = study.ask()
            study.tell(trial, len(str(trial.params)) + trial.params["lr"])
        if k in (2, 6, 9):
            part.close()
            part = Study.load(tmp_path / "run.jsonl", classifier=make(), n_initial=4)
    assert torch.equal(part.observations.points, whole.observations.points)


def test_what_was_chosen_but_not_journaled_is_asked_next(tmp_path):
    path = tmp_path / "run.jsonl"
    study = Study(PLANE, seed=0, n_initial=4, journal=path)
    go_on(study, 6)
    asked = study.ask(3)
    study.close()
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-2]))  # the process died when the first of three was written
    loaded = Study.load(path, n_initial=4)
    assert [trial.status for trial in loaded.trials][-1] is Status.PENDING
    assert loaded.ask(2) == asked[1:]
    assert path.read_text() == "".join(lines)


@pytest.mark.parametrize("damage", ["missing", "torn", "older", "foreign", "hostile"])
def test_without_its_snapshot_a_study_learns_anew_and_says_so(tmp_path, caplog, damage):
    path, snapshot = tmp_path / "run.jsonl", tmp_path / "run.jsonl.ckpt"
    study = Study(PLANE, seed=0, n_initial=4, journal=path)
    go_on(study, 8)
    older = snapshot.read_bytes()
    go_on(study, 3)
    study.close()
    if damage == "missing":
        snapshot.unlink()
    elif damage == "hostile":
        payload = pickle.dumps(Path("x"))  # an object that is no tensor, well wrapped
        snapshot.write_bytes(MAGIC + hashlib.sha256(payload).digest() + payload)
    elif damage != "foreign":
        snapshot.write_bytes(older if damage == "older" else snapshot.read_bytes()[:500])
    other = cases.CLASSIFIERS["MLPClassifier"]() if damage == "foreign" else None
    loaded = Study.load(path, n_initial=4, classifier=other)
    with caplog.at_level(logging.WARNING, logger="deepbore"):
        go_on(loaded, 3)
    said = [record.message for record in caplog.records if "learns anew" in record.message]
    assert len(said) == 1
    assert len({str(trial.params) for trial in loaded.trials}) == len(loaded.trials) == 14
    assert loaded.best_trial.value < 0.05


def test_a_snapshot_is_written_whole_or_not_at_all(tmp_path, caplog):
    path, snapshot = tmp_path / "run.jsonl", tmp_path / "run.jsonl.ckpt"
    study = Study(PLANE, seed=0, n_initial=4, journal=path)
    go_on(study, 7)
    kept, (soft, hard) = snapshot.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    (tmp_path / "run.jsonl.ckpt.part").write_text("somebody's own")
    beside = sorted(tmp_path.iterdir())
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(kept) // 2, hard))  # as of a disk that is full
    try:
        with pytest.raises(JournalError, match="can't be written"):
            study.ask()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert snapshot.read_bytes() == kept
    assert sorted(tmp_path.iterdir()) == beside
    assert (tmp_path / "run.jsonl.ckpt.part").read_text() == "somebody's own"
    study.close()
    Study.load(path, n_initial=4).ask()
    assert "learns anew" not in caplog.text


def test_the_snapshot_stays_small(tmp_path):
    n = 100_000
    rng = np.random.default_rng(0)
    study = Study(PLANE, journal=tmp_path / "run.jsonl")
    study.observations.journal, journal = None, study.observations.journal
    study.add({"x": rng.random(n), "y": rng.random(n).clip(0.01)}, rng.random(n))
    study.observations.journal = journal
    study.ask()
    assert (tmp_path / "run.jsonl.ckpt").stat().st_size < 100_000


def test_enqueued_configurations_are_asked_first_and_survive(tmp_path):
    path = tmp_path / "run.jsonl"
    study = Study(PLANE, seed=0, journal=path)
    for x in (0.25, 0.5, 0.75):
        study.enqueue({"x": x, "y": 0.1})
    with pytest.raises(PointError):
        study.enqueue({"x": 7, "y": 0.1})
    assert study.ask()[0].params == {"x": 0.25, "y": 0.1}
    study.close()
    loaded = Study.load(path)
    assert [trial.params["x"] for trial in loaded.ask(3)][:2] == [0.5, 0.75]
    assert len(loaded.trials) == 4
    loaded.enqueue({"x": -0.5, "y": 0.1})
    assert loaded.optimize(bowl, 2).study.trials[4].params["x"] == -0.5


def test_what_is_enqueued_several_times_is_tried_as_often_after_an_end_at_any_moment(tmp_path):
    study = Study(PLANE, seed=0, journal=tmp_path / "run.jsonl")
    twice, once = {"x": 0.25, "y": 0.5}, {"x": 0.5, "y": 0.5}
    for params in (twice, twice, once):
        study.enqueue(params)
    study.ask()
    study.close()
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))  # it died before the journal had it
    loaded = Study.load(path)
    assert [trial.params for trial in loaded.ask(3)] == [twice, twice, once]


def test_what_a_loaded_study_has_left_pending_is_evaluated_first(tmp_path):
    study = Study(PLANE, seed=0, n_initial=4, journal=tmp_path / "run.jsonl")
    first, second, third = study.ask(3)
    study.close()
    loaded = Study.load(tmp_path / "run.jsonl", n_initial=4)
    loaded.tell(second.id, 0.5)  # by the user, before
    seen = []
    loaded.optimize(lambda params: seen.append(params) or bowl(params), 2)
    assert seen[:2] == [first.params, third.params]
    assert len(loaded.trials) == loaded.observations.n_complete == 5
    assert loaded.trials[second.id].value == 0.5


# --- deepbore fit ----------------------------------------------------------------------------------------------------

CONFIG = """
problem:
  class_path: deepbore.problems.FunctionProblem
  init_args:
    function: objectives.slow_bowl
    space: {x: {type: real, low: -1, high: 1}, y: {type: real, low: -1, high: 1}}
loop: {n_trials: 24, n_initial: 5, seed: 2}
"""


def start(folder, *args):
    """`deepbore fit` in a process of its own."""
    command = [sys.executable, "-m", "deepbore.cli", "fit", *map(str, args)]
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def wait_for_trials(process, journal, n):
    """Until the journal has so many events, or the process has ended."""
    while process.poll() is None and not (journal.exists() and journal.read_text().count("\n") > n):
        time.sleep(0.01)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    return finished(tmp_path_factory.mktemp("whole"))


def finished(folder, config=CONFIG):
    """The directory of a run that nothing interrupted."""
    (folder / "mine.yaml").write_text(config)
    process = start(folder, "--config", "mine.yaml", "--run", "run")
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return folder / "run"


def killed_and_resumed(folder, kills, seed=0, config=CONFIG):
    """The journal of a run that was killed so many times at random moments."""
    (folder / "mine.yaml").write_text(config)
    rng, journal = random.Random(seed), folder / "run" / "journal.jsonl"
    args = ["--config", "mine.yaml", "--run", "run"]
    for _ in range(kills):
        process = start(folder, *args)
        before = journal.read_text().count("\n") if journal.exists() else 0
        wait_for_trials(process, journal, before + rng.randrange(max(2, 45 // kills)))
        time.sleep(rng.random() * 0.1)
        process.kill()
        process.communicate()
        args = ["--resume", "run"]
    process = start(folder, *args)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return journal


@pytest.mark.slow
@pytest.mark.parametrize("kills", [2, 15])  # 15 take a minute or two
def test_a_run_killed_at_random_moments_ends_as_the_uninterrupted_one(tmp_path, uninterrupted, kills):
    journal = killed_and_resumed(tmp_path, kills)
    assert events(journal) == events(uninterrupted / "journal.jsonl")
    assert set(Counter(event["trial"] for event in events(journal) if event["event"] == "told").values()) == {1}
    assert list((tmp_path / "run").glob("metrics*.csv"))


@pytest.mark.slow
def test_so_does_one_of_noisy_values(tmp_path_factory):
    config = CONFIG.replace("slow_bowl", "noisy_bowl")
    whole = finished(tmp_path_factory.mktemp("noisy"), config) / "journal.jsonl"
    assert all(event["noise"] > 0 for event in events(whole) if event["event"] == "told")
    assert events(killed_and_resumed(tmp_path_factory.mktemp("killed"), 2, config=config)) == events(whole)


@pytest.mark.slow
def test_ctrl_c_ends_with_a_summary_and_the_way_on(tmp_path):
    (tmp_path / "mine.yaml").write_text(CONFIG)
    process = start(tmp_path, "--config", "mine.yaml", "--run", "run")
    wait_for_trials(process, tmp_path / "run" / "journal.jsonl", 16)
    process.send_signal(signal.SIGINT)
    shown, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert shown.startswith("best value")
    assert "deepbore fit --resume run" in shown
    assert "Traceback" not in errors


def test_only_a_run_can_be_resumed(tmp_path, capsys):
    assert main(["fit", "--resume", str(tmp_path)]) == 2
    assert "needs the directory of a run" in capsys.readouterr().err


@pytest.mark.slow
def test_a_finished_run_goes_on_to_more_trials_and_keeps_its_metrics(uninterrupted, monkeypatch):
    monkeypatch.syspath_prepend(TESTS)
    assert main(["fit", "--resume", str(uninterrupted), "--loop.n_trials", "26"]) == 0
    assert sum(event["event"] == "told" for event in events(uninterrupted / "journal.jsonl")) == 26
    assert (uninterrupted / "metrics-1.csv").read_text().count("\n") == 20
    with pytest.raises(JournalError, match=r"Study\.load"):
        Study(PLANE, journal=uninterrupted / "journal.jsonl")
