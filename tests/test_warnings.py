"""Where a failed trial is said to be: at the user's own line, and in words alone on the console."""

import re
import warnings

import pytest

import deepbore as db
from commands import deepbore
from deepbore.evaluators.base import EvaluationWarning
from trainers import quiet_trainer

LINE = db.SearchSpace({"x": db.Real(0, 1)})


def fails_high(params):
    if params["x"] > 0.5:
        raise ValueError("too high")
    return params["x"]


def lines_of(warned):
    return {(warning.filename, warning.lineno) for warning in warned}


@pytest.mark.parametrize("trainer", [None, quiet_trainer])
def test_a_failed_trial_is_said_to_be_at_the_users_line(trainer):
    study = db.Study(LINE, seed=0)
    with pytest.warns(EvaluationWarning, match="ValueError: too high") as warned:
        study.optimize(fails_high, 6, trainer=trainer and trainer())
    here = test_a_failed_trial_is_said_to_be_at_the_users_line.__code__
    ((file, line),) = lines_of(warned)
    assert file == __file__
    assert here.co_firstlineno < line < here.co_firstlineno + 6


@pytest.mark.slow
def test_on_the_console_a_failed_trial_is_a_line_of_words_of_its_own(tmp_path):
    objective = (
        "def f(params):\n    if params['x'] > 0.5:\n        raise ValueError('too high')\n    return params['x']\n"
    )
    (tmp_path / "mine.py").write_text(objective)
    space = "{x: {type: real, low: 0, high: 1}}"
    problem = f"{{class_path: deepbore.problems.FunctionProblem, init_args: {{function: mine.f, space: {space}}}}}"
    (tmp_path / "mine.yaml").write_text(f"problem: {problem}\nloop: {{n_trials: 6}}\n")
    shown = deepbore("fit", "--config", "mine.yaml", cwd=tmp_path)
    said = [line for line in re.split("[\r\n]+", shown.stderr) if "failed with" in line]
    assert said
    assert all(re.fullmatch(r"trial \d failed with \{'x': [.\d]+\}: ValueError: too high", line) for line in said)


def test_a_bar_leaves_warnings_to_who_has_heard_them_before(capsys):
    before = warnings.showwarning
    with pytest.warns(RuntimeWarning, match="ValueError: too high"):
        db.Study(LINE, seed=0).optimize(fails_high, 6, progress=True)
    assert warnings.showwarning is before
    assert "trials: 100%" in capsys.readouterr().err
