"""A run whose journal is in a database is the run whose journal is a file, and goes on as it would have gone on."""

import pytest
from deepbore_toys.sqlite_log import SqliteLog

from deepbore import Outcome, Real, SearchSpace, Study
from deepbore.data.journal import Journal
from deepbore.data.log import Log
from deepbore.errors import JournalError, JournalInUse

SPACE = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})
SETTINGS = {"seed": 3, "n_initial": 4}


def loss(params):
    return (params["x"] - 0.3) ** 2 + (params["y"] - 0.7) ** 2


def go_on(study, n):
    """Asks and tells until there are n trials; the fifth has failed, and the seventh is corrected."""
    while len(study.trials) < n:
        (trial,) = study.ask()
        study.tell(trial, Outcome.failure("lost") if trial.id == 5 else loss(trial.params))
        if trial.id == 7:
            study.correct(trial, 0.25)


def lines(log):
    return [{name: each for name, each in line.items() if name != "id"} for line in log.read()]


@pytest.mark.parametrize("log", [Journal, SqliteLog])
def test_it_keeps_the_contract_of_a_log(tmp_path, log):
    assert isinstance(log(tmp_path / "run"), Log)


def test_a_run_is_the_same_in_a_database_and_is_resumed_bit_for_bit(tmp_path):
    whole = Study(SPACE, journal=tmp_path / "run.jsonl", **SETTINGS)
    go_on(whole, 14)
    study = Study(SPACE, journal=SqliteLog(tmp_path / "run.db"), **SETTINGS)
    for n in (3, 6, 9, 14):
        go_on(study, n)
        study.close()
        study = Study.load(SqliteLog(tmp_path / "run.db"))
    assert [trial.params for trial in study.trials] == [trial.params for trial in whole.trials]
    assert [trial.value for trial in study.trials] == [trial.value for trial in whole.trials]
    assert lines(SqliteLog(tmp_path / "run.db")) == lines(Journal(tmp_path / "run.jsonl"))


def test_it_has_one_writer(tmp_path):
    study = Study(SPACE, journal=SqliteLog(tmp_path / "run.db"), **SETTINGS)
    study.ask()
    with pytest.raises(JournalInUse, match="Close the study"):
        SqliteLog(tmp_path / "run.db").open()
    study.close()
    another, left = Study.load(SqliteLog(tmp_path / "run.db")), Study.load(SqliteLog(tmp_path / "run.db"))
    another.ask()
    another.close()
    with pytest.raises(JournalError, match="Load it again"):
        left.ask()


def test_what_holds_a_run_is_begun_by_no_other(tmp_path):
    Study(SPACE, journal=SqliteLog(tmp_path / "run.db"), **SETTINGS).close()
    with pytest.raises(JournalError, match="holds a run already"):
        Study(SPACE, journal=SqliteLog(tmp_path / "run.db"), **SETTINGS)
    again = Study(SPACE, journal=SqliteLog(tmp_path / "run.db"), if_exists="load", **SETTINGS)
    assert len(again.trials) == 0
    with pytest.raises(JournalError, match="holds no run"):
        Study.load(SqliteLog(tmp_path / "empty.db"))


def test_lines_that_can_not_be_kept_leave_none_behind(tmp_path):
    log = SqliteLog(tmp_path / "run.db")
    log.append([{"event": "created", "id": "a"}])
    with pytest.raises(ValueError, match="not JSON compliant"):
        log.append([{"event": "told"}, {"event": "told", "value": float("nan")}])
    assert (log.position, log.run_id) == (1, "a")
