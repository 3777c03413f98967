"""Programs of argparse and of typer as problems: their spaces, what they lack, and that they run as they are."""

import argparse
import pickle
import subprocess
import sys
from enum import StrEnum
from typing import Annotated, Literal

import pytest

from deepbore import Categorical, Integer, Ordinal, Real, minimize
from deepbore.errors import SettingError, SpaceError
from deepbore.integrations.programs import ProgramProblem, space_of
from deepbore.problems import Problem

PROGRAM = """
import argparse

def parser():
    made = argparse.ArgumentParser()
    made.add_argument("data")
    made.add_argument("--lr", type=float, default=1e-3)
    made.add_argument("-u", "--hidden-units", type=int, default=64)
    made.add_argument("--act", choices=["relu", "tanh"], default="relu")
    made.add_argument("--batch", type=int, choices=[16, 32, 64], default=32)
    made.add_argument("--nesterov", action="store_true")
    made.add_argument("--no-bias", dest="bias", action="store_false")
    made.add_argument("--amp", action=argparse.BooleanOptionalAction, default=False)
    made.add_argument("--layers", type=int, nargs="+", default=[1])
    made.add_argument("--decay", type=lambda text: float(text), default=0.0)
    return made

def main(args):
    assert args.data == "mnist.npz" and isinstance(args.hidden_units, int) and isinstance(args.lr, float)
    assert args.batch in (16, 32, 64) and isinstance(args.nesterov, bool) and args.layers == [1]
    return abs(args.lr - 0.01) + (args.act == "relu") + args.bias + (not args.amp) + (not args.nesterov)

def of_words(argv=None):
    return main(parser().parse_args(argv))

def alone():
    return main(parser().parse_args())

if __name__ == "__main__":
    print(alone())
"""
TUNE = {
    "lr": {"low": 1e-4, "high": 1.0, "log": True},
    "hidden_units": {"low": 8, "high": 256},
    "act": None,
    "batch": {},
    "nesterov": None,
    "bias": None,
    "amp": None,
}
SPACE = {
    "lr": Real(1e-4, 1.0, log=True),
    "hidden_units": Integer(8, 256),
    "act": Categorical(["relu", "tanh"]),
    "batch": Ordinal([16, 32, 64]),
    "nesterov": Categorical([False, True]),
    "bias": Categorical([False, True]),
    "amp": Categorical([False, True]),
}
BEST = {"lr": 0.01, "hidden_units": 8, "act": "tanh", "batch": 16, "nesterov": True, "bias": False, "amp": True}
WORST = {"lr": 1.0, "hidden_units": 8, "act": "relu", "batch": 16, "nesterov": False, "bias": True, "amp": False}


@pytest.fixture
def program(tmp_path, monkeypatch):
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "program.py"


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize("run", ["main", "of_words", "alone"])
def test_an_argparse_program_runs_as_it_is(run):
    before = list(sys.argv)
    problem = ProgramProblem("program.py:parser", TUNE, f"program.py:{run}", {"data": "mnist.npz"})
    problem.prepare()
    assert problem.space.parameters == SPACE
    assert problem(BEST) == 0
    assert problem(WORST) == pytest.approx(0.99 + 4)
    assert sys.argv == before
    assert pickle.loads(pickle.dumps(problem))(BEST) == 0


def test_fit_runs_an_argparse_program_from_yaml(program):
    (program.parent / "study.yaml").write_text(
        """
problem:
  class_path: deepbore.integrations.programs.ProgramProblem
  init_args:
    program: program.py:parser
    run: program.py:main
    tune: {lr: {low: 1.0e-4, high: 1.0, log: true}, act: {}, bias: {}}
    fixed: {data: mnist.npz}
""",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "deepbore", "fit", "--config", "study.yaml", "--loop.n_trials", "6", "--run", "r"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    best = subprocess.run([sys.executable, "-m", "deepbore", "best", "r"], capture_output=True, text=True, check=True)
    assert "act" in best.stdout
    assert "bias" in best.stdout


def parser():
    made = argparse.ArgumentParser()
    made.add_argument("--lr", type=float, default=1e-3)
    made.add_argument("--hidden-units", type=int, default=64)
    made.add_argument("--act", choices=["relu", "tanh"])
    made.add_argument("--name", default="x")
    made.add_argument("--layers", type=int, nargs="+")
    return made


@pytest.mark.parametrize(
    ("tune", "why"),
    [
        ({"lr": None}, r"'lr' of the program is float, without a range.*lr: \{low: 0.0001, high: 0.01, log: true\}"),
        ({"hidden_units": {"low": 2}}, r"'hidden_units'.*int, without a range.*hidden_units: \{low: 6, high: 640"),
        ({"hidden_units": {"low": 2.5, "high": 3}}, "is int, but its range"),
        ({"--hidden-units": None}, "Did you mean hidden_units"),
        ({"learning_rate": None}, r"one of \['lr'"),
        ({"layers": None}, "several values"),
        ({"name": None}, "neither a number nor has it choices"),
        ({"act": {"choices": ["gelu"]}}, "must be one of .*'gelu'"),
        ({"lr": {"low": 2, "high": 1}}, "low"),
        ({}, "is empty"),
    ],
)
def test_what_neither_says_is_asked_for_by_name(tune, why):
    with pytest.raises(SpaceError, match=why):
        space_of(parser(), tune)


def test_what_is_given_may_be_a_parameter_or_name_a_type():
    given = {"lr": Real(0, 1), "name": {"type": "categorical", "choices": ["a", "b"]}, "act": {"choices": ["tanh"]}}
    given["act"]["choices"].append("relu")
    assert space_of(parser(), given).parameters["lr"] == Real(0, 1)
    assert space_of(parser(), ["act"]).parameters == {"act": Categorical(["relu", "tanh"])}


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"run": "program.py:main"}, "refuses them"),  # data is missing
        ({"run": "program.py:main", "fixed": {"date": 1}}, "'date'"),
        ({"run": "program.py:main", "fixed": {"lr": 1}}, "'lr'"),
        ({"run": "program.py:nothing"}, "nothing"),
    ],
)
def test_a_program_that_can_not_run_is_refused_before_the_run(settings, why):
    with pytest.raises(SettingError, match=why):
        ProgramProblem("program.py:parser", {"lr": TUNE["lr"]}, **settings).prepare()


def test_programs_that_are_none_are_refused():
    for program, run, why in ((parser(), None, "run="), (3, None, "a typer app"), (print, print, "argparse")):
        with pytest.raises(SettingError, match=why):
            ProgramProblem(program, {"lr": None}, run)


# --- typer -----------------------------------------------------------------------------------------------------------


class Act(StrEnum):
    relu, tanh = "relu", "tanh"


def typed(lr: float = 0.1, act: Act = Act.relu, kind: Literal["a", "b"] = "a", n: int = 3, flag: bool = False) -> float:
    assert isinstance(act, Act)
    return abs(lr - 0.01) + (act is Act.relu) + (kind == "a") + (not flag) + n


def test_a_function_as_typer_has_it_needs_no_typer():
    problem = ProgramProblem(
        typed, {"lr": {"low": 1e-3, "high": 1, "log": True}, "act": {}, "kind": {}, "flag": {}}, fixed={"n": 0}
    )
    assert isinstance(problem, Problem)
    problem.prepare()
    assert problem.space.parameters["kind"] == Categorical(["a", "b"])
    assert problem({"lr": 0.01, "act": "tanh", "kind": "b", "flag": True}) == 0
    found = minimize(problem, problem.space, n_trials=4, seed=0, progress=False)
    assert len(found.values) == 4
    with pytest.raises(SpaceError, match="'n' of the program is int, without a range"):
        space_of(typed, ["n"])


def test_a_typer_program_says_its_ranges_and_runs_by_its_own_command_line_too():
    typer = pytest.importorskip("typer")
    from typer.testing import CliRunner

    app = typer.Typer()

    @app.command()
    def train(
        data: str,
        lr: Annotated[float, typer.Option(min=1e-5, max=0.1)] = 1e-3,
        units: int = typer.Option(32, min=8, max=64),
        act: Act = Act.relu,
        flag: Annotated[bool, typer.Option()] = False,
        depth: int = typer.Option(...),
    ) -> float:
        assert (data, depth) == ("mnist", 2)
        value = abs(lr - 0.01) + units + (act is Act.relu) + (not flag)
        typer.echo(value)
        return value

    for program in (app, train):
        tune = {"lr": {"log": True}, "units": {}, "act": {}, "flag": {}}
        problem = ProgramProblem(program, tune, fixed={"data": "mnist", "depth": 2})
        problem.prepare()
        assert problem.space.parameters["lr"] == Real(1e-5, 0.1, log=True)
        assert problem.space.parameters["units"] == Integer(8, 64)
        assert problem({"lr": 0.01, "units": 8, "act": "tanh", "flag": True}) == 8
        with pytest.raises(SettingError, match="'depth' of the program has no default"):
            ProgramProblem(program, tune, fixed={"data": "mnist"}).prepare()
    words = ["mnist", "--lr", "0.01", "--units", "8", "--act", "tanh", "--flag", "--depth", "2"]
    assert CliRunner().invoke(app, words).stdout.strip() == "8.0"
