"""Gradients of an acquisition by hand, against torch's."""

import pytest
import torch

from deepbore import KernelPLS
from deepbore.acquisition import LogExpectedImprovement
from deepbore.candidates.base import Search, torch_gradient
from deepbore.data.observations import Observations
from deepbore.testing import TOY_SPACES, fit, toy_data


class Doubled(LogExpectedImprovement):
    """Another acquisition, whose gradients only torch finds."""

    def __call__(self, posterior, best):
        return 2 * super().__call__(posterior, best)


@pytest.mark.parametrize("model", ["one kernel", "additive", "noisy"])
@pytest.mark.parametrize("acquisition", [LogExpectedImprovement, Doubled])
@pytest.mark.parametrize("space", ["continuous", "mixed"])
def test_gradients_are_those_of_torch(space, acquisition, model):
    space, stream = TOY_SPACES[space], torch.Generator().manual_seed(0)
    classifier = fit(KernelPLS(noisy=model == "noisy"), toy_data(space))
    classifier.prefers_additive = model == "additive"
    search = Search(acquisition(), classifier, Observations(space), stream)
    points = space.points.sample(20, stream)
    assert torch.allclose(search.gradient(points), torch_gradient(search.value, points), rtol=1e-9)
    assert not points.requires_grad
