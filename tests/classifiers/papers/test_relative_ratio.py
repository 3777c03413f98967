"""RelativeRatio against RuLSIF on two samples by hand, brute force, known densities and repeated rows."""

import numpy as np
import pytest
import torch
from scipy import stats

import deepbore as db
from deepbore import Categorical, Condition, Real, RelativeRatio, SearchSpace, Study, ThresholdLabels, ValueGradedLabels
from deepbore.acquisition import ClassProbability, UpperConfidenceBound, default_acquisition
from deepbore.candidates import MultiStartLBFGS
from deepbore.classifiers.link import Link
from deepbore.errors import SettingError
from deepbore.labels import LabelledBatch
from deepbore.testing import TOY_SPACES, fit, toy_data
from pictured import tried_on
from plane import SQUARE
from trainers import trainer_of

SPACE = TOY_SPACES["continuous"]

LENGTH, LAMBDA = 0.4, 0.03


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def fixed(length_scale=LENGTH, regularisation=LAMBDA, labels=None):
    """A fit with given length scale and lambda, and its data."""
    data = toy_data(SPACE, 40, labels or ThresholdLabels(0.3))
    return fit(RelativeRatio(length_scale, regularisation), data, epochs=1), data.labelled()


def learned(points, z, weight=None, **settings):
    """A classifier that has learned these rows."""
    weight = torch.ones(len(points)) if weight is None else weight
    batch = LabelledBatch(points, z.reshape(-1, 1), weight)
    classifier = RelativeRatio(**settings).bind(SPACE)
    classifier.fit(batch)
    return classifier


def kernels(x, centres, length_scale=LENGTH):
    return np.exp(-((x[:, None] - centres) ** 2).sum(-1) / (2 * length_scale**2))


def by_hand(x, z, weight, centres, length_scale=LENGTH, regularisation=LAMBDA):
    """The coefficients of gamma f, by J's terms over l and over g as Yamada et al. have them."""
    gamma = (weight * z).sum() / weight.sum()
    k = kernels(x, centres, length_scale)
    in_l, in_g = weight * z / (weight * z).sum(), weight * (1 - z) / (weight * (1 - z)).sum()
    h_matrix = gamma * np.einsum("n,ni,nj->ij", in_l, k, k) + (1 - gamma) * np.einsum("n,ni,nj->ij", in_g, k, k)
    return gamma * np.linalg.solve(h_matrix + regularisation * np.eye(len(centres)), k.T @ in_l)


# --- the fit ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("length_scale", "regularisation"), [(LENGTH, LAMBDA), (0.25, 1e-4)])
def test_the_ratio_is_rulsif_of_two_samples(length_scale, regularisation):
    classifier, batch = fixed(length_scale, regularisation)
    x, good = batch.points.numpy(), batch.z[:, 0].numpy() == 1
    positives, gamma = x[good], good.mean()
    of_l, of_g = (kernels(sample, positives, length_scale) for sample in (positives, x[~good]))
    h_matrix = gamma * of_l.T @ of_l / len(of_l) + (1 - gamma) * of_g.T @ of_g / len(of_g)
    theta = np.linalg.solve(h_matrix + regularisation * np.eye(len(positives)), of_l.mean(0))
    points = SPACE.points.sample(50, generator(1))
    expected = kernels(points.numpy(), positives, length_scale) @ theta
    assert np.allclose(classifier.posterior(points).mean / gamma, expected)
    clipped = np.clip(expected, 0, 1 / gamma)
    assert (clipped != expected).any() == (regularisation < LAMBDA)
    assert np.allclose(classifier.density_ratio(points, gamma), clipped)


def test_no_other_coefficients_have_a_lower_j():
    classifier, batch = fixed()
    x, z = batch.points.numpy(), batch.z[:, 0].numpy()
    gamma, k = z.mean(), kernels(x, classifier._centres.numpy())

    def j(theta):
        f = k @ theta
        mean_l, mean_g = (f**2)[z == 1].mean(), (f**2)[z == 0].mean()
        return gamma / 2 * mean_l + (1 - gamma) / 2 * mean_g - f[z == 1].mean() + LAMBDA / 2 * theta @ theta

    theta = classifier._theta.numpy() / gamma
    least = j(theta)
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert j(theta + 1e-3 * rng.normal(size=len(theta))) > least


@pytest.mark.parametrize("weighted", [False, True])
def test_graded_labels_and_weights_count_as_stated(weighted):
    points, z = SPACE.points.sample(30, generator()), torch.rand(30, generator=generator(1))
    weight = torch.rand(30, generator=generator(2)) + 0.2 if weighted else torch.ones(30)
    classifier = learned(points, z, weight, length_scale=LENGTH, regularisation=LAMBDA)
    expected = by_hand(*(t.double().numpy() for t in (points, z, weight)), points.numpy())
    assert np.allclose(classifier._theta, expected)


def test_a_graded_label_is_so_many_rows_of_either_class():
    """z = 2/4 is two rows of l and two of g at one place, and a weight of two is two rows."""
    points, z = SPACE.points.sample(12, generator()), torch.tensor([0.25, 0.5, 0.75, 1.0, 0.0, 0.5] * 2)
    weight = torch.tensor([1.0, 2.0] * 6)
    graded = learned(points, z, weight, length_scale=LENGTH, regularisation=LAMBDA)
    copies = [(row, copy < 4 * z[row]) for row in range(12) for _ in range(int(weight[row])) for copy in range(4)]
    rows, classes = (np.array(column) for column in zip(*copies, strict=True))
    expected = by_hand(points.numpy()[rows], classes.astype(float), np.ones(len(rows)), graded._centres.numpy())
    assert np.allclose(graded._theta, expected)


# --- its settings ----------------------------------------------------------------------------------------------------


def test_leaving_one_out_is_the_brute_force_and_picks_the_least_j():
    points, z = SPACE.points.sample(25, generator()), torch.rand(25, generator=generator(1)).round(decimals=1)
    weight = torch.rand(25, generator=generator(2)) + 0.5
    classifier = learned(points, z, weight)
    x, z, weight = (t.double().numpy() for t in (points, z, weight))
    share, gamma = weight / weight.sum(), (weight * z).sum() / weight.sum()
    centres = classifier._centres.numpy()

    def left_out_j(length_scale, regularisation):
        k, total = kernels(x, centres, length_scale), 0.0
        for i in range(len(x)):
            rest = np.arange(len(x)) != i
            h_matrix = (share[rest, None] * k[rest]).T @ k[rest]
            h = k[rest].T @ (share * z / gamma)[rest]
            f = k[i] @ np.linalg.solve(h_matrix + regularisation * np.eye(len(centres)), h)
            total += share[i] * (f**2 / 2 - z[i] / gamma * f)
        return total

    grid = [(scale, strength) for scale in classifier.length_scales for strength in classifier.regularisations]
    j = np.array([left_out_j(*pair) for pair in grid])
    assert tuple(classifier.chosen.tolist()) == pytest.approx(grid[j.argmin()])
    batch = LabelledBatch(points, torch.from_numpy(z).reshape(-1, 1), torch.from_numpy(weight))
    loss = float(classifier.fit(batch)["loss"])
    assert loss / 2 == pytest.approx(gamma**2 * j.min() + (share * z**2).sum() / 2, rel=1e-6)


def test_the_length_scale_follows_the_data():
    space, chosen = SearchSpace({"x": Real(0, 1)}), {}
    for waves in (1, 6):
        data, rng = toy_data(space, 0, ThresholdLabels(0.5)), np.random.default_rng(0)
        x = rng.random(150)
        data.observations.add({"x": x}, np.cos(2 * np.pi * waves * x) + 0.5 * rng.normal(size=150))
        chosen[waves] = float(fit(RelativeRatio(), data, epochs=1).chosen[0])
    assert chosen[1] > 1.5 * chosen[6]  # the grid has steps of 1.8


def test_given_settings_stay():
    classifier, _ = fixed()
    assert classifier.chosen.tolist() == [LENGTH, LAMBDA]
    for name in ("length_scale", "regularisation"):
        with pytest.raises(SettingError, match=f"{name} > 0 must hold"):
            RelativeRatio(**{name: 0})
    for name in ("centres", "rows"):
        with pytest.raises(SettingError, match=f"{name} >= 1 must hold"):
            RelativeRatio(**{name: 0})


def test_centres_are_drawn_from_the_good_points():
    many = fit(RelativeRatio(centres=20), toy_data(SPACE, 300, ThresholdLabels(0.3)), epochs=1)
    labelled = toy_data(SPACE, 300, ThresholdLabels(0.3)).labelled()
    good = {tuple(point) for point in labelled.points[labelled.z[:, 0] == 1].tolist()}
    centres = {tuple(point) for point in many._centres.tolist()}
    assert len(centres) == 20
    assert centres <= good
    points, z = SPACE.points.sample(200, generator()), torch.linspace(0, 1, 200)
    drawn = torch.stack([learned(points, z, centres=20, rows=200)._centres for _ in range(3)])
    assert drawn.unique(dim=0).shape[0] == 1  # by its own generator
    assert set(map(tuple, drawn[0].tolist())) <= set(map(tuple, points.tolist()))


def test_beyond_the_limit_it_learns_from_a_coreset_and_counts_as_one_step():
    trainer = trainer_of(RelativeRatio(rows=50), toy_data(SPACE, 300, ThresholdLabels(0.3)), 4)
    assert trainer.callback_metrics["rows"] == 50
    assert trainer.global_step == 4


# --- what it estimates -----------------------------------------------------------------------------------------------


def test_the_ratio_of_known_densities_is_estimated_better_than_by_kernel_density_estimates():
    """The toy of BORE, appendix H."""
    space, gamma, n = SearchSpace({"x": Real(-8, 8)}), 1 / 4, 1000
    grid = np.linspace(-6, 6, 301)
    good = 0.3 * stats.norm.pdf(grid, 2, 1) + 0.7 * stats.norm.pdf(grid, -3, 0.5)
    exact = good / (gamma * good + (1 - gamma) * stats.norm.pdf(grid, 0, 2))
    errors = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        k = int(gamma * n)
        centre, spread = np.where(rng.random(k)[:, None] < 0.3, [2.0, 1.0], [-3.0, 0.5]).T
        low, high = rng.normal(centre, spread).clip(-8, 8), rng.normal(0, 2, n - k).clip(-8, 8)
        data = toy_data(space, 0, ThresholdLabels(gamma))
        data.observations.add({"x": np.r_[low, high]}, np.r_[np.zeros(k), np.ones(n - k)])
        classifier = fit(RelativeRatio(rows=n), data, epochs=1)
        ours = classifier.density_ratio(space.points.encode_columns({"x": grid}), gamma).numpy()
        of_low, of_high = (stats.gaussian_kde(sample, 1.06 * len(sample) ** -0.2)(grid) for sample in (low, high))
        theirs = of_low / (gamma * of_low + (1 - gamma) * of_high)
        errors.append([np.sqrt(np.mean((curve - exact) ** 2)) for curve in (ours, theirs)])
    ours, theirs = np.mean(errors, 0)
    assert ours < 0.3
    assert ours < theirs / 2


def test_gradients_agree_with_finite_differences():
    classifier, _ = fixed(labels=ValueGradedLabels())
    points = SPACE.points.sample(8, generator(1))
    leaf = points.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(classifier.posterior(leaf).mean.sum(), leaf)
    for column in range(len(SPACE)):
        step = torch.zeros(len(SPACE), dtype=torch.float64).index_fill(0, torch.tensor(column), 1e-6)
        above, below = (classifier.posterior(points + sign * step).mean for sign in (1, -1))
        assert torch.allclose(gradient[:, column], (above - below) / 2e-6, rtol=1e-4, atol=1e-8)


def test_lbfgs_climbs_it():
    study = Study(SPACE, seed=0, classifier=RelativeRatio(), candidates=MultiStartLBFGS(restarts=2, samples=50))
    for _ in range(15):
        (trial,) = study.ask()
        study.tell(trial, (trial.params["x"] - 0.3) ** 2 + trial.params["y"] ** 2)
    assert study.best_trial.value < 0.2


def test_conditions_and_categories_are_told_apart():
    space = SearchSpace({"c": Categorical(["a", "b", "d"]), "x": Real(0, 1, when=Condition("c", "a"))})
    data = toy_data(space, 0, ValueGradedLabels())
    rng = np.random.default_rng(0)
    c = rng.choice(["a", "b", "d"], 90)
    x = [float(rng.random()) if value == "a" else None for value in c]
    values = [(x - 0.2) ** 2 if value == "a" else {"b": 0.5, "d": 1.0}[value] for value, x in zip(c, x, strict=True)]
    data.observations.add({"c": c.tolist(), "x": x}, values)
    classifier = fit(RelativeRatio(), data, epochs=1)
    points = space.encode([{"c": "a", "x": 0.2}, {"c": "a", "x": 0.9}, {"c": "b"}, {"c": "d"}])
    best, far, b, d = classifier.posterior(points).mean.tolist()
    assert best > far > b > d


def test_it_says_what_it_has():
    classifier = RelativeRatio()
    assert classifier.link is Link.IDENTITY
    assert not classifier.capabilities
    assert isinstance(default_acquisition(classifier), ClassProbability)
    with pytest.raises(SettingError, match="RelativeRatio"):
        UpperConfidenceBound().check(classifier)
    empty = RelativeRatio().bind(SPACE).posterior(SPACE.points.sample(3, generator())).mean
    assert empty.tolist() == [0.0] * 3


# regression: this was wrong once
def test_the_relative_ratio_takes_points_in_single_precision():
    study = tried_on(SQUARE, lambda params: params["x"], classifier=db.RelativeRatio())
    study.fit()
    points = SQUARE.points.sobol(4, seed=0)
    single, double = (study.classifier.posterior(each).mean for each in (points.float(), points))
    assert torch.allclose(single.double(), double.double(), atol=1e-5)
