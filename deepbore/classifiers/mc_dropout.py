"""`MCDropout`: dropout masks as samples from an approximate posterior."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from deepbore.classifiers.ensemble import MLPClassifier
from deepbore.classifiers.network import NetworkFactory, Training
from deepbore.classifiers.stacked import StackedMLP
from deepbore.errors import SettingError
from deepbore.labels.datamodule import LabelledBatch


class MCDropout(MLPClassifier):
    """One network trained with dropout; each of m dropout masks makes it another sample of the logit.

    Masks are posterior samples (Gal & Ghahramani, Dropout as a Bayesian approximation, 2016). They are drawn anew after
    each training and then stay, the same for all points, so that the acquisition is a smooth function while it is
    maximised.

    Args:
        hidden: widths of the hidden layers.
        activation: "elu", "relu", "tanh", or "auto" (ELU for d <= 10, else ReLU).
        network: a factory (number of features, number of outputs) -> module with `nn.Dropout` in it, in place of
            `hidden`, `activation` and `rate`.
        rate: probability that a hidden unit is dropped, in (0, 1).
        samples: m, how many masks.
        training: steps, learning rate, warm start, ...

    Raises:
        SettingError: for a number outside its range, or a network without dropout.
    """

    def __init__(
        self,
        hidden: tuple[int, ...] = (64, 64),
        activation: str = "auto",
        network: NetworkFactory | None = None,
        rate: float = 0.1,
        samples: int = 16,
        training: Training | None = None,
    ):
        super().__init__(hidden, activation, network and with_lasting_masks(network), training)
        if not 0 < rate < 1:
            raise SettingError(f"0 < rate < 1 must hold, but got rate={rate}.")
        if samples < 1:
            raise SettingError(f"samples >= 1 must hold, but got samples={samples}.")
        self.rate, self.samples = rate, samples

        self.register_buffer("seed", torch.tensor(0))  # of the masks

    seed: Tensor

    def after_training(self, x: Tensor, batch: LabelledBatch) -> None:
        """Draws new masks, by their seed."""
        self.seed.copy_(torch.randint(2**31, (), generator=self.generator))

    def _backpropagate(self, x: Tensor, loss_gradient: Callable[[Tensor], Tensor]) -> None:
        """Every row of every step has masks of its own."""
        if isinstance(self.net, StackedMLP):
            self.net.backpropagate(x, loss_gradient, self._masks(1, len(x), self.generator))
        else:
            self._lend(self.generator, lasting=False)
            self.net.backpropagate(x, loss_gradient)

    def _outputs(self, x: Tensor) -> Tensor:
        generator = torch.Generator().manual_seed(int(self.seed))
        if isinstance(self.net, StackedMLP):
            outputs: Tensor = self.net(x, self._masks(self.samples, 1, generator))
            return outputs
        self._lend(generator, lasting=True)
        return torch.cat([self.net(x) for _ in range(self.samples)])

    def _masks(self, m: int, n: int, generator: torch.Generator) -> list[Tensor]:
        """For each hidden layer m x n x h: 0 where a unit is dropped, else what keeps the mean as it was."""
        device = self.seed.device
        return [keep((m, n, width), self.rate, generator).to(device) for width in self.hidden]

    def _lend(self, generator: torch.Generator, lasting: bool) -> None:
        """Tells the user's network where masks come from, and whether all rows share them."""
        for layer in self.net.modules():
            if isinstance(layer, LastingDropout):
                layer.generator, layer.lasting = generator, lasting


class LastingDropout(nn.Module):
    """`nn.Dropout` with a stream of its own, and with masks that all rows share while it samples.

    Args:
        rate: probability that an input is dropped.
    """

    generator: torch.Generator
    lasting: bool

    def __init__(self, rate: float):
        super().__init__()
        self.rate, self.lasting, self.generator = rate, False, torch.Generator()

    def forward(self, x: Tensor) -> Tensor:
        """Inputs (n x ...) -> the same, some of them 0."""
        shape = (1, *x.shape[1:]) if self.lasting else tuple(x.shape)
        return x * keep(shape, self.rate, self.generator).to(x)


def keep(shape: tuple[int, ...], rate: float | Tensor, generator: torch.Generator) -> Tensor:
    """Masks: 0 with probability `rate`, else 1 / (1 - rate)."""
    return (torch.rand(shape, generator=generator) >= rate) / (1 - rate)


def with_lasting_masks(factory: NetworkFactory) -> NetworkFactory:
    """The factory, with every `nn.Dropout` of its networks replaced by `LastingDropout`."""

    def network(features: int, outputs: int) -> nn.Module:
        made = factory(features, outputs)
        dropouts = [(name, layer) for name, layer in made.named_modules() if isinstance(layer, nn.Dropout)]
        if not dropouts:
            raise SettingError("MCDropout needs a network with nn.Dropout in it, but yours has none. Add one.")
        for name, layer in dropouts:
            made.set_submodule(name, LastingDropout(layer.p))
        return made

    return network
