"""`TrainedClassifier`: a classifier that learns by gradient steps, a LightningModule like any other."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, NamedTuple

import torch
from lightning.pytorch import LightningModule
from lightning.pytorch.core.hooks import ModelHooks
from torch import Tensor, nn

from deepbore.classifiers.base import Classifier
from deepbore.compute.distributed import Ranks
from deepbore.labels import LabelledBatch

HOOKS = frozenset(  # of Lightning, which only a Trainer calls as documented, or whose code may use the Trainer
    {name for name in vars(ModelHooks) if name.startswith("on_") and name not in ("on_save_checkpoint",)}
    | {"training_step", "configure_optimizers", "optimizer_step", "optimizer_zero_grad", "backward"}
    | {"configure_gradient_clipping", "lr_scheduler_step", "configure_callbacks", "manual_backward"}
)


class Minibatch(NamedTuple):
    """The rows of one gradient step.

    Attributes:
        x: features, B x e.
        z: labels in [0, 1], B x k.
        weight: weights of the rows in the loss, B.
    """

    x: Tensor
    z: Tensor
    weight: Tensor


class TrainedClassifier(Classifier, LightningModule):
    """A classifier that learns by gradient steps: a LightningModule, whose epochs are the iterations of a run.

    The batches of an epoch are the `minibatches` of the rows that are labelled by then. `training_step` gives the loss
    of each, and the optimizer of `configure_optimizers` makes a step; `conclude` ends the epoch. The state of
    optimizers and learning rate schedulers lasts over all iterations, in snapshots, too. A subclass implements `build`,
    `minibatches`, `training_step` and `posterior`, and may override every hook of Lightning.

    | who takes the steps | where |
    |---|---|
    | a Trainer | a subclass overrides a hook of Lightning, or the Trainer has work in a step: precision, gradient clipping, accumulation, callbacks that observe steps, a profiler |
    | `fit`, in a loop without a Trainer | else, and within another classifier, such as `Calibrated` |

    Both take the same steps. Where nothing is overridden the second takes a few ms less per iteration.
    """  # noqa: E501  # a row of a table

    closed_form = False

    def __init__(self) -> None:
        super().__init__()
        self.stepped_by_trainer = False
        self._measured: dict[str, Any] = {}

    # --- as in any LightningModule -----------------------------------------------------------------------------------

    def configure_model(self) -> None:
        """Creates the parameters for the trainer's data, and default labels if the data have none."""
        self.bind_to(self.trainer.datamodule.data)  # type: ignore[attr-defined]  # Lightning's types don't have it

    def training_step(self, batch: Minibatch, batch_idx: int = 0) -> Any:
        """The loss of a minibatch, to be minimised."""
        raise NotImplementedError(f"{type(self).__name__} must implement training_step, or fit(batch).")

    def log(self, name: str, value: Any, *args: Any, **settings: Any) -> None:
        """Logs a metric, as in Lightning; in a loop without a Trainer, the last value of the iteration."""
        if self.stepped_by_trainer:
            super().log(name, value, *args, **settings)
        else:
            self._measured[name] = value.detach() if isinstance(value, Tensor) else value

    # --- for subclasses ----------------------------------------------------------------------------------------------

    def minibatches(self, batch: LabelledBatch) -> Iterator[Minibatch]:
        """The minibatches of one iteration, from all labelled rows."""
        raise NotImplementedError(f"{type(self).__name__} must implement minibatches(batch), or fit(batch).")

    @property
    def n_minibatches(self) -> int:
        """The number of minibatches in the next iteration; `minibatches` may end earlier."""
        raise NotImplementedError(f"{type(self).__name__} must implement n_minibatches, or fit(batch).")

    def conclude(self) -> dict[str, Any]:
        """Ends an iteration after its last step; returns metrics by name."""
        return {}

    def sharing(self, ranks: Ranks) -> AbstractContextManager[Any]:
        """A context in which the processes of a distributed run share the steps of one iteration, without a Trainer."""
        return nullcontext()

    def step_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """One step with the current gradients, without a Trainer."""
        optimizer.step()

    # --- an iteration ------------------------------------------------------------------------------------------------

    @torch.enable_grad()
    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        """One iteration without a Trainer."""
        self.stepped_by_trainer, self._measured = False, {}
        steps = self.minibatches(batch)
        with self.sharing(batch.ranks):
            for number, rows in enumerate(steps):
                self.take_step(rows, number)
        return self.finish(self._measured)

    def take_step(self, batch: Minibatch, batch_idx: int) -> None:
        """One gradient step without a Trainer."""
        made = self.optimizers_made()
        loss = self.training_step(batch, batch_idx)
        loss = loss["loss"] if isinstance(loss, Mapping) else loss
        if loss is None:  # the step is left out, as in Lightning
            return
        optimizer = made.only_one(type(self).__name__)
        optimizer.zero_grad()
        loss.backward()
        self.step_optimizer(optimizer)
        made.step_schedulers("step", batch_idx + 1, self._measured)

    def finish(self, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Ends an iteration after its last step.

        Args:
            measured: the metrics that a scheduler may monitor.

        Returns:
            These metrics and those of `conclude`; a Trainer that took the steps has logged the first already.
        """
        made = self.optimizers_made()
        made.iterations += 1
        made.step_schedulers("epoch", made.iterations, measured, only_plateau=self.stepped_by_trainer)
        return {**({} if self.stepped_by_trainer else measured), **self.conclude()}


@cache
def overridden(cls: type[TrainedClassifier]) -> frozenset[str]:
    """The names of a head that classes outside of deepbore define, those of its bases included."""
    own = next(each for each in cls.__mro__ if each.__module__.startswith("deepbore."))
    return frozenset(name for each in cls.__mro__[: cls.__mro__.index(own)] for name in vars(each))


def trained_within(module: nn.Module) -> Sequence[TrainedClassifier]:
    """The classifiers that learn by gradient steps in a module, itself among them, but none within another."""
    if isinstance(module, TrainedClassifier):
        return [module]
    return [each for part in module.children() for each in trained_within(part)]
