"""Slips on the command line and in configurations: the right name is said, before anything slow is imported."""

import subprocess
import sys
from dataclasses import fields
from inspect import signature
from pathlib import Path

import pytest

from deepbore import problems
from deepbore.cli import slips
from deepbore.cli.config import ELSEWHERE, OF_THE_COMMAND, Evaluation, LoopSettings
from deepbore.cli.main import main
from deepbore.errors import SettingError, SpaceError
from deepbore.names import TYPES
from deepbore.space import SearchSpace
from deepbore.space.parameters.base import KINDS
from processes import ENV

BASE = "problem:\n  function: mine.f\n  space:\n    x: {type: real, low: 0, high: 1}\n"
IN_FILES = [  # what stands in the configuration, what is said
    (BASE + "loop: {n_trial: 3}", "Did you mean n_trials?"),
    (BASE + "loop: {n_calls: 3}", "Here it is n_trials."),
    (BASE + "loop: {labels: ThresholdLabels}", "It stands under data."),
    (BASE + "loop: {retries: 2}", "It stands under evaluation."),
    (BASE + "loop: {direction: minimize}", "It stands under problem."),
    (BASE + "loop: {timeout: 2h}", "a number of seconds, but got '2h'. Give 7200."),
    (BASE + "loop: {timeout: 1.5 min}", "Give 90."),
    (BASE + "loop: {n_trials: fifty}", "loop.n_trials must be a whole number, but got 'fifty'"),
    (BASE + "evaluation: {worker: 2}", "Did you mean workers?"),
    (BASE + "evaluation: {n_trials: 2}", "It stands under loop."),
    (BASE + "evaluation: {timeout: 1h}", "evaluation.timeout must be a number of seconds, but got '1h'. Give 3600."),
    (BASE + "data: {label: ThresholdLabels}", "Did you mean labels?"),
    (BASE + "data: {labels: TresholdLabels}", "Did you mean ThresholdLabels?"),
    (BASE + "model: KernelPSL", "there is no class KernelPSL. Did you mean KernelPLS?"),
    (BASE + "classifier: {class_path: deepbore.DeepEnsembel}", "Did you mean DeepEnsemble?"),
    (BASE + "loop: {pruner: MedianPrunner}", "Did you mean MedianPruner?"),
    (BASE + "loop: {candidates: {class_path: GreedyBach}}", "Did you mean GreedyBatch?"),
    (BASE.replace("problem", "problm"), "problm: there is no such setting. Did you mean problem?"),
    (BASE + "lopp: {n_trials: 3}", "Did you mean loop?"),
    (BASE + "n_trials: 3", "n_trials stands under loop, as in loop: {n_trials: ...}."),
    (BASE + "labels: ThresholdLabels", "labels stands under data"),
    ("function: mine.f", "function stands under problem"),
    (BASE + "trainers: {max_epochs: 3}", "Did you mean trainer?"),
    (BASE.replace("function", "funktion"), "Did you mean function?"),
    (BASE + "  direction: max", "Did you mean maximize?"),
    (BASE + "  direction: minimise", "Did you mean minimize?"),
    (BASE + "  directions: {loss: min, size: minimize}", "Did you mean minimize?"),
    (BASE.replace("type: real", "type: float"), "parameter 'x' has type 'float'. Did you mean real?"),
    (BASE.replace("type: real", "type: loguniform"), "Did you mean real, log: true?"),
    (BASE.replace("type: real", "type: int"), "Did you mean integer?"),
    (BASE.replace("type: real", "type: bool"), "Did you mean categorical, choices: [false, true]?"),
    (BASE.replace("type: real", "type: reel"), "Did you mean real?"),
    (BASE.replace("low", "min"), "parameter 'x' has no setting 'min'. Did you mean low?"),
    (BASE.replace("high", "upper"), "Did you mean high?"),
    (BASE.replace("high: 1", "high: 1, log_scale: true"), "Did you mean log: true?"),
    (BASE.replace("type: real, low: 0, high: 1", "type: categorical, values: [1, 2]"), "Did you mean choices?"),
    ("problem: {class_path: deepbore.problems.Brannin}", "Did you mean Branin?"),
]
ON_THE_LINE = [
    (["run.yaml"], "Give --config run.yaml."),
    (["--config", "rum.yaml"], "there is no such file: rum.yaml. Did you mean run.yaml?"),
    (["--config", "."], "is a folder"),
    (["--conifg", "run.yaml"], "Did you mean --config?"),
    (["--n_trails", "5"], "Did you mean --n_trials?"),
    (["--loop.n_trails", "5"], "no option --loop.n_trails. Did you mean --loop.n_trials?"),
    (["--loop.n_trials", "many"], "loop.n_trials must be a whole number, but got 'many'"),
    (["--timeout", "1h"], "Give 3600."),
    (["--evaluation.timeout=10m"], "Give 600."),
    (["--evaluation.wokers=3"], "Did you mean --evaluation.workers?"),
    (["--model", "KernelPSL"], "Did you mean KernelPLS?"),
    (["--problem", "Brannin"], "Did you mean Branin?"),
]


@pytest.mark.parametrize(("text", "says"), IN_FILES)
def test_a_slip_in_a_configuration_is_answered_with_the_right_name(text, says, empty_folder):
    Path("run.yaml").write_text(text + "\n")
    with pytest.raises(SettingError) as error:
        slips.check_fit(["--config", "run.yaml"])
    assert says in str(error.value)


@pytest.mark.parametrize(("args", "says"), ON_THE_LINE)
def test_a_slip_on_the_command_line_is_answered_with_the_right_name(args, says, empty_folder):
    Path("run.yaml").write_text(BASE)
    with pytest.raises(SettingError) as error:
        slips.check_fit(slips.as_nested(args))
    assert says in str(error.value)


RIGHT = [
    ["--config", "run.yaml", "--n_trials", "5", "--print_config"],
    ["--config=run.yaml", "--loop.n_trials=5", "--trainer.devices", "2", "--model.init_args.kernel", "x"],
    ["-c", "run.yaml", "--problem", "mine.MyProblem", "--loop.n_trials", "null", "--loop.seed", "-3"],
    ["--config", BASE, "--loop.timeout", "60.5", "--evaluator.class_path", "mine.Evaluator"],
    ["--config", "run.yaml", "--model", "mine.KernelPSL", "--loop.pruner", "mine.MedianPrunner"],
    ["--resume", "runs/branin-1", "--classifier", "DeepEnsemble", "--classifier.optimizer.lr", "1e-3"],
]


@pytest.mark.parametrize("args", RIGHT)
def test_what_is_right_passes(args, empty_folder):
    Path("run.yaml").write_text(BASE + "loop: {n_trials: null, timeout: 3600}\ntrainer: {max_time: 00:01:00:00}\n")
    slips.check_fit(slips.as_nested(args))


def test_a_setting_that_is_not_known_here_is_left_to_the_parser(empty_folder):
    Path("run.yaml").write_text(BASE + "loop: {brand_new: 3}\nevaluation: {brand_new: 3}\n")
    slips.check_fit(["--config", "run.yaml", "--loop.brand_new", "3"])


def test_all_configurations_of_the_project_pass():
    root = Path(__file__).parents[2]
    for path in [*(root / "configs").rglob("*.yaml"), *(root / "examples").rglob("*.yaml")]:
        if path.read_text().lstrip().startswith(("problem", "loop", "#", "model", "classifier")) and "tune" not in str(
            path
        ):
            slips.check_fit(["--config", str(path)])


def test_the_names_that_are_known_are_those_of_the_settings():
    assert {each.name for each in fields(LoopSettings)} - ELSEWHERE - OF_THE_COMMAND == slips.LOOP
    assert {each.name for each in fields(Evaluation)} == slips.EVALUATION
    assert set(signature(problems.FunctionProblem).parameters) == slips.FUNCTION
    assert {kind: set(signature(KINDS[kind]).parameters) for kind in TYPES} == TYPES


def test_a_slip_in_a_space_is_answered_in_python_too():
    with pytest.raises(SpaceError, match=r"but got 'float'\. Did you mean real"):
        SearchSpace.from_dict({"x": {"type": "float", "low": 0, "high": 1}})
    with pytest.raises(SpaceError, match=r"got 'min'\. Here it is low"):
        SearchSpace.from_dict({"x": {"type": "real", "min": 0, "high": 1}})


SLOW = """
import sys
from deepbore.cli.main import main
assert main(["fit", "--config", "run.yaml", "--loop.n_trail", "3"]) == 2
print(sorted({"torch", "lightning", "numpy", "jsonargparse"} & set(sys.modules)))
"""


def test_a_slip_is_answered_before_anything_slow_is_imported(empty_folder):
    Path("run.yaml").write_text(BASE)
    command = [sys.executable, "-c", SLOW]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=ENV, cwd=empty_folder)
    assert "Did you mean --loop.n_trials?" in done.stderr
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("function", ["at_once.value", "at_once:value", "at_once.py:value", "./at_once.py:value"])
def test_both_forms_of_a_functions_name_are_known_to_fit(function, empty_folder, monkeypatch):
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.setattr(sys, "modules", sys.modules.copy())
    Path("at_once.py").write_text("def value(params):\n    return params['x']\n")
    Path("run.yaml").write_text(BASE.replace("mine.f", function) + "run: run\n")
    assert main(["fit", "--config", "run.yaml", "--n_trials", "3", "--seed=4"]) == 0
    assert "seed: 4" in Path("run/config.yaml").read_text()


def test_a_function_that_is_not_there_is_answered_with_the_nearest(empty_folder, monkeypatch, capsys):
    monkeypatch.setattr(sys, "path", sys.path.copy())
    Path("nearly.py").write_text("def value(params):\n    return params['x']\n")
    for function in ("nearly.valeu", "nearly.py:valeu"):
        Path("run.yaml").write_text(BASE.replace("mine.f", function))
        assert main(["fit", "--config", "run.yaml"]) == 2
        assert "value?" in capsys.readouterr().err
