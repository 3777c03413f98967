"""Plausible mistakes on the command line: each is one line that names rule, value and way out."""

import pytest

from deepbore.cli.main import main

BRANIN = "problem: {class_path: deepbore.problems.Branin}\n"

FITS = [  # what stands in the configuration, what is given beside it, what is said
    (BRANIN + "loop: 5", [], "loop must hold settings by name, as {n_trials: 50}, but got 5"),
    (BRANIN, ["--loop.n_trials=0"], "n_trials >= 1 must hold, but got n_trials=0"),
    (BRANIN, ["--loop.n_trials=-3"], "n_trials >= 1 must hold"),
    (BRANIN, ["--loop.batch_size=0"], "batch_size >= 1 must hold"),
    (BRANIN, ["--loop.timeout=0"], "timeout > 0 must hold"),
    (BRANIN, ["--loop.max_failures=0"], "max_failures >= 1 must hold"),
    (BRANIN, ["--trainer.devices=no"], "trainer: Lightning can't make it of these settings"),
    (BRANIN, ["--trainer.accelerator=gpu9"], "invalid accelerator name"),
    (BRANIN + "lopp: {n_trials: 3}", [], "lopp: there is no such setting. Did you mean loop?"),
    ("- a", [], "Unexpected config: it must have settings by name, but got '- a'."),
    ("", [], "What is optimised is a function of yours with its space, as in problem: {function:"),
    ("loop: {n_trials: 3}", [], "problem: FunctionProblem needs function and space. What is optimised is a"),
    ("problem: {function: my_module.f}", [], "FunctionProblem needs space. What is optimised"),
    ("problem: {class_path: deepbore.problems.Hartmann}", [], "problem: Hartmann needs dim."),
    ("problem: {funktion: my_module.f}", [], "FunctionProblem has no setting funktion. Did you mean function?"),
]

TUNE = ["tune", "--space", "space.yaml"]

COMMANDS = [
    ([*TUNE, "--metric", "m", "--direction", "up"], "direction must be one of ['maximize', 'minimize']"),
    ([*TUNE, "--metric", "m", "--metric_mode", "first"], "metric_mode must be one of ['best', 'last']"),
    ([*TUNE, "--metric", ""], "--metric must name what the program logs"),
    (["bst"], "Did you mean best?"),
    (["best"], "the following arguments are required: RUN"),
    (["plot", "missing"], "the journal missing can't be read"),
    (["best", "."], "Name a journal, or the folder of a run; `deepbore list DIR` finds those below DIR."),
    (["plot", "run", "--out", "x"], "unrecognized arguments: --out x"),
    (["report", "run", "--live", "fast"], "argument --live: invalid float value: 'fast'"),
    (["watch", "run", "--every", "nan"], "seconds between two looks must be above 0, but got nan"),
    (["list", "missing"], "missing must be a folder with runs"),
    (["list", "a", "b"], "unrecognized arguments: b"),
]


# regression: each of these was wrong once
@pytest.mark.parametrize(("text", "options", "says"), FITS)
def test_a_fit_that_can_not_be_meant_begins_no_run(text, options, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.yaml").write_text(text + "\n")
    assert main(["fit", "--config", "run.yaml", *options]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(("args", "says"), COMMANDS)
def test_commands(args, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.yaml").write_text("model.lr: {type: real, low: 0.1, high: 1.0}\n")
    assert main(args) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
