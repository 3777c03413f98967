"""Trials that are still pending, and what else has no outcome, teach nothing."""

import pytest
import torch

from deepbore import (
    Budget,
    KernelPLS,
    Outcome,
    Real,
    RungLabels,
    SearchSpace,
    SeveralThresholds,
    Study,
    ValueGradedLabels,
)
from deepbore.classifiers.posterior import UNCERTAIN
from deepbore.labels import LabelledBatch, LabelledObservations
from deepbore.labels.coreset import NEGLIGIBLE
from deepbore.testing import fit

LINE = SearchSpace({"x": Real(0, 1)})
SQUARE = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})


def loss(params):
    return (params["x"] - 0.3) ** 2 + (params["y"] - 0.6) ** 2


def test_the_first_trials_of_a_rung_teach_nothing_while_they_are_pending():
    study = Study(SQUARE, budget=Budget("epochs", 1, 9), n_initial=9, seed=0)
    for trial in study.ask(9):
        study.tell(trial, loss(trial.params))
    promoted = [trial for trial in study.ask(3) if trial.budget > 1]
    assert len(promoted) == 3
    labels = RungLabels(ValueGradedLabels())(study.observations)
    assert labels.weight[[trial.id for trial in promoted]].max() <= NEGLIGIBLE


@pytest.mark.parametrize("seed", range(3))
def test_proposals_go_where_the_promoted_ones_are_while_these_are_pending(seed):
    study = Study(SQUARE, budget=Budget("epochs", 1, 9), n_initial=9, seed=seed)
    told = study.ask(9)
    for trial in told:
        study.tell(trial, loss(trial.params))
    study.ask(3)
    proposed = [loss(trial.params) for trial in study.ask(3)]
    assert min(proposed) < sorted(loss(trial.params) for trial in told)[4], proposed


def test_the_best_label_of_several_columns_is_that_of_a_row():
    study = Study(LINE, labels=SeveralThresholds(), classifier=KernelPLS())
    for trial in study.ask(8):  # what is better by value is infeasible
        study.tell(trial, Outcome(trial.params["x"], constraints=[0.5 - trial.params["x"]]))
    labels = SeveralThresholds()(study.observations)
    feasible = labels.z[study.observations.feasible].mean(-1)
    assert labels.best == pytest.approx(float(feasible.max()))
    assert labels.best < labels.z[study.observations.feasible].max()


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


def test_a_head_with_deviations_is_among_those_that_errors_name():
    import cases  # the heads of the contract tests

    for name, make in cases.CLASSIFIERS.items():
        wrapped = name in ("Calibrated", "Relaxed", "AtBudgets", "PerColumn", "RelativeRatio")
        assert wrapped or ("std" in make().capabilities) == (name in UNCERTAIN), name
