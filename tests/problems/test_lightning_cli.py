"""A user's own LightningCLI program as a problem: a process for each trial."""

import json
import pickle
from pathlib import Path

import pytest
import torch
import yaml
from lightning.pytorch import LightningModule
from torch.utils.data import DataLoader

from deepbore import ProcessEvaluator, Study, Trial, TrialPruned
from deepbore.errors import SettingError, SpaceError, TrainingFailed
from deepbore.integrations.lightning_cli import KeepTrial
from deepbore.loop.quiet import quiet
from deepbore.problems import LightningCLIProblem
from deepbore.worker.reporting import JudgeServer, LocalJudge, Reporting
from trainers import quiet_trainer
from tuned import SPACE, assert_gone, events, in_a_folder_with_train_py


@pytest.fixture
def here(tmp_path, monkeypatch):
    return in_a_folder_with_train_py(tmp_path, monkeypatch)


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
        ("silent", r"must log 'val_loss', but has only logged \['train_loss'\]"),
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


@pytest.mark.parametrize("is_remote", [False, True])
def test_the_program_reaches_the_pruner_and_its_metric_is_the_curve(here, is_remote):
    judge = LocalJudge(lambda row, reports: row == 7 and max(reports.values()) > 2)
    server = JudgeServer(judge)
    problem = LightningCLIProblem(SPACE, "val_loss")
    fine, bad = (Trial(row, {}, reporter=Reporting(server.address if is_remote else judge)) for row in (6, 7))
    assert problem({"x": 0.5}, fine) == 2.5
    with pytest.raises(TrialPruned, match="val_loss after 3 epochs"):
        problem({"x": 0.5}, bad)
    server.close()
    assert fine.reporter.reports == bad.reporter.reports == {1: 1.5, 2: 0.5, 3: 2.5}


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


@pytest.mark.parametrize(("metric", "seen"), [("val", [0.0, 1.0, 2.0]), ("late", [0.0, 10.0, 20.0])])
def test_the_callback_sees_what_is_logged_anywhere_in_an_epoch(tmp_path, metric, seen):
    data = DataLoader(torch.zeros(2, 1))
    trainer = quiet_trainer(max_epochs=3, callbacks=[KeepTrial(str(tmp_path), metric)])
    with quiet():
        trainer.fit(Counting(), data, data)
    kept = json.loads((tmp_path / "metrics.json").read_text())
    assert kept["history"] == seen  # "late" comes after the validation, which must not report that of the epoch before
    assert kept["final"] == {"val": 2.0, "late": 20.0}


def test_the_callback_ends_the_training_where_the_study_says_so(tmp_path, monkeypatch):
    asked = []
    server = JudgeServer(lambda row, reports: asked.append((row, reports)) or max(reports) == 2)
    monkeypatch.setenv("DEEPBORE_REPORTS", json.dumps([3, server.address.as_text]))
    data = DataLoader(torch.zeros(2, 1))
    with quiet():
        quiet_trainer(max_epochs=5, callbacks=[KeepTrial(str(tmp_path), "val")]).fit(Counting(), data, data)
    server.close()
    kept = json.loads((tmp_path / "metrics.json").read_text())
    assert (kept["history"], kept["steps"], kept["pruned"]) == ([0.0, 1.0], [1, 2], True)
    assert asked == [(3, {1: 0.0}), (3, {2: 1.0})]


# regression: epochs without a validation reported the last one's metric again, as if it stood still
@pytest.mark.parametrize(
    ("settings", "history", "steps"),
    [
        ({"max_epochs": 6, "check_val_every_n_epoch": 3}, [2.0, 5.0], [3, 6]),
        ({"max_epochs": 1, "val_check_interval": 0.25}, [0.0] * 4, [0.25, 0.5, 0.75, 1]),
        ({"max_epochs": 2, "val_check_interval": 0.5}, [0.0, 0.0, 1.0, 1.0], [0.5, 1, 1.5, 2]),
    ],
)
def test_the_callback_keeps_what_was_measured_by_parts_of_epochs(tmp_path, settings, history, steps):
    trainer = quiet_trainer(callbacks=[KeepTrial(str(tmp_path), "val")], **settings)
    with quiet():
        trainer.fit(Counting(), DataLoader(torch.zeros(8, 1)), DataLoader(torch.zeros(2, 1)))
    kept = json.loads((tmp_path / "metrics.json").read_text())
    assert (kept["history"], kept["steps"]) == (history, steps)
