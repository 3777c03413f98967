"""`deepbore fit` after SIGKILL and Ctrl-C: it goes on as if nothing had happened."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

import forked
from deepbore import Real, SearchSpace, Study
from deepbore.cli.main import main
from deepbore.errors import JournalError
from processes import ROOT

HALF_LOG = SearchSpace({"x": Real(-1, 1), "y": Real(1e-3, 1, log=True)})

TESTS = ROOT / "tests"


def events(journal):
    """All events but the first, which has the run's own id, and without the checksums, which depend on it."""
    lines = journal.read_text().splitlines()[1:]
    return [json.loads(line, parse_constant=pytest.fail) | {"crc": None} for line in lines]


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
    return forked.Popen(
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
        Study(HALF_LOG, journal=uninterrupted / "journal.jsonl")
