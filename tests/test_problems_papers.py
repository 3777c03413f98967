"""Problems of the papers: robot pushing and racing lines against the original programs, a table against training."""

import itertools
import json
import math
import pickle
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import optimize
from sklearn.datasets import load_digits

import deepbore
from deepbore.errors import MissingPackage, PointError, SettingError
from deepbore.problems import (
    DigitsArchitecture,
    Flat,
    Forrester,
    Noisy,
    Problem,
    RacingLine,
    RobotPushing,
    Rosenbrock,
    suites,
)
from deepbore.problems.benchmarks.minimum_time import minimum_time

SHARED = Path(deepbore.__file__).parents[2] / "shared" / "problems"
TRACKS = {"ucb": "UCB", "ethz_a": "ETHZMobil", "ethz_b": "ETHZ"}


@cache
def golden(name):
    path = SHARED / f"{name}_golden.json"
    if not path.exists():
        pytest.skip("the original programs' values are not beside this checkout")
    return json.loads(path.read_text())


def named(x):
    return {f"x{i}": float(value) for i, value in enumerate(x)}


# --- robot pushing ---------------------------------------------------------------------------------------------------

FREE = [-4, 0, 0, -5, 3, 0, 4, 0, 0, 5, 3, 0, 0, 0]  # hands that touch nothing
PUSH = [0, 0.4, 0, 4, 5, 0, 4, 4, 0, 5, 3, 0, 0, 0]  # hand 1 pushes the square away from the table's middle


def test_rewards_are_those_of_the_original():
    problem = RobotPushing()
    bounds = [(parameter.low, parameter.high) for parameter in problem.space.parameters.values()]
    np.testing.assert_allclose(bounds, np.transpose(golden("robot_push")["bounds"]))
    for case in golden("robot_push")["cases"]:
        x = np.array(case["x"])
        x[[2, 3, 8, 9]] += case["noise"]
        assert problem.value(x) == pytest.approx(case["y"], abs=1e-3), case["name"]  # 1e-9 with the same compiler


def test_what_is_not_touched_gives_nothing():
    assert RobotPushing()(named(FREE)) == 0.0


def test_the_reward_is_what_the_objects_come_nearer_to_their_goals():
    pushed_up = RobotPushing()(named(PUSH))
    assert 0 < pushed_up < math.hypot(4, 1.5)  # the square's way to its goal
    down = [0, 3.6, 0, -4, *PUSH[4:]]
    assert RobotPushing()(named(down)) < 0


def test_a_call_repeats_and_the_problem_goes_to_worker_processes():
    problem = RobotPushing()
    values = [problem(named(PUSH)), problem(named(PUSH)), pickle.loads(pickle.dumps(problem))(named(PUSH))]
    assert len(set(values)) == 1


def test_the_wanted_velocities_have_noise_of_the_seed():
    here, there, other = (RobotPushing(noise=0.01, seed=seed) for seed in (0, 0, 1))
    values = [here(named(PUSH)), here(named(PUSH))]
    assert values == [there(named(PUSH)), there(named(PUSH))]
    assert len({*values, other(named(PUSH)), here.true_value(named(PUSH))}) == 4
    assert values == pytest.approx([here.true_value(named(PUSH))] * 2, abs=0.1)
    assert here.true_value(named(PUSH)) == RobotPushing()(named(PUSH))


def test_impossible_settings_of_robot_pushing_are_refused(monkeypatch):
    for settings in ({"noise": -0.1}, {"noise": math.nan}, {"seed": -1}, {"seed": 0.5}):
        with pytest.raises(SettingError):
            RobotPushing(**settings)
    with pytest.raises(PointError):
        RobotPushing()(named([*FREE[:-1], 6.0]))
    monkeypatch.setitem(sys.modules, "Box2D", None)
    with pytest.raises(MissingPackage, match=r"Box2D.*pip install 'deepbore\[benchmarks\]'"):
        RobotPushing()


# --- racing lines ----------------------------------------------------------------------------------------------------


def racing(track):
    if track == "ucb":
        return RacingLine("ucb")
    golden("racing")
    return RacingLine(track, tracks=SHARED / "racing_golden.json")


@pytest.mark.parametrize("track", TRACKS)
def test_lap_times_are_exact(track):
    problem = racing(track)
    cases = [case for case in golden("racing")["cases"] if case["track"] == TRACKS[track]]
    assert len(cases) == 12
    for case in cases:
        assert problem.value(np.array(case["x"])) == pytest.approx(case["y_exact"], abs=1e-6), case["name"]
        if "path_x" in case:
            waypoints = problem.waypoints(np.array(case["x"]))
            np.testing.assert_allclose(waypoints.T, [case["waypoints_x"], case["waypoints_y"]], atol=1e-12)
            path = problem.path(np.array(case["x"]))
            np.testing.assert_allclose(path.T, [case["path_x"], case["path_y"]], atol=1e-10)
    bounds = [(parameter.low, parameter.high) for parameter in problem.space.parameters.values()]
    np.testing.assert_allclose(bounds, np.transpose(golden("racing")["bounds"][TRACKS[track]]))


def test_ucbs_centre_line_is_the_original_one():
    track = golden("racing")["tracks"]["UCB"]
    nodes = track["nodes_0based"]
    on_the_line = RacingLine("ucb").waypoints(np.zeros(12))[1:-1]
    np.testing.assert_allclose(on_the_line.T, np.array([track["x_center"], track["y_center"]])[:, nodes], atol=1e-12)


def test_a_straight_line_is_driven_at_full_throttle():
    path = np.outer(np.linspace(0, 5, 100), [0.6, 0.8])
    # from rest at the drive's limit 2 s = a t^2; the discretisation is exact for a constant acceleration
    assert minimum_time(path, drive=0.4) == pytest.approx(math.sqrt(2 * 5 / (0.4 * 9.81)), rel=1e-7)


def test_the_minimum_time_is_that_of_a_general_solver():
    angle = np.linspace(0, 1.5, 9)
    path = np.stack([np.sin(angle) + 0.1 * angle**2, 1 - np.cos(angle)], axis=1)
    assert minimum_time(path, drive=0.45) == pytest.approx(by_general_solver(path, 0.45), rel=1e-5)


def by_general_solver(path, drive):
    """The same convex problem, written from its definition, by SciPy's SLSQP."""
    h = 1 / (len(path) - 1)
    first, second = np.diff(path, axis=0) / h, np.zeros((len(path) - 1, 2))
    for j in range(len(second)):
        ends = min(max(j - 2, 0), len(path) - 6)
        if j in (0, len(path) - 2):
            weights, at = [0.5, -1, 0.5], (0 if j == 0 else len(path) - 3)
        elif j in (1, len(path) - 3):
            weights, at = [0.5, -0.5, -0.5, 0.5], j - 1
        else:
            weights, at = [-5 / 48, 13 / 16, -17 / 24, -17 / 24, 13 / 16, -5 / 48], ends
        second[j] = np.array(weights) @ path[at : at + len(weights)] / h**2
    along = first / np.linalg.norm(first, axis=1, keepdims=True)

    def left(b):
        b = np.append(0.0, b)
        acceleration = first * (np.diff(b) / (2 * h))[:, None] + second * ((b[:-1] + b[1:]) / 2)[:, None]
        grip = 9.81**2 - np.sum(acceleration**2, axis=1)
        return np.append(grip / 9.81**2, drive - np.sum(acceleration * along, axis=1) / 9.81)

    def time(b):
        roots = np.sqrt(np.append(0.0, np.maximum(b, 1e-12)))
        return np.sum(2 * h / (roots[:-1] + roots[1:]))

    found = optimize.minimize(
        time,
        np.full(len(path) - 1, 0.1),
        method="SLSQP",
        bounds=[(1e-6, None)] * (len(path) - 1),
        constraints={"type": "ineq", "fun": left},
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert found.success
    return found.fun


def test_a_track_that_is_none_is_refused(tmp_path):
    with pytest.raises(SettingError, match="track must be one of"):
        RacingLine("monza")
    with pytest.raises(SettingError, match="DEEPBORE_TRACKS"):
        RacingLine("ethz_a")
    with pytest.raises(SettingError, match="Leave it out"):
        RacingLine("ucb", tracks="tracks.json")
    with pytest.raises(SettingError, match="FileNotFoundError"):
        RacingLine("ethz_a", tracks=tmp_path / "none.json")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("[]", "TypeError"),
        ("{", "JSONDecodeError"),
        ('{"tracks": {"UCB": {}}}', "KeyError: 'ETHZMobil'"),
        ('{"tracks": {"ETHZMobil": {"x_center": [1, 2], "y_center": [1, 2]}}}', "377 distinct finite points"),
        ('{"tracks": {"ETHZMobil": {"x_center": [1, 2], "y_center": [1]}}}', "ValueError"),
        (json.dumps({"tracks": {"ETHZMobil": {"x_center": [0.0] * 377, "y_center": [0.0] * 377}}}), "377 distinct"),
    ],
)
def test_a_file_without_the_track_is_refused(content, says, tmp_path):
    path = tmp_path / "tracks.json"
    path.write_text(content)
    with pytest.raises(SettingError, match=says):
        RacingLine("ethz_a", tracks=path)


def test_a_racing_line_repeats_and_goes_to_worker_processes():
    problem = RacingLine("ucb")
    params = problem.space.decode(problem.space.sample(1, torch.Generator().manual_seed(0)))[0]
    assert pickle.loads(pickle.dumps(problem))(params) == problem(params) == problem(params)
    with pytest.raises(PointError):
        problem(named([0.39] * 12))


# --- names -----------------------------------------------------------------------------------------------------------


def test_every_name_of_the_papers_makes_a_problem(monkeypatch):
    for name in suites.suite("papers"):
        if not name.startswith("racing/ethz"):
            assert isinstance(suites.problem(name, seed=1), Problem)
    monkeypatch.delenv("DEEPBORE_TRACKS", raising=False)
    with pytest.raises(SettingError, match="DEEPBORE_TRACKS"):
        suites.problem("racing/ethz_b")
    golden("racing")
    monkeypatch.setenv("DEEPBORE_TRACKS", str(SHARED / "racing_golden.json"))
    assert len(suites.problem("racing/ethz_b").space.names) == 21


def test_the_six_of_batch_bore_are_functions_of_known_optimum():
    names = suites.suite("batch-bore")
    assert len(names) == 6
    assert {"camel", "hartmann3"} < set(names)
    assert all(math.isfinite(suites.problem(name).optimum) for name in names)


@pytest.mark.parametrize(
    ("name", "kind", "scale"),
    [("noisy/forrester", Forrester, 0.05), ("noisy/rosenbrock4", Rosenbrock, 0.01), ("noise-only", Flat, 1.0)],
)
def test_the_papers_noise(name, kind, scale):
    problem = suites.problem(name, seed=2)
    assert isinstance(problem, Noisy)
    assert isinstance(problem.problem, kind)
    assert (problem.scale, problem.seed, problem.kind) == (scale, 2, "normal")


def test_noise_alone_is_the_same_everywhere():
    problem = suites.problem("noise-only")
    points = problem.space.decode(problem.space.sample(500, torch.Generator().manual_seed(0)))
    values = np.array([problem(params) for params in points])
    assert values.mean() == pytest.approx(0, abs=4 / 500**0.5)
    assert values.std() == pytest.approx(1, abs=0.15)
    assert {problem.true_value(params) for params in points} == {0.0}
    assert problem.regret(0.0) == 0.0


# --- architectures ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def architecture():
    return DigitsArchitecture()


def every(problem):
    names = problem.space.names
    choices = [problem.space.parameters[name].choices for name in names]
    return [dict(zip(names, levels, strict=True)) for levels in itertools.product(*choices)]


def test_the_optimum_is_the_best_architecture_of_all(architecture):
    values = [architecture(params) for params in every(architecture)[::7]]
    assert architecture.space.cardinality == 4608
    assert 0 < architecture.optimum <= min(values) < 0.12
    assert max(values) <= 1
    assert architecture.optimum in [architecture._errors[index] for index in np.ndindex(architecture._errors.shape)]


@pytest.mark.parametrize(
    "changed", [{}, {"dropout": 0.25}, {"decay": 0.5, "layers": 3}, {"learning_rate": 0.1, "units": 64}]
)
def test_the_table_is_what_training_gives(architecture, changed):
    params = {"learning_rate": 0.01, "decay": 0.9, "dropout": 0.0, "batch_size": 128, "layers": 1, "units": 16}
    params |= changed
    assert architecture(params) == pytest.approx(np.mean([trained_error(params, seed) for seed in (0, 1)]), abs=0.01)


def trained_error(params, seed):
    """One network at a time, by torch's own layers and Adam."""
    images, labels = load_digits(return_X_y=True)
    x, y = torch.from_numpy(images).float() / 16, torch.from_numpy(labels)
    generator = torch.Generator().manual_seed(seed)
    sizes = [64] + [params["units"]] * params["layers"] + [10]
    layers = [torch.nn.Linear(before, after) for before, after in itertools.pairwise(sizes)]
    for layer in layers:
        torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)
        torch.nn.init.zeros_(layer.bias)
    optimizer = torch.optim.Adam([weight for layer in layers for weight in layer.parameters()], params["learning_rate"])
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, params["decay"])

    def logits(hidden, dropout):
        for layer in layers[:-1]:
            hidden = layer(hidden).relu()
            if dropout is not None:
                kept = torch.rand(hidden.shape, generator=generator) >= dropout
                hidden = hidden * kept / (1 - dropout)
        return layers[-1](hidden)

    for _ in range(10):
        for batch in torch.split(torch.randperm(1200, generator=generator), params["batch_size"]):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(logits(x[batch], params["dropout"]), y[batch]).backward()
            optimizer.step()
        schedule.step()
    return float((logits(x[1200:], None).argmax(dim=1) != y[1200:]).double().mean())


def test_a_configuration_outside_the_table_is_refused(architecture):
    params = every(architecture)[0]
    assert pickle.loads(pickle.dumps(architecture))(params) == architecture(params)
    for changed in ({"units": 100}, {"layers": 0}, {"width": 8}):
        with pytest.raises(PointError):
            architecture(params | changed)
