"""`PruningCallback`: a Lightning Trainer reports to a trial, and ends where the study's pruner ends it."""

import logging
import sys
from typing import TYPE_CHECKING

from deepbore.data.trial import Trial
from deepbore.errors import NeverLogged, SettingError, TrialPruned
from deepbore.integrations.measuring import Measured, epochs_done
from deepbore.names import did_you_mean
from deepbore.worker.reporting import Reporting

if TYPE_CHECKING:
    from lightning.pytorch import Callback, LightningModule, Trainer
elif "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:  # Lightning has two names, and
    from pytorch_lightning import Callback, LightningModule, Trainer  # a Trainer accepts callbacks of its own name only
else:
    from lightning.pytorch import Callback, LightningModule, Trainer

log = logging.getLogger(__name__)
_missed: set[str] = set()  # metrics that were said to be missing
_seen: set[str] = set()  # metrics that some training of this process has logged


class PruningCallback(Callback):
    """A callback that reports a metric to a trial after each validation, and ends the training where it is pruned.

    A metric of the training is reported at the end of each epoch. Where nothing was measured, as in an epoch without a
    validation, nothing is reported. The step is the number of epochs so far, with the part of the running one where it
    is validated several times, so that trials with other batches or other intervals are compared at the same progress,
    and a trial that continues from a checkpoint goes on with its curve. A pruned training ends like one that
    `EarlyStopping` ends, with its checkpoints and logs complete; then `fit` raises `TrialPruned`, which the objective
    passes on. Under DDP the first rank reports and decides, and all ranks end together.

    Args:
        trial: that the objective was given, or that `study.ask` gave.
        monitor: name of the metric, as in `trainer.callback_metrics`. One that is not there after an epoch and a
            validation is said once, with what there is. Where a training of a run with a pruner ends without it, and no
            earlier one in this process has had it, the run ends, if that is its first evaluation: else no trial would
            ever be pruned.

    Attributes:
        pruned: whether the training was ended.

    Raises:
        SettingError: for a metric without a name, or what is no trial.
        NeverLogged: at the end of a training that a pruner was to judge, and that never logged the metric.

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
        self._in_epoch, self._in_validation = Measured(monitor), Measured(monitor)
        self._has_reported = False  # at a validation of this epoch
        self._has_validated = False  # in this training
        self._is_missing = False  # after an epoch and a validation

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Forgets an earlier training."""
        self._has_validated = self._is_missing = False

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Forgets the validations of the epoch before."""
        self._has_reported = False
        self._in_epoch.mark(trainer)

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Looks at the metric, to know whether this validation measures it."""
        self._in_validation.mark(trainer)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Reports the metric of a validation."""
        if not trainer.sanity_checking and trainer.state.fn == "fit":
            value = self._in_validation.since(trainer)
            self._has_validated = True
            self._has_reported = self._has_reported or value is not None
            self._report(trainer, value, epochs_done(trainer))

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Reports the metric of an epoch's training."""
        self._report(trainer, None if self._has_reported else self._in_epoch.since(trainer), trainer.current_epoch + 1)
        if self._has_validated or not trainer.enable_validation:
            self._say_if_missing(trainer)

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Raises TrialPruned after a training that was ended, NeverLogged after one that could not be."""
        if stage == "fit" and self.pruned:
            raise TrialPruned(f"{self.monitor} after {trainer.current_epoch} epochs")
        reporting = Reporting.of(self.trial)
        is_judged = reporting is not None and reporting.judge is not None and not reporting.reports
        if stage == "fit" and self._is_missing and is_judged and sys.exc_info()[0] is None:
            raise NeverLogged(self._complaint(trainer))

    def _say_if_missing(self, trainer: Trainer) -> None:
        """Says once that nothing is pruned, as the metric is not there."""
        self._is_missing = self.monitor not in trainer.callback_metrics and self.monitor not in _seen
        if not self._is_missing or self.monitor in _missed or not trainer.is_global_zero:
            return
        _missed.add(self.monitor)
        log.warning("%s", self._complaint(trainer))

    def _complaint(self, trainer: Trainer) -> str:
        there = list(trainer.callback_metrics)
        return (
            f"PruningCallback(monitor={self.monitor!r}): nothing is reported, and no trial is pruned, as the training "
            f"has logged no such metric, but {', '.join(there) or 'none'}." + did_you_mean(self.monitor, there, "{!r}")
        )

    def _report(self, trainer: Trainer, value: float | None, step: float) -> None:
        """Reports what was measured on the first rank, and ends the training on all of them."""
        decision = False
        if value is not None:
            _seen.add(self.monitor)
        if trainer.is_global_zero and value is not None:
            self.trial.report(value, step)
            decision = self.trial.should_prune()
        if agreed(trainer, decision):
            self.pruned = trainer.should_stop = True


def agreed(trainer: Trainer, decision: bool) -> bool:
    """The decision of the first rank, on all ranks."""
    return bool(trainer.strategy.broadcast(decision)) if trainer.world_size > 1 else decision
