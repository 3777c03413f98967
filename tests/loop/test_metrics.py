"""What a run logs of its labels, forecasts and fronts."""

import numpy as np
import pytest
import torch
from lightning.pytorch import Trainer

from deepbore import KernelPLS, Study, ValueGradedLabels
from deepbore.labels import LabelledBatch, LabelledObservations
from deepbore.loop.metrics import Metrics, hypervolume_so_far
from deepbore.testing import fit
from plane import LINE, SQUARE
from trainers import QUIET

BOTH = ["minimize", "minimize"]


@pytest.mark.slow
@pytest.mark.parametrize("failed", [3, 11])
def test_the_logged_hypervolume_never_falls_in_whatever_order_trials_are_told(failed):
    outcomes = [[k / 10, 1 - k / 10] for k in range(9)] + [[0.95, 0.95], [9.0, 9.0], [0.5, 0.1]]
    stream = np.random.default_rng(0)
    for _ in range(20):
        study = Study(SQUARE, directions=BOTH, n_initial=12, seed=0)
        trials, volumes = study.ask(12), []
        for row in stream.permutation(12):
            study.tell(trials[row], float("nan") if row == failed else outcomes[row])
            volumes += hypervolume_so_far(study.observations).values()
        assert volumes == sorted(volumes)
        assert len(volumes) > 5


def test_what_is_logged_of_the_training_leaves_out_pending_trials():
    study = Study(LINE, seed=1)
    for trial in study.ask(10):
        study.tell(trial, trial.params["x"])
    head = fit(KernelPLS(), LabelledObservations(study.observations, ValueGradedLabels()))
    alone = head.quality(LabelledBatch.of(study.observations, ValueGradedLabels()))
    for x in torch.linspace(0.001, 0.1, 30).tolist():  # where it is good
        study.enqueue({"x": x})
    study.ask(30)
    with_pending = head.quality(LabelledBatch.of(study.observations, ValueGradedLabels()))
    assert with_pending["accuracy"] == alone["accuracy"]
    assert with_pending["auroc"] == alone["auroc"]


# regression: this was wrong once
@pytest.mark.slow
def test_a_resumed_run_logs_the_brier_score_of_one_without_interruption(tmp_path):
    def trainer():
        return Trainer(accelerator="cpu", **QUIET)

    def objective(params):
        return (params["x"] - 0.3) ** 2

    scores = {}
    for name, parts in (("whole", [14]), ("parts", [13, 1])):
        for n in parts:
            study = Study(LINE, seed=0, journal=tmp_path / name, if_exists="load")
            own = trainer()
            study.optimize(objective, n, trainer=own)
            scores[name] = own.callback_metrics["brier_score"]
            study.close()
    assert scores["parts"] == scores["whole"]


def test_withdrawn_trials_have_no_forecast_and_no_flips():
    study = Study(LINE, seed=0, n_initial=20)
    for trial in study.ask(6):
        study.tell(trial, float(trial.id))
    metrics, labels = Metrics(), ValueGradedLabels()

    def relabelled():
        metrics.relabelled(LabelledBatch.of(study.observations.of_task(0), labels), study.observations)

    relabelled()
    with metrics.forecast(6, torch.tensor([0.25, 0.5])):
        for trial in study.ask(2):
            study.tell(trial, -float(trial.id))
    study.withdraw([0, 1, 2, 6])
    relabelled()
    assert metrics.brier_score == 0.25  # of trial 7 alone, the best, which is the last of four
    study.withdraw([3, 4, 5, 7])
    study.tell(study.ask()[0], 1.0)
    relabelled()
    assert 0 <= metrics.label_flips <= 1
