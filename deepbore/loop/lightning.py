"""The border with Lightning: whatever relies on more than its documented interface stands here, and nowhere else.

Each of these has a test in `tests/loop/test_lightning.py` that says what is relied on:

- `trainer.fit_loop.max_epochs` may be set between two fits, so that one Trainer runs some epochs at a time;
- a `fit` that Ctrl-C ends leaves by `SystemExit`, or by an error of its own, with the `KeyboardInterrupt` among the
  contexts;
- `trainer.callbacks` is a list, asked anew at every hook;
- the launcher of other ranks logs under a name of its own;
- a module keeps its trainer in `_trainer`.
"""

import logging
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Any, NamedTuple, TypeVar

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import Checkpoint, LambdaCallback, ModelSummary, ProgressBar
from torch import nn

from deepbore.classifiers import Classifier
from deepbore.classifiers.base import optimizers_of
from deepbore.compute.distributed import leave_apart
from deepbore.compute.torch_state import caller_torch_state
from deepbore.labels import LabelledBatch, LabelledObservations

T = TypeVar("T")
LAUNCHER = "lightning.fabric.strategies.launchers.subprocess_script"
LOGGERS = ("lightning.pytorch", "lightning.fabric", LAUNCHER)


class Hushed(NamedTuple):
    """What a `quiet` has changed.

    Attributes:
        levels: of the loggers before any.
        filter: of warnings, an object of its own, which it has added. It is put in and taken out by itself: runs may
            overlap in several threads, and where filters are entered anew, Python repeats warnings that are shown once.
    """

    levels: list[int]
    filter: Any


HUSHED: list[Hushed] = []  # those that go on, the first first
with warnings.catch_warnings():
    warnings.filterwarnings("ignore", module="lightning")
    IGNORED: Any = warnings.filters[0]


class Models(LightningModule):
    """Several classifiers that learn the same batches side by side.

    What they measure is logged, that of the first by its name, that of the second as name_2, and so on.

    Args:
        models: two or more.
    """

    def __init__(self, models: Sequence[Classifier]):
        super().__init__()
        self.automatic_optimization = False
        self.classifiers = list(models)
        for number, model in enumerate(models, 1):  # not in a ModuleList: Lightning hands its trainer to children only
            self.add_module(f"model{number}", model)
        self.witness = nn.Parameter(torch.zeros(()))  # DDP needs a parameter that could be trained

    def configure_model(self) -> None:
        """Makes the parameters of all."""
        for model in self.classifiers:
            model.configure_model()
        leave_apart(self, witness="witness")

    def configure_optimizers(self) -> Any:
        """Those of all."""
        return optimizers_of(self.classifiers)

    def training_step(self, batch: LabelledBatch, batch_idx: int = 0) -> None:
        """All learn the epoch's one batch."""
        for number, model in enumerate(self.classifiers, 1):
            measured = model.learned(batch)
            named = measured if number == 1 else {f"{name}_{number}": value for name, value in measured.items()}
            self.log_dict(named, on_step=False, on_epoch=True, batch_size=batch.n_own)


def new_trainer(device: torch.device | str = "cpu") -> Trainer:
    """A trainer on one device that only trains: without logger, checkpoints or bars."""
    device = torch.device(device)
    with quiet():
        return Trainer(
            accelerator=device.type,
            devices=1 if device.type == "cpu" else [device.index or 0],
            max_epochs=-1,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )


def run(trainer: Trainer, module: Classifier | Models, data: LabelledObservations, epochs: int | None = None) -> None:
    """One `fit`: so many more epochs, or as many as the trainer itself allows: no thousand, where it says nothing.

    Raises:
        KeyboardInterrupt: on Ctrl-C, which Lightning would turn into an exit of the whole program.
    """
    trainer.should_stop = False
    if epochs is not None:
        trainer.fit_loop.max_epochs = trainer.current_epoch + epochs
    elif trainer.fit_loop.max_epochs is None:
        trainer.fit_loop.max_epochs = -1
    with quiet(), _interruptible():
        trainer.fit(module, datamodule=data)


def run_and_then(
    trainer: Trainer, module: Classifier | Models, data: LabelledObservations, epochs: int, then: Callable[[], T]
) -> T:
    """So many epochs, and then a function, called while the classifier is still on the trainer's device.

    Returns:
        What the function returns.
    """
    results: list[T] = []
    callback = LambdaCallback(on_train_end=lambda *_: results.append(then()))
    with listening(trainer, callback):
        run(trainer, module, data, epochs)
    return results[0]


def train(classifier: Classifier, data: LabelledObservations, epochs: int) -> Classifier:
    """Trains a classifier for some epochs, as the loop would, without proposing anything."""
    run(new_trainer(), classifier, data, epochs)
    return classifier


@contextmanager
def listening(trainer: Trainer, callback: Callback) -> Iterator[None]:
    """Has a callback called before all others, so that these see what it has logged in the same epoch."""
    callbacks = _callbacks(trainer)
    callbacks.insert(0, callback)
    try:
        yield
    finally:
        callbacks.remove(callback)


def may_end(trainer: Trainer) -> bool:
    """Whether a trainer has an end of its own: epochs, or a callback such as EarlyStopping and that of `max_time`."""
    others = [each for each in _callbacks(trainer) if not isinstance(each, (Checkpoint, ModelSummary, ProgressBar))]
    return trainer.max_epochs not in (None, -1) or bool(others)


@contextmanager
def waiting_for(trainer: Trainer, metric: str) -> Iterator[None]:
    """Within, no EarlyStopping ends a run because its metric is still NaN."""
    impatient = [each for each in trainer.early_stopping_callbacks if each.monitor == metric and each.check_finite]
    for each in impatient:
        each.check_finite = False
    try:
        yield
    finally:
        for each in impatient:
            each.check_finite = True


@contextmanager
def detached(classifier: Classifier) -> Iterator[None]:
    """Within, a classifier knows no trainer, so that it can be copied without what the trainer holds."""
    trainer = classifier._trainer
    classifier._trainer = None
    try:
        yield
    finally:
        classifier._trainer = trainer


@contextmanager
def quiet() -> Iterator[None]:
    """Silences Lightning's tips and reminders, which are about other kinds of training, but not the end of a rank."""
    own = Hushed(HUSHED[0].levels if HUSHED else _levels(), (*IGNORED,))
    HUSHED.append(own)
    _filters().insert(0, own.filter)
    _set_levels([logging.ERROR, logging.ERROR, logging.INFO])
    try:
        yield
    finally:
        HUSHED[:] = [each for each in HUSHED if each is not own]
        _take_out([own])
        if not HUSHED:
            _set_levels(own.levels)


@contextmanager
def as_called() -> Iterator[None]:
    """Within a run, the program as it was when the run began: for an objective, which may train, too, and callbacks."""
    with caller_torch_state():
        if not HUSHED:
            yield
            return
        levels = _levels()
        _set_levels(HUSHED[0].levels)
        _take_out(HUSHED)
        try:
            yield
        finally:
            _take_out(HUSHED)  # another thread may have put them in again
            _filters()[:0] = [each.filter for each in HUSHED]
            _set_levels(levels)


def _callbacks(trainer: Trainer) -> list[Callback]:
    return trainer.callbacks  # type: ignore[attr-defined, no-any-return]  # Lightning's types don't have it


def _filters() -> list[Any]:
    return warnings.filters  # type: ignore[return-value]  # typed as a sequence, but a list


def _take_out(hushed: list[Hushed]) -> None:
    """Takes the filters of some out of those of warnings."""
    _filters()[:] = [each for each in _filters() if not any(each is other.filter for other in hushed)]


def _levels() -> list[int]:
    return [logging.getLogger(name).level for name in LOGGERS]


def _set_levels(levels: list[int]) -> None:
    for name, level in zip(LOGGERS, levels, strict=True):
        logging.getLogger(name).setLevel(level)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Gives Ctrl-C back to the caller: Lightning catches it, ignores another one while it ends its fit, and exits."""
    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT) if is_main else None
    handled = sys.exc_info()[1]  # by the caller, who may have been interrupted before
    try:
        yield
    except (SystemExit, RuntimeError) as ended:  # it may stumble over what it had not begun, as it ends its fit
        within = takewhile(lambda before: before is not handled, _contexts(ended))
        if any(isinstance(before, KeyboardInterrupt) for before in within):
            raise KeyboardInterrupt from None
        raise
    finally:
        if handler is not None:
            signal.signal(signal.SIGINT, handler)


def _contexts(error: BaseException) -> Iterator[BaseException]:
    """What was being handled when an error was raised, and when that was raised, ..."""
    before = error.__context__
    while before is not None:
        yield before
        before = before.__context__
