"""Acquisitions against quadrature, closed forms and each other."""

import math

import pytest
import torch
from scipy import integrate, stats

from deepbore import ClassProbability, LogExpectedImprovement, QuantileBound, UpperConfidenceBound
from deepbore.acquisition import suited_to
from deepbore.acquisition.improvement import log_h
from deepbore.classifiers import Classifier, DeepEnsemble, KernelPLS


class Fixed(Classifier):
    """Members with given scores."""

    def __init__(self, members):
        super().__init__()
        self.members = members

    def build(self, space, outputs):
        """Nothing to make."""

    def learn(self, batch):
        return {}

    def scores(self, points):
        return self.members


MEMBERS = torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, -2.0], [4.0, 1.0, 0.0]])
POINTS = torch.zeros(3, 1)


def test_bounds_are_mean_deviation_and_quantile_of_the_members():
    fixed = Fixed(MEMBERS)
    mean, std = MEMBERS.mean(0), torch.from_numpy(MEMBERS.numpy().std(0))
    assert torch.allclose(ClassProbability()(fixed, POINTS), mean)
    assert torch.allclose(UpperConfidenceBound(1.5)(fixed, POINTS), mean + 1.5 * std)
    assert torch.allclose(UpperConfidenceBound()(fixed, POINTS), mean + std)  # kappa of the classifier
    assert QuantileBound(1.0)(fixed, POINTS).tolist() == [4, 1, 2]
    assert QuantileBound(0.5)(fixed, POINTS).tolist() == [2, 1, 0]


@pytest.mark.parametrize("u", [-3.0, -1.0, -0.999, 0.0, 0.5, 4.0])
def test_log_h_agrees_with_quadrature(u):
    expected, _ = integrate.quad(lambda t: (t + u) * stats.norm.pdf(t), -u, 12 - u, epsabs=0, epsrel=1e-12)
    assert float(log_h(torch.tensor(u, dtype=torch.float64))) == pytest.approx(math.log(expected), rel=1e-9)


def test_log_h_keeps_value_and_gradient_far_out():
    u = torch.tensor([-5.0, -40.0, -1000.0], dtype=torch.float64, requires_grad=True)
    value = log_h(u)
    (gradient,) = torch.autograd.grad(value.sum(), u)
    asymptotic = -u * u / 2 - math.log(2 * math.pi) / 2 - 2 * u.abs().log() + torch.log1p(-3 / u**2)
    assert torch.allclose(value, asymptotic, rtol=2e-3)
    assert torch.allclose(gradient, -u, rtol=0.1)


def test_expected_improvement_is_over_the_best_label():
    fixed = Fixed(MEMBERS[:, [0, 2]])
    mean, std = fixed.gaussian(POINTS)
    normal = torch.distributions.Normal(0.0, 1.0)
    u = (mean - 1) / std
    expected = std * (u * normal.cdf(u) + normal.log_prob(u).exp())
    assert torch.allclose(LogExpectedImprovement()(fixed, POINTS).exp().float(), expected)


def test_the_default_suits_the_kind_of_scores():
    assert isinstance(suited_to(KernelPLS()), LogExpectedImprovement)
    assert isinstance(suited_to(DeepEnsemble()), UpperConfidenceBound)
