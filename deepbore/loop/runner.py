"""`TrialRunner`: from reserved rows to recorded outcomes, by an evaluator."""

import math
import warnings

from deepbore.evaluators import Evaluator
from deepbore.evaluators.shared import SharedEvaluator
from deepbore.loop.engine import Engine


class TrialRunner:
    """Has trials evaluated, and says how many an iteration may ask for.

    Args:
        engine: the steps of the run.
        evaluator: what turns trials into outcomes; each rank's own.
        n_trials: how many trials the run has in the end; None for no limit.
        batch_size: q, trials proposed in one iteration; more where more workers are free.
    """

    def __init__(self, engine: Engine, evaluator: Evaluator, n_trials: int | None, batch_size: int):
        self.engine, self.n_trials, self.batch_size = engine, n_trials, batch_size
        self.evaluator = SharedEvaluator(evaluator, engine.ranks) if engine.ranks.world > 1 else evaluator

    @property
    def room(self) -> int:
        """How many trials the next iteration may ask for; 0 or less when the run is over."""
        observations = self.engine.state.observations
        left = math.inf if self.n_trials is None else self.n_trials - len(observations)
        return int(min(max(self.batch_size, self.evaluator.free), left, observations.n_left))

    def evaluate(self, rows: list[int]) -> None:
        """Submits trials, and waits until the next iteration can begin: until as many workers are free as a batch has
        trials, or, at the end of the run, until all are done.
        """
        for row in rows:
            self.evaluator.submit(self.engine.state.observations.trial(row))
        while self._must_wait:
            self._collect()

    def finish(self) -> None:
        """Waits for what is still outstanding."""
        while self.evaluator.outstanding:
            self._collect()

    @property
    def _must_wait(self) -> bool:
        if self.room < 1:
            return self.evaluator.outstanding > 0
        return self.evaluator.free < min(self.batch_size, self.evaluator.workers)

    def _collect(self) -> None:
        for trial, outcome in self.evaluator.collect():
            recorded = self.engine.record(trial, outcome)
            if recorded.has_failed and self.engine.ranks.is_first:
                message = f"trial {trial.id} failed with {trial.params}: {recorded.reason}"
                warnings.warn(message, RuntimeWarning, stacklevel=2)
