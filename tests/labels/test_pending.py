"""Pending rows are a column of labels and batches; labels without it are learned by their weights."""

from dataclasses import replace

import pytest
import torch

from deepbore import Real, SearchSpace, ValueGradedLabels
from deepbore.data.observations import Observations
from deepbore.labels import LabelledBatch, LabelledObservations, Labelling, Labels
from deepbore.testing.labels import check_rows_without_value
from deepbore.testing.toys import toy_outcomes

SPACE = SearchSpace({"x": Real(0, 1)})


def observed():
    observations = Observations(SPACE)
    observations.add({"x": [0.1, 0.5, 0.5, 0.9]}, [3.0, 1.0, 1.0, 2.0])
    observations.reserve(SPACE.encode([{"x": 0.25}, {"x": 0.75}]))
    return observations


def test_a_batch_knows_its_pending_rows_and_which_are_learned():
    batch = LabelledObservations(observed(), ValueGradedLabels()).labelled()
    assert batch.pending.tolist() == [False] * 4 + [True] * 2
    assert batch.learned.tolist() == [True, False, True, True, False, False]  # of two replicates the last stands
    assert batch.take(torch.tensor([0, 4])).pending.tolist() == [False, True]
    assert not batch.training_rows.pending.any()


def test_a_pending_row_is_not_learned_whatever_it_weighs():
    batch = LabelledBatch(torch.rand(3, 1), torch.rand(3, 1), torch.ones(3), pending=torch.tensor([False, True, False]))
    assert batch.ignored.tolist() == [1]
    assert batch.n_learned == 2
    by_weight = replace(batch, pending=None, weight=torch.tensor([1.0, 1.0, 1e-6]))
    assert by_weight.ignored.tolist() == [2]


class Untold(Labelling):
    """Labels of the graded kind, which name other rows as pending."""

    def __call__(self, observations):
        labels = ValueGradedLabels()(observations)
        return Labels(labels.z, labels.weight, labels.best, constraints=labels.constraints, pending=~labels.pending)


def test_labels_that_name_other_rows_as_pending_are_refused():
    check_rows_without_value(ValueGradedLabels(), toy_outcomes())
    with pytest.raises(AssertionError, match=r"Labels\.pending must be"):
        check_rows_without_value(Untold(), toy_outcomes())
