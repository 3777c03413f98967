"""Utilities of comparisons against choix, brute force and the maximum of the likelihood."""

import itertools

import choix
import numpy as np
import torch
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize

import deepbore as db
from deepbore import PreferenceLabels, Study
from deepbore.data.comparisons import SCALE, fitted_utilities
from deepbore.data.observations import Observations
from deepbore.labels import preferences
from deepbore.labels.coreset import NEGLIGIBLE
from plane import LINE, SQUARE

comparisons = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda pair: pair[0] != pair[1]))


@given(comparisons)
@settings(max_examples=40)
def test_utilities_are_those_of_choix(pairs):
    found = fitted_utilities(6, np.array(pairs, dtype=int).reshape(-1, 2))
    expected = choix.opt_pairwise(6, pairs, alpha=1 / (2 * SCALE**2), tol=1e-12)
    assert np.allclose(found, expected, atol=1e-5)


@given(st.integers(2, 30), st.data())
@settings(max_examples=20)
def test_independent_ones_are_those_of_a_diagonal_covariance(n, data):
    things = st.integers(0, n - 1)
    pairs = data.draw(st.lists(st.tuples(things, things).filter(lambda pair: pair[0] != pair[1]), max_size=60))
    pairs = np.array(pairs, dtype=int).reshape(-1, 2)
    assert np.abs(fitted_utilities(n, pairs) - fitted_utilities(n, pairs, SCALE**2 * np.eye(n))).max() <= 2e-6


def test_of_a_long_chain_each_wins_less_than_the_one_before():
    pairs = np.stack([np.arange(2000), np.arange(1, 2001)], axis=1)
    utilities = fitted_utilities(2001, pairs)
    assert (np.diff(utilities) <= 0).all()
    assert utilities[0] > 1 > -1 > utilities[-1]


def test_without_a_prior_they_tend_to_the_maximum_of_the_likelihood():
    pairs = [*itertools.permutations(range(4), 2), (0, 1), (1, 2), (2, 3), (0, 1)]
    found = fitted_utilities(4, np.array(pairs), covariance=1e8 * np.eye(4))
    assert np.allclose(found, choix.ilsr_pairwise(4, pairs), atol=1e-4)


def test_correlated_ones_are_the_most_likely_by_brute_force():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    precision = np.linalg.inv(root @ root.T)
    pairs = np.array([(0, 1), (2, 1), (1, 0), (3, 4), (3, 0)])

    def negative_log_posterior(u):
        return np.log1p(np.exp(u[pairs[:, 1]] - u[pairs[:, 0]])).sum() + u @ precision @ u / 2

    brute = minimize(negative_log_posterior, np.zeros(5), method="Nelder-Mead", options={"maxiter": 20_000})
    brute = minimize(negative_log_posterior, brute.x, tol=1e-12)
    assert np.allclose(fitted_utilities(5, pairs, root @ root.T), brute.x, atol=1e-4)


def test_what_is_told_apart_by_nothing_is_equal_to_the_last_bit():
    utilities = fitted_utilities(6, np.array([(0, 1), (2, 3), (4, 5)]))
    assert utilities[0] == utilities[2] == utilities[4] == -utilities[1]
    assert not fitted_utilities(2, np.array([(0, 1), (1, 0)])).any()


def test_contradictions_are_allowed_and_undo_one_another():
    study = Study(SQUARE, preferences=True)
    one, other = study.ask(2)
    study.prefer(one, other)
    study.prefer(other, one)
    assert study.best_trial.value == study.trials[1].value == 0
    study.prefer(other, one)
    assert study.best_trial.id == other.id


# regression: each of these was wrong once
def test_forgotten_comparisons_leave_positive_weights(monkeypatch):
    monkeypatch.setattr(preferences, "LATEST", 1)
    study = db.Study(SQUARE, preferences=True, seed=0)
    for _ in range(2):
        one, other = study.ask(2)
        study.prefer(one, other)
    weight = study.state.recipe.labels(study.observations).weight
    assert (weight > 0).all()
    assert weight[:2].max() < 1e-3


def line_points(*places):
    return torch.tensor(places, dtype=torch.float64)[:, None]


def test_trials_compared_too_long_ago_are_unknown_and_not_bad():
    observations = Observations(LINE, "maximize", by_preference=True)
    observations.reserve(line_points(*np.linspace(0, 1, 8)))
    observations.prefer([(7, other) for other in range(7)])
    observations.prefer([(k % 6, (k + 1) % 6) for k in range(1000)])
    weight = PreferenceLabels()(observations).weight
    assert weight[6:].max() <= NEGLIGIBLE
    assert weight[:6].tolist() == [1] * 6
