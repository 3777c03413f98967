"""Searches on several ranks: shared work, streams of their own, the same proposals."""

from dataclasses import replace

import pytest
import torch

from deepbore import KernelPLS, Ordinal, SearchSpace
from deepbore.acquisition import UpperConfidenceBound
from deepbore.candidates import (
    DifferentialEvolution,
    GreedyBatch,
    LocalSearch,
    MultiStartLBFGS,
    RandomSearch,
    Search,
    SVGDCandidates,
    ThompsonBatch,
)
from deepbore.space import Points
from deepbore.testing import fit, toy_data
from plane import PLANE
from thread_ranks import on_ranks

GRID = SearchSpace({"a": Ordinal(list(range(12))), "b": Ordinal(list(range(9)))})


def new_search(space):
    data = toy_data(space, 30)
    generator = torch.Generator().manual_seed(7)
    return Search(UpperConfidenceBound(kappa=2.0), fit(KernelPLS(), data, epochs=2), data.observations, generator)


def proposed_by_two(candidates, space, q):
    """Proposals on each of two ranks, and where the common stream stands after them."""
    searches = [new_search(space) for _ in range(2)]  # made before: Lightning is not for threads

    def task(ranks):
        search = replace(searches[ranks.rank], ranks=ranks)
        return candidates.propose(search, q), search.generator.get_state()

    return on_ranks(task)


@pytest.mark.parametrize(
    ("candidates", "q"),
    [
        (RandomSearch(), 3),
        (LocalSearch(focus=0.0), 1),
        (LocalSearch(focus=1.0), 4),
        (GreedyBatch(), 5),
        (ThompsonBatch(), 3),
        (SVGDCandidates(steps=20), 70),
        (MultiStartLBFGS(restarts=3, samples=50), 2),
        (DifferentialEvolution(evaluations=200, population=20), 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_ranks_propose_the_same_again_and_again(candidates, q):
    (one, stream), (other, other_stream) = proposed_by_two(candidates, PLANE, q)
    assert torch.equal(one, other)
    assert torch.equal(stream, other_stream)
    assert len(set(PLANE.points.identify(one))) == q
    assert torch.equal(one, proposed_by_two(candidates, PLANE, q)[1][0])


def test_each_rank_searches_its_share_with_a_stream_of_its_own(monkeypatch):
    asked = []
    sample = Points.sample

    def counted(space, n, generator):
        points = sample(space, n, generator)
        asked.append(points)
        return points

    monkeypatch.setattr(Points, "sample", counted)
    (best, _), _ = proposed_by_two(RandomSearch(500), PLANE, 1)
    one, other = [points for points in asked if len(points) == 250]
    assert not torch.equal(one, other)
    assert torch.equal(
        best[0], new_search(PLANE).best_first(torch.cat([one, other]))[0][0]
    )  # the best of all, whoever found it


@pytest.mark.parametrize("q", [1, 5, 78])
def test_ranks_that_share_a_finite_space_find_what_one_finds(q):
    search = new_search(GRID)
    alone = LocalSearch().propose(search, q)
    (together, _), _ = proposed_by_two(LocalSearch(), GRID, q)
    assert len(set(GRID.points.identify(together))) == q
    assert all(search.observations.columns.unseen(together))
    assert torch.allclose(search.values(together), search.values(alone))


def test_particles_move_as_if_one_rank_had_them_all():
    candidates = SVGDCandidates(steps=20)
    alone = candidates.propose(new_search(PLANE), 70)
    (together, _), _ = proposed_by_two(candidates, PLANE, 70)
    assert torch.allclose(together, alone, atol=1e-6)
