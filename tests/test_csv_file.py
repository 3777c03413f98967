"""Earlier results from CSV files."""

import csv
import math

import pytest
import torch
from hypothesis import assume, given, settings, strategies as st

from deepbore import Categorical, Condition, Integer, Ordinal, Outcome, Real, SearchSpace, Study
from deepbore.data.imported import read_csv
from deepbore.data.observations import Status
from deepbore.errors import TableError
from rungs import EPOCHS, run
from test_space import CONDITIONAL, spaces

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
    params = space.decode(space.sample(5, torch.Generator().manual_seed(seed)))
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
        study.tell(trial, trial.id, failed=trial.id == 2)
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
