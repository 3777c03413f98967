"""Problems for runs of thousands: against formulas written out, splines of other code, and Lasso's own conditions."""

import math
from itertools import pairwise

import numpy as np
import pytest

from deepbore.errors import SettingError
from deepbore.problems import PolicySearch, suites
from deepbore.problems.benchmarks import lasso, rotated, rover


def point(problem, x):
    return dict(zip(problem.space.names, map(float, x), strict=True))


def some(problem, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, len(problem.space))


# --- rotated ---------------------------------------------------------------------------------------------------------

WRITTEN_OUT = {
    "ellipsoid": lambda u: math.fsum(10 ** (6 * j / (len(u) - 1)) * each**2 for j, each in enumerate(u)),
    "rastrigin": lambda u: math.fsum(each**2 + 10 - 10 * math.cos(2 * math.pi * each) for each in u),
    "rosenbrock": lambda u: math.fsum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in pairwise(u)),
}


@pytest.mark.parametrize("name", WRITTEN_OUT)
@pytest.mark.parametrize("turned", [True, False])
def test_a_rotated_function_is_its_formula_of_turned_and_moved_coordinates(name, turned):
    problem = rotated.Rotated(name, 5, seed=3, turned=turned)
    x = some(problem)
    u = problem.middle + problem.scale * np.array([row @ (x - problem.lowest) for row in problem.rotation])
    assert problem(point(problem, x)) == pytest.approx(WRITTEN_OUT[name](u.tolist()), rel=1e-12)


def test_the_wave_of_schwefel_is_lowest_where_it_is_said_and_nothing_beyond_its_box_is_lower():
    u = np.full(3, rotated.BY_CHANCE)
    assert rotated.schwefel(u) == pytest.approx(0, abs=1e-9)
    around = rotated.schwefel(u + np.eye(3)[0] * np.linspace(-1400, 1400, 20_001)[:, None])
    assert around.min() > -1e-6


@pytest.mark.parametrize("name", rotated.FORMULAS)
def test_no_point_is_below_the_optimum_which_the_seed_draws(name):
    problem, other = rotated.Rotated(name, 4, seed=1), rotated.Rotated(name, 4, seed=2)
    assert problem(point(problem, problem.lowest)) == pytest.approx(0, abs=1e-9)
    assert not np.allclose(problem.lowest, other.lowest)
    assert np.allclose(problem.rotation @ problem.rotation.T, np.eye(4))
    assert min(problem(point(problem, some(problem, seed))) for seed in range(200)) > 0
    near = [problem(point(problem, problem.lowest + 1e-3 * some(problem, seed))) for seed in range(50)]
    assert min(near) > 0


def test_choices_stand_for_places_and_each_of_them_matters():
    problem = rotated.RotatedChoices("ellipsoid", seed=1)
    assert problem(problem.lowest) == 0
    other = {key: "abcd"[("abcd".index(value) + 1) % 4] for key, value in problem.lowest.items() if key[0] == "c"}
    values = [problem(problem.lowest | {key: value}) for key, value in other.items()]
    assert min(values) > 0
    assert len(set(values)) == 10
    u = problem.rotation @ (problem.coordinates(problem.lowest | other) - problem.coordinates(problem.lowest))
    assert problem(problem.lowest | other) == pytest.approx(WRITTEN_OUT["ellipsoid"]((5 * u).tolist()))


# --- Lasso -----------------------------------------------------------------------------------------------------------


def test_the_weighted_lasso_meets_its_conditions():
    problem = lasso.Lasso("simple", seed=2)
    penalties = problem.largest * 100 ** ((some(problem) - 1) / 2)
    scaled = problem.x / penalties
    model = problem.linear.Lasso(alpha=1.0, fit_intercept=False, max_iter=100_000, tol=1e-10).fit(scaled, problem.y)
    b = model.coef_ / penalties
    slope = problem.x.T @ (problem.y - problem.x @ b) / len(problem.y)  # of the squared error, in each b
    assert np.all(np.abs(slope) <= penalties * (1 + 1e-4))
    assert np.allclose(slope[b != 0], penalties[b != 0] * np.sign(b[b != 0]), rtol=1e-3)


def test_an_error_is_that_of_rows_left_out():
    problem = lasso.Lasso("simple", seed=1)
    greatest = problem(point(problem, np.ones(60)))
    assert greatest == pytest.approx(np.mean(problem.y**2), rel=0.2)  # with nearly all b at 0
    size = lasso.SIZES["simple"]
    _, y = lasso.drawn(size, np.random.default_rng([1, 60]))
    assert np.array_equal(y, problem.y)
    known = problem.largest * 100 ** ((some(problem) - 1) / 2)
    out = np.arange(30) % 5 == 0
    model = problem.linear.Lasso(alpha=1.0, fit_intercept=False, max_iter=2000).fit((problem.x / known)[~out], y[~out])
    expected = np.mean((problem.x[out] @ (model.coef_ / known) - y[out]) ** 2)
    assert problem.error(known, out) == pytest.approx(expected)


def test_features_that_matter_are_worth_small_penalties():
    problem = lasso.Lasso("high")
    b = np.linalg.lstsq(problem.x, problem.y, rcond=None)[0]
    best = np.abs(b) >= np.sort(np.abs(b))[-40]
    assert problem(point(problem, np.where(best, -1.0, 1.0))) < problem(point(problem, np.full(300, 1.0)))


# --- rover -----------------------------------------------------------------------------------------------------------


def test_a_straight_way_costs_its_length_and_its_trees():
    problem = rover.Rover()
    straight = np.linspace(0.05, 0.95, 30)
    path = problem.path(np.stack([straight, straight], -1).ravel())
    assert np.allclose(path[[0, -1]], [[0.05, 0.05], [0.95, 0.95]], atol=1e-3)
    hit = np.array([any(np.all((p >= c - 0.025) & (p < c + 0.025)) for c in rover.TREES) for p in path])
    assert np.array_equal(rover.blocked(path), hit)
    length = 0.9 * math.sqrt(2)
    expected = 5 - 0.05 * length - 20 * length * hit.mean()
    assert problem.value(np.stack([straight, straight], -1).ravel()) == pytest.approx(expected, abs=0.06)


def test_the_path_is_the_smoothing_spline_of_its_points():
    problem = rover.Rover()
    points = np.random.default_rng(1).uniform(size=(30, 2)) + np.linspace(0, 1, 30)[:, None]
    u = np.r_[0, np.linalg.norm(np.diff(points + rover.JITTER.reshape(30, 2), axis=0), axis=1).cumsum()]
    cubic = np.polynomial.Polynomial.fit  # so much smoothing leaves one cubic in u
    path = problem.path(points.ravel())
    for axis in range(2):
        wanted = cubic(u / u[-1], (points.ravel() + rover.JITTER).reshape(30, 2)[:, axis], 3)(np.linspace(0, 1, 1000))
        assert np.allclose(path[:, axis], wanted, atol=1e-6)


def test_outside_the_square_is_as_bad_as_a_tree():
    assert rover.blocked(np.array([[-0.01, 0.5], [0.5, 1.0], rover.TREES[0], [0.05, 0.05]])).tolist() == [1, 1, 1, 0]


# --- MuJoCo and the suite --------------------------------------------------------------------------------------------


def test_a_machine_of_mujoco_is_played_as_its_simulator_plays_it():
    import gymnasium

    problem = PolicySearch("swimmer")
    x = some(problem)
    weights = x.reshape(2, 9)
    simulator = gymnasium.make("Swimmer-v5")
    seen, _ = simulator.reset(seed=0)
    rewards = []
    for _ in range(1000):
        seen, reward, *_ = simulator.step((weights @ np.append(seen, 1.0)).clip(-1, 1).astype(np.float32))
        rewards.append(float(reward))
    assert problem(point(problem, x)) == pytest.approx(math.fsum(rewards))


def test_a_third_of_the_suite_is_held_out_and_the_parts_are_the_whole():
    parts = [suites.suite("thousands", half) for half in ("development", "held_out")]
    assert sorted(parts[0] + parts[1]) == sorted(suites.suite("thousands", "all"))
    assert len(parts[1]) == len(suites.suite("thousands", "all")) // 3
    assert not suites.suite("thousands", "validation")
    for name in parts[0] + parts[1]:
        assert 14 <= len(suites.problem(name).space) <= 300


@pytest.mark.parametrize(
    "make",
    [
        lambda: rotated.Rotated("levi", 3),
        lambda: rotated.Rotated("levy", 1),
        lambda: rotated.RotatedChoices("levy", -1),
        lambda: lasso.Lasso("hard"),
        lambda: PolicySearch("ant"),
    ],
)
def test_a_wrong_setting_is_refused(make):
    with pytest.raises(SettingError):
        make()
