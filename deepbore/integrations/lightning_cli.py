"""`KeepTrial`: the callback that reports the metric of a LightningCLI program to `LightningCLIProblem`.

It is named on the command line, so the program needs no code for deepbore. It imports hardly any other module of it,
but where a study may end the trial early.
"""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepbore.integrations.measuring import Measured, epochs_done

if TYPE_CHECKING:
    from lightning.pytorch import Callback, LightningModule, Trainer
elif "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:  # Lightning has two names, and
    from pytorch_lightning import Callback, LightningModule, Trainer  # a Trainer accepts callbacks of its own name only
else:
    from lightning.pytorch import Callback, LightningModule, Trainer

METRICS, CONFIG, CHECKPOINT = "metrics.json", "config.yaml", "continue.ckpt"
REPORTS = "DEEPBORE_REPORTS"  # the variable that names the study, where it has a pruner, and the trial


class KeepTrial(Callback):
    """A callback that writes the configuration of a training run and the values of one metric into a folder.

    It writes config.yaml when the run starts, and metrics.json when it ends without an error: the metric's `history`, a
    number for each validation that measures it and for each epoch whose end gives another, with the epochs done by then
    (`steps`, with the part of an epoch that is validated several times), and all `final` metrics. A training that
    continues from a checkpoint continues the history. Where the study has a pruner, the first rank reports each number
    to it, and ends the training on all ranks if it says so (`pruned`).

    Args:
        folder: an existing one.
        metric: name of a logged metric.
        checkpoint: whether to write a checkpoint to continue from, continue.ckpt.
    """

    def __init__(self, folder: str, metric: str, checkpoint: bool = False):
        self.folder, self.metric, self.checkpoint = Path(folder), metric, checkpoint
        self.history: list[float] = []
        self.steps: list[float] = []
        self.pruned = False
        self._has_validated = False  # since the last epoch began
        self._in_epoch, self._in_validation = Measured(metric), Measured(metric)
        self._judge: Any = None  # of the trial's id and its reports, where the study has a pruner
        self._trial = 0

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Empties the history, before a checkpoint restores that of an earlier training."""
        if stage == "fit":
            self.history, self.steps, self.pruned = [], [], False
            if REPORTS in os.environ:
                from deepbore.worker.reporting import RemoteJudge

                self._trial, address = json.loads(os.environ[REPORTS])
                self._judge = RemoteJudge.from_text(address)

    def state_dict(self) -> dict[str, Any]:
        """The history, for a checkpoint."""
        return {"history": self.history, "steps": self.steps}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores the history of a checkpoint."""
        self.history = list(state_dict["history"])
        self.steps = list(state_dict.get("steps", range(1, len(self.history) + 1)))  # missing in those of version 0.3

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Saves the configuration, after LightningCLI has saved it where the program wants it."""
        callbacks: list[Callback] = trainer.callbacks  # type: ignore[attr-defined]  # Lightning's types don't have it
        savers = [each for each in callbacks if type(each).__name__ == "SaveConfigCallback"]
        for saver in savers if trainer.is_global_zero else []:
            self._save(saver)

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Looks at the metric, to know whether this validation measures it."""
        self._in_validation.mark(trainer)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Appends the metric of a validation."""
        if not trainer.sanity_checking and (value := self._in_validation.since(trainer)) is not None:
            self._has_validated = True
            self._note(trainer, value, epochs_done(trainer))

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Appends the metric at the end of the previous epoch, if it is not that of its last validation."""
        self._note_epoch(trainer)
        self._in_epoch.mark(trainer)

    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Appends the last metric and writes the files."""
        self._note_epoch(trainer)
        if self.checkpoint:
            trainer.save_checkpoint(self.folder / CHECKPOINT)  # on all ranks: each may hold a shard
        if trainer.is_global_zero:
            final = {name: float(value) for name, value in trainer.callback_metrics.items()}
            kept = {"history": self.history, "steps": self.steps, "final": final, "pruned": self.pruned}
            (self.folder / METRICS).write_text(json.dumps(kept), encoding="utf-8")

    def _note_epoch(self, trainer: Trainer) -> None:
        value, known = self._in_epoch.since(trainer), self.history[-1:] if self._has_validated else []
        if value is not None and known != [value]:
            self._note(trainer, value, trainer.current_epoch)
        self._has_validated = False

    def _note(self, trainer: Trainer, value: float, step: float) -> None:
        """Appends the metric after so many epochs, and asks whether to go on."""
        self.history.append(value)
        self.steps.append(step)
        if self._judge is not None and self._should_end(trainer):
            self.pruned = trainer.should_stop = True

    def _should_end(self, trainer: Trainer) -> bool:
        """The study's decision, which the first rank asks for, on all ranks."""
        decision = trainer.is_global_zero and self._judge(self._trial, {self.steps[-1]: self.history[-1]})
        return bool(trainer.strategy.broadcast(decision)) if trainer.world_size > 1 else bool(decision)

    def _save(self, saver: Any) -> None:
        """Writes the configuration without this callback, so that it can be run again."""
        config = saver.config.clone()
        config.trainer.callbacks = [each for each in config.trainer.callbacks if not self._is_this(each)] or None
        saver.parser.save(config, self.folder / CONFIG, skip_none=False, overwrite=True, multifile=False)

    def _is_this(self, callback: Any) -> bool:
        return str(getattr(callback, "class_path", "")) == f"{__name__}.{type(self).__name__}"
