"""`HyperDeepEnsemble`: members that differ in their hyperparameters as well as in their weights."""

import math

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import binary_cross_entropy

from deepbore.classifiers.networks.mc_dropout import keep
from deepbore.classifiers.networks.network import (
    Loss,
    NetworkClassifier,
    OptimizerFactory,
    SchedulerFactory,
    Training,
)
from deepbore.classifiers.networks.stacked import Given, Masks
from deepbore.classifiers.posterior import Posterior
from deepbore.classifiers.trained import Minibatch
from deepbore.component import is_number
from deepbore.errors import SettingError
from deepbore.labels import LabelledBatch
from deepbore.space import SearchSpace
from deepbore.validation import above, at_least, below, whole, within

WINDOW = 64  # rows by whose predictions members are chosen


class HyperDeepEnsemble(NetworkClassifier):
    """A pool of networks with different widths, dropout rates and weight decays; the best m of them are the members.

    The meta-hyperparameters of BORE-MLP are integrated out rather than tuned (BORE L.3; Wenzel et al., Hyperparameter
    ensembles for robustness and uncertainty quantification, 2020). The whole pool predicts every new row before it
    learns it, so that the run itself is the validation set. Members are chosen greedily: each is the one that most
    lowers the loss of the mean probability on the last 64 rows, which favours members with different errors.

    Departures from the paper: no stratification, which would retrain the chosen hyperparameters from several initial
    weights; the pool is drawn once. No separate validation data: a prediction is by the weights, and for the labels, of
    the time before its row was learned, and is scored on the row's present label, which may have changed with the
    threshold.

    Args:
        width: least and greatest width of the two hidden layers.
        dropout: least and greatest dropout rate, in [0, 1).
        weight_decay: least and greatest weight decay, positive.
        activation: of torch, by name, class or function; "auto" for ELU if d <= 10, else ReLU.
        pool: number of networks that are trained.
        members: m <= pool, number of networks that predict.
        training: steps, learning rate, warm start, ...; its weight decay is added to the members' own.
        optimizer: a function of the parameters, as `partial(torch.optim.AdamW, lr=1e-3)`; None for Adam.
        lr_scheduler: a function of the optimizer, as `partial(ExponentialLR, gamma=0.99)`; see `Training.lr_interval`.
        loss: a function of scores and labels (B x k each), as `nn.BCEWithLogitsLoss()`; see `NetworkClassifier`.
        rows: maximal number of rows that an iteration learns from; None for as many as its steps can see, so that every
            row is seen in time.

    Raises:
        SettingError: for a number outside its range.
    """

    def __init__(
        self,
        width: tuple[int, int] = (8, 32),
        dropout: tuple[float, float] = (0.0, 0.2),
        weight_decay: tuple[float, float] = (1e-6, 1e-2),
        activation: Given = "auto",
        pool: int = 10,
        members: int = 5,
        training: Training | None = None,
        optimizer: OptimizerFactory | None = None,
        lr_scheduler: SchedulerFactory | None = None,
        loss: Loss | None = None,
        rows: int | None = None,
    ):
        _check_range("width", width)
        _check_range("dropout", dropout)
        _check_range("weight_decay", weight_decay)
        whole(1, width=width[0])
        at_least(0, dropout=dropout[0])
        below(1, dropout=dropout[1])
        above(0, weight_decay=weight_decay[0])
        whole(1, pool=pool)
        within(1, pool, members=members)
        super().__init__((width[1], width[1]), activation, None, pool, training, optimizer, lr_scheduler, loss, rows)
        self.capabilities = frozenset({"std", "members"} if members > 1 else ())
        self.width_range, self.dropout_range, self.decay_range = width, dropout, weight_decay
        self.register_buffer("chosen", torch.arange(members))
        self.register_buffer("foretold", torch.full((pool, WINDOW), 0.5))  # predictions of the last rows when new
        self.register_buffer("seen", torch.tensor(0))

    chosen: Tensor
    foretold: Tensor
    seen: Tensor
    units: Tensor  # pool x 1 x h: 1 for units within a member's width, else 0
    rate: Tensor  # pool x 1 x 1
    decay: Tensor  # pool x 1 x 1

    def build(self, space: SearchSpace, outputs: int) -> None:
        super().build(space, outputs)
        draws = torch.rand(3, self.members, 1, 1, generator=self.generator, device=self.generator.device)
        widths = log_uniform(self.width_range, draws[0]).round()
        low, high = self.dropout_range
        self.register_buffer("units", (torch.arange(self.hidden[0], device=widths.device) < widths).float())
        self.register_buffer("rate", low + (high - low) * draws[1])
        self.register_buffer("decay", log_uniform(self.decay_range, draws[2]))

    # --- learning ----------------------------------------------------------------------------------------------------

    def before_training(self, batch: LabelledBatch) -> LabelledBatch:
        """Predicts the new rows before they are learned, and chooses members."""
        if int(self.iteration):
            self._choose(batch)
        self.seen.fill_(batch.n_own)
        return batch

    @torch.no_grad()
    def _choose(self, batch: LabelledBatch) -> None:
        """Predicts the new rows, and chooses members by the predictions of the last rows."""
        new = min(batch.n_own - int(self.seen), WINDOW)
        if new > 0:
            probability = self.pool_outputs(self.encode(batch.points[-new:])).sigmoid().mean(-1).nan_to_num(0.5)
            self.foretold.copy_(torch.cat([self.foretold, probability], dim=1)[:, -WINDOW:])
        last = min(batch.n_own, WINDOW)
        told = batch.learned[-last:]  # no pending rows, whose labels are unknown
        if bool(told.any()):
            z, foretold = batch.z[-last:].mean(-1), self.foretold[:, -last:]
            self.chosen.copy_(greedy_choice(foretold[:, told], z[told], len(self.chosen)))

    def training_masks(self, x: Tensor) -> Masks:
        """Each network's own units, of which its own share is dropped in every row of every step."""
        assert self.stream is not None
        rate = self.rate.to(self.stream.device)
        dropped = [keep((self.members, len(x), width), rate, self.stream).to(x) for width in self.hidden]
        return [(self.units * mask)[self.trained] for mask in dropped]

    def training_step(self, batch: Minibatch, batch_idx: int = 0) -> Tensor:
        """The loss of a minibatch, with each network's own weight decay."""
        decay = sum((self.decay[self.trained] * p.square()).sum() / 2 for p in self.net.parameters())
        return super().training_step(batch, batch_idx) + decay

    def backpropagate(self, batch: Minibatch) -> None:
        super().backpropagate(batch)
        for p in self.net.parameters():
            assert p.grad is not None
            p.grad.add_(p.detach() * self.decay[self.trained])

    # --- predicting --------------------------------------------------------------------------------------------------

    def posterior(self, points: Tensor) -> Posterior:
        return self.member_posterior(points)

    def member_outputs(self, x: Tensor) -> Tensor:
        """Features (n x e) -> outputs of the chosen members (m x n x k)."""
        weights = {name: weight[self.chosen] for name, weight in self.net.named_parameters()}
        masks = [self.units[self.chosen]] * len(self.hidden)
        outputs: Tensor = functional_call(self.net, weights, (x, masks))
        return outputs

    def pool_outputs(self, x: Tensor) -> Tensor:
        """Features (n x e) -> outputs of all networks (pool x n x k)."""
        outputs: Tensor = self.net(x, [self.units] * len(self.hidden))
        return outputs


def _check_range(name: str, ends: tuple[float, float]) -> None:
    numbers = isinstance(ends, (list, tuple)) and all(map(is_number, ends))
    if not numbers or len(ends) != 2 or not -math.inf < ends[0] <= ends[1] < math.inf:
        raise SettingError(f"{name} must be (least, greatest), finite and in this order, but got {name}={ends}.")


def log_uniform(bounds: tuple[float, float], u: Tensor) -> Tensor:
    """Uniform numbers u in [0, 1] -> log-uniform numbers within the bounds."""
    low, high = math.log(bounds[0]), math.log(bounds[1])
    return (low + (high - low) * u).exp()


def greedy_choice(probability: Tensor, z: Tensor, count: int) -> Tensor:
    """Members chosen one by one, each to minimise the cross-entropy of the mean probability of those chosen so far.

    Args:
        probability: of each member for each row, m x n.
        z: labels, n.
        count: number of members to choose, <= m.

    Returns:
        Indices of members, in the order of choice.
    """
    taken = torch.zeros(len(probability), dtype=torch.bool, device=probability.device)
    total, chosen = torch.zeros_like(probability[0]), []
    for size in range(1, count + 1):
        means = (total + probability) / size  # m x n, with each member added
        losses = binary_cross_entropy(means.clamp(1e-6, 1 - 1e-6), z.expand_as(means), reduction="none").mean(-1)
        chosen.append(losses.masked_fill(taken, math.inf).argmin(keepdim=True))
        taken[chosen[-1]] = True
        total = total + probability[chosen[-1]].squeeze(0)
    return torch.cat(chosen)
