"""`RunProgress`: the one progress bar of a run."""

import math

from lightning.pytorch import Callback, LightningModule, Trainer
from tqdm import tqdm

from deepbore.data.observations import Observations


class RunProgress(Callback):
    """Trials done, best value, threshold, seconds per suggestion and failures, on one line.

    Args:
        observations: what is shown.
        goal: how many trials there are in the end; None if nobody knows.
        hidden: shows nothing, as on all ranks but the first.
    """

    def __init__(self, observations: Observations, goal: int | None, hidden: bool = False):
        self.observations, self.goal, self.hidden = observations, goal, hidden
        self.bar: tqdm[object] | None = None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Opens the bar."""
        self.bar = tqdm(total=self.goal, desc="trials", unit="trial", disable=self.hidden, dynamic_ncols=True)
        self._show(trainer)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Moves the bar."""
        self._show(trainer)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Closes the bar."""
        if self.bar is not None:
            self._show(trainer)
            self.bar.close()

    def _show(self, trainer: Trainer) -> None:
        assert self.bar is not None
        observations, logged = self.observations, trainer.callback_metrics
        best = observations.best if observations.k == 1 else None
        shown = {
            "best": math.nan if best is None or best.value is None else best.value,
            "tau": float(logged.get("tau", math.nan)),
            "s/suggestion": float(logged.get("seconds_per_suggestion", math.nan)),
            "failed": observations.n_failed or math.nan,
        }
        known = {name: f"{value:.4g}" for name, value in shown.items() if not math.isnan(value)}
        self.bar.set_postfix(known, refresh=False)
        self.bar.update(observations.n_complete + observations.n_failed - self.bar.n)
