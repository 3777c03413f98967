"""`PruningCallback`: a Lightning Trainer reports to a trial, and ends where the study's pruner ends it."""

import sys
from typing import TYPE_CHECKING

from deepbore.data.trial import Trial
from deepbore.errors import SettingError, TrialPruned

if TYPE_CHECKING:
    from lightning.pytorch import Callback, LightningModule, Trainer
elif "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:  # Lightning has two names, and
    from pytorch_lightning import Callback, LightningModule, Trainer  # a Trainer accepts callbacks of its own name only
else:
    from lightning.pytorch import Callback, LightningModule, Trainer


class PruningCallback(Callback):
    """A callback that reports a metric to a trial after each validation, and ends the training where it is pruned.

    Without validation it reports at the end of each training epoch. The step is the number of epochs so far, so that a
    trial that continues from a checkpoint goes on with its curve. A pruned training ends like one that `EarlyStopping`
    ends, with its checkpoints and logs complete; then `fit` raises `TrialPruned`, which the objective passes on. Under
    DDP the first rank reports and decides, and all ranks end together.

    Args:
        trial: that the objective was given, or that `study.ask` gave.
        monitor: name of the metric, as in `trainer.callback_metrics`. Where it was not logged, nothing is reported.

    Attributes:
        pruned: whether the training was ended.

    Raises:
        SettingError: for a metric without a name, or what is no trial.

    Example::

        def objective(params, trial):
            pruning = PruningCallback(trial, monitor="val_loss")
            trainer = Trainer(max_epochs=81, callbacks=[pruning, EarlyStopping("val_loss")])
            trainer.fit(Network(**params), data)
            return trainer.callback_metrics["val_loss"]
    """

    def __init__(self, trial: Trial, monitor: str):
        if not isinstance(trial, Trial):
            raise SettingError(f"a training reports to a trial, but got {trial!r:.100}. Give that of the objective.")
        if not (isinstance(monitor, str) and monitor):
            raise SettingError(f"monitor must name a metric, as val_loss, but got {monitor!r:.100}.")
        self.trial, self.monitor = trial, monitor
        self.pruned = False
        self._has_validated = False

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Forgets the validations of the epoch before."""
        self._has_validated = False

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Reports the metric of a validation."""
        if not trainer.sanity_checking and trainer.state.fn == "fit":
            self._has_validated = True
            self._report(trainer, trainer.current_epoch + 1)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Reports the metric of an epoch without a validation."""
        if not self._has_validated:
            self._report(trainer, trainer.current_epoch + 1)

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Raises TrialPruned after a training that was ended."""
        if stage == "fit" and self.pruned:
            raise TrialPruned(f"{self.monitor} after {trainer.current_epoch} epochs")

    def _report(self, trainer: Trainer, step: float) -> None:
        """Reports on the first rank, and ends the training on all of them."""
        value = trainer.callback_metrics.get(self.monitor)
        decision = False
        if trainer.is_global_zero and value is not None:
            self.trial.report(float(value), step)
            decision = self.trial.should_prune()
        if agreed(trainer, decision):
            self.pruned = trainer.should_stop = True


def agreed(trainer: Trainer, decision: bool) -> bool:
    """The decision of the first rank, on all ranks."""
    return bool(trainer.strategy.broadcast(decision)) if trainer.world_size > 1 else decision
