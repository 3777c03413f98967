"""What a Lightning Trainer has measured, and after how many epochs.

It imports no other module of deepbore, for it runs in programs that are tuned. Of Lightning it assumes that
`trainer.fit_loop.epoch_loop.batch_progress` counts the batches of the running epoch.
"""

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lightning.pytorch import Trainer


class Measured:
    """Whether a metric was measured since a moment: a Trainer keeps old values where there is no new one.

    Args:
        name: of the metric, as in `trainer.callback_metrics`.
    """

    def __init__(self, name: str):
        self.name = name
        self._before: Any = None

    def mark(self, trainer: "Trainer") -> None:
        """Looks at the metric as it is at this moment."""
        self._before = trainer.callback_metrics.get(self.name)

    def since(self, trainer: "Trainer") -> float | None:
        """The metric, if it was measured since `mark`; else None."""
        now = trainer.callback_metrics.get(self.name)
        return None if now is None or now is self._before else float(now)


def epochs_done(trainer: "Trainer") -> float:
    """How many epochs of a training are done, with the part of the running one; whole at the end of each.

    Of an epoch whose length is not known, its first b batches are b / (b + 1): more with each of them.
    """
    progress = trainer.fit_loop.epoch_loop.batch_progress
    done, whole = progress.current.ready, float(trainer.num_training_batches)
    if progress.is_last_batch or done >= whole:
        return trainer.current_epoch + 1
    return trainer.current_epoch + (done / whole if math.isfinite(whole) else done / (done + 1))
