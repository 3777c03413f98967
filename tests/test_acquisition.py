"""Acquisitions against quadrature, closed forms and each other."""

import math

import pytest
import torch
from scipy import integrate, stats

from deepbore import (
    ClassProbability,
    ExpectedProbability,
    LogExpectedImprovement,
    PosteriorSample,
    QuantileBound,
    TheoremBound,
    UpperConfidenceBound,
)
from deepbore.acquisition import suited_to
from deepbore.acquisition.improvement import log_h
from deepbore.acquisition.posterior import logit_of_mean
from deepbore.classifiers import Classifier, DeepEnsemble, KernelPLS
from deepbore.errors import SettingError
from deepbore.testing import TOY_SPACES, fit, toy_data


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


def test_expected_probability_by_samples_is_the_logit_of_the_mean_probability():
    expected = torch.logit(MEMBERS.sigmoid().mean(0))
    assert torch.allclose(ExpectedProbability(by="samples")(Fixed(MEMBERS), POINTS), expected, atol=1e-6)
    far = torch.tensor([[40.0, -300.0], [60.0, -200.0]])  # where a float32 probability is 1 or 0
    assert logit_of_mean(far).tolist() == pytest.approx([40 + math.log(2), -200 - math.log(2)], rel=1e-6)


def test_expected_probability_by_probit_is_close_to_quadrature():
    fixed = Fixed(MEMBERS)
    mean, std = (moment.double().tolist() for moment in fixed.gaussian(POINTS))
    for logit, m, s in zip(ExpectedProbability()(fixed, POINTS).tolist(), mean, std, strict=True):
        exact, _ = integrate.quad(lambda t, m=m, s=s: stats.norm.pdf(t) / (1 + math.exp(-m - s * t)), -9, 9)
        assert 1 / (1 + math.exp(-logit)) == pytest.approx(exact, abs=0.02)


def test_a_posterior_sample_is_one_member():
    for member, expected in ((0, 0), (2, 2), (4, 1)):
        assert torch.equal(PosteriorSample(member)(Fixed(MEMBERS), POINTS), MEMBERS[expected])


def test_the_bound_of_theorem_1_is_wider_the_surer_it_must_be():
    space = TOY_SPACES["continuous"]
    classifier = fit(KernelPLS(length_scale=0.3, regularisation=0.05), toy_data(space, 20), epochs=1)
    points = space.sobol(6, seed=0)
    mean, std = classifier.gaussian(points)
    bound = TheoremBound(delta=0.1, norm=2.0)(classifier, points)
    assert torch.allclose(bound, mean + classifier.beta(0.1, 2.0) * std)
    assert (TheoremBound(delta=0.01, norm=2.0)(classifier, points) > bound).all()
    with pytest.raises(SettingError, match="needs KernelPLS, but got Fixed"):
        TheoremBound()(Fixed(MEMBERS), POINTS)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: TheoremBound(delta=1.0), "0 < delta < 1"),
        (lambda: TheoremBound(norm=0.0), "norm > 0"),
        (lambda: ExpectedProbability(by="guess"), "by must be"),
    ],
)
def test_bad_settings_are_refused(make, says):
    with pytest.raises(SettingError, match=says):
        make()


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
