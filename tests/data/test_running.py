"""What running trials have reported, beside the journal, for whoever looks on."""

import math
import os
import pickle
import time

import pytest

from deepbore import ProcessEvaluator, Study
from deepbore.data import notes
from deepbore.data.notes import RunningReports, forget_reports, last_report, running_path, running_reports
from deepbore.data.replay import read_record
from deepbore.data.runs import Run
from deepbore.evaluators.base import EvaluationWarning
from plane import LINE


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(notes, "EVERY", 0.0)


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "run.jsonl"


def shown(journal):
    """The reports of running trials, as the page has them."""
    return [dict(trial.reports) for trial in read_record(journal).trials if trial.status.name == "PENDING"]


def test_a_curve_that_begins_anew_does_so(journal):
    write = RunningReports(running_path(journal, 3))
    for step, value in [(1, 0.5), (2, math.nan), (3, 0.25), (2, 0.125), (4, 1.0)]:
        write(step, value)
    assert running_reports(journal, 3) == {1: 0.5, 2: 0.125, 4: 1.0}
    assert running_reports(journal, 4) == {}
    assert last_report(journal) > 0
    forget_reports(journal, 3)
    assert not running_path(journal, 3).parent.exists()
    assert last_report(journal) == 0


def test_writes_are_seldom_and_none_is_lost(journal, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(notes, "EVERY", 2.0)
    monkeypatch.setattr(notes.time, "monotonic", lambda: now[0])
    write = pickle.loads(pickle.dumps(RunningReports(running_path(journal, 0))))
    for step in range(1, 101):
        now[0] += 0.1
        write(step, step / 4)
        if step == 5:
            write(step, 0.0)  # anew, and not written yet
        if now[0] < 2:
            assert not running_path(journal, 0).exists()
    assert running_path(journal, 0).read_text().count("\n") <= 5
    found = running_reports(journal, 0)
    assert list(found) == list(range(1, len(found) + 1))
    assert found[5] == 0
    assert len(found) > 80


def test_the_record_of_a_run_has_the_curves_of_running_trials_and_the_journal_has_not(journal):
    def objective(params, trial):
        trial.report(0.5, 1)
        trial.report(0.25, 2)
        seen.append((shown(journal), Run(journal).last_change > 0, '"steps"' in journal.read_text().splitlines()[-1]))
        return params["x"]

    seen = []
    study = Study(LINE, journal=journal)
    study.optimize(objective, 2, progress=False)
    assert seen == [([{1: 0.5, 2: 0.25}], True, False)] * 2
    assert [dict(trial.reports) for trial in read_record(journal).trials] == [{1: 0.5, 2: 0.25}] * 2
    assert not running_path(journal, 0).parent.exists()


def looked_on(params, trial):
    notes.EVERY = 0.0
    trial.report(0.5, 1)
    return float(os.path.exists(trial.reporter.send.path))


def test_trials_in_other_processes_write_theirs(journal):
    study = Study(LINE, journal=journal)
    study.optimize(ProcessEvaluator(looked_on, workers=1), 1, progress=False)
    assert study.trials[0].value == 1
    assert not running_path(journal, 0).parent.exists()


def test_what_can_not_be_written_or_read_is_left_out(tmp_path, journal):
    RunningReports(tmp_path / "missing" / "run.jsonl.running" / "0")(1, 0.5)
    assert not (tmp_path / "missing").exists()
    RunningReports(running_path(journal, 0))(1, 0.5)
    with running_path(journal, 0).open("a") as file:
        file.write('no JSON\n{"steps": [2, 1], "values": [0, 0]}\n{"steps": 3}\n[]\n{"steps": [2], "values": [null]}\n')
    found = running_reports(journal, 0)
    assert list(found) == [1, 2]
    assert math.isnan(found[2])


def test_links_are_not_followed(tmp_path, journal):
    RunningReports(tmp_path / "real" / "0").path.parent.mkdir()
    RunningReports(tmp_path / "real" / "0")(1, 0.5)
    running_path(journal, 0).parent.symlink_to(tmp_path / "real")
    assert running_reports(journal, 0) == {}


HOSTILE = {
    "deep": b"[" * 100_000,
    "deep objects": b'{"steps":' * 50_000,
    "huge numbers": b'{"steps": [1], "values": [' + b"9" * 5000 + b"]}",
    "beyond all steps": b'{"steps": [1e999], "values": [0]}',
    "texts": b'{"steps": ["1"], "values": ["0"]}',
    "one more": b'{"steps": [1, 2], "values": [0]}',
    "below zero": b'{"steps": [-1], "values": [0]}',
    "booleans": b'{"steps": [true], "values": [0]}',
    "no text": b"\xff\xfe\x00",
    "a lone surrogate": b'{"steps": ["\\ud800"], "values": [0]}',
    "too large": b'{"steps": [1], "values": [0]}\n' * 200_000,
    "many lines": b"\n".join(b'{"steps": [%d], "values": [0]}' % step for step in range(60_000, 0, -1)),
}


def dies(_params):
    os._exit(1)


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_of_reports_does_no_harm(content, journal):
    study = Study(LINE, seed=0, journal=journal)
    (trial,) = study.ask()
    path = running_path(journal, trial.id)
    path.parent.mkdir()
    path.write_bytes(content)
    began = time.process_time()
    assert set(running_reports(journal, trial.id)) <= {1}
    assert set(read_record(journal).trials[0].reports) <= {1}
    assert time.process_time() - began < 5


def test_a_run_goes_on_beside_a_hostile_file_of_reports(journal):
    study = Study(LINE, seed=0, journal=journal)
    running_path(journal, 0).parent.mkdir()
    for row, content in enumerate(HOSTILE.values()):
        running_path(journal, row).write_bytes(content)
    n = len(HOSTILE)
    with pytest.warns(EvaluationWarning):
        study.optimize(ProcessEvaluator(dies, workers=2, lost_retries=0), n, max_failures=None, progress=False)
    study.close()
    assert [trial.status.name for trial in Study.load(journal).trials] == ["FAILED"] * n


def test_a_pipe_or_a_folder_in_place_of_reports_is_none(journal):
    running_path(journal, 0).parent.mkdir()
    os.mkfifo(running_path(journal, 0))
    running_path(journal, 1).mkdir()
    assert running_reports(journal, 0) == running_reports(journal, 1) == {}
