"""`LoopController`: the optimisation as a Lightning callback, one iteration an epoch.

epoch t:   relabel (data module) -> train (classifier) -> propose -> evaluate -> record
"""

from contextlib import AbstractContextManager, nullcontext

from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor

from deepbore.compute.distributed import Ranks
from deepbore.compute.torch_state import hook
from deepbore.loop.engine import Engine
from deepbore.loop.metrics import Metrics, exact, progress
from deepbore.loop.runner import Run, TrialRunner


class LoopController(Callback):
    """Callback that proposes, evaluates and records trials at the end of each training epoch: see `Run`.

    Under DDP all ranks have the same state and weights. Each searches its share of the candidates and evaluates its
    share of the batch, which has at least one trial for each worker of each rank.

    Args:
        run: the run, which is not yet open; its state's data module is given to the Trainer.
        logs: whether metrics are logged, which takes a few percent of an iteration.
    """

    def __init__(self, run: Run, logs: bool = True):
        self.run, self.state, self.logs = run, run.state, logs

    @property
    def engine(self) -> Engine:
        """The steps of the run, from `setup` on."""
        return self.run.engine

    @property
    def runner(self) -> TrialRunner:
        """What evaluates, from `setup` on."""
        return self.run.runner

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Connects the ranks of the Trainer, and claims the evaluator, which must be free."""
        self.run.open(trainer, Ranks.found() if trainer.world_size > 1 else None, self._forecast)

    @hook
    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Evaluates interrupted and enqueued trials, and the rest of the initial design."""
        self.run.begin()

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Starts the clock."""
        self.run.begin_iteration()

    @hook
    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """One iteration: propose, evaluate, record."""
        self._log_labels(pl_module)
        if self.run.iterate() and self.logs:
            measured = {**progress(self.state.observations), "seconds_per_suggestion": self.run.seconds}
            pl_module.log_dict(exact({**measured, **self._metrics.known}))

    def _log_labels(self, pl_module: LightningModule) -> None:
        """Logs metrics of the labels of this epoch."""
        batch = self.state.data.latest
        if self.logs and batch is not None:
            self._metrics.relabelled(batch, self.state.observations)
            pl_module.log_dict(exact(batch.metrics), on_step=False, on_epoch=True, batch_size=len(batch))

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Waits for outstanding trials if the trainer has ended the run."""
        self.run.finish()

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Closes the evaluator."""
        self.run.close()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Abandons outstanding trials, also on Ctrl-C; they stay pending, and the next run evaluates them first."""
        self.run.abandon()

    def _forecast(self, points: Tensor) -> AbstractContextManager[None]:
        """A context in which the labels predicted for proposals (q x d) are recorded, if they are logged."""
        if not self.logs:
            return nullcontext()
        return self._metrics.forecast(len(self.state.observations), self.engine.expected_labels(points))

    @property
    def _metrics(self) -> Metrics:
        """The metrics of labels and predictions."""
        self.state.metrics = self.state.metrics or Metrics()
        return self.state.metrics
