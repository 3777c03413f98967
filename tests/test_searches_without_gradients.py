"""Searches that take no gradients, and one that wants more than the best."""

from dataclasses import replace

import pytest
import torch

from deepbore import (
    Ambitious,
    Categorical,
    Condition,
    DifferentialEvolution,
    GreedyBatch,
    Integer,
    KernelPLS,
    LocalSearch,
    MultiStartLBFGS,
    RandomForest,
    RandomSearch,
    Real,
    SearchSpace,
    XGBoost,
)
from deepbore.acquisition import ClassProbability, LogExpectedImprovement
from deepbore.candidates import Search
from deepbore.classifiers import MLPClassifier
from deepbore.data.observations import Observations
from deepbore.errors import SettingError
from deepbore.labels import LabelledObservations
from deepbore.testing import fit
from test_candidates import GRID, MIXED, PLANE, Peak, generator, search

# --- without gradients -----------------------------------------------------------------------------------------------


def test_evolution_finds_levels_and_numbers_together():
    top = MIXED.encode([{"x": 0.3, "y": 0.6, "n": 20, "c": "d"}])[0]
    ranked = DifferentialEvolution().ranked(search(MIXED, top), q=1)
    assert (ranked[0] - top).norm() < 0.05
    assert torch.equal(ranked, MIXED.snap(ranked))
    assert set(ranked[:, 3].tolist()) == set(range(6))


def test_evolution_scores_only_configurations():
    space = SearchSpace({"c": Categorical(["a", "b"]), "x": Real(0, 1, when=Condition("c", "a")), "n": Integer(1, 4)})
    at = search(space, torch.tensor([1.0, 0.9, 0.5]))  # nearest to x = 0.9, which is inactive there
    (found,) = space.decode(DifferentialEvolution(evaluations=200, population=10).propose(at, q=1))
    assert found["c"] == "b"
    assert set(found) == {"c", "n"}


@pytest.mark.parametrize(("evaluations", "population"), [(200, 20), (219, 20), (5, 5)])
def test_evolution_spends_its_evaluations_and_no_more(evaluations, population):
    top = torch.tensor([0.1, 0.9, 0.5, 0.3, 0.7])
    ranked = DifferentialEvolution(evaluations, population).ranked(search(PLANE, top, observed=30), q=1)
    assert len(ranked) == evaluations // population * population
    values = Peak(top).height(ranked)
    assert (values.diff() <= 0).all()


def test_evolution_begins_with_the_best_observed_points():
    top = torch.tensor([0.1, 0.9, 0.5, 0.3, 0.7])
    at = search(PLANE, top, observed=30)
    first = DifferentialEvolution(evaluations=10, population=10).ranked(at, q=1)
    best = at.observations.points[at.observations.best_rows(3)]
    assert [bool((first - point).norm(dim=-1).min() < 1e-9) for point in best] == [True, True, False]


@pytest.mark.parametrize(
    "space",
    [
        SearchSpace({f"x{i}": Real(0, 1) for i in range(200)}),
        SearchSpace({"c": Categorical([f"level {i}" for i in range(1000)]), "x": Real(0, 1)}),
    ],
    ids=["200 parameters", "1000 levels"],
)
def test_evolution_takes_wide_spaces_and_many_levels(space):
    found = DifferentialEvolution(evaluations=100, population=10).propose(search(space, space.bounds[1] / 2), q=3)
    assert torch.equal(found, space.snap(found))
    assert len(set(space.identify(found))) == 3


@pytest.mark.parametrize("settings", [{"population": 4}, {"evaluations": 10, "population": 11}])
def test_evolution_needs_a_population_within_its_evaluations(settings):
    with pytest.raises(SettingError, match="5 <= population <= evaluations must hold"):
        DifferentialEvolution(**settings)


@pytest.mark.parametrize("candidates", [LocalSearch(), RandomSearch(50), DifferentialEvolution(50, 10)])
def test_equal_points_of_trees_are_taken_at_random(candidates):
    def winners(classifier):
        at = [Search(ClassProbability(), classifier.bind(GRID), Observations(GRID), generator(s)) for s in range(30)]
        return [tuple(candidates.propose(each, q=1)[0].tolist()) for each in at]

    drawn = winners(XGBoost())  # not trained: all scores are equal
    assert len(set(drawn)) > 15
    assert drawn == winners(XGBoost())


def test_equal_points_of_networks_stay_in_order():
    at = Search(ClassProbability(), MLPClassifier().bind(GRID), Observations(GRID), generator())
    points = GRID.enumerate()
    assert torch.equal(at.sorted(points, torch.zeros(125))[0], points)
    order = at.sorted(points, torch.arange(125) // 5)[1]
    assert (order.diff() <= 0).all()


@pytest.mark.parametrize("make", [RandomForest, XGBoost])
def test_gradients_on_trees_are_refused_with_what_to_use_instead(make):
    at = Search(ClassProbability(), make().bind(PLANE), Observations(PLANE), generator())
    says = rf"{make.__name__} on .* Use LocalSearch, DifferentialEvolution or Random"
    with pytest.raises(SettingError, match=says):
        MultiStartLBFGS().propose(at, q=1)
    with pytest.raises(SettingError, match=says):
        MultiStartLBFGS().check(PLANE, make())


# --- ambition --------------------------------------------------------------------------------------------------------

BRANCHES = SearchSpace(
    {
        "kind": Categorical(["flat", "steep", "other"]),
        "x": Real(0, 1, when=Condition("kind", ["flat"])),
        "y": Real(0, 1, when=Condition("kind", ["steep"])),
        "z": Real(0, 1, when=Condition("kind", ["other"])),
    }
)


def seen(space=BRANCHES, n=25):
    """A classifier that knows one branch well, whose values agree to a per cent, and others hardly."""
    observations = Observations(space)
    rows = space.decode(space.sobol(n, seed=0)) + [{"kind": "flat", "x": k / 20} for k in range(21)]
    for row in rows:
        observations.add(row, 1 + 0.01 * (row["x"] - 0.5) ** 2 if row["kind"] == "flat" else 2)
    classifier = fit(KernelPLS(), LabelledObservations(observations), epochs=5)
    return Search(LogExpectedImprovement(), classifier, observations, generator())


@pytest.mark.slow
def test_an_ambitious_proposal_is_the_likeliest_to_exceed_the_best_by_the_margin():
    looked, ambitious = seen(), replace(seen(), ambition=0.3)
    usual = GreedyBatch().propose(looked, q=1)
    bold = Ambitious(share=1.0, margin=0.3).propose(looked, q=1)
    assert ambitious.values(bold) > ambitious.values(usual)
    assert looked.values(bold) < looked.values(usual)


def test_an_ambitious_proposal_measures_improvement_against_a_label_beyond_the_best():
    plain = search(PLANE, torch.full((5,), 0.5))
    plain.classifier.best_label.fill_(0.75)
    assert plain.goal == 0.75
    assert replace(plain, ambition=0.5).goal == 1.25


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_ambition_is_for_expected_improvement_others_propose_what_they_proposed(share):
    top = torch.tensor([3.7, 0.2, 1.9])
    usual, ambitious = LocalSearch(), Ambitious(LocalSearch(), share=share, margin=5.0)
    assert torch.equal(ambitious.propose(search(GRID, top), q=3), usual.propose(search(GRID, top), q=3))


def test_where_the_share_is_nothing_no_proposal_is_ambitious():
    observations = Observations(GRID)
    for row in GRID.decode(GRID.enumerate()[:50:2]):  # far from two thirds of the grid
        observations.add(row, (row["k1"] - 2.2) ** 2 + (row["k2"] - 1.7) ** 2)
    classifier = fit(KernelPLS(), LabelledObservations(observations), epochs=3)
    at = Search(LogExpectedImprovement(), classifier, observations, generator())
    usual, never, always = (
        candidates.propose(at, q=3)
        for candidates in (LocalSearch(), Ambitious(LocalSearch(), share=0.0), Ambitious(LocalSearch(), share=1.0))
    )
    assert torch.equal(never, usual)
    assert not torch.equal(always, usual)


def test_an_ambitious_proposal_does_not_keep_to_the_neighbours_of_the_best():
    at = search(PLANE, torch.tensor([0.1, 0.9, 0.5, 0.3, 0.7]), observed=30)
    best = at.observations.points[at.observations.best_rows(3)]
    ranked = Ambitious(LocalSearch(focus=1), share=1.0).ranked(at, q=1)
    assert ((ranked[:, None] != best).sum(-1).min(1).values == 5).any()


@pytest.mark.parametrize("settings", [{"share": -0.1}, {"share": 1.1}, {"margin": 0.0}])
def test_ambition_outside_its_range_is_refused(settings):
    with pytest.raises(SettingError, match=next(iter(settings))):
        Ambitious(**settings)
