"""Sixteen networks of torch with 8 to 20 parameters: optimizers and schedules with settings of their own.

Learning rates belong to their optimizer (`adamw_lr`, `sgd_lr`), as people write them down who know that their ranges
differ.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from deepbore.problems.base import benchmark_package
from deepbore.problems.benchmarks.ground.task import Function, GroundTask, Tunable, sklearn, within
from deepbore.problems.benchmarks.networks import layers
from deepbore.problems.benchmarks.networks.data import Split, load, split, standardised
from deepbore.problems.benchmarks.networks.runs import measured
from deepbore.problems.benchmarks.networks.training import train
from deepbore.space import Categorical, Condition, Integer, Ordinal, Params, Real

# --- what is tuned ---------------------------------------------------------------------------------------------------

OWN: Mapping[str, Mapping[str, Tunable]] = {  # the settings of each optimizer
    "adamw": {
        "adamw_lr": Real(1e-5, 0.3, log=True),
        "adamw_beta1": Real(0.5, 0.99),
        "adamw_beta2": Real(0.8, 0.9999),
        "adamw_epsilon": Real(1e-9, 1e-3, log=True),
    },
    "adam": {"adam_lr": Real(1e-5, 0.3, log=True), "adam_beta1": Real(0.5, 0.99)},
    "nadam": {"nadam_lr": Real(1e-5, 0.3, log=True), "nadam_beta1": Real(0.5, 0.99)},
    "sgd": {
        "sgd_lr": Real(1e-4, 3.0, log=True),
        "sgd_momentum": Real(0.0, 0.99),
        "sgd_nesterov": Categorical([False, True]),
    },
    "rmsprop": {"rmsprop_lr": Real(1e-5, 0.3, log=True), "rmsprop_alpha": Real(0.8, 0.999)},
    "adagrad": {"adagrad_lr": Real(1e-4, 1.0, log=True), "adagrad_accumulated": Real(1e-4, 1.0, log=True)},
    "rprop": {"rprop_lr": Real(1e-5, 0.1, log=True), "rprop_eta": Real(1.05, 1.5)},
}
SCHEDULES: Mapping[str, Mapping[str, Tunable]] = {
    "constant": {},
    "cosine": {"floor": Real(0.0, 0.5)},
    "steps": {"gamma": Real(0.05, 0.9), "drops": Integer(2, 6)},
    "exponential": {"end": Real(1e-3, 0.5, log=True)},
}
DECAY, DROPOUT = Real(1e-6, 1.0, log=True), Real(0.0, 0.7)
BATCH, WIDTH = Ordinal([16, 32, 64, 128]), Ordinal([8, 16, 32, 64])
ACTIVATION = Categorical(["relu", "tanh", "gelu", "silu"])
NORM = Categorical(["none", "batch", "layer"])
MOMENTUM = within("norm", "batch", {"norm_momentum": Real(0.01, 1.0, log=True)})
CLIPPING: Mapping[str, Tunable] = {
    "clipping": Categorical([False, True]),
    **within("clipping", True, {"clip": Real(0.01, 10.0, log=True)}),
}


def optimizers(*kinds: str) -> dict[str, Tunable]:
    """A choice of optimizers, each with its own settings."""
    found: dict[str, Tunable] = {"optimizer": Categorical(list(kinds))}
    for kind in kinds:
        found |= within("optimizer", kind, OWN[kind])
    return found


def schedules(*kinds: str) -> dict[str, Tunable]:
    """A choice of schedules of the learning rate, each with its own settings, after a warm-up."""
    found: dict[str, Tunable] = {"schedule": Categorical(list(kinds)), "warmup": Real(0.0, 0.4)}
    for kind in kinds:
        found |= within("schedule", kind, SCHEDULES[kind])
    return found


def plain(params: Params) -> Params:
    """A configuration in the names of the training loop: `adamw_lr` is `lr`."""
    kind = params.get("optimizer", "")
    return {name.removeprefix(f"{kind}_") if kind else name: value for name, value in params.items()}


# --- data ------------------------------------------------------------------------------------------------------------


def first(count: int, found: Split) -> Split:
    """The first rows of each part, so that training is quick."""
    half = count // 2
    return Split(found.x[:count], found.y[:count], found.held_x[:half], found.held_y[:half], found.outputs)


def table(name: str, count: int, classes: bool) -> Split:
    """A table of statsmodels by its name in `training.data`, standardised."""
    from deepbore.problems.benchmarks.training.data import DATA

    x, y = DATA[name].load()
    rows = np.random.default_rng(0).permutation(len(x))[:count]
    x, y = standardised(x[rows]), y[rows]
    return split(x, np.unique(y, return_inverse=True)[1] if classes else standardised(y[:, None]))


def made(name: str, **settings: Any) -> Split:
    """Rows of one of scikit-learn's generators, standardised."""
    x, y = sklearn(f"datasets.make_{name}", random_state=0, **settings)
    if np.issubdtype(y.dtype, np.floating) and len(np.unique(y)) > 10:
        return split(standardised(x), standardised(y[:, None]))
    return split(standardised(x), np.unique(y, return_inverse=True)[1])


def patches(count: int, size: int) -> Split:
    """Grey squares from two photographs that come with scikit-learn; the class is the photograph."""
    benchmark_package("PIL", "pillow")
    stream, images, classes = np.random.default_rng(0), [], []
    for number, photo in enumerate(sklearn("datasets.load_sample_images")["images"]):
        grey = photo.mean(-1)
        for row, column in zip(stream.integers(0, 400, count // 2), stream.integers(0, 600, count // 2), strict=True):
            square = grey[row : row + size, column : column + size]
            images.append((square - square.mean()) / (square.std() + 5.0))
            classes.append(number)
    return split(np.array(images)[:, None], np.array(classes))


def again(found: Split) -> Split:
    """The inputs as targets, as rows."""
    x, held = found.x.flatten(1), found.held_x.flatten(1)
    return Split(x, x, held, held, x.shape[1])


def brackets(count: int, length: int = 14) -> Split:
    """Strings of two kinds of brackets, half of which are balanced."""
    stream = np.random.default_rng(0)
    rows, classes = [], []
    for number in range(count):
        row = list[int]()
        stack = list[int]()
        for place in range(length):
            if stack and (len(stack) >= length - place or stream.random() < 0.5):
                row.append(stack.pop() + 2)
            else:
                stack.append(int(stream.integers(0, 2)))
                row.append(stack[-1])
        if number % 2:  # two places exchanged; mostly no longer balanced
            one, other = stream.choice(length, 2, replace=False)
            row[one], row[other] = row[other], row[one]
        rows.append(row)
        classes.append(is_balanced(row))
    return split(np.array(rows), np.array(classes, dtype=np.int64))


def is_balanced(row: Sequence[int]) -> bool:
    """Whether each bracket (0, 1) is closed by its own kind (2, 3)."""
    stack = list[int]()
    for each in row:
        if each < 2:
            stack.append(each)
        elif not stack or stack.pop() != each - 2:
            return False
    return not stack


def words(count: int, length: int = 10) -> Split:
    """Characters of Python's own manual, and the next one of 28."""
    from pydoc_data.topics import topics

    kept = "abcdefghijklmnopqrstuvwxyz ."
    text = "".join(each for each in " ".join(topics[name] for name in sorted(topics)[:6]).lower() if each in kept)
    numbers = np.array([kept.index(each) for each in text[: count + length]])
    return split(np.stack([numbers[k : k + length] for k in range(count)]), numbers[length:], outputs=len(kept))


def lynx(length: int = 16) -> Split:
    """A noisy chaotic map of two species: sixteen values of one, and its next value."""
    stream, one, other, series = np.random.default_rng(0), 0.4, 0.3, []
    for _ in range(460):
        one, other = one * (3.6 - 3.2 * one - 0.3 * other), other * (3.4 - 3.0 * other - 0.25 * one)
        series.append(one + 0.02 * stream.normal())
    taken = standardised(np.array(series)[60:, None])
    rows = len(taken) - length
    return split(np.stack([taken[k : k + length] for k in range(rows)]), taken[length:])


# --- networks --------------------------------------------------------------------------------------------------------


class Residual(nn.Module):
    """Residual blocks on rows: width, depth, expansion, activation, norm and dropout; `scale` of each block."""

    def __init__(self, params: Params, data: Split):
        super().__init__()
        width, inner = params["width"], params["width"] * params["expansion"]
        self.into, self.out = nn.Linear(math.prod(data.x.shape[1:]), width), nn.Linear(width, data.outputs)
        self.scale = params["scale"]
        self.blocks = nn.ModuleList(
            nn.Sequential(
                *layers.norm(params, width),
                nn.Linear(width, inner),
                layers.activation(params),
                nn.Dropout(params["dropout"]),
                nn.Linear(inner, width),
            )
            for _ in range(params["depth"])
        )

    def forward(self, x: Tensor) -> Tensor:
        """n x ... -> n x outputs."""
        hidden = self.into(x.flatten(1))
        for block in self.blocks:
            hidden = hidden + self.scale * block(hidden)
        outputs: Tensor = self.out(hidden)
        return outputs


def task(
    network: Callable[[Params, Split], nn.Module],
    data: Callable[[], Split],
    space: Mapping[str, Tunable],
    epochs: int,
    measure: str = "log loss",
    fixed: Params | None = None,
) -> GroundTask:
    """A network, its data, what is tuned, the epochs, and the measure of the rows held out (`measured`)."""

    def make() -> Function:
        loaded = data()

        def loss(params: Params) -> float:
            given = {**(fixed or {}), **plain(params)}
            torch.manual_seed(0)
            chosen = network(given, loaded)
            return train(chosen, loaded, given, epochs, lambda: measured(chosen, loaded, measure))

        return loss

    return GroundTask(space, make)


ROWS: Mapping[str, Tunable] = {
    "depth": Integer(1, 3),
    "width": WIDTH,
    "activation": ACTIVATION,
    "norm": NORM,
    **MOMENTUM,
    "dropout": DROPOUT,
    "weight_decay": DECAY,
    "batch_size": BATCH,
}
BLOCKS: Mapping[str, Tunable] = {
    **ROWS,
    "expansion": Integer(1, 4),
    "scale": Real(0.05, 2.0, log=True),
}
IMAGES: Mapping[str, Tunable] = {
    "channels": Integer(2, 10, log=True),
    "kernel": Ordinal([1, 3, 5]),
    "pooling": Categorical(["max", "average"]),
    "dropout": DROPOUT,
    "norm": NORM,
    **MOMENTUM,
    "activation": ACTIVATION,
    "weight_decay": DECAY,
    "batch_size": Ordinal([32, 64, 128]),
}
CELL = Categorical(["rnn", "gru", "convolution", "attention"])
CELLS: Mapping[str, Tunable] = {
    "cell": CELL,
    "width": Ordinal([8, 16, 24, 32]),
    "layers": Integer(1, 2, when=Condition("cell", ["rnn", "gru", "attention"])),
    "kernel": Ordinal([3, 5, 7], when=Condition("cell", "convolution")),
    "heads": Ordinal([1, 2, 4], when=Condition("cell", "attention")),
    "dropout": Real(0.0, 0.5, when=Condition("cell", "attention")),
    "weight_decay": DECAY,
    "batch_size": Ordinal([32, 64, 128]),
}
ATTENTION: Mapping[str, Tunable] = {
    "width": Ordinal([8, 16, 24, 32]),
    "heads": Ordinal([1, 2, 4]),
    "layers": Integer(1, 2),
    "dropout": Real(0.0, 0.5),
    "weight_decay": DECAY,
    "batch_size": Ordinal([32, 64, 128]),
}
SMOOTHING = Real(0.0, 0.3)
ALL = ("constant", "cosine", "steps", "exponential")

TASKS: dict[str, GroundTask] = {
    "perceptron-digits": task(
        layers.perceptron,
        lambda: first(320, load("digits")),
        {**ROWS, **optimizers("sgd", "adamw", "rmsprop"), **schedules("constant", "cosine", "steps"), **CLIPPING},
        5,
    ),
    "perceptron-party": task(
        layers.perceptron,
        lambda: table("party", 400, True),
        {**ROWS, **optimizers("adam", "sgd"), "label_smoothing": SMOOTHING, "noise": Real(0.0, 1.0)},
        5,
    ),
    "perceptron-affairs": task(
        layers.perceptron,
        lambda: table("fair", 400, True),
        {**ROWS, **optimizers("adamw", "adagrad", "sgd"), **schedules("constant", "exponential")},
        5,
    ),
    "perceptron-visits": task(
        layers.perceptron,
        lambda: table("visits", 400, False),
        {
            **ROWS,
            **optimizers("adam", "rmsprop", "rprop"),
            "loss": Categorical(["squared", "absolute", "huber"]),
            "delta": Real(0.01, 10.0, log=True, when=Condition("loss", "huber")),
            **CLIPPING,
        },
        5,
        "squared error",
    ),
    "residual-friedman": task(
        Residual,
        lambda: made("friedman2", n_samples=400, noise=20.0),
        {**BLOCKS, **optimizers("adamw", "sgd"), **schedules(*ALL)},
        5,
        "squared error",
    ),
    "residual-hastie": task(
        Residual,
        lambda: made("hastie_10_2", n_samples=450),
        {**BLOCKS, **optimizers("adam", "nadam", "sgd"), "label_smoothing": SMOOTHING},
        5,
        "error",
    ),
    "residual-roll": task(
        Residual,
        lambda: made("swiss_roll", n_samples=400, noise=0.3),
        {**BLOCKS, **optimizers("adamw", "rmsprop"), **schedules("cosine", "steps"), **CLIPPING},
        6,
        "squared error",
    ),
    "rare-quantiles": task(
        layers.perceptron,
        lambda: made("classification", n_samples=500, n_features=14, n_informative=7, weights=[0.9], class_sep=0.7),
        {
            **ROWS,
            **optimizers("adamw", "sgd"),
            "loss": Categorical(["plain", "weighted", "focal"]),
            "power": Real(0.0, 1.5, when=Condition("loss", "weighted")),
            "focus": Real(0.0, 5.0, when=Condition("loss", "focal")),
        },
        5,
        "balanced error",
    ),
    "autoencoder-patches": task(
        layers.Autoencoder,
        lambda: again(patches(400, 8)),
        {
            "decoder": Categorical(["linear", "deep"]),
            "code": Integer(2, 16, log=True),
            "width": WIDTH,
            "activation": ACTIVATION,
            "dropout": DROPOUT,
            "weight_decay": DECAY,
            "batch_size": BATCH,
            **optimizers("adam", "sgd", "adagrad"),
            **schedules("constant", "cosine"),
        },
        6,
        "squared error",
    ),
    "convolution-digits": task(
        layers.convolutional,
        lambda: first(300, load("small_images")),
        {**IMAGES, **optimizers("adamw", "sgd"), **schedules("constant", "cosine"), "label_smoothing": SMOOTHING},
        3,
    ),
    "convolution-patches": task(
        layers.convolutional,
        lambda: patches(450, 12),
        {**IMAGES, **optimizers("adam", "rmsprop", "sgd"), **CLIPPING},
        3,
    ),
    "cells-lynx": task(
        layers.Sequence,
        lynx,
        {**CELLS, **optimizers("adam", "sgd"), **CLIPPING},
        4,
        "squared error",
    ),
    "cells-chirps": task(
        layers.Sequence,
        lambda: first(250, load("chirps")),
        {**CELLS, **optimizers("adamw", "rmsprop"), **schedules("constant", "cosine", "exponential")},
        3,
    ),
    "cells-words": task(
        layers.Sequence,
        lambda: words(500),
        {
            "cell": Categorical(["rnn", "gru", "lstm"]),
            "forget_bias": Real(-1.0, 3.0, when=Condition("cell", "lstm")),
            "layers": Integer(1, 2),
            "width": Ordinal([8, 16, 24, 32]),
            "weight_decay": DECAY,
            "batch_size": Ordinal([32, 64, 128]),
            **optimizers("adamw", "sgd", "nadam"),
            **CLIPPING,
        },
        3,
    ),
    "attention-brackets": task(
        layers.Sequence,
        lambda: brackets(330),
        {**ATTENTION, **optimizers("adamw", "sgd"), **schedules("constant", "cosine", "steps"), **CLIPPING},
        3,
        fixed={"cell": "attention"},
    ),
    "attention-recall": task(
        layers.Sequence,
        lambda: first(250, load("recall")),
        {**ATTENTION, **optimizers("adam", "nadam", "rmsprop"), **schedules("constant", "exponential")},
        3,
        fixed={"cell": "attention"},
    ),
}
