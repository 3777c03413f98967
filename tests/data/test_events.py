"""Events: a line gives the event that gives the line; what contradicts is refused; an effect is made twice as once."""

import random

import numpy as np
import pytest

from deepbore import Budget, Outcome, SearchSpace, Study
from deepbore.data.events import READ, Asked, Imported, Told, Withdrawn, event_of
from deepbore.data.journal import Journal
from deepbore.data.ledger import KeptNatives, Ledger
from deepbore.data.replay import read_record
from deepbore.errors import SettingError, ShapeError, TrialError, ValueTypeError
from deepbore.space.search_space import as_space
from kept_observations import KEPT
from plane import PLANE


def said(ledger):
    """All that a ledger knows, as text."""
    columns = [ledger.values, ledger.constraints, ledger.budgets, ledger.tasks, ledger.status, ledger.noise]
    known = [None if each is None else each.tolist() for each in columns]
    notes = [
        vars(ledger.notes) | {"times": {}},
        ledger.remarks,
        ledger.tags,
        ledger.finished,
        ledger.queue,
        ledger.pairs,
        ledger.fixed,
    ]
    return str([known, notes, ledger.n_asked, ledger.revision, [ledger.reports.of(row) for row in range(len(ledger))]])


def begun(record):
    """An empty ledger of the run that a record is of."""
    natives = KeptNatives(frozenset(record.space))
    return Ledger(record.directions, record.budget, record.by_preference, natives)


@pytest.fixture
def journal(tmp_path):
    """A journal with events of all kinds but comparisons."""
    study = Study(PLANE, seed=0, journal=tmp_path / "run.jsonl", strategy="random")
    study.add({"x": [0.1, 0.2], "y": [0.1, 0.2]}, [1.0, float("nan")], task="old", noise=[0.1, 0.2])
    study.enqueue({"x": 0.5})
    first, second, third = study.ask(3)
    study.report(first, 0.5, step=1)
    study.tell(first, Outcome(0.5, constraints=[-1.0], attributes={"a": [1]}))
    study.tell(second, pruned=True)
    study.tell(third, Outcome.failure("lost"))
    study.annotate(first, {"b": 2})
    first.log({"accuracy": 0.5, "loss": float("nan")}, step=3)
    first.log("accuracy", 0.75)
    second.log("f1", 1)
    first.log_artifact(b"content", "a.txt")
    study.trials.note("a run", tags=["big", "new"])
    study.trials.note("odd", first, tags=[])
    study.correct(first, 0.25)
    study.withdraw(third, "another machine")
    study.fix({"y": 0.5})
    study.close()
    return tmp_path / "run.jsonl"


PATHS = sorted(KEPT.glob("*_0_3.jsonl"))


@pytest.mark.parametrize("kept", [None, *PATHS], ids=lambda path: path and path.stem)
def test_a_line_gives_the_event_that_gives_the_line_and_its_effect_is_made_twice_as_once(journal, kept):
    path = kept or journal
    record, lines = read_record(path), list(Journal(path).read())
    once, twice = begun(record), begun(record)
    for line in lines[1:]:
        event = event_of(line)
        assert event.line() == line
        for ledger, times in ((once, 1), (twice, 2)):
            before, effect = said(ledger), event.stage(ledger)
            assert said(ledger) == before
            for _ in range(times):
                effect()
        assert said(twice) == said(once)
    assert said(once) == said(record)
    assert kept or {line["event"] for line in lines[1:]} >= READ.keys() - {"preferred", "reported"}


@pytest.fixture
def ledger():
    """A run of one value with a trial that is pending, and one that has a value and a constraint."""
    ledger = Ledger(("minimize",))
    for event in (Asked(0, {"x": 1.0}), Asked(1, {"x": 2.0}), Told(1, Outcome(1.0, constraints=[0.5]))):
        event.stage(ledger)()
    return ledger


@pytest.mark.parametrize(
    ("event", "error", "says"),
    [
        (Asked(3, {}), TrialError, "the next trial is 2, but got 3"),
        (Asked(2, {}, resume_from=2), TrialError, "trials 0 ... 1 exist, but got 2"),
        (Told(2, Outcome(1.0)), TrialError, "trials 0 ... 1 exist, but got 2"),
        (Told(1, Outcome(1.0)), TrialError, "told once"),
        (Told(0, Outcome(1.0)), ValueTypeError, "number of constraints must be 1"),
        (Imported(np.ones((1, 2))), ShapeError, "1 objective values, but got 2"),
        (Imported(np.ones((1, 1)), constraints=np.ones((1, 3))), ValueTypeError, "number of constraints must be 1"),
        (Withdrawn([0, 0]), TrialError, "named twice"),
        (event_of({"event": "preferred", "better": 0, "worse": 1}), SettingError, "preferences=True"),
        (event_of({"event": "corrected", "trial": 0, "value": 1.0}), TrialError, "is pending"),
        (event_of({"event": "reported", "trial": 1, "steps": [1], "values": [1.0]}), TrialError, "trial 1 is complete"),
    ],
)
def test_what_contradicts_is_refused_and_changes_nothing(ledger, event, error, says):
    before = said(ledger)
    with pytest.raises(error, match=says):
        event.stage(ledger)
    assert said(ledger) == before


def test_a_budget_that_is_no_rung_is_refused():
    ledger = Ledger(("minimize",), Budget("epochs", 1, 9))
    with pytest.raises(SettingError, match="must be one of 1, 3, 9 epochs, but got 2"):
        Asked(0, {}, 2).stage(ledger)
    with pytest.raises(SettingError, match="must be one of 1, 3, 9 epochs"):
        Imported(np.ones((1, 1)), budgets=np.array([2.0])).stage(ledger)


def test_many_rows_of_several_kinds_have_the_configurations_that_they_came_with():
    natives, draw, expected = KeptNatives(frozenset({"b"})), random.Random(0), []
    for _ in range(40):
        if draw.random() < 0.5:
            params = [{"a": draw.random(), "c": None}]
            natives.keep(len(expected), params)
        else:
            n = draw.randint(1, 4)
            columns = {"a": [draw.choice([1, 2.5]) for _ in range(n)], "b": [None] * n, "c": [True] * n}
            natives.keep_columns(len(expected), columns, n)
            params = [{"a": each, "c": True} for each in columns["a"]]
        expected += params
    rows = draw.sample(range(len(expected)), len(expected))
    assert natives.params(rows) == [expected[row] for row in rows]
    assert [type(each["a"]) for each in natives.params(rows)] == [type(expected[row]["a"]) for row in rows]
    firsts = [row for row, _ in natives.segments()]
    assert firsts == sorted(firsts)


def test_a_study_and_its_journal_have_the_same_ledger(journal):
    study, record = Study.load(journal), read_record(journal)
    assert said(study.observations.ledger) == said(record)
    assert study.observations.ledger.trials == record.trials
    assert SearchSpace.from_dict(record.space) == as_space(PLANE)
