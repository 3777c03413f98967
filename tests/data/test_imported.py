"""Results from elsewhere: columns, frames and CSV files."""

import csv
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import assume, given, settings, strategies as st

import deepbore as db
from deepbore import Budget, Categorical, Condition, Integer, Ordinal, Outcome, Real, SearchSpace, Study
from deepbore.data.imported import read_csv
from deepbore.data.observations import Observations, Status
from deepbore.errors import PointError, SettingError, ShapeError, TableError, ValueTypeError
from drawn_spaces import CONDITIONAL, spaces
from plane import LINE, SQUARE
from rungs import EPOCHS, run

PLANE = SearchSpace({"x": Real(-1, 1), "k": Integer(1, 8)})

WRITTEN = SearchSpace(
    {
        "b": Categorical([True, False, None]),
        "f": Ordinal([0.001, 0.01, 1]),
        "s": Categorical(["a,b", "none", None, 'say "x"\n']),
    }
)


def written(tmp_path, text):
    path = tmp_path / "earlier.csv"
    path.write_text(text, encoding="utf-8")
    return path


def write(path, space, params, values):
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, [*space.names, "value"], restval="")
        table.writeheader()
        table.writerows({**each, "value": value} for each, value in zip(params, values, strict=True))


@pytest.mark.slow
@given(st.one_of(spaces, st.just(CONDITIONAL)), st.integers(0, 10_000), st.lists(st.floats(), min_size=5, max_size=5))
@settings(max_examples=100)
def test_what_is_written_is_read(tmp_path_factory, space, seed, values):
    for parameter in space.parameters.values():
        choices = [str(choice) for choice in getattr(parameter, "choices", [])]
        assume(len(set(choices)) == len(choices))
        assume(all(text.isprintable() or text in "\n\t" for text in choices))
    params = space.decode(space.points.sample(5, torch.Generator().manual_seed(seed)))
    path = tmp_path_factory.mktemp("csv") / "earlier.csv"
    write(path, space, params, values)
    study = Study(space)
    study.add_csv(path)
    assert [trial.params for trial in study.trials] == params
    for trial, value in zip(study.trials, values, strict=True):
        assert trial.value == (value if math.isfinite(value) else None)


@pytest.mark.parametrize(
    ("row", "params"),
    [
        ('True,0.001,"a,b",1', {"b": True, "f": 0.001, "s": "a,b"}),
        ("false,1e-2,none,1", {"b": False, "f": 0.01, "s": "none"}),
        (",1.0,,1", {"b": None, "f": 1, "s": None}),
        ('NaN,1,"say ""x""\n",1', {"b": None, "f": 1, "s": 'say "x"\n'}),
    ],
)
def test_choices_are_recognised_by_how_they_are_written(tmp_path, row, params):
    study = Study(WRITTEN)
    study.add_csv(written(tmp_path, f"b,f,s,value\n{row}\n"))
    assert study.trials[0].params == params
    assert [type(value) for value in study.trials[0].params.values()] == [type(value) for value in params.values()]


def test_a_frame_comes_back(tmp_path):
    study = Study(CONDITIONAL, seed=1, journal=tmp_path / "a.jsonl")
    for trial in study.ask(6):
        study.tell(trial, None if trial.id == 2 else trial.id, failed=trial.id == 2)
    study.ask()
    study.to_frame().to_csv(tmp_path / "earlier.csv")
    again = Study(CONDITIONAL, direction="maximize", journal=tmp_path / "b.jsonl")
    again.add_csv(tmp_path / "earlier.csv")
    assert again.trials == study.trials[:6]  # the pending one is no result
    assert [trial.status for trial in again.trials][2] is Status.FAILED
    assert again.best_trial.value == 5
    again.close()
    assert Study.load(tmp_path / "b.jsonl").trials == again.trials


def test_only_the_named_columns_count(tmp_path):
    path = written(tmp_path, "\ufeffnote,loss,k,x\r\n\r\nfirst,0.5,2.0,0.25\r\n,,1,1\r\n")
    (read,) = read_csv(path, PLANE, value="loss")
    assert read.columns == {"x": [0.25, 1.0], "k": [2.0, 1.0]}
    assert read.values[0] == 0.5
    assert math.isnan(read.values[1])
    assert (read.constraints, read.budgets, read.noise, read.task) == (None, None, None, None)


def in_turn(study, tmp_path, **settings):
    """A new study that is given the frame of another by a file."""
    study.to_frame().to_csv(tmp_path / "frame.csv", index=False)
    again = Study(study.space, **settings)
    again.add_csv(tmp_path / "frame.csv")
    return again


def test_constraints_and_noise_come_back(tmp_path):
    study = Study(PLANE, seed=1)
    for trial in study.ask(6):
        constraints = (0.5 - trial.params["x"], -1.0) if trial.id else ()
        study.tell(trial, Outcome(trial.params["x"], constraints=constraints, noise=0.1 if trial.id % 2 else None))
    again = in_turn(study, tmp_path)
    assert again.best_trial.params == study.best_trial.params
    assert torch.equal(again.observations.constraints.nan_to_num(7), study.observations.constraints.nan_to_num(7))
    assert torch.equal(again.observations.noise.nan_to_num(7), study.observations.noise.nan_to_num(7))


def test_several_objectives_come_back(tmp_path):
    study = Study(PLANE, directions=["minimize", "maximize"], seed=1)
    for trial in study.ask(5):
        study.tell(trial, [trial.params["x"], trial.params["k"]])
    again = in_turn(study, tmp_path, directions=["minimize", "maximize"])
    assert [trial.values for trial in again.trials] == [trial.values for trial in study.trials]


def test_budgets_come_back_and_need_a_study_with_budgets(tmp_path):
    study = Study(PLANE, seed=1, budget=EPOCHS)
    run(study, 12, lambda params, trial: params["x"] + 1 / trial.budget)
    again = in_turn(study, tmp_path, budget=EPOCHS)
    assert [trial.budget for trial in again.trials] == [trial.budget for trial in study.trials]
    assert again.best_trial.budget == study.best_trial.budget > 1
    with pytest.raises(TableError, match=r"several budgets \(1, 3.*\), but the study has none"):
        Study(PLANE).add_csv(tmp_path / "frame.csv")


def test_rows_of_earlier_tasks_stay_theirs(tmp_path):
    study = Study(PLANE, seed=1)
    study.add({"x": [0.0, 0.5], "k": [1, 2]}, [-200.0, -100.0], task="last year")
    study.tell(study.ask()[0], 1.0)
    again = in_turn(study, tmp_path)
    assert again.best_trial.value == 1
    assert [trial.task for trial in again.trials] == ["last year", "last year", None]
    as_a_task = Study(PLANE)
    as_a_task.add_csv(tmp_path / "frame.csv", task="today")
    assert [trial.task for trial in as_a_task.trials] == ["last year", "last year", "today"]


def test_parameters_with_names_of_ours_keep_them(tmp_path):
    names = ("id", "value", "status", "budget", "noise", "constraint_0")
    study = Study(SearchSpace({name: Real(1, 2) for name in names}), seed=0)
    study.tell(study.ask()[0], 1.0, noise=0.5, constraints=[-1.0])
    study.ask()
    frame = study.to_frame()
    assert frame.columns.is_unique
    for trial in study.trials:
        assert frame[list(names)].iloc[trial.id].to_dict() == trial.params
    assert frame["id_"].tolist() == [0, 1]
    assert frame["status_"].tolist() == ["complete", "pending"]
    frame.to_csv(tmp_path / "frame.csv", index=False)
    again = Study(study.space)
    again.add_csv(tmp_path / "frame.csv", value="value_")
    (trial,) = again.trials  # the pending one is no result
    assert (trial.params, trial.value, trial.noise, trial.constraints) == (study.trials[0].params, 1.0, 0.5, (-1.0,))


def test_an_inactive_parameter_may_hold_anything(tmp_path):
    path = written(tmp_path, "opt,momentum,nesterov,boost,beta,value\nadam,high,?,7,0.9,1\n")
    study = Study(CONDITIONAL)
    study.add_csv(path)
    assert study.trials[0].params == {"opt": "adam", "beta": 0.9}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "x,k,value\n0,1,1\n0,two,1\n",
            r"line 3 of .*earlier\.csv, column 'k': a value must be a number, but got 'two'",
        ),
        ("x,k,value\n0,1,1\n,2,1\n", "line 3 .* column 'x': a value must be a number, but got ''"),
        ("x,k,value\n0,1,1\n0,2.5,1\n", "line 3 .* column 'k': values must be whole numbers, but got 2.5"),
        ("x,k,value\n0,1,1\n7,2,1\n", r"line 3 .* column 'x': values must lie in \[-1, 1\], but got 7"),
        ("x,k,value\n0,1,good\n", "line 2 .* column 'value': a value must be a number, but got 'good'"),
        ('x,k,value\n0,1,"\n"\n0,9,1\n', r"line 4 .* column 'k': values must lie in \[1, 8\]"),
        ("x,k,value\n0,1\n", "line 2 .* must have 3 cells as the header, not 2"),
        ("x,k\n0,1\n", r"must have one column 'value', but its header is \['x', 'k'\]"),
        ("x,x,k,value\n0,0,1,1\n", "must have one column 'x'"),
        ("", "must begin with a header"),
    ],
)
def test_what_is_wrong_is_named_with_line_and_column(tmp_path, text, says):
    study = Study(PLANE)
    with pytest.raises(TableError, match=says):
        study.add_csv(written(tmp_path, text))
    assert not study.trials


def test_files_and_spaces_that_make_no_table_are_refused(tmp_path):
    with pytest.raises(TableError, match=r"nowhere\.csv can't be read"):
        Study(PLANE).add_csv(tmp_path / "nowhere.csv")
    (tmp_path / "latin.csv").write_bytes("x,k,value\n0,1,é\n".encode("latin-1"))
    with pytest.raises(TableError, match="UTF-8"):
        Study(PLANE).add_csv(tmp_path / "latin.csv")
    with pytest.raises(TableError, match="'x' is a parameter"):
        Study(PLANE).add_csv(written(tmp_path, "x,k\n0,1\n"), value="x")
    alike = SearchSpace({"c": Categorical(["1", 1]), "d": Real(0, 1, when=Condition("c", 1))})
    with pytest.raises(TableError, match=r"line 2 .* '1' may be any of \['1', 1\]"):
        Study(alike).add_csv(written(tmp_path, "c,d,value\n1,0,0\n"))
    with pytest.raises(TableError, match=r"line 2 .* among \['a,b'"):
        Study(SearchSpace({"s": WRITTEN.parameters["s"]})).add_csv(written(tmp_path, "s,value\nb,0\n"))


SPACE = SearchSpace({"x": Real(0, 1), "c": Categorical(["a", "b"]), "m": Real(0, 1, when=Condition("c", "a"))})


def reserved(n, direction="minimize"):
    observations = Observations(SPACE, direction)
    observations.reserve(SPACE.points.sample(n, torch.Generator().manual_seed(0)))
    return observations


def test_added_results_are_rows_like_others():
    observations = reserved(1, "maximize")
    columns = {"x": [0.1, 0.2, 0.3], "c": ["a", "b", "b"], "m": [0.5, None, float("nan")]}
    observations.add(columns, [1.0, float("nan"), 3.0])
    assert observations.ledger.statistics.n_failed == 1
    assert observations.trial(3).params == {"x": 0.3, "c": "b"}
    assert observations.best.value == 3.0
    assert observations.trial(2).status is Status.FAILED
    assert observations.columns.unseen(SPACE.encode([{"x": 0.3, "c": "b"}, {"x": 0.4, "c": "b"}])) == [False, True]
    with pytest.raises(PointError, match="'m'"):
        observations.add({"x": [0.1], "c": ["a"], "m": [None]}, [1.0])
    with pytest.raises(PointError, match="missing"):
        observations.add({"x": [0.1]}, [1.0])
    with pytest.raises(ShapeError, match="one value"):
        observations.add(columns, [1.0])
    assert len(observations) == 4


def test_one_configuration_is_added_without_columns():
    observations = Observations(SPACE)
    observations.add({"x": 0.5, "c": "b"}, 2)
    observations.add({"x": np.float64(0.25), "c": "a", "m": torch.tensor(0.5)}, np.float32(1.5), constraints=[1])
    assert [observations.trial(row).params for row in range(2)] == [
        {"x": 0.5, "c": "b"},
        {"x": 0.25, "c": "a", "m": 0.5},
    ]
    assert observations.values.tolist() == [[2.0], [1.5]]
    several = Observations(SPACE, ["maximize", "minimize"])
    several.add({"x": 0.5, "c": "b"}, [1, 2])
    assert several.trial(0).values == (1.0, 2.0)
    for wrong in ({"x": 0.5}, {"x": 0.5, "c": "b", "m": 0.5}, {"x": 0.5, "c": ["b"]}):
        with pytest.raises(PointError):
            observations.add(wrong, 1.0)
    for values in ([1.0, 2.0], [[1.0]], []):
        with pytest.raises((ShapeError, ValueTypeError)):
            observations.add({"x": 0.5, "c": "b"}, values)
    assert len(observations) == 2


@pytest.mark.parametrize("values", [["1"], [True], ["a"], [[1], [2]], [object()], [b"1"]])
def test_what_is_no_column_of_numbers_is_not_added(values):
    observations = Observations(SPACE)
    with pytest.raises((ValueTypeError, ShapeError)):
        observations.add({"x": [0.5], "c": ["b"], "m": [None]}, values)
    assert not len(observations)


def test_added_points_are_those_that_a_journal_gives_back():
    observations = Observations(SPACE)
    observations.add({"x": [0.1234567890123456789], "c": ["b"], "m": [None]}, [1.0])
    assert observations.points.equal(SPACE.encode([observations.trial(0).params]))


def test_nothing_is_added_without_rows():
    observations = Observations(SPACE)
    observations.add({"x": [], "c": [], "m": []}, [])
    assert not len(observations)


# regression: each of these was wrong once
def test_a_frame_of_a_parameter_named_value_comes_back_from_its_file(at_home):
    study, again = (Study(SearchSpace({"value": Real(0, 1)}), seed=0) for _ in range(2))
    for trial in study.ask(3):
        study.tell(trial, trial.params["value"] ** 2)
    study.to_frame().to_csv("results.csv", index=False)
    again.add_csv("results.csv")
    assert [(trial.params, trial.value) for trial in again.trials] == [(t.params, t.value) for t in study.trials]


@pytest.mark.parametrize("kind", [db.Categorical, db.Ordinal])
def test_a_frame_may_have_nan_for_the_choice_none(kind):
    pandas = pytest.importorskip("pandas")
    space = db.SearchSpace({"k": kind([1, None, 3]), "x": db.Real(0, 1)})
    study = db.Study(space)
    study.add(pandas.DataFrame({"k": [1, None], "x": [0.1, 0.2]}), [1, 2])
    assert [trial.params["k"] for trial in study.trials] == [1, None]
    frame = study.to_frame()
    again = db.Study(space)
    again.add(frame[["k", "x"]], frame["value"])
    assert [trial.params for trial in again.trials] == [trial.params for trial in study.trials]
    with pytest.raises(PointError, match="nan"):
        db.Study(db.SearchSpace({"k": kind([1, 3])})).add({"k": [float("nan")]}, [1.0])


ORDERED = SearchSpace({"a": Integer(1, 9), "b": Integer(1, 9)}, constraints=["a < b"])

CHOICE = Categorical(["sgd", "adam"])

BRANCHED = SearchSpace({"momentum": Real(0, 1, when={"optimizer": "sgd"}), "optimizer": CHOICE})


@pytest.mark.usefixtures("beside_branin")
@pytest.mark.parametrize(
    ("space", "rows", "says"),
    [
        (ORDERED, "a,b,value\n1,2,0.5\n5,sevn,0.7\n", r"line 3 of .*, column 'b': .*'sevn'"),
        (ORDERED, "a,b,value\n1,2,0.5\n5,12,0.7\n", r"line 3 of .*, column 'b': .*12"),
        (ORDERED, "a,b,value\n1,2,0.5\n\n5,4,0.7\n", r"line 4 of .*: the constraint 'a < b' forbids {'a': 5, 'b': 4}"),
        (BRANCHED, "optimizer,momentum,value\nsgd,.9,0.3\nAdam,,0.5\n", r"line 3 of .*, column 'optimizer': .*'Adam'"),
    ],
)
def test_what_is_wrong_with_a_table_is_said_of_its_own_cells(space, rows, says):
    Path("rows.csv").write_text(rows)
    with pytest.raises(TableError, match=says):
        Study(space).add_csv("rows.csv")


def test_an_empty_cell_is_not_guessed_at():
    choices = db.Categorical([None, ""])
    with pytest.raises(PointError, match="tell choices apart"):
        choices.read("")
    assert db.Categorical(["", "a"]).read("") == ""
    assert db.Categorical([None, "a"]).read("") is None


WIDE = SearchSpace({"x": Real(-5, 5), "y": Real(-5, 5)})


def test_a_row_of_a_frame_is_one_configuration():
    study = Study(WIDE)
    study.add(pd.DataFrame({"x": [0.1, 0.2], "y": [1.0, 2.0]}).iloc[1], 3.0)
    assert study.trials[0].params == {"x": 0.2, "y": 2.0}


def test_results_of_several_budgets_of_an_earlier_task_come_from_a_file_as_from_columns(tmp_path):
    (tmp_path / "old.csv").write_text("x,y,value,budget\n.1,.2,1,1\n.3,.4,2,9\n")
    study = Study(SQUARE)
    study.add_csv(tmp_path / "old.csv", task="old")
    assert len(study.observations) == 2
    with pytest.raises(TableError, match="several budgets"):
        Study(SQUARE).add_csv(tmp_path / "old.csv")


NINE_EPOCHS = Budget("epochs", 1, 9)


def test_a_file_is_added_whole_or_not_at_all(tmp_path):
    (tmp_path / "earlier.csv").write_text("x,value,task\n0.1,1,\n0.2,2,old\n")
    study = Study(LINE, budget=NINE_EPOCHS)
    with pytest.raises(SettingError, match="earlier tasks do not combine with budgets"):
        study.add_csv(tmp_path / "earlier.csv")
    assert len(study.trials) == 0


def test_what_several_objectives_have_written_is_read_beside_a_parameter_called_value(tmp_path):
    space = SearchSpace({"value": Real(0, 1), "y": Real(0, 1)})
    study, again = (Study(space, directions=["minimize"] * 2, seed=0) for _ in range(2))
    for trial in study.ask(3):
        study.tell(trial, [1, 2])
    study.to_frame().to_csv(tmp_path / "told.csv", index=False)
    again.add_csv(tmp_path / "told.csv")
    assert [trial.values for trial in again.trials] == [(1, 2)] * 3


BRANCHES = SearchSpace({"x": Real(0, 1), "o": Categorical(["a", "b"]), "m": Real(0, 0.99, when=Condition("o", "a"))})


@pytest.mark.parametrize("nothing", [None, float("nan")])
def test_a_row_of_a_frame_is_one_configuration_whatever_it_has_for_inactive_parameters(nothing):
    study = Study(BRANCHES, seed=0)
    study.add({"x": 0.1, "o": "b", "m": nothing}, 1.0)
    study.enqueue({"x": 0.2, "o": "b", "m": nothing})
    (trial,) = study.ask()
    assert trial.params == {"x": 0.2, "o": "b"}
    with pytest.raises(PointError, match="every active parameter needs a value"):
        study.add({"x": 0.1, "o": "a", "m": nothing}, 1.0)
    with pytest.raises(PointError, match="inactive parameters must be left out"):
        study.add({"x": 0.1, "o": "b", "m": 0.5}, 1.0)


def test_a_frame_of_a_conditional_space_comes_back_row_by_row():
    study, again = Study(BRANCHES, seed=0), Study(BRANCHES)
    for trial in study.ask(6):
        study.tell(trial, trial.params["x"])
    frame = study.to_frame()
    for _, row in frame.iterrows():
        again.add(row[BRANCHES.names], row["value"])
    assert [trial.params for trial in again.trials] == [trial.params for trial in study.trials]


def test_objectives_have_columns_of_their_names(tmp_path):
    directions = {"loss": "minimize", "size": "maximize", "status": "minimize"}
    space = {"x": Real(0, 1), "loss": Real(0, 1)}  # of the same name as an objective
    study = Study(space, directions=directions)
    for trial in study.ask(3):
        study.tell(trial, Outcome({"loss": trial.params["x"], "size": 2, "status": 5}, constraints=[-1]))
    frame = study.to_frame()
    assert frame[["loss_", "size", "status"]].to_numpy().tolist() == [[*trial.values] for trial in study.trials]
    assert set(frame["status_"]) == {"complete"}
    frame.to_csv(tmp_path / "own.csv", index=False)
    general = {"loss_": "value_0", "size": "value_1", "status": "value_2", "status_": "status"}
    frame.rename(columns=general).to_csv(tmp_path / "general.csv", index=False)
    for name in ("own.csv", "general.csv"):
        other = Study(space, directions=directions)
        other.add_csv(tmp_path / name)
        assert [each.values for each in other.trials] == [each.values for each in study.trials]
        assert [each.constraints for each in other.trials] == [(-1,)] * 3
    one = Study({"x": Real(0, 1)}, directions={"accuracy": "maximize"})
    one.add({"x": [0.1]}, [0.9])
    assert one.to_frame()["accuracy"].tolist() == [0.9]


def test_a_file_without_a_column_for_a_parameter_has_its_default(tmp_path):
    path = written(tmp_path, "x,value\n0.5,1\n-0.5,\n")
    study = Study(PLANE)
    with pytest.raises(TableError, match="must have one column 'k'"):
        study.add_csv(path)
    study.add_csv(path, defaults={"k": 3, "x": 9})  # x has a column
    assert [trial.params for trial in study.trials] == [{"x": 0.5, "k": 3}, {"x": -0.5, "k": 3}]
    for wrong, says in (({"k": 99}, "parameter 'k'"), ({"m": 1}, "defaults are values by names"), (3, "but got 3")):
        with pytest.raises(PointError, match=says):
            study.add_csv(path, defaults=wrong)
    assert len(study.trials) == 2
