"""Each statement of docs/theory.md, in numbers: exact distributions, quadrature and brute force against the package."""

import math
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern

from deepbore import Categorical, KernelPLS, Real, SearchSpace
from deepbore.acquisition import ClassProbability, ExpectedProbability, LogExpectedImprovement, TheoremBound
from deepbore.classifiers import Calibrated, DeepPLS, FourierLogistic, MembersPosterior, MLPClassifier, RandomForest
from deepbore.classifiers.link import Link
from deepbore.data.observations import Observations
from deepbore.labels import (
    ImprovementLabels,
    LabelledObservations,
    RankGradedLabels,
    SeveralThresholds,
    ThresholdLabels,
    ValueGradedLabels,
)
from deepbore.labels.grade import graded_by_value
from deepbore.labels.improvement import improvement_labels
from deepbore.testing import TOY_SPACES, fit, toy_data

PAGE = Path(__file__).parent.parent / "docs" / "theory.md"
NODES = (np.arange(20_000) + 0.5) / 20_000  # probabilities at which a distribution is looked at: the midpoint rule


def test_every_statement_of_the_page_has_a_test_and_every_test_a_statement():
    statements = re.findall(r"^### (.+)$", PAGE.read_text(), re.MULTILINE)
    names = ["test_" + re.sub(r"\W+", "_", statement.lower()).strip("_") for statement in statements]
    here = re.findall(r"^def (test_\w+)", Path(__file__).read_text(), re.MULTILINE)
    assert names == [name for name in here if not name.startswith("test_every_statement")]


# --- distributions that are known, and a head that only averages ----------------------------------------------------


def told(values):
    """Observations of one parameter without order: {choice: its values, one an evaluation}.

    Evaluations of one configuration are averaged before they are labelled. So each has a configuration of its own, by
    another parameter that differs by nothing that a kernel could see.
    """
    observations = Observations(SearchSpace({"x": Categorical([*values, "another"]), "evaluation": Real(0, 1e9)}))
    for choice, outcomes in values.items():
        observations.add({"x": [choice] * len(outcomes), "evaluation": [*range(len(outcomes))]}, list(outcomes))
    return observations


def averages(values, labels):
    """What least squares learns of each choice where no choice says anything of another: {choice: fitted score}."""
    classifier, points = learned(values, labels)
    return dict(zip(values, classifier.posterior(points).mean.tolist(), strict=True))


def learned(values, labels):
    """A `KernelPLS` that does not smooth, and one point for each choice."""
    observations = told(values)
    head = KernelPLS("rbf", length_scale=0.1, regularisation=1e-5, rows=10_000)
    classifier = fit(head, LabelledObservations(observations, labels), epochs=1)
    first = np.cumsum([0, *map(len, values.values())])[:-1]
    return classifier, observations.points[torch.from_numpy(first)]


def quantiles(distribution, n=60):
    """n values that stand for a distribution."""
    return distribution.ppf((np.arange(n) + 0.5) / n)


def expected(function, distribution):
    """E[function(Y)]."""
    return float(np.mean(function(distribution.ppf(NODES))))


def expected_improvement(mean, std, tau):
    """E[max(tau - Y, 0)] of a Gaussian (BORE eq. 3)."""
    u = (tau - mean) / std
    return std * (u * stats.norm.cdf(u) + stats.norm.pdf(u))


def grades(values, best, tau, tail=0.0):
    return graded_by_value(torch.as_tensor(np.array(values, dtype=float)), best, tau, tail).numpy()


def choices(rng, n=40):
    """Three choices with distributions of their own, all values distinct."""
    return {"a": rng.normal(0, 1, n), "b": rng.normal(0.4, 0.3, n), "c": rng.normal(1, 2, n)}


def gaussian(x, y, length_scale):
    """The squared-exponential kernel on a line, n and m -> n x m."""
    return np.exp(-((x[:, None] - y) ** 2) / (2 * length_scale**2))


# --- density ratios --------------------------------------------------------------------------------------------------


def test_the_class_probability_is_gamma_times_the_relative_density_ratio():
    values, gamma = choices(np.random.default_rng(0)), 0.25
    classifier, points = learned(values, ThresholdLabels(gamma))
    tau = np.sort(np.concatenate(list(values.values())))[29]  # 30 of 120
    good = np.array([(mine <= tau).sum() for mine in values.values()]) / 30
    bad = np.array([(mine > tau).sum() for mine in values.values()]) / 90
    ratio = good / (gamma * good + (1 - gamma) * bad)  # eq. 4, by counting
    assert np.allclose(classifier.density_ratio(points, gamma), ratio, atol=1e-6)
    assert np.allclose(classifier.probability(points), gamma * ratio, atol=1e-6)


def test_the_relative_ratio_is_at_most_one_over_gamma_and_rises_with_the_ordinary_ratio():
    good, bad = stats.norm(0, 1), stats.norm(0, 0.5)
    x = np.linspace(0, 8, 200)
    ordinary = good.pdf(x) / bad.pdf(x)
    assert ordinary[-1] > 1e40  # unbounded
    for gamma in (0.05, 0.25, 0.5):
        relative = good.pdf(x) / (gamma * good.pdf(x) + (1 - gamma) * bad.pdf(x))
        assert np.allclose(relative, 1 / (gamma + (1 - gamma) / ordinary))
        assert (np.diff(relative) >= -1e-12).all()
        assert relative[-1] == pytest.approx(1 / gamma)
        assert (relative <= 1 / gamma * (1 + 1e-12)).all()
    values = {"good": np.linspace(0, 1, 30), "bad": np.linspace(2, 3, 90)}
    classifier, points = learned(values, ThresholdLabels(0.25))
    assert classifier.density_ratio(points, 0.25).tolist() == pytest.approx([4, 0], abs=1e-5)


def test_one_threshold_ranks_by_the_probability_of_improvement():
    values = {
        "seldom, by much": np.r_[np.linspace(-12, -10, 15), np.linspace(5, 6, 35)],
        "often, by little": np.r_[np.linspace(0.5, 0.9, 25), np.linspace(3, 4, 25)],
        "never": np.linspace(7, 9, 60),
    }
    tau = 0.9
    score = averages(values, ThresholdLabels(40 / 160))
    improvement = {choice: np.maximum(tau - mine, 0).mean() for choice, mine in values.items()}
    assert score["often, by little"] == pytest.approx(0.5, abs=1e-6)
    assert score["often, by little"] > score["seldom, by much"]
    assert improvement["often, by little"] < improvement["seldom, by much"]
    # With p(y | x, y <= tau) the same everywhere, which is the assumption that makes it expected improvement:
    depth = np.linspace(-3, tau, 10)
    same = {"a": np.r_[np.repeat(depth, 3), np.full(20, 5.0)], "b": np.r_[depth, np.full(40, 6.0)]}
    score = averages(same, ThresholdLabels(40 / 100))
    ratios = [score[choice] / np.maximum(tau - mine, 0).mean() for choice, mine in same.items()]
    assert ratios[0] == pytest.approx(ratios[1], rel=1e-5)


def test_if_all_points_have_the_same_noise_every_threshold_ranks_by_the_mean():
    mean = np.array([0.3, -1.0, 2.0, 0.0])
    for noise in (stats.norm(0, 0.7), stats.t(3), stats.logistic(0, 0.2)):
        for tau in (-2.0, 0.0, 1.0):
            probability = noise.cdf(tau - mean)
            assert np.array_equal(np.argsort(-probability), np.argsort(mean))
    unequal = [stats.norm(0, 0.1).cdf(-0.5), stats.norm(0.2, 2).cdf(-0.5)]  # the better mean, the wider noise
    assert unequal[0] < unequal[1]


def test_a_small_gamma_seeks_noise_and_a_large_one_avoids_it():
    calm, wild = stats.norm(0, 0.5), stats.norm(0.3, 2)  # calm is better on average
    grid = np.linspace(-8, 10, 4001)
    preferred = {}
    for gamma in (0.02, 0.98):
        tau = np.interp(gamma, (calm.cdf(grid) + wild.cdf(grid)) / 2, grid)
        preferred[gamma] = "wild" if wild.cdf(tau) > calm.cdf(tau) else "calm"
        values = {"calm": quantiles(calm, 150), "wild": quantiles(wild, 150)}
        score = averages(values, ThresholdLabels(gamma))
        assert max(score, key=score.get) == preferred[gamma]
    assert preferred == {0.02: "wild", 0.98: "calm"}
    x = np.linspace(-3, 3, 50)  # and with l and g as they are, r_gamma goes to l / g
    good, bad = stats.norm(0, 1).pdf(x), stats.norm(1, 1).pdf(x)
    assert np.allclose(good / (1e-9 * good + (1 - 1e-9) * bad), good / bad, rtol=1e-6)


def test_with_ties_the_share_of_good_points_is_not_gamma():
    values = {"a": np.array([1.0, 1, 1, 1, 2]), "b": np.array([1.0, 2, 3, 3, 3])}
    classifier, points = learned(values, ThresholdLabels(0.25))
    share = 5 / 10  # five values tie at tau = 1
    good, bad = np.array([4, 1]) / 5, np.array([1, 4]) / 5
    assert np.allclose(classifier.density_ratio(points, share), good / (share * good + (1 - share) * bad), atol=1e-6)
    for labelling in (ThresholdLabels(0.9), ValueGradedLabels(0.9), RankGradedLabels(0.9), ImprovementLabels(0.9)):
        z = labelling(told(values)).z[:, 0].numpy()
        everything = np.concatenate(list(values.values()))
        assert len({(value, grade) for value, grade in zip(everything, z, strict=True)}) == len(set(everything))
        assert z[everything == 1].min() > z[everything == 3].max()  # both classes, though 0.9 would reach 3
        assert not labelling(told({"a": [2.0, 2.0], "b": [2.0]})).separable


def test_one_new_value_moves_at_most_one_label_of_one_threshold_and_perhaps_all_grades():
    rng = np.random.default_rng(1)
    for _ in range(30):
        values = rng.normal(size=rng.integers(4, 30))
        before, after = ({"a": values[:-1]}, {"a": values})
        old, new = (ThresholdLabels(0.3)(told(each)).z[:, 0] for each in (before, after))
        assert (old != new[:-1]).sum() <= 1
    better = {"a": np.r_[values, values.min() - 5]}
    old, new = (ValueGradedLabels(0.5)(told(each)).z[:, 0] for each in ({"a": values}, better))
    assert (old != new[:-1]).sum() >= len(old) - 1  # all but the one at tau, whose grade is a third


# --- proper scores ---------------------------------------------------------------------------------------------------


def test_cross_entropy_and_squared_error_are_least_at_the_mean_label():
    rng = np.random.default_rng(2)
    z, weight = torch.tensor(rng.random((30, 1))), torch.tensor(rng.random(30) + 0.1)
    mean = float((weight @ z[:, 0]) / weight.sum())

    def least(loss, bounds):
        return minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-9}).x

    def constant(score):
        return torch.full((1, 30, 1), score, dtype=torch.float64)

    assert expit(least(lambda f: float(MLPClassifier().loss(constant(f), z, weight)), (-5, 5))) == pytest.approx(mean)
    assert least(lambda s: float(DeepPLS().loss(constant(s), z, weight)), (0, 1)) == pytest.approx(mean)
    classes = np.arange(10) < 3

    def spherical(p):  # another proper score
        return -np.mean(np.where(classes, p, 1 - p)) / math.hypot(p, 1 - p)

    assert least(spherical, (0, 1)) == pytest.approx(0.3, abs=1e-6)
    sign = np.where(classes, 1, -1)
    for improper in (lambda p: np.mean(np.abs(classes - p)), lambda p: np.mean(np.maximum(0, 1 - sign * (2 * p - 1)))):
        assert least(improper, (0, 1)) == pytest.approx(0, abs=1e-6)


def test_relative_least_squares_is_squared_error_on_the_labels():
    rng = np.random.default_rng(3)
    good, bad, gamma = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5)), 0.3
    mixture = gamma * good + (1 - gamma) * bad
    differences = []
    for _ in range(5):
        r = rng.normal(size=5)
        rulsif = (mixture @ r**2) / 2 - good @ r
        squared = gamma * good @ (1 - gamma * r) ** 2 + (1 - gamma) * bad @ (gamma * r) ** 2
        differences.append(squared / (2 * gamma**2) - rulsif)
    assert np.allclose(differences, differences[0])
    gradient = mixture * (good / mixture) - good  # of the criterion at r_gamma
    assert np.allclose(gradient, 0)


def test_cross_entropy_and_squared_error_differ_where_the_model_cannot_be_right():
    truth = np.array([0.1, 0.5, 0.45])
    sure, blunt = np.array([5e-4, 0.5, 0.45]), np.array([0.1, 0.35, 0.45])  # all that a poor model can be
    squared = [np.mean((truth - p) ** 2) for p in (sure, blunt)]
    entropy = [-np.mean(truth * np.log(p) + (1 - truth) * np.log(1 - p)) for p in (sure, blunt)]
    assert squared[0] < squared[1]
    assert entropy[0] > entropy[1]
    assert (sure.argmax(), blunt.argmax()) == (1, 2)
    p, small = truth, 1e-4  # near the truth, cross-entropy is squared error over the variance of a class
    excess = truth * np.log(truth / (p + small)) + (1 - truth) * np.log((1 - truth) / (1 - p - small))
    assert np.allclose(excess, small**2 / (2 * truth * (1 - truth)), rtol=1e-2)


# --- graded labels ---------------------------------------------------------------------------------------------------


def test_without_a_tail_the_mean_grade_is_expected_improvement_over_tau_truncated_at_the_best_value():
    best, tau = 0.0, 1.0
    for mean, std in [(0.5, 0.2), (1.0, 4.0), (0.4, 0.1), (-2.0, 1.0), (3.0, 0.8)]:
        closed = expected_improvement(mean, std, tau) - expected_improvement(mean, std, best)
        assert expected(lambda y: grades(y, best, tau), stats.norm(mean, std)) == pytest.approx(closed, abs=1e-4)
    wide, narrow = (1.0, 4.0), (0.4, 0.1)
    assert expected_improvement(*wide, tau) > expected_improvement(*narrow, tau)  # but truncated:
    assert expected(lambda y: grades(y, best, tau), stats.norm(*wide)) < 0.5
    assert expected(lambda y: grades(y, best, tau), stats.norm(*narrow)) > 0.55
    values = choices(np.random.default_rng(4))
    every = np.sort(np.concatenate(list(values.values())))
    low, tau = every[0], every[59]
    for choice, score in averages(values, ValueGradedLabels(0.5, tail=0)).items():
        assert score == pytest.approx(np.mean(np.maximum(tau - values[choice], 0)) / (tau - low), abs=1e-5)


def test_the_mean_default_label_is_a_mean_of_class_probabilities_over_all_thresholds():
    values = choices(np.random.default_rng(5))
    every = np.sort(np.concatenate(list(values.values())))
    best, tau, c = every[0], every[59], 0.5
    spread = tau - best

    def density(t):
        return np.where(t <= tau, 1, (c / (c + (t - tau) / spread)) ** 2) / (spread * (1 + c))

    assert integrate.quad(density, best, tau)[0] + integrate.quad(density, tau, math.inf)[0] == pytest.approx(
        1
    )  # a distribution
    beyond = tau + spread * (1 / (1 - NODES) - 1) * c  # thresholds that a share NODES of the tail lies below
    for choice, score in averages(values, ValueGradedLabels()).items():
        reached = [(values[choice][:, None] <= thresholds).mean() for thresholds in (best + spread * NODES, beyond)]
        share = (reached[0] + c * reached[1]) / (1 + c)
        assert score == pytest.approx(share, abs=1e-3)


def test_a_point_that_is_better_at_every_threshold_has_the_greater_mean_label():
    best, tau = 0.0, 1.0
    for tail in (0.5, 2.0):
        grade = partial(grades, best=best, tau=tau, tail=tail)
        for better, worse in [
            (stats.norm(0.5, 1), stats.norm(0.7, 1)),
            (stats.t(2, 3), stats.t(2, 3.1)),
            (stats.expon(0.2, 1), stats.expon(0.2, 1.3)),
        ]:
            assert (better.ppf(NODES) <= worse.ppf(NODES)).all()
            assert expected(grade, better) > expected(grade, worse)
    exact = np.sort(np.random.default_rng(6).normal(0, 5, 50))  # without noise: the order of the values themselves
    assert (np.diff(grades(exact, exact[0], exact[24], 0.5)) < 0).all()
    calm, wild = stats.norm(0.6, 0.01), stats.norm(0.6, 3)  # an equal mean says nothing: the grade is not linear
    grade = partial(grades, best=best, tau=tau, tail=0.5)
    assert expected(grade, calm) > expected(grade, wild) + 0.04


def test_grades_by_rank_are_a_mean_of_class_probabilities_over_the_good_values():
    values = choices(np.random.default_rng(7))
    every = np.sort(np.concatenate(list(values.values())))
    score = averages(values, RankGradedLabels(0.5))
    for choice, mine in values.items():
        assert score[choice] == pytest.approx(np.mean([(mine <= t).mean() for t in every[:60]]), abs=1e-5)
        rank = np.searchsorted(every, mine) / len(every)
        assert score[choice] == pytest.approx(np.mean(np.maximum(0.5 - rank, 0)) / 0.5, abs=1e-5)
    stretched = averages({choice: np.exp(mine) for choice, mine in values.items()}, RankGradedLabels(0.5))
    assert stretched == pytest.approx(score)


def test_the_weights_of_lfbo_rank_by_expected_improvement_itself():
    tau, points = 1.0, [(0.5, 0.2), (1.0, 4.0), (0.4, 0.1), (3.0, 0.8)]
    values = np.concatenate([stats.norm(*point).ppf(NODES) for point in points])
    z, weight = improvement_labels(torch.tensor(values), tau)
    z, weight = z.view(len(points), -1), weight.view(len(points), -1)
    best = ((weight * z).sum(-1) / weight.sum(-1)).numpy()  # where any proper score is least
    improvement = np.array([expected_improvement(*point, tau) for point in points])
    odds = best / (1 - best)
    assert np.allclose(odds / odds[0], improvement / improvement[0], rtol=1e-2)
    assert best.argmax() == 1  # the wide one, which the truncated improvement puts second
    mine = choices(np.random.default_rng(8))
    labels = ImprovementLabels(1 / 3)
    tau = labels(told(mine)).metrics["tau"]
    fitted = np.array(list(averages(mine, labels).values()))
    gain = np.array([np.maximum(tau - each, 0).mean() for each in mine.values()])
    ratios = fitted / (1 - fitted) / gain
    assert np.allclose(ratios, ratios[0], rtol=1e-4)


def test_several_thresholds_are_expected_improvement_only_with_their_gaps_as_weights():
    gammas = [0.05, 0.1, 0.2, 0.35, 0.5]
    values = {
        "deep": np.r_[np.linspace(-101, -100, 10), np.linspace(5, 6, 30)],
        "shallow": np.r_[np.linspace(0, 1, 30), np.linspace(5.5, 7, 10)],
        "bad": np.linspace(8, 9, 20),
    }
    every = np.sort(np.concatenate(list(values.values())))
    tau = np.array([every[math.ceil(g * 100 - 1e-9) - 1] for g in gammas])
    gaps = np.diff(tau)
    score = averages(values, SeveralThresholds(gammas))
    improvement = {}
    for choice, mine in values.items():
        reached = (mine[:, None] <= tau).mean(0)
        assert score[choice] == pytest.approx(reached.mean(), abs=1e-5)
        improvement[choice] = np.maximum(tau[-1] - np.maximum(mine, tau[0]), 0).mean()
        assert gaps @ reached[:-1] - 1e-9 <= improvement[choice] <= gaps @ reached[1:] + 1e-9
    assert max(score, key=score.get) == "shallow"
    assert max(improvement, key=improvement.get) == "deep"


# --- the Gaussian posterior, and the default acquisition -------------------------------------------------------------


def test_kernel_least_squares_is_the_posterior_mean_of_a_gaussian_process():
    space, scale, strength = SearchSpace({"x": Real(0, 1)}), 0.3, 0.05
    data = LabelledObservations(Observations(space), ThresholdLabels(0.3))
    x = np.random.default_rng(9).random(15)
    data.observations.add({"x": x}, np.sin(9 * x))
    classifier = fit(KernelPLS("rbf", length_scale=scale, regularisation=strength), data, epochs=1)
    z = data.labelled().z[:, 0].numpy()
    kernel, grid = partial(gaussian, length_scale=scale), np.linspace(0, 1, 20)
    gram = kernel(x, x)
    root = np.linalg.cholesky(gram + 1e-10 * np.eye(15))
    design, target = np.vstack([gram, math.sqrt(strength) * root.T]), np.r_[z, np.zeros(15)]
    ridge = np.linalg.lstsq(design, target, rcond=None)[0]  # of the sum of squares in eq. 12, written out
    joint = np.block([[gram + strength * np.eye(15), kernel(x, grid)], [kernel(grid, x), kernel(grid, grid)]])
    conditional = joint[15:, :15] @ np.linalg.inv(joint[:15, :15]) @ z  # of a Gaussian vector
    posterior = classifier.posterior(torch.tensor(grid)[:, None])
    assert np.allclose(posterior.mean, kernel(grid, x) @ ridge, atol=1e-5)
    assert np.allclose(posterior.mean, conditional, atol=1e-6)


def test_the_default_is_gp_ei_on_values_that_saturate_beyond_the_median():
    space = TOY_SPACES["continuous"]
    data = toy_data(space, 40)
    classifier = fit(KernelPLS(), data, epochs=5)
    values = data.observations.values[:, 0].numpy()
    tau, best = np.sort(values)[19], values.min()
    half = (tau - best) / 2
    above = np.maximum(values - tau, 0)
    saturated = np.minimum(values, tau) + above * half / (half + above)
    *scales, amplitude, noise = classifier.theta.exp().numpy()
    unit = 1.5 * (tau - best)  # of a label, in values
    process = GaussianProcessRegressor(
        amplitude * unit**2 * Matern(scales, nu=2.5), alpha=noise * unit**2 + 1e-10 * unit**2, optimizer=None
    ).fit(data.observations.points.numpy(), saturated - (tau + half))
    points = space.sample(100, torch.Generator().manual_seed(1))
    mean, std = process.predict(points.numpy(), return_std=True)
    ours = LogExpectedImprovement()(classifier.posterior(points), classifier.best_label).exp().numpy()
    theirs = expected_improvement(mean + tau + half, std, best)
    assert float(classifier.best_label) == 1
    assert theirs.max() > 1e-6
    assert np.allclose(ours * unit, theirs, rtol=1e-3, atol=1e-6 * theirs.max())


def test_far_from_all_data_the_default_expects_what_a_failure_gets():
    data = LabelledObservations(Observations(SearchSpace({"x": Real(0, 1)})))
    data.observations.add({"x": [0.0, 0.02, 0.04, 0.06]}, [1.0, 0.5, 2.0, math.nan])
    labels = data.labelled().z[:, 0]
    assert labels[-1] == 0
    assert grades([1e12], 0.5, 1.0, 0.5)[0] == pytest.approx(0, abs=1e-11)
    far = fit(KernelPLS(length_scale=0.05, regularisation=1e-4), data, epochs=1).posterior(torch.ones(1, 1).double())
    assert float(far.mean) == pytest.approx(0, abs=1e-6)
    assert float(far.std) == pytest.approx(1, abs=1e-6)  # the prior's amplitude: bad, but uncertain


# --- scores and probabilities ----------------------------------------------------------------------------------------


def test_a_rising_map_changes_no_ranking_by_the_mean():
    space = TOY_SPACES["continuous"]
    points = space.sample(100, torch.Generator().manual_seed(2))
    for method, base, labels in [
        ("platt", FourierLogistic(), ThresholdLabels(0.3)),
        ("platt", KernelPLS(), ValueGradedLabels()),
        ("isotonic", RandomForest(trees=20), ValueGradedLabels()),
    ]:
        classifier = fit(Calibrated(base, method), toy_data(space, 60, labels), epochs=1)
        mapped, plain = classifier.posterior(points), classifier.base.posterior(points)
        order = plain.mean.argsort()
        assert not torch.allclose(mapped.mean, plain.mean)
        assert (mapped.mean[order].diff() >= -1e-9).all()
        if method == "platt" and base.link is Link.LOGIT:  # a line: it keeps the order of upper bounds, too
            bound = (plain.mean + 3 * plain.std).argsort()
            assert ((mapped.mean + 3 * mapped.std)[bound].diff() > -1e-9).all()


def test_the_mean_logit_does_not_rank_as_the_mean_probability():
    members = torch.tensor([[9.0, 1.5], [-1.0, 1.4]], dtype=torch.float64)  # of two members, at two points
    posterior = MembersPosterior(members, Link.LOGIT)
    logits = ClassProbability()(posterior, 1.0)
    probabilities = expit(members.numpy()).mean(0)
    assert logits[0] > logits[1]
    assert probabilities[0] < probabilities[1]
    assert np.allclose(ExpectedProbability("samples")(posterior, 1.0), logit(probabilities))
    odds = expit(members.numpy()) / (1 - expit(members.numpy()))
    assert np.allclose(logits.exp(), stats.gmean(odds))  # the mean logit is that of the geometric mean of the odds
    for mean, std in [(0.7, 2.0), (-1.0, 0.5)]:
        exact = stats.norm(mean, std).expect(stats.norm.cdf)
        score = Link.PROBIT.expected_score(torch.tensor(mean), torch.tensor(std))
        assert float(Link.PROBIT.probability(score)) == pytest.approx(exact, abs=1e-6)
        assert (exact > 0.5) == (mean > 0)  # both say alike which points are likelier good than bad


def test_points_drawn_from_the_class_probability_are_draws_of_good_points():
    x = np.linspace(0, 1, 400)
    objective, noise, tau = np.sin(6 * x), stats.norm(0, 0.5), -0.3
    probability = noise.cdf(tau - objective)
    rng = np.random.default_rng(10)
    at = rng.integers(400, size=400_000)  # a uniform design, its values, and where the good ones lie
    good = at[objective[at] + rng.normal(0, 0.5, len(at)) <= tau]
    counted = np.bincount(good, minlength=400).reshape(20, 20).sum(1) / len(good)
    drawn = (probability / probability.sum()).reshape(20, 20).sum(1)
    assert np.allclose(counted, drawn, atol=3e-3)
    assert len(good) / len(at) == pytest.approx(probability.mean(), abs=3e-3)  # gamma, the constant of eq. 23
    score = torch.tensor(logit(probability))
    assert np.allclose(Link.LOGIT.log_probability(score).exp(), probability)


# --- regret ----------------------------------------------------------------------------------------------------------


def one_dimensional(norm=0.9):
    """A function of the RKHS of the squared-exponential kernel (length scale 0.1) with a given norm, within [0, 1]."""
    centres, grid = np.array([0.2, 0.7]), np.linspace(0, 1, 101)
    kernel = partial(gaussian, length_scale=0.1)
    weights = np.array([0.5, 0.8])
    weights *= norm / math.sqrt(weights @ kernel(centres, centres) @ weights)
    return grid, np.clip(kernel(grid, centres) @ weights, 0, 1)


def exact_fit(x, z):
    """`KernelPLS` with the kernel above and lambda 0.1, given labels z at x as a checkpoint gives them."""
    head = KernelPLS("rbf", length_scale=0.1, regularisation=0.1).bind(SearchSpace({"x": Real(0, 1)}))
    data = torch.tensor(np.stack([z, np.ones(len(z))], axis=-1), dtype=torch.float64)
    head.set_extra_state({"x": torch.tensor(np.array(x), dtype=torch.float64)[:, None], "data": data})
    return head


def test_the_bound_of_theorem_1_holds_where_its_assumptions_do():
    grid, truth = one_dimensional()
    points = torch.tensor(grid)[:, None]
    rng, delta, runs, missed, closest = np.random.default_rng(11), 0.2, 30, 0, math.inf
    for _ in range(runs):
        x, z, outside = np.empty(0), np.empty(0), False
        for _ in range(6):
            posterior = exact_fit(x, z).posterior(points)
            bound = TheoremBound(delta, norm=1.0)(posterior, 1.0).numpy()
            error, width = np.abs(truth - posterior.mean.numpy()), bound - posterior.mean.numpy()
            outside |= bool((error > width).any())
            closest = min(closest, float((width / error.clip(1e-9)).min()))
            chosen = rng.choice(np.argsort(bound)[-30:], 5)  # by what was seen, as the theorem allows
            x, z = np.r_[x, grid[chosen]], np.r_[z, rng.random(5) < truth[chosen]]
        missed += outside
    assert missed <= delta * runs
    assert closest < 20  # the bound is wide, but no trivial one


def test_without_exploration_one_good_label_holds_the_search_for_ever():
    grid = torch.linspace(0, 1, 101, dtype=torch.float64)[:, None]
    values = np.sin(9 * grid[:, 0].numpy()) - grid[:, 0].numpy()
    tau = 0.0
    found = {}
    for acquisition in (ClassProbability(), TheoremBound(delta=0.1, norm=1.0)):
        rows = [0, 40]  # a bad one, and a good one that is far from the best
        assert values[0] >= tau >= values[40]
        for _ in range(15):
            posterior = exact_fit(grid[rows, 0], values[rows] <= tau).posterior(grid)
            rows.append(int(acquisition(posterior, 1.0).argmax()))
        found[type(acquisition).__name__] = rows[2:]
    assert set(found["ClassProbability"]) <= {39, 40, 41}
    regret = values[found["ClassProbability"]] - values.min()
    assert regret.min() > 0.5  # the same at each step, so that the sum grows without end
    assert len(set(found["TheoremBound"])) > 10
    assert values[found["TheoremBound"]].min() - values.min() < 0.3


def test_without_noise_one_threshold_cannot_tell_good_points_apart():
    values = {f"{number}": [value] for number, value in enumerate(np.linspace(0, 1, 12))}
    one = list(averages(values, ThresholdLabels(0.5)).values())
    assert np.allclose(one, [1] * 6 + [0] * 6, atol=1e-5)
    graded = np.array(list(averages(values, ValueGradedLabels()).values()))
    assert (np.diff(graded) < -0.01).all()
