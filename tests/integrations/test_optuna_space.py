"""DeepBoreSampler's space: distributions as parameters, and conditions read off Optuna's trials."""

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from deepbore.integrations.optuna import DeepBoreSampler, SeenTrials, levels, parameter, to_native, to_optuna
from deepbore.space import Categorical, Condition, Integer, Real

# --- distributions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("distribution", "kind", "values"),
    [
        (FloatDistribution(-2, 3), Real, [-2.0, 0.123, 3.0]),
        (FloatDistribution(1e-7, 10, log=True), Real, [1e-7, 0.001, 10.0]),
        (FloatDistribution(-1, 1, step=0.1), Integer, [-1.0, -0.7, 0.3, 1.0]),
        (IntDistribution(-5, 5), Integer, [-5, 0, 5]),
        (IntDistribution(1, 1024, log=True), Integer, [1, 32, 1024]),
        (IntDistribution(3, 12, step=3), Integer, [3, 6, 9, 12]),
        (CategoricalDistribution(["a", None, 2, 0.5, False]), Categorical, ["a", None, 2, 0.5, False]),
    ],
)
def test_values_come_back_from_a_parameter_as_they_were(distribution, kind, values):
    ours = parameter(distribution)
    assert isinstance(ours, kind)
    back = [
        to_optuna(distribution, native)
        for native in ours.decode(ours.encode([to_native(distribution, v) for v in values]))
    ]
    assert back == values
    assert [type(value) for value in back] == [type(value) for value in values]


@pytest.mark.parametrize(
    "distribution", [FloatDistribution(-10.2, 10.2, step=0.1), IntDistribution(-9, 26, step=7), IntDistribution(2, 9)]
)
def test_levels_are_all_that_optuna_allows(distribution):
    values = [to_optuna(distribution, native) for native in levels(distribution)]
    assert all(distribution._contains(value) for value in values)
    assert (values[0], values[-1]) == (distribution.low, distribution.high)
    assert len(set(values)) == round((distribution.high - distribution.low) / distribution.step) + 1


def test_numbers_outside_go_to_the_nearest_bound():
    assert to_native(FloatDistribution(0, 1), 7.0) == 1
    assert to_native(IntDistribution(0, 10, step=5), -3) == 0


# --- conditions ------------------------------------------------------------------------------------------------------

BRANCH, LAYERS, UNIT = CategoricalDistribution(["a", "b"]), IntDistribution(1, 4), FloatDistribution(0, 1)


def seen(*rows, state=TrialState.COMPLETE):
    """What trials with these parameters say, each name -> (value, distribution)."""
    trials = SeenTrials()
    for row in rows:
        params = {name: value for name, (value, _) in row.items()}
        distributions = {name: distribution for name, (_, distribution) in row.items()}
        value = 0.0 if state == TrialState.COMPLETE else None
        trials.add(create_trial(state=state, params=params, distributions=distributions, value=value))
    return trials


def conditions(trials):
    space = trials.space(trials.distributions)
    return {name: p.when for name, p in space.parameters.items() if p.when is not None}


def test_a_condition_is_read_off_the_trials():
    one = {"c": ("a", BRANCH), "x": (0.1, UNIT), "y": (0.3, UNIT)}
    other = {"c": ("b", BRANCH), "z": (0.2, UNIT), "y": (0.3, UNIT)}
    assert conditions(seen(one, other)) == {"x": Condition("c", [0]), "z": Condition("c", [1])}
    assert conditions(seen(one)) == {}


def test_levels_that_no_trial_has_had_count_as_active():
    two = {"n": (2, LAYERS), "units": (0.1, UNIT)}
    assert conditions(seen({"n": (1, LAYERS)}, two)) == {"units": Condition("n", [2, 3, 4])}
    assert conditions(seen({"n": (1, LAYERS)}, two, {"n": (3, LAYERS)})) == {"units": Condition("n", [2, 4])}


def test_conditions_form_chains_and_no_circles():
    rows = [
        {"c": ("a", BRANCH)},
        {"c": ("b", BRANCH), "d": ("a", BRANCH), "e": ("a", BRANCH)},
        {"c": ("b", BRANCH), "d": ("b", BRANCH), "e": ("a", BRANCH), "x": (0.5, UNIT)},
    ]
    assert conditions(seen(*rows)) == {
        "d": Condition("c", [1]),
        "e": Condition("c", [1]),
        "x": Condition("d", [1]),
    }


def test_what_nothing_explains_is_unconditional():
    rows = [
        {"x": (0.2, UNIT), "y": (0.1, UNIT)},
        {"x": (0.8, UNIT)},
        {"c": ("a", BRANCH)},
        {"c": ("a", BRANCH), "z": (1, UNIT)},
    ]
    assert conditions(seen(*rows)) == {}


def test_failed_trials_say_nothing_of_conditions():
    trials = seen({"c": ("a", BRANCH), "x": (0.1, UNIT)}, {"c": ("b", BRANCH), "x": (0.1, UNIT)})
    trials.add(create_trial(state=TrialState.FAIL, params={"c": "b"}, distributions={"c": BRANCH}))
    assert conditions(trials) == {}


def test_changing_and_single_distributions_are_left_out():
    rows = [
        {"x": (0.1, UNIT), "y": (0.1, UNIT), "one": (3, IntDistribution(3, 3))},
        {"x": (0.1, UNIT), "y": (0.1, FloatDistribution(0, 2)), "one": (3, IntDistribution(3, 3))},
        {"x": (0.1, UNIT), "y": (0.1, UNIT)},
    ]
    assert set(seen(*rows).distributions) == {"x"}


@pytest.mark.parametrize(
    "distribution",
    [
        IntDistribution(0, 2**62),
        IntDistribution(0, 2**63 - 1),
        IntDistribution(1, 2**50, log=True),
        FloatDistribution(1, 1 + 1e-12),
    ],
)
def test_what_no_parameter_of_ours_can_be_is_sampled_at_random(distribution):
    def objective(trial):
        ask = trial.suggest_int if isinstance(distribution, IntDistribution) else trial.suggest_float
        hard = ask("hard", distribution.low, distribution.high, log=distribution.log)
        return trial.suggest_float("x", 0, 1) + 0.0 * hard

    sampler = DeepBoreSampler(seed=0, n_startup_trials=3)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, 8)
    assert sampler.infer_relative_search_space(study, study.trials[-1]).keys() == {"x"}
    assert len(study.trials) == 8
