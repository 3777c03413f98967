"""Who proposes when, with toys in the place of strategies."""

import logging
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from deepbore import Budget, KernelPLS, RandomForest, Study, ThresholdLabels
from deepbore.compute.numerics import LinAlgError
from deepbore.errors import SettingError
from deepbore.loop.engine import Engine
from deepbore.strategies import ModelStrategy, NearBest, Proposal, Strategy, Turns
from plane import SQUARE


class Toy(Strategy):
    """A strategy that says what it was asked for: each of its points is its number, and how many it has proposed."""

    def __init__(self, number, applicable=True, learns=True, every=2):
        self.number, self.applicable, self.learns, self.every, self.seen = number, applicable, learns, every, []
        self.model = RandomForest(trees=2)

    @property
    def models(self):
        return (self.model,)

    def applies(self, view):
        return self.applicable

    def fit(self, view):
        if isinstance(self.learns, Exception):
            raise self.learns
        return self.learns

    def propose(self, view, q):
        self.seen.append(view)
        points = torch.tensor([[self.number, len(self.seen) + k / 10] for k in range(q)], dtype=torch.float64)
        return Proposal(points, self.model)

    def state_dict(self):
        return {"seen": len(self.seen)}

    def load_state_dict(self, state):
        self.seen = [None] * state["seen"]


class First(Toy, ModelStrategy):
    """A toy that may be the first of turns."""

    def __init__(self, **settings):
        ModelStrategy.__init__(self, KernelPLS())
        Toy.__init__(self, 0, **settings)


def view(**about):
    study = Study(SQUARE, seed=0)
    study.add({"x": [0.5], "y": [0.5]}, [1.0])
    return replace(Engine(study.state).view(), **about)


def numbers(proposal):
    return proposal.points[:, 0].int().tolist()


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([Toy(1)], [1, 0, 1, 0, 1, 0]),
        ([Toy(1, applicable=False)], [0, 0, 0, 0, 0, 0]),
        ([Toy(1, learns=False)], [0, 0, 0, 0, 0, 0]),
        ([Toy(1, applicable=False), Toy(2)], [2, 0, 2, 0, 2, 0]),
        ([Toy(1, learns=False), Toy(2)], [2, 0, 2, 0, 2, 0]),
        ([Toy(1), Toy(2)], [1, 0, 2, 0, 1, 0]),
        ([Toy(1, every=3)], [1, 0, 0, 1, 0, 0, 1]),
        ([Toy(1, every=5), Toy(2)], [1, 0, 2, 0, 2, 0, 1, 0, 2, 0, 2, 0, 1]),
        ([Toy(1, every=5), Toy(2, every=3)], [1, 0, 2, 0, 0, 1, 0, 2, 0, 0, 1, 0, 2]),
        ([], [0, 0, 0, 0, 0, 0]),
    ],
    ids=[
        "one", "does not apply", "learns nothing", "second applies", "second learns", "two", "every third",
        "fifth and second", "fifth and third", "none",
    ],
)  # fmt: skip
def test_a_point_is_by_the_one_that_waited_longest_and_is_ready_but_never_by_two_others_in_a_row(others, expected):
    turns, seen = Turns([First(), *others]), view()
    proposals = [turns.propose(seen, 1) for _ in expected]
    assert [number for proposal in proposals for number in numbers(proposal)] == expected
    models = {0: turns.first.model} | {each.number: each.model for each in others}
    assert [proposal.model for proposal in proposals] == [models[number] for number in expected]


@pytest.mark.parametrize(
    ("q", "expected"), [(1, [1]), (2, [1, 2]), (3, [1, 2, 0]), (4, [1, 1, 2, 0]), (5, [1, 1, 2, 2, 0])]
)
def test_a_batch_is_shared_equally_and_each_share_knows_those_before_it(q, expected):
    turns, seen = Turns([First(), Toy(1), Toy(2), Toy(3, applicable=False), Toy(4, learns=False)]), view()
    proposal = turns.propose(seen, q)
    assert numbers(proposal) == expected
    assert [len(each.seen) for each in (turns.first, *turns.others[:2])] == [int(k in expected) for k in range(3)]
    for each in (turns.first, *turns.others[:2]):
        for mine in each.seen if q > 1 else []:
            assert torch.equal(mine.chosen, proposal.points[: expected.index(each.number)])
    assert all(mine.first is turns.first for each in turns.others for mine in each.seen)
    assert proposal.model is (turns.first.classifier if q > 1 else turns.others[0].model)


def test_a_share_keeps_apart_from_what_was_chosen_before_too():
    before, turns = torch.zeros(1, 2, dtype=torch.float64), Turns([First(), Toy(1)])
    proposal = turns.propose(view(chosen=before), 2)
    assert torch.equal(turns.first.seen[0].chosen, torch.cat([before, proposal.points[:1]]))
    assert torch.equal(turns.others[0].seen[0].chosen, before)


def test_after_a_batch_a_single_point_is_by_the_first():
    turns, seen = Turns([First(), Toy(1)]), view()
    assert [numbers(turns.propose(seen, q)) for q in (2, 1, 1)] == [[1, 0], [0], [1]]


def test_who_no_longer_applies_does_not_keep_the_turn():
    one, other = Toy(1), Toy(2)
    turns, seen = Turns([First(), one, other]), view()
    assert numbers(turns.propose(seen, 1)) == [1]
    one.applicable = False
    assert [numbers(turns.propose(seen, 1)) for _ in range(3)] == [[2], [0], [2]]


def test_what_can_not_be_learned_leaves_the_first_and_says_so(caplog):
    turns = Turns([First(), Toy(1, learns=LinAlgError("no factor"))])
    with caplog.at_level(logging.WARNING):
        assert numbers(turns.propose(view(), 1)) == [0]
    assert "Toy could not learn its rows" in caplog.text
    assert "no factor" in caplog.text


def test_a_strategy_proposes_if_it_is_ready_on_all_ranks():
    for others, expected in (([True], [1]), ([False], [0])):
        ranks = SimpleNamespace(gather=lambda mine, others=others: [mine, *others])
        assert numbers(Turns([First(), Toy(1)]).propose(view(ranks=ranks), 1)) == expected


def test_the_first_says_whether_turns_are_ready():
    for first, other in ((True, False), (False, True)):
        assert Turns([First(learns=first), Toy(1, learns=other)]).fit(view()) == first


def test_turns_have_the_models_of_all_and_go_on_where_they_were():
    turns, seen = Turns([First(), Toy(1), Toy(2)]), view()
    assert turns.models == (turns.first.model, *(each.model for each in turns.others))
    turns.propose(seen, 1)
    kept, again = turns.state_dict(), Turns([First(), Toy(1), Toy(2)])
    again.load_state_dict(kept)
    assert kept["strategies"] == [{"seen": 0}, {"seen": 1}, {"seen": 0}]
    assert [turns.propose(seen, 1).points.tolist() for _ in range(5)] == [
        again.propose(seen, 1).points.tolist() for _ in range(5)
    ]
    assert kept["waited"] == [0, 2]  # as it was


def test_a_snapshot_of_version_0_3_says_who_had_a_turn():
    states = [{"seen": 0}] * 3
    for had_turn, expected in (([True, False], [0, 2]), ([False, False], [1, 0])):
        turns = Turns([First(), Toy(1), Toy(2)])
        turns.load_state_dict({"strategies": states, "had_turn": had_turn})
        assert [number for _ in range(2) for number in numbers(turns.propose(view(), 1))] == expected


@pytest.mark.parametrize(("q", "shares"), [(2, [0, 2]), (3, [0, 3]), (4, [1, 3]), (5, [1, 4]), (8, [2, 6])])
def test_a_batch_has_no_more_by_each_of_the_others_than_its_k_th_part_when_it_is_due(q, shares):
    turns = Turns([First(), Toy(1, every=5)])
    turns.propose(view(), 1)  # its turn
    turns.propose(view(), 1)
    mine = numbers(turns.propose(view(), q))
    assert [mine.count(1), mine.count(0)] == shares


def test_a_state_of_other_strategies_is_refused():
    turns = Turns([First(), Toy(1)])
    kept = turns.state_dict()
    with pytest.raises(ValueError, match="does not fit"):
        turns.load_state_dict({**kept, "strategies": [*kept["strategies"], {"seen": 0}]})


def test_a_state_of_fewer_strategies_leaves_the_last_ones_new():
    turns = Turns([First(), Toy(1), Toy(2)])
    states = [Toy(each).state_dict() for each in range(2)]
    turns.load_state_dict({"strategies": states, "waited": [0]})
    assert turns.state_dict()["waited"] == [0, 1]


class Refused(Toy):
    """A toy that goes with nothing."""

    def check(self, space, labels):
        raise SettingError(f"refused {self.number}")


def test_all_are_checked():
    for strategies, says in (([First(), Toy(1), Refused(2)], "refused 2"), ([First(), Refused(1)], "refused 1")):
        with pytest.raises(SettingError, match=says):
            Turns(strategies).check(SQUARE, ThresholdLabels())
    with pytest.raises(SettingError, match="front of several"):
        Turns([ModelStrategy(KernelPLS()), Toy(1)]).check(SQUARE, SimpleNamespace(grades_front=True))


@pytest.mark.parametrize("given", [[], None, [KernelPLS()], [ModelStrategy(KernelPLS()), None], [NearBest()]])
def test_other_things_than_strategies_are_refused(given):
    with pytest.raises(SettingError, match=r"strategies must be a list|must be a ModelStrategy"):
        Turns(given)


def test_with_budgets_each_strategy_has_its_form_for_them():
    budget = Budget("epochs", 1, 9)
    turns = Turns([ModelStrategy(KernelPLS()), NearBest()]).at_budgets(budget)
    assert turns.first.classifier.budget == budget
    assert [type(each) for each in turns.others] == [NearBest]
    with pytest.raises(SettingError, match="Toy does not support budgets"):
        Turns([ModelStrategy(KernelPLS()), Toy(1)]).at_budgets(budget)
