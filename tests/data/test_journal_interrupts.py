"""Interrupts at any line, also during the fsync: the journal and the memory have both or none."""

import os
import random
import signal
import threading

import pytest
import torch

from deepbore.data.journal import Journal
from deepbore.data.outcome import Outcome
from deepbore.data.replay import replay
from deepbore.loop.recipe import Recipe
from deepbore.loop.state import RunState
from interrupting import interrupted
from kept_observations import SPACE, begun, known, loaded

COLUMNS = SPACE.points.decode_columns(SPACE.points.sample(3, torch.Generator().manual_seed(9)))
ACTS = {
    "reserve": lambda observations: observations.reserve(SPACE.points.sample(2, torch.Generator().manual_seed(2)), 3),
    "tell": lambda observations: observations.tell(
        0, Outcome(-5, constraints=[1, 2], budget=2, attributes={"a": 1}, reason="b")
    ),
    "fail": lambda observations: observations.tell(0, failed=True, reason="no"),
    "add": lambda observations: observations.add(COLUMNS, [1, -9, None], constraints=[[0, 0]] * 3, budgets=1),
    "add to a task": lambda observations: observations.add(COLUMNS, [1, 3, None], task="old"),
    "annotate": lambda observations: observations.annotate(1, {"host": "node7"}),
    "fix": lambda observations: observations.fix({"c": "a"}),
    "prefer": lambda observations: observations.prefer([(0, 2), (2, 1)]),
}


def three(path, name):
    """Observations with three rows to do an act with, in a journal if there is a path."""
    by_preference = name == "prefer"
    observations = begun(path, ["maximize" if by_preference else "minimize"], by_preference=by_preference)
    observations.reserve(SPACE.points.sample(3, torch.Generator()))
    observations.prefer([(1, 0)]) if by_preference else observations.tell(1, 0.5)
    return observations


ROOMS = ("observations", "journal", "lines", "events", "ledger", "columns", "imported", "log")
WRITING = (*(f"deepbore/data/{room}.py" for room in ROOMS), "deepbore/loop/state.py")


@pytest.mark.slow
@pytest.mark.parametrize("stride", [7, 1])
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("name", ACTS)
def test_an_interrupt_at_any_line_leaves_both_or_none(tmp_path, name, kept, stride):
    act = ACTS[name]
    untouched = three(None, name)
    before = known(untouched)
    act(untouched)
    after = known(untouched)
    seen, at = set(), 1 - stride
    while True:
        at += stride
        path = tmp_path / f"{at}.jsonl" if kept else None
        observations = three(path, name)
        if not interrupted(lambda: act(observations), at, WRITING):  # noqa: B023  # called at once
            break
        now = known(observations)
        assert now in (before, after), f"line {at} leaves half of it"
        if kept:
            assert loaded(path) == now, f"line {at} leaves the journal at odds with the memory"
        seen.add(now == after)
        if now == before:
            act(observations)
        assert known(observations) == after
        if kept:
            assert loaded(path) == after
            observations.journal.close()
    assert at > 10
    assert stride > 1 or seen == {True, False}


@pytest.mark.slow
def test_an_interrupt_at_any_line_leaves_what_is_enqueued_in_both_or_in_none(tmp_path):
    point, other = SPACE.decode(SPACE.points.sample(2, torch.Generator().manual_seed(2)))
    seen = set()
    for at in range(1, 1000):
        path = tmp_path / f"{at}.jsonl"
        state = RunState(begun(path), Recipe.resolve(SPACE))
        state.enqueue(other)
        if not interrupted(lambda: state.enqueue(point), at, WRITING):  # noqa: B023  # called at once
            break
        seen.add(len(state.queue))
        assert len(replay(Journal(path)).queue) == len(state.queue), f"line {at} leaves it in one of both"
        state.observations.journal.close()
    assert seen == {1, 2}


@pytest.mark.parametrize("name", ACTS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_real_signal_during_the_fsync_leaves_both_or_none(tmp_path, monkeypatch, name, when):
    observations = three(tmp_path / "run.jsonl", name)
    before, fsync, act = known(observations), os.fsync, ACTS[name]

    def hit(descriptor):
        if when == "after":
            fsync(descriptor)
        signal.raise_signal(signal.SIGINT)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", hit)
    with pytest.raises(KeyboardInterrupt):
        act(observations)
    monkeypatch.undo()
    assert loaded(tmp_path / "run.jsonl") == known(observations) == before
    act(observations)
    assert loaded(tmp_path / "run.jsonl") == known(observations) != before


def test_an_interrupt_of_the_clearing_up_is_made_up_for(tmp_path, monkeypatch):
    observations = three(tmp_path / "run.jsonl", "tell")
    before = known(observations)

    def hit(*args):
        monkeypatch.setattr("deepbore.data.journal._cut", hit)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", hit)
    with pytest.raises(KeyboardInterrupt):
        observations.tell(0, 1.0)
    monkeypatch.undo()
    assert known(observations) == before
    assert b'"trial": 0, "value"' in (tmp_path / "run.jsonl").read_bytes()  # it could not be taken back
    observations.tell(0, 2.0)
    assert observations.trial(0).value == 2.0
    assert loaded(tmp_path / "run.jsonl") == known(observations)


@pytest.mark.slow
def test_signals_at_any_time_leave_both_or_none(tmp_path):
    path = tmp_path / "run.jsonl"
    observations, generator, rng = begun(path), torch.Generator().manual_seed(0), random.Random(0)
    hits = 0
    for _ in range(150):
        timer = threading.Timer(rng.uniform(0, 0.004), signal.raise_signal, [signal.SIGINT])
        try:
            timer.start()
            for row in observations.reserve(SPACE.points.sample(2, generator)):
                observations.tell(row, rng.random())
            timer.join()
        except KeyboardInterrupt:
            hits += 1
        timer.join()
    assert hits > 50
    assert loaded(path) == known(observations)
