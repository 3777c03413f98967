"""Early ends of a run: stop rules, limits and signals; and listeners to its trials."""

import math
import os
import signal
import sys
import threading
import time
import warnings
from abc import ABC
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import timedelta
from types import FrameType, TracebackType
from typing import Any, Self

import torch
from torch import Tensor

from deepbore.acquisition import LogExpectedImprovement
from deepbore.compute.devices import one_thread
from deepbore.data.outcome import Outcome, Status, WrongReturn
from deepbore.errors import DeprecatedUse, ObjectiveError, SettingError
from deepbore.evaluators.base import warn
from deepbore.loop.engine import Engine
from deepbore.loop.quiet import in_caller_state
from deepbore.loop.state import RunState
from deepbore.strategies import Proposal
from deepbore.validation import above, between, required, seconds, whole

MOMENT = 1e-9  # seconds
MESSAGE = "{}: the run ends when the running trials are done; once more ends it at once."
DEFAULTS: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


class Interrupts:
    """Handler of Ctrl-C, and of SIGTERM, which clusters send, during a run.

    While trials are evaluated (`is_gentle`) the first signal is noted and the second raises KeyboardInterrupt;
    otherwise the first raises it. Signals that the program itself handles or ignores are left alone, and so are all
    signals outside the main thread. The previous handlers are restored at the end.

    Attributes:
        pressed: whether there was a signal.
        is_gentle: whether the first signal is only noted.
    """

    def __init__(self) -> None:
        self.pressed = self.is_gentle = False
        self._before: dict[int, Any] = {}
        self._process = os.getpid()

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: own for number, own in DEFAULTS.items() if signal.getsignal(number) == own}
        self.take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def take(self) -> None:
        """Installs the handlers, again if others were installed since, as Lightning does for SIGTERM."""
        for number in self._before:
            signal.signal(number, self._handle)

    @contextmanager
    def gently(self) -> Iterator[None]:
        """A context in which the first signal is only noted."""
        self.is_gentle = True
        try:
            yield
        finally:
            self.is_gentle = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # a process forked by the objective
            signal.signal(number, DEFAULTS[number])
            signal.raise_signal(number)
            return
        if self.pressed or not self.is_gentle:
            self.pressed = True
            raise KeyboardInterrupt
        self.pressed = True
        with suppress(Exception):  # a busy or closed stream
            print(MESSAGE.format("Ctrl-C" if number == signal.SIGINT else "SIGTERM"), file=sys.stderr, flush=True)


class StopRule(ABC):  # noqa: B024  # each rule overrides one of two methods
    """A rule that ends a run, by its trials (`is_met`) or its proposals (`predicts_little_gain`).

    Rules do not modify the state.

    Attributes:
        proposals: the number of consecutive iterations with little predicted gain that end a run.
    """

    proposals: int = 1

    def check(self, state: RunState) -> None:  # most rules suit all runs
        """Raises SettingError unless the rule suits this run."""

    def is_met(self, state: RunState) -> bool:
        """Whether the trials end the run; called after each trial."""
        return False

    def predicts_little_gain(self, state: RunState, points: Tensor) -> bool:
        """Whether points (q x d) proposed by the classifier are not worth an evaluation."""
        return False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "promises_too_little" in vars(cls):
            message = "StopRule.promises_too_little is now StopRule.predicts_little_gain."
            warnings.warn(f"{cls.__qualname__}: {message}", DeprecatedUse, stacklevel=2)
            cls.predicts_little_gain = cls.promises_too_little  # type: ignore[attr-defined, method-assign]


@dataclass(frozen=True)
class NoImprovement(StopRule):
    """Ends a run after k consecutive trials without a new best value, including failures and the design.

    It ends no run before the first feasible value, with which others are compared: `max_failures` does. Trials count in
    the order of their outcomes, which with several workers differs from the order of asking. Adding earlier results
    restarts the count.

    Args:
        trials: k >= 1.

    Raises:
        SettingError: for k < 1.
    """

    trials: int

    def __post_init__(self) -> None:
        required(trials=self.trials)
        whole(1, trials=self.trials)

    def check(self, state: RunState) -> None:
        _one_objective(self, state)

    def is_met(self, state: RunState) -> bool:
        believed = state.observations.believed
        return believed.best is not None and believed.ledger.ranking.n_since_best >= self.trials


@dataclass(frozen=True)
class TargetReached(StopRule):
    """Ends a run when a feasible trial reaches a target; earlier results of this study count.

    Args:
        value: the target in the sign of the user, an upper bound to minimise, and a lower bound to maximise.

    Raises:
        SettingError: for anything but a finite number.
    """

    value: float

    def __post_init__(self) -> None:
        required(value=self.value)
        between(-math.inf, math.inf, value=self.value)

    def check(self, state: RunState) -> None:
        _one_objective(self, state)

    def is_met(self, state: RunState) -> bool:
        best = state.observations.believed.best
        if best is None or best.value is None:
            return False
        return best.value <= self.value if state.observations.direction == "minimize" else best.value >= self.value


@dataclass(frozen=True)
class ExpectedImprovementBelow(StopRule):
    """Ends a run when the expected improvement of its proposals is negligible.

    The expected improvement `E[max(z - z*, 0)]` over the best label z* is in units of the labels, from 0 to 1. The
    default labels are linear from the best value to the median, whose label is 1/3; there an improvement of s in labels
    is 1.5 s of the distance from the best value to the median. The last proposals are not evaluated. Under black-box
    constraints the improvement is multiplied by the probability of feasibility, and the run does not end before a
    feasible trial. Proposals by other models than the classifier are ignored.

    Args:
        share: the threshold of the expected improvement, in (0, 1).
        proposals: the number of consecutive iterations below the threshold; a single one may be a poor fit.

    Raises:
        SettingError: for settings outside their range; at the start of a run, for a classifier whose scores are not
            estimates of the label with a standard deviation.
    """

    share: float = 1e-3
    proposals: int = 5

    def __post_init__(self) -> None:
        required(share=self.share, proposals=self.proposals)
        between(0, 1, share=self.share)
        whole(1, proposals=self.proposals)

    def check(self, state: RunState) -> None:
        try:
            LogExpectedImprovement().check(state.classifier)
        except SettingError as error:
            raise SettingError(
                "ExpectedImprovementBelow needs a classifier that estimates the label with a standard deviation, such "
                f"as KernelPLS or DeepPLS: {error}"
            ) from None

    def predicts_little_gain(self, state: RunState, points: Tensor) -> bool:
        feasibility, classifier = state.feasibility, state.classifier
        if feasibility.none_feasible:
            return False
        points = points.to(classifier.device)
        with torch.no_grad(), one_thread():
            improvement = LogExpectedImprovement()(classifier.posterior(points), classifier.best_label)
            if feasibility.is_needed:
                improvement = improvement + feasibility.log_probability(points)
        return bool(improvement.max() < math.log(self.share))


def as_rules(stop_when: StopRule | Sequence[StopRule], state: RunState) -> tuple[StopRule, ...]:
    """The rules for a run, checked.

    Raises:
        SettingError: for anything but rules, or a rule that does not suit this run.
    """
    rules = tuple(stop_when) if isinstance(stop_when, (list, tuple)) else (stop_when,)
    for rule in rules:
        if not isinstance(rule, StopRule):
            raise SettingError(
                f"stop_when must be a rule, or a list of them, but got {rule!r:.100}. Give NoImprovement(trials=20), "
                "TargetReached(value=0.1) or ExpectedImprovementBelow(share=0.001)."
            )
        rule.check(state)
    return rules


def _one_objective(rule: StopRule, state: RunState) -> None:
    if state.observations.k > 1:
        raise SettingError(
            f"{type(rule).__name__} needs one objective, but the study has {state.observations.k}. "
            "Leave it out, or call study.stop() in a callback."
        )


Listener = Callable[[int, Outcome], object]  # called with the row of a trial and its outcome


class RunControl:
    """Monitor of a run, which decides when it ends. All ranks end a run together, if one of them decides to.

    Args:
        rules: stop rules, already checked.
        timeout: seconds after `begin`, > 0, after which no trial is started; None for no limit.
        max_failures: the number of failures (>= 1) without a success that raises ObjectiveError; None for no limit.
        listeners: called after each trial, on the first rank only.
        unlocked: a context in which the study may be used, entered while waiting for trials, and by the listeners.

    Attributes:
        is_over: whether no further trial may start.
        interrupts: Ctrl-C and SIGTERM.

    Raises:
        SettingError: for a setting outside its range.
    """

    def __init__(
        self,
        rules: Sequence[StopRule] = (),
        timeout: float | timedelta | None = None,
        max_failures: int | None = None,
        listeners: Sequence[Listener] = (),
        unlocked: Callable[[], AbstractContextManager[object]] = nullcontext,
    ):
        limit = seconds(timeout)
        above(0, timeout=limit)
        whole(1, max_failures=max_failures)
        self.rules, self.max_failures, self.listeners, self.unlocked = tuple(rules), max_failures, listeners, unlocked
        self.timeout = math.inf if limit is None else float(limit)
        self.interrupts = Interrupts()
        self.is_over = self._is_enough = False
        self._failures, self._has_success = 0, False
        self._last = Outcome.failure()
        self._error: ObjectiveError | None = None
        self._started = time.monotonic()
        self._proposing: float | None = None  # how long the run went before the first proposal of a model

    @property
    def is_interrupted(self) -> bool:
        """Whether a signal on any rank has ended the run."""
        return self.interrupts.pressed

    def begin(self, engine: Engine) -> None:
        """Starts the clock, and checks the rules."""
        self.engine = engine
        self.interrupts.take()
        self._started = time.monotonic()
        self._is_enough = self._is_enough or any(rule.is_met(engine.state) for rule in self.rules)
        self.update()

    def time_left(self) -> float:
        """The share of the time after the initial design that is left, 1 at the first call."""
        passed = time.monotonic() - self._started
        self._proposing = passed if self._proposing is None else self._proposing
        return max(0.0, (self.timeout - passed) / max(self.timeout - self._proposing, MOMENT))

    def stop(self) -> None:
        """Ends the run after the running trials; may be called from any thread."""
        self._is_enough = True

    def on_outcome(self, row: int, outcome: Outcome) -> None:
        """Checks the rules and calls the listeners after a trial."""
        self._judge(outcome)
        self._is_enough = self._is_enough or any(rule.is_met(self.engine.state) for rule in self.rules)
        if self.engine.ranks.is_first:
            with self.unlocked(), in_caller_state():
                for listener in self.listeners:
                    listener(row, outcome)

    def on_proposal(self, proposal: Proposal) -> None:
        """Checks the rules for proposed points before their evaluation."""
        if proposal.model is self.engine.state.classifier:  # rules use the predictions of the classifier
            self._count_low_gains(proposal.points)
        self.update()

    def _count_low_gains(self, points: Tensor) -> None:
        """Counts consecutive proposals of the classifier (q x d) with little predicted gain, for each rule."""
        state = self.engine.state
        poor = [rule for rule in self.rules if state.classifier.ready and rule.predicts_little_gain(state, points)]
        state.low_gain_streaks = {repr(rule): 1 + state.low_gain_streaks.get(repr(rule), 0) for rule in poor}
        self._is_enough = self._is_enough or any(state.low_gain_streaks[repr(rule)] >= rule.proposals for rule in poor)

    def update(self) -> None:
        """Updates `is_over` on all ranks.

        Raises:
            ObjectiveError: if the objective never returns a value.
        """
        if self._error is not None:
            raise self._error
        late = time.monotonic() - self._started >= self.timeout
        wants = self._is_enough or late or self.interrupts.pressed
        of_all = self.engine.ranks.gather((wants, self.interrupts.pressed))
        self.is_over = any(each for each, _ in of_all)
        self.interrupts.pressed = any(pressed for _, pressed in of_all)

    def end(self) -> None:
        """Raises ObjectiveError if all evaluations have failed, and the study knows no value from before."""
        if self.max_failures is None or self._has_success or not self._failures:
            return
        if int(Status.COMPLETE) not in self.engine.state.own.status:
            raise self._of_failures()

    def _judge(self, outcome: Outcome) -> None:
        """Sets the error of an objective whose first result is not a value, or which only fails."""
        is_first = not (self._failures or self._has_success)
        self._say_if_silent(outcome)
        self._last = outcome
        self._failures += outcome.has_failed
        self._has_success = self._has_success or not outcome.has_failed
        if is_first and isinstance(outcome, WrongReturn):
            self._error = ObjectiveError(
                f"the run ends with its first evaluation, because {(outcome.reason or '').rstrip('.')}. Fix the "
                'objective; if there is no value, it may return float("nan").'
            )
        elif not self._has_success and self._failures == self.max_failures:
            self._error = self._of_failures()

    def _say_if_silent(self, outcome: Outcome) -> None:
        """Says once that a pruner has nothing to compare: the first trial with a value has reported nothing."""
        if outcome.status is not Status.COMPLETE or self._has_success or self.engine.state.recipe.pruner is None:
            return
        if not outcome.reports and self.engine.ranks.is_first:
            warn(
                "no trial can be pruned: the first one that has ended has reported nothing. Let the objective call "
                "trial.report(value, step) as it goes on, or leave pruner= out."
            )

    def _of_failures(self) -> ObjectiveError:
        """The error of an objective that only fails."""
        trace = self._last.attributes.get("traceback")
        return ObjectiveError(
            f"the run ends, because all of its {self._failures} evaluations have failed. The outcomes are kept. "
            f"Fix the objective, or give max_failures=None. The last one said: {self._last.reason or 'nothing'}"
            + (f"\n\n{trace}" if trace else "")
        )
