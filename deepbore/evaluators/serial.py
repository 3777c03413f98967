"""`SerialEvaluator`: one trial after the other, in this process."""

from collections import deque

from deepbore.data.trial import Trial
from deepbore.evaluators.base import Evaluator, Finished, check_objective
from deepbore.worker.objective import Objective, evaluate


class SerialEvaluator(Evaluator):
    """Calls the objective in this process, one trial after the other, when they are collected.

    An exception, or a value that is no number, makes a failed trial; the run goes on.

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
