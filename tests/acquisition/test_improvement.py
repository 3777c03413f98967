"""Expected improvement against quadrature, and the label that it is over."""

import math

import mpmath
import pytest
import torch
from hypothesis import given, strategies as st
from scipy import integrate, stats

from deepbore import KernelPLS, LogExpectedImprovement, Study
from deepbore.acquisition.improvement import log_h
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import GaussianPosterior, Noiseless
from deepbore.testing import TOY_SPACES, fit, toy_data
from plane import SQUARE
from tried import some_bowl


class Independent(GaussianPosterior):
    def covariance(self):
        return self.std.square().diag()


def gaussian(link, mean=(0.3, -1.2, 0.9), std=(0.5, 2.0, 0.1)):
    return Independent(*(torch.tensor(moment, dtype=torch.float64) for moment in (mean, std)), link)


@pytest.mark.parametrize("u", [-3.0, -1.0, -0.999, 0.0, 0.5, 4.0])
def test_log_h_agrees_with_quadrature(u):
    expected, _ = integrate.quad(lambda t: (t + u) * stats.norm.pdf(t), -u, 12 - u, epsabs=0, epsrel=1e-12)
    assert float(log_h(torch.tensor(u, dtype=torch.float64))) == pytest.approx(math.log(expected), rel=1e-9)


def test_log_h_keeps_value_and_gradient_far_out():
    u = torch.tensor([-5.0, -40.0, -1000.0, -1e8], dtype=torch.float64, requires_grad=True)
    value = log_h(u)
    (gradient,) = torch.autograd.grad(value.sum(), u)
    asymptotic = -u * u / 2 - math.log(2 * math.pi) / 2 - 2 * u.abs().log() + torch.log1p(-3 / u**2)
    assert torch.allclose(value, asymptotic, rtol=2e-3)
    assert torch.allclose(gradient, -u, rtol=0.1)


@pytest.mark.parametrize("best", [1.0, 0.4, torch.tensor(0.7, dtype=torch.float64)])
def test_expected_improvement_is_over_the_best_label_whatever_it_is(best):
    posterior = gaussian(Link.IDENTITY)
    values = LogExpectedImprovement()(posterior, best).exp()
    for value, m, s in zip(values.tolist(), posterior.mean.tolist(), posterior.std.tolist(), strict=True):
        at = (float(best) - m) / s
        expected, _ = integrate.quad(lambda t, m=m, s=s: (m + s * t - float(best)) * stats.norm.pdf(t), at, at + 12)
        assert value == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
@given(st.floats(-3, 3), st.floats(1e-3, 3), st.floats(-1, 1), st.floats(0, 2))
def test_improvement_rises_with_the_mean_and_falls_with_the_best_label(mean, std, best, more):
    def value(mean, best):
        return float(LogExpectedImprovement()(gaussian(Link.IDENTITY, (mean,), (std,)), best))

    assert value(mean + more, best) >= value(mean, best) - 1e-9
    assert value(mean, best + more) <= value(mean, best) + 1e-9
    assert value(mean + more, best + more) == pytest.approx(value(mean, best), abs=1e-6)


def test_a_classifier_measures_improvement_from_the_best_label_of_its_batch():
    space = TOY_SPACES["continuous"]
    classifier = fit(KernelPLS(), toy_data(space, 20), epochs=1)
    posterior = classifier.posterior(space.points.sobol(6, seed=0))
    at_one = LogExpectedImprovement()(posterior, classifier.best_label)
    assert (LogExpectedImprovement()(posterior, 0.8 * classifier.best_label) > at_one).all()


class InScenarios(Independent):
    """Scores without the noise of the labels, in two scenarios."""

    noiseless = Noiseless(
        mean=torch.tensor([[0.3, 0.5], [0.1, 1.4], [0.9, 0.8]], dtype=torch.float64),
        std=torch.tensor([0.2, 0.5, 0.1], dtype=torch.float64),
        shift=torch.tensor([-0.1, 0.2], dtype=torch.float64),
    )


def test_under_noise_improvement_is_the_mean_over_scenarios_each_with_a_best_label_of_its_own():
    posterior = InScenarios(torch.zeros(3), torch.ones(3), Link.IDENTITY)
    found, given = LogExpectedImprovement()(posterior, 0.9).exp(), posterior.noiseless
    for point in range(3):
        gains = []
        for scenario in range(2):
            m, s, best = given.mean[point, scenario].item(), given.std[point].item(), 0.9 + given.shift[scenario].item()
            u = (m - best) / s
            gains.append(s * (stats.norm.pdf(u) + u * stats.norm.cdf(u)))
        assert float(found[point]) == pytest.approx(sum(gains) / 2, rel=1e-6)


# regression: each of these was wrong once
def test_where_most_is_chance_improvement_is_over_a_feasible_row():
    study = Study(SQUARE, seed=0)
    columns, values = some_bowl(60, 0, chance=0.3)
    study.add(columns, values, constraints=(0.6 - columns["x"])[:, None])  # so the best place is infeasible
    classifier, points = study.fit(), study.observations.points
    expected = classifier.posterior(points).mean
    feasible = points[:, 0] >= 0.6
    assert float(classifier.best_label) == pytest.approx(float(expected[feasible].max()), abs=1e-6)
    assert float(expected.max()) > float(expected[feasible].max()) + 0.05


def test_where_most_is_chance_improvement_is_over_a_row_of_this_run():
    study = Study(SQUARE, seed=0, classifier=KernelPLS(regularisation=0.5))
    study.add(*some_bowl(12, 0))
    study.add(*some_bowl(150, 1), task="earlier")
    classifier, own = study.fit(), study.observations.columns.tasks == 0
    expected = classifier.posterior(study.observations.points).mean
    assert float(classifier.best_label) == pytest.approx(float(expected[own].max()), abs=1e-6)
    assert float(expected.max()) > float(expected[own].max()) + 0.01


@pytest.mark.parametrize("u", [-1e4, -38.0, -3.0, -1.0001, -1.0, -0.9999, 0.0, 3.0, 40.0])
def test_the_gradient_of_the_logarithm_is_exact_where_its_two_forms_meet(u):
    """d log h / du = Phi / (phi + u Phi), in 60 digits; regression: 1.0 in place of 1.904 at u = -1."""
    mpmath.mp.dps = 60
    at = torch.tensor(u, dtype=torch.float64, requires_grad=True)
    log_h(at).backward()
    x = mpmath.mpf(u)
    exact = mpmath.ncdf(x) / (mpmath.npdf(x) + x * mpmath.ncdf(x)) if u > -30 else -x + 2 / -x
    assert float(at.grad) == pytest.approx(float(exact), rel=1e-3 if u < -30 else 1e-9)
