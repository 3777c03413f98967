"""When trials began and ended, beside the journal, which has no times."""

import os

import pytest

from deepbore import SerialEvaluator, Study
from deepbore.data.events import Timed
from deepbore.data.notes import append_lines, finished_with, last_report, running_path
from deepbore.data.replay import read_record, timed_in
from deepbore.data.runs import Run
from plane import LINE


def value(params):
    return params["x"]


def spans(trials):
    return [(trial.began, trial.ended) for trial in trials]


def test_a_run_keeps_when_its_trials_began_and_ended(tmp_path):
    study = Study(LINE, journal=tmp_path / "run.jsonl")
    study.optimize(value, 3, progress=False)
    (asked,) = study.ask()
    study.tell(asked, 0.5)
    known = spans(study.trials)
    assert all(0 < began <= ended for began, ended in known)
    assert known == sorted(known)
    study.close()
    assert spans(Study.load(tmp_path / "run.jsonl").trials) == known
    assert spans(read_record(tmp_path / "run.jsonl").trials) == known
    assert study.trials[0].duration == pytest.approx(known[0][1] - known[0][0])


# regression: a trial took minus a thousand seconds
def test_no_trial_takes_less_than_no_time_where_the_clock_is_set_back(monkeypatch, tmp_path):
    study, now = Study(LINE, journal=tmp_path / "run.jsonl"), iter(range(10**6, 0, -1000))
    monkeypatch.setattr("time.time", lambda: next(now))
    study.optimize(value, 2, progress=False)
    study.tell(study.ask_one(), 0.5)
    study.close()
    assert [trial.duration for trial in Study.load(tmp_path / "run.jsonl").trials] == [0, 0, 0]


def test_frames_have_them():
    study = Study(LINE)
    study.optimize(value, 3, progress=False)
    study.add({"x": [0.5]}, [1.0])
    frame = study.to_frame()
    assert (frame.began[:3] <= frame.ended[:3]).all()
    assert (frame.seconds[:3] >= 0).all()
    assert frame[["began", "ended", "seconds"]][3:].isna().all().all()


def test_a_folder_of_reports_that_is_empty_is_no_change(tmp_path):
    path = tmp_path / "run.jsonl"
    Study(LINE, journal=path).close()
    running_path(path, 0).parent.mkdir()  # as between its making and the first report
    assert last_report(path) == 0
    assert Run(path).last_change == Run(path).last_event


def test_equal_runs_are_equal_whenever_they_ran(tmp_path):
    one, other = (Study(LINE, journal=tmp_path / name) for name in ("one.jsonl", "other.jsonl"))
    for study in (one, other):
        study.optimize(value, 3, progress=False)
    assert list(one.trials) == list(other.trials)


def test_a_run_that_did_what_it_was_to_do_is_finished(tmp_path):
    path = tmp_path / "run.jsonl"
    study = Study(LINE, journal=path)
    study.optimize(value, 3, progress=False)
    study.close()
    assert finished_with(tmp_path / "run.jsonl.times") == 3
    assert Run(path).state == "finished"
    stopped = Study(LINE, journal=tmp_path / "other.jsonl")

    def interrupts(params):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped.optimize(SerialEvaluator(interrupts), 3, progress=False)
    stopped.close()
    assert Run(tmp_path / "other.jsonl").state == "stopped"


def test_times_of_a_former_run_are_no_times_of_this_one(tmp_path):
    append_lines(tmp_path / "run.jsonl.times", [{"trial": 0, "began": 1.0, "ended": 2.0}])
    study = Study(LINE, journal=tmp_path / "run.jsonl")
    study.ask()
    study.close()
    assert Study.load(tmp_path / "run.jsonl").trials[0].began is None


def test_neither_a_link_nor_a_pipe_is_written_to(tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "no/folder"):
        append_lines(tmp_path / name, [{"finished": 1}])
    assert (tmp_path / "mine").read_text() == "mine"


def test_lines_that_say_nothing_are_passed_over(tmp_path):
    path = tmp_path / "times"
    path.write_text(
        '[]\n{"trial": 1}\nhalf a\n{"trial": 2, "began": 1, "ended": 2}\n{"trial": 3, "began": 1e99, "ended": 2}'
    )
    assert list(timed_in(path)) == [Timed(2, 1.0, 2.0)]
    assert finished_with(path) is None


def test_times_of_a_trial_that_the_journal_has_not_are_passed_over(tmp_path):
    study = Study(LINE, journal=tmp_path / "run.jsonl")
    study.optimize(value, 1, progress=False)
    append_lines(tmp_path / "run.jsonl.times", [Timed(7, 1.0, 2.0).line()])
    study.close()
    assert [trial.id for trial in read_record(tmp_path / "run.jsonl").trials if trial.began is not None] == [0]
