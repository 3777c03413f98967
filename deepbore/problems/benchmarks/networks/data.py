"""Data to train small networks on: inputs, targets, and which rows are held out."""

import codecs
import contextlib
import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deepbore.problems.base import benchmark_package

HELD_OUT = 1 / 3  # of the rows


@dataclass(frozen=True)
class Split:
    """Rows to train on, and rows held out.

    Attributes:
        x, y: inputs and targets to train on.
        held_x, held_y: the same of the rows held out.
        outputs: of a network: the number of classes, or of numbers.
    """

    x: Tensor
    y: Tensor
    held_x: Tensor
    held_y: Tensor
    outputs: int


def split(x: Any, y: Any, outputs: int | None = None, seed: int = 0) -> Split:
    """Rows in random order, the first third of them held out; y are classes if they are whole numbers.

    Args:
        x: n x ..., numbers or whole numbers.
        y: n or n x outputs.
        outputs: None for the number of classes or columns.
        seed: of the order.
    """
    inputs, targets = torch.as_tensor(np.asarray(x)), torch.as_tensor(np.asarray(y))
    inputs = inputs.float() if inputs.is_floating_point() else inputs
    targets = targets.float() if targets.is_floating_point() else targets.long()
    if outputs is None:
        outputs = targets.shape[-1] if targets.is_floating_point() else int(targets.max()) + 1
    order = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(seed))
    held, rest = order[: round(HELD_OUT * len(order))], order[round(HELD_OUT * len(order)) :]
    return Split(inputs[rest], targets[rest], inputs[held], targets[held], outputs)


def standardised(x: Any) -> np.ndarray:
    """Columns with mean 0 and standard deviation 1."""
    x = np.asarray(x, dtype=np.float64)
    columns: np.ndarray = (x - x.mean(0)) / np.where(x.std(0) > 0, x.std(0), 1.0)
    return columns


def _sklearn() -> Any:
    return benchmark_package("sklearn.datasets", "scikit-learn")


# --- rows ------------------------------------------------------------------------------------------------------------


def digits() -> Split:
    """900 of scikit-learn's handwritten digits, 64 grey values each."""
    x, y = _sklearn().load_digits(return_X_y=True)
    return split(x[:900] / 16, y[:900])


def digits_again() -> Split:
    """The same digits, each to be given back."""
    found = digits()
    return Split(found.x, found.x, found.held_x, found.held_x, found.x.shape[1])


def cancer() -> Split:
    """Breast cancer, 30 features, two classes."""
    x, y = _sklearn().load_breast_cancer(return_X_y=True)
    return split(standardised(x), y)


def wine() -> Split:
    """Wine, 13 features, three classes."""
    x, y = _sklearn().load_wine(return_X_y=True)
    return split(standardised(x), y)


def diabetes() -> Split:
    """Diabetes, 10 features, one number."""
    x, y = _sklearn().load_diabetes(return_X_y=True)
    return split(standardised(x), standardised(y)[:, None])


def athletes() -> Split:
    """Linnerud, 3 exercises, three numbers; 20 rows."""
    x, y = _sklearn().load_linnerud(return_X_y=True)
    return split(standardised(x), standardised(y))


def friedman() -> Split:
    """Friedman's first function of ten features, five of which count, with noise."""
    x, y = _sklearn().make_friedman1(n_samples=600, noise=1.0, random_state=0)
    return split(standardised(x), standardised(y)[:, None])


def outliers() -> Split:
    """A linear function of twelve features, a tenth of whose training targets are far off."""
    stream = np.random.default_rng(0)
    x = stream.normal(size=(500, 12))
    y = np.tanh(x @ stream.normal(size=12) / 3) + 0.1 * stream.normal(size=500)
    found = split(x, y[:, None])
    off = torch.from_numpy(stream.random(len(found.y)) < 0.1)
    far = torch.from_numpy(8.0 * stream.normal(size=len(found.y))).float()
    return Split(found.x, found.y + (off * far)[:, None], found.held_x, found.held_y, 1)


def rare() -> Split:
    """Two classes, one of which has a twentieth of the rows."""
    x, y = _sklearn().make_classification(
        800, 16, n_informative=6, n_clusters_per_class=3, weights=[0.95], class_sep=0.8, random_state=0
    )
    return split(standardised(x), y)


def moons() -> Split:
    """Two half moons in the plane, with noise."""
    x, y = _sklearn().make_moons(600, noise=0.25, random_state=0)
    return split(standardised(x), y)


def spirals() -> Split:
    """Three spirals in the plane."""
    stream = np.random.default_rng(0)
    classes, turn = np.repeat(np.arange(3), 200), np.tile(np.linspace(0.1, 1, 200), 3)
    angle = 2 * math.pi * (1.5 * turn + classes / 3) + 0.15 * stream.normal(size=600)
    return split(np.stack([turn * np.cos(angle), turn * np.sin(angle)], 1) * 2, classes)


def wave() -> Split:
    """A function of one number with fast and slow waves."""
    x = np.linspace(-1, 1, 600)
    y = np.sin(25 * x) * np.exp(-2 * x**2) + 0.5 * np.sin(4 * x)
    return split(x[:, None], y[:, None])


def ratings() -> Split:
    """Pairs (user, item) and a rating, a product of hidden factors of rank 3 with noise."""
    stream = np.random.default_rng(0)
    users, items = stream.integers(0, 60, 1500), stream.integers(0, 40, 1500)
    factors = stream.normal(size=(60, 3)), stream.normal(size=(40, 3))
    y = (factors[0][users] * factors[1][items]).sum(1) + 0.5 * stream.normal(size=1500)
    return split(np.stack([users, items], 1), y[:, None])


# --- images ----------------------------------------------------------------------------------------------------------


def small_images() -> Split:
    """The handwritten digits as images of 1 x 8 x 8."""
    found = digits()
    return Split(found.x.view(-1, 1, 8, 8), found.y, found.held_x.view(-1, 1, 8, 8), found.held_y, 10)


def shapes() -> Split:
    """Images of 1 x 12 x 12 with a bar, a bar across, a cross or a square, somewhere, under noise."""
    stream = np.random.default_rng(0)
    images, classes = stream.normal(0, 0.5, (600, 1, 12, 12)), stream.integers(0, 4, 600)
    for image, kind, row, column in zip(
        images[:, 0], classes, stream.integers(2, 9, 600), stream.integers(2, 9, 600), strict=True
    ):
        if kind in (0, 2):
            image[row - 2 : row + 3, column] += 1
        if kind in (1, 2):
            image[row, column - 2 : column + 3] += 1
        if kind == 3:
            image[row - 1 : row + 2, column - 1 : column + 2] += 0.6
    return split(images, classes)


# --- sequences -------------------------------------------------------------------------------------------------------


def chirps() -> Split:
    """Sequences of 24 numbers: waves whose frequency is constant, rises, falls, or jumps."""
    stream = np.random.default_rng(0)
    classes, t = stream.integers(0, 4, 500), np.linspace(0, 1, 24)
    speed = np.stack([np.ones(24), 0.6 + 0.8 * t, 1.4 - 0.8 * t, np.where(t < 0.5, 0.7, 1.3)])[classes]
    phase = 2 * math.pi * (np.cumsum(speed, 1) * stream.uniform(2, 4, (500, 1)) / 24 + stream.random((500, 1)))
    return split((np.sin(phase) + 0.2 * stream.normal(size=(500, 24)))[..., None], classes)


def attractor() -> Split:
    """Twelve values of Mackey and Glass's equation, and the value three steps later."""
    series = [1.2 + 0.01 * k for k in range(18)]
    for _ in range(2200):
        series.append(series[-1] + 0.2 * series[-17] / (1 + series[-17] ** 10) - 0.1 * series[-1])
    taken = standardised(np.array(series[200::3])[:, None])
    rows = len(taken) - 15
    x = np.stack([taken[k : k + 12] for k in range(rows)])
    return split(x, np.stack([taken[k + 14] for k in range(rows)]))


def recall() -> Split:
    """Sequences of 12 tokens of eight; the class is the token that followed the last one when it came before."""
    stream = np.random.default_rng(0)
    x = stream.integers(0, 8, (600, 12))
    place = stream.integers(0, 9, 600)
    rows = np.arange(600)
    x[rows, -1] = x[rows, place]
    earlier = (x[:, :-2] == x[:, -1:]).argmax(1)  # the first time
    return split(x, x[rows, earlier + 1], outputs=8)


def text() -> Split:
    """Eight characters of the Zen of Python, and the next one."""
    with contextlib.redirect_stdout(io.StringIO()):
        import this
    characters = codecs.decode(this.s, "rot13").lower()
    known = sorted(set(characters))
    numbers = np.array([known.index(each) for each in characters])
    return split(np.stack([numbers[k : k + 8] for k in range(len(numbers) - 8)]), numbers[8:], outputs=len(known))


@cache
def load(name: str) -> Split:
    """The data with this name, made once."""
    return DATA[name]()


DATA: dict[str, Callable[[], Split]] = {
    each.__name__: each
    for each in (
        digits, digits_again, cancer, wine, diabetes, athletes, friedman, outliers, rare, moons, spirals, wave, ratings,
        small_images, shapes, chirps, attractor, recall, text,
    )
}  # fmt: skip
