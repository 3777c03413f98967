"""One turn of `OtherBranches` on few rows: what it learns, what it asks of a search, and what it remembers."""

import math

import numpy as np
import pytest
import torch

from deepbore import Budget, Condition, Integer, KernelPLS, Outcome, Real, SearchSpace, Study, ValueGradedLabels
from deepbore.data.array_ranking import threshold
from deepbore.strategies import OtherBranches
from deepbore.strategies.other_branches import BranchModel, branches, initial_scale, is_among, remaining_branches
from plane import SQUARE
from recorded import view_of

SPACE = SearchSpace(
    {
        "n": Integer(1, 3),
        "x": Real(0, 1, when=Condition("n", 1)),
        "y": Real(0, 1, when=Condition("n", 2)),
        "z": Real(0, 1, when=Condition("n", 3)),
    }
)
BASE = {1: 0.0, 2: 0.5, 3: 0.7}


def told(refined=20, space=SPACE, **given):
    """A study that knows ten values of each branch, and refinements of the first one."""
    study = Study(space, seed=0, **given)
    stream = np.random.default_rng(0)
    rows = [(n, float(x)) for n in (1, 2, 3) for x in stream.random(10)]
    rows += [(1, 0.4 + 1e-4 * k) for k in range(refined)]
    columns = {"n": [n for n, _ in rows]}
    for n, name in zip((1, 2, 3), "xyz", strict=True):
        columns[name] = [x if m == n else None for m, x in rows]
    study.add(columns, [BASE[n] + (x - 0.4) ** 2 + 0.01 * n * x for n, x in rows])
    return study


def learned(strategy, study, **about):
    view = view_of(study, **about)
    assert strategy.applies(view)
    assert strategy.fit(view)
    return view


def test_it_applies_in_turns_to_plain_values_of_branches():
    study = told()
    other = OtherBranches()
    assert other.applies(view_of(study))
    assert not other.applies(view_of(study, first=None))
    assert not other.applies(view_of(study, batch=None))
    assert other.remaining is None
    assert not other.applies(view_of(told(0)))
    (trial,) = study.ask()
    study.tell(trial, Outcome(1.0, constraints=[-1.0]))
    assert not other.applies(view_of(study))
    flat = Study(SQUARE, seed=0)
    flat.add({"x": np.arange(30) / 1000, "y": [0.1] * 30}, np.arange(30) / 1e6)
    assert not other.applies(view_of(flat))


def test_its_settings_are_those_of_a_kernel_and_it_goes_with_budgets():
    names = ("rows", "iterations", "prior", "alike", "crashes", "additive")
    usual, made = KernelPLS(), OtherBranches().model
    assert [getattr(made, name) for name in names] == [getattr(usual, name) for name in names]
    others = {"rows": 33, "iterations": 4, "prior": False, "alike": False, "crashes": False, "additive": False}
    made = OtherBranches(**others)
    assert {name: getattr(made.model, name) for name in names} == others
    assert made.at_budgets(Budget("epochs", 1, 9)) is made
    made.check(SPACE, ValueGradedLabels())


def test_it_has_the_search_of_the_first_look_at_the_best_rows_elsewhere():
    other, study = OtherBranches(), told()
    view = learned(other, study)
    proposal = other.propose(view, 3)
    (search,) = view.first.candidates.searches
    assert len(proposal.points) == 3
    assert proposal.model is search.classifier is other.model
    assert search.acquisition is view.first.acquisition
    values = study.observations.columns.user_values[:, 0]
    elsewhere = [row for row in range(30) if row >= 10]
    assert search.centre_rows.tolist() == sorted(elsewhere, key=lambda row: float(values[row]))


def test_it_learns_the_rows_elsewhere_and_expects_nothing_of_the_branch_that_is_refined():
    other, study = OtherBranches(crashes=False), told()
    view = learned(other, study)
    batch = remaining_branches(view.batch, view.observations, view.labels).batch
    assert other.model.generator is view.generator
    assert float(other.model.best_label) == 1
    usual = KernelPLS(crashes=False)
    usual.bind(SPACE)
    usual.learn(batch)
    points = SPACE.points.sample(40, torch.Generator().manual_seed(0))
    out = is_among(branches(SPACE, points), other.remaining.excluded)
    mine, theirs = other.model.posterior(points).mean, usual.posterior(points).mean
    assert out.any()
    assert torch.allclose(mine[~out], theirs[~out])
    assert torch.allclose(mine[out], theirs[out] - 1000)


def settings_of(strategy):
    """Kernel settings of the model and its rival."""
    return {name: theta.tolist() for name, theta in strategy.state_dict().items()}


def test_after_a_state_it_goes_on_as_before():
    other, again, new = (OtherBranches(iterations=2) for _ in range(3))
    assert other.state_dict() == {}
    study, elsewhere = told(), told(30)
    learned(again, elsewhere)
    for _ in range(2):
        learned(other, study)
        kept = {name: theta.clone() for name, theta in other.state_dict().items()}
        assert set(kept) == {"theta", "additive_theta"}
        for each in (again, new):
            each.load_state_dict(kept)
            assert each.remaining is None
        assert settings_of(new).keys() == kept.keys()
    learned(other, study)
    for each in (again, new):
        learned(each, study)
        assert settings_of(each) == settings_of(other)
    assert settings_of(other) != {name: theta.tolist() for name, theta in kept.items()}


def test_a_model_begins_with_the_settings_of_a_state(monkeypatch):
    other, study = OtherBranches(), told()
    learned(other, study)
    given = {name: theta + 0.125 for name, theta in other.state_dict().items()}
    monkeypatch.setattr(BranchModel, "learn", lambda self, batch: {})
    for each in (other, OtherBranches()):
        each.load_state_dict(given)
        learned(each, study)
        assert settings_of(each) == {name: theta.tolist() for name, theta in given.items()}
        each.load_state_dict({"theta": given["theta"]})  # of a run without a rival
        learned(each, study)
        assert settings_of(each)["theta"] == given["theta"].tolist()
        assert settings_of(each)["additive_theta"] != given["additive_theta"].tolist()


def test_without_a_rival_there_is_none_in_the_state():
    other, again = OtherBranches(additive=False), OtherBranches(additive=False)
    learned(other, told())
    assert set(other.state_dict()) == {"theta"}
    again.load_state_dict(other.state_dict())
    learned(again, told())
    assert again.model.additive_model is None


def test_a_state_is_kept_until_there_is_a_model_and_used_once():
    other = OtherBranches(iterations=1)
    learned(other, told())
    kept = {name: theta.clone() for name, theta in other.state_dict().items()}
    again = OtherBranches(iterations=1)
    again.load_state_dict(kept)
    assert settings_of(again) == settings_of(other)
    for each in (other, again):  # the third turn goes on from the second, not from the state
        learned(each, told())
        learned(each, told())
    assert settings_of(again) == settings_of(other)


def test_a_loaded_state_of_nothing_is_a_new_beginning():
    other, new = OtherBranches(iterations=1), OtherBranches(iterations=1)
    learned(other, told())
    other.load_state_dict({})
    for each in (other, new):
        learned(each, told())
    assert settings_of(other) == settings_of(new)


@pytest.mark.parametrize(("n", "known"), [(9, False), (10, True), (25, True)])
def test_the_initial_scale_is_of_the_first_ten_values_and_the_best_of_all(n, known):
    study = Study(SQUARE, seed=0)
    values = np.random.default_rng(0).normal(size=n)
    study.add({"x": np.arange(n + 2) / 40, "y": [0.5] * (n + 2)}, [math.nan, *values, math.nan])
    scale = initial_scale(study.observations, ValueGradedLabels())
    expected = threshold(np.sort(values[:10]), 0.5) - values.min() if known else 0
    assert scale == pytest.approx(expected)


def test_of_very_many_rows_the_best_and_the_newest_thousand_are_looked_at():
    study = Study(SPACE, seed=0)
    n, values = 3000, np.random.default_rng(0).permutation(3000).astype(float)
    study.add({"n": [2] * n, "x": [None] * n, "y": np.arange(n) / n, "z": [None] * n}, values)
    study.add({"n": [1] * 10, "x": np.arange(10) / 10, "y": [None] * 10, "z": [None] * 10}, [-1.0] * 10)
    found = remaining_branches(study.state.data.labelled(), study.observations, ValueGradedLabels())
    best = set(np.argsort(values)[:990].tolist())  # behind the ten of the other branch
    newest = set(range(2010, 3000))
    assert found.ranked.tolist() == sorted(best | newest, key=lambda row: values[row])
