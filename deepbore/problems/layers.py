"""Fully connected layers of the problems that train networks; no global random state is read or changed."""

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import linear, relu

Layer = tuple[Tensor, Tensor]  # weight (out x in), bias (out)


def new_layers(sizes: list[int], generator: torch.Generator) -> list[Layer]:
    """Weights by He et al. (2015), biases 0. torch.nn.Linear would draw from the global generator."""
    layers = []
    for before, after in pairwise(sizes):
        weight = torch.randn(after, before, generator=generator, dtype=torch.float32) * (2 / before) ** 0.5
        layers.append((weight.requires_grad_(), torch.zeros(after, dtype=torch.float32, requires_grad=True)))
    return layers


def outputs(
    x: Tensor,
    layers: list[Layer],
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
    activation: Callable[[Tensor], Tensor] = relu,
) -> Tensor:
    """Features (n x f) -> outputs (n x c) of the layers, with dropout where a generator is given."""
    for weight, bias in layers[:-1]:
        x = activation(linear(x, weight, bias))
        if generator is not None:
            x = x * (torch.rand(x.shape, generator=generator) >= dropout) / (1 - dropout)
    return linear(x, *layers[-1])
