"""Checks of the contract of an evaluator."""

from collections.abc import Callable, Sequence
from operator import itemgetter, methodcaller
from typing import Any

from deepbore.data.trial import Trial
from deepbore.evaluators import Evaluator, Finished
from deepbore.testing.require import require

Make = Callable[[Callable[[dict[str, Any]], Any]], Evaluator]
MOST_CALLS = 1000  # of `collect`, each of which waits for an event


def check_evaluator(make: Make) -> None:
    """Runs all checks of an evaluator.

    The objectives are `operator.itemgetter("x")` and the like, which every engine can send to another process.

    Args:
        make: objective -> a new evaluator of it.

    Raises:
        AssertionError: with the violated rule and the values.

    Example:
        >>> from deepbore import SerialEvaluator
        >>> check_evaluator(SerialEvaluator)
    """
    check_outcomes(make)
    check_failures(make)
    check_untouched_params(make)
    check_counts(make)


def check_outcomes(make: Make) -> None:
    """Every trial is evaluated once and collected with its value, in any order."""
    trials = [Trial(row, {"x": float(row * row)}) for row in range(6)]
    finished = _evaluated(make(itemgetter("x")), trials)
    ids = sorted(one.trial.id for one in finished)
    require(ids == list(range(6)), f"trials 0 ... 5 must be collected once each, but got {ids}")
    for one in finished:
        expected = (float(one.trial.id**2),)
        require(
            one.outcome.values == expected,
            f"trial {one.trial.id} must come with its values {expected}, but came with {one.outcome.values}",
        )


def check_failures(make: Make) -> None:
    """An objective that raises or returns no number gives a failed outcome with a reason; other trials continue."""
    given: list[dict[str, Any]] = [{"x": 1.0}, {}, {"x": "high"}, {"x": float("nan")}, {"x": 2.0}]
    finished = _evaluated(make(itemgetter("x")), [Trial(row, params) for row, params in enumerate(given)])
    outcomes = {one.trial.id: one.outcome for one in finished}
    for row, words in ((1, "KeyError"), (2, "high"), (3, "nan")):
        outcome = outcomes[row]
        require(outcome.has_failed, f"an objective that fails with {words} must fail its trial, but gave {outcome}")
        reason = outcome.reason or ""
        require(words in reason, f"the reason of a failure must say {words!r}, but says {reason!r}")
    values = outcomes[0].values + outcomes[4].values
    require(values == (1.0, 2.0), f"the trials beside failed ones must have the values (1.0, 2.0), but have {values}")


def check_untouched_params(make: Make) -> None:
    """An objective that changes its configuration does not change the trial."""
    (one,) = _evaluated(make(methodcaller("pop", "x")), [Trial(0, {"x": 3.0})])
    require(one.outcome.values == (3.0,), f"the value must be 3, but the outcome is {one.outcome}")
    require(one.trial.params == {"x": 3.0}, f"a trial's configuration must stay, but is {one.trial.params} afterwards")


def check_counts(make: Make) -> None:
    """`outstanding` and `free` are right, `collect` of nothing gives nothing, and it can be used after `close`."""
    evaluator = make(itemgetter("x"))
    try:
        require(evaluator.workers >= 1, f"workers >= 1 must hold, but is {evaluator.workers}")
        require(not evaluator.collect(), "nothing outstanding must give nothing to collect")
        for row in range(3):
            evaluator.submit(Trial(row, {"x": 0.0}))
        require(evaluator.outstanding == 3, f"3 submitted trials must be outstanding, but {evaluator.outstanding} are")
        require(evaluator.free <= evaluator.workers - 1, f"a worker must be busy, but {evaluator.free} are free")
        evaluator.close()
        left = evaluator.outstanding
        require(left == 0, f"close must drop what is outstanding, but {left} are left")
        ids = [one.trial.id for one in _evaluated(evaluator, [Trial(7, {"x": 7.0})])]
        require(ids == [7], f"after close only trial 7 is submitted, but trials {ids} came")
    finally:
        evaluator.close()


def _evaluated(evaluator: Evaluator, trials: Sequence[Trial]) -> list[Finished]:
    finished: list[Finished] = []
    try:
        evaluator.open()
        for trial in trials:
            evaluator.submit(trial)
        for _ in range(MOST_CALLS):
            if not evaluator.outstanding:
                return finished
            finished += evaluator.collect()
    finally:
        evaluator.close()
    raise AssertionError(f"{len(trials)} trials must be over after {MOST_CALLS} collects, but {len(finished)} are")
