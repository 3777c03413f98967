"""Searches for candidates, on acquisitions whose maximum is known."""

import json

import pytest
import torch

from cases import CANDIDATES
from deepbore import (
    Categorical,
    DifferentialEvolution,
    GreedyBatch,
    Integer,
    KernelPLS,
    LocalSearch,
    MultiStartLBFGS,
    Ordinal,
    RandomSearch,
    Real,
    SearchSpace,
    SVGDCandidates,
    ThompsonBatch,
)
from deepbore.acquisition import ClassProbability
from deepbore.candidates import Candidates, EpsilonGreedy, Search, distinct
from deepbore.classifiers import MLPClassifier
from deepbore.classifiers.posterior import PointEstimate
from deepbore.component import describe, make
from deepbore.data.observations import Observations
from deepbore.errors import SettingError, ShapeError, SpaceExhausted
from deepbore.integrations.botorch import BoTorchAcquisition

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


@pytest.mark.slow
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
