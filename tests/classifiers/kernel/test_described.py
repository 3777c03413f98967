"""Kernels of described levels: their evidence, and what they make of descriptors."""

import numpy as np
import pytest
import torch

from deepbore import Categorical, Ordinal, Real, SearchSpace
from deepbore.classifiers import KernelPLS
from deepbore.classifiers.kernel.least_squares import BaseKernelPLS, PartlyAdditivePLS
from deepbore.labels.datamodule import LabelledBatch

RNG = np.random.default_rng(0)
PLACE = RNG.uniform(-1, 1, 20)
NAMES = [f"ligand {number}" for number in range(20)]
MIXED = SearchSpace(
    {
        "x": Real(0, 1),
        "few": Categorical(list("abcd"), features=RNG.normal(size=(4, 3))),
        "many": Categorical(NAMES, features=RNG.normal(size=(20, 30))),
        "k": Ordinal([1, 2, 3], when={"few": "a"}),
    }
)


def batch(points, z):
    return LabelledBatch(points, z[:, None], torch.ones(len(z), dtype=torch.float64), best=float(z.max()))


@pytest.mark.parametrize("model", [BaseKernelPLS, PartlyAdditivePLS])
def test_the_evidence_has_a_gradient_in_the_length_scale_of_each_block(model):
    """By finite differences; and it is what a solve with the kernel in torch gives."""
    learned = model()
    learned.bind(MIXED)
    points = MIXED.points.sobol(40, 0)
    z = torch.rand(40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    learned.learn_all(batch(points, z))
    theta = learned.theta.numpy() + RNG.normal(size=len(learned.theta)) * 0.3
    value = learned.negative_evidence()
    steps = 1e-6 * np.eye(len(theta))
    differences = [(value(theta + step)[0] - value(theta - step)[0]) / 2e-6 for step in steps]
    assert np.allclose(value(theta)[1], differences, atol=1e-5)
    x, kernel = learned.coordinates(points), learned._kernel(torch.from_numpy(theta))
    assert torch.allclose(kernel(x, x), kernel.by_torch(x, x))
    covariance = learned._covariance(torch.from_numpy(theta))
    explained = z @ torch.linalg.solve(covariance, z)
    assert learned._evidence()(theta)[0] == pytest.approx(float(explained + covariance.logdet()) / 2, rel=1e-6)


def errors(features):
    """Mean squared errors for levels that were not tried, of a function of what a level is like, or is not."""
    space = SearchSpace({"c": Categorical(NAMES, features=features)})
    tried = torch.arange(20)[::2]
    model = KernelPLS()
    model.bind(space)
    points, z = torch.arange(20, dtype=torch.float64)[:, None], torch.from_numpy(np.sin(3 * PLACE))
    model.learn(batch(points[tried], z[tried]))
    untried = torch.arange(20)[1::2]
    return float((model.posterior(points[untried]).mean - z[untried]).square().mean()), float(z.square().mean())


def test_what_levels_are_like_tells_of_untried_ones_and_what_says_nothing_does_no_harm():
    mistake, variance = errors(PLACE[:, None])
    assert mistake < 0.1 * variance
    useless = [errors(np.random.default_rng(seed).normal(size=(20, 8)))[0] for seed in range(5)]
    assert np.mean(useless) < 1.4 * variance
