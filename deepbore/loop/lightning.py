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

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from types import FrameType
from typing import Any, TypeVar

import torch
from lightning.pytorch import Callback, LightningDataModule, LightningModule, Trainer
from lightning.pytorch.callbacks import (
    Checkpoint,
    GradientAccumulationScheduler,
    LambdaCallback,
    ModelSummary,
    ProgressBar,
    StochasticWeightAveraging,
    Timer,
)
from lightning.pytorch.plugins.environments import LightningEnvironment  # type: ignore[attr-defined]
from lightning.pytorch.profilers import PassThroughProfiler
from torch import nn

from deepbore.classifiers.base import Classifier
from deepbore.classifiers.optimization import Optimization, Schedule
from deepbore.classifiers.trained import HOOKS, Minibatch, TrainedClassifier, overridden, trained_within
from deepbore.compute.distributed import leave_apart
from deepbore.compute.torch_state import hook
from deepbore.labels import LabelledBatch, LabelledObservations
from deepbore.loop.quiet import quiet

T = TypeVar("T")


class Models(LightningModule):
    """Classifiers that each learn all rows of an iteration at once: in closed form, or by steps of their own.

    Metrics of the first are logged by name, those of the second as name_2, and so on.

    Args:
        models: one or more.
    """

    def __init__(self, models: Sequence[Classifier]):
        super().__init__()
        self.automatic_optimization = False
        self.classifiers = list(models)
        for number, model in enumerate(models, 1):
            self.add_module(f"model{number}", model)
        self.witness = nn.Parameter(torch.zeros(()))  # DDP needs a trainable parameter

    def configure_model(self) -> None:
        """Creates the parameters of all models."""
        for model in self.classifiers:
            model.bind_to(self.trainer.datamodule.data)  # type: ignore[attr-defined]  # Lightning's types have none
        for trained in trained_within(self):  # those within a model in closed form don't hear of the trainer otherwise
            trained.trainer = self.trainer
        leave_apart(self, witness="witness")

    def configure_optimizers(self) -> Any:
        """The optimizers of all models, and a placeholder whose steps Lightning counts, to write checkpoints."""
        kept = [optimizer for model in self.classifiers for optimizer in model.kept_optimizers()]
        return [*kept, torch.optim.SGD([self.witness], lr=0.0)]

    @hook
    def training_step(self, batch: LabelledBatch, batch_idx: int = 0) -> None:
        """Trains all models on the batch."""
        logged: dict[str, Any] = {}
        for number, model in enumerate(self.classifiers, 1):
            measured = model.learned(batch)
            logged |= measured if number == 1 else {f"{name}_{number}": value for name, value in measured.items()}
        if logged:
            self.log_dict(logged, on_step=False, on_epoch=True, batch_size=batch.n_own)
            made: Any = self.optimizers()
            (made[-1] if isinstance(made, list) else made).step()


class Alone(Models):
    """One classifier of that kind, whose attributes and weights callbacks and checkpoints find in this module."""

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("model1"), name)

    def state_dict(self, *args: Any, **settings: Any) -> Any:
        return self.classifiers[0].state_dict(*args, **settings)

    def load_state_dict(self, *args: Any, **settings: Any) -> Any:
        return self.classifiers[0].load_state_dict(*args, **settings)


class DataModule(LightningDataModule):
    """The data of a run for a Trainer; callbacks find in it what is in these.

    Args:
        data: which are labelled anew when an epoch begins.
        loader: of an epoch's batches; None for one batch of all rows.
    """

    def __init__(self, data: LabelledObservations, loader: "Iteration | None" = None):
        super().__init__()
        self.data, self._loader = data, loader

    def __getattr__(self, name: str) -> Any:
        if name in ("data", "_loader"):  # a copy has none yet
            raise AttributeError(name)
        return getattr(self.data, name)

    def setup(self, stage: str) -> None:
        """Moves the rows to the trainer's device."""
        assert self.trainer is not None
        self.data.observations.to(self.trainer.strategy.root_device)

    def train_dataloader(self) -> "_FreshLabels | Iteration":
        """The batches of an epoch, labelled when the epoch begins."""
        return self._loader or _FreshLabels(self.data)

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        """The unchanged batch, which is on the device already."""
        return batch


class _FreshLabels:
    """An iterable of one batch, which is labelled when it is requested."""

    def __init__(self, data: LabelledObservations):
        self.data = data

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[LabelledBatch]:
        yield self.data.batch()


# --- steps by a Trainer ----------------------------------------------------------------------------------------------

NEUTRAL: dict[str, tuple[Any, ...]] = {  # settings of a Trainer, with which it has nothing to do in a step
    "limit_train_batches": (None, 1),
    "gradient_clip_val": (None, 0),
    "accumulate_grad_batches": (None, 1),
    "precision": (None, 32, "32", "32-true"),
    "profiler": (None,),
}
STEP_HOOKS = (
    *("on_train_batch_start", "on_train_batch_end", "on_before_zero_grad", "on_before_backward"),
    *("on_after_backward", "on_before_optimizer_step"),
)
ONLY_COUNT = (Checkpoint, ModelSummary, ProgressBar, Timer)  # callbacks for which a step of all rows does as well
CHANGE_STEPS = (GradientAccumulationScheduler, StochasticWeightAveraging)
LARGE = 300_000  # weights of all members from which ranks share the gradients of one network


class Iteration(Callback):
    """The minibatches of a head, an epoch for each iteration, whose steps a Trainer takes; also its callback.

    Each rank has its share of every minibatch, weighted so that the mean of the ranks' gradients is that of the whole.

    Args:
        head: learns by the steps of the Trainer.
        data: which are labelled anew when an epoch begins.
        trainer: takes the steps.
    """

    def __init__(self, head: TrainedClassifier, data: LabelledObservations, trainer: Trainer):
        self.head, self.data, self.trainer = head, data, trainer
        self.batch: LabelledBatch | None = None  # all rows; None where nothing can be learned

    def __len__(self) -> int:
        return self.head.n_minibatches

    def __iter__(self) -> Iterator[Minibatch]:
        batch = self.data.batch()
        self.batch = batch if self.head.may_learn(batch) else None
        if self.batch is not None:
            yield from map(self._share, self.head.minibatches(self.batch))

    def _share(self, whole: Minibatch) -> Minibatch:
        """This rank's rows of a minibatch."""
        rank, world, size = self.trainer.global_rank, self.trainer.world_size, len(whole.z)
        if world == 1 or size < world:
            return whole
        part = Minibatch(*(each[rank::world] for each in whole))
        return part._replace(weight=part.weight * (len(part.z) * world / size))

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Continues with the state of the optimizers of the last `fit`."""
        schedules = []
        for each in trainer.lr_scheduler_configs:
            schedules.append(Schedule(each.scheduler, each.interval, each.frequency, each.monitor))
            if schedules[-1].awaits_metric and each.interval == "epoch":
                each.interval = "iteration"  # Lightning would step it after the proposal; `finish` does before
        self.head.adopt(Optimization(list(trainer.optimizers), schedules))

    @hook
    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Ends the iteration, and logs its metrics."""
        if self.batch is None:
            return
        logged = trainer.callback_metrics
        measured = self.head.completed(lambda: self.head.finish(logged), self.batch)
        if measured:
            pl_module.log_dict(measured, on_step=False, on_epoch=True, batch_size=self.batch.n_own)


def module_of(models: Sequence[Classifier]) -> LightningModule:
    """The module in which classifiers learn all rows at once; see `stepped`."""
    return Models(models) if len(models) > 1 else Alone(models)


def may_be_stepped(models: Sequence[Classifier]) -> bool:
    """Whether a Trainer can take the gradient steps of the classifiers: of one head that does not replace `fit`."""
    return (
        len(models) == 1 and isinstance(models[0], TrainedClassifier) and type(models[0]).fit is TrainedClassifier.fit
    )


def stepped(trainer: Trainer, module: LightningModule) -> TrainedClassifier | None:
    """The head whose gradient steps the trainer takes; None where the module learns all rows at once.

    That is faster, and the same where the Trainer has nothing to do in a step.
    """
    if isinstance(module, TrainedClassifier):
        return module
    if not isinstance(module, Alone) or not may_be_stepped(module.classifiers):
        return None
    (head,) = module.classifiers
    assert isinstance(head, TrainedClassifier)
    return head if overridden(type(head)) & HOOKS or _acts_in_steps(trainer) or _shares(trainer, head) else None


def _acts_in_steps(trainer: Trainer) -> bool:
    """Whether a trainer has settings, a profiler or callbacks with something to do in each step."""
    settings = {name: getattr(trainer, name) for name in NEUTRAL}
    if isinstance(settings["profiler"], PassThroughProfiler):
        settings["profiler"] = None
    return any(value not in NEUTRAL[name] for name, value in settings.items()) or any(
        map(_observes, _callbacks(trainer))
    )


def _observes(callback: Callback) -> bool:
    """Whether a callback has something to do in each step."""
    if isinstance(callback, ONLY_COUNT):
        return False
    own = vars(callback)  # a LambdaCallback has its hooks there
    has_hook = any(name in own or getattr(type(callback), name) is not getattr(Callback, name) for name in STEP_HOOKS)
    return has_hook or isinstance(callback, CHANGE_STEPS)


def _shares(trainer: Trainer, head: TrainedClassifier) -> bool:
    """Whether ranks share the gradients: of large networks that are fewer than ranks, which share members else."""
    members = getattr(head, "members", 1)
    return trainer.world_size > members and sum(weight.numel() for weight in head.parameters()) > LARGE


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
            plugins=[no_cluster()],
        )


def no_cluster() -> Any:
    """The plugin of a Trainer of one process, which is no part of whatever job of a cluster this process is in."""
    return LightningEnvironment()


def run(trainer: Trainer, module: LightningModule, data: LabelledObservations, epochs: int | None = None) -> None:
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
        if (head := stepped(trainer, module)) is None:
            trainer.fit(module, datamodule=DataModule(data))
        else:
            _run_steps(trainer, head, data)


def _run_steps(trainer: Trainer, head: TrainedClassifier, data: LabelledObservations) -> None:
    """A `fit` in which the trainer takes the steps of a head."""
    iteration = Iteration(head, data, trainer)
    head.stepped_by_trainer = True
    try:
        with listening(trainer, iteration):
            trainer.fit(head, datamodule=DataModule(data, iteration))
    finally:
        head.stepped_by_trainer = False


def run_and_then(
    trainer: Trainer, module: LightningModule, data: LabelledObservations, epochs: int, then: Callable[[], T]
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
    attached = [(part, part._trainer) for part in classifier.modules() if isinstance(part, LightningModule)]
    for part, _ in attached:
        part._trainer = None
    try:
        yield
    finally:
        for part, trainer in attached:
            part._trainer = trainer


def _callbacks(trainer: Trainer) -> list[Callback]:
    return trainer.callbacks  # type: ignore[attr-defined, no-any-return]  # Lightning's types don't have it


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
