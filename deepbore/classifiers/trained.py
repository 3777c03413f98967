"""`TrainedClassifier`: a classifier that learns by gradient steps, and so a LightningModule."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch
from lightning.pytorch import LightningModule
from torch import nn

from deepbore.classifiers.base import Classifier
from deepbore.compute.distributed import leave_apart
from deepbore.compute.torch_state import hook
from deepbore.labels import LabelledBatch

Kept = TypeVar("Kept", bound=torch.optim.Optimizer)


class TrainedClassifier(Classifier, LightningModule):
    """A classifier that learns by gradient steps: a LightningModule, which a Trainer trains for an epoch per iteration.

    It steps its own optimizer in `fit`, the first time in an iteration by `lightning_optimizer`.
    """

    closed_form = False

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False
        self._optimizer: torch.optim.Optimizer | None = None

    def configure_model(self) -> None:
        """Creates the parameters for the trainer's data, and default labels if the data have none."""
        self.bind_to(self.trainer.datamodule.data)  # type: ignore[attr-defined]  # Lightning's types don't have it
        leave_apart(self, witness="_counter")

    def configure_optimizers(self) -> Any:
        """A placeholder for models without gradient descent, whose steps are only counted; see `count_step`."""
        return self.keep_optimizer(lambda: torch.optim.SGD([self._counter], lr=0.0))

    def keep_optimizer(self, make: Callable[[], Kept]) -> Kept:
        """The optimizer that `make` returned at the first call, so that its state lasts over all fits."""
        if self._optimizer is None:
            self._optimizer = make()
        return cast(Kept, self._optimizer)

    def kept_optimizers(self) -> list[torch.optim.Optimizer]:
        made = self.configure_optimizers()
        return made if isinstance(made, list) else [made]

    def lightning_optimizer(self) -> Any:
        """This classifier's own optimizer in Lightning's wrapper, which counts the steps."""
        wrapped: Any = self.optimizers()
        every = wrapped if isinstance(wrapped, list) else [wrapped]  # several, where one classifier contains another
        return next(each for each in every if each.optimizer is self._optimizer)

    def count_step(self) -> None:
        """Counts one step; `fit` of a model without gradient descent calls it once.

        Lightning writes a checkpoint only if the number of steps has grown. Without a running Trainer nothing is
        counted.
        """
        if self._trainer is not None and self._trainer.training:
            self.lightning_optimizer().step()

    @hook
    def training_step(self, batch: LabelledBatch, batch_idx: int = 0) -> None:
        """Learns the epoch's one batch, and logs what `learned` measures."""
        if measured := self.learned(batch):
            self.log_dict(measured, on_step=False, on_epoch=True, batch_size=batch.n_own)


def trained_within(module: nn.Module) -> list[TrainedClassifier]:
    """The classifiers that learn by gradient steps in a module, itself among them, but none within another."""
    if isinstance(module, TrainedClassifier):
        return [module]
    return [each for part in module.children() for each in trained_within(part)]
