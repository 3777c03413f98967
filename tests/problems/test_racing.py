"""Racing lines against the original programs."""

import json
import math
import pickle
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import optimize

import deepbore
from deepbore.errors import PointError, SettingError
from deepbore.problems import RacingLine
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
    params = problem.space.decode(problem.space.points.sample(1, torch.Generator().manual_seed(0)))[0]
    assert pickle.loads(pickle.dumps(problem))(params) == problem(params) == problem(params)
    with pytest.raises(PointError):
        problem(named([0.39] * 12))
