"""`Optimization`: optimizers and learning rate schedulers whose state lasts over all iterations."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau

from deepbore.errors import SettingError

NO_LBFGS = (
    "LBFGS evaluates the loss of all rows several times a step, but a head learns by minibatches, with one gradient a "
    "step. Give torch.optim.AdamW, SGD or another optimizer whose step takes no closure."
)


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


def monitored(name: str | None, measured: Mapping[str, Any]) -> Any:
    """The metric that a scheduler monitors. Raises SettingError if nothing has logged it."""
    if name is None or name not in measured:
        raise SettingError(
            f"ReduceLROnPlateau must monitor a logged metric, but got monitor={name!r}. Logged are {sorted(measured)}."
        )
    return measured[name]
