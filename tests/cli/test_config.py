"""Configurations of `deepbore fit`: what runs, starts from earlier results, is shown, or is refused."""

import builtins
import csv
import io
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
import yaml

from commands import BRANIN, SQUARED_AT_HOME, deepbore
from deepbore import Ordinal, SearchSpace, Study
from deepbore.cli.inspect import summary
from deepbore.cli.main import main
from deepbore.errors import SpaceError


def test_help_comes_at_once(tmp_path):
    for args in (["--help"], ["fit", "--help"], []):
        shown = deepbore(*args, cwd=tmp_path, flags=["-X", "importtime"])
        assert shown.returncode == 0
        assert "deepbore fit --config" in shown.stdout
        assert "deepbore.cli.main" in shown.stderr
        assert "torch" not in shown.stderr


@pytest.mark.slow
def test_print_config_shows_what_would_run(tmp_path):
    (tmp_path / "branin.yaml").write_text(BRANIN)
    shown = deepbore("fit", "--config", "branin.yaml", "--print_config", cwd=tmp_path)
    config = yaml.safe_load(shown.stdout)
    assert config["model"]["class_path"].startswith("deepbore.")
    assert config["loop"]["n_trials"] == 14
    assert not (tmp_path / "runs").exists()


def test_the_summary_says_when_the_space_is_exhausted(tmp_path):
    study = Study(SearchSpace({"k": Ordinal([1, 2, 3])}), journal=tmp_path / "run.jsonl")
    with pytest.warns(RuntimeWarning, match="trial"):
        study.optimize(lambda params: 1 / (params["k"] - 2), n_trials=10)
    said = summary(study.observations.ledger, n_left=study.observations.columns.n_left)
    assert said.splitlines()[0].endswith("(3 trials, 1 failed, every configuration of the space)")


@pytest.mark.slow
def test_a_users_function_needs_no_class(tmp_path):
    (tmp_path / "mine.py").write_text(
        "def objective(params):\n    return (params['lr'] - 0.01) ** 2 + params['depth']\n"
    )
    (tmp_path / "mine.yaml").write_text(
        """
problem:
  class_path: deepbore.problems.FunctionProblem
  init_args:
    function: mine.objective
    direction: maximize
    space:
      lr: {type: real, low: 1.0e-5, high: 0.1, log: true}
      depth: {type: integer, low: 1, high: 4}
      momentum: {type: real, low: 0, high: 0.99, when: {depth: [1, 2]}}
loop: {n_trials: 12, batch_size: 2}
model: {class_path: deepbore.classifiers.DeepEnsemble, init_args: {members: 2, training: {steps: 20}}}
data: {labels: {class_path: deepbore.labels.ThresholdLabels, init_args: {gamma: 0.25}}}
"""
    )
    done = deepbore("fit", "--config", "mine.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "depth: 4" in done.stdout
    assert (tmp_path / "runs" / "objective-1" / "journal.jsonl").exists()


@pytest.mark.slow
def test_a_users_classifier_is_found_beside_the_configuration(tmp_path, deepbore_here, monkeypatch):
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])  # as a console script starts
    (tmp_path / "classifier_of_mine.py").write_text(
        "from deepbore import KernelPLS\n\nclass Mine(KernelPLS):\n    pass\n"
    )
    done = deepbore_here("fit", "--config", "branin.yaml", "--run", "mine", "--model", "classifier_of_mine.Mine")
    assert done.returncode == 0, done.stderr
    assert "classifier_of_mine.Mine" in (tmp_path / "mine" / "config.yaml").read_text()
    assert deepbore_here("fit", "--resume", "mine", "--loop.n_trials", "16").returncode == 0


@pytest.mark.slow
def test_evaluation_in_processes_is_a_setting(tmp_path, deepbore_here):
    settings = ["--evaluation.workers", 2, "--evaluation.timeout", 60, "--evaluation.retries", 1]
    (tmp_path / "pids.yaml").write_text(
        """
problem:
  class_path: deepbore.problems.FunctionProblem
  init_args: {function: objectives.pid, space: {x: {type: real, low: 0, high: 1}}}
loop: {n_trials: 12}
"""
    )
    done = deepbore_here("fit", "--config", "pids.yaml", "--run", "mine", *settings)
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in (tmp_path / "mine" / "journal.jsonl").read_text().splitlines()]
    pids = [event["value"] for event in events if event["event"] == "told"]
    assert len(pids) == 12
    assert os.getpid() not in pids
    config = yaml.safe_load((tmp_path / "mine" / "config.yaml").read_text())
    assert config["evaluation"] == {"workers": 2, "timeout": 60.0, "retries": 1, "devices": None}


@pytest.mark.slow
def test_a_run_starts_from_earlier_results(tmp_path, deepbore_here):
    rows = [f"{x},{x + 1},{'' if x == 3 else x * x}" for x in range(12)]
    (tmp_path / "earlier.csv").write_text("x0,x1,value\n" + "\n".join(rows))
    args = ["--config", "branin.yaml", "--run", "warm", "--warm_start", "earlier.csv", "--loop.n_trials"]
    done = deepbore_here("fit", *args, 3)
    assert done.returncode == 2  # x0 goes to 10 only
    assert "line 13 of earlier.csv, column 'x0': values must lie in [-5.0, 10.0], but got 11" in done.stderr
    assert not (tmp_path / "warm").exists()
    (tmp_path / "earlier.csv").write_text("x0,x1,value\n" + "\n".join(rows[:11]))
    assert deepbore_here("fit", *args, 3).returncode == 0
    only_begun = (tmp_path / "warm" / "journal.jsonl").read_text().splitlines(keepends=True)[0]
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "journal.jsonl").write_text(only_begun)
    shutil.copy(tmp_path / "warm" / "config.yaml", tmp_path / "begun")
    assert deepbore_here("fit", "--resume", "begun", "--loop.n_trials", 1).returncode == 0
    assert len(Study.load(tmp_path / "begun" / "journal.jsonl").trials) == 11 + 1
    (tmp_path / "earlier.csv").unlink()  # the journal has them
    assert deepbore_here("fit", "--resume", "warm", "--loop.n_trials", 5).returncode == 0
    events = [json.loads(line) for line in (tmp_path / "warm" / "journal.jsonl").read_text().splitlines()]
    assert [event["event"] for event in events[1:]] == ["added"] + ["asked", "told"] * 5
    assert [trial.value for trial in Study.load(tmp_path / "warm" / "journal.jsonl").trials[:5]] == [0, 1, 4, None, 16]
    assert events[2]["trial"] == 11
    rows = list(csv.DictReader((tmp_path / "warm" / "metrics-1.csv").open()))
    assert [float(row["trials"]) for row in rows] == [12, 13, 14]  # the classifier is asked from the first on


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--evaluation.workers", "0"], "workers >= 1 must hold, but got workers=0"),
        (
            ["--evaluator", "deepbore.evaluators.SerialEvaluator", "--evaluation.retries", "1"],
            "an evaluator of your own has settings of its own, but got Evaluation(workers=1, timeout=None, retries=1",
        ),
        (["--loop.n_trails", "5"], "no option --loop.n_trails. Did you mean --loop.n_trials?"),
        (["--loop.n_initial", "0"], "n_initial >= 1 must hold, but got n_initial=0"),
        (["--model", "NoSuchModel"], "no class NoSuchModel. Of deepbore.classifiers there are"),
        (["--model", "KernelPSL"], "model: there is no class KernelPSL. Did you mean KernelPLS?"),
        (["--problem", "Brannin"], "Did you mean Branin?"),
        (["--data.labels", "TresholdLabels"], "Did you mean ThresholdLabels?"),
        (
            ["--data.labels", "ThresholdLabels", "--data.labels.gamma", "1.5"],
            "0 < gamma < 1 must hold, but got gamma=1.5",
        ),
        (["--config", "missing.yaml"], "missing.yaml"),
        (["--problem", "Hartmann", "--problem.dim", "4"], "but got dim=4"),
    ],
)
def test_bad_configurations_are_refused_before_any_work(tmp_path, deepbore_here, args, says):
    done = deepbore_here("fit", "--config", "branin.yaml", *args)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) < 15
    assert not (tmp_path / "runs").exists()


KERNEL = "class_path: deepbore.classifiers.KernelPLS"


@pytest.mark.parametrize(
    ("part", "says"),
    [
        (
            f"model: {{{KERNEL}, init_args: {{kernle: rbf}}}}",
            "model: KernelPLS has no setting kernle. Did you mean kernel?",
        ),
        (
            f"model: {{{KERNEL}, init_args: {{colour: red}}}}",
            "KernelPLS has no setting colour. It has kernel, length_scale",
        ),
        (f"model: {{{KERNEL}, init_args: {{rows: many}}}}", "model: rows of KernelPLS must be int, but got many."),
        (
            f"model: {{{KERNEL}, init_args: {{length_scale: long}}}}",
            "model: length_scale of KernelPLS must be float or null, but got long.",
        ),
        (
            "model: {class_path: deepbore.classifiers.KernalPLS}",
            "model: there is no class deepbore.classifiers.KernalPLS. Did you mean KernelPLS?",
        ),
        (
            f"model: {{class_path: deepbore.Calibrated, init_args: {{base: {{{KERNEL}, init_args: {{rows: x}}}}}}}}",
            "model: base.init_args.rows of Calibrated does not fit",
        ),
        (
            "model: {class_path: deepbore.classifiers.DeepEnsemble, init_args: {training: {stepz: 3}}}",
            "model: Training has no setting stepz. Did you mean steps?",
        ),
        (
            "data: {labels: {class_path: deepbore.labels.ThresholdLabels, init_args: {gama: 0.3}}}",
            "data.labels: ThresholdLabels has no setting gama. Did you mean gamma?",
        ),
        (
            "model: {class_path: deepbore.labels.ThresholdLabels}",
            "model: deepbore.labels.ThresholdLabels is no Classifier.",
        ),
    ],
)
def test_what_is_wrong_within_a_part_is_said_in_a_line(tmp_path, deepbore_here, part, says):
    (tmp_path / "part.yaml").write_text(part)
    done = deepbore_here("fit", "--config", "branin.yaml", "--config", "part.yaml")
    assert done.returncode == 2
    assert says in done.stderr
    assert len(done.stderr.splitlines()) <= 2
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["best"], "usage"),
        (["report"], "usage"),
        (["best", "nowhere"], "nowhere"),
        (["report", "nowhere"], "nowhere"),
        (["fitt"], "must be one of"),
    ],
)
def test_bad_commands_are_refused(deepbore_here, args, says):
    done = deepbore_here(*args)
    assert done.returncode == 2
    assert says in done.stderr


@pytest.mark.slow
def test_every_shipped_configuration_runs(deepbore_here, pytestconfig):
    for path in sorted((pytestconfig.rootpath / "configs").glob("*.yaml")):
        done = deepbore_here("fit", "--config", path, "--loop.n_trials", 12, "--run", path.stem)
        assert done.returncode == 0, f"{path.name}: {done.stderr}"


# regression: each of these was wrong once
def test_a_parameter_is_declared_whole():
    with pytest.raises(SpaceError, match="'lr' must be declared whole"):
        SearchSpace.from_dict({"lr": {"low": 1e-4}})


def fit(*args):
    return main(["fit", "--config", "mine.yaml", *map(str, args)])


@pytest.mark.parametrize("given", [["--config", "latin.yaml"], ["--config=latin.yaml"]])
def test_a_configuration_in_another_encoding_is_said_in_one_line(at_home, capsys, given):
    Path("latin.yaml").write_bytes("# gr\u00f6\u00dfe\n".encode("latin-1") + Path("mine.yaml").read_bytes())
    assert main(["fit", *given]) == 2
    said = capsys.readouterr().err.strip()
    assert "must be a text in UTF-8, but not all of latin.yaml is" in said
    assert "\n" not in said


def test_print_config_shows_all_that_is_given_wherever_it_stands(at_home, capsys):
    with pytest.raises(SystemExit):
        main(["fit", "--print_config", "--config", "mine.yaml", "--loop.n_trials", "77", "--model", "DeepPLS"])
    shown = yaml.safe_load(capsys.readouterr().out)
    assert shown["loop"]["n_trials"] == 77
    assert shown["model"]["class_path"] == "deepbore.DeepPLS"


def test_constraints_of_a_space_can_be_given_on_the_command_line(at_home):
    assert fit("--run", "run", "--problem.init_args.space.constraints", '["x >= 0.4"]') == 0
    assert all(trial.params["x"] >= 0.4 for trial in Study.load("run").trials)


def test_a_space_without_parameters_is_said_in_one_line(at_home, capsys):
    empty = SQUARED_AT_HOME | {
        "problem": {**SQUARED_AT_HOME["problem"], "init_args": {"function": "math.cos", "space": {}}}
    }
    Path("mine.yaml").write_text(yaml.safe_dump(empty))
    assert fit() == 2
    assert capsys.readouterr().err.strip() == "deepbore: a search space needs at least one parameter, but got none."


def test_a_rule_that_is_no_list_is_told_to_name_a_class(at_home, capsys):
    assert fit("--loop.stop_when.trials", "3") == 2
    assert "It has none: name a class." in capsys.readouterr().err


def test_objectives_have_names_and_files_defaults(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    (tmp_path / "trades.py").write_text("def both(params):\n    return {'loss': params['x'], 'size': -params['x']}\n")
    (tmp_path / "earlier.csv").write_text("x,loss,size\n0.5,0.5,-0.5\n")
    (tmp_path / "trades.yaml").write_text(
        """
problem:
  function: trades.both
  space: {x: {type: real, low: 0, high: 1}, k: {type: integer, low: 1, high: 9}}
  directions: {loss: minimize, size: minimize}
loop: {n_trials: 2}
warm_start: earlier.csv
warm_start_defaults: {k: 4}
run: trades
"""
    )
    assert main(["fit", "--config", "trades.yaml"]) == 0
    study = Study.load("trades/journal.jsonl")
    assert study.state.observations.objectives == ("loss", "size")
    assert study.trials[0].params == {"x": 0.5, "k": 4}
    assert study.to_frame()["size"].tolist() == [-trial.params["x"] for trial in study.trials]
    assert main(["fit", "--resume", "trades", "--loop.n_trials", "3"]) == 0


@pytest.fixture
def as_on_windows(monkeypatch):
    """The encoding of the system is cp1252, in which a text in UTF-8 can be read, but as another one."""
    own = builtins.open

    def opened(file, mode="r", buffering=-1, encoding=None, *args, **kwargs):
        is_system = "b" not in mode and encoding in (None, "locale")
        return own(file, mode, buffering, "cp1252" if is_system else encoding, *args, **kwargs)

    monkeypatch.setattr(builtins, "open", opened)
    monkeypatch.setattr(io, "open", opened)


NAMED = """
problem: {function: named.value, space: {größe: {type: real, low: -1.0, high: 1.0}}}
loop: {n_trials: 2}
run: run
"""


@pytest.mark.usefixtures("as_on_windows")
@pytest.mark.parametrize("how", ["file", "with a mark", "in a file that it names", "classifier"])
def test_a_configuration_is_read_in_utf_8_whatever_the_systems_encoding_is(tmp_path, monkeypatch, how):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    Path("named.py").write_bytes('def value(params):\n    return params["größe"] ** 2\n'.encode())
    text = NAMED + ("classifier: {class_path: deepbore.KernelPLS}\n" if how == "classifier" else "")
    Path("run.yaml").write_bytes(text.encode("utf-8-sig" if how == "with a mark" else "utf-8"))
    if how == "in a file that it names":
        Path("apart").mkdir()
        declared = yaml.safe_load(NAMED)
        Path("apart/problem.yaml").write_bytes(yaml.safe_dump(declared.pop("problem"), allow_unicode=True).encode())
        Path("apart/run.yaml").write_bytes(yaml.safe_dump({**declared, "problem": "problem.yaml"}).encode())
    config = "apart/run.yaml" if how == "in a file that it names" else "run.yaml"
    assert main(["fit", "--config", config]) == 0
    assert Study.load("run").space.names == ["größe"]
    assert main(["fit", "--resume", "run", "--loop.n_trials", "3"]) == 0
