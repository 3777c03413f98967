"""Probabilities, bounds, quantiles and samples against quadrature and closed forms."""

import math

import pytest
import torch
from scipy import integrate, stats

import deepbore as db
from deepbore import (
    ClassProbability,
    ExpectedProbability,
    PosteriorSample,
    QuantileBound,
    TheoremBound,
    UpperConfidenceBound,
)
from deepbore.classifiers import DeepEnsemble, KernelPLS
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import GaussianPosterior, MembersPosterior, PointEstimate
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
    posterior = classifier.posterior(space.points.sobol(6, seed=0))
    bound = TheoremBound(delta=0.1, norm=2.0)(posterior, 1.0)
    assert torch.allclose(bound, posterior.mean + posterior.beta(0.1, 2.0) * posterior.std)
    assert (TheoremBound(delta=0.01, norm=2.0)(posterior, 1.0) > bound).all()
    with pytest.raises(SettingError, match="needs the scores of KernelPLS"):
        TheoremBound()(ensemble(), 1.0)


# regression: this was wrong once
def test_a_bound_of_ones_own_stays_what_it_is():
    class Pessimist(db.UpperConfidenceBound):
        def __call__(self, posterior, best):
            return posterior.mean - self.kappa * posterior.std

    head = db.DeepEnsemble()
    found = Pessimist().resolved(head)
    assert type(found) is Pessimist
    assert found.kappa == head.kappa
