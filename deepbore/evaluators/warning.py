"""Warnings of evaluations: a run goes on after them."""

import sys
import warnings

INSIDE = ("deepbore", "lightning", "torch")  # packages whose lines say nothing to who has called them


class EvaluationWarning(RuntimeWarning):
    """A trial has failed, or all workers are busy with what has timed out; the run goes on."""


def warn(message: str) -> None:
    """An EvaluationWarning, at the line of the user's own program that the run was started from."""
    frame, level = sys._getframe(1), 2
    while (above := frame.f_back) and frame.f_globals.get("__name__", "").partition(".")[0] in INSIDE:
        frame, level = above, level + 1
    warnings.warn(message, EvaluationWarning, stacklevel=level)
