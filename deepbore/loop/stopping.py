"""When a run ends: rules, limits and signals, and who hears of its trials."""

import math
import os
import signal
import sys
import threading
import time
from abc import ABC
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any, Self

import torch
from torch import Tensor

from deepbore.acquisition import LogExpectedImprovement
from deepbore.compute.devices import one_thread
from deepbore.data.outcome import Outcome, WrongReturn
from deepbore.errors import ObjectiveError, SettingError
from deepbore.loop.engine import Engine
from deepbore.loop.lightning import as_called
from deepbore.loop.state import RunState
from deepbore.strategies import Proposal
from deepbore.validation import above, between, required, whole

SAID = "{}: the run ends when the running trials are done; once more ends it at once."
DEFAULTS: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


class Interrupts:
    """Takes Ctrl-C, and SIGTERM, by which clusters end a job, while a run goes on.

    While trials run (`is_gentle`) the first is noted and the second raises KeyboardInterrupt; else both raise it at
    once. Signals that the program handles, or ignores, by itself stay its own; and outside of the main thread, which
    alone hears of signals, nothing happens. At the end all handlers are what they were.

    Attributes:
        pressed: whether there was one.
        is_gentle: whether the first one waits.
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
        """Takes the signals (again, if somebody else has taken them in between, as Lightning does SIGTERM)."""
        for number in self._before:
            signal.signal(number, self._handle)

    @contextmanager
    def gently(self) -> Iterator[None]:
        """Within, the first signal waits."""
        self.is_gentle = True
        try:
            yield
        finally:
            self.is_gentle = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # a process that the objective has forked: none of our business
            signal.signal(number, DEFAULTS[number])
            signal.raise_signal(number)
            return
        if self.pressed or not self.is_gentle:
            self.pressed = True
            raise KeyboardInterrupt
        self.pressed = True
        with suppress(Exception):  # a stream that is busy or closed
            print(SAID.format("Ctrl-C" if number == signal.SIGINT else "SIGTERM"), file=sys.stderr, flush=True)


class StopRule(ABC):  # noqa: B024  # each rule has one of the two questions
    """Says when a run has done enough. It looks, and changes nothing.

    Attributes:
        proposals: so many iterations in a row must promise too little.
    """

    proposals: int = 1

    def check(self, state: RunState) -> None:  # most go with everything
        """Raises SettingError unless the rule makes sense for this run."""

    def is_met(self, state: RunState) -> bool:
        """Whether what is known is enough; asked after each trial."""
        return False

    def promises_too_little(self, state: RunState, points: Tensor) -> bool:
        """Whether points (q x d) are not worth their evaluation; asked of what the classifier has proposed."""
        return False


@dataclass(frozen=True)
class NoImprovement(StopRule):
    """Ends a run after k trials in a row none of which is better than all before, failures and the design included.

    They count in the order of telling, which with several workers is not that of asking. Earlier results that are added
    begin the count anew.

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
        return state.observations.n_since_best >= self.trials


@dataclass(frozen=True)
class TargetReached(StopRule):
    """Ends a run when a feasible trial is as good as a target, earlier results of this study included.

    Args:
        value: the target, in the user's sign: at most this value is enough where less is better, at least this value
            where more is.

    Raises:
        SettingError: for what is no finite number.
    """

    value: float

    def __post_init__(self) -> None:
        required(value=self.value)
        between(-math.inf, math.inf, value=self.value)

    def check(self, state: RunState) -> None:
        _one_objective(self, state)

    def is_met(self, state: RunState) -> bool:
        best = state.observations.best
        if best is None or best.value is None:
            return False
        return best.value <= self.value if state.observations.direction == "minimize" else best.value >= self.value


@dataclass(frozen=True)
class ExpectedImprovementBelow(StopRule):
    """Ends a run when the classifier expects of its proposals next to no improvement over the best value.

    The expected improvement, E[max(z - z*, 0)] over the best label z*, is measured in labels, whose spread from the
    worst value to the best is 1. With the default labels, which are linear from the best value to the median, where
    they are 1/3, a share s of this spread is 1.5 s of the distance from the best value to the median. The proposals
    that are not worth it are not evaluated. Under black-box constraints it counts as much as it is likely to be
    feasible, and while nothing is feasible the run goes on. Proposals by a second kernel, in turn with the
    classifier's, neither count nor end the count.

    Args:
        share: of the spread, in (0, 1).
        proposals: so many iterations in a row must promise less; one alone may be an accident of the fit.

    Raises:
        SettingError: for settings outside their range; and at the start of a run, for a classifier whose scores are no
            estimates of the label with a deviation.
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
                f"ExpectedImprovementBelow needs a classifier that estimates the label with its deviation, such as "
                f"KernelPLS or DeepPLS: {error}"
            ) from None

    def promises_too_little(self, state: RunState, points: Tensor) -> bool:
        feasibility, classifier = state.feasibility, state.classifier
        if feasibility.is_alone:
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
        SettingError: for anything but rules, or one that makes no sense for this run.
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

    def proposed(self, proposal: Proposal) -> None:
        """Points have been proposed, and are not evaluated yet."""
        if proposal.model is self.engine.state.classifier:  # others say nothing of what it expects of its own
            self._weigh(proposal.points)
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
