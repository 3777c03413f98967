"""`deepbore fit` with a pruner: in this process, in workers, resumed."""

import json
from pathlib import Path

import yaml

from deepbore import Study
from deepbore.pruners import MedianPruner
from learning import EPOCHS

FUNCTION = ["--problem.init_args.function", "learning.train"]
SPACE = ["--problem.init_args.space", json.dumps({"x": {"type": "real", "low": 0, "high": 1}})]
PROBLEM = ["--problem", "deepbore.problems.FunctionProblem", *FUNCTION, *SPACE]


def test_a_run_ends_trials_early_and_is_resumed_with_its_pruner(deepbore_here):
    done = deepbore_here("fit", *PROBLEM, "--loop.pruner", "MedianPruner", "--loop.n_trials", 12, "--run", "mine")
    assert done.returncode == 0, done.stderr
    assert "pruned" in done.stdout
    settings = yaml.safe_load(Path("mine/config.yaml").read_text())["loop"]["pruner"]
    assert settings["class_path"].endswith("MedianPruner")
    again = deepbore_here("fit", "--resume", "mine", "--loop.n_trials", 14)
    assert again.returncode == 0, again.stderr
    study = Study.load("mine")
    assert isinstance(study.state.recipe.pruner, MedianPruner)
    assert len(study.trials) == 14
    assert study.observations.ledger.statistics.n_pruned
    assert {len(trial.reports) for trial in study.trials if trial.value is not None} == {EPOCHS}


def test_an_objective_without_the_trial_is_refused_before_anything_is_written(deepbore_here):
    function = ["--problem.init_args.function", "learning.loss"]
    done = deepbore_here("fit", *PROBLEM, *function, "--loop.pruner", "MedianPruner", "--run", "mine")
    assert done.returncode != 0
    assert "with a pruner the objective takes the trial" in done.stderr
    assert not Path("mine").exists()
