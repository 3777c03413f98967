"""When a run is over: `RunControl` and its rules, with toys in the place of a run."""

import math
from types import SimpleNamespace

import pytest
import torch

from deepbore import ExpectedImprovementBelow, KernelPLS, NoImprovement, Study, TargetReached
from deepbore.acquisition import LogExpectedImprovement
from deepbore.data.outcome import Outcome, WrongReturn
from deepbore.errors import ObjectiveError, SettingError
from deepbore.loop.engine import Engine
from deepbore.loop.stopping import RunControl, StopRule, as_rules
from deepbore.strategies import Proposal
from plane import LINE, SQUARE
from tried import some_bowl


class Toy(StopRule):
    """A rule with answers of its own."""

    def __init__(self, is_met=False, poor=(), proposals=1):
        self.met, self.poor, self.proposals = is_met, list(poor), proposals

    def is_met(self, state):
        return self.met

    def predicts_little_gain(self, state, points):
        return self.poor.pop(0)


def begun(*rules, study=None, ranks=None, **settings):
    steering = RunControl(rules, **settings)
    engine = Engine((study or Study(LINE, seed=0)).state)
    engine.ranks = ranks or engine.ranks
    steering.begin(engine)
    return steering


# --- the end of a run ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("met", "over"), [([False], False), ([True], True), ([False, True], True), ([], False)])
def test_a_rule_that_is_met_ends_a_run_before_it_begins(met, over):
    assert begun(*(Toy(each) for each in met)).is_over == over


def test_a_rule_is_asked_after_each_trial():
    rule = Toy()
    steering = begun(rule)
    steering.on_outcome(0, Outcome(1.0))
    steering.update()
    assert not steering.is_over
    rule.met = True
    steering.on_outcome(1, Outcome(1.0))
    assert not steering.is_over  # until all ranks look
    rule.met = False  # once is enough
    steering.on_outcome(1, Outcome(1.0))
    steering.update()
    assert steering.is_over


def test_stopped_and_late_runs_are_over():
    steering = begun()
    steering.update()
    assert not steering.is_over
    steering.stop()
    steering.update()
    assert steering.is_over
    assert not steering.is_interrupted
    assert begun(timeout=1e-9).is_over
    assert not begun(timeout=60).is_over


def test_the_time_counts_from_the_beginning_on(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("deepbore.loop.stopping.time.monotonic", lambda: now[0])
    steering = RunControl(timeout=5)
    now[0] = 200.0
    steering.begin(Engine(Study(LINE, seed=0).state))
    for now[0], over in ((204.9, False), (205.0, True)):
        steering.update()
        assert steering.is_over == over


def test_what_one_rank_wants_all_do():
    for others, over, interrupted in (([(False, False)], False, False), ([(True, False)], True, False)):
        ranks = SimpleNamespace(gather=lambda mine, others=others: [mine, *others], is_first=True)
        steering = begun(ranks=ranks)
        assert (steering.is_over, steering.is_interrupted) == (over, interrupted)
    ranks = SimpleNamespace(gather=lambda mine: [mine, (True, True)], is_first=True)
    steering = begun(ranks=ranks)
    assert (steering.is_over, steering.is_interrupted) == (True, True)


def test_a_signal_ends_a_run():
    steering = begun()
    steering.interrupts.pressed = True
    steering.update()
    assert (steering.is_over, steering.is_interrupted) == (True, True)


@pytest.mark.parametrize("is_first", [True, False])
def test_who_listens_hears_of_trials_on_the_first_rank(is_first):
    heard, ranks = [], SimpleNamespace(gather=lambda mine: [mine], is_first=is_first)
    steering = begun(ranks=ranks, listeners=[lambda *about: heard.append(about)] * 2)
    outcome = Outcome(1.0)
    steering.on_outcome(7, outcome)
    assert heard == ([(7, outcome)] * 2 if is_first else [])


@pytest.mark.parametrize("settings", [{"timeout": 0}, {"max_failures": 0}])
def test_limits_out_of_range_are_refused(settings):
    with pytest.raises(SettingError):
        RunControl(**settings)


# --- an objective at fault -------------------------------------------------------------------------------------------


def judged(outcomes, max_failures):
    steering = begun(max_failures=max_failures)
    for row, outcome in enumerate(outcomes):
        steering.on_outcome(row, outcome)
    steering.update()


BAD = Outcome(math.nan)
GOOD = Outcome(1.0)


@pytest.mark.parametrize(
    ("outcomes", "max_failures", "at_fault"),
    [
        ([BAD] * 3, 3, True),
        ([BAD] * 2, 3, False),
        ([BAD] * 9, None, False),
        ([BAD, BAD, GOOD, BAD, BAD], 3, False),
        ([GOOD, BAD, BAD, BAD], 3, False),
        ([BAD] * 5, 3, True),
        ([BAD], 1, True),
    ],
)
def test_an_objective_that_gives_nothing_but_failures_is_at_fault(outcomes, max_failures, at_fault):
    if at_fault:
        with pytest.raises(ObjectiveError, match=f"all of its {max_failures} evaluations have failed"):
            judged(outcomes, max_failures)
    else:
        judged(outcomes, max_failures)


def wrong():
    return WrongReturn(math.nan, reason="it returned a text.")


@pytest.mark.parametrize("before", [[], [GOOD], [BAD]])
def test_what_is_no_value_ends_a_run_that_begins_with_it(before):
    if before:
        judged([*before, wrong()], None)
    else:
        with pytest.raises(ObjectiveError, match=r"because it returned a text\. Fix"):
            judged([wrong()], None)


# --- proposals that promise too little -------------------------------------------------------------------------------


def proposed(steering, model, n):
    over = []
    for _ in range(n):
        steering.on_proposal(Proposal(torch.zeros(1, 1), model))
        over.append(steering.is_over)
    return over


@pytest.mark.parametrize(
    ("poor", "proposals", "over"),
    [
        ([True], 1, [True]),
        ([False, True], 1, [False, True]),
        ([True, True, False, True, True, True], 3, [False] * 5 + [True]),
    ],
)
def test_so_many_poor_proposals_in_a_row_end_a_run(poor, proposals, over):
    study = Study(LINE, seed=0)
    study.classifier.ready = True
    steering = begun(Toy(poor=poor, proposals=proposals), Toy(poor=[False] * 6), study=study)
    assert proposed(steering, study.classifier, len(poor)) == over


def test_proposals_by_other_models_neither_count_nor_end_the_count():
    study = Study(LINE, seed=0)
    study.classifier.ready = True
    steering = begun(Toy(poor=[True, True], proposals=2), study=study)
    assert proposed(steering, study.classifier, 1) == [False]
    for other in (None, KernelPLS()):
        assert proposed(steering, other, 3) == [False] * 3
    assert list(study.state.low_gain_streaks.values()) == [1]
    assert proposed(steering, study.classifier, 1) == [True]


def test_a_classifier_that_is_not_ready_promises_what_it_may():
    study = Study(LINE, seed=0)
    steering = begun(Toy(poor=[True]), study=study)
    assert proposed(steering, study.classifier, 2) == [False, False]


# --- rules -----------------------------------------------------------------------------------------------------------


def test_a_rule_by_itself_asks_for_nothing():
    class Plain(StopRule):
        pass

    state = Study(LINE).state
    assert Plain().is_met(state) is Plain().predicts_little_gain(state, torch.zeros(1, 1)) is False
    assert Plain.proposals == 1
    assert as_rules([Plain()], state)


def test_rules_are_checked_and_one_may_stand_alone():
    state, rule = Study(LINE, directions=["minimize"] * 2).state, ExpectedImprovementBelow()
    for single in (NoImprovement(3), TargetReached(1.0)):
        with pytest.raises(SettingError, match="needs one objective, but the study has 2"):
            as_rules(single, state)
        assert as_rules(single, Study(LINE).state) == as_rules([single], Study(LINE).state) == (single,)
    with pytest.raises(SettingError, match="estimates the label"):
        as_rules([rule], state)
    with pytest.raises(SettingError, match="stop_when"):
        as_rules([single, None], Study(LINE).state)


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_target_is_reached_from_its_side(direction):
    study = Study(LINE, direction=direction, seed=0)
    rule, sign = TargetReached(2.0), 1 if direction == "minimize" else -1
    (pending,) = study.ask()
    assert not rule.is_met(study.state)
    for value, met in ((2.5, False), (2.0, True), (1.5, True)):
        (trial,) = study.ask()
        study.tell(trial, 2 + sign * (value - 2))
        assert rule.is_met(study.state) == met
    assert study.trials[pending.id].value is None


@pytest.mark.parametrize("share", [1e-9, 1e-3, 0.1, 0.9])
def test_an_improvement_is_little_where_it_is_below_its_share(share):
    study = Study(SQUARE, seed=0)
    study.add(*some_bowl(12, 0))
    study.fit()
    points = SQUARE.points.sobol(8, seed=1)
    classifier = study.classifier
    expected = LogExpectedImprovement()(classifier.posterior(points), classifier.best_label).exp()
    rule = ExpectedImprovementBelow(share=share)
    assert rule.predicts_little_gain(study.state, points) == bool(expected.max() < share)
    for point, value in zip(points, expected, strict=True):
        assert rule.predicts_little_gain(study.state, point[None]) == bool(value < share)


def test_an_improvement_counts_as_much_as_it_is_likely_to_be_feasible():
    study = Study(SQUARE, seed=0)
    study.add(*some_bowl(12, 0))
    study.fit()
    points = SQUARE.points.sobol(8, seed=1)
    classifier, rule = study.classifier, ExpectedImprovementBelow(share=1e-3)
    best = LogExpectedImprovement()(classifier.posterior(points), classifier.best_label).exp().max()
    for needed, alone, chance, little in (
        (True, False, 0.9 * 1e-3 / float(best), True),
        (True, False, 1.1 * 1e-3 / float(best), False),
        (False, False, 1e-9, bool(best < 1e-3)),
        (True, True, 1e-9, False),
    ):
        feasibility = SimpleNamespace(
            none_feasible=alone,
            is_needed=needed,
            log_probability=lambda at, chance=chance: torch.full((len(at),), chance).log(),
        )
        state = SimpleNamespace(feasibility=feasibility, classifier=classifier)
        assert rule.predicts_little_gain(state, points) == little
