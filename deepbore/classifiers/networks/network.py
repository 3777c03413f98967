"""`NetworkClassifier`: networks trained side by side, from warm weights, for a fixed number of gradient steps."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.optim.adam import Adam, adam

from deepbore.classifiers.networks.stacked import ACTIVATIONS, Members, StackedMLP
from deepbore.classifiers.posterior import Posterior, of_members
from deepbore.classifiers.trained import TrainedClassifier
from deepbore.compute.devices import generator_on
from deepbore.compute.distributed import Ranks
from deepbore.errors import SettingError
from deepbore.labels import LabelledBatch
from deepbore.space import SearchSpace
from deepbore.validation import above, at_least, of_kind, one_of, refusal, required, whole

NetworkFactory = Callable[[int, int], nn.Module]
CORESET = 1024  # rows an iteration learns from at most, so that its cost does not grow with n


@dataclass(frozen=True)
class Training:
    """The training of the weights in each iteration.

    Args:
        steps: S, gradient steps per iteration, independent of n (BORE J.3).
        batch_size: B, rows per step; all rows while n <= B.
        learning_rate: of Adam.
        weight_decay: of Adam, L2.
        warm_start: whether to continue from the last iteration's weights and Adam state, or to draw new weights.
        patience: stop after this many steps in which the loss has not fallen by 1e-4 of itself; None for never
            (BORE appendix F, strategy ii).
        half_life: iterations after which S is halfway from its start to a quarter of it; None for a constant S
            (BORE appendix F, strategy iii).

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

    def __post_init__(self) -> None:
        whole(1, steps=self.steps, batch_size=self.batch_size, patience=self.patience)
        above(0, learning_rate=self.learning_rate, half_life=self.half_life)
        at_least(0, weight_decay=self.weight_decay)
        one_of((True, False), warm_start=self.warm_start)

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

    The loss is weighted cross-entropy, so that outputs are logits, unless a subclass overrides `loss` and
    `loss_gradient`. A subclass implements `posterior`.

    Args:
        hidden: widths of the hidden layers.
        activation: "elu", "relu", "tanh", or "auto" as in the papers: ELU for d <= 10, else ReLU (BORE J.3).
        network: a factory (number of features, number of outputs) -> module, in place of `hidden` and `activation`.
        members: m.
        training: steps, learning rate, warm start, ...
    """

    learns_grades = True

    def __init__(
        self,
        hidden: tuple[int, ...] = (32, 32),
        activation: str = "auto",
        network: NetworkFactory | None = None,
        members: int = 1,
        training: Training | None = None,
    ):
        super().__init__()
        whole(1, members=members)
        one_of(("auto", *ACTIVATIONS), activation=activation)
        if not isinstance(hidden, (list, tuple)):
            raise SettingError(f"hidden must be a list of widths, as in (32, 32), but got hidden={hidden!r:.100}.")
        for width in hidden:
            required(hidden=width)
            whole(1, hidden=width)
        if network is not None:
            check_factory(network)
        of_kind(Training, training=training)
        self.hidden, self.activation, self.factory, self.members = tuple(hidden), activation, network, members
        self.training_plan = training or Training()
        self.trained = slice(None)  # the members that this rank trains now
        self.register_buffer("iteration", torch.tensor(0))

    iteration: Tensor
    net: StackedMLP | Members

    # --- for subclasses ----------------------------------------------------------------------------------------------

    def loss(self, outputs: Tensor, z: Tensor, weight: Tensor) -> Tensor:
        """Outputs (m x B x k), labels (B x k) and weights (B) -> mean loss of each member, summed (BORE eq. 9)."""
        losses = binary_cross_entropy_with_logits(outputs, z.expand_as(outputs), reduction="none")
        return (losses * weight[:, None]).mean((1, 2)).sum()

    def loss_gradient(self, outputs: Tensor, z: Tensor, weight: Tensor) -> Tensor:
        """The derivative of `loss` with respect to the outputs (m x B x k)."""
        return (outputs.sigmoid() - z) * (weight[:, None] / z.numel())

    def member_outputs(self, x: Tensor) -> Tensor:
        """Features (n x e) -> outputs of every member or sample (m x n x k)."""
        outputs: Tensor = self.net(x)
        return outputs

    def member_posterior(self, points: Tensor) -> Posterior:
        """The logits of all members or samples at points (n x d); a point estimate if there is only one.

        Of k columns, the logit of the mean probability.
        """
        self.check_points(points)
        outputs = self.member_outputs(self.encode(points))
        is_single = outputs.shape[-1] == 1  # then the logit itself: exact, and faster
        scores = outputs.squeeze(-1) if is_single else self.link.score_of_mean(outputs, -1)
        return of_members(scores, self.link, type(self).__name__)

    def after_training(self, x: Tensor, batch: LabelledBatch) -> None:
        """A hook after each training; does nothing by default.

        Args:
            x: features of the rows, n x e.
            batch: the rows learned, with the weights of their coreset.
        """

    def backpropagate(self, x: Tensor, loss_gradient: Callable[[Tensor], Tensor], stream: torch.Generator) -> None:
        """Sets the gradients of all weights of the members that are trained, those of `self.trained`.

        Args:
            x: features of a minibatch, B x e.
            loss_gradient: outputs (m x B x k) -> derivative of the loss with respect to them.
            stream: random numbers for the step, such as dropout masks.
        """
        if isinstance(self.net, Members):
            self.net.backpropagate(x, loss_gradient, stream)
        else:
            self.net.backpropagate(x, loss_gradient)

    # --- building ----------------------------------------------------------------------------------------------------

    def build(self, space: SearchSpace, outputs: int) -> None:
        self.features = space.features
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

    def configure_optimizers(self) -> Adam:
        """Adam, its state kept over all fits of the same classifier."""
        return self.keep_optimizer(self._new_optimizer)

    def _new_optimizer(self) -> Adam:
        plan, weights = self.training_plan, [p for p in self.net.parameters() if p.requires_grad]
        return Adam(weights, lr=plan.learning_rate, weight_decay=plan.weight_decay, fused=True)

    # --- training ----------------------------------------------------------------------------------------------------

    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        if not (self.training_plan.warm_start and self._is_sound()):
            self._start_cold()
        steps = self.training_plan.steps_at(int(self.iteration))
        rows = batch.coreset(CORESET, self.generator)
        x = self.encode(rows.points)
        loss = self._descend(x, with_mean_weight_of(batch, rows), steps)
        self.after_training(x, rows)
        self.iteration += 1
        return {"loss": loss, "epochs": self.training_plan.epochs(len(rows), steps)}

    def encode(self, points: Tensor) -> Tensor:
        """Points (n x d) -> features (n x e), in the precision of the weights."""
        return self.features(points).to(next(self.net.parameters()).dtype)  # type: ignore[no-any-return]  # torch: any

    def _descend(self, x: Tensor, batch: LabelledBatch, steps: int) -> Tensor:
        """S steps of Adam; returns the last minibatch's loss."""
        self._move_step_counts()
        best, since = math.inf, 0
        rows: Tensor | slice = slice(None)
        stream = generator_on(x.device, self.generator)
        with self._dealt(batch.ranks):
            for step, rows in enumerate(self._minibatches(len(batch), steps, stream)):
                z, weight = batch.z[rows], batch.weight[rows]
                self.backpropagate(x[rows], partial(self.loss_gradient, z=z, weight=weight), stream)
                self._step(first=step == 0)
                if self.training_plan.patience is not None:
                    loss = float(self._loss(x[rows], z, weight))
                    best, since = (loss, 0) if loss < best * (1 - 1e-4) else (best, since + 1)
                    if since >= self.training_plan.patience:
                        break
        return self._loss(x[rows], batch.z[rows], batch.weight[rows])

    @contextmanager
    def _dealt(self, ranks: Ranks) -> Iterator[None]:
        """A context in which each rank trains its share of the members, all with the same random numbers.

        All ranks train all members where there are too few of them, or where the end depends on the loss of all.
        """
        is_possible = isinstance(self.net, StackedMLP) or self.net.are_alike
        if ranks.world == 1 or ranks.world > self.members or self.training_plan.patience is not None or not is_possible:
            yield
            return
        with self.net.dealt(ranks, self.configure_optimizers()) as self.trained:
            yield
        self.trained = slice(None)

    @torch.no_grad()
    def _loss(self, x: Tensor, z: Tensor, weight: Tensor) -> Tensor:
        outputs = self.member_outputs(x)
        return self.loss(outputs, z, weight) / len(outputs)

    def _step(self, first: bool) -> None:
        """One step of Adam with the current gradients.

        The first step of an iteration goes through Lightning, which counts it (and so writes checkpoints). The others
        call the function behind `Adam.step`, without its checks of devices, which take longer than the step.
        """
        if first:
            self.lightning_optimizer().step()
            return
        optimizer = self.configure_optimizers()
        (group,) = optimizer.param_groups
        moved = [p for p in group["params"] if p.grad is not None]  # the output may not depend on all of them
        states = [optimizer.state[p] for p in moved]
        if not all(states):  # first step of some of them
            optimizer.step()
            return
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

    def _move_step_counts(self) -> None:
        """Moves Adam's step counts to the device of the weights, as fused steps need; Lightning does not move them."""
        for weight, state in self.configure_optimizers().state.items():
            if "step" in state:
                state["step"] = state["step"].to(weight.device)

    def _minibatches(self, n: int, steps: int, stream: torch.Generator) -> Iterator[Tensor | slice]:
        """The rows of each step: all while n <= B, else B drawn at random."""
        size = self.training_plan.batch_size
        if n <= size:
            return iter([slice(None)] * steps)
        return iter(torch.randint(n, (steps, size), generator=stream, device=stream.device))

    @torch.no_grad()
    def _is_sound(self) -> bool:
        """Whether all weights are finite, so that training can continue from them."""
        return all(bool(weight.isfinite().all()) for weight in self.net.parameters())

    def _start_cold(self) -> None:
        """Draws new weights, in place, and clears the state of Adam."""
        fresh = self._new_network().to(self.device)
        self.net.load_state_dict(fresh.state_dict())
        self.configure_optimizers().state.clear()


def check_factory(network: NetworkFactory) -> None:
    """Raises SettingError unless `network` can be called with the numbers of features and outputs."""
    if not callable(network) or isinstance(network, nn.Module):
        raise SettingError(
            f"network must be a function (features, outputs) -> module, but got {network!r:.100}. Give a function that "
            "makes one, as lambda features, outputs: nn.Linear(features, outputs), or hidden= for one of ours."
        )
    if says := refusal(network, 1, 1):
        raise SettingError(f"network must be a function (features, outputs) -> module, but {says}.")


def with_mean_weight_of(batch: LabelledBatch, rows: LabelledBatch) -> LabelledBatch:
    """Rows of a batch, scaled to the mean weight of its evaluated rows: their mean loss is that of the whole batch."""
    if len(rows) == len(batch):
        return rows
    mean = batch.weight.sum() / batch.n_learned
    return replace(rows, weight=rows.weight * (mean / rows.weight.mean()))
