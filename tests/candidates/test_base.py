"""Searches for candidates, on acquisitions whose maximum is known."""

import json

import pytest
import torch

from cases import CANDIDATES
from deepbore import (
    DifferentialEvolution,
    GreedyBatch,
    KernelPLS,
    LocalSearch,
    MultiStartLBFGS,
    RandomSearch,
    SVGDCandidates,
    ThompsonBatch,
)
from deepbore.candidates import Candidates, EpsilonGreedy
from deepbore.component import describe, make
from deepbore.errors import SettingError, SpaceExhausted
from peaks import FIVE, GRID, MIXED, search


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
    found = candidates.propose(search(FIVE, top, observed=10), q=1)
    assert (found[0] - top).norm() < within


def test_tops_beyond_the_bounds_are_found_on_them():
    top = torch.tensor([-0.5, 1.5, 0.5, 0.5, 0.5])
    for candidates in (LocalSearch(focus=0), MultiStartLBFGS()):
        (found,) = candidates.propose(search(FIVE, top, observed=5), q=1)
        assert (found[:2] - torch.tensor([0.0, 1.0])).norm() < 0.02


def test_mixed_searches_find_levels_and_climb_numbers():
    top = MIXED.encode([{"x": 0.3, "y": 0.6, "n": 20, "c": "d"}])[0]
    (found,) = LocalSearch(focus=0).propose(search(MIXED, top, observed=20), q=1)
    assert MIXED.decode(found[None])[0]["c"] == "d"
    assert (found - top).norm() < 0.1


@pytest.mark.parametrize("candidates", [LocalSearch(), GreedyBatch(), SVGDCandidates(), RandomSearch(50)])
def test_a_refused_proposal_moves_nothing(candidates):
    at = search(GRID, torch.tensor([4.0, 0.0, 2.0]), observed=100)
    before, rows = at.generator.get_state(), len(at.observations)
    with pytest.raises(SpaceExhausted, match="120 new configurations were asked for, but"):
        candidates.propose(at, q=120)
    assert torch.equal(at.generator.get_state(), before)
    assert len(at.observations) == rows


def test_a_proposal_that_is_interrupted_leaves_the_stream_where_it_was(monkeypatch):
    at = search(FIVE, torch.full((5,), 0.5), observed=10)
    before, expected = at.generator.get_state(), LocalSearch().propose(at, q=2)
    at.generator.set_state(before)

    def interrupted(points):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(at.classifier, "height", interrupted)
        with pytest.raises(KeyboardInterrupt):
            LocalSearch().propose(at, q=2)
    assert torch.equal(LocalSearch().propose(at, q=2), expected)


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
        one.check(FIVE, KernelPLS())
    one.base.asked = 3
    other.load_state_dict(one.state_dict())
    assert other.base.asked == 3
