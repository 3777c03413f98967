"""Warnings of suspicious values."""

from deepbore.data.observations import Observations
from deepbore.evaluators.base import SuspiciousValue, warn
from deepbore.strategies.base import Strategy
from deepbore.strategies.confirming import steps_left

NOTE = "suspicious"  # the attribute of a trial that says why
TOO_GOOD = "better than the trials around it and all others suggest"
WAY_OUT = (
    "Until others confirm it, it counts as a failed trial; it stays in the results, and `study.suspicious` lists it. "
    "If it is wrong, `study.withdraw({})` takes it back."
)


def name_suspicious(observations: Observations, strategy: Strategy, aloud: bool = True) -> None:
    """Warns of each value that is too good once, and notes it in the trial, when those beside it have been asked for.

    Of a trial that the strategy would not propose, as by constraints of its search, it warns at once.

    Values that are too bad are not named: they mislead nobody, and some of an ordinary run are for a while.

    Args:
        observations: all trials.
        strategy: of the run.
        aloud: whether to warn: on one of several ranks.
    """
    for row in observations.suspicion.too_good:
        asks = bool(strategy.accepts(observations.space, observations.points[[row]]))
        if (asks and steps_left(observations, row)) or NOTE in observations.attributes_of(row):
            continue
        observations.annotate(row, {NOTE: TOO_GOOD})
        if aloud:
            values = ", ".join(f"{value:.6g}" for value in observations.user_values[row].tolist())
            warn(f"the value of trial {row}, {values}, is {TOO_GOOD}. {WAY_OUT.format(row)}", SuspiciousValue)
