"""The problem: offsets of the waypoints to the lap time."""

from pathlib import Path

import numpy as np
from scipy.interpolate import CubicSpline

from deepbore.checks import one_of
from deepbore.errors import SettingError
from deepbore.problems.base import Array, VectorProblem
from deepbore.problems.racing.minimum_time import minimum_time
from deepbore.problems.racing.tracks import LAYOUTS, CentreLine, lengths, read_centre_line, ucb_centre_line

SAMPLES = 100  # points of the path
END = 1e-3  # m, what the path is short of the last waypoint


class RacingLine(VectorProblem):
    """Lap time of a miniature car on the best line through given waypoints, in s, minimised (BORE K.4).

    Parameter i is how far the waypoint i is to the left of the centre line, in m. A natural cubic spline leads through
    the waypoints, from the start, on the centre line, once around and to a point that is on the centre line again,
    beside the first waypoint. The value is the least time to drive that path from a standing start (Lipp & Boyd 2014),
    to 1e-6 s, without noise. Whether the path stays on the track is not looked at.

    | track | parameters | bounds | car |
    |---|---|---|---|
    | "ucb", UC Berkeley | 12 | +-0.38 | 1:10 |
    | "ethz_a", ETH Zürich's ETHZMobil | 20 | +-0.2185 | 1:43 |
    | "ethz_b", ETH Zürich's ETHZ | 21 | +-0.17575 | 1:43 |

    That the paper's A and B are these two is concluded from their dimensions. The problem of UC Berkeley's track with
    20 parameters (Oliveira et al. 2022) is none of these: its definition could not be found. Values are the true optima
    of the convex problem; the original's solver reports 2e-4 to 2e-3 s less.

    Args:
        track: "ucb", "ethz_a" or "ethz_b".
        tracks: a JSON file with the centre line of ETH Zürich's tracks, in m, which are not shipped:
            `{"tracks": {"ETHZMobil": {"x_center": [...], "y_center": [...]}, "ETHZ": {...}}}`. None for UC Berkeley's,
            which is made of lines and arcs.

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
        """Offsets (d) -> the points that the path goes through (d + 2 x 2), in m."""
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
