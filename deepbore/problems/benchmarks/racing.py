"""`RacingLine`: the tracks, and offsets of their waypoints to the lap time."""

import json
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy.interpolate import CubicSpline

from deepbore.errors import SettingError
from deepbore.problems.base import Array, VectorProblem
from deepbore.problems.benchmarks.minimum_time import minimum_time
from deepbore.validation import one_of

F110 = 0.15875 / (0.15875 + 0.17145)  # share of the rear axle, which drives: distance of the front axle / wheelbase
ORCA = 0.029 / (0.029 + 0.033)
USED = 0.95  # of the width
UCB_ARCS = [  # length in m, and turn to the left in radians
    (1.0, 0.0),
    (4.5, math.pi),
    (2.25, -math.pi / 2),
    (4.5, math.pi),
    (9 / math.pi, 0.0),
    (2.25, math.pi / 2),
    (3.0, 0.0),  # leads beyond the last point
]
UCB_POINTS, UCB_SPACING = 192, 0.1  # in m


@dataclass(frozen=True)
class Layout:
    """A track without its centre line, and the car.

    Args:
        key: name of the track in files of tracks.
        width: in m, constant.
        drive: the largest acceleration along the path, as a share of g.
        nodes: indices of the points of the centre line beside which the waypoints are.
    """

    key: str
    width: float
    drive: float
    nodes: tuple[int, ...]

    @property
    def reach(self) -> float:
        """The greatest offset of a waypoint from the centre line, in m."""
        return USED * self.width / 2


LAYOUTS = {
    "ucb": Layout("UCB", 0.8, F110, (10, 32, 44, 67, 83, 100, 113, 127, 144, 160, 175, 191)),
    "ethz_a": Layout(
        "ETHZMobil", 0.46, ORCA,
        (7, 21, 37, 52, 66, 81, 97, 111, 136, 160, 175, 191, 205, 220, 236, 250, 275, 299, 337, 376),
    ),
    "ethz_b": Layout(
        "ETHZ", 0.37, ORCA,
        (33, 67, 116, 166, 203, 239, 274, 309, 344, 362, 382, 407, 434, 448, 470, 514, 550, 586, 622, 657, 665),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class CentreLine:
    """A polyline around the track, closed from its last point to its first.

    Args:
        points: in m (n x 2), the first one not repeated.
    """

    points: Array

    @cached_property
    def distances(self) -> Array:
        """The distance along the line to each point (n)."""
        return lengths(self.points)

    @property
    def length(self) -> float:
        """The length of the closed line, in m."""
        return float(self.distances[-1] + np.hypot(*(self.points[0] - self.points[-1])))

    def at(self, distance: Array) -> Array:
        """Distances (...) -> points (... x 2); the last segment is extended beyond the last point."""
        before = np.clip(np.searchsorted(self.distances, distance, side="right") - 1, 0, len(self.points) - 2)
        segment = self.points[before + 1] - self.points[before]
        share = (distance - self.distances[before]) / (self.distances[before + 1] - self.distances[before])
        return np.asarray(self.points[before] + share[..., None] * segment)


def lengths(points: Array) -> Array:
    """The distance along a polyline (n x 2) to each of its points (n)."""
    steps = np.diff(points, axis=0)
    return np.append(0.0, np.cumsum(np.hypot(steps[:, 0], steps[:, 1])))


def ucb_centre_line() -> CentreLine:
    """The centre line of UC Berkeley's track: straight lines and arcs."""
    distance = UCB_SPACING * np.arange(UCB_POINTS, dtype=np.float64)
    start, heading, driven = np.zeros(2), 0.0, 0.0
    points = np.zeros((UCB_POINTS, 2))
    for length, turn in UCB_ARCS:
        along = distance - driven
        here = along >= -1e-9
        points[here] = start + _arc(along[here], heading, turn / length)
        start = start + _arc(np.array([length]), heading, turn / length)[0]
        heading, driven = heading + turn, driven + length
    return CentreLine(points)


def _arc(along: Array, heading: float, curvature: float) -> Array:
    """Distances (n) along an arc from the origin -> points (n x 2)."""
    if curvature == 0:
        return np.outer(along, [math.cos(heading), math.sin(heading)])
    after = heading + curvature * along
    x, y = np.sin(after) - math.sin(heading), math.cos(heading) - np.cos(after)
    return np.stack([x, y], axis=1) / curvature


def read_centre_line(path: str | Path, layout: Layout) -> CentreLine:
    """The centre line of a track from a file {"tracks": {key: {"x_center": [...], "y_center": [...]}}}.

    Raises:
        SettingError: if the file cannot be read, is no such JSON, or its line does not reach to the last waypoint.
    """
    shape = f'{{"tracks": {{"{layout.key}": {{"x_center": [...], "y_center": [...]}}}}}}'
    try:
        track = json.loads(Path(path).read_text(encoding="utf-8"))["tracks"][layout.key]
        points = np.array([track["x_center"], track["y_center"]], dtype=np.float64).T
    except (OSError, KeyError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise SettingError(
            f"tracks must be a JSON file like {shape}, but got tracks={str(path)!r}: {reason}"
        ) from error
    needed = layout.nodes[-1] + 1
    if (
        points.ndim != 2
        or len(points) != needed
        or not np.isfinite(points).all()
        or (np.diff(lengths(points)) <= 0).any()
    ):
        raise SettingError(
            f"{layout.key} must have {needed} distinct finite points in a row, but {str(path)!r} has others "
            f"({len(points)} numbers). Give the arrays of bayesrace's track."
        )
    return CentreLine(points)


SAMPLES = 100  # points of the path
END = 1e-3  # m between the end of the path and the last waypoint


class RacingLine(VectorProblem):
    """Lap time of a miniature car on the best line through given waypoints, in s, minimised (BORE K.4).

    Parameter i is the offset of waypoint i to the left of the centre line, in m. The path is a natural cubic spline
    from the start on the centre line through the waypoints, once around, to a point on the centre line beside the first
    waypoint. The value is the least time to drive it from a standing start (Lipp & Boyd 2014), to 1e-6 s, without
    noise. Whether the path stays on the track is not checked.

    | track | parameters | bounds | car |
    |---|---|---|---|
    | "ucb", UC Berkeley | 12 | +-0.38 | 1:10 |
    | "ethz_a", ETH Zürich's ETHZMobil | 20 | +-0.2185 | 1:43 |
    | "ethz_b", ETH Zürich's ETHZ | 21 | +-0.17575 | 1:43 |

    The last two are taken for the paper's A and B because of their dimensions. The problem of UC Berkeley's track with
    20 parameters (Oliveira et al. 2022) is none of these: its definition is not available. Values are the true optima
    of the convex problem; the original's solver reports 2e-4 to 2e-3 s less.

    Args:
        track: "ucb", "ethz_a" or "ethz_b".
        tracks: a JSON file with the centre line of ETH Zürich's tracks, in m, which are not shipped:
            `{"tracks": {"ETHZMobil": {"x_center": [...], "y_center": [...]}, "ETHZ": {...}}}`. None for UC Berkeley's,
            which consists of lines and arcs.

    Raises:
        SettingError: for another track, and for a file that is missing, not needed, or without this track.

    Example:
        >>> problem = RacingLine("ucb")
        >>> round(problem({name: 0.0 for name in problem.space.names}), 5)
        5.34595

    References:
        Jain & Morari, Computing the Racing Line Using Bayesian Optimization, CDC 2020; github.com/jainachin/bayesrace.
        Liniger, Domahidi & Morari, Optimization-Based Autonomous Racing of 1:43 Scale RC Cars, 2015 (ETH Zürich's).
        Rosolia & Borrelli, Learning How to Autonomously Race a Car, 2019 (UC Berkeley's).
    """

    def __init__(self, track: str, tracks: str | Path | None = None):
        one_of(LAYOUTS, track=track)
        self.track, self._layout = track, LAYOUTS[track]
        reach = self._layout.reach
        super().__init__([(-reach, reach)] * len(self._layout.nodes))
        line = self._centre_line(tracks)
        nodes = list(self._layout.nodes)
        distances = line.distances[nodes]
        near = line.length / (5 * len(nodes))
        ahead = line.at(distances + near) - line.at(distances - near)
        self._centres = line.at(distances)
        self._lefts = np.stack([-ahead[:, 1], ahead[:, 0]], axis=1) / np.hypot(ahead[:, 0], ahead[:, 1])[:, None]
        self._start = line.points[0]

    def _centre_line(self, tracks: str | Path | None) -> CentreLine:
        if self.track == "ucb":
            if tracks is not None:
                raise SettingError(f"tracks is for ETH Zürich's tracks, but got {tracks!r} for 'ucb'. Leave it out.")
            return ucb_centre_line()
        if tracks is None:
            way_out = (
                f"RacingLine({self.track!r}, tracks=PATH); by name, its path is DEEPBORE_TRACKS in the environment"
            )
            raise SettingError(
                f"{self.track!r} needs a file with its centre line, but got tracks=None. Give {way_out}."
            )
        return read_centre_line(tracks, self._layout)

    def waypoints(self, x: Array) -> Array:
        """Offsets (d) -> the points of the path's spline (d + 2 x 2), in m."""
        return np.concatenate([self._start[None], self._centres + x[:, None] * self._lefts, self._centres[:1]])

    def path(self, x: Array) -> Array:
        """Offsets (d) -> points along the path (100 x 2), in m."""
        points = self.waypoints(x)
        distances = lengths(points)
        spline = CubicSpline(distances, points, bc_type="natural")
        return np.asarray(spline(np.arange(SAMPLES) / (SAMPLES - 1) * (distances[-1] - END)))

    def value(self, x: Array) -> float:
        """The lap time with these offsets (d), in s."""
        return minimum_time(self.path(x), self._layout.drive)
