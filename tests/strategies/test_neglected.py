"""Values of choices that have had few trials: which they are, what is learned of them, and that they are tried."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, strategies as st

from deepbore import (
    Budget,
    Categorical,
    Condition,
    EmphasiseChanges,
    Integer,
    KernelPLS,
    Outcome,
    Real,
    SearchSpace,
    Study,
    ValueGradedLabels,
)
from deepbore.data.array_ranking import threshold
from deepbore.errors import SettingError
from deepbore.strategies import ModelStrategy, NeglectedChoices
from deepbore.strategies.neglected import is_gaining, possible_alternatives
from deepbore.strategies.subset import graded_beside
from plane import SQUARE
from recorded import view_of

SPACE = SearchSpace(
    {
        "model": Categorical(list("abc")),
        "a": Real(0, 1, when=Condition("model", "a")),
        "b": Real(0, 1, when=Condition("model", "b")),
        "kind": Categorical(["r", "s"], when=Condition("model", "b")),
        "level": Categorical(list("uvwxyz")),
        "n": Integer(1, 99),
    }
)
NAMES = ["a", "b", "c", "r", "s", *"uvwxyz"]
MANY = [math.inf] * len(NAMES)


def trial(model, level="u", kind="r", at=0.5):
    own = {"a": {"a": at}, "b": {"b": at, "kind": kind}, "c": {}}[model]
    return {"model": model, "level": level, "n": 3, **own}


def neglected(trials, values, enough, races=False, space=SPACE):
    """Names of the neglected values among some trials, `enough` of them for each unit of ln n."""
    found = possible_alternatives(space)
    values = torch.tensor(values, dtype=torch.float64)
    few = found.neglected(space.encode(trials), values, torch.tensor(enough, dtype=torch.float64), races)
    return {name for name, is_few in zip(NAMES, few.tolist(), strict=True) if is_few}


# --- which values there are ------------------------------------------------------------------------------------------


def test_the_alternatives_are_the_values_of_unordered_choices():
    found = possible_alternatives(SPACE)
    assert found.columns.tolist() == [0, 0, 0, 3, 3, *[4] * 6]
    assert found.levels.tolist() == [0, 1, 2, 0, 1, *range(6)]
    assert found.has_own.tolist() == [True, True, *[False] * 9]
    has = found(SPACE.encode([trial("b", "x", "s"), trial("c", "z")]))
    assert [[name for name, one in zip(NAMES, row, strict=True) if one] for row in has.tolist()] == [
        ["b", "s", "x"],
        ["c", "z"],
    ]
    assert len(possible_alternatives(SQUARE).columns) == 0


def test_what_constraints_and_fixed_parameters_rule_out_is_no_alternative():
    space = SearchSpace({"c": Categorical(list("abc")), "x": Real(0, 1)}, constraints=["c != 'b'"])
    assert possible_alternatives(space).levels.tolist() == [0, 2]
    assert possible_alternatives(SPACE.with_fixed({"model": "a"})).columns.tolist() == [0, *[4] * 6]


# --- which have had few trials ---------------------------------------------------------------------------------------


def test_a_value_is_neglected_below_a_share_of_the_trials_of_its_choice():
    trials = [trial("a")] * 8 + [trial("c")] * 2  # four fifths of a third of ten are 2.67
    assert neglected(trials, [0.0, *[1.0] * 9], MANY) == {"b", "c", *"vwxyz"}
    trials = [trial("a")] * 7 + [trial("c")] * 3
    assert neglected(trials, [0.0, *[1.0] * 9], MANY) == {"b", *"vwxyz"}


@pytest.mark.parametrize(("count", "few"), [(2, {"b", "c"}), (3, {"b"})])
def test_a_value_is_neglected_below_so_many_trials_for_each_unit_of_log_n(count, few):
    trials = [trial("a")] * (20 - count) + [trial("c")] * count  # ln 20 = 2.996, the share is 5.3
    assert neglected(trials, [0.0, *[1.0] * 19], [0.9] * 5 + [0.0] * 6) == few
    assert neglected(trials, [0.0, *[1.0] * 19], [0.3] * 5 + [0.0] * 6) == {"b"}


def test_a_choice_that_is_not_active_counts_for_itself_alone():
    trials = [trial("a")] * 8 + [trial("b", kind="r")] * 2
    assert "s" in neglected(trials, [0.0, *[1.0] * 9], MANY)
    assert not {"r", "s"} & neglected([trial("a")] * 10, [0.0, *[1.0] * 9], MANY)


def test_the_values_of_the_best_trial_are_never_neglected():
    trials = [trial("a")] * 9 + [trial("b", "w", "s")]
    assert neglected(trials, [*[1.0] * 9, 0.0], MANY) == {"c", "r", *"vxyz"}
    assert neglected(trials, [math.nan] * 9, MANY) == {"b", "c", "r", *"vwxyz"}  # none is the best


def test_failures_and_pending_trials_count():
    trials = [trial("a")] * 7 + [trial("c")] * 3
    assert "c" not in neglected(trials, [0.0, *[1.0] * 6, math.nan, math.nan], MANY)


ROWS = torch.tensor([[1, 0], [0, 1], [1, 0], [0, 1], [1, 0], [0, 1]]).bool()


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ([9.0, 5.0, 2.5], True),  # from 9 to 2.5, and 1.5 behind
        ([9.0, 3.9, 3.9], True),
        ([4.0, 3.0, 3.0], False),  # from 4 to 3, and 2 behind
        ([5.0, 3.0, 3.0], False),
        ([2.0, 9.0, 9.0], False),
        ([math.inf, math.inf, 7.0], True),  # its first success
        ([math.inf, math.inf, math.inf], False),
    ],
)
def test_a_value_gains_that_improved_by_more_than_it_is_behind(own, expected):
    values = torch.tensor([own[0], 1.0, own[1], 1.0, own[2], 1.0])
    assert is_gaining(ROWS, values).tolist() == [expected, False]


def test_a_branch_that_gains_goes_on():
    trials = [trial("a")] * 4 + [trial("b")] * 8 + [trial("c")] * 8
    values = [0.0, *[1.0] * 3, *[9.0] * 7, 2.0, *[9.0] * 7, 2.0]
    enough = [0.1] * 3 + [0.0] * 8
    assert neglected(trials, values, enough) == set()
    assert neglected(trials, values, enough, races=True) == {"b"}  # c has no parameters of its own
    values[11] = 5.0
    assert neglected(trials, values, enough, races=True) == set()


@given(st.integers(2, 1000), st.integers(0, 400))
def test_without_parameters_of_their_own_values_are_left_for_good_after_a_logarithm(n, count):
    count = min(count, n)
    space = SearchSpace({"c": Categorical(list("abcd")), "x": Real(0, 1)})
    points = torch.tensor([[0.0, 0.5]] * (n - count) + [[1.0, 0.5]] * count, dtype=torch.float64)
    found = possible_alternatives(space).neglected(points, torch.arange(n).double(), torch.full((4,), 0.5))
    if 0 < count < n:
        assert bool(found[1]) == (count < min(0.5 * math.log(n), 0.2 * n))


# --- a turn ----------------------------------------------------------------------------------------------------------


def told(rows, space=SPACE, **settings):
    """A study that knows trials (configuration, value)."""
    study = Study(space, seed=0, **settings)
    different = [params | {"n": number} for number, (params, _) in enumerate(rows, 1)]
    columns = {name: [params.get(name) for params in different] for name in space.names}
    study.add(columns, [value for _, value in rows])
    return study


FED = [(trial("a", "uvwxyz"[k % 6], at=k / 24), 1 + (k / 24 - 0.4) ** 2) for k in range(24)]
DEAD = [(trial("b", "uvwxyz"[k], "rs"[k % 2], at=k / 10), 5.0 - k / 10) for k in range(4)]
BRANCH = told([*FED, *DEAD, *[(trial("c", "v"), 6.0)] * 4])
LEVEL = told([(trial("abc"[k % 3], "uvwxy"[k % 5], "rs"[k % 2], at=k / 30), 1 + k / 30) for k in range(30)])


def learned(study):
    other, view = NeglectedChoices(), view_of(study)
    assert other.applies(view)
    assert other.fit(view)
    return other, view


def test_a_neglected_branch_is_learned_on_its_own_scale_beside_all_others_and_nothing_is_expected_there():
    other, view = learned(BRANCH)
    assert [NAMES[k] for k in other.neglected.nonzero().squeeze(-1).tolist()] == ["b"]
    own = torch.tensor([value for _, value in DEAD], dtype=torch.float64)
    values = torch.cat([view.values[:24] - 1 + own.min(), own, view.values[28:] - 1 + own.min()])
    ranked = own.sort().values.numpy()
    labels = ValueGradedLabels()
    z, _ = labels.label(values, ranked, threshold(ranked, labels.proportion(4)))
    torch.testing.assert_close(other.model._data[:, 0], z.double(), rtol=0, atol=2e-3)  # FED is 1 at best, nearly
    points = SPACE.points.sample(60, torch.Generator().manual_seed(0))
    mean, is_b = other.model.posterior(points).mean, points[:, 0] == 1
    assert (mean[is_b] > -2).all()
    assert (mean[~is_b] < -900).all()
    proposal = other.propose(view, 2)
    (search,) = view.first.candidates.searches
    assert proposal.model is search.classifier is other.model
    assert search.acquisition is view.first.acquisition
    assert search.centre_rows.tolist() == [27, 26, 25, 24]


TWO_BRANCHES = SearchSpace(
    {
        "model": Categorical(list("abc")),
        **{f"{name}_x": Real(0, 1, when=Condition("model", name)) for name in "abc"},
        "n": Integer(1, 99),
    }
)


def few_of_two_branches():
    rows = [({"model": "a", "a_x": k / 20}, 1 + k / 20) for k in range(20)]
    rows += [({"model": "b", "b_x": k / 4}, 5.0 - k) for k in range(4)]
    return told([*rows, *[({"model": "c", "c_x": k / 2}, 7.0 - k) for k in range(2)]], TWO_BRANCHES)


def test_expected_improvement_chooses_among_neglected_branches():
    other, view = learned(few_of_two_branches())
    assert [wanted.nonzero().squeeze(-1).tolist() for wanted in other.turn] == [[1, 2]]
    view = replace(view, first=ModelStrategy(KernelPLS()))
    found = set(other.propose(view, 5).points[:, 0].int().tolist())
    assert found <= {1, 2}
    assert found


def test_length_scales_of_a_branch_have_a_prior_of_their_own():
    other, _ = learned(BRANCH)
    usual = KernelPLS()
    usual.bind(SPACE)
    own = [SPACE.names.index(name) for name in ("a", "b", "kind")]
    shared = [SPACE.names.index(name) for name in ("model", "level", "n")]
    assert (other.model._prior[own, 0] < usual._prior[own, 0]).all()
    assert (other.model._prior[shared] == usual._prior[shared]).all()
    view = view_of(LEVEL)
    assert other.applies(view)
    other.fit(view)
    assert (other.model._prior[own] == usual._prior[own]).all()


def test_of_many_other_rows_some_are_learned():
    view = view_of(few_of_two_branches())
    rows, values = torch.arange(26), view.values
    for most, count in {10: 10, 5: 5, 3: 4, 99: 26}.items():
        found = graded_beside(view.batch, rows, values, view.batch.points[:, 0] == 1, view.labels, most)
        assert len(found.batch) == count
        assert found.ranked.tolist() == [23, 22, 21, 20]
        assert found.batch.z.max() == 1


def test_a_neglected_level_is_learned_with_all_others():
    other, view = learned(LEVEL)
    assert [NAMES[k] for k in other.neglected.nonzero().squeeze(-1).tolist()] == ["z"]
    torch.testing.assert_close(other.model._data[:, 0], view.batch.z[:, 0].double())
    other.propose(view, 1)
    assert view.first.candidates.searches[0].centre_rows is None
    points = SPACE.points.sample(60, torch.Generator().manual_seed(0))
    assert ((other.model.posterior(points).mean > -900) == (points[:, 4] == 5)).all()


def test_a_level_without_parameters_is_no_branch_where_others_of_its_choice_have_some():
    rows = [(trial("ab"[k % 2], "uvwxyz"[k % 6], "rs"[k // 2 % 2], at=k / 30), 1 + k / 30) for k in range(30)]
    other, view = learned(told(rows))
    assert [NAMES[k] for k in other.neglected.nonzero().squeeze(-1).tolist()] == ["c"]
    usual = KernelPLS()
    usual.bind(SPACE)
    parameters = range(len(SPACE))
    assert (other.model._prior[parameters] == usual._prior[parameters]).all()
    torch.testing.assert_close(other.model._data[:, 0], view.batch.z[:, 0].double())


def test_where_branches_and_levels_are_neglected_either_has_its_turns():
    study = told([*FED[:24:6], *FED[:24:6], *FED[:24:6], *FED[:24:6], *DEAD[:2]])
    other, kinds = NeglectedChoices(), set()
    for seed in range(8):
        view = view_of(study, generator=torch.Generator().manual_seed(seed))
        assert other.applies(view)
        other.fit(view)
        kinds.add(tuple(NAMES[k] for k in other.model.wanted.nonzero().squeeze(-1).tolist()))
    assert kinds == {("b",), ("c", *"wxyz")}


def test_a_branch_without_two_values_is_learned_with_all_others():
    for rows in (DEAD[:1], [(DEAD[0][0], math.nan), *DEAD[1:2]], []):
        other, _ = learned(told([*FED, *rows, *[(trial("c", "v"), 6.0)] * 4]))
        assert other._subset is None
        assert len(other.model._data) >= len(FED) + 4


def test_the_amplitude_stays_close_to_1():
    other, _ = learned(BRANCH)
    assert abs(float(other.model.theta[-2])) < 1
    usual = KernelPLS()
    usual.bind(SPACE)
    usual.learn(view_of(BRANCH).batch)
    assert float(usual.theta[-2]) < -1


def test_it_applies_to_plain_values_where_something_is_neglected():
    other = NeglectedChoices()
    for about in ({"first": None}, {"batch": None}):
        assert not other.applies(view_of(BRANCH, **about))
    flat = Study(SQUARE, seed=0)
    flat.add({"x": [0.1, 0.2, 0.3], "y": [0.1] * 3}, [1.0, 2.0, 3.0])
    assert not other.applies(view_of(flat))
    fed = [(trial("abc"[k % 3], "uvwxyz"[k % 6], "rs"[k // 3 % 2], at=k / 36), 1 + k) for k in range(36)]
    assert not other.applies(view_of(told(fed)))
    constrained = told([*FED, *DEAD])
    (asked,) = constrained.ask()
    constrained.tell(asked, Outcome(1.0, constraints=[-1.0]))
    assert not other.applies(view_of(constrained))
    assert other.at_budgets(Budget("epochs", 1, 9)) is other
    with pytest.raises(SettingError, match="thresholds"):
        other.check(SPACE, EmphasiseChanges(ValueGradedLabels()))


def test_after_a_state_it_goes_on_as_before():
    other, _ = learned(BRANCH)
    kept = {name: theta.clone() for name, theta in other.state_dict().items()}
    again = NeglectedChoices()
    assert again.state_dict() == {}
    for new in (again, learned(LEVEL)[0]):
        new.load_state_dict(kept)
        view = view_of(BRANCH)
        assert new.applies(view)
        new.fit(view)
        other.applies(view)
    other.fit(view_of(BRANCH))
    torch.testing.assert_close(again.state_dict()["theta"], other.state_dict()["theta"], rtol=0, atol=0)


# --- runs ------------------------------------------------------------------------------------------------------------


def test_every_fifth_proposal_is_of_a_neglected_branch():
    study = told([*FED, *DEAD, *[(trial("c", "v"), 6.0)] * 4])
    strategy = study.state.recipe.strategy
    neglected = next(each for each in strategy.others if isinstance(each, NeglectedChoices))
    proposed = []
    for number in range(6):
        (asked,) = study.ask()
        study.tell(asked, 2.0)
        proposed += [number] if neglected.turn and asked.params["model"] == "b" else []
    assert proposed[0] == 0
    assert proposed[-1] == 5


def test_a_neglected_level_is_due_at_every_second_proposal_and_a_branch_at_every_fifth():
    strategy, _ = learned(LEVEL)
    assert strategy.every == 2
    strategy, _ = learned(BRANCH)
    assert strategy.every == 5
    assert NeglectedChoices(every=7).every == 7
    with pytest.raises(SettingError, match="every"):
        NeglectedChoices(every=1)


@pytest.mark.slow
def test_levels_that_were_not_tried_get_every_other_trial():
    space = SearchSpace({"x": Real(0, 1), "c": Categorical(list(range(30)))})
    study = Study(space, seed=0)
    study.optimize(lambda params: (params["x"] - 0.4) ** 2 + params["c"] / 30, 30)
    assert len({trial.params["c"] for trial in study.trials}) >= 17
