"""Kernels and moments by hand, against torch: values, gradients in points, and formulas of the moments."""

import numpy as np
import pytest
import torch

from deepbore import KernelPLS, LogExpectedImprovement, ValueGradedLabels
from deepbore.acquisition.improvement import improvement_over, log_improvement
from deepbore.classifiers.kernel.kernels import KERNELS, PartlyAdditiveKernel, ScaledKernel
from deepbore.classifiers.posterior import Posterior
from deepbore.testing import TOY_SPACES, fit, toy_data

GROUPS = {
    "single": ([0], [1], [2], [3], [4], [5], [6]),
    "of all sizes": ([0], [1, 2, 3], [4], [5, 6]),
    "one": ([0, 1, 2, 3, 4, 5, 6],),
}


def double(*numbers):
    return torch.tensor(numbers, dtype=torch.float64).squeeze()


def points(n, seed):
    """n points, some of whose coordinates have few levels."""
    x = torch.rand(n, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    x[:, 4] = (3 * x[:, 4]).floor() / 3
    x[:, 5:] = (2 * x[:, 5:]).floor()
    return x


def kernels(function):
    scale = torch.linspace(0.3, 3, 7, dtype=torch.float64)
    together = ScaledKernel(function, scale, double(1.7))
    yield together
    for groups in GROUPS.values():
        yield PartlyAdditiveKernel(together, double(0.4), double(0.3), tuple(map(torch.tensor, groups)))


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_by_hand_is_that_of_torch_with_its_gradients(name):
    for kernel in kernels(KERNELS[name]):
        x, y, derivative = points(30, 0), points(12, 1), points(12, 2)[:, :1].mT + points(30, 3)[:, :1]
        y[3] = x[5]
        assert torch.allclose(kernel(x, y), kernel.by_torch(x, y), rtol=1e-12, atol=1e-12)
        found = []
        for function in (kernel, kernel.by_torch):
            at = x.clone().requires_grad_(True), y.clone().requires_grad_(True)
            found.append(torch.autograd.grad((function(*at) * derivative).sum(), at))
        for ours, theirs in zip(*found, strict=True):
            assert torch.allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def test_hyperparameters_have_gradients():
    for kernel in kernels(KERNELS["rbf"]):
        together = getattr(kernel, "together", kernel)
        together.scale.requires_grad_(True)
        (gradient,) = torch.autograd.grad(kernel(points(5, 0), points(4, 1)).sum(), together.scale)
        assert bool((gradient != 0).all())
        together.scale.requires_grad_(False)


def test_no_points_and_no_rows_have_an_empty_matrix():
    for kernel in kernels(KERNELS["matern"]):
        assert kernel(points(0, 0), points(4, 1)).shape == (0, 4)
        assert kernel(points(4, 0), points(0, 1)).shape == (4, 0)


def by_autograd(classifier, at, best):
    """Log EI and its gradient by torch's own derivatives of each operation."""
    model, at = classifier.posterior(at).model, at.clone().requires_grad_(True)
    k = model.kernel.by_torch(classifier.coordinates(at), model.x)
    std = (model.kernel.amplitude - (k @ model.root.mT).square().sum(-1)).clamp(min=1e-12).sqrt()
    u = (k @ model.coefficients - best) / std
    value = std.log() + ((-u * u / 2).exp() / np.sqrt(2 * np.pi) + u * torch.special.ndtr(u)).log()
    return value.detach(), torch.autograd.grad(value.sum(), at)[0]


@pytest.mark.parametrize("space", TOY_SPACES)
def test_improvement_and_its_gradient_are_those_of_autograd(space):
    classifier = fit(KernelPLS(), toy_data(TOY_SPACES[space], 40, ValueGradedLabels()), epochs=3)
    pool, best = TOY_SPACES[space].points.sample(300, torch.Generator().manual_seed(0)), 0.4
    models = [classifier] if classifier.additive_model is None else [classifier, classifier.additive_model]
    for model in models:
        expected, slope = by_autograd(model, pool, best)
        near = expected > -20  # further out the plain formula loses its digits
        at = pool.clone().requires_grad_(True)
        value = LogExpectedImprovement()(model.posterior(at), best)
        assert torch.allclose(value[near], expected[near], rtol=1e-8)
        with torch.no_grad():
            assert torch.allclose(LogExpectedImprovement()(model.posterior(pool), best), value, rtol=1e-9)
        if TOY_SPACES[space].points.moving_columns:
            (gradient,) = torch.autograd.grad(value.sum(), at)
            assert torch.allclose(gradient[near], slope[near], rtol=1e-6, atol=1e-7)


def test_formulas_of_moments_are_the_same_by_each_way():
    space = TOY_SPACES["continuous"]
    posterior = fit(KernelPLS(), toy_data(space, 30, ValueGradedLabels())).posterior(space.points.sobol(20, seed=1))
    at_once = posterior.of_moments(improvement_over(0.9))
    assert torch.allclose(at_once, Posterior.of_moments(posterior, improvement_over(0.9)))
    assert torch.allclose(at_once, log_improvement(posterior.mean, posterior.std, 0.9))
    lowered = posterior.lowered(torch.linspace(0, 1, 20).double())
    assert torch.allclose(lowered.mean, posterior.mean - torch.linspace(0, 1, 20))
    assert torch.allclose(lowered.of_moments(improvement_over(0.9)), log_improvement(lowered.mean, posterior.std, 0.9))


def test_predictions_follow_the_fit():
    space = TOY_SPACES["continuous"]
    classifier, at = KernelPLS(additive=False), space.points.sobol(20, seed=1)
    classifier.bind(space)
    means = []
    for n in (20, 40):
        classifier.learn(toy_data(space, n, ValueGradedLabels()).labelled())
        means.append(classifier.posterior(at).mean)
    other = KernelPLS(additive=False)
    other.bind(space)
    other.posterior(at)
    other.load_state_dict(classifier.state_dict())
    assert not torch.allclose(*means)
    assert torch.equal(other.posterior(at).mean, means[1])
