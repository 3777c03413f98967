"""What commands and integrations promise of what comes up rarely."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import accuracy_score, f1_score
from sklearn.tree import DecisionTreeClassifier
from torch import nn

import deepbore as db
from deepbore import Budget, DistributedStudy, Integer, MLPClassifier, Outcome, Real, SearchSpace, Study, plots
from deepbore.cli.main import main
from deepbore.compute.distributed import Ranks
from deepbore.data.record import read_record
from deepbore.errors import SettingError
from deepbore.integrations.sklearn import DeepBoreSearchCV
from deepbore.plots.page.history_chart import history_section
from deepbore.problems import LightningCLIProblem
from thread_ranks import on_ranks

LINE = SearchSpace({"x": Real(0, 1)})


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def deepbore(*args):
    return main([*map(str, args)])


def net():
    """A function that makes a network, itself made anew, as in each process: it has another address in memory."""

    def network(features, outputs):
        return nn.Linear(features, outputs)

    return network


# --- searches of scikit-learn ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scoring", [["accuracy", "f1_macro"], ("accuracy", "f1_macro"), {"accuracy": "accuracy", "f1": "f1_macro"}]
)
def test_several_scores_without_one_that_counts_are_refused_before_any_fit(scoring):
    fitted = []

    class Tree(DecisionTreeClassifier):
        def fit(self, *args, **settings):
            fitted.append(self.max_depth)
            return super().fit(*args, **settings)

    search = DeepBoreSearchCV(Tree(), {"max_depth": Integer(1, 8)}, n_iter=2, scoring=scoring, refit=False, cv=2)
    with pytest.raises(SettingError, match="refit must name the one to maximise, but got refit=False"):
        search.fit(*load_iris(return_X_y=True))
    assert fitted == []


def test_a_function_may_return_several_scores():
    def scores(tree, x, y):
        return {"accuracy": accuracy_score(y, tree.predict(x)), "f1": f1_score(y, tree.predict(x), average="macro")}

    tree = DecisionTreeClassifier(random_state=0)
    search = DeepBoreSearchCV(tree, {"max_depth": Integer(1, 8)}, n_iter=3, scoring=scores, refit="f1", cv=2)
    assert search.fit(*load_iris(return_X_y=True)).best_score_ == search.study_.best_trial.value


# --- the best of a run without a budget ------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_without_a_budget_all_speak_of_the_same_best_whatever_outcomes_say_of_theirs(here, capsys, direction):
    study = Study(LINE, journal="run.jsonl", direction=direction)
    sign = 1 if direction == "minimize" else -1
    for trial, value, budget in zip(study.ask(3), [1.0, 5.0, 7.0], [1, 9, 3], strict=True):
        study.tell(trial, Outcome(sign * value, budget=budget))
    assert study.best_trial.value == sign
    assert deepbore("compare", "run.jsonl") == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["run", "1", "3", str(sign)]
    record = read_record(Path("run.jsonl"))
    for run in (study, record):
        (line,) = (each for each in plots.history(run).axes[0].lines if each.get_label() == "best so far")
        assert line.get_ydata().tolist() == [sign] * 3
    (steps,) = (trace for trace in history_section(record).charts[0].data if trace["name"] == "best so far")
    assert set(steps["y"]) == {sign}


# --- functions as settings -------------------------------------------------------------------------------------------


def on_two_ranks(task, monkeypatch):
    """What task(rank) returns on each of two ranks, whose suggesters find each other."""
    own = threading.local()
    monkeypatch.setattr(Ranks, "found", classmethod(lambda _: own.ranks))

    def run(ranks):
        own.ranks = ranks
        return task(ranks.rank)

    return on_ranks(run)


def test_ranks_may_have_a_network_of_the_user_s_own(monkeypatch):
    def task(_rank):
        suggester = DistributedStudy(LINE, classifier=MLPClassifier(network=net()), seed=1)
        return [trial.params for trial in suggester.ask(2)]

    one, other = on_two_ranks(task, monkeypatch)
    assert one == other


def test_ranks_with_other_parts_are_told_which(monkeypatch):
    def task(rank):
        with pytest.raises(SettingError) as refused:
            DistributedStudy(
                LINE, classifier=MLPClassifier(network=net(), activation=("relu", "tanh")[rank]), n_initial=5 + rank
            )
        return str(refused.value)

    one, other = on_two_ranks(task, monkeypatch)
    assert one == other
    assert "on rank 1, unlike 0, classifier is MLPClassifier(" in one
    assert "n_initial is 6, not 5" in one
    assert "labels" not in one


def test_seeds_of_a_run_with_a_function_among_its_parts_stand_together(here, capsys):
    for seed in range(2):
        study = Study(LINE, classifier=MLPClassifier(network=net()), seed=seed, journal=f"mine-{seed}.jsonl")
        study.tell(*study.ask(), 1.0)
    study = Study(LINE, classifier=MLPClassifier(network=net(), activation="tanh"), journal="mine-2.jsonl")
    study.tell(*study.ask(), 2.0)
    study.close()
    assert deepbore("compare", *sorted(here.glob("*.jsonl"))) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["mine-0", "and", "1", "more", "2", "1", "1", "1", "1"] in rows, rows


# --- earlier results that are refused --------------------------------------------------------------------------------

BRANIN = """
problem: {class_path: deepbore.problems.Branin}
loop: {n_trials: 3}
"""


def rows(*values, header="x0,x1,value", rest=""):
    """A CSV file of so many results."""
    return "\n".join([header, *(f"{k},{k},{value}{rest}" for k, value in enumerate(values))]) + "\n"


def test_earlier_results_that_are_refused_leave_a_resumed_run_as_it_was(here, capsys):
    Path("g.yaml").write_text(BRANIN)
    assert deepbore("fit", "--config", "g.yaml", "--run", "r") == 0
    Path("good.csv").write_text(rows(1.5, 2.5))
    Path("bad.csv").write_text(rows(3.5, header="x0,x1,value,noise", rest=",-2"))
    before = Path("r/journal.jsonl").read_bytes()
    command = ["fit", "--resume", "r", "--loop.n_trials", 5, "--warm_start", "good.csv", "--earlier_tasks.a", "bad.csv"]
    assert deepbore(*command) == 2
    assert "bad.csv: a noise is a standard deviation" in capsys.readouterr().err
    assert Path("r/journal.jsonl").read_bytes() == before
    Path("bad.csv").write_text(rows(3.5))
    assert deepbore(*command) == 0
    values = [trial.value for trial in Study.load("r/journal.jsonl").trials]
    assert [values.count(value) for value in (1.5, 2.5, 3.5)] == [1, 1, 1]
    assert len(values) == 5 + 3


ONE, TWO = "x0,x1,value,constraint_0", "x0,x1,value,constraint_0,constraint_1"


@pytest.mark.parametrize(
    ("good", "bad", "says"),
    [
        (rows(2, 3), rows(1, header="x0,x1,value,noise", rest=",-2"), "a noise is a standard deviation"),
        (rows(2, 3, header=ONE, rest=",0"), rows(1, header=TWO, rest=",0,0"), "the number of constraints must be 1"),
    ],
    ids=["a noise below 0", "constraints of another number"],
)
def test_earlier_results_that_are_refused_leave_no_run(here, capsys, good, bad, says):
    Path("g.yaml").write_text(BRANIN)
    Path("good.csv").write_text(good)
    Path("other.csv").write_text(bad)
    command = ["fit", "--config", "g.yaml", "--run", "r", "--warm_start", "good.csv", "--earlier_tasks.a", "other.csv"]
    assert deepbore(*command) == 2
    assert f"other.csv: {says}" in capsys.readouterr().err
    assert not Path("r").exists()
    Path("good.csv").write_text(rows(2, 3))
    Path("other.csv").write_text(rows(1))
    assert deepbore(*command) == 0
    assert len(Study.load("r/journal.jsonl").trials) == 2 + 1 + 3


def test_earlier_results_of_no_rung_leave_no_run(here, capsys):
    problem = "problem: {class_path: deepbore.problems.LearningCurves, init_args: {name: digits}}"
    Path("g.yaml").write_text(f"{problem}\nloop: {{n_trials: 3, budget: {{unit: epochs, low: 1, high: 81}}}}\n")
    assert deepbore("fit", "--config", "g.yaml", "--run", "first") == 0
    frame = Study.load("first/journal.jsonl").to_frame()
    frame.assign(budget=5).to_csv("earlier.csv", index=False)
    command = ["fit", "--config", "g.yaml", "--run", "r", "--warm_start", "earlier.csv"]
    assert deepbore(*command) == 2
    assert "earlier.csv: a budget must be one of 1, 3, 9, 27, 81 epochs, but got 5" in capsys.readouterr().err
    assert not Path("r").exists()
    frame.to_csv("earlier.csv", index=False)
    assert deepbore(*command) == 0


# --- budgets of a LightningCLI program -------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [{"low": 1, "high": 9, "factor": 1.5}, {"low": 0.5, "high": 9, "factor": 2}])
def test_a_program_is_given_whole_epochs_or_no_run_begins(here, capsys, budget):
    Path("train.py").write_text("")  # takes whatever it is given
    Path("space.yaml").write_text("x: {type: real, low: 0, high: 1}")
    said = "{unit: epochs, " + ", ".join(f"{name}: {value}" for name, value in budget.items()) + "}"
    assert deepbore("tune", "--space", "space.yaml", "--metric", "loss", "--run", "r", "--loop.budget", said) == 2
    assert "a program trains for whole epochs, but low=" in capsys.readouterr().err
    assert not Path("r").exists()
    problem = LightningCLIProblem(LINE, "loss")
    with pytest.raises(SettingError, match="Give whole numbers, such as low=1"):
        Study(LINE, budget=Budget("epochs", **budget)).optimize(problem, 1)


# --- sweeps of Hydra -------------------------------------------------------------------------------------------------

PROGRAM = """
import hydra

@hydra.main(version_base=None, config_path=".", config_name="base")
def main(config):
    return config.scale * config.x

main()
"""
BASE = """
scale: 1
default: 7
hydra: {sweeper: {params: {+given: "${default}"}}}
"""


def swept(*overrides):
    """The finished process of a sweep over x."""
    settings = ["hydra/sweeper=deepbore", "hydra.sweep.dir=sweep", "hydra.sweeper.n_initial=2", "+x=interval(0, 1)"]
    command = [sys.executable, "program.py", "--multirun", *settings, *overrides]
    env = os.environ | {"PYTHONPATH": str(Path(db.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
def test_a_sweep_goes_on_with_the_fixed_overrides_that_it_began_with(here):
    pytest.importorskip("hydra")
    Path("program.py").write_text(PROGRAM)
    Path("base.yaml").write_text(BASE)
    first = swept("scale=1", "hydra.sweeper.n_trials=2")
    assert first.returncode == 0, first.stderr
    kept = {name: Path("sweep", name).read_bytes() for name in ("journal.jsonl", "multirun.yaml")}
    for override, says in [
        ("scale=1000", "scale=1 was given, scale=1000 was not given"),
        ("+x=interval(0, 2)", "holds a run on another"),
    ]:
        other = swept("scale=1", override, "hydra.sweeper.n_trials=4")
        assert other.returncode == 1
        assert says in other.stderr
        assert {name: Path("sweep", name).read_bytes() for name in kept} == kept
    again = swept("scale=1", "hydra.sweeper.n_trials=3", "hydra.sweeper.batch_size=2")
    assert again.returncode == 0, again.stderr
    assert len(Study.load("sweep/journal.jsonl").trials) == 3


@pytest.mark.slow
def test_so_it_does_in_a_journal_of_its_own_and_another_folder(here):
    pytest.importorskip("hydra")
    Path("program.py").write_text(PROGRAM)
    Path("base.yaml").write_text(BASE)
    journal = "hydra.sweeper.journal=kept/run.jsonl"
    first = swept("scale=1", journal, "hydra.sweeper.n_trials=2")
    assert first.returncode == 0, first.stderr
    other = swept("scale=1000", journal, "hydra.sweep.dir=elsewhere", "hydra.sweeper.n_trials=4")
    assert other.returncode == 1
    assert "scale=1 was given, scale=1000 was not given" in other.stderr
    again = swept("scale=1", journal, "hydra.sweep.dir=elsewhere", "hydra.sweeper.n_trials=3")
    assert again.returncode == 0, again.stderr
    assert len(Study.load("kept/run.jsonl").trials) == 3


# --- where a problem goes --------------------------------------------------------------------------------------------


def test_a_run_stays_where_it_is_though_its_problem_goes_elsewhere(here):
    Path("goes.py").write_text(
        "import os, tempfile\n\ndef f(p):\n    os.chdir(tempfile.mkdtemp())\n    return p['x'] ** 2\n"
    )
    Path("run.yaml").write_text(
        "problem:\n  class_path: deepbore.problems.FunctionProblem\n  init_args:\n    function: goes.f\n"
        "    space: {x: {type: real, low: -1, high: 1}}\n"
        "loop: {n_trials: 14, n_initial: 4}\nrun: mine\n"
    )
    assert deepbore("fit", "--config", "run.yaml") == 0
    assert "best_value" in (here / "mine" / "metrics.csv").read_text()
    os.chdir(here)
    assert deepbore("fit", "--resume", "mine", "--loop.n_trials", 16) == 0
    assert len(Study.load(here / "mine" / "journal.jsonl").trials) == 16
