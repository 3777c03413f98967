"""The prior of length scales: where they are expected to be alike, what that says, and what it brings."""

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from deepbore import (
    Categorical,
    Integer,
    KernelPLS,
    Ordinal,
    Real,
    SearchSpace,
    Study,
    ValueGradedLabels,
)
from deepbore.classifiers.wrappers import PerColumn
from deepbore.errors import SettingError
from deepbore.testing import TOY_SPACES, fit, toy_data

CORRELATION = 0.75

WIDE = SearchSpace({f"x{number}": Real(0, 1) for number in range(10)})


def learned(space, batch, **settings):
    """A bound classifier that has learned a batch."""
    classifier = KernelPLS(**settings)
    classifier.bind(space)
    classifier.learn(batch)
    return classifier


def bowl(space, n, seed=0):
    """n labelled random rows of a bowl that all parameters matter to alike."""
    data = toy_data(space, 0, ValueGradedLabels())
    points = space.points.sample(n, torch.Generator().manual_seed(seed))
    params = space.decode(points)
    columns = {name: [each[name] for each in params] for name in space.names}
    data.observations.add(columns, (points - 0.4).square().sum(-1).numpy())
    return data.labelled()


def test_the_prior_is_a_normal_with_a_correlation_of_three_quarters():
    batch = bowl(WIDE, 12)
    alike, independent = learned(WIDE, batch), learned(WIDE, batch, alike=False)
    means, deviations = alike._prior[:10].T
    covariance = np.outer(deviations, deviations) * (CORRELATION + (1 - CORRELATION) * np.eye(10))
    normal, diagonal = multivariate_normal(means, covariance), multivariate_normal(means, np.diag(deviations**2))
    rng, gaps = np.random.default_rng(0), []
    for _ in range(5):
        theta = alike._prior[:, 0] + rng.normal(size=12)
        ours = independent.negative_evidence()(theta)[0] - alike.negative_evidence()(theta)[0]
        gaps.append(ours - normal.logpdf(theta[:10]) + diagonal.logpdf(theta[:10]))
    assert np.allclose(gaps, gaps[0])  # what is left are the densities' constants


def test_few_rows_tell_one_parameter_from_another_by_less():
    spreads = {True: [], False: []}
    for seed in range(8):
        batch = bowl(WIDE, 10, seed)
        for alike, kept in spreads.items():
            kept.append(float(learned(WIDE, batch, alike=alike, iterations=50).theta[:10].std()))
    assert np.mean(spreads[True]) < 0.5 * np.mean(spreads[False])


def test_on_unseen_rows_of_a_smooth_function_it_forecasts_better():
    fits = {True: [], False: []}
    for seed in range(8):
        batch, unseen = bowl(WIDE, 25, seed), bowl(WIDE, 200, seed + 100)
        for alike, kept in fits.items():
            posterior = learned(WIDE, batch, alike=alike, iterations=50).posterior(unseen.points)
            truth = -(unseen.points - 0.4).square().sum(-1)
            kept.append(float(torch.corrcoef(torch.stack([posterior.mean, truth]))[0, 1]))
    assert np.mean(fits[True]) > np.mean(fits[False]) + 0.02


def test_many_rows_still_tell_an_idle_parameter():
    points = WIDE.points.sample(150, torch.Generator().manual_seed(0))
    data = toy_data(WIDE, 0, ValueGradedLabels())
    columns = {name: points[:, column].numpy() for column, name in enumerate(WIDE.names)}
    data.observations.add(columns, np.sin(6 * columns["x0"]))
    relevant, *idle = fit(KernelPLS(), data, epochs=8).theta[:10].exp()
    assert min(idle) > 3 * relevant


def space_with(*others):
    """Nine real parameters and others."""
    return SearchSpace({**dict(list(WIDE.parameters.items())[:9]), **{f"y{k}": each for k, each in enumerate(others)}})


@pytest.mark.parametrize(
    ("others", "matters"),
    [
        ((), False),
        ((Real(0, 1),), True),
        ((Integer(1, 9),), True),
        ((Ordinal([1, 2, 4]), Integer(0, 1)), True),
        ((Real(0, 1), Categorical(["a", "b"])), False),
    ],
    ids=["nine", "ten", "a whole number", "levels", "a choice"],
)
def test_ten_numbers_or_more_have_length_scales_that_are_alike(others, matters):
    space = space_with(*others)
    batch = bowl(space, 20)
    one, other = learned(space, batch), learned(space, batch, alike=False)
    assert torch.equal(one.theta, other.theta) is not matters
    if one.additive_model is not None:
        assert torch.equal(one.additive_model.theta, other.additive_model.theta) is not matters


def test_several_objectives_have_independent_length_scales_by_default():
    study = Study(TOY_SPACES["continuous"], directions=["minimize", "minimize"], seed=0)
    assert isinstance(study.classifier, PerColumn)
    assert not any(part.alike for part in study.classifier.parts)


@pytest.mark.slow
def test_a_run_resumes_exactly_with_them(tmp_path):
    def cost(params):
        return sum((value - 0.3) ** 2 for value in params.values())

    whole = Study(WIDE, seed=0)
    whole.optimize(cost, 20)
    half = Study(WIDE, seed=0, journal=tmp_path / "run.jsonl")
    half.optimize(cost, 14)
    half.close()
    loaded = Study.load(tmp_path / "run.jsonl")
    loaded.optimize(cost, 6)
    assert [trial.params for trial in loaded.trials] == [trial.params for trial in whole.trials]


def test_what_is_neither_true_nor_false_is_refused():
    with pytest.raises(SettingError, match="alike"):
        KernelPLS(alike=0.75)
