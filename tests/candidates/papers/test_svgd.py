"""Stein variational gradient descent against double loops, and on densities whose modes are known."""

import math

import pytest
import torch

from deepbore import (
    Categorical,
    DeepEnsemble,
    GreedyBatch,
    Integer,
    KernelPLS,
    LogExpectedImprovement,
    MLPClassifier,
    Ordinal,
    Real,
    SearchSpace,
)
from deepbore.acquisition import ClassProbability
from deepbore.candidates import LocalSearch, Search, SVGDCandidates
from deepbore.candidates.papers.svgd import LBFGS, Adadelta, stein_direction, tail_weights
from deepbore.classifiers import Link
from deepbore.classifiers.link import log_softplus
from deepbore.classifiers.posterior import PointEstimate
from deepbore.data.observations import Observations
from deepbore.errors import SettingError
from deepbore.testing import TOY_SPACES, fit, toy_data
from plane import SQUARE


class Bowl(MLPClassifier):
    """Scores that fall with the distance from the middle, level columns counted in ranges."""

    def posterior(self, points):
        return PointEstimate(-(points - 0.4).square().sum(-1), self.link, "Bowl")


def searching(classifier, space=SQUARE, n=20, seed=0):
    data = toy_data(space, n) if n else None
    observations = data.observations if data else Observations(space)
    return Search(ClassProbability(), classifier.bind(space), observations, torch.Generator().manual_seed(seed))


def test_particles_start_uniformly_and_take_steps_of_one_length():
    starts = SQUARE.points.sample(4, torch.Generator().manual_seed(0))
    svgd = SVGDCandidates(start="uniform", sweeps=0, optimizer="rmsprop", steps=1, step_size=0.01)
    moved = (svgd.ranked(searching(Bowl(), n=0), 4) - starts).abs()
    assert torch.allclose(moved, torch.full_like(moved, 0.01), atol=1e-6)


MODES = torch.tensor([[0.25, 0.25], [0.75, 0.75]], dtype=torch.float64)

WIDTH = 0.06


def two_modes(points):
    """The log density of an equal mixture of two Gaussians."""
    squared = (points[:, None, :2] - MODES.to(points)).square().sum(-1)
    return torch.logsumexp(-squared / (2 * WIDTH**2), 1)


class Density(MLPClassifier):
    """Scores are a given log density."""

    def __init__(self, log_density):
        super().__init__()
        self.log_density = log_density

    def posterior(self, points):
        return PointEstimate(self.log_density(points), self.link, "Density")


class Plainly(ClassProbability):
    """The mean score, as a log density too."""

    def log_density(self, posterior, best):
        return posterior.mean


def search(log_density=two_modes, space=SQUARE, seed=0):
    """A search of a given density, whatever is known."""
    classifier = Density(log_density).bind(space)
    return Search(Plainly(), classifier, Observations(space), torch.Generator().manual_seed(seed))


def trained(classifier, data, acquisition, seed=0):
    return Search(acquisition, classifier, data.observations, torch.Generator().manual_seed(seed))


def nearest(points):
    """The distance of each point to its nearest other one."""
    return (torch.cdist(points, points) + torch.eye(len(points)) * 1e9).min(1).values


@pytest.mark.parametrize("levels", [torch.zeros(7, 1), torch.tensor([[0.0], [0], [1], [1], [1], [3], [3]])])
def test_the_direction_is_equation_26_by_a_double_loop(levels):
    generator = torch.Generator().manual_seed(0)
    x, score = torch.randn(2, 7, 3, dtype=torch.float64, generator=generator)
    apart = (levels - levels.T).square().double()
    squared = [[float((x[i] - x[j]) @ (x[i] - x[j]) + apart[i, j]) for j in range(7)] for i in range(7)]
    median = sorted(squared[i][j] for i in range(7) for j in range(7) if i != j)[(7 * 6 - 1) // 2]
    h = median / math.log(8)
    for i in range(7):
        expected = torch.zeros(3, dtype=torch.float64)
        for j in range(7):
            other = x[j].clone().requires_grad_(True)
            k = torch.exp(-((other - x[i]).square().sum() + apart[i, j]) / h)
            (gradient,) = torch.autograd.grad(k, other)
            expected += (k.detach() * score[j] + gradient) / 7
        assert torch.allclose(stein_direction(x, score, apart)[i], expected, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adadelta", "lbfgs"])
def test_particles_are_a_sample_of_a_gaussian(optimizer):
    def gaussian(points):
        return -(points - 0.5).square().sum(-1) / (2 * 0.1**2)

    found = SVGDCandidates(optimizer=optimizer).propose(search(gaussian), q=100)
    assert torch.allclose(found.mean(0), torch.full((2,), 0.5, dtype=torch.float64), atol=0.02)
    assert torch.allclose(found.std(0), torch.full((2,), 0.1, dtype=torch.float64), atol=0.02)
    assert torch.corrcoef(found.T)[0, 1].abs() < 0.2


@pytest.mark.parametrize("optimizer", ["adadelta", "lbfgs"])
def test_particles_cover_both_modes_and_stay_within_bounds(optimizer):
    found = SVGDCandidates(optimizer=optimizer).propose(search(), q=20)
    distance = torch.cdist(found, MODES)
    assert (distance.min(1).values < 4 * WIDTH).all()
    left = int((distance[:, 0] < distance[:, 1]).sum())
    assert 6 <= left <= 14
    assert ((found >= 0) & (found <= 1)).all()


def test_modes_beyond_the_bounds_keep_particles_within():
    found = SVGDCandidates().propose(search(lambda points: -10 * (points - 1.5).square().sum(-1)), q=20)
    assert ((found >= 0) & (found <= 1)).all()
    assert found.mean() > 0.7


def test_particles_repel_one_another():
    q = 16
    best = LocalSearch(focus=0).propose(search(), q)
    assert nearest(SVGDCandidates().propose(search(), q)).median() > 5 * nearest(best).median()


@pytest.mark.parametrize("q", [2, 3])
def test_a_few_particles_repel_one_another(q):
    x = 0.5 + 0.01 * torch.randn(q, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    zeta = stein_direction(x, torch.zeros_like(x))
    away = x - x.mean(0)
    assert ((zeta * away).sum(-1) > 0).all()
    assert zeta.norm(dim=-1).min() > 1  # the closer, the stronger: as 1 / distance
    found = SVGDCandidates(sweeps=0).propose(search(lambda points: -10 * (points - 0.5).square().sum(-1)), q)
    assert nearest(found).min() > 0.1  # else all would stand on the one top


def test_the_lowest_particles_alone_climb():
    weights = tail_weights(torch.tensor([3.0, 1.0, 2.0, 0.0, 4.0]), tail=0.4)
    assert weights.flatten().tolist() == [0, 2.5, 0, 2.5, 0]
    assert tail_weights(torch.tensor([2.0, 1.0]), tail=0.1).flatten().tolist() == [0, 10]
    assert (tail_weights(torch.randn(9), tail=1.0) == 1).all()


@pytest.mark.slow
def test_the_tail_lifts_the_worst_particles():
    def worst(tail):
        batches = [SVGDCandidates(tail=tail).propose(search(seed=seed), q=20) for seed in range(5)]
        return torch.stack([two_modes(batch).sort().values[:5].mean() for batch in batches]).mean()

    assert worst(tail=0.25) > worst(tail=1.0) + 0.2


def test_without_repulsion_particles_collapse():
    spread = []
    for seed in range(5):
        x = torch.rand(10, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        pulled, steps = x.clone(), Adadelta(0.01)
        for _ in range(100):
            x = x + steps(x, stein_direction(x, -(x - 0.5) / WIDTH**2))
            pulled = pulled - 0.1 * (pulled - 0.5)
        assert nearest(pulled).max() < 1e-4
        spread.append(nearest(x).median())
    assert torch.stack(spread).mean() > 0.4 * WIDTH


def test_lbfgs_finds_the_tops_of_badly_scaled_bowls_fast():
    curvature = torch.tensor([[1.0, 300.0], [50.0, 2.0]], dtype=torch.float64)  # of each of two particles
    x, steps = torch.full((2, 2), 0.9, dtype=torch.float64), LBFGS(0.01)
    for _ in range(25):
        x = x + steps(x, -curvature * (x - 0.4)).clamp(-0.1, 0.1)
    assert (x - 0.4).abs().max() < 1e-4


def test_adadelta_steps_like_torch():
    x = torch.nn.Parameter(torch.rand(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))
    ours, steps = x.detach().clone(), Adadelta(0.01)
    theirs = torch.optim.Adadelta([x], lr=1.0, rho=0.9, eps=1e-4)
    for _ in range(20):
        x.grad = x.detach() - 0.5
        theirs.step()
        ours = ours + steps(ours, 0.5 - ours)
    assert torch.allclose(ours, x, atol=1e-12)


@pytest.mark.parametrize("name", TOY_SPACES)
@pytest.mark.parametrize("q", [2, 40])
def test_a_batch_has_exactly_q_new_points(name, q):
    space = TOY_SPACES[name]
    data = toy_data(space, 30)
    classifier = fit(DeepEnsemble(), data, epochs=2)
    one, other = (SVGDCandidates(steps=10).propose(trained(classifier, data, ClassProbability()), q) for _ in range(2))
    assert torch.equal(one, other)
    assert len(set(space.points.identify(one))) == q
    assert all(data.observations.columns.unseen(one))
    assert torch.equal(one, space.points.snap(one))


@pytest.mark.slow
def test_levels_follow_the_density():
    space = SearchSpace({"x": Real(0, 1), "c": Categorical(list("abcd"))})

    def falling(points):
        return -1.5 * points[:, 1] - 50 * (points[:, 0] - 0.5) ** 2

    weights = torch.exp(-1.5 * torch.arange(4.0))
    for sweeps, within in ((0, 1.0), (30, 0.08)):
        found = SVGDCandidates(samples=1, sweeps=sweeps).propose(search(falling, space), q=200)
        error = (torch.bincount(found[:, 1].long(), minlength=4) / 200 - weights / weights.sum()).abs().max()
        assert error < within
        assert sweeps or error > 0.15  # drawing a quarter of all without replacement flattens the density


def test_what_svgd_cannot_do_is_greedy():
    data = toy_data(TOY_SPACES["finite"], 20)
    classifier = fit(KernelPLS(), data, epochs=2)
    found, greedy = (
        candidates.propose(trained(classifier, data, LogExpectedImprovement()), 5)
        for candidates in (SVGDCandidates(), GreedyBatch())
    )
    assert torch.equal(found, greedy)
    (single,) = SVGDCandidates().propose(search(), q=1)
    assert torch.cdist(single[None], MODES).min() < 0.02


def test_the_target_is_the_probability_that_the_scores_stand_for():
    points = SQUARE.points.sample(9, torch.Generator().manual_seed(0))
    logits = MLPClassifier().bind(SQUARE)
    expected = logits.probability(points).log()
    assert torch.allclose(ClassProbability().log_density(logits.posterior(points), 1.0), expected, atol=1e-5)
    data = toy_data(SQUARE, 20)
    labels = fit(KernelPLS(), data, epochs=2).posterior(points)
    value = ClassProbability()(labels, 1.0).clamp(min=0)
    density = ClassProbability().log_density(labels, 1.0).exp() / 20
    assert torch.allclose(density, value, atol=math.log(2) / 20 + 1e-9)  # of the softplus in place of the clipping
    improvement = LogExpectedImprovement()
    assert torch.equal(improvement.log_density(labels, 1.0), improvement(labels, 1.0))


def test_log_softplus_keeps_value_and_gradient_far_out():
    t = torch.tensor([-900.0, -30.0, -5.0, 0.0, 60.0], dtype=torch.float64, requires_grad=True)
    value = log_softplus(t)
    (gradient,) = torch.autograd.grad(value.sum(), t)
    expected = [-900, -30, math.log(math.log1p(math.exp(-5))), math.log(math.log(2)), math.log(60)]
    assert value.tolist() == pytest.approx(expected, rel=1e-9)
    assert gradient.isfinite().all()
    assert (gradient > 0).all()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            {"optimizer": "adam"},
            r"optimizer must be one of \['adadelta', 'lbfgs', 'rmsprop'\], but got optimizer='adam'",
        ),
        ({"steps": 0}, "steps >= 1"),
        ({"step_size": -1.0}, "step_size > 0"),
    ],
)
def test_bad_settings_are_refused(settings, says):
    with pytest.raises(SettingError, match=says):
        SVGDCandidates(**settings)


class Level(MLPClassifier):
    """Scores are the logarithm of how much a level counts."""

    def __init__(self, parameter, counts):
        super().__init__()
        self.parameter, self.counts = parameter, torch.tensor(counts, dtype=torch.float64)

    def posterior(self, points):
        score = self.counts[self.parameter.to_level(points[:, 0]).long()].log()
        return PointEstimate(score, Link.LOGIT, "Level")


class DensityOfLevels(ClassProbability):
    def log_density(self, posterior, best):
        return posterior.mean


# regression: each of these was wrong once
@pytest.mark.parametrize("parameter", [Ordinal([1, 2, 4]), Integer(1, 5), Real(0, 1, step=0.5), Ordinal([1, 2])])
def test_particles_on_levels_settle_as_their_density_says(parameter):
    space = SearchSpace({"level": parameter})
    counts = [1.0, 1.0, 2.0, 1.0, 1.0][: parameter.levels]
    head = Level(parameter, counts).bind(space)
    search = Search(DensityOfLevels(), head, Observations(space), torch.Generator().manual_seed(0))
    settled = SVGDCandidates(sweeps=40)._metropolis(search, space.points.sample(20_000, search.generator))
    shares = torch.bincount(parameter.to_level(settled[:, 0]).long(), minlength=parameter.levels) / len(settled)
    assert shares.tolist() == pytest.approx([count / sum(counts) for count in counts], abs=0.015)


def test_a_first_step_of_adadelta_is_as_long_as_it_says():
    size = SVGDCandidates().step_size
    step = Adadelta(size)(torch.zeros(1, 3), torch.tensor([[1.0, -5.0, 100.0]]))
    assert torch.allclose(step.abs() / size, torch.full((1, 3), 10**0.5), rtol=0.01)
