"""`TrialRunner`: from reserved rows to recorded outcomes, by an evaluator."""

import math

from deepbore.data.outcome import LostWorker
from deepbore.evaluators import Evaluator
from deepbore.evaluators.shared import SharedEvaluator
from deepbore.evaluators.warning import warn
from deepbore.loop.engine import Engine
from deepbore.loop.lightning import as_called
from deepbore.loop.stopping import Steering


class TrialRunner:
    """Has trials evaluated, and says how many an iteration may ask for.

    Args:
        engine: the steps of the run.
        evaluator: what turns trials into outcomes; each rank's own.
        n_trials: how many trials the study has asked for in the end; None for no limit.
        batch_size: q, trials proposed in one iteration; more where more workers are free.
        steering: when the run ends before that.
    """

    def __init__(self, engine: Engine, evaluator: Evaluator, n_trials: int | None, batch_size: int, steering: Steering):
        self.engine, self.n_trials, self.batch_size, self.steering = engine, n_trials, batch_size, steering
        state = engine.state
        pending = set(state.observations.pending_rows.tolist())
        self._asked = pending.difference(state.unfinished, state.unclaimed)  # rows that somebody evaluates elsewhere
        self.evaluator = SharedEvaluator(evaluator, engine.ranks) if engine.ranks.world > 1 else evaluator

    @property
    def room(self) -> int:
        """How many trials the next iteration may ask for; 0 or less when the run is over."""
        if self.steering.is_over:
            return 0
        observations = self.engine.state.observations
        left = math.inf if self.n_trials is None else self.n_trials - observations.n_asked
        return int(min(max(self.batch_size, self.evaluator.free), left, self.engine.n_left))

    def evaluate(self, rows: list[int]) -> None:
        """Submits trials, and waits until the next iteration can begin: until as many workers are free as a batch has
        trials, or, at the end of the run, until all are done.
        """
        with self.steering.interrupts.gently():
            for trial in self.engine.state.observations.trials(rows):
                self.evaluator.submit(trial)
            while self._must_wait:
                self._collect()
        self.steering.interrupts.is_gentle = self.evaluator.outstanding > 0  # they run on while the classifier learns

    def finish(self) -> None:
        """Waits for what is still outstanding."""
        with self.steering.interrupts.gently():
            while self.evaluator.outstanding:
                self._collect()

    def leave(self) -> None:
        """Drops what is outstanding: the next run begins with it, and with what was reserved and got no further."""
        self._keep(set(self.engine.state.observations.pending_rows.tolist()) - self._asked)
        self.evaluator.close()

    @property
    def _must_wait(self) -> bool:
        if self.room < 1:
            return self.evaluator.outstanding > 0
        there = max(1, self.evaluator.workers - self.evaluator.lost)
        return self.evaluator.free < min(self.batch_size, there)

    def _collect(self) -> None:
        with self.steering.unlocked(), as_called():
            collected = self.evaluator.collect()
        # Ctrl-C reaches the processes of an executor of the user's own, too: those trials have not failed
        interrupted = self.steering.interrupts.pressed
        finished = [one for one in collected if not (interrupted and isinstance(one.outcome, LostWorker))]
        recorded = [(trial, self.engine.record(trial, outcome)) for trial, outcome in finished]  # all, then who listens
        for trial, outcome in recorded:
            if outcome.has_failed and self.engine.ranks.is_first:
                warn(f"trial {trial.id} failed with {trial.params}: {outcome.reason}")
            self.steering.told(trial.id, outcome)
        if len(finished) < len(collected):
            raise KeyboardInterrupt
        self.steering.look()
        if self.steering.is_over:
            self._withdraw()

    def _withdraw(self) -> None:
        """Leaves to the next run what has not begun."""
        self._keep({trial.id for trial in self.evaluator.withdraw()})

    def _keep(self, rows: set[int]) -> None:
        state = self.engine.state
        state.unfinished = self.engine.still_pending(sorted({*state.unfinished, *rows}))
