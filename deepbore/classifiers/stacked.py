"""Networks of m members that compute side by side, over a leading member axis."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from deepbore.errors import SettingError

# activation, and its derivative as a function of its value
ACTIVATIONS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "elu": (nn.functional.elu, lambda a: a.clamp(max=0) + 1),
    "relu": (torch.relu, torch.sign),
    "tanh": (torch.tanh, lambda a: 1 - a * a),
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
        return torch.baddbmm(self.bias, x.expand(len(self.weight), *x.shape[-2:]), self.weight)


class StackedMLP(nn.Module):
    """m multi-layer perceptrons with weights of their own.

    Args:
        sizes: widths of the layers, from e features to k outputs.
        members: m.
        activation: "elu", "relu" or "tanh".
        generator: stream of the initial weights.

    Raises:
        SettingError: for another activation.
    """

    def __init__(self, sizes: Sequence[int], members: int, activation: str, generator: torch.Generator):
        super().__init__()
        if activation not in ACTIVATIONS:
            raise SettingError(f"activation must be one of {sorted(ACTIVATIONS)}, but got {activation!r}.")
        self.layers = nn.ModuleList(StackedLinear(members, i, o, generator) for i, o in pairwise(sizes))
        self.activation, self.derivative = ACTIVATIONS[activation]

    def hidden(self, x: Tensor) -> Tensor:
        """Features (n x e) -> what the last layer sees (m x n x h)."""
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        return x

    def forward(self, x: Tensor) -> Tensor:
        """Features (n x e) -> outputs (m x n x k)."""
        return self.layers[-1](self.hidden(x))  # type: ignore[no-any-return]

    @torch.no_grad()
    def backpropagate(self, x: Tensor, loss_gradient: Callable[[Tensor], Tensor]) -> None:
        """Sets the gradients of all weights, three times as fast as autograd does on layers this small.

        Args:
            x: features, n x e.
            loss_gradient: outputs (m x n x k) -> derivative of the loss in them (m x n x k).
        """
        layers = [*self.layers]
        entering = [x.expand(len(layers[0].weight), *x.shape)]
        for layer in layers[:-1]:
            entering.append(self.activation(torch.baddbmm(layer.bias, entering[-1], layer.weight)))
        gradient = loss_gradient(torch.baddbmm(layers[-1].bias, entering[-1], layers[-1].weight))
        for i in reversed(range(len(layers))):
            layers[i].weight.grad = torch.bmm(entering[i].mT, gradient)
            layers[i].bias.grad = gradient.sum(1, keepdim=True)
            if i:
                gradient = torch.bmm(gradient, layers[i].weight.mT).mul_(self.derivative(entering[i]))


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

    @torch.enable_grad()
    def backpropagate(self, x: Tensor, loss_gradient: Callable[[Tensor], Tensor]) -> None:
        """Sets the gradients of all weights; as `StackedMLP.backpropagate`, by autograd."""
        self.zero_grad(set_to_none=True)
        outputs = self(x)
        outputs.backward(loss_gradient(outputs.detach()))


def _seeded(
    factory: Callable[[int, int], nn.Module], features: int, outputs: int, generator: torch.Generator
) -> nn.Module:
    """A module whose initial weights come from the generator, the global stream left as it was."""
    seed = int(torch.randint(2**31, (1,), generator=generator))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return factory(features, outputs)
