"""Networks of m members that compute side by side, over a leading member axis."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from deepbore.errors import SettingError

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "elu": nn.functional.elu,
    "relu": nn.functional.relu,
    "silu": nn.functional.silu,
    "tanh": torch.tanh,
}


class StackedLinear(nn.Module):
    """m linear layers: (m x) n x i -> m x n x o, initialised as torch's own, uniform within 1 / sqrt(i)."""

    def __init__(self, members: int, inputs: int, outputs: int, generator: torch.Generator):
        super().__init__()
        bound = 1 / math.sqrt(inputs)
        draw = torch.rand(members, inputs + 1, outputs, generator=generator) * 2 * bound - bound
        self.weight = nn.Parameter(draw[:, :-1].clone())
        self.bias = nn.Parameter(draw[:, -1:].clone())

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim == 2:
            x = x.expand(len(self.weight), *x.shape)
        return torch.baddbmm(self.bias, x, self.weight)


class StackedMLP(nn.Module):
    """m multi-layer perceptrons with weights of their own.

    Args:
        sizes: widths of the layers, from e features to k outputs.
        members: m.
        activation: "elu", "relu", "silu" or "tanh".
        generator: stream of the initial weights.
    """

    def __init__(self, sizes: Sequence[int], members: int, activation: str, generator: torch.Generator):
        super().__init__()
        if activation not in ACTIVATIONS:
            raise SettingError(f"activation must be one of {sorted(ACTIVATIONS)}, but got {activation!r}.")
        pairs = zip(sizes[:-1], sizes[1:], strict=True)
        self.layers = nn.ModuleList(StackedLinear(members, i, o, generator) for i, o in pairs)
        self.activation = ACTIVATIONS[activation]

    def hidden(self, x: Tensor) -> Tensor:
        """Features (n x e) -> what the last layer sees (m x n x h)."""
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        return x

    def forward(self, x: Tensor) -> Tensor:
        """Features (n x e) -> outputs (m x n x k)."""
        return self.layers[-1](self.hidden(x))  # type: ignore[no-any-return]


class Members(nn.Module):
    """m copies of a user's own network, one after the other.

    Args:
        factory: (number of features, number of outputs) -> module that maps n x e to n x k.
        sizes: e and k.
        members: m.
        generator: each copy's weights are made under a seed drawn from it.
    """

    def __init__(
        self,
        factory: Callable[[int, int], nn.Module],
        sizes: tuple[int, int],
        members: int,
        generator: torch.Generator,
    ):
        super().__init__()
        self.members = nn.ModuleList(_seeded(factory, *sizes, generator) for _ in range(members))

    def forward(self, x: Tensor) -> Tensor:
        """Features (n x e) -> outputs (m x n x k)."""
        return torch.stack([member(x) for member in self.members])


def _seeded(factory: Callable[[int, int], nn.Module], features: int, outputs: int, generator: torch.Generator) -> nn.Module:
    """A module whose initial weights come from the generator, the global stream left as it was."""
    seed = int(torch.randint(2**31, (1,), generator=generator))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return factory(features, outputs)
