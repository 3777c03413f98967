"""The same problem has the same default parts at each door."""

from pathlib import Path

import pytest

from deepbore import Real, SearchSpace, Study, minimize
from deepbore.cli.main import main
from deepbore.data.replay import read_record

ONE = "def objective(params): return params['x']"
TWO = "def objective(params): return params['x'], 1 - params['x']"
BOTH = ["minimize", "minimize"]
CASES = {  # what Python is given, and the command line
    "one": (ONE, {}, []),
    "two": (TWO, {"directions": BOTH}, ["--problem.directions", str(BOTH)]),
    "named": (
        TWO,
        {"directions": {"loss": "minimize", "size": "maximize"}},
        ["--problem.directions", "{loss: minimize, size: maximize}"],
    ),
    "noisy": (ONE, {"noisy": True}, ["--loop.noisy", "true"]),
    "two, noisy": (
        TWO,
        {"directions": BOTH, "noisy": True},
        ["--problem.directions", str(BOTH), "--loop.noisy", "true"],
    ),
}


def recipe(path):
    return read_record(Path(path)).header["recipe"]


@pytest.mark.parametrize("case", CASES)
def test_python_and_the_command_line_have_one_default(empty_folder, monkeypatch, case):
    code, options, words = CASES[case]
    monkeypatch.syspath_prepend(".")
    Path("mine.py").write_text(code, encoding="utf-8")
    space = SearchSpace({"x": Real(0, 1)})
    with Study(space, seed=0, journal="study.jsonl", **options) as study:
        study.ask()
    functions = {}
    exec(code, functions)
    minimize(functions["objective"], space, n_trials=1, seed=0, journal="minimize.jsonl", progress=False, **options)
    given = ["--problem.function", "mine.py:objective", "--problem.space", "{x: {type: real, low: 0, high: 1}}", *words]
    assert main(["fit", *given, "--loop.n_trials", "1", "--run", "run"]) == 0
    assert recipe("run/journal.jsonl") == recipe("study.jsonl") == recipe("minimize.jsonl")
    assert ("PerColumn" in str(recipe("study.jsonl"))) == ("directions" in options)
    assert main(["fit", "--resume", "run", "--loop.n_trials", "2"]) == 0  # its config.yaml names the same parts
