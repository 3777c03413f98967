"""`LoopController`: the optimisation as a Lightning callback, one iteration an epoch.

epoch t:   relabel (data module) -> train (classifier) -> propose -> evaluate -> record
"""

import logging
import time
from collections.abc import Callable
from copy import deepcopy
from typing import Any, TypeVar

from lightning.pytorch import Callback, LightningModule, Trainer

from deepbore.candidates.selection import as_many
from deepbore.compute.distributed import Ranks
from deepbore.compute.torch_state import clean_torch_state, hook
from deepbore.evaluators import Evaluator
from deepbore.labels import LabelledBatch
from deepbore.loop.engine import Engine
from deepbore.loop.metrics import exact, progress
from deepbore.loop.runner import TrialRunner
from deepbore.loop.state import RunState
from deepbore.loop.stopping import Steering
from deepbore.validation import whole

log = logging.getLogger(__name__)
T = TypeVar("T")


class LoopController(Callback):
    """Proposes, evaluates and records at the end of each training epoch.

    The first trials are a Sobol design, of `n_initial` or of a whole batch, if that is more. An iteration begins as
    soon as `batch_size` workers of the evaluator are free, and proposes for every free one, while the others go on:
    with batches of one all workers are always busy, with batches of all workers the run is batch-synchronous. At the
    end everything outstanding is waited for.

    Under DDP all ranks hold the same state and train the same weights. Each searches its share of the candidates and
    evaluates its share of the batch, which has one trial at least for each worker of each rank.

    Args:
        state: of the run, whose data module the Trainer is given.
        evaluator: what turns trials into outcomes.
        n_trials: stop the trainer when so many trials have been asked for; None to let the trainer decide.
        batch_size: q >= 1, trials proposed in one iteration; more where more workers are free.
        logs: whether anybody may listen to what is logged, which takes some hundredths of an iteration.
        steering: when the run ends before that, and who hears of its trials; default: never, and nobody.

    Raises:
        SettingError: for a batch_size below 1, or a number of trials below 0.
    """

    def __init__(
        self,
        state: RunState,
        evaluator: Evaluator,
        n_trials: int | None = None,
        batch_size: int = 1,
        logs: bool = True,
        steering: Steering | None = None,
    ):
        whole(0, n_trials=n_trials)
        whole(1, batch_size=batch_size)
        self.state, self.n_trials, self.batch_size, self.logs = state, n_trials, batch_size, logs
        self.steering = steering or Steering()
        self._own, self._leave, self._began = evaluator, evaluator.close, time.perf_counter()
        self._before: dict[str, Any] | None = None  # the state between two iterations

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Finds the other ranks, if the Trainer has any: others are somebody else's. The evaluator must be free."""
        self._own.claim(self)
        self.engine = Engine(self.state, Ranks.found() if trainer.world_size > 1 else None)
        self.runner = TrialRunner(self.engine, self._own, self.n_trials, self.batch_size, self.steering)
        self._leave = self.runner.leave

    @hook
    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Evaluates what was left unfinished or enqueued, and the initial design, or what is left of it."""
        runner, state = self.runner, self.state
        self._remember()
        self.steering.begin(self.engine)
        if self.steering.is_over:
            trainer.should_stop = True
            return
        runner.evaluator.open()
        left, state.unfinished, state.unclaimed = [*state.unfinished, *state.unclaimed], [], []
        runner.evaluate(self.engine.still_pending(left))
        while not self._stop_if_over(trainer) and (rows := self._reserve_known(trainer)):
            runner.evaluate(rows)
            self._remember()

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Starts the clock."""
        self._began = time.perf_counter()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: LabelledBatch, batch_idx: int
    ) -> None:
        """Looks at the labels."""
        if self.logs:
            self.state.metrics.relabelled(batch, self.state.observations)
            pl_module.log_dict(exact(batch.metrics), on_step=False, on_epoch=True, batch_size=len(batch))

    @hook
    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """One iteration: propose, evaluate, record."""
        if self.state.rehearsals > 0:
            self.state.rehearsals -= 1
        else:
            over = self._stop_if_over(trainer)  # a Trainer may stop while the classifier learns
            rows = [] if over else self.engine.reserve_queued(self.runner.room) or self._reserve_proposed(trainer)
            if not rows:
                self._put_back()
                return
            seconds = time.perf_counter() - self._began
            self.runner.evaluate(rows)
            while not self._stop_if_over(trainer) and (rows := self._reserve_known(trainer)):
                self.runner.evaluate(rows)
            if self.logs:
                measured = {**progress(self.state.observations), "seconds_per_suggestion": seconds}
                pl_module.log_dict(exact({**measured, **self.state.metrics.known}))
            self._stop_if_over(trainer)
        self._remember()

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Waits for what is still outstanding, if the trainer has ended the run."""
        self.runner.finish()

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Lets go of the workers."""
        self._release(self._own.close)

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Drops what is outstanding, Ctrl-C included; its trials stay pending, and the next run begins with them."""
        try:
            self._release(self._leave)
        finally:
            if self._before is not None and self._before["asked"] == self.state.observations.n_asked:
                self._put_back()

    def _release(self, leave: Callable[[], None]) -> None:
        """Leaves the evaluator to others, if it was this run's."""
        if self._own.run is self:
            try:
                leave()
            finally:
                self._own.run = None

    def _remember(self) -> None:
        """Keeps the state between two iterations."""
        self._before = deepcopy(self.state.state_dict())

    def _put_back(self) -> None:
        """Undoes an iteration that has asked for nothing: whoever goes on proposes as a study does that is loaded."""
        assert self._before is not None
        self.state.load_state_dict({**self._before, "queue": self.state.queue})

    def _reserve_known(self, trainer: Trainer) -> list[int]:
        """Rows that need no classifier, reserved: what is enqueued or promoted, and then the initial design."""
        known = self.engine.reserve_queued(self.runner.room) or self.engine.reserve_promoted(self.runner.room)
        room, missing = self.runner.room, self.state.n_missing
        if known or not missing:
            return known
        q = min(room, missing) if self.state.n_begun else room  # no worker of the first batch waits for results
        points = self._new(trainer, self.engine.design, q)
        return [] if points is None else self.engine.reserve(points)

    def _reserve_proposed(self, trainer: Trainer) -> list[int]:
        """Rows of the classifier's proposals, reserved; none if they are not worth it, or the time is over."""
        with clean_torch_state():
            proposal = self._new(trainer, self.engine.propose, self.runner.room)
            if proposal is None:
                return []
            points = proposal.points
            self.steering.proposed(proposal)  # the snapshot knows of it
            if self._stop_if_over(trainer):
                return []
            expected = self.engine.expected_labels(points) if self.logs else None
            with self.state.metrics.forecast(len(self.state.observations), expected):  # which the snapshot knows
                return self.engine.reserve(points)  # last: what is reserved is evaluated, whatever interrupts

    def _new(self, trainer: Trainer, find: Callable[[int], T], q: int) -> T | None:
        """Up to q new points; None, and the end of the run, where a space that counts as infinite has hardly any."""
        found = as_many(find, q)
        if found is None:
            seen = self.state.observations.n_distinct
            log.warning("the run ends: of many random configurations none is new beside the %d that it has", seen)
            trainer.should_stop = True
        return found

    def _stop_if_over(self, trainer: Trainer) -> bool:
        """Stops the trainer when all trials are done, or the space is exhausted; whether it is stopped."""
        trainer.should_stop = trainer.should_stop or self.runner.room < 1
        return trainer.should_stop
