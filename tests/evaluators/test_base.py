"""Evaluators: how they are named and shared, the times that they keep, and where a failed trial is said to be."""

import itertools
import json
import re
import time
import warnings

import pytest
from jsonargparse import ArgumentParser

import deepbore as db
import objectives
from commands import deepbore
from deepbore import ProcessEvaluator, Study
from deepbore.compute.distributed import Ranks
from deepbore.data.trial import Trial
from deepbore.evaluators import Evaluator, SerialEvaluator, Timed
from deepbore.evaluators.shared import SharedEvaluator
from deepbore.evaluators.warning import EvaluationWarning
from drawn_studies import CUBE
from evaluating import evaluated
from plane import LINE
from trainers import quiet_trainer


class Square:
    """An objective that a configuration names."""

    def __call__(self, params):
        return objectives.square(params)


THREADS = {"class_path": "concurrent.futures.ThreadPoolExecutor", "init_args": {"max_workers": 4}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "settings", "workers"),
    [
        ("deepbore.evaluators.SerialEvaluator", {}, 1),
        ("deepbore.SerialEvaluator", {}, 1),
        ("deepbore.evaluators.ProcessEvaluator", {"workers": 2, "timeout": 60, "retries": 1}, 2),
        ("deepbore.evaluators.ExecutorEvaluator", {"executor": THREADS}, 4),
        ("deepbore.evaluators.ExecutorEvaluator", {"executor": THREADS, "workers": 3}, 3),
    ],
)
def test_every_evaluator_can_be_named_in_a_configuration(name, settings, workers):
    parser = ArgumentParser()
    parser.add_subclass_arguments(Square, "problem")
    parser.add_subclass_arguments(Evaluator, "evaluator")
    parser.link_arguments("problem", "evaluator.init_args.objective", apply_on="instantiate")
    written = {
        "problem": {"class_path": f"{__name__}.Square"},
        "evaluator": {"class_path": name, "init_args": settings},
    }
    evaluator = parser.instantiate_classes(parser.parse_object(written)).evaluator
    assert evaluator.workers == workers
    assert [outcome.values for outcome in evaluated(evaluator, {"k": 1}, {"k": 6})] == [(9.0,), (4.0,)]


def test_an_evaluator_that_is_shared_twice_is_shared_once():
    ranks = Ranks(rank=1, world=3)
    own = SerialEvaluator(objectives.square)
    shared = SharedEvaluator(SharedEvaluator(own, ranks), ranks)
    for row in range(6):
        shared.submit(Trial(row, {"k": row}))
    assert (shared.workers, shared.outstanding) == (3, 6)
    assert [own.collect()[0].trial.id for _ in range(2)] == [1, 4]
    assert own.outstanding == 0


def test_times_are_kept_of_what_ran_and_not_of_what_waited(tmp_path):
    timed = Timed(SerialEvaluator(lambda params: time.sleep(0.05) or params["x"]), tmp_path / "times")
    for row in range(3):
        timed.submit(Trial(row, {"x": 1.0}))
    while timed.outstanding:
        timed.collect()
    lines = [json.loads(line) for line in (tmp_path / "times").read_text().splitlines()]
    assert [line["trial"] for line in lines] == [0, 1, 2]
    assert all(a["ended"] <= b["began"] + 0.001 for a, b in itertools.pairwise(lines))


def test_what_is_withdrawn_or_dropped_has_no_time(tmp_path):
    timed = Timed(SerialEvaluator(abs), tmp_path / "nowhere" / "times")
    for row in range(3):
        timed.submit(Trial(row, {}))
    assert len(timed.withdraw()) == 3
    assert timed.free == timed.workers == 1
    timed.submit(Trial(9, {"x": 1}))
    assert timed.collect()[0].outcome.has_failed  # a file that can't be written does not matter
    timed.close()


@pytest.mark.slow
def test_times_of_workers_overlap(tmp_path):
    study = Study(CUBE)
    evaluator = Timed(ProcessEvaluator(_slow, workers=2), tmp_path / "times")
    study.optimize(evaluator, 4, batch_size=2)
    spans = [json.loads(line) for line in (tmp_path / "times").read_text().splitlines()]
    assert max(a["began"] for a in spans[:2]) < min(a["ended"] for a in spans[:2])


def _slow(params):
    time.sleep(0.3)
    return params["x0"]


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


LOWEST = 0.3


def valley(params):
    return (params["x"] - LOWEST) ** 2


class Cluster(SerialEvaluator):
    """A cluster that can't be reached at first, be it to leave it."""

    is_up = False

    def submit(self, trial):
        if not self.is_up:
            raise ConnectionError("away")
        super().submit(trial)

    def close(self):
        if not self.is_up:
            raise ConnectionError("still away")
        super().close()


# regression: this was wrong once
def test_an_evaluator_that_can_not_be_closed_once_serves_the_next_run():
    cluster, study = Cluster(valley), Study(LINE, n_initial=2)
    with pytest.raises(ConnectionError, match="still away"):
        study.optimize(cluster, 3)
    cluster.is_up = True
    study.optimize(cluster, 3)
    assert len(study.trials) == 3 + 1  # the one that could not be submitted
