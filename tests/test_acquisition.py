"""Acquisitions against quadrature, closed forms and each other; what they refuse, and when."""

import math

import pytest
import torch
from hypothesis import given, strategies as st
from scipy import integrate, stats

from cases import ACQUISITIONS, CLASSIFIERS
from deepbore import (
    ClassProbability,
    ExpectedProbability,
    LogExpectedImprovement,
    PosteriorSample,
    QuantileBound,
    TheoremBound,
    UpperConfidenceBound,
)
from deepbore.acquisition import Acquisition, default_acquisition
from deepbore.acquisition.improvement import log_h
from deepbore.classifiers import DeepEnsemble, DeepPLS, FourierLogistic, GPClassifier, KernelPLS, MLPClassifier
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import GaussianPosterior, MembersPosterior, PointEstimate
from deepbore.component import describe, make
from deepbore.errors import SettingError
from deepbore.testing import TOY_SPACES, fit, toy_data

MEMBERS = torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, -2.0], [4.0, 1.0, 0.0]])


def ensemble(link=Link.LOGIT, members=MEMBERS):
    return MembersPosterior(members, link)


class Independent(GaussianPosterior):
    def covariance(self):
        return self.std.square().diag()


def gaussian(link, mean=(0.3, -1.2, 0.9), std=(0.5, 2.0, 0.1)):
    return Independent(*(torch.tensor(moment, dtype=torch.float64) for moment in (mean, std)), link)


# --- values ----------------------------------------------------------------------------------------------------------


def test_bounds_are_mean_deviation_and_quantile_of_the_members():
    mean, std = MEMBERS.mean(0), torch.from_numpy(MEMBERS.numpy().std(0))
    assert torch.allclose(ClassProbability()(ensemble(), 1.0), mean)
    assert torch.allclose(UpperConfidenceBound(1.5)(ensemble(), 1.0), mean + 1.5 * std)
    assert QuantileBound(1.0)(ensemble(), 1.0).tolist() == [4, 1, 2]
    assert QuantileBound(0.5)(ensemble(), 1.0).tolist() == [2, 1, 0]


@pytest.mark.parametrize("link", Link)
@pytest.mark.parametrize("level", [0.1, 0.5, 0.95])
def test_a_quantile_of_a_gaussian_is_its_own(link, level):
    posterior = gaussian(link)
    expected = stats.norm.ppf(level, posterior.mean.numpy(), posterior.std.numpy())
    assert QuantileBound(level)(posterior, 1.0).tolist() == pytest.approx(expected.tolist(), abs=1e-9)


def test_a_gaussian_has_no_greatest_value():
    with pytest.raises(SettingError, match="level < 1 must hold for the Gaussian score of KernelPLS"):
        QuantileBound(1.0).check(KernelPLS())
    with pytest.raises(SettingError, match="level < 1"):
        QuantileBound(1.0)(gaussian(Link.IDENTITY), 1.0)
    QuantileBound(1.0).check(DeepEnsemble())


def test_kappa_is_the_classifiers_where_nobody_says():
    resolved = UpperConfidenceBound().resolved(KernelPLS())
    assert torch.equal(resolved(ensemble(), 1.0), UpperConfidenceBound(2.0)(ensemble(), 1.0))
    assert UpperConfidenceBound(0.5).resolved(KernelPLS()).kappa == 0.5
    with pytest.raises(SettingError, match=r"kappa is left to the classifier: take .*resolved"):
        UpperConfidenceBound()(ensemble(), 1.0)


def test_expected_probability_by_samples_is_the_logit_of_the_mean_probability():
    expected = torch.logit(MEMBERS.sigmoid().mean(0))
    assert torch.allclose(ExpectedProbability(by="samples")(ensemble(), 1.0), expected, atol=1e-6)
    far = torch.tensor([[40.0, -300.0], [60.0, -200.0]])  # where a float32 probability is 1 or 0
    value = ExpectedProbability(by="samples")(ensemble(members=far), 1.0)
    assert value.tolist() == pytest.approx([40 + math.log(2), -200 - math.log(2)], rel=1e-6)
    probits = ExpectedProbability(by="samples")(ensemble(Link.PROBIT), 1.0).sigmoid()
    assert torch.allclose(probits, torch.special.ndtr(MEMBERS).mean(0), atol=1e-6)
    labels = ExpectedProbability(by="samples")(ensemble(Link.IDENTITY), 1.0)
    assert torch.equal(labels, MEMBERS.mean(0))


def test_the_mean_logit_can_rank_otherwise_than_the_mean_probability():
    members = torch.tensor([[9.0, 1.0], [-3.0, 1.0]])  # one sure and one doubtful member; two that agree
    means, probabilities = (
        acquisition(ensemble(members=members), 1.0)
        for acquisition in (ClassProbability(), ExpectedProbability("samples"))
    )
    assert means.argmax() == 0
    assert probabilities.argmax() == members.sigmoid().mean(0).argmax() == 1


@pytest.mark.parametrize(("link", "within"), [(Link.LOGIT, 0.02), (Link.PROBIT, 1e-7)])
def test_expected_probability_by_probit_agrees_with_quadrature(link, within):
    posterior = gaussian(link)
    score = ExpectedProbability()(posterior, 1.0)
    probability = stats.logistic.cdf if link is Link.LOGIT else stats.norm.cdf
    for s, m, std in zip(score.tolist(), posterior.mean.tolist(), posterior.std.tolist(), strict=True):
        exact, _ = integrate.quad(lambda t, m=m, std=std: stats.norm.pdf(t) * probability(m + std * t), -9, 9)
        assert probability(s) == pytest.approx(exact, abs=within)


def test_an_expected_label_is_the_mean():
    score = torch.tensor([0.2, 0.7])
    assert torch.equal(ExpectedProbability()(PointEstimate(score, Link.IDENTITY, "head"), 1.0), score)


def test_a_posterior_sample_is_one_member():
    for member, expected in ((0, 0), (2, 2), (4, 1)):
        assert torch.equal(PosteriorSample(member)(ensemble(), 1.0), MEMBERS[expected])


def test_the_bound_of_theorem_1_is_wider_the_surer_it_must_be():
    space = TOY_SPACES["continuous"]
    classifier = fit(KernelPLS(length_scale=0.3, regularisation=0.05), toy_data(space, 20), epochs=1)
    posterior = classifier.posterior(space.sobol(6, seed=0))
    bound = TheoremBound(delta=0.1, norm=2.0)(posterior, 1.0)
    assert torch.allclose(bound, posterior.mean + posterior.beta(0.1, 2.0) * posterior.std)
    assert (TheoremBound(delta=0.01, norm=2.0)(posterior, 1.0) > bound).all()
    with pytest.raises(SettingError, match="needs the scores of KernelPLS"):
        TheoremBound()(ensemble(), 1.0)


# --- expected improvement --------------------------------------------------------------------------------------------


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
    posterior = classifier.posterior(space.sobol(6, seed=0))
    at_one = LogExpectedImprovement()(posterior, classifier.best_label)
    assert (LogExpectedImprovement()(posterior, 0.8 * classifier.best_label) > at_one).all()


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make_one", "says"),
    [
        (lambda: TheoremBound(delta=1.0), "0 < delta < 1"),
        (lambda: TheoremBound(norm=0.0), "norm > 0"),
        (lambda: ExpectedProbability(by="guess"), "by must be"),
        (lambda: UpperConfidenceBound(-1), "kappa >= 0"),
        (lambda: QuantileBound(0), "0 < level <= 1"),
        (lambda: PosteriorSample(-1), "member >= 0"),
        (lambda: PosteriorSample(0.5), "member must be a whole number"),
    ],
)
def test_bad_settings_are_refused(make_one, says):
    with pytest.raises(SettingError, match=says):
        make_one()


@pytest.mark.parametrize(
    ("acquisition", "classifier", "says"),
    [
        (LogExpectedImprovement(), DeepEnsemble, "link identity, but those of DeepEnsemble have logit. Use Upper"),
        (LogExpectedImprovement(), GPClassifier, "those of GPClassifier have probit"),
        (PosteriorSample(), KernelPLS, "needs members of the scores, which KernelPLS does not have.*ThompsonBatch"),
        (PosteriorSample(), FourierLogistic, "needs members"),
        (ExpectedProbability("samples"), GPClassifier, 'needs members .*by="probit"'),
        (ExpectedProbability(), MLPClassifier, "needs std of the scores, which MLPClassifier does not have"),
        (UpperConfidenceBound(), MLPClassifier, "needs std"),
        (QuantileBound(), MLPClassifier, "needs std .*Use DeepEnsemble, .*or ClassProbability"),
        (TheoremBound(), DeepPLS, "needs theorem of the scores, which DeepPLS does not have. Use KernelPLS, or Upper"),
    ],
)
def test_what_the_classifier_lacks_is_refused_before_any_run(acquisition, classifier, says):
    with pytest.raises(SettingError, match=says):
        acquisition.check(classifier())


@pytest.mark.parametrize("acquisition", [PosteriorSample(), ExpectedProbability("samples")])
def test_members_that_are_not_there_are_no_silent_mean(acquisition):
    with pytest.raises(SettingError, match="needs members of the scores, but the classifier has none"):
        acquisition(gaussian(Link.LOGIT), 1.0)


@pytest.mark.parametrize("acquisition", [UpperConfidenceBound(1.0), QuantileBound(), ExpectedProbability()])
def test_a_point_estimate_has_no_silent_deviation_of_zero(acquisition):
    with pytest.raises(SettingError, match="MLPClassifier gives one score a point"):
        acquisition(PointEstimate(MEMBERS[0], Link.LOGIT, "MLPClassifier"), 1.0)


# --- parts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_the_default_suits_every_classifier(name):
    classifier = CLASSIFIERS[name]()
    default_acquisition(classifier).check(classifier)


def test_the_default_suits_the_kind_of_scores():
    assert isinstance(default_acquisition(KernelPLS()), LogExpectedImprovement)
    assert isinstance(default_acquisition(DeepEnsemble()), UpperConfidenceBound)
    assert isinstance(default_acquisition(MLPClassifier()), ClassProbability)


@pytest.mark.parametrize(
    "acquisition",
    [*(make_one() for make_one in ACQUISITIONS.values()), TheoremBound(0.2, norm=3.0), ExpectedProbability("samples")],
    ids=lambda acquisition: type(acquisition).__name__,
)
def test_an_acquisition_is_written_down_and_made_again(acquisition):
    again = make(describe(acquisition), Acquisition)
    assert type(again) is type(acquisition)
    assert vars(again) == vars(acquisition)


def test_a_resolved_acquisition_is_written_down_with_what_was_filled_in():
    described = describe(UpperConfidenceBound().resolved(KernelPLS()))
    assert described == {"class_path": "deepbore.acquisition.UpperConfidenceBound", "init_args": {"kappa": 2.0}}
