"""`MCDropout`: dropout masks as samples from an approximate posterior."""

from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from deepbore.classifiers.networks.network import (
    Loss,
    NetworkClassifier,
    NetworkFactory,
    OptimizerFactory,
    SchedulerFactory,
    Training,
    as_factory,
)
from deepbore.classifiers.networks.stacked import Given, Masks, StackedMLP, check_maps
from deepbore.classifiers.posterior import Posterior
from deepbore.errors import SettingError
from deepbore.labels import LabelledBatch
from deepbore.space import SearchSpace
from deepbore.validation import between, whole


class MCDropout(NetworkClassifier):
    """One network trained with dropout; each of m dropout masks gives a sample of the logit.

    Masks are posterior samples (Gal & Ghahramani, Dropout as a Bayesian approximation, 2016). New masks are drawn after
    each training and shared by all points until the next one, so that the acquisition is a smooth function.

    Args:
        hidden: widths of the hidden layers.
        activation: of torch, by name, class or function; "auto" for ELU if d <= 10, else ReLU.
        network: a factory (number of features, number of outputs) -> module with `nn.Dropout` in it, or such a module
            to copy, in place of `hidden`, `activation` and `rate`.
        rate: probability that a hidden unit is dropped, in (0, 1).
        samples: m >= 2, how many masks.
        training: steps, learning rate, warm start, ...
        optimizer: a function of the parameters, as `partial(torch.optim.AdamW, lr=1e-3)`; None for Adam.
        lr_scheduler: a function of the optimizer, as `partial(ExponentialLR, gamma=0.99)`; see `Training.lr_interval`.
        loss: a function of scores and labels (B x k each), as `nn.BCEWithLogitsLoss()`; see `NetworkClassifier`.
        rows: maximal number of rows that an iteration learns from; None for as many as its steps can see, so that every
            row is seen in time.

    Raises:
        SettingError: for a number outside its range, or a network without dropout.
    """

    def __init__(
        self,
        hidden: tuple[int, ...] = (64, 64),
        activation: Given = "auto",
        network: NetworkFactory | None = None,
        rate: float = 0.1,
        samples: int = 16,
        training: Training | None = None,
        optimizer: OptimizerFactory | None = None,
        lr_scheduler: SchedulerFactory | None = None,
        loss: Loss | None = None,
        rows: int | None = None,
    ):
        lasting = None if network is None else WithLastingMasks(as_factory(network, members=1), samples)
        super().__init__(hidden, activation, lasting, 1, training, optimizer, lr_scheduler, loss, rows)
        between(0, 1, rate=rate)
        whole(2, samples=samples)
        self.rate, self.samples = rate, samples
        self.capabilities = frozenset({"std", "members"})

    masks: Tensor  # of the units of all hidden layers, concatenated: samples x 1 x number of units

    def build(self, space: SearchSpace, outputs: int) -> None:
        super().build(space, outputs)
        self.register_buffer("masks", torch.zeros(self.samples, 1, sum(self.hidden)))
        self._draw_lasting_masks(torch.Generator().manual_seed(0))

    def after_training(self, x: Tensor, batch: LabelledBatch) -> None:
        """Draws new masks."""
        seed = torch.randint(2**31, (), generator=self.generator, device=self.generator.device)
        self._draw_lasting_masks(torch.Generator().manual_seed(int(seed)))

    def _draw_lasting_masks(self, stream: torch.Generator) -> None:
        if isinstance(self.net, StackedMLP):
            self.masks.copy_(torch.cat([keep((self.samples, 1, h), self.rate, stream) for h in self.hidden], -1))
        for layer in self._dropouts():
            layer.draw(stream)

    def _dropouts(self) -> "list[LastingDropout]":
        """The dropout layers of a user's own network."""
        return [layer for layer in self.net.modules() if isinstance(layer, LastingDropout)]

    def training_masks(self, x: Tensor) -> Masks:
        """New masks for every row of every step."""
        assert self.stream is not None
        return [keep((1, len(x), h), self.rate, self.stream) for h in self.hidden]

    def training_outputs(self, x: Tensor) -> Tensor:
        for layer in self._dropouts():
            layer.drop_row_by_row(self.stream)
        return super().training_outputs(x)

    def posterior(self, points: Tensor) -> Posterior:
        """The samples by all masks, as members."""
        return self.member_posterior(points)

    def member_outputs(self, x: Tensor) -> Tensor:
        if isinstance(self.net, StackedMLP):
            outputs: Tensor = self.net(x, self.masks.split(self.hidden, -1))
            return outputs
        return torch.cat([self._sampled(number, x) for number in range(self.samples)])

    def _sampled(self, number: int, x: Tensor) -> Tensor:
        for layer in self._dropouts():
            layer.use_lasting(number)
        outputs: Tensor = self.net(x)
        return outputs


class LastingDropout(nn.Module):
    """`nn.Dropout` with its own random numbers in training, and with masks shared by all rows in prediction.

    The masks are created in the first forward pass, which shows their shapes; a layer that is called several times in
    one pass has separate masks for each call.

    Args:
        rate: probability that an input is dropped.
        samples: how many masks.
    """

    def __init__(self, rate: float, samples: int):
        super().__init__()
        self.rate, self.samples = rate, samples
        self.use_lasting(0)

    def use_lasting(self, number: int) -> None:
        """Uses the masks of the given sample for all rows of the next pass."""
        self.stream: torch.Generator | None = None
        self.number, self.uses = number, 0

    def drop_row_by_row(self, stream: torch.Generator | None) -> None:
        """Draws separate masks for every row of the next passes, from the stream."""
        self.stream = stream

    def draw(self, stream: torch.Generator) -> None:
        """Draws new lasting masks."""
        for masks in self.buffers(recurse=False):
            masks.copy_(keep(tuple(masks.shape), self.rate, stream))

    def forward(self, x: Tensor) -> Tensor:
        """Inputs (n x ...) -> the same shape, scaled by the masks."""
        if self.stream is not None:
            return x * keep(tuple(x.shape), self.rate, self.stream).to(x)
        name = f"masks{self.uses}"
        self.uses += 1
        if not hasattr(self, name):
            self.register_buffer(name, torch.ones(self.samples, *x.shape[1:]).to(x))
        return x * self.get_buffer(name)[self.number]


def keep(shape: tuple[int, ...], rate: float | Tensor, stream: torch.Generator) -> Tensor:
    """Dropout masks on the stream's device: 0 with probability `rate`, else 1 / (1 - rate)."""
    return (torch.rand(shape, generator=stream, device=stream.device) >= rate) / (1 - rate)


@dataclass(frozen=True)
class WithLastingMasks:
    """A factory of networks in which every `nn.Dropout` is replaced by `LastingDropout`."""

    factory: NetworkFactory
    samples: int

    def __call__(self, features: int, outputs: int) -> nn.Module:
        made = self.factory(features, outputs)
        check_maps(made, features, outputs)
        dropouts = [(name, layer) for name, layer in made.named_modules() if isinstance(layer, nn.Dropout)]
        if not dropouts:
            raise SettingError("MCDropout needs a network with nn.Dropout in it, but yours has none. Add one.")
        for name, layer in dropouts:
            made.set_submodule(name, LastingDropout(layer.p, self.samples))
        before = deepcopy(made.state_dict())
        with torch.no_grad():
            made(torch.zeros(2, features))
        made.load_state_dict(before, strict=False)  # undoes changes by this pass, such as running means
        return made
