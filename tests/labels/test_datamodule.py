"""Labels of every epoch: those of its moment, and more weight for what has changed."""

import numpy as np
import pytest
import torch

from deepbore import Budget, EmphasiseChanges, Outcome, Study, ThresholdLabels, minimize
from deepbore.data.observations import Observations
from deepbore.labels import ImprovementLabels, LabelledBatch, LabelledObservations, changed_rows, default_labels
from deepbore.loop.lightning import DataModule
from plane import LINE


def observed(x, values, noise=None):
    observations = Observations(LINE)
    observations.add({"x": x}, values, noise=noise)
    return observations


def told(values):
    observations = Observations(LINE)
    observations.add({"x": np.linspace(0, 1, len(values))}, values)
    return observations


def test_new_and_flipped_rows_weigh_more():
    labelling = EmphasiseChanges(ThresholdLabels(0.5), boost=3.0)
    observations = told([1.0, 2.0, 3.0, 4.0])
    assert labelling(observations).weight.tolist() == [3, 3, 3, 3]
    observations.add({"x": [0.5]}, [1.5])
    assert labelling(observations).weight.tolist() == [1, 1, 1, 1, 3]
    observations.add({"x": [0.6]}, [0.5])  # 2.0 falls out of the best three
    assert labelling(observations).weight.tolist() == [1, 3, 1, 1, 1, 3]
    z = torch.tensor([[1.0], [0.0]])
    assert changed_rows(z[:1], z).tolist() == [False, True]


def test_every_epoch_has_one_batch_with_the_labels_of_its_moment():
    data = LabelledObservations(told([3.0, 1.0, 2.0]), ThresholdLabels(0.3))
    loader = DataModule(data).train_dataloader()
    assert len(loader) == 1
    assert next(iter(loader)).z[:, 0].tolist() == [0, 1, 0]
    data.observations.add({"x": [0.5]}, [0.0])
    assert next(iter(loader)).z[:, 0].tolist() == [0, 1, 0, 1]


def test_pending_trials_weigh_next_to_nothing():
    study = Study(LINE, n_initial=4, seed=3)
    told, pending = study.ask(4), study.ask(3)
    for trial in told:
        study.tell(trial, trial.params["x"])
    weight = default_labels(estimates_labels=True)(study.observations).weight
    assert weight[:4].tolist() == [1] * 4
    assert weight[4:].max() < 1e-5
    assert len(pending) == 3


def line(*values, noise=None):
    """Observations with these values, at points of their own."""
    return observed(torch.linspace(0.1, 0.9, len(values)).tolist(), list(values), noise)


# regression: each of these was wrong once
@pytest.mark.parametrize("seen_pending", [False, True])
def test_what_was_told_weighs_more_whether_it_is_good_or_bad_and_was_seen_pending_or_not(seen_pending):
    observations, labelling = line(1.0, 2.0, 3.0, 4.0), EmphasiseChanges(ThresholdLabels(0.5), boost=2)
    labelling(observations)
    rows = observations.reserve(torch.tensor([[0.5], [0.6], [0.7]], dtype=torch.float64))
    if seen_pending:
        labelling(observations)
    observations.tell(rows[0], 10.0)
    observations.tell(rows[1], 0.5)
    assert labelling(observations).weight[rows[:2]].tolist() == [2, 2]
    assert labelling(observations).weight[rows[:2]].tolist() == [1, 1]
    assert labelling(observations).weight[rows[2]] < 0.1


def test_a_label_of_improvement_that_falls_to_nothing_has_changed():
    observations, labelling = line(1.0, 2.0, 3.0, 4.0, 5.0, 6.0), EmphasiseChanges(ImprovementLabels(0.5), boost=2)
    before = labelling(observations).z
    observations.add({"x": [0.01, 0.02]}, [-1.0, -2.0])
    after, plain = labelling(observations), ImprovementLabels(0.5)(observations)
    assert 0 < before[1] < 0.5
    assert after.z[1] == 0
    assert (after.weight / plain.weight)[[1, 4, 5, 6, 7]].tolist() == [2, 1, 1, 2, 2]


def test_labels_that_remember_begin_each_run_anew():
    def run(labels):
        return minimize(lambda p: (p["x"] - 0.3) ** 2, LINE, 14, seed=0, labels=labels).values.tolist()

    labels = EmphasiseChanges(ThresholdLabels(0.3))
    assert run(labels) == run(labels) == run(EmphasiseChanges(ThresholdLabels(0.3)))


def test_a_batch_has_what_trials_may_spend_and_which_have_failed():
    study = Study(LINE, budget=Budget("epochs", 1, 9), seed=0)
    for trial, failed in zip(study.ask(3), [False, True, False], strict=True):
        study.tell(trial, None if failed else float(trial.id), failed=failed)
    batch = LabelledBatch.of(study.observations, ThresholdLabels())
    assert batch.failed.tolist() == batch.failures.tolist() == [False, True, False]
    assert batch.budgets.tolist() == [1, 1, 1]
    plain = LabelledBatch.of(told([1.0, 2.0]), ThresholdLabels())
    assert plain.failed is plain.budgets is None
    assert plain.failures.tolist() == [False, False]


def test_improvement_is_over_rows_that_keep_every_constraint_if_there_are_any():
    study = Study(LINE, seed=0)
    for trial, constraints in zip(study.ask(3), [[1.0, -1.0], [-1.0, -1.0], [-1.0, 1.0]], strict=True):
        study.tell(trial, Outcome(0.0, constraints=constraints))
    batch = LabelledBatch.of(study.observations, ThresholdLabels())
    assert batch.may_be_best.tolist() == [False, True, False]
    assert batch.take(torch.tensor([0, 2])).may_be_best.tolist() == [True, True]


def test_labels_go_on_where_their_state_was_taken_those_within_others_too():
    observations = line(1.0, 2.0, 3.0, 4.0)
    original, loaded = (EmphasiseChanges(EmphasiseChanges(ThresholdLabels(0.5), boost=2), boost=3) for _ in range(2))
    assert original(observations).weight.tolist() == [6, 6, 6, 6]
    loaded.load_state_dict(original.state_dict())
    assert loaded(observations).weight.tolist() == [1, 1, 1, 1]


def test_where_nothing_has_a_value_failures_are_learned_and_what_is_pending_is_not():
    observations = line(float("nan"), float("nan"))
    observations.reserve(torch.tensor([[0.5]], dtype=torch.float64))
    labels = ThresholdLabels()(observations)
    assert labels.weight.tolist() == pytest.approx([1, 1, 0], abs=1e-3)
    assert labels.z.tolist() == [[0], [0], [0]]
    assert not labels.separable


def test_a_batch_is_joined_by_what_is_given_and_the_latest_labels_are_those_of_this_run():
    data = LabelledObservations(
        told([3.0, 1.0, 2.0]), ThresholdLabels(0.3), joined=lambda batch: batch.take(torch.arange(2))
    )
    assert len(data.batch()) == len(next(iter(DataModule(data).train_dataloader()))) == 2
    assert len(data.latest) == 3


def test_rows_of_earlier_tasks_are_not_labelled_with_those_of_this_run():
    observations = told([3.0, 1.0, 2.0])
    observations.add({"x": [0.3, 0.4]}, [0.0, 9.0], task="earlier")
    assert LabelledObservations(observations, ThresholdLabels(0.3)).labelled().z[:, 0].tolist() == [0, 1, 0]
