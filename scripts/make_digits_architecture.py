#!/usr/bin/env python
"""The table of `DigitsArchitecture`: every configuration trained on scikit-learn's digits, some minutes of one core.

    OMP_NUM_THREADS=1 nice -n 10 python scripts/make_digits_architecture.py table.npz --seeds 2

Networks that differ in learning rate, decay and dropout alone are trained side by side, as one more dimension of the
tensors: each has weights, gradients and an Adam of its own. Those of one seed start from the same weights and see the
images in the same order. What is done is kept beside the file; a second start goes on from there.
"""

import argparse
import time
from itertools import product
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor
from torch.nn.functional import cross_entropy

from deepbore.problems.benchmarks.digits import BRIGHTEST, CLASSES, PIXELS, TRAINING, new_layers
from deepbore.problems.benchmarks.tables import ARCHITECTURE_LEVELS as LEVELS

EPOCHS = 10
FIRST_DECAY, SECOND_DECAY, EPSILON = 0.9, 0.999, 1e-8  # of Adam, as in its paper
SIDE_BY_SIDE = ["learning_rate", "decay", "dropout"]  # the first three of LEVELS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path, help="the .npz file to write, or to go on with")
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(1)

    images, labels = load_digits(return_X_y=True)
    x, y = torch.from_numpy(images).float() / BRIGHTEST, torch.from_numpy(labels).long()
    wrong = np.full((given.seeds, *map(len, LEVELS.values())), -1, dtype=np.int16)
    part = given.table.with_suffix(".part.npy")
    if part.exists():
        wrong = np.load(part)
    shapes = [list(enumerate(LEVELS[name])) for name in ("batch_size", "layers", "units")]
    for seed, *shape in product(range(given.seeds), *shapes):
        (i, batch_size), (j, layers), (k, units) = shape
        if wrong[seed, ..., i, j, k].min() >= 0:
            continue
        start = time.process_time()
        wrong[seed, ..., i, j, k] = trained(x, y, batch_size, layers, units, seed)
        np.save(part, wrong)
        print(
            f"seed {seed}, batches of {batch_size}, {layers} x {units}: {time.process_time() - start:.1f} s", flush=True
        )
    held_out = len(y) - TRAINING
    np.savez_compressed(given.table, wrong=wrong.sum(axis=0).astype(np.uint16), images=given.seeds * held_out)
    part.unlink()


def trained(x: Tensor, y: Tensor, batch_size: int, layers: int, units: int, seed: int) -> np.ndarray:
    """How many held-out images each network gets wrong: learning rates x decays x dropouts."""
    generator = torch.Generator().manual_seed(seed)
    grid = torch.cartesian_prod(*(torch.tensor(LEVELS[name]) for name in SIDE_BY_SIDE))
    rates, decays, dropouts = (column.reshape(-1, 1, 1) for column in grid.T)  # networks x 1 x 1
    weights = stacked(new_layers([PIXELS] + [units] * layers + [CLASSES], generator), len(grid))
    moments = [(torch.zeros_like(weight), torch.zeros_like(weight)) for weight in weights]
    step = 0
    for epoch in range(EPOCHS):
        for batch in torch.split(torch.randperm(TRAINING, generator=generator), batch_size):
            step += 1
            logits = outputs(x[batch], weights, dropouts, generator)
            targets = y[batch].expand(len(grid), -1)
            loss = cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum") / len(batch)
            gradients = torch.autograd.grad(loss, weights)
            adam(weights, gradients, moments, rates * decays**epoch, step)
    with torch.no_grad():
        predicted = outputs(x[TRAINING:], weights).argmax(dim=-1)
    shape = [len(LEVELS[name]) for name in SIDE_BY_SIDE]
    return (predicted != y[TRAINING:]).sum(dim=1).reshape(shape).numpy()


def stacked(layers: list[tuple[Tensor, Tensor]], count: int) -> list[Tensor]:
    """Weights (count x in x out) and biases (count x 1 x out) of equal networks, one after the other."""
    flat = [tensor.detach() for weight, bias in layers for tensor in (weight.T, bias[None])]
    return [tensor.repeat(count, 1, 1).requires_grad_() for tensor in flat]


def outputs(
    x: Tensor, weights: list[Tensor], dropouts: Tensor | None = None, generator: torch.Generator | None = None
) -> Tensor:
    """Images (n x f) -> logits (networks x n x c), with dropout where it is given."""
    hidden = x.expand(len(weights[0]), -1, -1)
    for weight, bias in zip(weights[:-2:2], weights[1:-2:2], strict=True):
        hidden = torch.baddbmm(bias, hidden, weight).relu()
        if dropouts is not None:
            kept = torch.rand(hidden.shape[1:], generator=generator) >= dropouts
            hidden = hidden * (kept / (1 - dropouts))
    return torch.baddbmm(weights[-1], hidden, weights[-2])


@torch.no_grad()
def adam(
    weights: list[Tensor],
    gradients: tuple[Tensor, ...],
    moments: list[tuple[Tensor, Tensor]],
    rates: Tensor,
    step: int,
) -> None:
    """A step of Adam, in place, with a learning rate for each network (networks x 1 x 1)."""
    rates = rates * (1 - SECOND_DECAY**step) ** 0.5 / (1 - FIRST_DECAY**step)
    for weight, gradient, (first, second) in zip(weights, gradients, moments, strict=True):
        first.lerp_(gradient, 1 - FIRST_DECAY)
        second.mul_(SECOND_DECAY).addcmul_(gradient, gradient, value=1 - SECOND_DECAY)
        weight.sub_(rates * first / (second.sqrt() + EPSILON))


if __name__ == "__main__":
    main()
