"""What is believed of the best point in every search and batch: the acquisition times the belief to a power."""

from dataclasses import replace

import pytest
import torch

from deepbore import (
    BelieverBatch,
    BoTorchBatch,
    Categorical,
    ClassProbability,
    DeepEnsemble,
    DifferentialEvolution,
    GreedyBatch,
    KernelPLS,
    LocalSearch,
    MLPClassifier,
    MultiStartLBFGS,
    Normal,
    RandomForest,
    RandomSearch,
    Real,
    Relaxed,
    RelaxedSearch,
    SearchSpace,
    Study,
    SVGDCandidates,
    ThompsonBatch,
    UpperConfidenceBound,
)
from deepbore.candidates.base import DOUBT, torch_gradient
from deepbore.loop.engine import Engine
from deepbore.strategies.base import BETA

PLANE = SearchSpace({"x": Real(0, 1, prior=Normal(0.8, 0.05)), "y": Real(0, 1)})
MIXED = SearchSpace({**PLANE.parameters, "c": Categorical(["a", "b", "c"], prior=[0.8, 0.1, 0.1])})
STRONG = 400.0  # an exponent beside which no acquisition counts


def flat(params):
    """Says little of x and nothing of c; the first of a design is best, which refutes no belief."""
    return (params["y"] - 0.5) ** 2 + (abs(params["x"] - 0.8) > 1e-6)


def searched(space, **parts):
    """A study of a few trials, and the search for its next point."""
    study = Study(space, seed=1, n_initial=4, **parts)
    for trial in study.ask(4):
        study.tell(trial, flat(trial.params))
    study.fit()
    state = study.state
    strategy = state.strategy
    first = getattr(strategy, "first", strategy)
    return study, first, Engine(state).view().search(first.classifier, first.acquisition)


@pytest.mark.parametrize(
    "parts",
    [{}, {"classifier": DeepEnsemble(members=2)}, {"classifier": RandomForest(trees=9)},
     {"acquisition": UpperConfidenceBound(1.0)}, {"classifier": MLPClassifier(), "acquisition": ClassProbability()}],
    ids=["default", "ensemble", "forest", "bound of labels", "network"],
)  # fmt: skip
def test_a_search_maximises_the_log_density_plus_the_weighted_log_prior(parts):
    study, first, search = searched(MIXED, **parts)
    points = MIXED.points.sample(20, torch.Generator().manual_seed(0))
    alone = first.acquisition.log_density(first.classifier.posterior(points), search.incumbent)
    believed = MIXED.points.log_prior(
        points, MIXED.points.doubts(study.observations.points[study.best_trial.id], DOUBT)
    )
    with torch.no_grad():
        assert search.prior_weight == BETA / 4
        assert torch.allclose(search.values(points), alone.double() + BETA / 4 * believed, atol=1e-5)
        assert torch.allclose(search.log_densities(points), search.values(points).double())
    if first.classifier.differentiable:
        assert torch.allclose(search.gradient(points), torch_gradient(search.value, points), rtol=1e-4, atol=1e-6)


def test_the_exponent_falls_with_the_trials_and_is_0_where_nothing_is_believed():
    study, _, search = searched(PLANE)
    assert search.prior_weight == BETA / 4
    for trial in study.ask(6):
        study.tell(trial, flat(trial.params))
    assert Engine(study.state).view().prior_weight == BETA / 10
    for space in (SearchSpace({"x": Real(0, 1)}), SearchSpace({"x": Real(0, 1, default=0.5, prior="uniform")})):
        assert Engine(Study(space).state).view().prior_weight == 0


def test_half_of_the_random_points_are_drawn_from_what_is_believed():
    _, _, search = searched(PLANE)
    near = ((search.sample(2000)[:, 0] - 0.8).abs() < 0.1).double().mean()
    assert float(near) == pytest.approx((0.2 + 0.954) / 2, abs=0.04)
    assert len(search.sample(7)) == 7
    assert len(search.sample(1)) == 1


BATCHES = {
    "greedy": GreedyBatch,
    "random": lambda: GreedyBatch(RandomSearch()),
    "local": lambda: LocalSearch(focus=0.0),
    "thompson": ThompsonBatch,
    "believer": BelieverBatch,
    "evolution": DifferentialEvolution,
    "stein": SVGDCandidates,
    "L-BFGS": MultiStartLBFGS,
    "one by one": BoTorchBatch,
    "joint": lambda: BoTorchBatch(joint=True),
}


@pytest.mark.parametrize("classifier", [KernelPLS, lambda: DeepEnsemble(members=3)], ids=["kernel", "ensemble"])
@pytest.mark.parametrize("make", BATCHES.values(), ids=BATCHES)
def test_every_batch_goes_where_a_strong_belief_says(make, classifier):
    _, first, search = searched(PLANE, classifier=classifier(), candidates=make())
    found = first.candidates.propose(replace(search, prior_weight=STRONG), 4)
    assert len(found) == 4
    assert float((found[:, 0] - 0.8).abs().median()) < 0.06
    assert float((found[:, 0] - 0.8).abs().max()) < 0.2


def test_a_search_in_a_relaxed_box_believes_the_same():
    _, first, search = searched(MIXED, classifier=Relaxed(MLPClassifier()), candidates=RelaxedSearch(MultiStartLBFGS()))
    found = first.candidates.propose(replace(search, prior_weight=STRONG), 3)
    assert float((found[:, 0] - 0.8).abs().max()) < 0.06
    assert found[0, 2] == 0


def test_what_the_best_trial_refutes_is_doubted():
    study = Study(PLANE, seed=0)
    study.tell(study.ask_one(), 1.0)  # at the likeliest value
    near = Engine(study.state).view().search(study.classifier, ClassProbability()).doubts
    study.add({"x": [0.1], "y": [0.5]}, [0.0])
    far = Engine(study.state).view().search(study.classifier, ClassProbability()).doubts
    density = 1 / (0.05 * (2 * torch.pi) ** 0.5)
    assert float(near[0]) == pytest.approx(DOUBT / (DOUBT + (1 - DOUBT) * density), rel=1e-3)
    assert float(far[0]) > 0.999


@pytest.mark.parametrize("candidates", [GreedyBatch, ThompsonBatch, BelieverBatch])
def test_black_box_constraints_and_beliefs_multiply(candidates):
    study = Study(PLANE, seed=0, n_initial=4, candidates=candidates())
    for trial in study.ask(4):
        study.tell(trial, flat(trial.params), constraints=[0.75 - trial.params["x"]])
    found = study.ask(3)
    assert all(trial.params["x"] > 0.6 for trial in found)
