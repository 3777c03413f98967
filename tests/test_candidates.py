"""Searches for candidates, on acquisitions whose maximum is known."""

import json
from dataclasses import replace

import pytest
import torch

from cases import CANDIDATES
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
    Ordinal,
    RandomForest,
    RandomSearch,
    Real,
    SearchSpace,
    SVGDCandidates,
    ThompsonBatch,
    XGBoost,
)
from deepbore.acquisition import ClassProbability, LogExpectedImprovement
from deepbore.candidates import Candidates, EpsilonGreedy, Search, distinct
from deepbore.classifiers import MLPClassifier
from deepbore.classifiers.posterior import PointEstimate
from deepbore.data.observations import Observations
from deepbore.errors import SettingError, ShapeError, SpaceExhausted
from deepbore.integrations.botorch import BoTorchAcquisition
from deepbore.labels import LabelledObservations
from deepbore.parts import describe, make
from deepbore.testing import fit

PLANE = SearchSpace({f"x{i}": Real(0, 1) for i in range(5)})
MIXED = SearchSpace({"x": Real(0, 1), "y": Real(0, 1), "n": Integer(1, 50), "c": Categorical(list("abcdef"))})
GRID = SearchSpace({f"k{i}": Ordinal(list(range(5))) for i in range(3)})


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


class Peak(MLPClassifier):
    """Scores are a smooth peak at a given point, whatever was learned."""

    def __init__(self, top):
        super().__init__()
        self.top = top

    def posterior(self, points):
        return PointEstimate(self.height(points), self.link, "Peak")

    def height(self, points):
        return -(points - self.top.to(points)).square().sum(-1)


def search(space, top, observed=0, seed=0):
    observations = Observations(space)
    if observed:
        rows = observations.reserve(space.sample(observed, generator(seed + 1)))
        for row in rows:
            observations.tell(row, float(-Peak(top).height(observations.points[row : row + 1])))
    return Search(ClassProbability(), Peak(top).bind(space), observations, generator(seed))


@pytest.mark.parametrize(
    ("candidates", "within"),
    [
        (LocalSearch(focus=0), 0.02),
        (MultiStartLBFGS(), 1e-4),
        (DifferentialEvolution(), 0.05),
        (RandomSearch(), 0.5),
    ],
)
def test_continuous_searches_find_the_top(candidates, within):
    top = torch.tensor([0.1, 0.9, 0.5, 0.3, 0.7])
    found = candidates.propose(search(PLANE, top, observed=10), q=1)
    assert (found[0] - top).norm() < within


def test_tops_beyond_the_bounds_are_found_on_them():
    top = torch.tensor([-0.5, 1.5, 0.5, 0.5, 0.5])
    for candidates in (LocalSearch(focus=0), MultiStartLBFGS()):
        (found,) = candidates.propose(search(PLANE, top, observed=5), q=1)
        assert (found[:2] - torch.tensor([0.0, 1.0])).norm() < 0.02


def test_mixed_searches_find_levels_and_climb_numbers():
    top = MIXED.encode([{"x": 0.3, "y": 0.6, "n": 20, "c": "d"}])[0]
    (found,) = LocalSearch(focus=0).propose(search(MIXED, top, observed=20), q=1)
    assert MIXED.decode(found[None])[0]["c"] == "d"
    assert (found - top).norm() < 0.1


def test_a_focused_search_looks_only_near_the_three_best():
    top = torch.tensor([0.1, 0.9, 0.5, 0.3, 0.7])
    at = search(PLANE, top, observed=30)
    best = at.observations.points[at.observations.best_rows(3)]
    changed = (LocalSearch(focus=1).ranked(at, q=1)[:, None] != best).sum(-1).min(1).values
    assert set(changed.tolist()) <= {1, 2}


def test_a_small_space_is_ranked_whole():
    top = torch.tensor([4.0, 0.0, 2.0])
    ranked = LocalSearch().ranked(search(GRID, top), q=1)
    assert len(ranked) == 125
    assert torch.equal(ranked[0], top.double())


def test_the_walk_passes_over_seen_and_pending_points():
    top = torch.tensor([4.0, 0.0, 2.0])
    at = search(GRID, top)
    first = LocalSearch().propose(at, q=1)
    (row,) = at.observations.reserve(first)
    second = LocalSearch().propose(at, q=1)
    at.observations.tell(row, 1.0)
    assert torch.equal(second, LocalSearch().propose(at, q=1))
    assert (second - top).abs().sum() == 1


def test_distinct_compares_configurations_and_fills_up():
    observations = Observations(GRID)
    observations.reserve(GRID.encode([{"k0": 1, "k1": 1, "k2": 1}]))
    ranked = torch.tensor([[1.2, 0.9, 1.0], [2.0, 2.0, 2.0], [2.1, 1.9, 2.0]], dtype=torch.float64)
    found = distinct(ranked, observations, 4, torch.Generator().manual_seed(0))
    assert torch.equal(found[0], ranked[1])
    assert len(set(GRID.identify(found))) == 4
    assert all(observations.unseen(found))
    with pytest.raises(SpaceExhausted, match="125 new configurations were asked for, but 1 of all 125"):
        distinct(ranked, observations, 125, torch.Generator())


def test_epsilon_greedy_explores_that_often():
    top = torch.tensor([0.1, 0.9, 0.5, 0.3, 0.7])
    at = search(PLANE, top, observed=10)
    greedy = EpsilonGreedy(LocalSearch(samples=200, focus=0), epsilon=0.4)
    far = sum(bool((greedy.propose(at, q=1)[0] - top).norm() > 0.1) for _ in range(100))
    assert 25 < far < 55


def test_botorch_gets_an_acquisition_function():
    top = torch.tensor([0.1, 0.9, 0.5, 0.3, 0.7])
    acquisition = BoTorchAcquisition(ClassProbability(), Peak(top).bind(PLANE))
    points = PLANE.sample(6, generator())
    assert torch.equal(acquisition(points[:, None]), Peak(top).height(points))
    with pytest.raises(ShapeError, match="b x 1 x d"):
        acquisition(points.reshape(3, 2, 5))


# --- contracts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("candidates", [LocalSearch(), GreedyBatch(), SVGDCandidates(), RandomSearch(50)])
def test_a_refused_proposal_moves_nothing(candidates):
    at = search(GRID, torch.tensor([4.0, 0.0, 2.0]), observed=100)
    before, rows = at.generator.get_state(), len(at.observations)
    with pytest.raises(SpaceExhausted, match="120 new configurations were asked for, but"):
        candidates.propose(at, q=120)
    assert torch.equal(at.generator.get_state(), before)
    assert len(at.observations) == rows


def test_a_proposal_that_is_interrupted_leaves_the_stream_where_it_was(monkeypatch):
    at = search(PLANE, torch.full((5,), 0.5), observed=10)
    before, expected = at.generator.get_state(), LocalSearch().propose(at, q=2)
    at.generator.set_state(before)

    def interrupted(points):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(at.classifier, "height", interrupted)
        with pytest.raises(KeyboardInterrupt):
            LocalSearch().propose(at, q=2)
    assert torch.equal(LocalSearch().propose(at, q=2), expected)


def test_a_space_with_next_to_nothing_new_is_given_up_in_the_end():
    class Tiny(SearchSpace):
        """A continuous space that rounding leaves two configurations."""

        def identify(self, points):
            return [round(x) for x in points[:, 0].tolist()]

    observations = Observations(Tiny({"x": Real(0, 1)}))
    with pytest.raises(SpaceExhausted, match=r"3 new configurations were asked for, but 15000 random ones hold only 2"):
        distinct(torch.zeros(1, 1, dtype=torch.float64), observations, 3, generator())


@pytest.mark.parametrize("make_one", CANDIDATES.values(), ids=CANDIDATES)
def test_a_search_is_written_down_and_made_again(make_one):
    candidates = make_one()
    described = describe(candidates)
    json.dumps(described)
    assert describe(make(described, Candidates)) == described
    assert candidates.state_dict() == {}


class Counting(RandomSearch):
    """Keeps how often it was asked."""

    def __init__(self):
        super().__init__(10)
        self.asked = 0

    def ranked(self, search, q):
        self.asked += 1
        return super().ranked(search, q)

    def check(self, space, classifier):
        raise SettingError("Counting fits nothing.")

    def state_dict(self):
        return {"asked": self.asked}

    def load_state_dict(self, state):
        self.asked = state["asked"]


@pytest.mark.parametrize("outer", [GreedyBatch, ThompsonBatch, EpsilonGreedy])
def test_a_search_within_another_is_checked_saved_and_restored(outer):
    one, other = outer(Counting()), outer(Counting())
    with pytest.raises(SettingError, match="Counting fits nothing"):
        one.check(PLANE, KernelPLS())
    one.base.asked = 3
    other.load_state_dict(one.state_dict())
    assert other.base.asked == 3


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
    assert torch.equal(at.sort(points, torch.zeros(125))[0], points)
    order = at.sort(points, torch.arange(125) // 5)[1]
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


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_ambition_is_for_expected_improvement_others_propose_what_they_proposed(share):
    proposals = [
        candidates.propose(search(PLANE, torch.full((5,), 0.5)), q=3)
        for candidates in (LocalSearch(focus=0), Ambitious(LocalSearch(focus=0), share=share))
    ]
    if share:  # the stream has moved on, the peak has not
        assert (proposals[1] - 0.5).abs().max() < 0.3
    assert (proposals[0][0] - 0.5).abs().max() < 0.05


@pytest.mark.parametrize("settings", [{"share": -0.1}, {"share": 1.1}, {"margin": 0.0}])
def test_ambition_outside_its_range_is_refused(settings):
    with pytest.raises(SettingError, match=next(iter(settings))):
        Ambitious(**settings)
