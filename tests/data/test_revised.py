"""Trials that are withdrawn or corrected: what remains is as if they had been told right at once."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from hypothesis import given, settings, strategies as st

from deepbore import Budget, Ordinal, Outcome, SearchSpace
from deepbore.data.journal import Journal
from deepbore.data.observations import Observations
from deepbore.data.replay import read_record, replay
from deepbore.data.trial import Status
from deepbore.errors import TrialError, ValueTypeError
from deepbore.labels import NonDominationLabels, ValueGradedLabels
from deepbore.loop.promotions import Promotions

NAN = float("nan")
SPACE = SearchSpace({"x": Ordinal(list(range(6)))})
BUDGET = Budget("epochs", 1, 9)
VALUE = st.sampled_from([1.0, 2.0, 2.0, 3.0, 5.0, NAN])
BESIDE = st.sampled_from([-1.0, 0.5])  # a constraint
NOISE = st.sampled_from([None, 0.1, 0.4])
RUNG = st.sampled_from([1, 3, 9])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.integers(0, 5), RUNG),
        st.tuples(st.just("tell"), VALUE, BESIDE, NOISE),
        st.tuples(st.just("add"), st.lists(VALUE, min_size=1, max_size=3), RUNG, st.sampled_from([None, "a", "b"])),
        st.tuples(st.just("withdraw"), st.lists(st.integers(0, 30), min_size=1, max_size=3)),
        st.tuples(st.just("correct"), st.integers(0, 30), VALUE, BESIDE, NOISE),
        st.tuples(st.just("note"), st.integers(0, 30), st.sampled_from(["host", "suspicious"])),
        st.tuples(st.just("look")),
    ),
    max_size=25,
)


class Kind:
    """A kind of run: how many values and constraints, and whether there are budgets and noise."""

    def __init__(self, k=1, c=0, budget=None, noisy=False):
        self.k, self.c, self.budget, self.noisy = k, c, budget, noisy

    def new(self, journal=None):
        return Observations(SPACE, ["minimize", "maximize"][: self.k], journal=journal, budget=self.budget)

    def outcome(self, value, beside, noise):
        values = [value, 6.0 - 2 * value if beside > 0 else value][: self.k]
        return Outcome(values, constraints=[beside] * self.c, noise=noise if self.noisy else None)

    def earlier(self, value):
        """The outcome of an earlier result: some have noise, some have no constraints."""
        told = self.outcome(value, 0.0, 0.3 if value == 2 else None)
        return replace(told, constraints=()) if value == 3 else told


KINDS = {
    "one value": Kind(),
    "constraints": Kind(c=2),
    "noise": Kind(noisy=True),
    "two values": Kind(k=2),
    "budgets": Kind(budget=BUDGET),
}


class Run:
    """Observations with a history of steps, and the same history without what was withdrawn, told right at once."""

    def __init__(self, kind, path):
        self.kind = kind
        header = {"space": SPACE.to_dict(), "directions": ["minimize", "maximize"][: kind.k], "seed": 0}
        header |= {"budget": kind.budget.to_dict()} if kind.budget else {}
        self.journal = Journal.begin(path, header)
        self.observations = kind.new(self.journal)
        self.history = []  # ("ask", row, x, rung), ("tell", row), ("add", rows, xs, rung, task)
        self.outcomes, self.gone = {}, set()

    def take(self, step, *given):
        getattr(self, step)(*given)

    def ask(self, x, rung):
        (row,) = self.observations.reserve(SPACE.encode([{"x": x}]), rung if self.kind.budget else None)
        self.history.append(("ask", row, x, rung))

    def tell(self, value, beside, noise):
        if len(waiting := self.observations.columns.pending_rows):
            row = int(waiting[-1])
            self.outcomes[row] = self.kind.outcome(value, beside, noise)
            self.observations.tell(row, self.outcomes[row])
            self.history.append(("tell", row))

    def add(self, values, rung, task):
        task = None if self.kind.budget else task
        rows = range(len(self.observations), len(self.observations) + len(values))
        self.outcomes |= {row: self.kind.earlier(value) for row, value in zip(rows, values, strict=True)}
        self.history.append(("add", rows, range(len(values)), rung, task))
        self.imported(self.observations, *self.history[-1][1:])

    def imported(self, observations, rows, xs, rung, task):
        outcomes = [self.outcomes[row] for row in rows]
        about = {"budgets": rung if self.kind.budget else None, "task": task}
        if any(each.constraints for each in outcomes):
            about["constraints"] = [list(each.constraints) or [NAN] * self.kind.c for each in outcomes]
        if any(each.noise is not None for each in outcomes):
            about["noise"] = [each.noise for each in outcomes]
        values = [list(each.values) if each.values else [NAN] * self.kind.k for each in outcomes]
        observations.add({"x": list(xs)}, values, **about)

    def withdraw(self, rows):
        rows = {row for row in rows if row < len(self.observations)} - self.gone
        self.observations.withdraw(rows, "wrong")
        self.gone |= rows

    def correct(self, row, value, beside, noise):
        if row in self.outcomes and row not in self.gone:
            self.outcomes[row] = self.kind.outcome(value, beside, noise)
            self.observations.correct(row, self.outcomes[row])

    def note(self, row, name):
        if row < len(self.observations):
            self.observations.annotate(row, {name: "noted"})

    def look(self):
        own = self.observations.of_task(0)
        _ = (
            self.observations.replicates.sorted_values,
            own.averaged,
            self.observations.ledger.ranking.n_since_best if self.kind.k == 1 else 0,
        )

    def anew(self):
        """What remains, told right at once."""
        fresh, row_of = self.kind.new(), {}
        for step, rows, *about in self.history:
            if step == "add":
                xs, rung, task = about
                left = [(row, x) for row, x in zip(rows, xs, strict=True) if row not in self.gone]
                row_of |= {row: len(fresh) + place for place, (row, _) in enumerate(left)}
                if left:
                    self.imported(fresh, *zip(*left, strict=True), rung, task)
            elif rows not in self.gone and step == "ask":
                x, rung = about
                (row_of[rows],) = fresh.reserve(SPACE.encode([{"x": x}]), rung if self.kind.budget else None)
            elif rows not in self.gone:
                fresh.tell(row_of[rows], self.outcomes[rows])
        return fresh, row_of


def labels_of(observations):
    labels = (NonDominationLabels() if observations.k > 1 else ValueGradedLabels())(observations.of_task(0))
    return labels.z, labels.weight, labels.constraints


def same(one, other):
    return one is other is None or torch.equal(one.nan_to_num(nan=-9.0), other.nan_to_num(nan=-9.0))


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@given(steps=STEPS)
@settings(max_examples=60, deadline=None)
def test_what_remains_is_as_if_it_had_been_told_right_at_once(kind, steps):
    with TemporaryDirectory() as folder:
        path = Path(folder, "run.jsonl")
        run = Run(kind, path)
        for step in steps:
            run.take(*step)
        run.journal.close()
        again, shown = replay(Journal(path)).observations, read_record(path)
        fresh, row_of = run.anew()
        assert again.trials() == run.observations.trials() == shown.trials
        since_best = fresh.ledger.ranking.n_since_best
        assert again.ledger.ranking.n_since_best == run.observations.ledger.ranking.n_since_best == since_best
        for revised in (run.observations, again):
            assert revised.ledger.statistics.n_complete == fresh.ledger.statistics.n_complete
            assert revised.ledger.statistics.n_failed == fresh.ledger.statistics.n_failed
            assert revised.ledger.statistics.n_earlier == fresh.ledger.statistics.n_earlier
            assert revised.n_distinct == fresh.n_distinct
            assert revised.columns.n_left == fresh.columns.n_left
            assert [row_of[row] for row in revised.columns.pending_rows.tolist()] == fresh.columns.pending_rows.tolist()
            assert revised.replicates.sorted_values.tolist() == fresh.replicates.sorted_values.tolist()
            assert revised.constraints.shape[1] == fresh.constraints.shape[1]
            assert revised.columns.unseen(SPACE.points.enumerate()) == fresh.columns.unseen(SPACE.points.enumerate())
            own, other = revised.of_task(0), fresh.of_task(0)
            assert same(own.values, other.values)
            assert same(own.averaged.values, other.averaged.values)
            assert all(map(same, labels_of(revised), labels_of(fresh)))
            if kind.k == 1:
                best = None if revised.best is None else row_of[revised.best.id]
                assert (
                    best
                    == (None if fresh.best is None else fresh.best.id)
                    == (None if shown.best is None else row_of[shown.best.id])
                )
            assert [row_of[each.id] for each in revised.front] == [each.id for each in fresh.front]
            promoted = Promotions(revised).first(9)
            assert [(row_of[row], up) for row, up in promoted] == Promotions(fresh).first(9)


def begun():
    observations = Observations(SPACE)
    rows = observations.reserve(SPACE.encode([{"x": k} for k in range(4)]))
    for row, value in zip(rows[:3], [1.0, 2.0, NAN], strict=True):
        observations.tell(row, value)
    return observations


def test_a_record_keeps_what_was_told():
    observations = begun()
    observations.correct(0, 4.0, noise=0.5)
    observations.correct(0, NAN)
    observations.correct(2, 3.0)
    observations.withdraw([0, 1], "the sensor was loose")
    first, second, third, _ = observations.trials()
    assert [(each.status, each.value, each.noise) for each in first.former] == [
        (Status.COMPLETE, 1.0, None),
        (Status.COMPLETE, 4.0, 0.5),
        (Status.FAILED, None, 0.5),
    ]
    assert first.former[-1].reason == "its value is nan"
    assert first.reason == second.reason == "the sensor was loose"
    assert first.value is None
    assert (third.value, third.reason, third.former[0].reason) == (3.0, None, "its value is nan")


def test_what_is_not_given_stays():
    observations = Observations(SPACE)
    observations.add({"x": [0, 1]}, [1.0, 2.0], constraints=[[-1.0], [1.0]], noise=0.25)
    observations.correct(1, constraints=[-2.0])
    assert (observations.trial(1).value, observations.trial(1).constraints) == (2.0, (-2.0,))
    observations.correct(1, 0.5)
    assert (observations.trial(1).constraints, observations.trial(1).noise) == ((-2.0,), 0.25)
    observations.correct(1, noise=0.125)
    assert (observations.trial(1).value, observations.trial(1).noise) == (0.5, 0.125)
    observations.correct(1, failed=True)
    assert (observations.trial(1).status, observations.trial(1).constraints) == (Status.FAILED, None)


def test_notes_of_an_outcome_go_with_it_and_others_stay():
    observations = begun()
    observations.annotate(2, {"traceback": "ZeroDivisionError", "suspicious": "far worse", "host": "node7"})
    observations.correct(2, Outcome(3.0, attributes={"unit": "mm"}))
    assert observations.trial(2).attributes == {"host": "node7", "unit": "mm"}
    observations.correct(2, 4.0)
    assert observations.trial(2).attributes == {"host": "node7", "unit": "mm"}


def test_constraints_that_were_told_by_mistake_are_gone():
    observations = begun()
    observations.tell(3, Outcome(1.0, constraints=[0.5, 0.5]))
    observations.withdraw(3)
    assert observations.constraints.shape == (4, 0)
    (row,) = observations.reserve(SPACE.encode([{"x": 5}]))
    observations.tell(row, Outcome(1.0, constraints=[-1.0]))
    assert observations.best.id == 0


REFUSED = {
    "trial 1 was withdrawn before [(]a typo[)]": lambda study: study.withdraw(1),
    "trial 2 was named twice": lambda study: study.withdraw([2, 0, 2]),
    "trials 0 ... 3 exist, but got 9": lambda study: study.withdraw([0, 9]),
    "trial 1 was withdrawn [(]a typo[)], so nothing is told of it": lambda study: study.tell(1, 1.0),
    "trial 1 was withdrawn [(]a typo[)]. A result": lambda study: study.correct(1, 1.0),
    "trial 3 is pending. Call tell": lambda study: study.correct(3, 1.0),
    "is complete with 1.0. If that was wrong, call correct": lambda study: study.tell(0, 5.0),
}
MISTAKEN = {
    "what is right, but got nothing": lambda study: study.correct(0),
    "no value that noise could go with": lambda study: study.correct(2, noise=1.0),
    "all of an outcome, but came with noise": lambda study: study.correct(0, Outcome(1.0), noise=1.0),
    "failed=True is all of an outcome, but came with a value": lambda study: study.correct(0, 1.0, failed=True),
    "number of objective values must be 1": lambda study: study.correct(0, [1.0, 2.0]),
    "a reason must be a text": lambda study: study.withdraw(0, 3),
}


@pytest.mark.parametrize(
    ("error", "says", "call"),
    [*((TrialError, *each) for each in REFUSED.items()), *((ValueTypeError, *each) for each in MISTAKEN.items())],
)
def test_what_can_not_be_is_refused_and_changes_nothing(error, says, call):
    observations = begun()
    observations.withdraw(1, "a typo")
    before, entries = observations.trials(), list(observations.ledger.finished)
    with pytest.raises(error, match=says):
        call(observations)
    assert (observations.trials(), observations.ledger.finished) == (before, entries)


def test_several_are_withdrawn_by_one_line_of_the_journal(tmp_path):
    header = {"space": SPACE.to_dict(), "directions": ["minimize"], "seed": 0}
    observations = Observations(SPACE, journal=Journal.begin(tmp_path / "run.jsonl", header))
    observations.add({"x": [0, 1, 2]}, [1.0, 2.0, 3.0], task="last year")
    observations.withdraw([trial for trial in observations.trials() if trial.task == "last year"])
    observations.withdraw([])
    assert len((tmp_path / "run.jsonl").read_text().splitlines()) == 3
    assert observations.ledger.statistics.n_earlier == 0
    assert len(observations.of_task(0)) == len(observations.of_task(1)) == 0
