"""Warnings of suspicious values."""

from deepbore.data.observations import Observations
from deepbore.evaluators.base import SuspiciousValue, warn
from deepbore.strategies.confirming import steps_left

NOTE = "suspicious"  # the attribute of a trial that says why
TOO_GOOD = "better than the trials around it and all others suggest"
TOO_BAD = "far worse than all ordinary ones, although most trials near it are good"
WAY_OUT = (
    "Until others confirm it, it counts as a failed trial; it stays in the results, and `study.suspicious` lists it. "
    "If it is wrong, `study.withdraw({})` takes it back."
)


def name_suspicious(observations: Observations, aloud: bool = True) -> None:
    """Warns of each suspicious value once, and notes in the trial why it is suspicious.

    Values that are too good are named when the trials beside them have been asked for, of those that are too bad only
    the first.

    Args:
        observations: all trials.
        aloud: whether to warn: on one of several ranks.
    """
    suspicion = observations.suspicion
    unnamed = [(row, TOO_GOOD) for row in suspicion.too_good if not steps_left(observations, row)]
    if not any(NOTE in observations.attributes_of(row) for row in suspicion.too_bad):
        unnamed += [(row, TOO_BAD) for row in suspicion.too_bad[:1]]
    for row, why in unnamed:
        if NOTE in observations.attributes_of(row):
            continue
        observations.annotate(row, {NOTE: why})
        if aloud:
            values = ", ".join(f"{value:.6g}" for value in observations.user_values[row].tolist())
            warn(f"the value of trial {row}, {values}, is {why}. {WAY_OUT.format(row)}", SuspiciousValue)
