"""`NetworkClassifier`: networks trained side by side, from warm weights, for a fixed number of gradient steps."""

import inspect
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.optim import Optimizer
from torch.optim.adam import Adam, adam
from torch.optim.lr_scheduler import LRScheduler

from deepbore.classifiers.link import Link
from deepbore.classifiers.networks.stacked import Activation, Given, Masks, Members, StackedMLP
from deepbore.classifiers.optimization import NO_LBFGS, Optimization
from deepbore.classifiers.posterior import Posterior, of_members
from deepbore.classifiers.trained import Minibatch, TrainedClassifier, overridden
from deepbore.component import plain_partial
from deepbore.compute.devices import generator_on
from deepbore.compute.distributed import Ranks
from deepbore.errors import SettingError
from deepbore.labels import LabelledBatch
from deepbore.space import SearchSpace
from deepbore.validation import above, at_least, of_kind, one_of, refusal, required, whole

NetworkFactory = Callable[[int, int], nn.Module]
OptimizerFactory = Callable[[Iterable[nn.Parameter]], Optimizer]  # as LightningCLI's OptimizerCallable
SchedulerFactory = Callable[[Optimizer], LRScheduler]  # as LightningCLI's LRSchedulerCallable
Loss = nn.Module | Callable[[Tensor, Tensor], Tensor]
FAST = frozenset({"loss", "loss_gradient", "training_outputs", "training_step", "configure_optimizers", "take_step"})


@dataclass(frozen=True)
class Training:
    """The training of the weights in each iteration.

    Args:
        steps: S, gradient steps per iteration, independent of n (BORE J.3).
        batch_size: B, rows per step; all rows while n <= B.
        learning_rate: of Adam; an `optimizer=` of the head has its own.
        weight_decay: of Adam, L2.
        warm_start: whether to continue from the last iteration's weights, and the state of optimizer and scheduler, or
            to draw new weights and begin anew.
        patience: stop after this many steps in which the loss has not fallen by 1e-4 of itself; None for never
            (BORE appendix F, strategy ii).
        half_life: iterations after which S is halfway from its start to a quarter of it; None for a constant S
            (BORE appendix F, strategy iii).
        lr_interval: when an `lr_scheduler=` of the head steps: after each "epoch", which is an iteration, or "step".

    Raises:
        SettingError: for a number outside its range.
    """

    steps: int = 100
    batch_size: int = 64
    learning_rate: float = 3e-3
    weight_decay: float = 0.0
    warm_start: bool = True
    patience: int | None = None
    half_life: float | None = None
    lr_interval: str = "epoch"

    def __post_init__(self) -> None:
        whole(1, steps=self.steps, batch_size=self.batch_size, patience=self.patience)
        above(0, learning_rate=self.learning_rate, half_life=self.half_life)
        at_least(0, weight_decay=self.weight_decay)
        one_of((True, False), warm_start=self.warm_start)
        one_of(("epoch", "step"), lr_interval=self.lr_interval)

    def steps_at(self, iteration: int) -> int:
        """Gradient steps of the given iteration, counted from 0."""
        if self.half_life is None:
            return self.steps
        return math.ceil(self.steps * (0.25 + 0.75 * math.exp2(-iteration / self.half_life)))

    def epochs(self, n: int, steps: int) -> int:
        """Effective epochs over n rows, E = floor(S / ceil(n / B)) (BORE J.3)."""
        return steps // math.ceil(n / self.batch_size)


class NetworkClassifier(TrainedClassifier):
    """A classifier of m networks, trained side by side on the same minibatches.

    Outputs are logits and the loss is weighted cross-entropy, or squared errors where a subclass's `link` says that
    outputs estimate labels, unless `loss=` or a subclass gives another one. A
    subclass implements `posterior`, and may override `loss`, `training_outputs` and every hook of Lightning. Built-in
    networks with the default optimizer and loss are trained by closed formulas of the gradients, three times faster
    than by autograd and equal to rounding.

    Args:
        hidden: widths of the hidden layers.
        activation: of torch, by name, class or function; "auto" as in BORE J.3: ELU for d <= 10, else ReLU.
        network: a factory (number of features, number of outputs) -> module, or a module to copy, in place of `hidden`
            and `activation`. A single copy starts from the module's weights, several from new ones.
        members: m.
        training: steps, learning rate, warm start, ...
        optimizer: a function of the parameters, as `partial(torch.optim.AdamW, lr=1e-3)`; None for Adam.
        lr_scheduler: a function of the optimizer, as `partial(ExponentialLR, gamma=0.99)`; see `Training.lr_interval`.
        loss: a function of scores and labels (B x k each), as `nn.BCEWithLogitsLoss()`. One with a `reduction` is
            weighted row by row. One that returns a single number is used as it is, without the weights of rows.
        rows: maximal number of rows that an iteration learns from: a quarter the newest, a quarter the best, the others
            drawn at random. None for S * B, as many as its steps can see, so that every row is seen in time.

    Raises:
        SettingError: for a setting outside its range.
    """

    learns_grades = True

    def __init__(
        self,
        hidden: tuple[int, ...] = (32, 32),
        activation: Given = "auto",
        network: NetworkFactory | None = None,
        members: int = 1,
        training: Training | None = None,
        optimizer: OptimizerFactory | None = None,
        lr_scheduler: SchedulerFactory | None = None,
        loss: Loss | None = None,
        rows: int | None = None,
    ):
        super().__init__()
        whole(1, members=members, rows=rows)
        if not isinstance(hidden, (list, tuple)):
            raise SettingError(f"hidden must be a list of widths, as in (32, 32), but got hidden={hidden!r:.100}.")
        for width in hidden:
            required(hidden=width)
            whole(1, hidden=width)
        if activation != "auto":
            Activation(activation)
        of_kind(Training, training=training)
        self.training_plan = training or Training()
        _check_functions(self.training_plan, optimizer, lr_scheduler, loss)
        self.hidden, self.activation, self.members, self.row_limit = tuple(hidden), activation, members, rows
        self.factory = None if network is None else as_factory(network, members)
        self.make_optimizer, self.make_scheduler = plain_partial(optimizer), plain_partial(lr_scheduler)
        self.given_loss = None if loss is None else RowLoss(loss)
        self.trained = slice(None)  # the members that this rank trains now
        self.stream: torch.Generator | None = None  # random numbers of the steps of an iteration
        self._learned: tuple[Tensor, LabelledBatch, Minibatch] | None = None  # in the present iteration
        self._is_plain = False
        self.register_buffer("iteration", torch.tensor(0))
        self.register_buffer("n_learned", torch.tensor(0))

    iteration: Tensor
    n_learned: Tensor  # rows of the latest training
    net: StackedMLP | Members

    # --- as in any LightningModule -----------------------------------------------------------------------------------

    def training_step(self, batch: Minibatch, batch_idx: int = 0) -> Tensor:
        """The loss of a minibatch, summed over the members."""
        loss = self.loss(self.training_outputs(batch.x), batch.z, batch.weight)
        self.log("loss", loss.detach() / self.members, on_step=False, on_epoch=True, batch_size=len(batch.z))
        return loss

    def configure_optimizers(self) -> Any:
        """The optimizer and the scheduler that are given, or Adam."""
        weights = [p for p in self.parameters() if p.requires_grad]
        plan = self.training_plan
        if self.make_optimizer is None:
            fused = not self.stepped_by_trainer  # clipping of scaled gradients doesn't go with it
            optimizer: Optimizer = Adam(weights, lr=plan.learning_rate, weight_decay=plan.weight_decay, fused=fused)
        else:
            optimizer = self.make_optimizer(weights)
        if self.make_scheduler is None:
            return optimizer
        scheduler = {"scheduler": self.make_scheduler(optimizer), "interval": plan.lr_interval, "monitor": "loss"}
        return {"optimizer": optimizer, "lr_scheduler": scheduler}

    # --- for subclasses ----------------------------------------------------------------------------------------------

    def loss(self, outputs: Tensor, z: Tensor, weight: Tensor) -> Tensor:
        """Outputs (m x B x k), labels (B x k) and weights (B) -> mean loss of each member, summed.

        Unless one is given: squared errors of estimated labels, cross-entropy of logits (BORE eq. 9).
        """
        if self.given_loss is not None:
            return torch.stack([self.given_loss(each, z, weight) for each in outputs]).sum()
        if self.link is Link.IDENTITY:
            return ((outputs - z).square() * weight[:, None]).mean((1, 2)).sum()
        losses = binary_cross_entropy_with_logits(outputs, z.expand_as(outputs), reduction="none")
        return (losses * weight[:, None]).mean((1, 2)).sum()

    def loss_gradient(self, outputs: Tensor, z: Tensor, weight: Tensor) -> Tensor:
        """The derivative of the default `loss` with respect to the outputs (m x B x k)."""
        if self.link is Link.IDENTITY:
            return (outputs - z) * (2 * weight[:, None] / z.numel())
        return (outputs.sigmoid() - z) * (weight[:, None] / z.numel())

    def training_outputs(self, x: Tensor) -> Tensor:
        """Features (B x e) -> outputs of every member in training (m x B x k)."""
        assert self.stream is not None
        if isinstance(self.net, Members):
            return self.net.learning(x, self.stream)
        outputs: Tensor = self.net(x, self.training_masks(x))
        return outputs

    def training_masks(self, x: Tensor) -> Masks:
        """Factors of the hidden units of built-in networks in one step, such as dropout masks; none by default."""
        return ()

    def member_outputs(self, x: Tensor) -> Tensor:
        """Features (n x e) -> outputs of every member or sample (m x n x k)."""
        outputs: Tensor = self.net(x)
        return outputs

    def member_posterior(self, points: Tensor) -> Posterior:
        """The logits of all members or samples at points (n x d); a point estimate if there is only one.

        Of k columns, the logit of the mean probability. Logits of labels near 0 and 1 grow with every iteration, and
        are what is maximised; `probability` claims no more than the rows that were learned support (`supported`).
        """
        self.check_points(points)
        outputs = self.member_outputs(self.encode(points))
        is_single = outputs.shape[-1] == 1  # then the logit itself: exact, and faster
        scores = outputs.squeeze(-1) if is_single else self.link.score_of_mean(outputs, -1)
        return of_members(scores, self.link, type(self).__name__, self.n_learned)

    def before_training(self, batch: LabelledBatch) -> LabelledBatch:
        """The rows to learn from (all of them, by default), before each training."""
        return batch

    def after_training(self, x: Tensor, batch: LabelledBatch) -> dict[str, Any] | None:
        """A hook after each training, which may return metrics; does nothing by default.

        Args:
            x: features of the rows, n x e.
            batch: the rows learned, with the weights of their coreset.
        """
        return None

    # --- building ----------------------------------------------------------------------------------------------------

    def build(self, space: SearchSpace, outputs: int) -> None:
        self.features = space.points.features
        self.outputs = outputs
        self.net = self._new_network()

    def _new_network(self) -> StackedMLP | Members:
        if self.factory is not None:
            return Members(self.factory, (self.features.size, self.outputs), self.members, self.generator)
        activation = self.activation
        if activation == "auto":
            assert self.space is not None
            activation = "elu" if len(self.space) <= 10 else "relu"
        sizes = [self.features.size, *self.hidden, self.outputs]
        return StackedMLP(sizes, self.members, activation, self.generator)

    # --- an iteration ------------------------------------------------------------------------------------------------

    @property
    def n_minibatches(self) -> int:
        return self.training_plan.steps_at(int(self.iteration))

    def minibatches(self, batch: LabelledBatch) -> Iterator[Minibatch]:
        """S minibatches of B rows, by passes through the rows in random order; all rows in each while n <= B."""
        batch = self.before_training(batch)
        if not (self.training_plan.warm_start and self._is_sound()):
            self._start_cold()
        steps, size = self.n_minibatches, self.training_plan.batch_size
        rows = batch.coreset(self.row_limit or steps * size, self.generator)
        x = self.encode(rows.points)
        rows = with_mean_weight_of(batch, rows)
        self.n_learned = torch.tensor(batch.n_learned, device=x.device)
        self.stream = generator_on(x.device, self.generator)
        self._move_step_counts()
        self._is_plain = self.is_plain and not any(each.awaits_metric for each in self.optimizers_made().schedules)
        self._learned = x, rows, Minibatch(x, rows.z, rows.weight)
        return self._drawn(*self._learned, steps, size)

    def _drawn(self, x: Tensor, rows: LabelledBatch, whole: Minibatch, steps: int, size: int) -> Iterator[Minibatch]:
        order = None if len(rows) <= size else passes(len(rows), steps, size, self.stream)
        best, since = math.inf, 0
        for step in range(steps):
            drawn = whole if order is None else Minibatch(*(each[order[step]] for each in whole))
            self._learned = x, rows, drawn
            yield drawn
            if self.training_plan.patience is not None:
                loss = float(self._loss(drawn))
                best, since = (loss, 0) if loss < best * (1 - 1e-4) else (best, since + 1)
                if since >= self.training_plan.patience:
                    return

    def conclude(self) -> dict[str, Any]:
        assert self._learned is not None
        x, rows, last = self._learned
        steps, self._learned = self.n_minibatches, None
        measured: dict[str, Any] = {"epochs": self.training_plan.epochs(len(rows), steps)}
        if self._is_plain:  # else `training_step` has logged it
            measured["loss"] = self._loss(last)
        measured |= self.after_training(x, rows) or {}
        self.stream = None
        self.iteration += 1
        return measured

    def encode(self, points: Tensor) -> Tensor:
        """Points (n x d) -> features (n x e), in the precision of the weights."""
        return self.features(points).to(next(self.net.parameters()).dtype)  # type: ignore[no-any-return]  # torch: any

    @torch.no_grad()
    def _loss(self, batch: Minibatch) -> Tensor:
        outputs = self.member_outputs(batch.x)
        return self.loss(outputs, batch.z, batch.weight) / len(outputs)

    # --- the same steps, faster --------------------------------------------------------------------------------------

    @property
    def is_plain(self) -> bool:
        """Whether closed formulas give the gradients: of built-in networks, with nothing overridden and our loss."""
        is_ours = isinstance(self.net, StackedMLP) and self.given_loss is None and not overridden(type(self)) & FAST
        return is_ours and not self.stepped_by_trainer and len([*self.parameters()]) == len([*self.net.parameters()])

    def take_step(self, batch: Minibatch, batch_idx: int) -> None:
        if not self._is_plain:
            super().take_step(batch, batch_idx)
            return
        made = self.optimizers_made()
        self.backpropagate(batch)
        self.step_optimizer(made.only_one(type(self).__name__))
        made.step_schedulers("step", batch_idx + 1, {})

    def backpropagate(self, batch: Minibatch) -> None:
        """Sets the gradients of all weights of the members that are trained, those of `self.trained`."""
        assert isinstance(self.net, StackedMLP)
        gradient = partial(self.loss_gradient, z=batch.z, weight=batch.weight)
        self.net.backpropagate(batch.x, gradient, self.training_masks(batch.x))

    def step_optimizer(self, optimizer: Optimizer) -> None:
        """One step with the current gradients; of our own Adam without its checks, which take longer than the step."""
        if self.make_optimizer is None and type(optimizer) is Adam and self._adam_step(optimizer):
            return
        optimizer.step()

    def _adam_step(self, optimizer: Adam) -> bool:
        """A step by the function behind `Adam.step`; False, and no step, before the state of all weights is there."""
        (group,) = optimizer.param_groups
        moved = [p for p in group["params"] if p.grad is not None]  # the output may not depend on all of them
        states = [optimizer.state[p] for p in moved]
        if not all(states) or not group["fused"]:
            return False
        adam(
            moved,
            [p.grad for p in moved],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            [state["step"] for state in states],
            fused=True,
            amsgrad=False,
            maximize=False,
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
        )
        return True

    def sharing(self, ranks: Ranks) -> AbstractContextManager[Any]:
        """A context in which each rank trains its share of the members, all with the same random numbers.

        All ranks train all members where there are too few of them, where the end depends on the loss of all, or where
        the state of the optimizer is not known to be of one entry per weight.
        """
        is_ours = self.make_optimizer is None and not overridden(type(self)) & FAST
        is_possible = is_ours and (isinstance(self.net, StackedMLP) or self.net.are_alike)
        if ranks.world == 1 or ranks.world > self.members or self.training_plan.patience is not None or not is_possible:
            return nullcontext()
        return self._dealt(ranks)

    @contextmanager
    def _dealt(self, ranks: Ranks) -> Iterator[None]:
        with self.net.dealt(ranks, self.optimizers_made().optimizers[0]) as self.trained:
            yield
        self.trained = slice(None)

    # --- warm and cold starts ----------------------------------------------------------------------------------------

    def _move_step_counts(self) -> None:
        """Moves Adam's step counts to the device of the weights, as fused steps need; Lightning does not move them."""
        for optimizer in [] if self.optimization is None else self.optimization.optimizers:
            is_fused = any(group.get("fused") for group in optimizer.param_groups)
            for weight, state in optimizer.state.items():
                if is_fused and "step" in state:
                    state["step"] = state["step"].to(weight.device)

    @torch.no_grad()
    def _is_sound(self) -> bool:
        """Whether all weights are finite, so that training can continue from them."""
        return all(bool(weight.isfinite().all()) for weight in self.net.parameters())

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Loads states without `n_learned`, too, as of version 0.3."""
        state_dict.setdefault(f"{prefix}n_learned", torch.zeros_like(self.n_learned))
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _start_cold(self) -> None:
        """Draws new weights, in place, and begins anew with the state of optimizer and scheduler."""
        fresh = self._new_network().to(self.device)
        self.net.load_state_dict(fresh.state_dict())
        if self.optimization is None:
            self._waiting = {}
        else:
            self.optimization.restart(Optimization.of(self.configure_optimizers()))


# --- what is given ---------------------------------------------------------------------------------------------------


class RowLoss:
    """A loss of a user's own, with the weights of the rows where it can have them.

    Args:
        loss: a function of scores and labels, B x k each. One with a `reduction`, as those of torch, gives the loss of
            each number then.
    """

    def __init__(self, loss: Loss):
        self.loss = loss
        if isinstance(loss, nn.Module) and hasattr(loss, "reduction"):
            self.loss = copy(loss)
            self.loss.reduction = "none"  # type: ignore[assignment]  # any module's attribute
        elif inspect.isfunction(loss) and "reduction" in inspect.signature(loss).parameters:
            self.loss = partial(loss, reduction="none")

    def __call__(self, scores: Tensor, z: Tensor, weight: Tensor) -> Tensor:
        """Scores and labels (B x k) and weights (B) -> a number."""
        losses = self.loss(scores, z.to(scores))
        if losses.ndim == 0:
            return losses
        if len(losses) != len(weight):
            raise SettingError(
                f"loss must return a number, or one for each of B rows, but of {len(weight)} rows it makes "
                f"{tuple(losses.shape)}. Give a function of scores and labels, B x k each."
            )
        return (losses * weight.reshape(-1, *[1] * (losses.ndim - 1))).mean()


def _check_functions(plan: Training, optimizer: Any, lr_scheduler: Any, loss: Any) -> None:
    """Raises SettingError for an optimizer, a scheduler or a loss that is no function, or has a rate beside it."""
    for name, given, example in (
        ("optimizer", optimizer, "partial(torch.optim.AdamW, lr=1e-3)"),
        ("lr_scheduler", lr_scheduler, "partial(torch.optim.lr_scheduler.ExponentialLR, gamma=0.99)"),
        ("loss", loss, "torch.nn.BCEWithLogitsLoss()"),
    ):
        is_made = isinstance(given, (Optimizer, LRScheduler)) or (name == "loss" and isinstance(given, type))
        if given is not None and (not callable(given) or is_made):
            raise SettingError(f"{name} must be a function, as {example}, but got {name}={given!r:.100}.")
    made = getattr(plain_partial(optimizer), "func", optimizer)
    if isinstance(made, type) and issubclass(made, torch.optim.LBFGS):
        raise SettingError(NO_LBFGS)
    default = Training()
    if optimizer is not None and (plan.learning_rate, plan.weight_decay) != (
        default.learning_rate,
        default.weight_decay,
    ):
        raise SettingError(
            "an optimizer of your own has its own learning rate and weight decay, but training= has others. Give them "
            "once, as in optimizer=partial(torch.optim.AdamW, lr=1e-3, weight_decay=1e-2)."
        )


def as_factory(network: Any, members: int) -> NetworkFactory:
    """The factory (number of features, number of outputs) -> module that is given, or that copies a module.

    Raises:
        SettingError: for anything else, or a module whose copies would be equal.
    """
    if isinstance(network, nn.Module):
        return Copies(network, is_new=members > 1)
    check_factory(network)
    return plain_partial(network)  # type: ignore[no-any-return]  # any


class Copies:
    """A factory of copies of a module.

    Args:
        network: the module.
        is_new: whether each copy has new weights, drawn by the `reset_parameters` of its layers.
    """

    def __init__(self, network: nn.Module, is_new: bool):
        own = [part for part in network.modules() if [*part.parameters(recurse=False)]]
        stubborn = [type(part).__name__ for part in own if not hasattr(part, "reset_parameters")]
        if is_new and stubborn:
            raise SettingError(
                f"the members of an ensemble need different weights, but {stubborn[0]} has no reset_parameters(). Give "
                "network= a function (features, outputs) -> module."
            )
        self.network, self.is_new = network, is_new

    def __call__(self, features: int, outputs: int) -> nn.Module:
        made = deepcopy(self.network)
        for part in made.modules() if self.is_new else ():
            if hasattr(part, "reset_parameters"):
                part.reset_parameters()  # type: ignore[operator]  # torch types attributes as tensors
        return made


def check_factory(network: NetworkFactory) -> None:
    """Raises SettingError unless `network` can be called with the numbers of features and outputs."""
    if not callable(network):
        raise SettingError(
            f"network must be a function (features, outputs) -> module, but got {network!r:.100}. Give a function that "
            "makes one, as lambda features, outputs: nn.Linear(features, outputs), or hidden= for one of ours."
        )
    if says := refusal(network, 1, 1):
        raise SettingError(f"network must be a function (features, outputs) -> module, but {says}.")


def passes(n: int, steps: int, size: int, stream: torch.Generator | None) -> Tensor:
    """Row numbers of each step (steps x size): passes through n rows, each in another random order."""
    device = None if stream is None else stream.device
    count = math.ceil(steps * size / n)
    order = torch.cat([torch.randperm(n, generator=stream, device=device) for _ in range(count)])
    return order[: steps * size].view(steps, size)


def with_mean_weight_of(batch: LabelledBatch, rows: LabelledBatch) -> LabelledBatch:
    """Rows of a batch, scaled to the mean weight of its evaluated rows: their mean loss is that of the whole batch."""
    if len(rows) == len(batch):
        return rows
    mean = batch.weight.sum() / batch.n_learned
    return replace(rows, weight=rows.weight * (mean / rows.weight.mean()))
