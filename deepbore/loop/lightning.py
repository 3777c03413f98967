"""Adapter to Lightning: the only module that uses undocumented behaviour of Lightning.

`tests/loop/test_lightning.py` tests each of these assumptions:

- `trainer.fit_loop.max_epochs` may be set between two fits, so that one Trainer runs some epochs at a time;
- a `fit` that is interrupted by Ctrl-C raises `SystemExit` or another error, with `KeyboardInterrupt` in its contexts;
- a `fit` puts a handler of SIGTERM over the program's own, before `on_train_start`, and restores that at its end;
- a trainer with the plugin `LightningEnvironment` looks for no cluster;
- `trainer.callbacks` is a list that is read at every hook;
- the launcher of other ranks has its own logger;
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
from types import FrameType
from typing import Any, NamedTuple, TypeVar

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import Checkpoint, LambdaCallback, ModelSummary, ProgressBar
from lightning.pytorch.plugins.environments import LightningEnvironment
from torch import nn

from deepbore.classifiers import Classifier
from deepbore.classifiers.base import optimizers_of
from deepbore.compute.distributed import leave_apart
from deepbore.compute.torch_state import caller_torch_state
from deepbore.labels import LabelledBatch, LabelledObservations

T = TypeVar("T")
LAUNCHER = "lightning.fabric.strategies.launchers.subprocess_script"
LOGGERS = ("lightning.pytorch", "lightning.fabric", LAUNCHER)


class QuietScope(NamedTuple):
    """The changes made by one `quiet` context.

    Attributes:
        levels: the levels of the loggers before the first context.
        filter: the warning filter that it has added. It is inserted and removed individually: runs may overlap in
            several threads, and `warnings.catch_warnings` would make Python repeat warnings that are shown once.
    """

    levels: list[int]
    filter: Any


QUIET_SCOPES: list[QuietScope] = []  # active contexts, the oldest first
with warnings.catch_warnings():
    warnings.filterwarnings("ignore", module="lightning")
    IGNORED: Any = warnings.filters[0]


class Models(LightningModule):
    """Several classifiers that are trained on the same batches.

    Metrics of the first are logged by name, those of the second as name_2, and so on.

    Args:
        models: two or more.
    """

    def __init__(self, models: Sequence[Classifier]):
        super().__init__()
        self.automatic_optimization = False
        self.classifiers = list(models)
        for number, model in enumerate(models, 1):  # not in a ModuleList: Lightning hands its trainer to children only
            self.add_module(f"model{number}", model)
        self.witness = nn.Parameter(torch.zeros(()))  # DDP needs a trainable parameter

    def configure_model(self) -> None:
        """Creates the parameters of all models."""
        for model in self.classifiers:
            model.configure_model()
        leave_apart(self, witness="witness")

    def configure_optimizers(self) -> Any:
        """The optimizers of all models."""
        return optimizers_of(self.classifiers)

    def training_step(self, batch: LabelledBatch, batch_idx: int = 0) -> None:
        """Trains all models on the batch."""
        for number, model in enumerate(self.classifiers, 1):
            measured = model.learned(batch)
            named = measured if number == 1 else {f"{name}_{number}": value for name, value in measured.items()}
            self.log_dict(named, on_step=False, on_epoch=True, batch_size=batch.n_own)


def new_trainer(device: torch.device | str = "cpu") -> Trainer:
    """A minimal trainer on one device, without logger, checkpoints or progress bar, whatever cluster this is on."""
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
            plugins=[LightningEnvironment()],
        )


def run(trainer: Trainer, module: Classifier | Models, data: LabelledObservations, epochs: int | None = None) -> None:
    """One `fit` for so many more epochs; None for the limit of the trainer, or no limit (Lightning's default is 1000).

    SIGTERM, which Lightning would note and forget, goes to the program's own handler, and ends it if there is none.

    Raises:
        KeyboardInterrupt: on Ctrl-C, which Lightning would turn into an exit of the whole program.
    """
    trainer.should_stop = False
    if epochs is not None:
        trainer.fit_loop.max_epochs = trainer.current_epoch + epochs
    elif trainer.fit_loop.max_epochs is None:
        trainer.fit_loop.max_epochs = -1
    with quiet(), _own_sigterm(trainer), _interruptible():
        trainer.fit(module, datamodule=data)


def run_and_then(
    trainer: Trainer, module: Classifier | Models, data: LabelledObservations, epochs: int, then: Callable[[], T]
) -> T:
    """Trains for some epochs, then calls a function while the classifier is still on the trainer's device.

    Returns:
        The result of the function.
    """
    results: list[T] = []
    callback = LambdaCallback(on_train_end=lambda *_: results.append(then()))
    with listening(trainer, callback):
        run(trainer, module, data, epochs)
    return results[0]


def train(classifier: Classifier, data: LabelledObservations, epochs: int) -> Classifier:
    """Trains a classifier for some epochs as in a run, without proposals."""
    run(new_trainer(), classifier, data, epochs)
    return classifier


@contextmanager
def listening(trainer: Trainer, callback: Callback) -> Iterator[None]:
    """A context with an additional first callback, whose logged metrics the others see in the same epoch."""
    callbacks = _callbacks(trainer)
    callbacks.insert(0, callback)
    try:
        yield
    finally:
        callbacks.remove(callback)


def has_own_limit(trainer: Trainer) -> bool:
    """Whether a trainer may end a run: by `max_epochs`, or a callback such as EarlyStopping or that of `max_time`."""
    others = [each for each in _callbacks(trainer) if not isinstance(each, (Checkpoint, ModelSummary, ProgressBar))]
    return trainer.max_epochs not in (None, -1) or bool(others)


@contextmanager
def tolerating_nan(trainer: Trainer, metric: str) -> Iterator[None]:
    """A context in which EarlyStopping accepts that a metric is still NaN."""
    checking = [each for each in trainer.early_stopping_callbacks if each.monitor == metric and each.check_finite]
    for each in checking:
        each.check_finite = False
    try:
        yield
    finally:
        for each in checking:
            each.check_finite = True


@contextmanager
def detached(classifier: Classifier) -> Iterator[None]:
    """A context in which a classifier has no trainer, so that it can be copied without it."""
    trainer = classifier._trainer
    classifier._trainer = None
    try:
        yield
    finally:
        classifier._trainer = trainer


@contextmanager
def quiet() -> Iterator[None]:
    """A context without the tips of Lightning, which are for other kinds of training, but with errors of ranks."""
    own = QuietScope(QUIET_SCOPES[0].levels if QUIET_SCOPES else _levels(), (*IGNORED,))
    QUIET_SCOPES.append(own)
    _filters().insert(0, own.filter)
    _set_levels([logging.ERROR, logging.ERROR, logging.INFO])
    try:
        yield
    finally:
        QUIET_SCOPES[:] = [each for each in QUIET_SCOPES if each is not own]
        _remove_filters([own])
        if not QUIET_SCOPES:
            _set_levels(own.levels)


@contextmanager
def in_caller_state() -> Iterator[None]:
    """A context, within a run, with the global state of the caller: for objectives, which may train, and callbacks."""
    with caller_torch_state():
        if not QUIET_SCOPES:
            yield
            return
        levels = _levels()
        _set_levels(QUIET_SCOPES[0].levels)
        _remove_filters(QUIET_SCOPES)
        try:
            yield
        finally:
            _remove_filters(QUIET_SCOPES)  # another thread may have inserted them again
            _filters()[:0] = [each.filter for each in QUIET_SCOPES]
            _set_levels(levels)


def _callbacks(trainer: Trainer) -> list[Callback]:
    return trainer.callbacks  # type: ignore[attr-defined, no-any-return]  # Lightning's types don't have it


def _filters() -> list[Any]:
    return warnings.filters  # type: ignore[return-value]  # typed as a sequence, but a list


def _remove_filters(hushed: list[QuietScope]) -> None:
    """Removes filters of warnings."""
    _filters()[:] = [each for each in _filters() if not any(each is other.filter for other in hushed)]


def _levels() -> list[int]:
    return [logging.getLogger(name).level for name in LOGGERS]


def _set_levels(levels: list[int]) -> None:
    for name, level in zip(LOGGERS, levels, strict=True):
        logging.getLogger(name).setLevel(level)


@contextmanager
def _own_sigterm(trainer: Trainer) -> Iterator[None]:
    """A context in which a `fit` leaves SIGTERM to the program's own handler, or to one that ends the program."""
    if threading.current_thread() is not threading.main_thread():  # no signal comes there
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    own = _ends_program if before == signal.SIG_DFL else before
    _restore_sigterm(own)
    try:
        with listening(trainer, LambdaCallback(on_train_start=lambda *_: _restore_sigterm(own))):
            yield
    finally:
        _restore_sigterm(before)


def _restore_sigterm(handler: Any) -> None:
    if handler is not None:  # of a program in C
        signal.signal(signal.SIGTERM, handler)


def _ends_program(number: int, _frame: FrameType | None) -> None:
    """What happens without a handler."""
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)


@contextmanager
def _interruptible() -> Iterator[None]:
    """A context that raises KeyboardInterrupt on Ctrl-C: Lightning would catch it, and exit the program."""
    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT) if is_main else None
    handled = sys.exc_info()[1]  # an error that the caller is handling
    try:
        yield
    except (SystemExit, RuntimeError) as ended:  # the latter if it was interrupted early
        within = takewhile(lambda before: before is not handled, _contexts(ended))
        if any(isinstance(before, KeyboardInterrupt) for before in within):
            raise KeyboardInterrupt from None
        raise
    finally:
        if handler is not None:
            signal.signal(signal.SIGINT, handler)


def _contexts(error: BaseException) -> Iterator[BaseException]:
    """The chain of contexts of an error."""
    before = error.__context__
    while before is not None:
        yield before
        before = before.__context__
