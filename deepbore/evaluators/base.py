"""`Evaluator`: what every way to evaluate trials has in common."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

from deepbore.data.outcome import Outcome
from deepbore.data.trial import Trial
from deepbore.errors import EvaluatorError, SettingError
from deepbore.validation import above, refusal, required, whole
from deepbore.worker.objective import beside_params


class Finished(NamedTuple):
    """A trial that has been evaluated, and what that gave."""

    trial: Trial
    outcome: Outcome


class Evaluator(ABC):
    """Evaluates trials: `submit` them, and `collect` their outcomes in the order of finishing.

    A failure is an outcome, not an error: `deepbore.worker.objective.evaluate` makes one of whatever the objective
    raises or returns. More trials than workers may be submitted; they wait for their turn.

    The first argument of every constructor is called `objective`, so that an evaluator can be named in a configuration,
    which puts the objective in:

        evaluator:
          class_path: deepbore.evaluators.ProcessEvaluator
          init_args: {workers: 8, timeout: 3600}

    Attributes:
        workers: how many trials are evaluated at the same time.
        run: whose trials it evaluates now; None between runs.
    """

    workers: int = 1
    run: object = None

    def claim(self, run: object) -> None:
        """Takes the trials of one run only, until its `run` is None again.

        Raises:
            EvaluatorError: while it evaluates for another: outcomes of both would get mixed.
        """
        if self.run not in (None, run):
            raise EvaluatorError(
                f"this {type(self).__name__} evaluates for another run, which has not ended. Give each run an "
                "evaluator of its own."
            )
        self.run = run

    def open(self) -> None:  # most have nothing to make ready
        """Makes the workers ready; the first `submit` does it, too."""

    @abstractmethod
    def submit(self, trial: Trial) -> None:
        """Takes a trial in."""

    @abstractmethod
    def collect(self) -> Sequence[Finished]:
        """Waits until something happens, and gives what has finished.

        That may be nothing, where a trial is tried again or a lost worker has come back, or if nothing is outstanding.
        """

    @property
    @abstractmethod
    def outstanding(self) -> int:
        """How many trials are submitted and not collected."""

    @property
    def free(self) -> int:
        """How many trials could start at once; negative while some wait for their turn."""
        return self.workers - self.outstanding

    @property
    def lost(self) -> int:
        """How many workers nobody can count on: they go on with evaluations that were given up."""
        return 0

    def withdraw(self) -> Sequence[Trial]:
        """Gives back the trials that wait for their turn; those that run go on. An evaluator may keep all of them."""
        return ()

    @abstractmethod
    def close(self) -> None:
        """Drops what is outstanding and lets go of the workers; a later `submit` begins anew."""


def check_objective(objective: Any) -> None:
    """Raises SettingError unless it is a function of a configuration, or another object that can be called so."""
    if isinstance(objective, type) and issubclass(objective, Evaluator):
        name = objective.__name__
        raise SettingError(f"an evaluator is given as an object, but got the class {name}. Give {name}(objective).")
    if not callable(objective):
        raise SettingError(
            f"objective must be a function of a dict of parameters, but got {objective!r:.100}. Give the function "
            "itself, not its result."
        )
    if says := refusal(objective, {}, **beside_params(objective, Trial(0, {}))):
        if isinstance(objective, type):
            hint = f"Give an object of the class: {objective.__name__}()."
        else:
            hint = 'Take the parameters from it, as in lambda params: params["x"] ** 2.'
        raise SettingError(
            f"objective must take one argument, the dict of parameters, but {objective!r:.100} doesn't: {says}. {hint} "
            "A second one named trial is given the trial."
        )


def check_settings(workers: int, timeout: float | None, retries: int) -> None:
    """Raises SettingError unless there are workers and time (seconds), and no negative number of retries."""
    required(workers=workers, retries=retries)
    whole(1, workers=workers)
    above(0, timeout=timeout)
    whole(0, retries=retries)
