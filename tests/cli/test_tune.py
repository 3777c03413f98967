"""`deepbore tune`: the command, with real programs."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import yaml

import forked
from commands import BRANIN
from deepbore import Budget, Study
from deepbore.cli.main import main
from deepbore.cli.tune import fit_arguments
from deepbore.data.replay import read_record
from deepbore.errors import SettingError
from deepbore.problems import LightningCLIProblem
from plane import LINE
from tuned import EXAMPLE, SPACE, assert_gone, events, in_a_folder_with_train_py


@pytest.fixture
def here(tmp_path, monkeypatch):
    return in_a_folder_with_train_py(tmp_path, monkeypatch)


def test_tune_is_fit_with_a_problem(here):
    Path("space.yaml").write_text(yaml.safe_dump(SPACE))
    flags = ["--space", "space.yaml", "--metric", "val_loss", "--config", "a.yaml", "--config=b.yaml"]
    others = ["--evaluation.workers", "2", "--loop.seed", "3"]
    given = [
        *flags,
        "--n_trials",
        "5",
        "--pruner",
        "MedianPruner",
        "--script",
        "mine.py",
        *others,
        "--",
        "--trainer.max_epochs",
        "3",
    ]
    _, problem, _, run, *rest = fit_arguments(given)
    assert json.loads(problem)["init_args"] == {
        "metric": "val_loss",
        "config": ["a.yaml", "b.yaml"],
        "space": SPACE,
        "program": ["mine.py", "fit"],
        "arguments": ["--trainer.max_epochs", "3"],
        "folder": "runs/tune-1/trials",
    }
    assert run == "runs/tune-1"
    assert rest == [*others, "--loop.n_trials", "5", "--loop.pruner", "MedianPruner"]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--space", "space.yaml"], "--metric must be given"),
        (["--metric", "val_loss"], "--space must be given"),
        (["--metric", "val_loss", "--space", "missing.yaml"], "missing.yaml can't be read"),
        (["--metric", "val_loss", "--space", "list.yaml"], "must map names to parameters"),
        (["--metric", "val_loss", "--space", "space.yaml", "--n_trails", "3"], "n_trails"),
        (["--metric", "val_loss", "--space", "space.yaml", "--direction", "up"], "direction"),
        (["--metric"], "expected one argument"),
        (["--resume", "run", "--space", "space.yaml"], "beside --resume stands --space"),
        (["--resume", "run", "--", "--seed", "1"], "beside --resume stands --"),
        (["--resume", "nowhere"], "needs the directory of a run"),
        (["--metric", "loss", "--space", "typo.yaml"], "--lr="),
        (["--metric", "loss", "--space", "space.yaml", "--script", "nowhere.py"], "nowhere.py"),
    ],
)
def test_wrong_commands_are_refused_before_any_trial(here, capsys, args, says):
    Path("space.yaml").write_text(yaml.safe_dump(SPACE))
    Path("typo.yaml").write_text(yaml.safe_dump({"lr": SPACE["x"]}))
    Path("list.yaml").write_text("[1, 2]")
    assert main(["tune", *args]) == 2
    shown = capsys.readouterr().err
    assert says in shown
    assert "Traceback" not in shown
    assert not Path("runs").exists()


def test_help_says_what_there_is(capsys):
    assert main(["tune", "--help"]) == main(["tune"]) == 0
    assert "--metric_mode" in capsys.readouterr().out


def start(*args, cwd):
    command = [sys.executable, "-m", "deepbore.cli", "tune", *map(str, args)]
    return forked.Popen(command, cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_the_end_of_the_run_ends_the_training_too(here, sent):
    Path("space.yaml").write_text(yaml.safe_dump(SPACE))
    process = start("--space", "space.yaml", "--metric", "loss", "--run", "run", "--", "--kind=hangs", cwd=here)
    pid = here / "run" / "trials" / "0" / "pid"
    while process.poll() is None and not (pid.exists() and pid.read_text()):
        time.sleep(0.05)
    process.send_signal(sent)
    if sent == signal.SIGINT:  # once waits for the training, which hangs; twice doesn't
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=2)
        process.send_signal(sent)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == (130 if sent == signal.SIGINT else -sent), errors
    assert_gone(int(pid.read_text()))
    assert [event["event"] for event in events(here / "run" / "journal.jsonl")] == ["created", "asked"]


@pytest.mark.slow
def test_the_example_is_tuned_fails_in_places_and_goes_on(tmp_path, monkeypatch, capsys):
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    space = yaml.safe_load(Path("space.yaml").read_text())
    space["model.activation"]["choices"] = ["tanh", "swish"]  # the second is unknown to the program
    Path("space.yaml").write_text(yaml.safe_dump(space))
    args = ["--config", "fit.yaml", "--space", "space.yaml", "--metric", "val_loss", "--run", "run"]
    with pytest.warns(RuntimeWarning, match="swish"):
        assert main(["tune", *args, "--n_trials", "3", "--", "--trainer.max_epochs=1"]) == 0
    assert main(["tune", "--resume", "run", "--n_trials", "4"]) == 0
    assert "kept in run" in capsys.readouterr().out
    outcomes = {event["trial"]: event for event in events("run/journal.jsonl") if event["event"] in ("told", "failed")}
    assert sorted(outcomes) == [0, 1, 2, 3]
    for k, outcome in outcomes.items():
        folder = Path("run", "trials", str(k))
        overrides = yaml.safe_load((folder / "overrides.yaml").read_text())
        assert (outcome["event"] == "failed") == (overrides["model.activation"] == "swish")
        if outcome["event"] == "failed":
            assert "KeyError: 'swish'" in outcome["reason"]
            continue
        config = yaml.safe_load((folder / "config.yaml").read_text())
        assert config["model"]["lr"] == overrides["model.lr"]
        assert config["trainer"]["max_epochs"] == 1
        assert config["trainer"]["callbacks"] is None
        assert json.loads((folder / "metrics.json").read_text())["final"] == {"val_loss": outcome["value"]}
    assert {outcome["event"] for outcome in outcomes.values()} == {"told", "failed"}


@pytest.mark.slow
def test_bad_trials_end_early_and_the_best_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    args = ["--config", "fit.yaml", "--space", "space.yaml", "--metric", "val_loss", "--metric_mode", "best"]
    budget = ["--loop.budget", "{unit: epochs, low: 1, high: 3}"]
    assert main(["tune", *args, *budget, "--run", "run", "--n_trials", "3"]) == 0
    assert main(["tune", "--resume", "run", "--n_trials", "4"]) == 0
    trials = read_record(Path("run/journal.jsonl")).trials
    assert [trial.budget for trial in trials] == [1, 1, 1, 3]
    best = min(trials[:3], key=lambda trial: trial.value)
    assert trials[3].params == best.params
    first, second = (Path("run", "trials", str(trial.id)) for trial in (best, trials[3]))
    states = [torch.load(folder / "continue.ckpt", weights_only=False) for folder in (first, second)]
    assert states[1]["global_step"] == 3 * states[0]["global_step"]
    histories = [json.loads((folder / "metrics.json").read_text())["history"] for folder in (first, second)]
    assert histories[1][: len(histories[0])] == histories[0]
    assert trials[3].value == min(histories[1])
    config = yaml.safe_load((second / "config.yaml").read_text())
    assert (config["trainer"]["max_epochs"], config["ckpt_path"]) == (3, str(first.resolve() / "continue.ckpt"))
    assert config["trainer"]["callbacks"] is None


def test_what_a_budget_tells_the_program(here):
    problem = LightningCLIProblem(SPACE, "val_loss")
    study = Study(problem.space, budget=Budget("epochs", 2, 6))
    for trial in study.ask(3):
        study.tell(trial, problem(trial.params, trial))
    (promoted,) = study.ask()
    log = Path("trials", "3", "log.txt")
    problem(promoted.params, promoted)  # its checkpoint is gone: this program writes none
    assert "'trainer.max_epochs': '6'" in log.read_text()
    assert "ckpt_path" not in log.read_text()
    kept = Path("trials", str(promoted.resume_from.id), "continue.ckpt").resolve()
    kept.touch()
    problem(promoted.params, promoted)
    assert f"'ckpt_path': '{kept}'" in log.read_text()
    assert "'trainer.max_epochs': '2'" in Path("trials", "0", "log.txt").read_text()
    problem({"x": 0.5}, trial=9)
    assert "max_epochs" not in Path("trials", "9", "log.txt").read_text()


@pytest.mark.parametrize("parts", [False, True], ids=["a file", "a folder of parts"])
def test_of_a_configuration_that_goes_on_the_last_two_checkpoints_are_kept(here, parts):
    problem = LightningCLIProblem(SPACE, "val_loss")
    study = Study(problem.space, seed=0, budget=Budget("epochs", 1, 9))
    last = None
    while last is None or last.budget < 9:
        (last,) = study.ask()
        study.tell(last, problem(last.params, last))
        kept = Path("trials", str(last.id), "continue.ckpt")
        kept.mkdir() if parts else kept.touch()
    chain = [last, last.resume_from, last.resume_from.resume_from]
    assert [Path("trials", str(trial.id), "continue.ckpt").exists() for trial in chain] == [True, True, False]
    others = {trial.id for trial in study.trials} - {trial.id for trial in chain}
    assert all(Path("trials", str(k), "continue.ckpt").exists() for k in others)


@pytest.mark.slow
def test_a_name_that_the_program_does_not_know_is_found_before_any_trial(tmp_path, monkeypatch, capsys):
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    Path("space.yaml").write_text("model.learning_rate: {type: real, low: 0.0, high: 1.0}")
    assert main(["tune", "--config", "fit.yaml", "--space", "space.yaml", "--metric", "val_loss"]) == 2
    assert "unrecognized arguments: --model.learning_rate" in capsys.readouterr().err
    assert not Path("runs").exists()


LINKED = """
from lightning.pytorch.cli import LightningCLI
from lightning.pytorch.demos.boring_classes import BoringDataModule, BoringModel

class Network(BoringModel):
    def __init__(self, lr: float = 0.1, batch_size: int = 8):
        super().__init__()

class Data(BoringDataModule):
    def __init__(self, batch_size: int = 32):
        super().__init__()

class CLI(LightningCLI):
    def add_arguments_to_parser(self, parser):
        parser.link_arguments("data.batch_size", "model.init_args.batch_size")

if __name__ == "__main__":
    CLI(Network, Data, subclass_mode_model=True)
"""


# regression: each of these was wrong once
@pytest.mark.parametrize("option", [["--seed_everything", "5"], ["--loop.n_trial", "20"]])
def test_an_option_that_does_nothing_is_refused(tmp_path, monkeypatch, capsys, option):
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(BRANIN)
    assert main(["fit", "--config", "mine.yaml", *option]) == 2
    shown = capsys.readouterr().err
    assert option[0].strip("-") in shown
    assert "--loop." in shown
    assert not Path("runs").exists()


@pytest.mark.parametrize("limit", ["--trainer.max_epochs=1", "--trainer.max_steps"])
def test_how_long_a_program_trains_stands_behind_the_dashes(tmp_path, monkeypatch, capsys, limit):
    monkeypatch.chdir(tmp_path)
    assert main(["tune", "--space", "space.yaml", "--metric", "loss", limit, "1"]) == 2
    assert "behind --" in capsys.readouterr().err


@pytest.mark.slow
def test_an_argument_that_a_program_links_is_no_parameter(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(LINKED)
    batch_size = {"type": "ordinal", "choices": [16, 64]}
    rate = {"type": "real", "low": 1e-5, "high": 0.1, "log": True}
    program = {"arguments": ["--model=Network"]}
    with pytest.raises(SettingError, match=r"model\.batch_size=\d+ must arrive .* links"):
        LightningCLIProblem({"model.lr": rate, "model.batch_size": batch_size}, "loss", **program).prepare()
    LightningCLIProblem({"model.lr": rate, "data.batch_size": batch_size}, "loss", **program).prepare()


@pytest.mark.usefixtures("beside_branin")
@pytest.mark.parametrize(("option", "path"), [("--script", "nope.py"), ("--config", "nope.yaml")])
def test_a_program_that_is_not_there_is_said_to_be_missing(option, path, capsys):
    Path("train.py").touch()
    Path("space.yaml").write_text("model.lr: {type: real, low: 0, high: 1}")
    assert main(["tune", "--space", "space.yaml", "--metric", "val_loss", option, path, "--n_trials", "1"]) == 2
    assert f"must be files, but {path} is none here" in capsys.readouterr().err
    assert not Path("runs").exists()


@pytest.mark.usefixtures("beside_branin")
def test_a_command_that_nothing_would_end_is_refused(capsys):
    assert main(["fit", "--config", "branin.yaml", "--loop.n_trials", "null"]) == 2
    assert "n_trials=None needs something else that ends the run" in capsys.readouterr().err
    limited = ["--loop.n_trials", "null", "--loop.n_initial", "2", "--trainer.max_epochs", "1"]
    assert main(["fit", "--config", "branin.yaml", *limited]) == 0


def run_here(*args):
    return main([*map(str, args)])


@pytest.mark.parametrize("budget", [{"low": 1, "high": 9, "factor": 1.5}, {"low": 0.5, "high": 9, "factor": 2}])
def test_a_program_is_given_whole_epochs_or_no_run_begins(empty_folder, capsys, budget):
    Path("train.py").write_text("")  # takes whatever it is given
    Path("space.yaml").write_text("x: {type: real, low: 0, high: 1}")
    said = "{unit: epochs, " + ", ".join(f"{name}: {value}" for name, value in budget.items()) + "}"
    assert run_here("tune", "--space", "space.yaml", "--metric", "loss", "--run", "r", "--loop.budget", said) == 2
    assert "a program trains for whole epochs, but low=" in capsys.readouterr().err
    assert not Path("r").exists()
    problem = LightningCLIProblem(LINE, "loss")
    with pytest.raises(SettingError, match="Give whole numbers, such as low=1"):
        Study(LINE, budget=Budget("epochs", **budget)).optimize(problem, 1)
