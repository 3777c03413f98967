"""The racing line: offsets from a track's centre line to the least time in which the path through them is driven.

tracks         the tracks: centre line, waypoints, car
minimum_time   the least time along a given path, a convex problem, solved exactly
line           RacingLine
"""

from deepbore.problems.racing.line import RacingLine

__all__ = ["RacingLine"]
