"""Proposals at random now and then, and proposals that want more than the best."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import deepbore as db
from deepbore import Categorical, Condition, GreedyBatch, KernelPLS, LocalSearch, RaisedIncumbent, Real, SearchSpace
from deepbore.acquisition import LogExpectedImprovement
from deepbore.candidates import EpsilonGreedy, Search
from deepbore.data.observations import Observations
from deepbore.errors import SettingError
from deepbore.labels import LabelledObservations
from deepbore.testing import fit
from peaks import FIVE, GRID, search
from plane import SQUARE


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.slow
def test_epsilon_greedy_explores_that_often():
    top = torch.tensor([0.1, 0.9, 0.5, 0.3, 0.7])
    at = search(FIVE, top, observed=10)
    greedy = EpsilonGreedy(LocalSearch(samples=200, focus=0), epsilon=0.4)
    far = sum(bool((greedy.propose(at, q=1)[0] - top).norm() > 0.1) for _ in range(100))
    assert 25 < far < 55


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
    rows = space.decode(space.points.sobol(n, seed=0)) + [{"kind": "flat", "x": k / 20} for k in range(21)]
    for row in rows:
        observations.add(row, 1 + 0.01 * (row["x"] - 0.5) ** 2 if row["kind"] == "flat" else 2)
    classifier = fit(KernelPLS(), LabelledObservations(observations), epochs=5)
    return Search(LogExpectedImprovement(), classifier, observations, generator())


@pytest.mark.slow
def test_an_ambitious_proposal_is_the_likeliest_to_exceed_the_best_by_the_margin():
    looked, ambitious = seen(), replace(seen(), margin=0.3)
    usual = GreedyBatch().propose(looked, q=1)
    bold = RaisedIncumbent(share=1.0, margin=0.3).propose(looked, q=1)
    assert ambitious.values(bold) > ambitious.values(usual)
    assert looked.values(bold) < looked.values(usual)


def test_an_ambitious_proposal_measures_improvement_against_a_label_beyond_the_best():
    plain = search(FIVE, torch.full((5,), 0.5))
    plain.classifier.best_label.fill_(0.75)
    assert plain.incumbent == 0.75
    assert replace(plain, margin=0.5).incumbent == 1.25


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_ambition_is_for_expected_improvement_others_propose_what_they_proposed(share):
    top = torch.tensor([3.7, 0.2, 1.9])
    usual, ambitious = LocalSearch(), RaisedIncumbent(LocalSearch(), share=share, margin=5.0)
    assert torch.equal(ambitious.propose(search(GRID, top), q=3), usual.propose(search(GRID, top), q=3))


def test_where_the_share_is_nothing_no_proposal_is_ambitious():
    observations = Observations(GRID)
    for row in GRID.decode(GRID.points.enumerate()[:50:2]):  # far from two thirds of the grid
        observations.add(row, (row["k1"] - 2.2) ** 2 + (row["k2"] - 1.7) ** 2)
    classifier = fit(KernelPLS(), LabelledObservations(observations), epochs=3)
    at = Search(LogExpectedImprovement(), classifier, observations, generator())
    usual, never, always = (
        candidates.propose(at, q=3)
        for candidates in (
            LocalSearch(),
            RaisedIncumbent(LocalSearch(), share=0.0),
            RaisedIncumbent(LocalSearch(), share=1.0),
        )
    )
    assert torch.equal(never, usual)
    assert not torch.equal(always, usual)


def test_an_ambitious_proposal_does_not_keep_to_the_neighbours_of_the_best():
    at = search(FIVE, torch.tensor([0.1, 0.9, 0.5, 0.3, 0.7]), observed=30)
    best = at.observations.points[at.observations.centres.best_rows(3)]
    ranked = RaisedIncumbent(LocalSearch(focus=1), share=1.0).ranked(at, q=1)
    assert ((ranked[:, None] != best).sum(-1).min(1).values == 5).any()


@pytest.mark.parametrize("settings", [{"share": -0.1}, {"share": 1.1}, {"margin": 0.0}])
def test_ambition_outside_its_range_is_refused(settings):
    with pytest.raises(SettingError, match=next(iter(settings))):
        RaisedIncumbent(**settings)


# regression: this was wrong once
@pytest.mark.parametrize("search", [db.MultiStartLBFGS, db.BoTorchBatch], ids=lambda search: search.__name__)
def test_botorch_climbs_what_an_ambitious_search_asks_for(search):
    study = db.Study(SQUARE, seed=0)
    x, y = (each.ravel() for each in np.meshgrid(np.linspace(0, 0.4, 5), np.linspace(0, 1, 5)))
    study.add({"x": x, "y": y}, 1 + 0.01 * (y - 0.3) ** 2 - 0.01 * x)
    head = study.fit()
    stream = torch.Generator().manual_seed(0)
    usual = Search(LogExpectedImprovement(), head, study.observations, stream)
    ambitious = replace(usual, margin=0.5)
    proposed = search().propose(usual, 1)
    bold = db.RaisedIncumbent(search(), share=1.0, margin=0.5).propose(usual, 1)
    assert ambitious.values(bold) > ambitious.values(proposed) + 0.1
    assert usual.values(bold) < usual.values(proposed) - 0.1
