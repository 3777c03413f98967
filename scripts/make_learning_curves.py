#!/usr/bin/env python
"""The table of `LearningCurves`: every configuration trained for 81 epochs, about four minutes of one core.

    OMP_NUM_THREADS=1 nice -n 10 python scripts/make_learning_curves.py deepbore/problems/benchmarks/curves.npz

Networks that differ in learning rate, decay and dropout alone are trained side by side, as in
`make_digits_architecture.py`. What is done is kept beside the file; a second start goes on from there.
"""

import argparse
import time
from itertools import product
from pathlib import Path

import numpy as np
import torch
from sklearn import datasets
from torch import Tensor
from torch.nn.functional import cross_entropy

from deepbore.problems.benchmarks.digits import new_layers
from deepbore.problems.benchmarks.tables import CURVE_EPOCHS as EPOCHS, CURVE_LEVELS as LEVELS, LearningCurves
from make_digits_architecture import SIDE_BY_SIDE, adam, outputs, stacked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path, help="the .npz file to write, or to go on with")
    given = parser.parse_args()
    torch.set_num_threads(1)
    part = given.table.with_suffix(".part.npz")
    found = dict(np.load(part)) if part.exists() else {}
    for name in LearningCurves.names:
        data = rows(name)
        for (i, batch), (j, layers), (k, units) in product(
            *(enumerate(LEVELS[each]) for each in ("batch_size", "layers", "units"))
        ):
            key, start = f"{name} {i} {j} {k}", time.process_time()
            if key not in found:
                found[key] = trained(*data, batch, layers, units)
                np.savez(part, **found)
                print(f"{key}: {time.process_time() - start:.1f} s", flush=True)
    np.savez_compressed(given.table, **{name: together(name, found) for name in LearningCurves.names})
    part.unlink()


def rows(name: str) -> tuple[Tensor, Tensor, int]:
    """Standardised inputs, targets (classes, or standardised numbers) and how many rows are for training."""
    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    train = 2 * len(x) // 3
    x = torch.from_numpy(x).float()[order]
    x = (x - x[:train].mean(0)) / x[:train].std(0).clamp(min=1e-3)
    y = torch.from_numpy(y)[order]
    if name == "diabetes":
        y = ((y - y[:train].mean()) / y[:train].std()).float()
    return x.clamp(-5, 5), y, train


def trained(x: Tensor, y: Tensor, train: int, batch_size: int, layers: int, units: int) -> np.ndarray:
    """The held-out loss of each network after each epoch: learning rates x decays x dropouts x epochs."""
    generator = torch.Generator().manual_seed(0)
    grid = torch.cartesian_prod(*(torch.tensor(LEVELS[name]) for name in SIDE_BY_SIDE))
    rates, decays, dropouts = (column.reshape(-1, 1, 1) for column in grid.T)  # networks x 1 x 1
    classes = 1 if y.is_floating_point() else int(y.max()) + 1
    weights = stacked(new_layers([x.shape[1]] + [units] * layers + [classes], generator), len(grid))
    moments = [(torch.zeros_like(weight), torch.zeros_like(weight)) for weight in weights]
    step, curves = 0, []
    for epoch in range(EPOCHS):
        for batch in torch.split(torch.randperm(train, generator=generator), batch_size):
            step += 1
            each = losses(outputs(x[batch], weights, dropouts, generator), y[batch])
            adam(weights, torch.autograd.grad(each.sum(), weights), moments, rates * decays**epoch, step)
        with torch.no_grad():
            curves.append(losses(outputs(x[train:], weights), y[train:]))
    shape = [len(LEVELS[name]) for name in SIDE_BY_SIDE]
    return torch.stack(curves, dim=-1).reshape(*shape, EPOCHS).numpy()


def losses(predicted: Tensor, y: Tensor) -> Tensor:
    """The mean loss of each network: networks x n x c and n -> networks."""
    if y.is_floating_point():
        return (predicted[..., 0] - y).square().mean(dim=-1)
    targets = y.expand(len(predicted), -1).flatten()
    return cross_entropy(predicted.flatten(0, 1), targets, reduction="none").reshape(len(predicted), -1).mean(dim=-1)


def together(name: str, found: dict[str, np.ndarray]) -> np.ndarray:
    """All curves of a data set: one axis for each parameter, and one of epochs."""
    sizes = [len(LEVELS[each]) for each in ("batch_size", "layers", "units")]
    parts = [found[f"{name} {i} {j} {k}"] for i, j, k in product(*map(range, sizes))]
    whole = np.stack(parts, axis=3).reshape(*(len(LEVELS[each]) for each in LEVELS), EPOCHS)
    return np.where(np.isfinite(whole) & (whole < 6e4), whole, np.nan).astype(np.float16)


if __name__ == "__main__":
    main()
