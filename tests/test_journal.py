"""The journal as other processes, full disks and vandals meet it."""

import json
import logging
import random
import subprocess
import sys
from pathlib import Path

import pytest

from deepbore import Categorical, Condition, Integer, Real, SearchSpace, Study
from deepbore.data.journal import Journal
from deepbore.errors import JournalError

ROOT = Path(__file__).parent.parent
SPACE = SearchSpace(
    {"x": Real(0.1, 1, log=True), "c": Categorical(["a", "b"]), "k": Integer(1, 9, when=Condition("c", "b"))}
)


def written(path, trials=6):
    """A journal with every kind of event."""
    study = Study(SPACE, seed=0, journal=path)
    study.add({"x": [0.5, 0.2], "c": ["a", "b"], "k": [None, 3]}, [1.0, float("nan")])
    study.enqueue({"x": 0.3, "c": "a"})
    for trial in study.ask(trials):
        study.tell(trial, float(trial.id), failed=trial.id % 3 == 0)
    study.close()
    return study


def run(code, *args):
    """What a program prints that has this deepbore."""
    command = [sys.executable, "-c", code, *map(str, args)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def test_a_second_writer_is_refused_while_readers_are_welcome(tmp_path):
    path = tmp_path / "run.jsonl"
    study = Study(SPACE, seed=0, journal=path)
    (trial,) = study.ask()
    other = Study.load(path)
    assert other.trials == study.trials
    with pytest.raises(JournalError, match="another study in this one"):
        other.tell(trial, 1.0)
    code = "import sys; from deepbore.data.journal import Journal; Journal(sys.argv[1]).write({'event': 'failed', 'trial': 0})"
    refused = run(code, path)
    assert "JournalError: another process" in refused.stderr
    study.tell(trial, 2.0)
    assert [each.value for each in Study.load(path).trials] == [2.0]
    study.close()
    with pytest.raises(JournalError, match="since it was read"):
        other.ask()
    (again,) = Study.load(path).ask()
    assert again.id == 1


def test_a_dead_writer_leaves_no_lock(tmp_path):
    path = tmp_path / "run.jsonl"
    code = "import os, sys; from deepbore.data.journal import Journal\nJournal.begin(sys.argv[1], {}); os.kill(os.getpid(), 9)"
    assert run(code, path).returncode == -9
    Journal(path).write({"event": "failed", "trial": 0})
    assert len(path.read_text().splitlines()) == 2


FULL = """
import resource, signal, sys
from deepbore import Real, SearchSpace, Study
from deepbore.errors import JournalError
path = sys.argv[1]
study = Study(SearchSpace({"x": Real(0, 1)}), journal=path)
study.tell(study.ask()[0], 1.0)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit = len(open(path).read()) + 20
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
calls = []
try:
    study.optimize(calls.append, 3)
except JournalError as error:
    print(calls, error)
"""


@pytest.mark.slow
def test_a_full_disk_ends_the_run_before_an_evaluation(tmp_path):
    path = tmp_path / "run.jsonl"
    done = run(FULL, path)
    assert done.stdout.startswith("[] "), done.stderr
    assert "can't be written" in done.stdout
    assert path.read_bytes().endswith(b"\n")
    assert len(Study.load(path).trials) == 1


def test_half_an_event_is_taken_back(tmp_path, monkeypatch):
    path = tmp_path / "run.jsonl"
    journal = Journal.begin(path, {})
    before = path.read_bytes()

    def full(fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(JournalError, match=r"Not written: .*told.*0\.25"):
        journal.write({"event": "told", "trial": 0, "value": 0.25})
    assert path.read_bytes() == before


def test_a_torn_line_is_reported(tmp_path, caplog):
    path = tmp_path / "run.jsonl"
    study = written(path)
    with path.open("a") as file:
        file.write('{"event": "as')
    with caplog.at_level(logging.WARNING, logger="deepbore"):
        loaded = Study.load(path)
    assert loaded.trials == study.trials
    assert [record for record in caplog.records if "is torn" in record.message]
    loaded.ask()
    assert all(json.loads(line) for line in path.read_text().splitlines())


@pytest.mark.parametrize(
    "line",
    [
        '{"event": "told", "trial": 2, "value": NaN}',
        '{"event": "told", "trial": 0, "value": 1.0}',
        '{"event": "told", "trial": 99, "value": 1.0}',
        '{"event": "asked", "trial": 8, "params": {"x": 7, "c": "a"}}',
        '{"event": "asked", "trial": 8, "params": {"x": 0.5, "c": "a", "k": 2}}',
        '{"event": "asked", "trial": 8, "params": null}',
        '{"event": "asked", "trial": 8, "params": {"x": 1' + "0" * 5000 + "}}",
        '{"event": "asked"}',
        '{"event": ["asked"]}',
        '{"event": "added", "params": [1], "value": 1}',
        '{"event": "added", "params": {"x": 0.5, "c": "a"}, "value": {"a": 1}}',
        '{"event": "enqueued", "params": {"__class__": "os.system"}}',
        "[" * 100_000,
        "",
    ],
)
def test_hostile_lines_are_refused(tmp_path, line):
    path = tmp_path / "run.jsonl"
    written(path)
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(JournalError, match="line"):
        Study.load(path)


def mutated(content, rng):
    """A journal with bytes changed, cut out, doubled, or whole lines and numbers exchanged."""
    content = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at, length = rng.randrange(len(content)), rng.randint(1, 30)
        match rng.randrange(6):
            case 0:
                content[at] = rng.randrange(256)
            case 1:
                del content[at : at + length]
            case 2:
                content[at:at] = content[at : at + length]
            case 3:
                content[at:at] = rng.choice([b"null", b"1e999", b"-1", b"{}", b"[", b"\n", b'"x"', b"\xff", b"9" * 400])
            case 4:
                lines = content.split(b"\n")
                rng.shuffle(lines)
                content = bytearray(b"\n".join(lines))
            case 5:
                content = content[: at + 1]
        content = content or bytearray(b"\n")
    return bytes(content)


@pytest.mark.parametrize("tries", [300, pytest.param(100_000, marks=pytest.mark.slow)])
def test_damage_gives_a_journal_error_or_a_study(tmp_path, tries, caplog):
    path = tmp_path / "run.jsonl"
    written(path)
    whole, rng, refused = path.read_bytes(), random.Random(tries), 0
    caplog.set_level(logging.CRITICAL)
    for _ in range(tries):
        path.write_bytes(mutated(whole, rng))
        try:
            Study.load(path)
        except JournalError:
            refused += 1
    assert tries // 2 < refused < tries
