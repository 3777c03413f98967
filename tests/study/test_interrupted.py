"""Interrupts that come upon the clearing up after an interrupt: nothing is lost, and nothing is asked for twice."""

import pytest

from deepbore import RandomSearch, Study
from deepbore.data.log import WriteAheadLog
from deepbore.loop.state import RunState
from interrupting import interrupted
from plane import PLANE

WORKING = ("loop/engine.py", "loop/state.py", "data/journal.py", "data/observations.py", "data/table.py")


def bowl(params):
    return params["x"] ** 2 + params["y"] ** 2


def begun(path=None):
    """A study in its last trial but one of the design, with a point in the queue."""
    study = Study(PLANE, seed=1, n_initial=3, candidates=RandomSearch(20), journal=path)
    study.tell(study.ask()[0], 1.0)
    study.enqueue({"x": 0.25, "y": 0.5})
    return study


def go_on(study, n):
    """Asks until there are so many trials, and tells all."""
    while len(study.trials) < n or study.pending:
        if not study.pending:
            study.ask()
        for trial in study.pending:
            study.tell(trial, bowl(trial.params))
    return study.trials


@pytest.mark.parametrize("gap", [1, 3])
def test_two_interrupts_at_once_leave_an_ask_done_or_not_done(tmp_path, gap):
    whole = go_on(begun(), 6)
    for at in range(gap, 10_000, 47):
        study = begun(tmp_path / f"{at}.jsonl")
        if not interrupted(study.ask, at, WORKING, gap):
            break
        n = len(study.trials)
        assert n == len(Study.load(tmp_path / f"{at}.jsonl").trials), f"line {at} leaves it in one of both"
        study.ask()
        assert study.pending[0].params == {"x": 0.25, "y": 0.5}, f"line {at} loses a point of the queue"
        assert go_on(study, 6) == whole, f"line {at} changes what is asked for"
        study.close()
    assert at > 200


def test_what_an_interrupt_left_in_the_journal_alone_is_read_as_well(tmp_path, monkeypatch):
    study = begun(tmp_path / "run.jsonl")

    def hit(log):
        if log.is_interrupted:  # the event is written, and memory is to follow
            raise KeyboardInterrupt

    monkeypatch.setattr(WriteAheadLog, "complete_pending_write", hit)
    with pytest.raises(KeyboardInterrupt):
        study.ask()
    monkeypatch.undo()
    assert len(study.trials) == 2
    assert study.pending[0].params == {"x": 0.25, "y": 0.5}


def test_what_a_failed_ask_has_drawn_is_put_back_though_an_interrupt_came_upon_that(monkeypatch):
    whole = go_on(begun(), 8)
    study = begun()
    go_on(study, 4)
    hits = []

    def hit(*_):
        hits.append(None)
        raise KeyboardInterrupt

    propose = study.state.recipe.strategy.propose
    monkeypatch.setattr(study.state.recipe.strategy, "propose", lambda *given: (propose(*given), hit()))
    monkeypatch.setattr(RunState, "load_state_dict", hit)
    with pytest.raises(KeyboardInterrupt):
        study.ask()
    monkeypatch.undo()
    assert len(hits) == 2
    study.enqueue({"x": 0.5, "y": 0.5})  # is not taken back with it
    assert study.ask()[0].params == {"x": 0.5, "y": 0.5}
    study.withdraw(4)
    sound = begun()
    go_on(sound, 4)
    sound.enqueue({"x": 0.5, "y": 0.5})
    sound.ask()
    sound.withdraw(4)
    assert go_on(study, 8) == go_on(sound, 8)
    assert go_on(study, 8) != whole
