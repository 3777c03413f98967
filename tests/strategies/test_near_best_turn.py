"""One turn of `NearBest` on few rows: when it applies, what it learns, what it asks of a search, what it remembers."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from deepbore import Budget, Integer, KernelPLS, Outcome, Real, SearchSpace, Study, ValueGradedLabels
from deepbore.errors import SettingError
from deepbore.labels import LabelledBatch
from deepbore.strategies import NearBest
from deepbore.strategies.near_best import LocalAxes, NearModel, n_good, near_rows, regraded, weighted_covariance
from plane import SQUARE
from recorded import view_of

ENOUGH = 24  # rows with values from which on it applies to two parameters


def oblique(x, y):
    """A narrow valley across both parameters."""
    return (x + y - 0.9) ** 2 + 0.01 * (x - y) ** 2


def chance(x, y):
    return np.random.default_rng(3).normal(size=len(x))


def told(n=40, objective=oblique, space=SQUARE, failed=0, **given):
    study = Study(space, seed=0, **given)
    x, y = np.random.default_rng(1).random((2, n))
    values = objective(x, y)
    values[n - failed :] = np.nan
    study.add({"x": x, "y": y}, values)
    return study


# --- when it applies -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "failed", "applies"),
    [(ENOUGH - 1, 0, False), (ENOUGH, 0, True), (ENOUGH + 9, 9, True), (ENOUGH + 9, 10, False)],
)
def test_it_applies_from_so_many_values_on(n, failed, applies):
    assert NearBest().applies(view_of(told(n, failed=failed))) == applies


def test_pending_trials_and_replicates_are_no_more_rows_to_learn():
    study = told(ENOUGH - 1)
    study.ask(3)
    study.add({"x": [study.trials[0].params["x"]], "y": [study.trials[0].params["y"]]}, [0.3])
    assert not NearBest().applies(view_of(study))
    study.add({"x": [0.5], "y": [0.5]}, [0.01])
    assert NearBest().applies(view_of(study))


def where_it_does_not_apply(why):
    if why == "integers":
        return view_of(grid())
    study = told()
    if why == "fixed":
        study.fix({"x": 0.5})
    elif why == "constraints":
        (trial,) = study.ask()
        study.tell(trial, Outcome(1.0, constraints=[-1.0]))
    return view_of(study, **{"no labels yet": {"batch": None}, "no turns": {"first": None}}.get(why, {}))


def grid():
    study = Study(SearchSpace({"x": Real(0, 1), "y": Integer(0, 50)}), seed=0)
    study.add({"x": np.random.default_rng(1).random(51), "y": range(51)}, np.arange(51.0))
    return study


@pytest.mark.parametrize("why", ["integers", "fixed", "constraints", "no labels yet", "no turns"])
def test_it_does_not_apply(why):
    assert NearBest().applies(view_of(told()))
    assert not NearBest().applies(where_it_does_not_apply(why))


def test_it_goes_with_all_labels_and_budgets_and_settings_are_checked():
    near = NearBest()
    near.check(SQUARE, ValueGradedLabels())
    assert near.at_budgets(Budget("epochs", 1, 9)) is near
    for bad in ({"rows": 0}, {"iterations": -1}, {"prior": None}, {"crashes": 2}):
        with pytest.raises(SettingError):
            NearBest(**bad)


# --- what it learns --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("objective", "ready"), [(oblique, True), (chance, False)])
def test_it_is_ready_where_a_model_explains_the_labels(objective, ready):
    near = NearBest()
    assert near.fit(view_of(told(objective=objective))) == ready
    share = near.model.theta.exp()
    assert near.model.unexplained == pytest.approx(float(share[-1] / share[-2]))


def test_it_learns_what_is_near_in_the_likeliest_axes():
    view, near = view_of(told()), NearBest()
    near.fit(view)
    best, rows = near_rows(view.batch, view.values)
    losses = []
    for axes in (LocalAxes.principal(best), LocalAxes.of_parameters(best)):
        model = NearModel(rows=200, iterations=15, prior=True, crashes=True)
        model.bind(SQUARE)
        losses.append(model.learn_in_axes(axes, rows))
    assert losses[0] < losses[1] - 1  # the valley is across the parameters
    chosen = near.model.coordinates
    assert torch.equal(chosen.axes, LocalAxes.principal(best).axes)
    assert len(near.model._data) == len(rows)


def test_turned_axes_are_tried_from_the_second_turn_on_and_must_increase_the_likelihood_of_each_angle():
    near, view = NearBest(), view_of(told())
    best, _ = near_rows(view.batch, view.values)
    assert [cost for _, cost in near.axes(best)] == [0, 0]
    near.fit(view)
    (principal, _), (along, _), (turned, cost) = near.axes(best)
    assert cost == 1  # of one angle between two axes
    assert torch.equal(principal.axes, LocalAxes.principal(best).axes)
    assert torch.equal(along.axes, LocalAxes.of_parameters(best).axes)
    assert torch.equal(turned.axes, principal.turned(near.model.steepness(view.batch.points)).axes)
    near.fit(view)
    assert len(near.state_dict()["thetas"]) == 3


def test_steepness_is_that_of_the_mean():
    view, near = view_of(told()), NearBest()
    near.fit(view)
    points, step = view.batch.points[:7], 1e-5
    shifts = step * torch.eye(2, dtype=torch.float64)
    gradients = torch.stack(
        [
            (near.model.posterior(points + shift).mean - near.model.posterior(points - shift).mean) / (2 * step)
            for shift in shifts
        ],
        dim=-1,
    )
    assert torch.allclose(near.model.steepness(points), gradients.mT @ gradients, rtol=1e-3)


def test_length_scales_are_bounded_in_deviations_of_the_best_rows():
    ends, stream = torch.linspace(0, 1, 120, dtype=torch.float64), torch.Generator().manual_seed(0)
    u = torch.stack([ends, torch.rand(120, dtype=torch.float64, generator=stream)], dim=-1)
    model, unit = NearModel(rows=200, iterations=100, prior=False, crashes=False), torch.eye(2, dtype=torch.float64)
    model.bind(SQUARE)
    model.theta[0] = -1.5  # not from so far that waves look like noise
    model.learn_in_axes(LocalAxes(u[0], unit, unit), LabelledBatch(u, (1 + (60 * u[:, :1]).sin()) / 2, torch.ones(120)))
    assert model.theta[:2].tolist() == [-2, 5]  # of narrower waves, and where nothing depends on it


def test_where_labels_say_nothing_length_scales_are_two_deviations():
    ends = torch.linspace(0, 1, 20, dtype=torch.float64)
    u = torch.stack([ends, torch.zeros_like(ends)], dim=-1)  # all alike in the second coordinate
    model, unit = NearModel(rows=200, iterations=100, prior=True, crashes=False), torch.eye(2, dtype=torch.float64)
    model.bind(SQUARE)
    model.theta[1] = 0.0
    model.learn_in_axes(LocalAxes(u[0], unit, unit), LabelledBatch(u, u[:, :1] ** 2, torch.ones(20)))
    assert math.exp(model.theta[1]) == pytest.approx(2 * math.sqrt(2), rel=0.02)  # distances grow with the root of d


def test_its_settings_are_those_of_a_kernel_by_default():
    view, turns = view_of(told(failed=3)), []
    usual = {name: getattr(KernelPLS(), name) for name in ("rows", "iterations", "prior", "crashes")}
    for near in (NearBest(), NearBest(**usual)):
        near.fit(view)
        turns.append(near.state_dict()["thetas"])
    assert torch.equal(*turns)
    assert {name: getattr(near.model, name) for name in usual} == usual
    assert (near.model.alike, near.model.additive) == (False, False)


# --- what it asks of a search, and remembers -------------------------------------------------------------------------


def test_it_has_the_search_of_the_first_look_around_the_best_row():
    near, view = NearBest(), view_of(told())
    near.fit(view)
    proposal = near.propose(view, 3)
    (search,) = view.first.candidates.searches
    assert len(proposal.points) == 3
    assert proposal.model is search.classifier is near.model
    assert search.acquisition is view.first.acquisition
    assert torch.equal(search.centre, view.batch.points[view.values.argmin()])
    assert torch.equal(search.axes, near.model.coordinates.axes)


def test_after_a_state_it_goes_on_as_before():
    near, again, new = (NearBest(iterations=3) for _ in range(3))
    view = view_of(told())
    assert near.state_dict() == {}
    again.fit(view_of(told(30)))
    for _ in range(2):
        near.fit(view)
        kept = near.state_dict()
        for each in (again, new):
            each.load_state_dict(kept)
            assert each.model is None
            assert torch.equal(each.state_dict()["thetas"], kept["thetas"])
            assert torch.equal(each.state_dict()["steepness"], kept["steepness"])
    near.fit(view)
    for each in (again, new):
        each.fit(view)
        assert torch.equal(each.state_dict()["thetas"], near.state_dict()["thetas"])
        assert torch.equal(each.model.coordinates.axes, near.model.coordinates.axes)


def test_an_empty_state_is_a_new_beginning():
    view = view_of(told())
    near, new = NearBest(), NearBest()
    near.fit(view)
    near.load_state_dict({})
    assert near.state_dict() == {}
    near.fit(view)
    new.fit(view)
    assert torch.equal(near.state_dict()["thetas"], new.state_dict()["thetas"])


def test_a_new_model_begins_with_the_settings_of_the_first():
    thetas, view = torch.tensor([[0.1, 0.2, -0.3, -4.0]], dtype=torch.float64), view_of(told())
    learned = []
    for state in (thetas, thetas.expand(3, 4)):
        near = NearBest(iterations=1)
        near.load_state_dict({"thetas": state, "steepness": torch.eye(2)})
        near.fit(view)
        learned.append(near.state_dict()["thetas"])
    assert torch.equal(*learned)


# --- near rows -------------------------------------------------------------------------------------------------------


def batch_of(points, weight=None):
    weight = torch.ones(len(points)) if weight is None else weight
    return LabelledBatch(points, torch.full((len(points), 1), 0.5), weight, best=0.7)


def expected_rows(points, values, light):
    """Numbers of the near rows: by mere sorting."""
    learned = [row for row in range(len(values)) if row not in light]
    by_value = sorted(learned, key=lambda row: (math.isnan(values[row]), values[row]))
    best = [row for row in by_value[:1000] if not math.isnan(values[row])][: n_good(points.shape[1])]
    pool = sorted({*by_value[:1000], *(row for row in learned if row >= len(values) - 1000)})
    distance = LocalAxes.principal(points[best])(points).norm(dim=-1)
    near = sorted(sorted(pool, key=lambda row: distance[row])[:200])
    failed = [row for row in near if math.isnan(values[row])]
    return best, [row for row in near if row not in failed] if len(failed) < 0.1 * len(near) else near


@given(n=st.sampled_from([30, 150, 400, 3000]), failed=st.floats(0, 0.3), seed=st.integers(0, 99))
@settings(max_examples=12, deadline=None)
def test_the_near_rows_are_those_that_sorting_finds(n, failed, seed):
    stream = np.random.default_rng(seed)
    points = torch.from_numpy(stream.random((n, 2)))
    values = stream.permutation(n).astype(float)
    values[stream.random(n) < failed] = np.nan
    light = set(stream.choice(n, n // 10, replace=False).tolist())
    weight = torch.tensor([1e-9 if row in light else 1.0 for row in range(n)])
    rows, found = expected_rows(points, values, light)
    best, near = near_rows(batch_of(points, weight), torch.from_numpy(values))
    assert torch.equal(best, points[rows])
    assert torch.equal(near.points, points[found])


def test_more_near_rows_than_by_default_are_learned():
    view, learned = view_of(told(n=300)), []
    for rows in (200, 250, 300, 400):
        near = NearBest(rows=rows, iterations=1)
        near.fit(view)
        learned.append(near.state_dict()["thetas"])
    assert torch.equal(learned[2], learned[3])  # all there are
    assert not torch.equal(learned[0], learned[1])
    assert not torch.equal(learned[1], learned[2])


def test_values_however_large_are_better_than_failures():
    points = torch.rand(60, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    values = 1e200 * torch.tensor([math.nan] * 30 + list(range(30)), dtype=torch.float64)
    best, _ = near_rows(batch_of(points), values)
    assert torch.equal(best, points[30 : 30 + n_good(2)])


def test_labels_anew_are_shares_of_thresholds_up_to_the_median():
    values = torch.tensor([4.0, 0.0, 1.0, 2.0, 9.0, math.nan], dtype=torch.float64)
    anew = regraded(batch_of(torch.rand(6, 2)), values)
    up, beyond = (lambda y: (2 - y) / 2), (lambda y: 0.25 / (0.5 + (y - 2) / 2))  # from 0 to the median 2, and on
    expected = [beyond(4), up(0) + 0.5, up(1) + 0.5, 0.5, beyond(9), 0]
    assert torch.allclose(anew.z[:, 0], torch.tensor(expected, dtype=torch.float64) / 1.5)
    assert anew.best == 1


@pytest.mark.parametrize("values", [[math.nan] * 3, [1.0, 1.0, 2.0], [5.0, math.nan, math.nan]])
def test_where_the_best_value_is_the_median_labels_stay(values):
    batch = batch_of(torch.rand(3, 2))
    assert regraded(batch, torch.tensor(values)) is batch


@pytest.mark.parametrize("d", [1, 3])
def test_axes_of_the_parameters_are_deviations_around_the_best_row(d):
    good = torch.rand(30, d, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    weights = np.log(30.5) - np.log(np.arange(1, 31))
    covariance = np.cov(good.numpy().T, aweights=weights, ddof=0).reshape(d, d)
    axes = LocalAxes.of_parameters(good)
    assert np.allclose(weighted_covariance(good), covariance)
    assert np.allclose(axes.axes, np.diag(np.sqrt(covariance.diagonal())))
    assert torch.equal(axes.centre, good[0])
    assert np.allclose(axes(good), (good - good[0]).numpy() / np.sqrt(covariance.diagonal()))
