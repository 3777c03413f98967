"""`deepbore tune`: the hyperparameters of a user's own LightningCLI program, a process for each trial."""

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import yaml
from lightning.pytorch import LightningModule, Trainer
from torch.utils.data import DataLoader

from deepbore import Budget, ProcessEvaluator, Study
from deepbore.cli.main import main
from deepbore.cli.tune import fit_arguments
from deepbore.data.record import read_record
from deepbore.errors import SettingError, SpaceError, TrainingFailed
from deepbore.integrations.lightning_cli import KeepTrial
from deepbore.loop.lightning import quiet
from deepbore.problems import LightningCLIProblem

EXAMPLE = Path(__file__).parents[1] / "examples" / "tune_lightningcli"
SPACE = {"x": {"type": "real", "low": 0, "high": 1}}

# A program without Lightning, which starts at once: it leaves what KeepTrial would, and then does what x says.
PROGRAM = """
import json, os, sys, time
from pathlib import Path

settings = dict(arg[2:].split("=", 1) for arg in sys.argv[1:] if "=" in arg)
if "--print_config" in sys.argv:
    sys.exit(0 if set(settings) <= {"x", "y", "kind", "trainer.default_root_dir", "trainer.callbacks+"} else "unknown")
keeper = json.loads(settings["trainer.callbacks+"])["init_args"]
print("started with", settings, flush=True)
kind = settings.get("kind", "fine")
if kind == "raises":
    raise FloatingPointError("the loss is NaN")
if kind == "hangs":
    (Path(keeper["folder"]) / "pid").write_text(str(os.getpid()))
    time.sleep(600)
x = float(settings.get("x", 0.5))
history = {"nan": [x, float("nan")], "silent": []}.get(kind, [x + 1, x, x + 2])
if kind != "no fit":
    kept = {"history": history, "final": {"train_loss": x}}
    (Path(keeper["folder"]) / "metrics.json").write_text(json.dumps(kept))
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the program that starts at once, to work in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(PROGRAM)
    return tmp_path


def events(journal):
    return [json.loads(line) for line in Path(journal).read_text().splitlines()]


# --- the problem -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "direction", "value"),
    [("last", "minimize", 2.25), ("best", "minimize", 0.25), ("best", "maximize", 2.25)],
)
def test_a_trial_is_a_process_and_its_metric_the_value(here, mode, direction, value):
    problem = LightningCLIProblem(SPACE, "val_loss", direction=direction, metric_mode=mode)
    assert pickle.loads(pickle.dumps(problem))({"x": 0.25}, trial=7) == value
    assert yaml.safe_load((here / "trials" / "7" / "overrides.yaml").read_text()) == {"x": 0.25}
    assert "started with" in (here / "trials" / "7" / "log.txt").read_text()


def test_values_reach_the_program_as_its_command_line_has_them(here):
    space = {"x": SPACE["x"], "y": {"type": "categorical", "choices": ["a b", True, None, 3]}}
    problem = LightningCLIProblem(space, "val_loss", config=["fit.yaml"], arguments=["--trainer.max_epochs=3"])
    for y, shown in {"a b": "'a b'", True: "'true'", None: "'null'", 3: "'3'"}.items():
        problem({"x": 1e-05, "y": y}, trial=0)
        log = (here / "trials" / "0" / "log.txt").read_text()
        assert f"'x': '1e-05', 'y': {shown}" in log
        assert "'trainer.max_epochs': '3'" in log


def test_another_attempt_keeps_what_the_first_has_left(here):
    problem = LightningCLIProblem(SPACE, "val_loss")
    for x in (0.5, 0.25, 0.125):
        problem({"x": x}, trial=3)
    problem({"x": 1})  # without a number: the next free one
    assert sorted(path.name for path in Path("trials").iterdir()) == ["0", "3", "3-attempt-1", "3-attempt-2"]
    assert "0.5" in Path("trials/3-attempt-1/overrides.yaml").read_text()


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("raises", "ended with status 1; the end of .*log.txt:\n(.*\n)*FloatingPointError: the loss is NaN"),
        ("silent", r"'val_loss' was never logged, only \['train_loss'\]; the end of .*:\nstarted with"),
        ("nan", "val_loss is nan"),
        ("no fit", "ended without a `fit`"),
    ],
)
def test_a_failure_says_why_with_the_end_of_the_log(here, kind, reason):
    problem = LightningCLIProblem(SPACE, "val_loss", arguments=[f"--kind={kind}"])
    with pytest.raises(TrainingFailed, match=reason):
        problem({"x": 0.5})


def test_the_best_of_a_diverged_training_is_its_best_finite_value(here):
    problem = LightningCLIProblem(SPACE, "val_loss", metric_mode="best", arguments=["--kind=nan"])
    assert problem({"x": 0.5}) == 0.5


def test_every_parameter_is_tried_on_the_programs_command_line_before_a_run(here):
    kinds = {"type": "categorical", "choices": ["a", "b"]}
    LightningCLIProblem({"kind": kinds, **SPACE}, "val_loss").prepare()
    hidden = {"kind": kinds, "x": {**SPACE["x"], "when": {"kind": "a"}}, "z": {**SPACE["x"], "when": {"kind": "b"}}}
    with pytest.raises(SettingError, match=r"take every parameter(.*\n)*.*--z=(.*\n)*unknown"):
        LightningCLIProblem(hidden, "val_loss").prepare()
    assert not (here / "trials").exists()


@pytest.mark.parametrize(
    ("settings", "error"),
    [({"direction": "up"}, SettingError), ({"metric_mode": "mean"}, SettingError), ({"program": []}, SettingError)],
)
def test_wrong_settings_are_refused(settings, error):
    with pytest.raises(error):
        LightningCLIProblem(SPACE, "val_loss", **settings)
    with pytest.raises(SpaceError):
        LightningCLIProblem({"x": {"type": "real", "low": 2, "high": 1}}, "val_loss")


@pytest.mark.slow
def test_workers_name_folders_by_trial_and_a_timeout_ends_the_program(here):
    space = {"kind": {"type": "categorical", "choices": ["fine", "hangs", "raises"]}}
    problem = LightningCLIProblem(space, "val_loss")
    study = Study(problem.space, journal="run.jsonl")
    with pytest.warns(RuntimeWarning, match="failed"):
        study.optimize(ProcessEvaluator(problem, workers=2, timeout=15), n_trials=3)
    reasons = {event["trial"]: event["reason"] for event in events("run.jsonl") if event["event"] == "failed"}
    for trial in study.trials:
        kept = yaml.safe_load(Path("trials", str(trial.id), "overrides.yaml").read_text())
        assert kept == trial.params
        if trial.params["kind"] == "hangs":
            assert "timed out" in reasons[trial.id]
            assert_gone(int(Path("trials", str(trial.id), "pid").read_text()))
    assert study.best_trial.value == 2.5
    assert len(reasons) == 2


def assert_gone(pid):
    """A killed process may stay for a moment, until its new parent has looked."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        stat = Path(f"/proc/{pid}/stat")
        if stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return
        time.sleep(0.05)
    pytest.fail(f"process {pid} lives on")


# --- the callback in the user's program ------------------------------------------------------------------------------


class Counting(LightningModule):
    """Logs the epoch at the end of each validation, and another number after each epoch."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))

    def training_step(self, batch):
        return self.weight

    def validation_step(self, batch):
        self.log("val", torch.tensor(float(self.current_epoch) if not self.trainer.sanity_checking else 99.0))

    def on_train_epoch_end(self):
        self.log("late", 10.0 * self.current_epoch)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


@pytest.mark.parametrize(("metric", "seen", "last"), [("val", {0.0, 1.0, 2.0}, 2.0), ("late", {0.0, 10.0, 20.0}, 20.0)])
def test_the_callback_sees_what_is_logged_anywhere_in_an_epoch(tmp_path, metric, seen, last):
    data = DataLoader(torch.zeros(2, 1))
    with quiet():
        trainer = Trainer(
            max_epochs=3,
            callbacks=[KeepTrial(str(tmp_path), metric)],
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            accelerator="cpu",
        )
        trainer.fit(Counting(), data, data)
    kept = json.loads((tmp_path / "metrics.json").read_text())
    assert set(kept["history"]) == seen
    assert kept["history"][-1] == last
    assert kept["final"] == {"val": 2.0, "late": 20.0}


# --- the command line ------------------------------------------------------------------------------------------------


def test_tune_is_fit_with_a_problem(here):
    Path("space.yaml").write_text(yaml.safe_dump(SPACE))
    flags = ["--space", "space.yaml", "--metric", "val_loss", "--config", "a.yaml", "--config=b.yaml"]
    others = ["--evaluation.workers", "2", "--loop.seed", "3"]
    given = [*flags, "--n_trials", "5", "--script", "mine.py", *others, "--", "--trainer.max_epochs", "3"]
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
    assert rest == [*others, "--loop.n_trials", "5"]


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
    return subprocess.Popen(command, cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


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
