"""`Evaluator`: trials to outcomes; in this process, one after the other, and with the times written to a file."""

import os
import sys
import time
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from deepbore.component import value_shown
from deepbore.data import events
from deepbore.data.log import append_lines
from deepbore.data.outcome import Outcome
from deepbore.data.trial import Trial
from deepbore.errors import EvaluatorError, SettingError
from deepbore.validation import above, as_path, refusal, required, whole
from deepbore.worker.objective import Objective, beside_params, by_keywords, evaluate

INSIDE = ("deepbore", "lightning", "torch")  # packages whose lines do not help the caller


class Pair(NamedTuple):
    """A trial that has been evaluated, and what that gave."""

    trial: Trial
    outcome: Outcome


class Finished(Pair):
    """A trial that has been evaluated, and what that gave.

    Attributes:
        span: when it began and ended, in seconds since 1970; None where that is not known.
    """

    span: tuple[float, float] | None = None

    def within(self, began: float, ended: float) -> Self:
        """The same, with these times."""
        timed = type(self)(*self)
        timed.span = began, ended
        return timed


class Evaluator(ABC):
    """Evaluates trials: `submit` them, and `collect` their outcomes in the order of finishing.

    A failure is an outcome, not an error: `deepbore.worker.objective.evaluate` makes one of whatever the objective
    raises or returns. More trials than workers may be submitted; they wait in a queue.

    The first argument of every constructor is called `objective`, so that an evaluator can be named in a configuration,
    which puts the objective in:

        evaluator:
          class_path: deepbore.evaluators.ProcessEvaluator
          init_args: {workers: 8, timeout: 3600}

    Attributes:
        workers: how many trials are evaluated at the same time.
        run: the run whose trials it evaluates now; None between runs.
    """

    workers: int = 1
    run: object = None

    def __repr__(self) -> str:
        """What it evaluates, and how many trials at the same time."""
        shown = [value_shown(vars(self)["objective"])] if "objective" in vars(self) else []
        shown += [f"workers={self.workers}"] if self.workers != 1 else []
        return f"{type(self).__name__}({', '.join(shown)})"

    def claim(self, run: object) -> None:
        """Takes the trials of one run only, until its `run` is None again.

        Raises:
            EvaluatorError: while it evaluates for another run: their outcomes would get mixed.
        """
        if self.run not in (None, run):
            raise EvaluatorError(
                f"this {type(self).__name__} evaluates for another run, which has not ended. Give each run an "
                "evaluator of its own."
            )
        self.run = run

    def open(self) -> None:  # optional
        """Makes the workers ready; the first `submit` does it, too."""

    @abstractmethod
    def submit(self, trial: Trial) -> None:
        """Takes a trial to evaluate."""

    @abstractmethod
    def collect(self) -> Sequence[Finished]:
        """Waits for the next event, and returns the trials that have finished.

        There may be none, when a trial is tried again or a lost worker has come back, or if none is outstanding.
        """

    @property
    @abstractmethod
    def outstanding(self) -> int:
        """How many trials are submitted and not collected."""

    @property
    def free(self) -> int:
        """How many trials could start at once; negative while some are queued."""
        return self.workers - self.outstanding

    @property
    def begun(self) -> int:
        """How many trials in the study's queue are evaluated already: a run takes them in beyond its `n_trials`."""
        return 0

    @property
    def lost(self) -> int:
        """How many workers are not available: they are still busy with evaluations that were given up."""
        return 0

    def withdraw(self) -> Sequence[Trial]:
        """Returns the trials that are queued; those that run continue. An evaluator may keep all of them."""
        return ()

    @abstractmethod
    def close(self) -> None:
        """Drops the outstanding trials and releases the workers; a later `submit` begins anew."""


def check_objective(objective: Any) -> None:
    """Raises SettingError for anything but a function of a configuration, or an object that can be called like one."""
    if isinstance(objective, type) and issubclass(objective, Evaluator):
        name = objective.__name__
        raise SettingError(f"an evaluator is given as an object, but got the class {name}. Give {name}(objective).")
    if not callable(objective):
        raise SettingError(
            f"objective must be a function of a dict of parameters, but got {objective!r:.100}. Give the function "
            "itself, not its result."
        )
    if by_keywords(objective):  # of the space, or else the study refuses it
        return
    if says := refusal(objective, {}, **beside_params(objective, Trial(0, {}))):
        if isinstance(objective, type):
            hint = f"Give an object of the class: {objective.__name__}()."
        else:
            hint = 'Take the parameters from it, as in lambda params: params["x"] ** 2, or train(**params).'
        raise SettingError(
            f"objective must take one argument, the dict of parameters, but {objective!r:.100} doesn't: {says}. {hint} "
            "A second one named trial is given the trial."
        )


def check_settings(workers: int, timeout: float | None, retries: int, lost_retries: int) -> None:
    """Raises SettingError unless there are workers and time (seconds), and no negative number of retries."""
    required(workers=workers, retries=retries, lost_retries=lost_retries)
    whole(1, workers=workers)
    above(0, timeout=timeout)
    whole(0, retries=retries, lost_retries=lost_retries)


# --- in this process --------------------------------------------------------------------------------------------------


class SerialEvaluator(Evaluator):
    """Calls the objective in this process, one trial after the other, when they are collected.

    After an exception, or a value that is no number, the trial has failed; the run continues.

    Args:
        objective: configuration -> value.
    """

    def __init__(self, objective: Objective):
        check_objective(objective)
        self.objective = objective
        self._queue: deque[Trial] = deque()

    def submit(self, trial: Trial) -> None:
        self._queue.append(trial)

    def collect(self) -> list[Finished]:
        if not self._queue:
            return []
        trial = self._queue.popleft()
        return [Finished(trial, evaluate(self.objective, trial))]

    @property
    def outstanding(self) -> int:
        return len(self._queue)

    def withdraw(self) -> list[Trial]:
        waiting = list(self._queue)
        self._queue.clear()
        return waiting

    def close(self) -> None:
        self._queue.clear()


class Timed(Evaluator):
    """A wrapper of another evaluator that says of each finished trial when it began and ended.

    Times are those of this process, in seconds since 1970: when a trial was handed to a free worker, and when it was
    collected. Runs have them by themselves, in `trial.began` and `trial.ended`, and beside the journal
    (`deepbore.data.notes`).

    Args:
        own: the evaluator.
        path: a file to which a line is appended for each; None for none. If it can't be written, there is none.
    """

    def __repr__(self) -> str:
        """The evaluator within."""
        return f"Timed({self.own!r})"

    def __init__(self, own: Evaluator, path: str | os.PathLike[str] | None = None):
        self.own, self.path = own, None if path is None else as_path(path, "the times of trials").absolute()
        self.workers = own.workers
        self._began: dict[int, float] = {}
        self._waiting: deque[int] = deque()  # submitted while no worker was free

    def open(self) -> None:
        self.own.open()

    def submit(self, trial: Trial) -> None:
        if self.own.free > 0:
            self._began[trial.id] = time.time()
        else:
            self._waiting.append(trial.id)
        self.own.submit(trial)

    def collect(self) -> Sequence[Finished]:
        collected = self.own.collect()
        now = time.time()
        finished = [one.within(self._began.pop(one.trial.id, now), now) for one in collected]
        while self._waiting and len(self._began) < self.workers:
            self._began[self._waiting.popleft()] = now
        if self.path is not None and finished:
            timed = (events.Timed.at(one.trial.id, *one.span) for one in finished if one.span is not None)
            append_lines(self.path, [event.line() for event in timed])
        return finished

    @property
    def outstanding(self) -> int:
        return self.own.outstanding

    @property
    def free(self) -> int:
        return self.own.free

    @property
    def begun(self) -> int:
        return self.own.begun

    @property
    def lost(self) -> int:
        return self.own.lost

    def withdraw(self) -> Sequence[Trial]:
        withdrawn = self.own.withdraw()
        gone = {trial.id for trial in withdrawn}
        self._waiting = deque(row for row in self._waiting if row not in gone)
        for row in gone:
            self._began.pop(row, None)
        return withdrawn

    def close(self) -> None:
        self._began.clear()
        self._waiting.clear()
        self.own.close()


# --- warnings ---------------------------------------------------------------------------------------------------------


class EvaluationWarning(RuntimeWarning):
    """A trial has failed, or all workers are busy with evaluations that have timed out; the run continues."""


class SuspiciousValue(RuntimeWarning):
    """The other trials contradict the value of one, which counts as failed until they confirm it."""


def warn(message: str, category: type[Warning] = EvaluationWarning) -> None:
    """A warning at the line of the user's own program that the run was started from."""
    frame, level = sys._getframe(1), 2
    while (above := frame.f_back) and frame.f_globals.get("__name__", "").partition(".")[0] in INSIDE:
        frame, level = above, level + 1
    warnings.warn(message, category, stacklevel=level)
