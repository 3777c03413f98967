"""A Lightning Trainer that reports to a trial, and ends where it is pruned: alone, and on two ranks."""

import os
import socket
import subprocess
import sys

import pytest
import torch
from lightning.pytorch import LightningModule
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from torch.utils.data import DataLoader

import forked
from deepbore import Pruner, Study, Trial, TrialPruned, minimize
from deepbore.data.trial import Status
from deepbore.errors import SettingError
from deepbore.integrations.lightning import PruningCallback
from deepbore.loop.quiet import quiet
from plane import LINE
from trainers import quiet_trainer


class After(Pruner):
    """Ends the trials with x above a half after so many steps."""

    def __init__(self, steps: int = 2):
        self.steps = steps

    def should_prune(self, curve, others):
        return len(curve) >= self.steps and curve.values[0] > 0.5


class Constant(LightningModule):
    """Logs x after each epoch, in validation and in training."""

    def __init__(self, x):
        super().__init__()
        self.x, self.weight = x, torch.nn.Parameter(torch.zeros(()))

    def training_step(self, batch):
        self.log("train_loss", self.x, on_epoch=True, on_step=False)
        return self.weight

    def validation_step(self, batch):
        self.log("val_loss", 99.0 if self.trainer.sanity_checking else self.x)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def fitted(x, *callbacks, validates=True, **settings):
    """The trainer of five epochs."""
    data = DataLoader(torch.zeros(2, 1))
    trainer = quiet_trainer(**{"max_epochs": 5, "callbacks": list(callbacks)} | settings)
    with quiet():
        trainer.fit(Constant(x), data, *([data] if validates else []))
    return trainer


@pytest.mark.parametrize(("monitor", "validates"), [("val_loss", True), ("train_loss", False)])
def test_a_trainer_reports_each_epoch_and_ends_where_its_trial_is_pruned(monitor, validates):
    def objective(params, trial):
        fitted(params["x"], PruningCallback(trial, monitor), validates=validates)
        return params["x"]

    study = minimize(objective, LINE, 4, pruner=After(2), progress=False).study
    assert {trial.status for trial in study.trials} == {Status.COMPLETE, Status.PRUNED}
    for trial in study.trials:
        is_bad = trial.params["x"] > 0.5
        assert trial.status is (Status.PRUNED if is_bad else Status.COMPLETE)
        assert trial.reports == dict.fromkeys(range(1, (2 if is_bad else 5) + 1), pytest.approx(trial.params["x"]))
        assert (trial.reason == f"{monitor} after 2 epochs") is is_bad


def test_early_stopping_beside_it_ends_a_trial_as_complete(tmp_path):
    def objective(params, trial):
        stops = EarlyStopping("val_loss", patience=2)
        keeps = ModelCheckpoint(tmp_path / str(trial.id), save_last=True)
        trainer = fitted(params["x"], PruningCallback(trial, "val_loss"), stops, keeps, enable_checkpointing=True)
        return float(trainer.callback_metrics["val_loss"])

    study = minimize(objective, LINE, 4, pruner=After(2), progress=False).study
    assert {(trial.status, len(trial.reports)) for trial in study.trials} == {(Status.COMPLETE, 3), (Status.PRUNED, 2)}
    assert all((tmp_path / str(trial.id) / "last.ckpt").exists() for trial in study.trials)  # of pruned ones, too


def test_by_ask_and_tell_the_training_raises_what_is_to_be_told():
    study = Study(LINE, pruner=After(1))
    (trial,) = study.ask()
    callback = PruningCallback(trial, "val_loss")
    with pytest.raises(TrialPruned, match="after 1 epochs"):
        fitted(0.75, callback)
    study.tell(trial, pruned=True)
    assert callback.pruned
    assert study.trials[0].reports == {1: 0.75}


def test_what_is_not_logged_is_not_reported():
    (trial,) = Study(LINE).ask()
    fitted(0.75, PruningCallback(trial, "val_los"))
    assert trial.reports == {}


@pytest.mark.parametrize(("trial", "monitor"), [(3, "val_loss"), (Trial(0, {}), ""), (Trial(0, {}), None)])
def test_wrong_settings_are_refused(trial, monitor):
    with pytest.raises(SettingError):
        PruningCallback(trial, monitor)


RANK = """
import os, sys
sys.path[:0] = {path!r}
from dataclasses import replace
from deepbore import Trial, TrialPruned
from deepbore.integrations.lightning import PruningCallback
from deepbore.worker.reporting import Reporting
from test_lightning import fitted

rank = int(os.environ["RANK"])
judge = lambda row, reports: max(reports) >= 3
trial = Trial(0, {{}}, reporter=Reporting(judge) if rank == 0 else None)  # the others know nothing of the study
callback = PruningCallback(trial, "val_loss")
try:
    fitted(0.75, callback, accelerator="cpu", devices=2, strategy="ddp")
    said = "complete"
except TrialPruned as error:
    said = str(error)
print("rank", rank, "says", said, list(trial.reporter.reports) if rank == 0 else "")
"""


@pytest.mark.slow
def test_under_ddp_the_first_rank_decides_and_both_end_together():
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        port = str(door.getsockname()[1])
    known = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": "1"}
    code = RANK.format(path=[os.path.dirname(__file__), *sys.path])
    ranks = [
        forked.Popen(
            [sys.executable, "-c", code],
            env=os.environ | known | {"RANK": str(rank), "LOCAL_RANK": str(rank), "GROUP_RANK": "0"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    try:
        said = [rank.communicate(timeout=120) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert "rank 0 says val_loss after 3 epochs [1, 2, 3]" in said[0][0], said
    assert "rank 1 says val_loss after 3 epochs" in said[1][0], said
