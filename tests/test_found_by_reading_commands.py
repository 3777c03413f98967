"""Commands and files at their edges: defects that using them has found."""

import os
import threading
from pathlib import Path

import pytest
import yaml

from commands import BRANIN
from deepbore import Categorical, Integer, Real, SearchSpace, Study
from deepbore.cli.config import load_yaml
from deepbore.cli.main import main
from deepbore.cli.run_directory import leave_unused, new_run
from deepbore.errors import TableError

MINE = """
problem:
  class_path: deepbore.problems.FunctionProblem
  init_args:
    function: mine.objective
    space: {x: {type: real, low: 0, high: 1}}
loop: {n_trials: 3}
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DEEPBORE_RUN", raising=False)
    Path("branin.yaml").write_text(BRANIN)


# --- directories of runs ---------------------------------------------------------------------------------------------


def test_runs_that_begin_together_have_a_directory_each():
    begun = threading.Barrier(8)
    found = []

    def begins():
        begun.wait()
        found.append(new_run("tune"))

    threads = [threading.Thread(target=begins) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(path.name for path in found) == [f"tune-{k}" for k in range(1, 9)]


def test_a_run_that_is_refused_leaves_no_directory():
    assert main(["fit", "--config", "branin.yaml", "--loop.n_trials", "null"]) == 2
    assert not Path("runs").exists()
    assert main(["fit", "--config", "branin.yaml", "--loop.n_trials", "null"]) == 2  # in one process, too
    assert not Path("runs").exists()
    with leave_unused():
        (new_run("branin") / "config.yaml").touch()
    assert Path("runs/branin-1/config.yaml").exists()


def test_a_configuration_of_ones_own_is_not_replaced(capsys):
    Path("mine").mkdir()
    Path("mine/config.yaml").write_text("# my own settings" + BRANIN)
    assert main(["fit", "--config", "mine/config.yaml", "--run", "mine"]) == 2
    assert "config.yaml of yours" in capsys.readouterr().err
    assert Path("mine/config.yaml").read_text() == "# my own settings" + BRANIN
    assert os.listdir("mine") == ["config.yaml"]


# --- YAML ------------------------------------------------------------------------------------------------------------


def test_ratios_are_words_and_a_0_in_front_changes_nothing():
    assert load_yaml("[1:1, 4:3, 16:9, 08, 010, -0x1F, 0o17]") == ["1:1", "4:3", "16:9", 8, 10, -31, 15]


def test_a_key_that_stands_twice_is_refused(capsys):
    with pytest.raises(yaml.YAMLError, match="'lr' stands more than once"):
        load_yaml("{lr: 1, lr: 2}")
    assert load_yaml("{one: &one {x: 1}, other: {<<: *one, x: 2}}")["other"] == {"x": 2}
    chained = "{a: &a {x: 1}, in: {b: &b {<<: *a, x: 2}}, c: {<<: *b}}"  # b is constructed after c has merged it
    assert load_yaml(chained)["in"] == {"b": {"x": 2}}
    Path("twice.yaml").write_text(BRANIN + "\nloop: {n_trials: 3}\n")
    assert main(["fit", "--config", "twice.yaml"]) == 2
    assert "'loop' stands more than once" in capsys.readouterr().err


# --- earlier results -------------------------------------------------------------------------------------------------

ORDERED = SearchSpace({"a": Integer(1, 9), "b": Integer(1, 9)}, constraints=["a < b"])
CHOICE = Categorical(["sgd", "adam"])
BRANCHED = SearchSpace({"momentum": Real(0, 1, when={"optimizer": "sgd"}), "optimizer": CHOICE})


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


def test_a_run_goes_on_without_the_file_that_it_has_learned(monkeypatch):
    Path("mine.py").write_text("def objective(params): return params['x']")
    monkeypatch.syspath_prepend(".")
    Path("mine.yaml").write_text(MINE)
    Path("known.csv").write_text("x,value\n0.5,0.5\n0.7,0.7\n")
    assert main(["fit", "--config", "mine.yaml", "--run", "run", "--warm_start", "known.csv"]) == 0
    assert main(["fit", "--resume", "run", "--loop.n_trials", "4", "--warm_start", "./known.csv"]) == 0
    Path("known.csv").write_text("another,table\n1,2\n")
    assert main(["fit", "--resume", "run", "--loop.n_trials", "5"]) == 0
    assert len(Study.load("run/journal.jsonl").trials) == 2 + 5


# --- mistakes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("option", "path"), [("--script", "nope.py"), ("--config", "nope.yaml")])
def test_a_program_that_is_not_there_is_said_to_be_missing(option, path, capsys):
    Path("train.py").touch()
    Path("space.yaml").write_text("model.lr: {type: real, low: 0, high: 1}")
    assert main(["tune", "--space", "space.yaml", "--metric", "val_loss", option, path, "--n_trials", "1"]) == 2
    assert f"must be files, but {path} is none here" in capsys.readouterr().err
    assert not Path("runs").exists()


def test_a_command_that_nothing_would_end_is_refused(capsys):
    assert main(["fit", "--config", "branin.yaml", "--loop.n_trials", "null"]) == 2
    assert "n_trials=None needs something else that ends the run" in capsys.readouterr().err
    limited = ["--loop.n_trials", "null", "--loop.n_initial", "2", "--trainer.max_epochs", "1"]
    assert main(["fit", "--config", "branin.yaml", *limited]) == 0
