"""A forest that takes turns in spaces with choices."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestRegressor

from deepbore import (
    Budget,
    Categorical,
    KernelPLS,
    Outcome,
    Real,
    SearchSpace,
    Study,
    ValueGradedLabels,
)
from deepbore.errors import SettingError
from deepbore.labels import ObjectiveLabels
from deepbore.loop.engine import Engine
from deepbore.strategies import ModelStrategy, RoughGround
from plane import SQUARE
from viewed import view_after

SPACE = SearchSpace({"x": Real(0, 1), "c": Categorical(["a", "b", "d"])})


def step(params):
    """A cliff, and luck."""
    return float(params["x"] > 0.6) + 0.1 * np.sin(1e4 * params["x"]) + 0.2 * (params["c"] == "b")


def view_of(space=SPACE, trials=24, function=step, **settings):
    return view_after(space, trials, function, **settings)


def test_it_applies_where_there_are_unordered_choices_and_one_plain_objective():
    assert RoughGround().applies(view_of())
    assert not RoughGround().applies(view_of(trials=0))
    assert not RoughGround().applies(view_of(SQUARE, function=lambda params: params["x"]))
    constrained = Study(SPACE, seed=0)
    (asked,) = constrained.ask()
    constrained.tell(asked, Outcome(1.0, constraints=[-1.0]))
    assert not RoughGround().applies(replace(view_of(), observations=constrained.state.observations))
    assert not RoughGround().applies(replace(view_of(), first=None))


def test_it_proposes_new_points_of_the_highest_bound_of_its_trees():
    other, view = RoughGround(trees=30), view_of()
    assert other.fit(view)
    proposal = other.propose(view, 3)
    assert proposal.model is other.model
    assert len({tuple(point) for point in proposal.points.tolist()}) == 3
    bound = other.model.posterior(proposal.points)
    elsewhere = other.model.posterior(SPACE.points.sobol(256, seed=9))
    best = float((elsewhere.mean + elsewhere.std).quantile(0.9))
    assert float((bound.mean + bound.std).min()) >= best


def test_its_forest_is_scikit_learns_on_the_rows_of_the_run():
    other, view = RoughGround(trees=20), view_of()
    other.fit(view)
    x, z = SPACE.points.features(view.batch.points).float().numpy(), view.batch.z.mean(-1).numpy()
    seed = int(other.model.get_extra_state()["seed"])
    forest = RandomForestRegressor(20, max_features="sqrt", random_state=seed)
    forest.fit(x, z, sample_weight=view.batch.weight.numpy())
    points = SPACE.points.sobol(64, seed=3)
    expected = forest.predict(SPACE.points.features(points).float().numpy())
    np.testing.assert_allclose(other.model.posterior(points).mean.numpy(), expected, atol=1e-6)


def test_it_has_no_state_and_the_same_stream_gives_the_same_points():
    view, made = view_of(), []
    for other in (RoughGround(), RoughGround()):
        view.generator.manual_seed(5)
        other.load_state_dict(other.state_dict())
        other.fit(view)
        made.append(other.propose(view, 2).points)
    assert torch.equal(*made)


def test_a_default_study_has_a_forest_after_the_design():
    study = Study(SPACE, seed=0, n_initial=6)
    proposed = []
    for _ in range(30):
        (trial,) = study.ask()
        study.tell(trial, step(trial.params))
        forest = next(each for each in study.state.recipe.strategy.others if isinstance(each, RoughGround))
        proposed.append(forest.model is not None and forest.model.generator is study.state.generator)
    assert not any(proposed[:6])
    assert proposed[-1]


def test_it_refuses_a_front_and_numbers_outside_their_ranges():
    RoughGround().check(SPACE, ValueGradedLabels())
    with pytest.raises(SettingError, match="grades a front"):
        RoughGround().check(SPACE, ObjectiveLabels(2))
    for wrong in ({"every": 1}, {"trees": 0}, {"rows": 0}):
        with pytest.raises(SettingError, match=next(iter(wrong))):
            RoughGround(**wrong)
    assert RoughGround().at_budgets(Budget("epochs", 1, 9)) is not None


def test_where_the_kernel_explains_the_better_rows_it_leaves_them_to_it():
    def smooth(params):
        return (params["x"] - 0.3) ** 2 + 0.1 * (params["c"] == "b")

    view = view_of(function=smooth)
    first = ModelStrategy(KernelPLS())
    for function, is_ready in ((smooth, False), (step, True)):
        study = Study(SPACE, seed=0)
        points = SPACE.decode(SPACE.points.sobol(30, seed=1))
        study.add({name: [each[name] for each in points] for name in SPACE.names}, [function(each) for each in points])
        study.ask()
        view = replace(Engine(study.state).view(), first=study.state.recipe.strategy.first)
        assert (view.first.classifier.explained > 0.9) is not is_ready
        assert RoughGround().fit(view) is is_ready
    assert first.classifier.explained == 0.0  # nothing is known yet
