"""Every other proposal is by a head of the rows near the best one, in their principal axes, where it knows them."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from scipy.stats import ortho_group

from deepbore import (
    Categorical,
    GreedyBatch,
    LocalSearch,
    LogExpectedImprovement,
    Outcome,
    RandomForest,
    Real,
    SearchSpace,
    Study,
    ThresholdLabels,
)
from deepbore.candidates import Search
from deepbore.classifiers.kernel_pls import ROWS
from deepbore.classifiers.local_axes import FLOOR, LocalAxes
from deepbore.classifiers.nearby import Nearby, NearbyHead, n_good, near_rows
from deepbore.data.repeats import evaluated
from deepbore.loop.engine import Engine
from thread_ranks import on_ranks

BOX = SearchSpace({f"x{i}": Real(-1, 1) for i in range(6)})
ROTATION = ortho_group.rvs(6, random_state=0)
SCALES = 10.0 ** np.linspace(0, 3, 6)  # of curvature: a valley a thousand times as long as it is wide, across the axes


def valley(params):
    along = ROTATION @ (np.array([params[name] for name in BOX.names]) - 0.2)
    return float(SCALES @ along**2)


def bowl(params):
    return float(sum((x - 0.2) ** 2 for x in params.values()))


def slope(params):
    return sum(params.values())


def rugged(params):
    return sum(x**2 - np.cos(40 * x) for x in params.values())


def noisy(params):
    chance = np.random.default_rng(hash(tuple(params.values())) % 2**32)
    return bowl(params) + chance.normal()


def told(n, journal=None, space=BOX, objective=valley, **settings):
    """A study that knows n random configurations."""
    study = Study(space, seed=0, journal=journal, **settings)
    configurations = space.decode(space.sample(n, torch.Generator().manual_seed(1)))
    columns = {name: [each[name] for each in configurations] for name in space.names}
    study.add(columns, [objective(each) for each in configurations])
    return study


def go_on(study, n, objective=valley, q=1):
    asked = []
    for _ in range(n):
        for trial in study.ask(q):
            study.tell(trial, objective(trial.params))
            asked.append(tuple(trial.params.values()))
    return asked


def search(nearby):
    return GreedyBatch(LocalSearch(nearby=nearby))


# --- the axes --------------------------------------------------------------------------------------------------------


@given(d=st.integers(1, 8), seed=st.integers(0, 1000), longest=st.floats(1e-6, 1e3))
@settings(max_examples=50)
def test_coordinates_along_the_axes_lead_back_to_the_points(d, seed, longest):
    stream = torch.Generator().manual_seed(seed)
    good = longest * torch.rand(20 + 2 * d, d, dtype=torch.float64, generator=stream)
    axes = LocalAxes.principal(good)
    points = torch.rand(5, d, dtype=torch.float64, generator=stream)
    assert torch.allclose(axes.points(axes(points)), points, rtol=1e-9, atol=1e-9 * longest)
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
    np.testing.assert_allclose(turned.points(turned(good)), good, atol=1e-12)
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


def test_gradients_find_the_steepest_direction_to_a_thousandth():
    nearby, study = Nearby(), told(100, objective=steep)
    for _ in range(3):
        known = study._state.data.labelled(), evaluated(study.observations).values
        assert nearby.knows(*known, BOX)
        go_on(study, 4, steep)
    assert angle(nearby.head.coordinates) < 1e-3
    assert angle(LocalAxes.principal(near_rows(*known)[0])) > 1e-2


# --- the turns -------------------------------------------------------------------------------------------------------


def test_it_goes_on_down_a_valley_across_the_parameters():
    found = {}
    for nearby in (False, True):
        study = told(ROWS + 20, candidates=search(nearby))
        go_on(study, 30)
        found[nearby] = study.best_trial.value
    assert found[True] < found[False] / 3


@pytest.fixture
def turns(monkeypatch):
    """Whether each search was by the head."""
    turns, original = [], LocalSearch.ranked
    monkeypatch.setattr(
        LocalSearch,
        "ranked",
        lambda self, search, q: turns.append(isinstance(search.classifier, NearbyHead)) or original(self, search, q),
    )
    return turns


@pytest.mark.parametrize("missing", [2, 3])
def test_the_head_proposes_every_other_time_from_the_first_that_it_can(turns, missing):
    go_on(told(n_good(6) - missing, objective=slope), missing + 5, slope)
    assert turns == [False] * missing + [True, False, True, False, True]


@pytest.mark.parametrize("objective", [rugged, noisy])
@pytest.mark.parametrize("n", [100, ROWS + 20])
def test_where_the_head_does_not_know_the_near_rows_the_classifier_goes_on_alone(objective, n):
    alone, together = (
        go_on(told(n, objective=objective, candidates=search(nearby)), 4, objective) for nearby in (False, True)
    )
    assert together == alone


@pytest.mark.parametrize(("q", "by_the_head"), [(2, 1), (5, 3)])
def test_half_of_a_batch_is_by_the_head(turns, monkeypatch, q, by_the_head):
    rankings, original = [], LocalSearch.ranked

    def ranked(self, search, q):
        rankings.append(original(self, search, q))
        return rankings[-1]

    monkeypatch.setattr(LocalSearch, "ranked", ranked)
    points = go_on(told(ROWS + 10, objective=bowl), 4, bowl, q=q)
    assert turns[-4:] == [True, False] * 2  # what the head knows goes on from one batch to the next
    assert len(set(points)) == 4 * q
    asked = BOX.encode([dict(zip(BOX.names, point, strict=True)) for point in points])  # all within the bounds
    near = (asked[-q:, None] - rankings[-2]).abs().amax(-1).amin(-1) < 1e-9
    assert near.tolist() == [True] * by_the_head + [False] * (q - by_the_head)


MIXED = SearchSpace({**{f"x{i}": Real(-1, 1) for i in range(5)}, "x5": Categorical([-1.0, 1.0])})


@pytest.mark.parametrize(
    ("space", "settings", "prepare"),
    [
        (MIXED, {}, lambda study: None),
        (BOX, {}, lambda study: study.fix({"x0": 0.5})),
        (BOX, {"classifier": RandomForest(trees=5)}, lambda study: None),
        (BOX, {"labels": ThresholdLabels()}, lambda study: None),
        (BOX, {}, lambda study: study.add({name: [0.1] for name in BOX.names}, [1.0], task="earlier")),
    ],
    ids=["categories", "fixed", "another classifier", "other labels", "earlier tasks"],
)
def test_where_it_does_not_apply_nothing_changes(space, settings, prepare):
    asked = []
    for nearby in (False, True):
        study = told(ROWS + 5, space=space, candidates=search(nearby), **settings)
        prepare(study)
        asked.append(go_on(study, 2))
    assert asked[0] == asked[1]


def test_once_there_are_constraints_the_classifier_goes_on_alone(turns):
    study = told(2 * n_good(6), objective=bowl)
    go_on(study, 6, bowl)
    turns.clear()
    go_on(study, 4, lambda params: Outcome(bowl(params), constraints=[params["x0"] - 0.9]))
    assert turns == [True, False, False, False]


def near_best(study):
    """Points of the good rows of a study, and the rows near the best one."""
    return near_rows(study._state.data.labelled(), evaluated(study.observations).values)


def head_of(study):
    """The head that has learned a study's rows near the best one."""
    good, rows = near_best(study)
    head = NearbyHead()
    head.bind(BOX)
    head.learn_along(LocalAxes.principal(good), rows)
    return head


def with_points(points, values):
    """A study that knows these points (n x d) with their values."""
    study, configurations = Study(BOX), BOX.decode(points)
    study.add({name: [each[name] for each in configurations] for name in BOX.names}, values)
    return study


def around_the_middle(n, deviation):
    return 0.5 + deviation * torch.randn(n, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(n))


def test_the_newest_rows_near_the_best_one_are_learned_though_a_thousand_others_are_better():
    best, others = around_the_middle(1, 0.0), around_the_middle(2000, 1.0)
    others = best + 0.4 * (others - best) / (others - best).norm(dim=-1, keepdim=True)
    points = torch.cat([best, others, around_the_middle(150, 0.001)])
    _, rows = near_best(with_points(points, torch.linspace(0, 1, len(points)).tolist()))
    assert int(((rows.points - best).norm(dim=-1) < 0.1).sum()) == 1 + 150


def test_what_has_failed_is_nowhere_among_the_rows_that_axes_are_found_from():
    points = torch.cat([around_the_middle(10, 0.001), around_the_middle(100, 0.1).clamp(0, 1)])
    good, _ = near_best(with_points(points, [*range(10), *[math.nan] * 100]))
    assert float(LocalAxes.principal(good).axes.norm(dim=0).max()) < 0.01


@pytest.mark.parametrize(("failed", "counted"), [(1, 0), (9, 0), (12, 12)])
def test_few_failures_near_the_best_one_are_crashes_and_many_a_wall(failed, counted):
    points = around_the_middle(100 + failed, 0.1).clamp(0, 1)
    _, rows = near_best(with_points(points, [*(math.nan for _ in range(failed)), *range(100)]))
    assert len(rows) == 100 + counted
    assert int((rows.z == 0).sum()) == counted


def test_a_crash_near_the_best_one_leaves_the_head_its_turns(turns):
    study = told(100, objective=bowl)
    go_on(study, 5, bowl)
    (trial,) = study.ask()
    study.tell(trial, failed=True)
    turns.clear()
    go_on(study, 6, bowl)
    assert turns in ([True, False] * 3, [False, True] * 3)


def test_a_loaded_study_goes_on_with_the_turn_bit_for_bit(tmp_path):
    whole, part = (told(ROWS + 3, tmp_path / f"{k}.jsonl") for k in "ab")
    expected = go_on(whole, 6)
    begun = go_on(part, 3)
    part.close()
    assert begun + go_on(Study.load(tmp_path / "b.jsonl"), 3) == expected


def test_forbidden_configurations_are_kept_away_from():
    space = SearchSpace({f"x{i}": Real(-1, 1) for i in range(6)}, constraints=["x0 + x1 <= 0.2"])
    study = told(ROWS + 20, space=space)
    assert all(point[0] + point[1] <= 0.2 + 1e-9 for point in go_on(study, 6))


def test_two_ranks_share_the_search_and_propose_the_same():
    searches = []
    for _ in range(2):
        study = told(ROWS + 20)
        stream = torch.Generator().manual_seed(7)
        searches.append(Search(LogExpectedImprovement(), head_of(study), study.observations, stream))

    def task(ranks):
        return GreedyBatch().propose(replace(searches[ranks.rank], ranks=ranks), 3)

    one, other = on_ranks(task)
    assert torch.equal(one, other)
    assert len(set(BOX.identify(one))) == 3


@pytest.mark.parametrize("q", [1, 3])
def test_two_ranks_take_turns_alike(turns, q):
    states = []
    for _ in range(2):
        study = told(2 * n_good(6), objective=bowl)
        go_on(study, 6, bowl)
        study._state.data.labelled()
        states.append(study._state)
    turns.clear()
    one, other = on_ranks(lambda ranks: Engine(states[ranks.rank], ranks).propose(q))
    assert turns == ([True] * 2 if q == 1 else [True, True, False, False])
    assert torch.equal(one, other)


def test_its_cost_does_not_grow_with_the_rows():
    assert [len(near_best(told(n))[1]) for n in (500, 5000)] == [ROWS, ROWS]


def test_values_that_single_precision_does_not_tell_apart_are_graded_apart():
    points = 0.2 + 1e-6 * torch.randn(50, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    study = told(ROWS, objective=bowl)
    study.add(dict(zip(BOX.names, points.T.numpy(), strict=True)), (points - 0.2).square().sum(1).numpy())
    batch, values = study._state.data.labelled(), evaluated(study.observations).values
    assert len(batch.z[-50:].unique()) == 1
    assert len(near_rows(batch, values)[1].z[-50:].unique()) == 50
