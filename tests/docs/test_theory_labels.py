"""The statements of docs/theory.md on labels, in numbers: exact distributions and brute force against the package."""

import math
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from scipy.optimize import minimize_scalar
from scipy.special import expit

from deepbore.classifiers import DeepPLS, MLPClassifier
from deepbore.labels import ImprovementLabels, RankGradedLabels, SeveralThresholds, ThresholdLabels, ValueGradedLabels
from deepbore.labels.threshold import improvement_labels
from known_distributions import averages, expected_improvement, grades, learned, told
from processes import ROOT

PAGE = ROOT / "docs" / "theory.md"
NODES = (np.arange(20_000) + 0.5) / 20_000  # probabilities at which a distribution is looked at: the midpoint rule


def test_every_statement_of_the_page_has_a_test_and_every_test_a_statement():
    statements = re.findall(r"^### (.+)$", PAGE.read_text(), re.MULTILINE)
    names = ["test_" + re.sub(r"\W+", "_", statement.lower()).strip("_") for statement in statements]
    files = Path(__file__).parent.glob("test_theory_*.py")
    here = [re.findall(r"^def (test_(?!every_statement)\w+)", file.read_text(), re.MULTILINE) for file in files]
    assert sorted(names) == sorted(name for tests in here for name in tests)
    for tests in here:  # in the order of the page
        assert tests == [name for name in names if name in tests]


def quantiles(distribution, n=60):
    """n values that stand for a distribution."""
    return distribution.ppf((np.arange(n) + 0.5) / n)


def expected(function, distribution):
    """E[function(Y)]."""
    return float(np.mean(function(distribution.ppf(NODES))))


def choices(rng, n=40):
    """Three choices with distributions of their own, all values distinct."""
    return {"a": rng.normal(0, 1, n), "b": rng.normal(0.4, 0.3, n), "c": rng.normal(1, 2, n)}


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
