"""`DeepPLS`: what bounds its scores."""

import pytest
import torch

from deepbore import DeepEnsemble, ThresholdLabels
from deepbore.errors import SettingError
from deepbore.testing import TOY_SPACES, fit, toy_data

SPACE = TOY_SPACES["continuous"]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.slow
def test_the_relative_density_ratio_is_bounded_by_one_over_gamma():
    classifier = fit(DeepEnsemble(), toy_data(SPACE, labels=ThresholdLabels(0.3)))
    points = SPACE.points.sample(200, generator())
    ratio = classifier.density_ratio(points, gamma=0.3)
    assert torch.allclose(ratio, classifier.probability(points) / 0.3)
    assert 2.5 < ratio.max() <= 1 / 0.3
    with pytest.raises(SettingError, match="0 < gamma < 1"):
        classifier.density_ratio(points, gamma=1.0)
