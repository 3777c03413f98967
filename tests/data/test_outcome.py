"""What an outcome brings: several values, constraints, budgets, attributes, reasons, and a frame of it all."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

import deepbore as db
from deepbore import Budget, Categorical, Condition, Outcome, Real, SearchSpace, Study
from deepbore.data.imported import as_frame
from deepbore.data.log import written
from deepbore.data.observations import Observations
from deepbore.data.outcome import Status
from deepbore.data.replay import read_record
from deepbore.errors import JournalError, SettingError, ShapeError, SpaceError, ValueTypeError
from deepbore.evaluators.base import EvaluationWarning
from plane import LINE, SQUARE

SPACE = SearchSpace({"x": Real(0, 1), "c": Categorical(["a", "b"]), "m": Real(0, 1, when=Condition("c", "a"))})


def told(outcomes, directions=("minimize",)):
    observations = Observations(SPACE, directions)
    for row, outcome in enumerate(outcomes):
        observations.reserve(SPACE.encode([{"x": row / 100, "c": "b"}]))
        observations.tell(row, outcome)
    return observations


def test_several_values_are_turned_each_by_its_direction():
    observations = told([(1, 2), [3.5, -4], np.array([5, 6]), torch.tensor([7.0, 8.0])], ["minimize", "maximize"])
    assert observations.values.tolist() == [[1, -2], [3.5, 4], [5, -6], [7, -8]]
    assert observations.columns.user_values.tolist() == [[1, 2], [3.5, -4], [5, 6], [7, 8]]
    assert observations.trial(1).values == (3.5, -4.0)
    assert observations.trial(1).value == 3.5
    assert observations.replicates.sorted_values.tolist() == [1, 3.5, 5, 7]
    assert (observations.k, observations.direction) == (2, "minimize")
    assert observations.columns.to_user(-2.0, column=1) == 2.0
    with pytest.raises(SettingError, match="2 objectives has no single best"):
        _ = observations.best


def test_one_missing_value_of_several_fails_a_trial():
    observations = told([(1, math.nan), (math.inf, 1)], ["minimize", "minimize"])
    assert observations.ledger.statistics.n_failed == 2
    assert observations.values.isnan().all()
    assert observations.trial(0).reason == "its value is [1.0, nan]"


@pytest.mark.parametrize("wrong", [1.0, (1, 2, 3), Outcome(5)])
def test_another_number_of_values_is_refused(wrong):
    observations = Observations(SPACE, ["minimize", "minimize"])
    observations.reserve(SPACE.points.sample(1, torch.Generator()))
    with pytest.raises(ValueTypeError, match="number of objective values must be 2"):
        observations.tell(0, wrong)
    observations.tell(0, (1, 2))


def test_the_best_is_feasible_and_the_first_outcome_fixes_the_number_of_constraints():
    observations = told(
        [
            Outcome(3, constraints=[-1, 0]),
            Outcome(1, constraints=[-1, 1e-9]),
            Outcome(2, constraints=[0, 0]),
            Outcome(2, constraints=[-1, -1]),
            Outcome(0, constraints=[math.nan, 0]),
        ]
    )
    assert observations.feasible.tolist() == [True, False, True, True, False]
    assert observations.best.id == 2
    assert observations.best.constraints == (0.0, 0.0)
    assert observations.trial(4).status is Status.FAILED
    assert observations.trial(4).reason == "its constraints are [nan, 0.0]"
    assert observations.constraints.shape == (5, 2)
    assert observations.constraints[4].isnan().all()
    assert observations.centres.best_rows(9).tolist() == [2, 3, 0, 1] or observations.centres.best_rows(9).tolist() == [
        3,
        2,
        0,
        1,
    ]
    observations.reserve(SPACE.points.sample(1, torch.Generator()))
    for wrong in (1.0, Outcome(1, constraints=[1]), Outcome(1, constraints=[1, 2, 3])):
        with pytest.raises(ValueTypeError, match="number of constraints must be 2"):
            observations.tell(5, wrong)
    observations.tell(5, failed=True)
    assert math.isnan(float(observations.constraints[5, 0]))


def test_rows_before_the_first_constraint_have_none():
    observations = told([1.0, 2.0, Outcome(3.0, constraints=[0.5])])
    assert observations.constraints.isnan().tolist() == [[True], [True], [False]]
    assert [observations.trial(row).constraints for row in range(3)] == [None, None, (0.5,)]
    assert observations.feasible.tolist() == [True, True, False]


@given(
    st.lists(
        st.tuples(st.floats(-9, 9), st.floats(-9, 9), st.floats(-1, 1), st.sampled_from([None, "a", "b"])), max_size=8
    ),
    st.integers(0, 9),
)
@settings(max_examples=40)
def test_best_rows_take_turns_feasible_ones_first(rows, count):
    observations = Observations(SPACE, ["minimize", "maximize"])
    for number, (one, two, bound, task) in enumerate(rows):
        observations.add({"x": number / 100, "c": "b"}, [one, two], constraints=[bound], task=task)

    def ranked(task, column, sign):  # by the definition, one comparison after the other
        group = [i for i, row in enumerate(rows) if row[3] == task]
        return sorted(group, key=lambda i: (rows[i][2] > 0, rows[i][2] if rows[i][2] > 0 else sign * rows[i][column]))

    tasks = [None, *dict.fromkeys(row[3] for row in rows if row[3])]
    groups = [ranked(task, column, sign) for task in tasks for column, sign in ((0, 1), (1, -1))]
    dealt = [group[place] for place in range(len(rows)) for group in groups if place < len(group)]
    keys = [(row[2] > 0, *((row[2],) if row[2] > 0 else row[:2])) for row in rows]
    if len(set(keys)) == len({row[0] for row in rows}) == len({row[1] for row in rows}) == len(rows):  # no ties
        assert observations.centres.best_rows(count).tolist() == list(dict.fromkeys(dealt))[:count]
    assert (
        len(observations.centres.best_rows(count))
        == len(set(observations.centres.best_rows(count).tolist()))
        == min(count, len(rows))
    )


def test_other_tasks_are_rows_that_are_not_compared():
    observations = told([2.0, 3.0])
    for task, value in (("old", -9.0), ("older", -8.0), ("old", math.nan)):
        observations.add({"x": [0.7], "c": ["b"], "m": [None]}, [value], task=task)
    assert observations.columns.tasks.tolist() == [0, 0, 1, 2, 1]
    assert observations.ledger.task_names == ("old", "older")
    assert [observations.trial(row).task for row in range(5)] == [None, None, "old", "older", "old"]
    assert observations.replicates.sorted_values.tolist() == [2.0, 3.0]
    assert observations.best.id == 0
    assert (
        observations.ledger.statistics.n_complete,
        observations.ledger.statistics.n_failed,
        observations.n_distinct,
    ) == (4, 1, 2)
    assert observations.columns.unseen(SPACE.encode([{"x": 0.7, "c": "b"}])) == [True]
    for odd in ("", 3, ["old"]):
        with pytest.raises(ValueTypeError, match="task is named by a text"):
            observations.add({"x": 0.7, "c": "b"}, 1.0, task=odd)


def test_budgets_are_those_of_asking_or_those_that_were_spent():
    observations = Observations(SPACE)
    observations.reserve(SPACE.points.sample(2, torch.Generator()), budget=np.int64(9))
    observations.reserve(SPACE.points.sample(1, torch.Generator()))
    observations.tell(0, Outcome(1, budget=7.5))
    observations.tell(1, 2)
    observations.add({"x": [0.1, 0.2], "c": ["b", "b"], "m": [None, None]}, [1, 2], budgets=[3, float("nan")])
    assert [observations.trial(row).budget for row in range(5)] == [7.5, 9.0, None, 3.0, None]
    for odd in (math.nan, math.inf, "all", True):
        with pytest.raises(ValueTypeError, match="budget must be a"):
            observations.reserve(SPACE.points.sample(1, torch.Generator()), budget=odd)
    with pytest.raises(ValueTypeError, match="finite"):
        observations.add({"x": 0.1, "c": "b"}, 1, budgets=math.inf)
    with pytest.raises(ShapeError, match="one budget"):
        observations.add({"x": 0.1, "c": "b"}, 1, budgets=[1, 2])
    assert len(observations) == 5


def test_attributes_and_reasons_stay_with_their_row():
    attributes = {"epochs": np.int64(3), "losses": np.array([1.0, math.inf]), "note": ("a", None)}
    observations = told([Outcome(1, attributes=attributes), Outcome.failure("x" * 10_000), 3])
    attributes["note"] = "changed"
    assert observations.trial(0).attributes == {"epochs": 3, "losses": [1.0, None], "note": ["a", None]}
    assert observations.trial(2).attributes == {}
    assert len(observations.trial(1).reason) == 2000
    assert observations.trial(2).reason is None
    for odd in ({"f": print}, {("a", "b"): 1}, {"i": 10**5000}, 5):
        with pytest.raises(ValueTypeError, match="attributes must be plain JSON data"):
            Outcome(1, attributes=odd)


def test_a_frame_has_columns_for_what_there_is():
    plain = as_frame(told([1.0, 2.0]))
    assert list(plain.columns) == ["id", "x", "c", "m", "value", "status"]
    outcome = Outcome([1, 2], constraints=[-1], budget=3, attributes={"loss": 0.5})
    observations = told([outcome, Outcome.failure("no")], ["minimize", "maximize"])
    observations.add({"x": 0.5, "c": "b"}, [3, 4], task="old")
    frame = as_frame(observations).astype(object)
    rows = frame.where(frame.notna(), None).drop(columns=["x", "c", "m"]).to_dict("records")
    assert [{name: each for name, each in row.items() if each is not None} for row in rows] == [
        {
            "id": 0,
            "value_0": 1,
            "value_1": 2,
            "status": "complete",
            "constraint_0": -1,
            "budget": 3,
            "attribute_loss": 0.5,
        },
        {"id": 1, "status": "failed", "reason": "no"},
        {"id": 2, "value_0": 3, "value_1": 4, "status": "complete", "task": "old"},
    ]


@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        ([], r"an outcome has a value, but got \[\]. Tell failed=True if there is none"),
        (np.bool_(True), r"must be a number, but got (np\.)?True"),
        (torch.tensor(True), r"must be a number, but got tensor\(True\)"),
    ],
)
def test_what_is_no_outcome_leaves_the_trial_as_it_was(outcome, says):
    observations = Observations(SearchSpace({"x": Real(0, 1)}))
    observations.reserve(torch.tensor([[0.5]]).double())
    with pytest.raises(ValueTypeError, match=says):
        observations.tell(0, outcome)
    assert observations.status[0] == Status.PENDING


# regression: each of these was wrong once
def test_values_may_have_gradients():
    import torch

    study = Study(LINE)
    study.add({"x": [0.1, 0.2]}, [torch.tensor(1.0, requires_grad=True), 2.0])
    assert study.best_trial.value == 1


def test_of_outcomes_that_do_not_go_together_none_counts():
    suggester = db.DistributedStudy(SQUARE, seed=0)
    one, other = suggester.ask(2)
    with pytest.raises(ValueTypeError, match="trial 1: the number of constraints must be 1"):
        suggester.tell({one.id: db.Outcome(1, constraints=[1.0]), other.id: db.Outcome(1, constraints=[1.0, 2.0])})
    assert [trial.status.name for trial in suggester.study.trials] == ["PENDING"] * 2


@pytest.mark.parametrize(
    ("settings", "told", "rule"),
    [
        ({"preferences": True}, {"values": [1.0]}, "compared"),
        ({"budget": db.Budget("epochs", 1, 9)}, {"values": [1.0], "budget": 9.0}, "has a budget of 1"),
    ],
)
def test_a_record_refuses_what_a_study_refuses(tmp_path, settings, told, rule):
    path = tmp_path / "journal.jsonl"
    study = db.Study(SQUARE, journal=path, seed=0, **settings)
    (trial,) = study.ask()
    study.close()
    lines = path.read_text().splitlines()
    version, crc = json.loads(lines[0])["version"], int(json.loads(lines[-1])["crc"], 16)
    with path.open("ab") as file:
        file.write(written({"event": "told", "trial": trial.id, **told}, version, crc)[0])
    for look in (read_record, db.Study.load):
        with pytest.raises(JournalError, match=rule):
            look(path)


@pytest.mark.parametrize("value", [np.complex128(1 + 2j), np.array(1 + 2j), 1j])
def test_complex_values_are_refused(value):
    study = Study(LINE)
    (trial,) = study.ask()
    with pytest.raises(ValueTypeError):
        study.tell(trial, value)


def test_an_outcome_is_complete_or_failed_or_pruned():
    with pytest.raises(ValueTypeError, match=r"Status\.COMPLETE, FAILED or PRUNED"):
        Outcome(1.0, status=Status.PENDING)
    with pytest.raises(ValueTypeError, match="a pruned trial has no values"):
        Outcome(1.0, status=Status.PRUNED)


@pytest.mark.parametrize("odd", [{"noise": True}, {"budgets": 1j}])
def test_what_is_no_column_of_numbers_is_shown(odd):
    with pytest.raises(ValueTypeError, match=r"must be numbers, but got (True|1j)"):
        Study(LINE).add({"x": [0.1, 0.2]}, [1.0, 2.0], **odd)


def test_an_outcome_may_say_its_budget_in_few_digits():
    study = Study(LINE, budget=Budget("share", 0.1, 0.9), n_initial=3, seed=0)
    study.optimize(lambda params, trial: Outcome(params["x"], budget=round(trial.budget, 6)), 12)
    assert not study.observations.ledger.statistics.n_failed
    assert {trial.budget for trial in study.trials} <= set(study.observations.budget.rungs)


HALF = "a\ud800b"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (HALF, "a\\ud800b"),
        ("\udcff", "\\udcff"),
        ("\ud83d\ude00", "\U0001f600"),  # both halves of a character are that
        ("\U0001f600", "\U0001f600"),
        ("\\ud800", "\\ud800"),  # a text that says so is left alone
        ("\\\\ud800", "\\\\ud800"),
        ("\\" + HALF, "\\a\\ud800b"),
    ],
)
def test_half_a_character_is_written_out_in_notes_and_reasons(given, kept, tmp_path):
    outcome = Outcome(1.0, attributes={"note": given, given: [given]})
    assert outcome.attributes == {"note": kept, kept: [kept]}
    json.dumps(dict(outcome.attributes), ensure_ascii=False).encode()
    if given != "\ud83d\ude00":
        assert Outcome.failure(given).reason == kept


def test_half_a_character_does_no_harm_to_a_run(tmp_path):
    def objective(params):
        if params["x"] < 0.5:
            raise ValueError(HALF)
        return Outcome(params["x"], attributes={"host": HALF})

    with Study({"x": Real(0, 1)}, seed=0, journal=tmp_path / "run.jsonl") as study:
        with pytest.warns(EvaluationWarning):
            study.optimize(objective, 5, max_failures=None)
        study.annotate(0, {"seen": HALF})
        study.withdraw(1, reason=HALF)
        study.to_frame().to_csv(tmp_path / "run.csv", index=False)
    loaded = Study.load(tmp_path / "run.jsonl")
    assert [trial.reason for trial in loaded.trials] == [trial.reason for trial in study.trials]
    assert [dict(trial.attributes) for trial in loaded.trials] == [dict(trial.attributes) for trial in study.trials]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Study({HALF: Real(0, 1)}), SpaceError),
        (lambda: Study({"x": Real(0, 1)}, directions={HALF: "minimize", "b": "minimize"}), SettingError),
        (lambda: Study({"x": Real(0, 1)}).add({"x": [0.5]}, [1.0], task=HALF), ValueTypeError),
    ],
)
def test_half_a_character_is_refused_in_names(make, error):
    with pytest.raises(error, match="whole characters"):
        make()
