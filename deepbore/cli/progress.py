"""`RunProgress`: the one progress bar of a run."""

import math

from lightning.pytorch import Callback, LightningModule, Trainer
from tqdm import tqdm

from deepbore.loop.controller import LoopController


class RunProgress(Callback):
    """Trials done, best value, threshold, seconds per suggestion and failures, on one line.

    Args:
        loop: the controller whose run is shown.
    """

    def __init__(self, loop: LoopController):
        self.loop = loop
        self.bar: tqdm[object] | None = None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Opens the bar, on the first rank only."""
        hidden = not trainer.is_global_zero
        self.bar = tqdm(total=self.loop.n_trials, desc="trials", unit="trial", disable=hidden, dynamic_ncols=True)
        self._show()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Moves the bar."""
        self._show()

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Closes the bar."""
        if self.bar is not None:
            self._show()
            self.bar.close()

    def _show(self) -> None:
        assert self.bar is not None
        observations = self.loop.observations
        best = observations.best
        shown = {
            "best": math.nan if best is None or best.value is None else best.value,
            "tau": self.loop.tau,
            "s/suggestion": self.loop.seconds,
            "failed": observations.n_failed or math.nan,
        }
        known = {name: f"{value:.4g}" for name, value in shown.items() if not math.isnan(value)}
        self.bar.set_postfix(known, refresh=False)
        self.bar.update(observations.n_complete + observations.n_failed - self.bar.n)
