"""`TrainedClassifier`: a classifier that learns by gradient steps, a LightningModule like any other."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast

import torch
from lightning.pytorch import LightningModule
from lightning.pytorch.core.hooks import ModelHooks
from torch import Tensor, nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from deepbore.classifiers.base import Classifier
from deepbore.compute.distributed import Ranks
from deepbore.errors import SettingError
from deepbore.labels import LabelledBatch

Kept = TypeVar("Kept", bound=torch.optim.Optimizer)
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

    Attributes:
        optimization: the optimizers and schedulers of the latest training; None before the first.
    """  # noqa: E501  # a row of a table

    closed_form = False

    def __init__(self) -> None:
        super().__init__()
        self.optimization: Optimization | None = None
        self.stepped_by_trainer = False
        self._waiting: Mapping[str, Any] = {}  # the state for optimizers that are not made yet
        self._measured: dict[str, Any] = {}

    # --- as in any LightningModule -----------------------------------------------------------------------------------

    def configure_model(self) -> None:
        """Creates the parameters for the trainer's data, and default labels if the data have none."""
        self.bind_to(self.trainer.datamodule.data)  # type: ignore[attr-defined]  # Lightning's types don't have it

    def training_step(self, batch: Minibatch, batch_idx: int = 0) -> Any:
        """The loss of a minibatch, to be minimised."""
        raise NotImplementedError(f"{type(self).__name__} must implement training_step, or fit(batch).")

    def configure_optimizers(self) -> Any:
        """The optimizer, in any form that Lightning documents; none by default."""
        return None

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

    # --- optimizers --------------------------------------------------------------------------------------------------

    def optimizers_made(self) -> "Optimization":
        """The optimizers and schedulers of `configure_optimizers`, made at the first call."""
        if self.optimization is None:
            self.adopt(Optimization.of(self.configure_optimizers()))
        assert self.optimization is not None
        return self.optimization

    def adopt(self, made: "Optimization") -> None:
        """Continues with new optimizers and schedulers in the state of the former ones."""
        if state := self.learning_states()[0]:
            made.load_state_dict(state)
        self.optimization, self._waiting = made, {}

    def kept_optimizers(self) -> list[torch.optim.Optimizer]:
        return [*self.optimizers_made().optimizers, *super().kept_optimizers()]

    def learning_states(self) -> list[Mapping[str, Any]]:
        own = self._waiting if self.optimization is None else self.optimization.state_dict()
        return [own, *super().learning_states()]

    def load_learning_states(self, states: Iterator[Mapping[str, Any]]) -> None:
        state = next(states, {})
        if self.optimization is None:
            self._waiting = state
        elif state:
            self.optimization.load_state_dict(state)
        else:
            self.optimization = None
        super().load_learning_states(states)

    # --- as in version 0.3, for subclasses that implement `fit` ------------------------------------------------------

    def keep_optimizer(self, make: Callable[[], Kept]) -> Kept:
        """The optimizer that `make` returned at the first call, so that its state lasts over all fits."""
        if self.optimization is None:
            self.adopt(Optimization.of(make()))
        assert self.optimization is not None
        return cast(Kept, self.optimization.optimizers[0])

    def lightning_optimizer(self) -> Any:
        """The optimizer, for `fit` to step; one without parameters where there is none."""
        own = self.optimizers_made().optimizers
        return own[0] if own else torch.optim.SGD([nn.Parameter(torch.zeros(()))], lr=0.0)

    def count_step(self) -> None:
        """Does nothing: the steps that Lightning counts are those of the module around this one."""


@cache
def overridden(cls: type[TrainedClassifier]) -> frozenset[str]:
    """The names of a head that classes outside of deepbore define, those of its bases included."""
    own = next(each for each in cls.__mro__ if each.__module__.startswith("deepbore."))
    return frozenset(name for each in cls.__mro__[: cls.__mro__.index(own)] for name in vars(each))


# --- optimizers and schedulers ---------------------------------------------------------------------------------------


@dataclass
class Schedule:
    """A learning rate scheduler and when it steps, as in the dictionaries of Lightning's `configure_optimizers`.

    Attributes:
        scheduler: of torch.
        interval: "step", or "epoch", which is an iteration.
        frequency: how many of these pass between two steps.
        monitor: the metric of a `ReduceLROnPlateau`.
    """

    scheduler: Any
    interval: str = "epoch"
    frequency: int = 1
    monitor: str | None = None

    @classmethod
    def of(cls, given: Any, monitor: str | None = None) -> "Schedule":
        """From a scheduler, or Lightning's dictionary of one."""
        if not isinstance(given, Mapping):
            return cls(given, monitor=monitor)
        known = {name: given[name] for name in ("scheduler", "interval", "frequency", "monitor") if name in given}
        return cls(**{"monitor": monitor, **known})

    @property
    def awaits_metric(self) -> bool:
        """Whether a step needs the value of a metric."""
        return isinstance(self.scheduler, ReduceLROnPlateau)


@dataclass
class Optimization:
    """Optimizers and learning rate schedulers of a module, with their state.

    Attributes:
        optimizers: at least one.
        schedules: the schedulers.
        iterations: that the schedulers have seen.
    """

    optimizers: list[torch.optim.Optimizer]
    schedules: list[Schedule]
    iterations: int = 0

    def __post_init__(self) -> None:
        if any(isinstance(each, torch.optim.LBFGS) for each in self.optimizers):
            raise SettingError(NO_LBFGS)

    @classmethod
    def of(cls, configured: Any) -> "Optimization":
        """From what `configure_optimizers` returns, in any form that Lightning documents."""
        if isinstance(configured, (tuple, list)) and len(configured) == 2 and isinstance(configured[0], (tuple, list)):
            schedulers = configured[1] if isinstance(configured[1], (tuple, list)) else [configured[1]]
            return cls(list(configured[0]), [Schedule.of(each) for each in schedulers])
        every = configured if isinstance(configured, (tuple, list)) else [] if configured is None else [configured]
        made = [each if isinstance(each, Mapping) else {"optimizer": each} for each in every]
        if not all(isinstance(each.get("optimizer"), torch.optim.Optimizer) for each in made):
            raise SettingError(
                f"configure_optimizers must return an optimizer, but returned {configured!r:.100}. Lightning documents "
                "the forms: an optimizer, or {'optimizer': ..., 'lr_scheduler': ...}."
            )
        schedules = [Schedule.of(one, each.get("monitor")) for each in made if (one := each.get("lr_scheduler"))]
        return cls([each["optimizer"] for each in made], schedules)

    def only_one(self, name: str) -> torch.optim.Optimizer:
        """The one optimizer. Raises SettingError for several, which only a Trainer's manual optimization uses."""
        if len(self.optimizers) != 1:
            raise SettingError(
                f"{name} has {len(self.optimizers)} optimizers, but without a Trainer of its own, as within another "
                "classifier, it steps one. Give parameter groups to one optimizer."
            )
        return self.optimizers[0]

    def restart(self, fresh: "Optimization") -> None:
        """Takes over the state of new optimizers and schedulers: nothing is remembered."""
        for own, other in zip(self.optimizers, fresh.optimizers, strict=True):
            own.state.clear()
            for group, new in zip(own.param_groups, other.param_groups, strict=True):
                group.update({name: new[name] for name in new if name not in ("params", "weight_decay")})
        for schedule, started in zip(self.schedules, fresh.schedules, strict=True):
            schedule.scheduler.load_state_dict(started.scheduler.state_dict())
        self.iterations = 0

    def step_schedulers(
        self, interval: str, count: int, measured: Mapping[str, Any], only_plateau: bool = False
    ) -> None:
        """Steps the schedulers of an interval, of which so many have passed."""
        for each in self.schedules:
            if each.interval != interval or count % each.frequency or (only_plateau and not each.awaits_metric):
                continue
            each.scheduler.step(*([monitored(each.monitor, measured)] if each.awaits_metric else []))

    def state_dict(self) -> dict[str, Any]:
        """The states, not copied."""
        return {
            "optimizers": [each.state_dict() for each in self.optimizers],
            "schedulers": [each.scheduler.state_dict() for each in self.schedules],
            "iterations": self.iterations,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores what `state_dict` returned, or the state of one optimizer, as snapshots of version 0.3 have it."""
        state = {"optimizers": [state], "schedulers": []} if "param_groups" in state else state
        parts = [*self.optimizers, *(each.scheduler for each in self.schedules)]
        for part, kept in zip(parts, [*state["optimizers"], *state["schedulers"]], strict=True):
            part.load_state_dict(kept)
        self.iterations = state.get("iterations", 0)


NO_LBFGS = (
    "LBFGS evaluates the loss of all rows several times a step, but a head learns by minibatches, with one gradient a "
    "step. Give torch.optim.AdamW, SGD or another optimizer whose step takes no closure."
)


def monitored(name: str | None, measured: Mapping[str, Any]) -> Any:
    """The metric that a scheduler monitors. Raises SettingError if nothing has logged it."""
    if name is None or name not in measured:
        raise SettingError(
            f"ReduceLROnPlateau must monitor a logged metric, but got monitor={name!r}. Logged are {sorted(measured)}."
        )
    return measured[name]


def trained_within(module: nn.Module) -> Sequence[TrainedClassifier]:
    """The classifiers that learn by gradient steps in a module, itself among them, but none within another."""
    if isinstance(module, TrainedClassifier):
        return [module]
    return [each for part in module.children() for each in trained_within(part)]
