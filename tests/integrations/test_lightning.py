"""A Lightning Trainer that reports to a trial, and ends where it is pruned: alone, and on two ranks."""

import os
import socket
import subprocess
import sys
import tempfile

import pytest
import torch
from lightning.pytorch import LightningModule
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from torch.utils.data import DataLoader, IterableDataset

import forked
from deepbore import MedianPruner, Pruner, Study, Trial, TrialPruned, minimize
from deepbore.data.trial import Status
from deepbore.errors import ObjectiveError, SettingError
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


def fitted(x, *callbacks, validates=True, n=2, data=None, ckpt_path=None, **settings):
    """The trainer of five epochs of n batches; x is what it logs, or the model."""
    train = DataLoader(torch.zeros(n, 1) if data is None else data)
    held_out = [DataLoader(torch.zeros(2, 1))] if validates else []
    trainer = quiet_trainer(**{"max_epochs": 5, "callbacks": list(callbacks)} | settings)
    with quiet():
        model = x if isinstance(x, LightningModule) else Constant(x)
        trainer.fit(model, train, *held_out, ckpt_path=ckpt_path)
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
    study = Study(LINE)
    fitted(0.75, PruningCallback(study.ask_one(), "val_los"))
    assert study.trials[0].reports == {}


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


# --- the same progress, whatever the shape of a training --------------------------------------------------------------


class Endless(IterableDataset):
    """Batches without a known number."""

    def __iter__(self):
        return iter(torch.zeros(6, 1))


def of_one_fit(n=12, **settings):
    def train(x, trial):
        fitted(x, PruningCallback(trial, "val_loss"), n=n, **settings)

    return train


def folds(x, trial):
    for _ in range(3):
        fitted(x, PruningCallback(trial, "val_loss"), max_epochs=2)


def tuning_after_training(x, trial):
    fitted(x + 1, PruningCallback(trial, "train_loss"), validates=False, max_epochs=3)
    fitted(x, PruningCallback(trial, "val_loss"), max_epochs=2, val_check_interval=0.5)


def resumed(x, trial):
    with tempfile.TemporaryDirectory() as folder:
        first = fitted(x, PruningCallback(trial, "val_loss"), max_epochs=2)
        first.save_checkpoint(f"{folder}/last.ckpt")
        fitted(x, PruningCallback(trial, "val_loss"), max_epochs=4, ckpt_path=f"{folder}/last.ckpt")


def falling(x, trial):
    for left in range(6, 0, -1):
        trial.report(x, left)
        if trial.should_prune():
            raise TrialPruned


TENTHS = [round(k / 10, 1) for k in range(1, 11)]
SHAPES = {
    "an epoch": (of_one_fit(), [1, 2, 3, 4, 5]),
    "ten validations of one epoch": (of_one_fit(max_epochs=1, val_check_interval=0.1, n=20), TENTHS),
    "two validations an epoch": (of_one_fit(max_epochs=2, val_check_interval=0.5), [0.5, 1, 1.5, 2]),
    "every second epoch": (of_one_fit(max_epochs=6, check_val_every_n_epoch=2), [2, 4, 6]),
    "by batches across epochs": (
        of_one_fit(max_epochs=3, check_val_every_n_epoch=None, val_check_interval=9),
        [0.75, 1.5, 2.25, 3],
    ),
    "accumulated batches": (
        of_one_fit(max_epochs=2, accumulate_grad_batches=4, val_check_interval=6),
        [0.5, 1, 1.5, 2],
    ),
    "an unknown number of batches": (
        of_one_fit(max_epochs=2, val_check_interval=3, data=Endless()),
        [0.75, 1, 1.75, 2],
    ),
    "folds": (folds, [1, 2, 3, 4, 5, 6]),
    "fine-tuning after training": (tuning_after_training, [1, 2, 3, 4, 4.5, 5, 5.5]),
    "a checkpoint that is resumed": (resumed, [1, 2, 3, 4]),
    "steps that fall": (falling, [6, 7, 8, 9, 10, 11]),
}


QUICK = {"ten validations of one epoch", "folds", "steps that fall"}


@pytest.mark.parametrize(
    "shape", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in SHAPES]
)
def test_trainings_of_each_shape_are_compared_at_the_same_progress(shape):
    train, steps = SHAPES[shape]

    def run(value_of):
        study = Study(LINE, pruner=MedianPruner(startup_trials=3, warmup_steps=0), seed=0)

        def objective(params, trial):
            train(value_of(trial.id), trial)
            return value_of(trial.id)

        study.optimize(objective, 6, progress=False)
        return study.trials

    equal = run(lambda _row: 0.5)
    assert {trial.status for trial in equal} == {Status.COMPLETE}
    assert [list(trial.reports) for trial in equal] == [pytest.approx(steps)] * 6
    kinds = run(lambda row: 0.5 + row % 2)
    assert [trial.id for trial in kinds if trial.status is Status.PRUNED] == [3, 5]
    assert {len(trial.reports) for trial in kinds if trial.status is Status.PRUNED} == {1}


def test_other_batches_are_at_the_same_progress():
    steps = []
    for n in (8, 20, 40):
        study = Study(LINE)
        fitted(0.5, PruningCallback(study.ask_one(), "val_loss"), n=n, max_epochs=2, val_check_interval=0.25)
        steps.append(list(study.trials[0].reports))
    assert steps[0] == steps[1] == steps[2] == [0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2]


class Rising(Constant):
    """Logs in training the number of batches so far, in validation minus that."""

    def training_step(self, batch):
        self.log("train_loss", float(self.global_step), on_epoch=True, on_step=False)
        self.log("step_loss", float(self.global_step), on_epoch=False, on_step=True)
        return self.weight

    def validation_step(self, batch):
        self.log("val_loss", -float(self.global_step))

    def on_train_epoch_end(self):
        self.log("late", float(self.global_step))


# regression: at a validation the loss of the training was that of the epoch before, and epochs without a validation
# reported the last one's
@pytest.mark.parametrize(
    ("monitor", "settings", "reports"),
    [
        ("train_loss", {}, {1: 0.5, 2: 2.5, 3: 4.5}),
        ("train_loss", {"check_val_every_n_epoch": 2}, {1: 0.5, 2: 2.5, 3: 4.5}),
        ("train_loss", {"val_check_interval": 1}, {1: 0.5, 2: 2.5, 3: 4.5}),
        ("val_loss", {"check_val_every_n_epoch": 2}, {2: -4}),
        ("val_loss", {"val_check_interval": 1}, {0.5: -1, 1: -2, 1.5: -3, 2: -4, 2.5: -5, 3: -6}),
        ("step_loss", {}, {1: 1, 2: 3, 3: 5}),
        ("val_loss", {"limit_val_batches": 0}, {}),
    ],
)
@pytest.mark.parametrize("early", [False, True])
def test_what_was_not_measured_is_not_reported(monitor, settings, reports, early):
    study = Study(LINE)
    others = [EarlyStopping(monitor, patience=9, strict=False)] if early else []  # it reads the metrics, too
    fitted(Rising(0.5), PruningCallback(study.ask_one(), monitor), *others, n=2, max_epochs=3, **settings)
    assert study.trials[0].reports == pytest.approx(reports)


@pytest.mark.parametrize("validates", [True, False])
@pytest.mark.parametrize(
    ("monitor", "hint"), [("val_los", "Did you mean 'val_loss'"), ("accuracy", "has logged no such")]
)
def test_a_metric_that_never_comes_is_said_once(monitor, hint, validates, caplog, monkeypatch):
    monkeypatch.setattr("deepbore.integrations.lightning._missed", set())
    for _ in range(2):
        study = Study(LINE)
        fitted(0.5, PruningCallback(study.ask_one(), monitor), validates=validates, max_epochs=2)
        assert study.trials[0].reports == {}
    (said,) = (record.getMessage() for record in caplog.records if record.name == "deepbore.integrations.lightning")
    assert ("Did you mean 'val_loss'" in said) is (validates and monitor == "val_los")
    assert hint in said or not validates


@pytest.mark.parametrize("settings", [{"check_val_every_n_epoch": 3}, {"max_epochs": 2}])
def test_a_metric_that_comes_late_is_not_said_to_be_missing(settings, caplog):
    study = Study(LINE)
    fitted(0.5, PruningCallback(study.ask_one(), "val_loss"), **settings)
    assert study.trials[0].reports
    assert not caplog.records


@pytest.fixture
def nothing_was_seen(monkeypatch):
    for name in ("_missed", "_seen"):
        monkeypatch.setattr(f"deepbore.integrations.lightning.{name}", set())


def training(monitor, ran, **settings):
    """An objective that trains with a pruner's callback."""

    def train(params, trial):
        ran.append(trial.id)
        trainer = fitted(params["x"], PruningCallback(trial, monitor(trial.id)), max_epochs=2, **settings)
        return float(trainer.callback_metrics["train_loss"])

    return train


@pytest.mark.parametrize("pruner", [MedianPruner(), After()])
@pytest.mark.parametrize("settings", [{}, {"validates": False}, {"n": 1, "check_val_every_n_epoch": 2}])
@pytest.mark.parametrize("monitor", ["val_los", "accuracy"])
def test_a_run_whose_monitor_never_comes_ends_with_its_first_training(monitor, settings, pruner, nothing_was_seen):
    ran = []
    with pytest.raises(ObjectiveError, match=rf"monitor='{monitor}'.*logged no such metric, but .*train_loss"):
        minimize(training(lambda _: monitor, ran, **settings), LINE, 20, seed=0, pruner=pruner)
    assert ran == [0]


def test_a_monitor_that_only_some_trainings_lack_costs_no_trial(nothing_was_seen):
    def train(params, trial):
        trainer = fitted(params["x"], PruningCallback(trial, "val_loss"), validates=trial.id != 2, max_epochs=2)
        return float(trainer.callback_metrics["train_loss"])

    result = minimize(train, LINE, 5, seed=0, pruner=After(99))
    assert {trial.status for trial in result.study.trials} == {Status.COMPLETE}
    assert [bool(trial.reports) for trial in result.study.trials] == [True, True, False, True, True]


def test_a_monitor_that_never_comes_ends_no_run_without_a_pruner(nothing_was_seen, caplog):
    assert len(minimize(training(lambda _: "val_los", []), LINE, 3, seed=0).values) == 3
    assert len([each for each in caplog.records if "val_los" in each.getMessage()]) == 1
