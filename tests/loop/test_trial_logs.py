"""The trials of a run in Lightning's loggers: each with parameters, value, status, duration and curve."""

import csv
import glob
import logging

import pytest
from lightning.pytorch.loggers import CSVLogger, Logger, MLFlowLogger, TensorBoardLogger, WandbLogger

from deepbore import Categorical, MedianPruner, Real, SearchSpace, Study
from learning import EPOCHS, train
from trainers import quiet_trainer

SPACE = SearchSpace({"x": Real(0, 1), "kind": Categorical(["a", "b"])})
N = 11  # ten of the design, and one that is proposed


def logged(logger, **options):
    """A run of N trials with some logger."""
    study = Study(SPACE, pruner=MedianPruner(), **options)
    study.optimize(train, N, trainer=quiet_trainer(logger=logger, log_every_n_steps=1), progress=False)
    assert study.observations.ledger.statistics.n_pruned
    return study


def test_a_csv_file_has_a_row_for_each_trial_and_each_report(tmp_path):
    study = logged(CSVLogger(tmp_path, name="", version=""))
    with (tmp_path / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    trials = {int(float(row["trial"])): row for row in rows if row["status"]}
    assert list(trials) == [trial.id for trial in study.trials]
    for trial in study.trials:
        row = trials[trial.id]
        assert (float(row["x"]), row["kind"]) == (trial.params["x"], trial.params["kind"])
        assert row["status"] == str(trial.status)
        assert (row["value"] and float(row["value"])) == (trial.value if trial.value is not None else "")
        assert float(row["seconds"]) >= 0
        curve = [row for row in rows if row["reported"] and int(float(row["trial"])) == trial.id]
        assert {int(row["step"]): float(row["reported"]) for row in curve} == trial.reports
    assert any(row["best_value"] for row in rows)  # the iterations, as ever


def test_a_csv_file_beside_the_journal_has_the_iterations_alone(tmp_path):
    logged(CSVLogger(tmp_path, name="", version=""), journal=tmp_path / "journal.jsonl")
    with (tmp_path / "metrics.csv").open() as file:
        assert "x" not in csv.DictReader(file).fieldnames


def test_tensorboard_has_a_run_for_each_trial_with_its_hyperparameters(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    study = logged(TensorBoardLogger(tmp_path, name="mine", version="run"))
    folders = glob.glob(str(tmp_path / "mine" / "run" / "trials" / "*"))
    assert len(folders) == N
    for trial in study.trials:
        events = EventAccumulator(str(tmp_path / "mine" / "run" / "trials" / str(trial.id)))
        events.Reload()
        curve = {scalar.step: scalar.value for scalar in events.Scalars("reported")}
        assert curve == pytest.approx(trial.reports)
        assert ("value" in events.Tags()["scalars"]) == (trial.value is not None)
        content = events.summary_metadata["_hparams_/session_start_info"].plugin_data.content
        known = HParamsPluginData.FromString(content).session_start_info.hparams
        assert known["x"].number_value == pytest.approx(trial.params["x"])
        assert (known["kind"].string_value, known["status"].string_value) == (trial.params["kind"], str(trial.status))


@pytest.mark.slow
def test_mlflow_has_a_child_run_for_each_trial(tmp_path, monkeypatch):
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    logger = MLFlowLogger("mine", tracking_uri=f"file:{tmp_path}/mlruns")
    study = logged(logger)
    runs = [run for run in logger.experiment.search_runs([logger.experiment_id]) if "x" in run.data.params]
    named = {run.data.tags["mlflow.runName"]: run for run in runs}
    assert len(named) == N
    for trial in study.trials:
        run = named[f"trial {trial.id}"]
        assert run.data.tags["mlflow.parentRunId"] == logger.run_id
        assert float(run.data.params["x"]) == trial.params["x"]
        assert run.data.metrics.get("value") == trial.value
        assert run.info.status == ("FINISHED" if trial.value is not None else "KILLED")
        assert (run.info.start_time, run.info.end_time) == (int(1000 * trial.began), int(1000 * trial.ended))
        curve = logger.experiment.get_metric_history(run.info.run_id, "reported")
        assert {each.step: each.value for each in curve} == trial.reports


@pytest.mark.slow
def test_wandb_has_a_run_for_each_trial_in_the_group_of_its_own(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    logged(WandbLogger(project="mine", save_dir=tmp_path, offline=True))
    assert len(glob.glob(str(tmp_path / "wandb" / "offline-run-*"))) == N + 1


class Broken(Logger):
    """Takes the numbers of some trials."""

    name, version = "broken", "0"

    def __init__(self, most=3):
        super().__init__()
        self.rows, self.most = [], most

    def log_hyperparams(self, params, *args, **kwargs):
        pass

    def log_metrics(self, metrics, step=None):
        if "trial" in metrics:
            if len(self.rows) == self.most:
                raise ConnectionError("the network is gone")
            self.rows.append(metrics)


def test_any_other_logger_gets_the_numbers_and_one_that_fails_does_not_end_the_run(caplog):
    logger = Broken()
    with caplog.at_level(logging.WARNING, "deepbore"):
        study = logged(logger)
    assert len(study.trials) == N
    assert [set(row) for row in logger.rows] == [{"trial", "x", "value", "seconds"}] * 3
    assert logger.rows[2]["x"] == study.trials[2].params["x"]
    assert caplog.text.count("Broken gets no more trials: ConnectionError: the network is gone") == 1
    assert len(study.trials[0].reports) == EPOCHS
