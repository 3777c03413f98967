"""The local search: around the best rows, and through all of a small space."""

import torch

from deepbore import LocalSearch, RandomSearch
from peaks import FIVE, GRID, search


def test_a_focused_search_looks_only_near_the_three_best():
    top = torch.tensor([0.1, 0.9, 0.5, 0.3, 0.7])
    at = search(FIVE, top, observed=30)
    best = at.observations.points[at.observations.centres.best_rows(3)]
    changed = (LocalSearch(focus=1).ranked(at, q=1)[:, None] != best).sum(-1).min(1).values
    assert set(changed.tolist()) <= {1, 2}


def test_a_small_space_is_ranked_whole():
    top = torch.tensor([4.0, 0.0, 2.0])
    ranked = LocalSearch().ranked(search(GRID, top), q=1)
    assert len(ranked) == 125
    assert torch.equal(ranked[0], top.double())


def test_a_large_batch_is_chosen_among_four_times_as_many():
    at = search(FIVE, torch.full((5,), 0.5), observed=30)
    for few in (LocalSearch(samples=50, neighbours=0, steps=1, focus=0), RandomSearch(50)):
        assert len(few.ranked(at, q=100)) >= 400
