"""Lightning's own means work on the optimisation as they are, since an iteration is an epoch."""

import csv
import json
import math
import operator
import time
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from lightning.pytorch import Callback
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger

from deepbore import DeepEnsemble, KernelPLS, Study, ThresholdLabels, Training
from deepbore.cli.main import main
from deepbore.data.observations import Observations, Status
from deepbore.labels import LabelledBatch
from deepbore.loop.metrics import ROWS, Metrics
from objectives import bowl
from plane import PLANE
from trainers import quiet_trainer
from watching import Watching, stepped

OURS = {"trials", "failed_trials", "best_value", "tau", "seconds_per_suggestion", "label_flips", "brier_score"}

CLASSIFIERS_OWN = {"loss", "accuracy", "calibration_error", "auroc"}


def run(objective, callbacks=(), n_trials=None, classifier=None, labels=None, n_initial=5, max_failures=20, **settings):
    """One fit of an ordinary trainer; returns trainer, classifier and study."""
    study = Study(PLANE, classifier=classifier, labels=labels, n_initial=n_initial)
    trainer = quiet_trainer(callbacks=list(callbacks), **settings)
    study.optimize(objective, n_trials, trainer=trainer, max_failures=max_failures)
    return trainer, study.classifier, study


# --- stopping --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check_on_train_epoch_end", [None, True])
def test_early_stopping_ends_a_run_that_gets_no_better(check_on_train_epoch_end):
    watching = Watching()
    stopping = EarlyStopping("best_value", patience=6, check_on_train_epoch_end=check_on_train_epoch_end)
    trainer, _, data = run(stepped, [watching, stopping])
    best = [metrics["best_value"] for metrics in watching.seen]
    assert best[-1] == data.observations.best.value == 0
    assert stopping.stopped_epoch == trainer.current_epoch - 1 == len(best) - 1
    assert len(data.observations) == 5 + len(best)
    assert best.index(best[-1]) == len(best) - 7  # the first of them, and six without improvement
    assert data.observations.ledger.statistics.n_complete == len(data.observations)


@pytest.mark.parametrize("n_trials", [3, 5])
def test_early_stopping_does_not_mind_a_run_without_iterations(n_trials):
    _, _, data = run(bowl, [EarlyStopping("best_value")], n_trials=n_trials)
    assert len(data.observations) == n_trials


def test_early_stopping_ends_a_run_in_which_everything_fails():
    with pytest.warns(RuntimeWarning, match="failed"):
        trainer, _, data = run(lambda params: 1 / 0, [EarlyStopping("best_value")], max_failures=None)
    assert trainer.current_epoch == 3  # its patience: NaN is no improvement, but a value may still come
    assert data.observations.ledger.statistics.n_failed == 5 + 3


def test_max_time_ends_a_run_after_its_initial_design():
    def slow(params):
        time.sleep(0.1)
        return bowl(params)

    started = time.monotonic()
    _, _, data = run(slow, max_time={"seconds": 1})
    assert time.monotonic() - started > 1
    assert len(data.observations) >= 5  # the design takes 0.5 s that are not counted
    assert (data.observations.status == Status.COMPLETE).all()


# --- keeping ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [KernelPLS, lambda: DeepEnsemble(members=2, training=Training(steps=20))])
def test_checkpoints_are_written_where_the_best_value_improves_and_load_safely(tmp_path, make):
    best = ModelCheckpoint(tmp_path, "best", monitor="best_value", mode="min")
    last = ModelCheckpoint(tmp_path, "last")
    _, trained, data = run(bowl, [best, last], n_trials=12, classifier=make(), enable_checkpointing=True)
    assert float(best.best_model_score) == pytest.approx(data.observations.best.value)
    assert torch.load(best.best_model_path, weights_only=True)["epoch"] == max(0, data.observations.best.id - 5)
    checkpoint = torch.load(tmp_path / "last.ckpt", weights_only=True)
    again = make().bind(PLANE)
    again.load_state_dict(checkpoint["state_dict"])
    with torch.no_grad():
        assert torch.equal(
            again.posterior(data.observations.points).mean, trained.posterior(data.observations.points).mean
        )


def test_csv_logger_has_a_row_for_each_iteration(tmp_path):
    _, _, data = run(bowl, n_trials=12, logger=CSVLogger(tmp_path, name="", version=""), log_every_n_steps=1)
    rows = [row for row in csv.DictReader((tmp_path / "metrics.csv").open()) if not row["trial"]]  # others are trials
    assert set(rows[0]) >= OURS | CLASSIFIERS_OWN
    assert [float(row["trials"]) for row in rows] == [6, 7, 8, 9, 10, 11, 12]
    assert float(rows[-1]["best_value"]) == pytest.approx(data.observations.best.value)
    assert [row["brier_score"] == "" for row in rows] == [True] + [False] * 6  # the first proposal is told by then


def test_tensorboard_shows_a_curve_of_each_metric(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    logger = TensorBoardLogger(tmp_path, name="", version="")
    _, _, data = run(bowl, n_trials=10, logger=logger, log_every_n_steps=1)
    events = accumulator.EventAccumulator(str(tmp_path)).Reload()
    assert set(events.Tags()["scalars"]) >= OURS | CLASSIFIERS_OWN
    assert [event.value for event in events.Scalars("trials")] == [6, 7, 8, 9, 10]
    assert events.Scalars("best_value")[-1].value == pytest.approx(data.observations.best.value)


# --- watching --------------------------------------------------------------------------------------------------------


def test_a_run_from_yaml_takes_lightnings_callbacks_and_ones_of_your_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(
        """
problem:
  class_path: deepbore.problems.FunctionProblem
  init_args:
    function: watching.stepped
    space: {x: {type: real, low: -1, high: 1}, y: {type: real, low: -1, high: 1}}
trainer:
  callbacks:
    - {class_path: lightning.pytorch.callbacks.EarlyStopping, init_args: {monitor: best_value, patience: 6}}
    - {class_path: watching.Watching, init_args: {path: seen.json}}
loop: {n_initial: 5}
"""
    )
    assert main(["fit", "--config", "mine.yaml", "--run", "mine"]) == 0
    seen = json.loads(Path("seen.json").read_text())
    asked = Path("mine/journal.jsonl").read_text().count('"asked"')
    assert [metrics["trials"] for metrics in seen] == list(range(6, asked + 1))  # of the iteration that has ended
    assert asked < 100  # the default


def test_another_logger_leaves_the_run_directory_whole(tmp_path, monkeypatch):
    pytest.importorskip("tensorboard")
    monkeypatch.chdir(tmp_path)
    logging = ["--trainer.logger", "TensorBoardLogger", "--trainer.logger.save_dir", "curves"]
    assert main(["fit", "--problem", "Branin", "--loop.n_trials", "12", "--run", "mine", *logging]) == 0
    assert list(Path("curves").rglob("events.out.tfevents.*"))
    assert main(["fit", "--resume", "mine", "--loop.n_trials", "13"]) == 0


def test_what_is_logged_is_what_happened():
    class Forecasting(Callback):
        """Asks the classifier itself: after each iteration, of the point it has just proposed."""

        def __init__(self):
            self.expected, self.labels, self.brier = [], [], []

        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            self.labels.append(batch.z[:, 0].tolist())

        def on_train_epoch_end(self, trainer, pl_module):
            with torch.no_grad():
                self.expected.append(float(pl_module.probability(trainer.datamodule.observations.points[-1:])))
            self.brier.append(float(trainer.callback_metrics.get("brier_score", math.nan)))

    def partly(params):
        return bowl(params) if params["x"] < 0.5 else math.nan

    forecasting, watching = Forecasting(), Watching()
    with pytest.warns(RuntimeWarning, match="failed"):
        _, _, data = run(partly, [forecasting, watching], n_trials=20, labels=ThresholdLabels(0.3))
    assert watching.seen[-1]["failed_trials"] == data.observations.ledger.statistics.n_failed > 0
    labels = forecasting.labels
    flips = [sum(map(operator.ne, before, after)) / len(before) for before, after in pairwise(labels)]
    assert [metrics.get("label_flips") for metrics in watching.seen] == [None, *map(pytest.approx, flips)]
    assert max(flips) > 0
    errors = [(p - labels[k + 1][5 + k]) ** 2 for k, p in enumerate(forecasting.expected[:-1])]
    wanted = [sum(errors[:k]) / k for k in range(1, len(errors) + 1)]
    assert forecasting.brier[1:] == [pytest.approx(each, abs=1e-6) for each in wanted]


def test_a_forecast_is_compared_with_the_label_of_its_own_trial_whatever_stands_before_it():
    observations, metrics = Observations(PLANE), Metrics()
    observations.add({"x": [0.1, 0.2, 0.3], "y": [0.0, 0.0, 0.0]}, [1.0, 2.0, 3.0], task="earlier")
    rows = observations.reserve(PLANE.points.sample(3, torch.Generator().manual_seed(0)))
    with metrics.forecast(rows[1], torch.tensor([0.9, 0.4])):
        for row in rows:
            observations.tell(row, 0.0)
    z = torch.tensor([[0.0], [1.0], [0.2]])
    metrics.relabelled(LabelledBatch(observations.of_task(0).points, z, torch.ones(3)), observations)
    assert metrics.brier_score == pytest.approx((0.1**2 + 0.2**2) / 2)


def test_label_flips_leave_out_what_was_pending_and_cost_the_same_at_any_n():
    def flips(n, flipped, pending=()):
        observations, metrics = Observations(PLANE), Metrics()
        observations.reserve(PLANE.points.sample(n, torch.Generator().manual_seed(0)))
        for row in set(range(n)) - set(pending):
            observations.tell(row, 0.0)
        z = torch.zeros(n, 1)
        for labels in (z, z.index_fill(0, torch.tensor(flipped), 1.0)):
            metrics.relabelled(LabelledBatch(observations.points, labels, labels[:, 0]), observations)
        return metrics.label_flips

    assert flips(10, [0, 1, 2]) == pytest.approx(0.3)
    assert flips(10, [0, 1, 2], pending=[1, 5]) == pytest.approx(0.25)
    assert flips(2 * ROWS, list(range(ROWS))) == pytest.approx(0.5)
    assert math.isnan(Metrics().label_flips)
    assert math.isnan(Metrics().brier_score)
