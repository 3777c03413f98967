"""`Steering`: when a run ends before its trials are used up, and who hears of its trials."""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from torch import Tensor

from deepbore.checks import above, whole
from deepbore.data.outcome import Outcome, WrongReturn
from deepbore.errors import ObjectiveError
from deepbore.loop.engine import Engine
from deepbore.loop.interrupts import Interrupts
from deepbore.loop.lightning import as_called
from deepbore.loop.stopping import StopRule

Listener = Callable[[int, Outcome], object]  # hears of the row of a trial, and its outcome


class Steering:
    """Looks on as a run goes, and says when it is over.

    Under several ranks all end a run together: what one of them wants, all do.

    Args:
        rules: that end the run; already checked.
        timeout: seconds from `begin` on, > 0, after which no trial is begun; None for no limit.
        max_failures: after so many failures (>= 1) of this run, and no success, the objective is at fault; None for
            never.
        listeners: called after each trial, on the first rank only.
        unlocked: within it others may use the study; entered while trials are waited for.

    Attributes:
        is_over: whether no further trial is to be begun.
        interrupts: Ctrl-C and SIGTERM.

    Raises:
        SettingError: for a setting outside its range.
    """

    def __init__(
        self,
        rules: Sequence[StopRule] = (),
        timeout: float | None = None,
        max_failures: int | None = None,
        listeners: Sequence[Listener] = (),
        unlocked: Callable[[], AbstractContextManager[object]] = nullcontext,
    ):
        above(0, timeout=timeout)
        whole(1, max_failures=max_failures)
        self.rules, self.max_failures, self.listeners, self.unlocked = tuple(rules), max_failures, listeners, unlocked
        self.timeout = math.inf if timeout is None else float(timeout)
        self.interrupts = Interrupts()
        self.is_over = self._is_enough = False
        self._failures, self._has_success = 0, False
        self._error: ObjectiveError | None = None
        self._started = time.monotonic()

    @property
    def is_interrupted(self) -> bool:
        """Whether a signal has ended the run, on whichever rank."""
        return self.interrupts.pressed

    def begin(self, engine: Engine) -> None:
        """The run begins now."""
        self.engine = engine
        self.interrupts.take()
        self._started = time.monotonic()
        self._is_enough = self._is_enough or any(rule.is_met(engine.state) for rule in self.rules)
        self.look()

    def stop(self) -> None:
        """Has the run end after the running trials; from any thread."""
        self._is_enough = True

    def told(self, row: int, outcome: Outcome) -> None:
        """A trial has its outcome."""
        self._judge(outcome)
        self._is_enough = self._is_enough or any(rule.is_met(self.engine.state) for rule in self.rules)
        if self.engine.ranks.is_first:
            with as_called():
                for listener in self.listeners:
                    listener(row, outcome)

    def proposed(self, points: Tensor) -> None:
        """Points (q x d) have been proposed, and nobody has been asked to evaluate them yet."""
        if not self.engine.is_others_turn:  # whose proposals say nothing of what the classifier expects of its own
            self._weigh(points)
        self.look()

    def _weigh(self, points: Tensor) -> None:
        """Counts the rules to which the classifier's proposals (q x d) promise too little, so many times in a row."""
        state = self.engine.state
        poor = [rule for rule in self.rules if state.classifier.ready and rule.promises_too_little(state, points)]
        state.disappointed = {repr(rule): 1 + state.disappointed.get(repr(rule), 0) for rule in poor}
        self._is_enough = self._is_enough or any(state.disappointed[repr(rule)] >= rule.proposals for rule in poor)

    def look(self) -> None:
        """Brings `is_over` up to date, on all ranks at once.

        Raises:
            ObjectiveError: for an objective that gives no values.
        """
        if self._error is not None:
            raise self._error
        late = time.monotonic() - self._started >= self.timeout
        wants = self._is_enough or late or self.interrupts.pressed
        of_all = self.engine.ranks.gather((wants, self.interrupts.pressed))
        self.is_over = any(each for each, _ in of_all)
        self.interrupts.pressed = any(pressed for _, pressed in of_all)

    def _judge(self, outcome: Outcome) -> None:
        """Notes whether the objective is at fault: it begins with what is no value, or nothing but failures."""
        is_first = not (self._failures or self._has_success)
        self._failures += outcome.has_failed
        self._has_success = self._has_success or not outcome.has_failed
        if is_first and isinstance(outcome, WrongReturn):
            self._error = ObjectiveError(
                f"the run ends with its first evaluation, because {(outcome.reason or '').rstrip('.')}. Mend the "
                'objective; where there is no value, let it return float("nan").'
            )
        elif not self._has_success and self._failures == self.max_failures:
            self._error = ObjectiveError(
                f"the run ends, because all of its {self._failures} evaluations have failed. What was told is kept. "
                f"Mend the objective, or give max_failures=None. The last one said: {outcome.reason or 'nothing'}"
                + (f"\n\n{trace}" if (trace := outcome.attributes.get("traceback")) else "")
            )
