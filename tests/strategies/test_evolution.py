"""Evolution in long runs: when it has turns, what it learns, and that it leaves a local minimum."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import rankdata

from deepbore import (
    Categorical,
    DeepEnsemble,
    Integer,
    KernelPLS,
    Outcome,
    Real,
    SearchSpace,
    Study,
)
from deepbore.errors import SettingError
from deepbore.problems.benchmarks.rotated import Rotated
from deepbore.strategies import Evolution, ModelStrategy, NearBest, Turns
from deepbore.strategies.evolution import Gains, shares
from viewed import view_after

PLANE = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})


def bowl(params):
    return sum((value - 0.3) ** 2 for value in params.values())


def view_of(space=PLANE, trials=24, function=bowl, **settings):
    return view_after(space, trials, function, **settings)


def told(study, asked, function):
    for each in asked:
        study.tell(each, function(each.params))


# --- where it applies ------------------------------------------------------------------------------------------------


def test_it_applies_from_its_first_trial_on_in_real_spaces_of_one_plain_objective():
    assert Evolution(begin=24).applies(view_of())
    assert not Evolution(begin=25).applies(view_of())
    assert not Evolution(begin=1).applies(view_of(trials=0))
    assert not Evolution(begin=1).applies(view_of(SearchSpace({"x": Real(0, 1)})))
    assert not Evolution(begin=1).applies(view_of(SearchSpace({"x": Real(0, 1), "k": Integer(0, 99)})))
    choices = SearchSpace({"x": Real(0, 1), "c": Categorical(["a", "b"])})
    assert not Evolution(begin=1).applies(view_of(choices, function=lambda params: params["x"]))
    constrained = Study(PLANE, seed=0)
    (asked,) = constrained.ask()
    constrained.tell(asked, Outcome(1.0, constraints=[-1.0]))
    assert not Evolution(begin=1).applies(replace(view_of(), observations=constrained.state.observations))


@pytest.mark.parametrize("settings", [{"begin": 0}, {"screened": 0}, {"classifier": 3}])
def test_a_wrong_setting_is_refused(settings):
    with pytest.raises(SettingError):
        Evolution(**settings)


def test_before_its_first_trial_a_default_study_is_as_it_was():
    asked = []
    for strategy in (None, Turns([ModelStrategy(KernelPLS()), NearBest()])):
        study = Study(PLANE, seed=3, n_initial=6, strategy=strategy)
        for _ in range(40):
            told(study, study.ask(), bowl)
        asked.append([each.params for each in study.trials])
    assert asked[0] == asked[1]


# --- what it learns --------------------------------------------------------------------------------------------------


def test_shares_are_ranks_of_values_and_failures_have_none():
    values = torch.tensor([3.0, 1.0, math.nan, 2.0, 1.0], dtype=torch.float64)
    expected = (5 - rankdata([3, 1, 9, 2, 1]) + 0.5) / 5
    assert shares(values).tolist() == pytest.approx(np.where([0, 0, 1, 0, 0], 0, expected).tolist())


def test_its_classifier_ranks_the_trials_and_chooses_among_draws():
    strategy, view = Evolution(begin=10), view_of(trials=128)
    strategy.fit(view)
    drawn = strategy.search.offspring(60, torch.Generator().manual_seed(0))
    chosen = strategy._screened(drawn, view)
    away = (drawn - 0.3).square().sum(1).view(6, 10)
    assert float(((chosen - 0.3).square().sum(1) <= away.median(1).values).double().mean()) >= 0.8
    assert {tuple(each) for each in chosen.tolist()} <= {tuple(each) for each in drawn.tolist()}


def test_without_screening_nothing_is_learned_and_any_classifier_may_screen():
    plain = Evolution(screened=1, begin=10)
    plain.fit(view_of())
    assert plain.classifier.space is None
    for classifier in (KernelPLS(), DeepEnsemble((8,), members=2)):
        strategy, view = Evolution(classifier, begin=10), view_of()
        strategy.fit(view)
        assert strategy.propose(view, 3).model is classifier


def test_a_generation_is_taken_in_when_it_is_complete_failures_among_it():
    study = Study(PLANE, seed=0, n_initial=8, strategy=Turns([ModelStrategy(KernelPLS()), Evolution(begin=8)]))
    evolution = study.state.strategy.others[0]
    for number in range(60):
        for each in study.ask():
            study.tell(each, math.nan if number % 7 == 0 else bowl(each.params))
        if evolution.search is not None:
            assert len(evolution.asked) <= evolution.search.size
    assert evolution.search.generation + study.state.observations.ledger.statistics.n_complete > 0
    assert evolution.gains.n > 8


def test_what_nobody_tells_is_given_up_and_batches_are_taken_in_whole():
    strategy, view = Evolution(begin=10, screened=1), view_of()
    strategy.fit(view)
    strategy.propose(view, 40)
    assert len(strategy.asked) == 40
    strategy._give_up(len(view.observations))
    assert len(strategy.asked) == 40
    strategy._give_up(len(view.observations) + 1)
    assert not len(strategy.asked)


# --- its share -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("own", "others", "share"), [(0, 0, 0.5), (1, 0, 0.75), (0, 1, 0.25), (1, 1, 0.5)])
def test_the_share_follows_the_gains(own, others, share):
    gains = Gains()
    gains.own, gains.others = own, others
    assert gains.share == share
    assert sum(gains.are_due() for _ in range(1000)) == pytest.approx(1000 * share, abs=1)


def test_gains_are_falls_of_better_halves_and_of_the_best_value():
    gains, begun = Gains(), torch.tensor([9.0, 8.0, 7.0, 10.0], dtype=torch.float64)
    gains.begin(begun)
    values = torch.cat([begun, torch.tensor([30.0, 20.0, 5.0, math.nan], dtype=torch.float64)])
    gains.take_in(values, torch.tensor([4, 5]), 4)
    assert gains.others == pytest.approx(0.3 * (7 - 5) / 2)
    assert (gains.better, gains.best, gains.own) == (20.0, 5.0, 0.0)
    values = torch.cat([values, torch.tensor([14.0, 12.0], dtype=torch.float64)])
    gains.take_in(values, torch.tensor([8, 9]), 4)
    assert gains.own == pytest.approx(0.3 * (20 - 12) / 2)
    assert gains.others == pytest.approx(0.3 * (7 - 5) / 2)  # nothing new of others says nothing of them


def test_a_generation_of_one_value_far_from_the_best_is_stuck():
    gains, begun = Gains(), torch.tensor([0.0, 100.0], dtype=torch.float64)
    gains.begin(begun)
    values = torch.cat([begun, torch.tensor([50.0, 52.0], dtype=torch.float64)])
    gains.take_in(values, torch.tensor([2, 3]), 2)
    assert not gains.are_stuck
    values = torch.cat([values, torch.tensor([50.0, 50.2], dtype=torch.float64)])
    gains.take_in(values, torch.tensor([4, 5]), 2)
    assert gains.are_stuck
    gains.begin(values)
    assert not gains.are_stuck


def test_the_next_search_begins_elsewhere_with_twice_the_offspring():
    study = Study(PLANE, seed=0, n_initial=8, strategy=Turns([ModelStrategy(KernelPLS()), Evolution(begin=8)]))
    evolution, sizes = study.state.strategy.others[0], set()
    study.add({"x": [0.9], "y": [0.9]}, [0.0])  # the best, and elsewhere nothing to follow
    for _ in range(60):
        told(study, study.ask(), lambda params: 1.0 + 1e-4 * params["x"])
        sizes |= {evolution.search.size} if evolution.search else set()
    assert {6, 12} <= sizes


# --- what it finds ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_it_leaves_a_local_minimum_of_waves():
    ratios = []
    for seed in range(6):
        problem, best = Rotated("levy", 10, seed), []
        for others in ([NearBest()], [NearBest(), Evolution(begin=100)]):
            study = Study(problem.space, seed=seed, strategy=Turns([ModelStrategy(KernelPLS()), *others]))
            for _ in range(400):
                told(study, study.ask(), problem)
            best.append(max(study.best_value, 1e-9))
        ratios.append(best[1] / best[0])
    assert float(np.median(ratios)) < 0.5, ratios
