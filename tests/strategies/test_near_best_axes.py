"""Coordinates around the best row, along the parameters, in principal axes or turned, and which are chosen."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from scipy.stats import ortho_group

from deepbore import Real, SearchSpace
from deepbore.loop.engine import Engine
from deepbore.strategies import NearBest
from deepbore.strategies.near_best import FLOOR, LocalAxes, near_rows
from valleys import BOX, ROTATION, bowl, go_on, told


@given(d=st.integers(1, 8), seed=st.integers(0, 1000), longest=st.floats(1e-6, 1e3))
@settings(max_examples=50)
def test_coordinates_along_the_axes_lead_back_to_the_points(d, seed, longest):
    stream = torch.Generator().manual_seed(seed)
    good = longest * torch.rand(20 + 2 * d, d, dtype=torch.float64, generator=stream)
    axes = LocalAxes.principal(good)
    points = torch.rand(5, d, dtype=torch.float64, generator=stream)
    assert torch.allclose(axes.centre + axes(points) @ axes.axes.mT, points, rtol=1e-9, atol=1e-9 * longest)
    assert torch.equal(axes(good[:1]), torch.zeros(1, d, dtype=torch.float64))


def test_good_rows_in_a_valley_spread_alike_along_the_axes():
    stream = torch.Generator().manual_seed(0)
    deviation = torch.tensor([1.0, 0.3, 0.1], dtype=torch.float64)
    turned = torch.from_numpy(ortho_group.rvs(3, random_state=1)) * deviation
    good = torch.randn(4000, 3, dtype=torch.float64, generator=stream) @ turned.mT
    axes = LocalAxes.principal(good)
    again = torch.randn(4000, 3, dtype=torch.float64, generator=stream) @ turned.mT
    assert torch.allclose(torch.cov(axes(again).mT), torch.eye(3, dtype=torch.float64), atol=0.3)
    assert axes.axes.norm(dim=0).sort().values == pytest.approx(deviation.sort().values, rel=0.2)


def test_of_few_rows_the_axes_are_nearer_to_those_of_the_parameters():
    d, k = 5, 30
    good = torch.rand(k, d, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    weights = np.log(k + 0.5) - np.log(np.arange(1, k + 1))
    covariance = np.cov(good.numpy().T, aweights=weights, ddof=0)
    share = (d + 1) / (k + d + 1)
    expected = (1 - share) * covariance + share * np.diag(np.diag(covariance))
    axes = LocalAxes.principal(good).axes.numpy()
    np.testing.assert_allclose(axes @ axes.T, expected, atol=1e-12)


@pytest.mark.parametrize("good", [torch.full((30, 3), 0.5), torch.rand(30, 1) * torch.tensor([1.0, 0.0, 0.0])])
def test_rows_that_differ_in_some_directions_or_none_have_axes_too(good):
    axes = LocalAxes.principal(good.double())
    lengths = axes.axes.norm(dim=0)
    assert bool((lengths > 0).all())
    assert float(lengths.min() / lengths.max()) >= FLOOR * 0.999
    assert bool(axes(good.double()).isfinite().all())


def test_turned_axes_are_the_same_coordinates_along_the_steepest_directions():
    good = torch.rand(30, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    basis = torch.from_numpy(ortho_group.rvs(5, random_state=1))
    gradients = basis * torch.logspace(3, 0, 5, dtype=torch.float64)  # one each, a column, the steepest first
    axes, turned = LocalAxes.principal(good), LocalAxes.principal(good).turned(gradients @ gradients.mT)
    np.testing.assert_allclose(turned.axes @ turned.axes.mT, axes.axes @ axes.axes.mT, atol=1e-12)
    np.testing.assert_allclose(turned.centre + turned(good) @ turned.axes.mT, good, atol=1e-12)
    slopes = turned.axes.mT @ gradients @ gradients.mT @ turned.axes
    np.testing.assert_allclose(slopes, np.diag(np.diag(slopes)), atol=1e-6 * float(slopes.max()))
    assert bool((slopes.diag().diff() < 0).all())


def steep(params):
    """A valley in all directions but one, which is a thousand times as steep as they are and along no parameter."""
    along = ROTATION @ (np.array([params[name] for name in BOX.names]) - 0.2)
    return float(1e6 * along[0] ** 2 + along[1:] @ along[1:])


def angle(axes):
    """Between the direction that the first of some axes measures and the steep one, in radians."""
    measured = (axes(torch.eye(6, dtype=torch.float64)) - axes(torch.zeros(6, dtype=torch.float64)))[:, 0]
    return math.acos(min(1.0, abs(float(measured @ torch.from_numpy(ROTATION[0]))) / float(measured.norm())))


def view_of(study):
    """What a strategy sees of a study now."""
    study._state.data.labelled()
    return Engine(study._state).view()


@pytest.mark.slow
def test_gradients_find_the_steepest_direction_to_a_thousandth():
    near, study = NearBest(), told(100, objective=steep)
    for _ in range(3):
        view = view_of(study)
        assert near.fit(view)
        go_on(study, 4, steep)
    assert angle(near.model.coordinates) < 1e-3
    assert angle(LocalAxes.principal(near_rows(view.batch, view.values)[0])) > 1e-2


def test_axes_are_not_turned_by_what_any_turn_of_many_would_fit():
    space, near = SearchSpace({f"x{i}": Real(-1, 1) for i in range(14)}), NearBest()
    study = told(100, space=space, objective=bowl)
    for _ in range(2):
        view = view_of(study)
        near.fit(view)
    good, _ = near_rows(view.batch, view.values)
    chosen = near.model.coordinates.axes
    assert any(torch.equal(chosen, axes(good).axes) for axes in (LocalAxes.principal, LocalAxes.of_parameters))
