"""What a labelling need say, and what holds where it does not."""

import torch

from deepbore.data.observations import Observations
from deepbore.labels import LabelledBatch, Labelling, Labels
from plane import LINE


class Halves(Labelling):
    """1/2 for all."""

    def __call__(self, observations):
        return Labels(torch.full((len(observations), 1), 0.5), torch.ones(len(observations)))


def test_labels_and_weights_are_enough():
    observations = Observations(LINE)
    observations.add({"x": [0.1, 0.2]}, [1.0, 2.0])
    batch = LabelledBatch.of(observations, Halves())
    assert batch.separable
    assert batch.best == 1
    assert batch.constraints is batch.pending is None
    assert batch.metrics == {}
    assert (batch.n_learned, batch.n_own) == (2, 2)
    labelling = Halves()
    assert (labelling.outputs, labelling.objectives, labelling.state_dict()) == (1, 1, {})
    assert not labelling.grades_front
    assert not labelling.by_preference
