"""Selection from a ranking: new, distinct points, and random order of ties."""

import pytest
import torch

import deepbore
from deepbore import DifferentialEvolution, LocalSearch, RandomSearch, Real, SearchSpace, XGBoost, candidates
from deepbore.acquisition import ClassProbability
from deepbore.candidates import Search, select_new
from deepbore.classifiers import MLPClassifier
from deepbore.component import alike, describe, make
from deepbore.data.observations import Observations
from deepbore.errors import SpaceExhausted
from peaks import GRID, search


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


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
    found = select_new(ranked, observations, 4, torch.Generator().manual_seed(0))
    assert torch.equal(found[0], ranked[1])
    assert len(set(GRID.points.identify(found))) == 4
    assert all(observations.columns.unseen(found))
    with pytest.raises(SpaceExhausted, match="125 new configurations were asked for, but 1 of all 125"):
        select_new(ranked, observations, 125, torch.Generator())


def test_a_space_with_next_to_nothing_new_is_given_up_in_the_end(monkeypatch):
    tiny = SearchSpace({"x": Real(0, 1)})  # a continuous space that rounding leaves two configurations
    monkeypatch.setattr(tiny.points, "identify", lambda points: [round(x) for x in points[:, 0].tolist()])
    observations = Observations(tiny)
    with pytest.raises(SpaceExhausted, match=r"3 new configurations were asked for, but 15000 random ones hold only 2"):
        select_new(torch.zeros(1, 1, dtype=torch.float64), observations, 3, generator())


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
    points = GRID.points.enumerate()
    assert torch.equal(at.sorted(points, torch.zeros(125))[0], points)
    order = at.sorted(points, torch.arange(125) // 5)[1]
    assert (order.diff() <= 0).all()


def test_former_names_warn_and_work():
    with pytest.warns(DeprecationWarning, match="candidates.select_new"):
        assert candidates.distinct is select_new
    with pytest.warns(DeprecationWarning, match="RaisedIncumbent"):
        assert deepbore.Ambitious is candidates.RaisedIncumbent
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = candidates.nothing


def test_a_journal_with_a_former_class_path_loads():
    own = describe(candidates.RaisedIncumbent(share=0.5))
    former = {**own, "class_path": "deepbore.candidates.Ambitious"}
    assert alike(own, former)
    assert isinstance(make(former, candidates.Candidates), candidates.RaisedIncumbent)
