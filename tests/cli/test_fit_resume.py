"""`deepbore fit --resume`: settings behind it count from then on; and what is refused before there is a run."""

import contextlib
import json
import sys
from pathlib import Path

import pytest
import yaml

from deepbore import SearchSpace, Study
from deepbore.cli.config import load_yaml
from deepbore.cli.main import main
from deepbore.data.runs import Run

BRANIN = """
problem: {class_path: deepbore.problems.Branin}
loop: {n_trials: 3}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder with a configuration."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "branin.yaml").write_text(BRANIN)
    return tmp_path


def fit(*args):
    return main(["fit", *map(str, args)])


def test_settings_behind_resume_stay(here):
    assert fit("--config", "branin.yaml", "--run", "mine") == 0
    assert Run(here / "mine").state == "finished"
    assert fit("--resume", "mine", "--loop.n_trials", 5, "--trainer.max_epochs", 1) == 0  # ends before the fifth
    config = yaml.safe_load((here / "mine" / "config.yaml").read_text())
    assert config["loop"]["n_trials"] == 5
    begun = len(Study.load(here / "mine" / "journal.jsonl").trials)
    assert fit("--resume", "mine", "--trainer.max_epochs", -1) == 0
    assert begun <= len(Study.load(here / "mine" / "journal.jsonl").trials) == 5


def test_other_earlier_results_behind_resume_are_added_once(here, capsys):
    for name, x in (("one", 1), ("other", 2)):
        (here / f"{name}.csv").write_text(f"x0,x1,value\n{x},{x},{-x}\n")
    assert fit("--config", "branin.yaml", "--run", "mine", "--warm_start", "one.csv") == 0
    for n_trials in (4, 5):
        assert fit("--resume", "mine", "--loop.n_trials", n_trials, "--warm_start", "other.csv") == 0
    study = Study.load(here / "mine" / "journal.jsonl")
    assert [trial.value for trial in study.trials if trial.value < 0] == [-1, -2]
    assert study.observations.ledger.n_asked == 5


def test_a_run_goes_on_as_it_began_and_the_error_says_what_differs(here, capsys):
    assert fit("--config", "branin.yaml", "--run", "my run") == 0
    assert "`deepbore plot 'my run'` draws it" in capsys.readouterr().out
    config = (here / "my run" / "config.yaml").read_text()
    assert fit("--resume", "my run", "--loop.seed", 5) == 2
    assert "loop.seed was 0, not 5. Leave it as it was, or begin a new run" in capsys.readouterr().err
    assert (here / "my run" / "config.yaml").read_text() == config
    assert fit("--config", "branin.yaml", "--run", "my run") == 2
    assert "Go on with deepbore fit --resume 'my run', or name another" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setting", "value"),
    [("gradient_clip_val", 1), ("accumulate_grad_batches", 4), ("precision", 16), ("limit_train_batches", 0)],
)
def test_settings_of_steps_are_refused_before_there_is_a_directory(here, capsys, setting, value):
    assert fit("--config", "branin.yaml", "--run", "mine", f"--trainer.{setting}", value) == 2
    assert f"so trainer.{setting} does nothing for KernelPLS, but got" in capsys.readouterr().err
    assert not (here / "mine").exists()


def test_a_refused_process_leaves_a_run_that_goes_on_as_it_is(here, capsys):
    assert fit("--config", "branin.yaml", "--run", "mine", "--loop.n_initial", 1) == 0
    before = {path.name: path.read_bytes() for path in (here / "mine").iterdir()}
    study = Study.load(here / "mine" / "journal.jsonl")  # as if another process wrote it
    study.ask()
    written = (here / "mine" / "journal.jsonl").read_bytes()
    assert fit("--resume", "mine", "--loop.n_trials", 9, "--loop.batch_size", 7) == 2
    assert "writes the journal" in capsys.readouterr().err
    assert (here / "mine" / "journal.jsonl").read_bytes() == written
    for name in ("config.yaml", "metrics.csv"):
        assert (here / "mine" / name).read_bytes() == before[name]
    assert not list((here / "mine").glob("metrics-*"))
    study.close()


def test_tasks_that_a_file_names_are_added_once(here):
    (here / "tasks.csv").write_text("x0,x1,value,task\n1,1,3,old\n2,2,4,old\n3,3,5,\n")
    assert fit("--config", "branin.yaml", "--run", "mine", "--earlier_tasks.new", "tasks.csv") == 0
    for n_trials in (4, 5):
        assert fit("--resume", "mine", "--loop.n_trials", n_trials) == 0
    observations = Study.load(here / "mine" / "journal.jsonl").observations
    assert observations.ledger.task_names == ("old", "new")
    assert observations.ledger.statistics.n_earlier == 3
    (here / "tasks.csv").unlink()
    assert fit("--resume", "mine", "--loop.n_trials", 6) == 0  # its rows are in the journal


def test_what_a_kill_left_out_of_earlier_results_is_added(here):
    (here / "known.csv").write_text("x0,x1,value,task\n1,1,3,\n2,2,4,old\n")
    assert fit("--config", "branin.yaml", "--run", "mine", "--warm_start", "known.csv") == 0
    journal = here / "mine" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:2]))  # "created", and the rows of this run
    assert fit("--resume", "mine") == 0
    observations = Study.load(journal).observations
    assert (observations.ledger.task_names, observations.ledger.statistics.n_earlier, len(observations)) == (
        ("old",),
        1,
        5,
    )


def test_what_stands_beside_resume_in_vain_is_refused(here, capsys):
    assert fit("--config", "branin.yaml", "--run", "mine") == 0
    for beside in (["--run", "other"], ["--run=other"], ["--resume", "mine"]):
        assert fit("--resume", "mine", *beside) == 2
        assert f"beside --resume stands {beside[0]}. Leave it out" in capsys.readouterr().err
    assert fit("--resume") == 2
    assert "none is named" in capsys.readouterr().err
    assert not (here / "other").exists()


TWO = """
from deepbore import Outcome, Real, SearchSpace
from deepbore.problems import Problem

class Two(Problem):
    directions = ("minimize", "minimize")
    space = SearchSpace({"x": Real(0, 1)})

    def __call__(self, params):
        return Outcome([params["x"], 1 - params["x"]])

def alone(params):
    return params["x"]

def infeasible(params):
    return Outcome(params["x"], constraints=[1.0])
"""

FUNCTION = """
problem: {class_path: deepbore.problems.FunctionProblem, init_args: {function: my_problems.NAME, space: SPACE}}
loop: {n_trials: 3}
"""


@pytest.fixture
def theirs(here, monkeypatch):
    """The folder with a module of the user's own."""
    monkeypatch.syspath_prepend(here)
    monkeypatch.delitem(sys.modules, "my_problems", raising=False)
    (here / "my_problems.py").write_text(TWO)
    return here


def configured(here, name, space="{x: {type: real, low: 0, high: 1}}"):
    (here / "own.yaml").write_text(FUNCTION.replace("NAME", name).replace("SPACE", space))
    return ["--config", "own.yaml", "--run", "mine"]


def test_a_rule_that_cannot_be_is_refused_before_there_is_a_directory(theirs, capsys):
    rule = "[{class_path: deepbore.study.NoImprovement, init_args: {trials: 5}}]"
    assert fit("--problem", "my_problems.Two", "--run", "mine", "--loop.stop_when", rule) == 2
    assert "NoImprovement needs one objective" in capsys.readouterr().err
    assert not (theirs / "mine").exists()
    assert fit("--problem", "my_problems.Two", "--run", "mine", "--loop.n_trials", 2) == 0
    assert "no single best trial" not in capsys.readouterr().err


def test_a_budget_of_which_the_function_never_hears_is_refused(theirs, capsys):
    budget = "{unit: epochs, low: 1, high: 9}"
    assert fit(*configured(theirs, "alone"), "--loop.budget", budget) == 2
    assert "Define it as objective(params, trial)" in capsys.readouterr().err
    assert not (theirs / "mine").exists()


def test_early_stopping_waits_for_a_first_feasible_value(theirs):
    stopping = ["--trainer.callbacks", "EarlyStopping", "--trainer.callbacks.monitor", "best_value"]
    patient = [*stopping, "--trainer.callbacks.patience", 4]
    assert fit(*configured(theirs, "infeasible"), "--loop.n_initial", 3, "--loop.n_trials", 12, *patient) == 0
    assert Study.load(theirs / "mine" / "journal.jsonl").observations.ledger.n_asked == 3 + 4


TEXTS = ["16", "1e3", "1_0", "null", "~", "true", "on", "12:30", "010", "a: b", "[1, 2]", "", " x", "2020-01-01"]


def test_texts_of_a_configuration_stay_texts(theirs, capsys):
    choices = [*TEXTS, 3, 0.5, True, None]
    space = f"{{x: {{type: real, low: 0, high: 1}}, c: {{type: categorical, choices: {json.dumps(choices)}}}}}"
    assert fit(*configured(theirs, "alone", space)) == 0
    kept = SearchSpace.from_dict(Run(theirs / "mine").record.header["space"])
    assert list(kept.parameters["c"].choices) == choices
    assert fit("--resume", "mine", "--loop.n_trials", 4) == 0
    assert fit("--config", "mine/config.yaml", "--run", "again") == 0
    assert Run(theirs / "again").record.header["space"] == Run(theirs / "mine").record.header["space"]
    capsys.readouterr()
    with contextlib.suppress(SystemExit):
        fit("--config", "own.yaml", "--print_config")
    shown = load_yaml(capsys.readouterr().out)
    assert shown["problem"]["init_args"]["space"]["c"]["choices"] == choices


def test_a_file_is_no_run_directory(here, capsys):
    assert fit("--config", "branin.yaml", "--run", "branin.yaml") == 2
    assert "branin.yaml can't be the directory of a run" in capsys.readouterr().err
    assert (here / "branin.yaml").read_text() == BRANIN


MINE = """
problem:
  class_path: deepbore.problems.FunctionProblem
  init_args:
    function: mine.objective
    space: {x: {type: real, low: 0, high: 1}}
loop: {n_trials: 3}
"""


# regression: each of these was wrong once
@pytest.mark.usefixtures("beside_branin")
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


def run_here(*args):
    return main([*map(str, args)])


def rows(*values, header="x0,x1,value", rest=""):
    """A CSV file of so many results."""
    return "\n".join([header, *(f"{k},{k},{value}{rest}" for k, value in enumerate(values))]) + "\n"


def test_earlier_results_that_are_refused_leave_a_resumed_run_as_it_was(empty_folder, capsys):
    Path("g.yaml").write_text(BRANIN)
    assert run_here("fit", "--config", "g.yaml", "--run", "r") == 0
    Path("good.csv").write_text(rows(1.5, 2.5))
    Path("bad.csv").write_text(rows(3.5, header="x0,x1,value,noise", rest=",-2"))
    before = Path("r/journal.jsonl").read_bytes()
    command = ["fit", "--resume", "r", "--loop.n_trials", 5, "--warm_start", "good.csv", "--earlier_tasks.a", "bad.csv"]
    assert run_here(*command) == 2
    assert "bad.csv: a noise is a standard deviation" in capsys.readouterr().err
    assert Path("r/journal.jsonl").read_bytes() == before
    Path("bad.csv").write_text(rows(3.5))
    assert run_here(*command) == 0
    values = [trial.value for trial in Study.load("r/journal.jsonl").trials]
    assert [values.count(value) for value in (1.5, 2.5, 3.5)] == [1, 1, 1]
    assert len(values) == 5 + 3


ONE, TWO_OBJECTIVES = "x0,x1,value,constraint_0", "x0,x1,value,constraint_0,constraint_1"


@pytest.mark.parametrize(
    ("good", "bad", "says"),
    [
        (rows(2, 3), rows(1, header="x0,x1,value,noise", rest=",-2"), "a noise is a standard deviation"),
        (
            rows(2, 3, header=ONE, rest=",0"),
            rows(1, header=TWO_OBJECTIVES, rest=",0,0"),
            "the number of constraints must be 1",
        ),
    ],
    ids=["a noise below 0", "constraints of another number"],
)
def test_earlier_results_that_are_refused_leave_no_run(empty_folder, capsys, good, bad, says):
    Path("g.yaml").write_text(BRANIN)
    Path("good.csv").write_text(good)
    Path("other.csv").write_text(bad)
    command = ["fit", "--config", "g.yaml", "--run", "r", "--warm_start", "good.csv", "--earlier_tasks.a", "other.csv"]
    assert run_here(*command) == 2
    assert f"other.csv: {says}" in capsys.readouterr().err
    assert not Path("r").exists()
    Path("good.csv").write_text(rows(2, 3))
    Path("other.csv").write_text(rows(1))
    assert run_here(*command) == 0
    assert len(Study.load("r/journal.jsonl").trials) == 2 + 1 + 3


def test_earlier_results_of_no_rung_leave_no_run(empty_folder, capsys):
    problem = "problem: {class_path: deepbore.problems.LearningCurves, init_args: {name: digits}}"
    Path("g.yaml").write_text(f"{problem}\nloop: {{n_trials: 3, budget: {{unit: epochs, low: 1, high: 81}}}}\n")
    assert run_here("fit", "--config", "g.yaml", "--run", "first") == 0
    frame = Study.load("first/journal.jsonl").to_frame()
    frame.assign(budget=5).to_csv("earlier.csv", index=False)
    command = ["fit", "--config", "g.yaml", "--run", "r", "--warm_start", "earlier.csv"]
    assert run_here(*command) == 2
    assert "earlier.csv: a budget must be one of 1, 3, 9, 27, 81 epochs, but got 5" in capsys.readouterr().err
    assert not Path("r").exists()
    frame.to_csv("earlier.csv", index=False)
    assert run_here(*command) == 0
