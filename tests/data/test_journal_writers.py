"""The journal as other processes and full disks meet it, and files that change hands."""

import errno
import os
from pathlib import Path

import pytest
import torch

from deepbore import Study
from deepbore.data.journal import Journal
from deepbore.errors import JournalError
from kept_observations import SPACE, begun, header, known, loaded
from processes import run


def test_a_second_writer_is_refused_while_readers_are_welcome(tmp_path):
    path = tmp_path / "run.jsonl"
    study = Study(SPACE, seed=0, journal=path)
    (trial,) = study.ask()
    other = Study.load(path)
    assert other.trials == study.trials
    with pytest.raises(JournalError, match="another study in this one"):
        other.tell(trial, 1.0)
    code = "import sys; from deepbore.data.journal import Journal; "
    refused = run(code + "Journal(sys.argv[1]).write({'event': 'failed', 'trial': 0})", path)
    assert "JournalInUse: another process" in " ".join(refused.stderr.split())
    study.tell(trial, 2.0)
    assert [each.value for each in Study.load(path).trials] == [2.0]
    study.close()
    with pytest.raises(JournalError, match="since it was read"):
        other.ask()
    (again,) = Study.load(path).ask()
    assert again.id == 1


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a directory in which no file can be made")
def test_where_no_file_can_be_made_nobody_is_said_to_write():
    with pytest.raises(JournalError, match=r"/proc/run\.jsonl can't be written"):
        Study(SPACE, journal="/proc/run.jsonl")


@pytest.mark.parametrize("code", [errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS], ids=errno.errorcode.get)
def test_a_file_system_without_locks_is_named_and_nothing_is_written(tmp_path, monkeypatch, code):
    fcntl = pytest.importorskip("fcntl")
    path = tmp_path / "run.jsonl"

    def refuses(*_):
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as without_locks:
        without_locks.setattr(fcntl, "flock", refuses)
        with pytest.raises(JournalError, match=rf"run\.jsonl\.lock has no flock \(.*{os.strerror(code)}.*local disk"):
            Study(SPACE, journal=path)
    assert not path.exists()
    Study(SPACE, journal=path).ask()  # once there are


def test_a_dead_writer_leaves_no_lock(tmp_path):
    path = tmp_path / "run.jsonl"
    code = "import os, sys; from deepbore.data.journal import Journal\n"
    assert run(code + "Journal.begin(sys.argv[1], {}); os.kill(os.getpid(), 9)", path).returncode == -9
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


# --- files that change hands -----------------------------------------------------------------------------------------


def test_a_change_of_directory_changes_nothing(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    observations = begun("run.jsonl")
    monkeypatch.chdir("elsewhere")
    observations.reserve(SPACE.points.sample(1, torch.Generator()))
    assert loaded(tmp_path / "run.jsonl") == known(observations)
    assert not list((tmp_path / "elsewhere").iterdir())


def replace(path):
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("run.jsonl", Path.unlink, "was deleted while it was in use"),
        ("run.jsonl", replace, "was replaced by another file while it was in use"),
        ("run.jsonl", lambda path: path.write_bytes(path.read_bytes() + b"x"), "another has written"),
        ("run.jsonl", lambda path: os.truncate(path, 20), "another has written"),
        ("run.jsonl.lock", Path.unlink, r"the lock .*run.jsonl.lock was deleted or replaced"),
        ("run.jsonl.lock", replace, r"the lock .*run.jsonl.lock was deleted or replaced"),
    ],
)
def test_files_that_are_changed_while_in_use_are_not_written_to(tmp_path, name, change, says):
    observations = begun(tmp_path / "run.jsonl")
    observations.reserve(SPACE.points.sample(2, torch.Generator()))
    observations.tell(0, 1.0)
    change(tmp_path / name)
    before, content = known(observations), {path: path.read_bytes() for path in tmp_path.iterdir()}
    for act in (
        lambda: observations.tell(1, 2.0),
        lambda: observations.reserve(SPACE.points.sample(1, torch.Generator())),
        lambda: observations.add({"x": 0.5, "c": "a"}, 1.0),
    ):
        with pytest.raises(JournalError, match=f"{says}.*Nothing was written"):
            act()
    assert known(observations) == before
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == content


def test_journals_whose_names_differ_in_the_last_part_share_nothing(tmp_path):
    one, other = begun(tmp_path / "exp.0"), begun(tmp_path / "exp.1")
    one.reserve(SPACE.points.sample(1, torch.Generator()))
    other.reserve(SPACE.points.sample(1, torch.Generator()))
    assert {path.name for path in tmp_path.iterdir()} == {"exp.0", "exp.0.lock", "exp.1", "exp.1.lock"}


@pytest.mark.parametrize("content", [b"my notes\n", b"no end of line", b'{"event": "told"}\n', b"\0" * 99])
def test_files_of_somebody_else_are_not_touched(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    for act in (
        lambda: Journal.begin(path, header()),
        lambda: Journal(path).write({"event": "failed", "trial": 0}),
        lambda: Journal(path).open(),
        lambda: Study(SPACE, journal=path),
        lambda: Study.load(path),
    ):
        with pytest.raises(JournalError, match=r"notes\.txt"):
            act()
    assert path.read_bytes() == content


def test_a_journal_that_was_never_begun_is_not_written(tmp_path):
    with pytest.raises(JournalError, match="can't be read"):
        Journal(tmp_path / "none.jsonl").write({"event": "failed", "trial": 0})
    assert not (tmp_path / "none.jsonl").exists()


def test_an_empty_file_can_be_begun_and_a_failed_beginning_repeated(tmp_path):
    path = tmp_path / "run.jsonl"
    with pytest.raises(JournalError, match="plain JSON data"):
        Journal.begin(path, {"space": {1, 2}})
    assert path.read_bytes() == b""
    assert begun(path).reserve(SPACE.points.sample(1, torch.Generator())) == [0]


def test_a_study_that_nothing_refers_to_any_more_holds_no_lock(tmp_path):
    path = tmp_path / "run.jsonl"
    observations = begun(path)
    before = known(observations)
    observations.itself = observations  # as in the traceback of an interrupt, until Python looks for such circles
    del observations
    study = Study.load(path)
    assert known(study.observations) == before
    study.ask()
