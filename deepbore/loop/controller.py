"""`LoopController`: the optimisation as a Lightning callback, one iteration an epoch.

epoch t:   relabel (data module) -> train (classifier) -> propose -> evaluate -> record
"""

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from typing import Any, TypeVar

from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor

from deepbore.candidates.selection import largest_possible_batch
from deepbore.compute.distributed import Ranks
from deepbore.compute.torch_state import clean_torch_state, hook
from deepbore.evaluators import Evaluator
from deepbore.loop.engine import Engine
from deepbore.loop.metrics import Metrics, exact, progress
from deepbore.loop.runner import TrialRunner
from deepbore.loop.state import RunState
from deepbore.loop.stopping import RunControl
from deepbore.validation import whole

log = logging.getLogger(__name__)
T = TypeVar("T")


class LoopController(Callback):
    """Callback that proposes, evaluates and records trials at the end of each training epoch.

    The first trials are a Sobol design of `n_initial` points, or a whole batch if that is more. An iteration starts
    when `batch_size` workers of the evaluator are free, and proposes one point for each free worker, while the others
    continue: with batches of one all workers are always busy, with batches of all workers the run is synchronous. At
    the end it waits for all outstanding trials.

    Under DDP all ranks have the same state and weights. Each searches its share of the candidates and evaluates its
    share of the batch, which has at least one trial for each worker of each rank.

    Args:
        state: the state of the run, whose data module is given to the Trainer.
        evaluator: turns trials into outcomes.
        n_trials: the total number of trials, after which the trainer is stopped; None to let the trainer decide.
        batch_size: q >= 1, trials proposed in one iteration; more if more workers are free.
        logs: whether metrics are logged, which takes a few percent of an iteration.
        control: stop rules and listeners of the run; default none.

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
        control: RunControl | None = None,
    ):
        whole(0, n_trials=n_trials)
        whole(1, batch_size=batch_size)
        self.state, self.n_trials, self.batch_size, self.logs = state, n_trials, batch_size, logs
        self.control = control or RunControl()
        self._own, self._leave, self._began = evaluator, evaluator.close, time.perf_counter()
        self._saved: dict[str, Any] | None = None  # the state before the iteration

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Connects the ranks of the Trainer, and claims the evaluator, which must be free."""
        self._own.claim(self)
        self.engine = Engine(self.state, Ranks.found() if trainer.world_size > 1 else None)
        self.state.data.ranks = self.engine.ranks  # until the end of the run
        self.runner = TrialRunner(self.engine, self._own, self.n_trials, self.batch_size, self.control)
        self._leave = self.runner.leave

    @hook
    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Evaluates interrupted and enqueued trials, and the rest of the initial design."""
        runner, state = self.runner, self.state
        self._save_state()
        self.control.begin(self.engine)
        if self.control.is_over:
            trainer.should_stop = True
            return
        runner.evaluator.open()
        rows, state.interrupted, state.unreturned = [*state.interrupted, *state.unreturned], [], []
        runner.evaluate(self.engine.still_pending(rows))
        while not self._stop_if_over(trainer) and (rows := self._reserve_known(trainer)):
            runner.evaluate(rows)
            self._save_state()

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Starts the clock."""
        self._began = time.perf_counter()

    @hook
    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """One iteration: propose, evaluate, record."""
        self._log_labels(pl_module)
        if self.state.warmup_epochs > 0:
            self.state.warmup_epochs -= 1
        else:
            over = self._stop_if_over(trainer)  # a Trainer may stop during training
            rows = [] if over else self.engine.reserve_queued(self.runner.room) or self._reserve_proposed(trainer)
            if not rows:
                self._restore_state()
                return
            seconds = time.perf_counter() - self._began
            self.runner.evaluate(rows)
            while not self._stop_if_over(trainer) and (rows := self._reserve_known(trainer)):
                self.runner.evaluate(rows)
            if self.logs:
                measured = {**progress(self.state.observations), "seconds_per_suggestion": seconds}
                pl_module.log_dict(exact({**measured, **self._metrics.known}))
            self._stop_if_over(trainer)
        self._save_state()

    def _log_labels(self, pl_module: LightningModule) -> None:
        """Logs metrics of the labels of this epoch."""
        batch = self.state.data.latest
        if self.logs and batch is not None:
            self._metrics.relabelled(batch, self.state.observations)
            pl_module.log_dict(exact(batch.metrics), on_step=False, on_epoch=True, batch_size=len(batch))

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Waits for outstanding trials if the trainer has ended the run."""
        self.runner.finish()

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Closes the evaluator."""
        self._release(self._own.close)

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Abandons outstanding trials, also on Ctrl-C; they stay pending, and the next run evaluates them first."""
        try:
            self._release(self._leave)
        finally:
            if self._saved is not None and self._saved["asked"] == self.state.observations.n_asked:
                self._restore_state()

    def _release(self, leave: Callable[[], None]) -> None:
        """Closes and releases the evaluator if this run has claimed it; later each process learns alone."""
        self.state.data.ranks = Ranks()
        if self._own.run is self:
            try:
                leave()
            finally:
                self._own.run = None

    def _forecast(self, points: Tensor) -> AbstractContextManager[None]:
        """A context in which the labels predicted for proposals (q x d) are recorded."""
        return self._metrics.forecast(len(self.state.observations), self.engine.expected_labels(points))

    @property
    def _metrics(self) -> Metrics:
        """The metrics of labels and predictions."""
        self.state.metrics = self.state.metrics or Metrics()
        return self.state.metrics

    def _save_state(self) -> None:
        """Copies the state before an iteration."""
        self._saved = deepcopy(self.state.state_dict())

    def _restore_state(self) -> None:
        """Restores the state before an iteration without trials, so that the next one equals that of a loaded study."""
        assert self._saved is not None
        self.state.load_state_dict({**self._saved, "queue": self.state.queue})

    def _reserve_known(self, trainer: Trainer) -> list[int]:
        """Reserved rows that need no classifier: enqueued points, promotions, and the initial design."""
        self.engine.check_ranks()
        known = self.engine.reserve_queued(self.runner.room) or self.engine.reserve_promoted(self.runner.room)
        room, missing = self.runner.room, self.state.n_missing
        if known or not missing:
            return known
        q = min(room, missing) if self.state.n_begun else room  # the first batch has a trial for every worker
        points = self._new(trainer, self.engine.design, q)
        return [] if points is None else self.engine.reserve(points)

    def _reserve_proposed(self, trainer: Trainer) -> list[int]:
        """Reserved rows of proposals; none if a stop rule or the timeout ends the run."""
        with clean_torch_state():
            proposal = self._new(trainer, self.engine.propose, self.runner.room)
            if proposal is None:
                return []
            points = proposal.points
            self.control.on_proposal(proposal)  # before the snapshot is written
            if self._stop_if_over(trainer):
                return []
            with self._forecast(points) if self.logs else nullcontext():  # before the snapshot, too
                return self.engine.reserve(points)  # last: reserved rows are evaluated even after an interrupt

    def _new(self, trainer: Trainer, find: Callable[[int], T], q: int) -> T | None:
        """Up to q new points; None, and the run ends, if random sampling finds no new one in an infinite space."""
        found = largest_possible_batch(find, q)
        if found is None:
            seen = self.state.observations.n_distinct
            log.warning("the run ends: many random configurations were all among the %d known ones", seen)
            trainer.should_stop = True
        return found

    def _stop_if_over(self, trainer: Trainer) -> bool:
        """Stops the trainer if all trials are done or the space is exhausted; whether it is stopped."""
        trainer.should_stop = trainer.should_stop or self.runner.room < 1
        return trainer.should_stop
