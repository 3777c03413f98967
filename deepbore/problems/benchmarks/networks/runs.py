"""`NetworkRun`, and the table of all tasks: which network on which data, and what is tuned."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

from deepbore.problems.base import Problem
from deepbore.problems.benchmarks.networks import layers, spaces
from deepbore.problems.benchmarks.networks.data import Split, load
from deepbore.problems.benchmarks.networks.spaces import BATCH, DECAY, DEPTH, DROPOUT, FEW, LEVELS, RATE, WIDTH, Space
from deepbore.problems.benchmarks.networks.training import train
from deepbore.space import Categorical, Condition, Integer, Ordinal, Params, Real, SearchSpace
from deepbore.validation import one_of, whole

TRUTH = 4  # seeds, apart from those of the evaluations, whose mean is the true value


@dataclass(frozen=True)
class NetworkTask:
    """What is trained, on what, and what is tuned.

    Attributes:
        network: configuration, data -> network.
        data: their name.
        space: the parameters.
        epochs: the maximum.
        measure: "log loss", "error" (the share of wrong classes), "balanced error" (its mean over the classes) or
            "squared error", of the rows held out; all minimised.
        fixed: parameters that are not tuned.
    """

    network: Callable[[Params, Split], nn.Module]
    data: str
    space: Space
    epochs: int
    measure: str = "log loss"
    fixed: Params | None = None


CNN: Space = {
    "channels": Integer(2, 16, log=True),
    "kernel": Ordinal([1, 3, 5]),
    "pooling": Categorical(["max", "average"]),
    "dropout": DROPOUT,
    "norm": Categorical(["none", "batch", "layer"]),
    "norm_momentum": Real(0.01, 1.0, log=True, when=Condition("norm", "batch")),
}
CELLS: Space = {
    "cell": Categorical(["rnn", "gru", "convolution", "attention"]),
    "width": Ordinal([8, 16, 24, 32]),
    "layers": Integer(1, 2, when=Condition("cell", ["rnn", "gru", "attention"])),
    "kernel": Ordinal([3, 5, 7], when=Condition("cell", "convolution")),
    "heads": Ordinal([1, 2, 4], when=Condition("cell", "attention")),
    "dropout": Real(0.0, 0.5, when=Condition("cell", "attention")),
}
ADAPTIVE = ("adam", "sgd", "rmsprop")
EVERY = ("adam", "adamw", "nadam", "radam", "sgd", "rmsprop", "adagrad", "adadelta", "rprop")
SMALL = {"width": 32, "depth": 2, "batch_size": 32}

TASKS: dict[str, NetworkTask] = {
    # rows
    "rate-digits": NetworkTask(layers.perceptron, "digits", {"lr": RATE, "weight_decay": DECAY}, 6, fixed=SMALL),
    "optimizers-digits": NetworkTask(
        layers.perceptron, "digits", spaces.optimizers(EVERY), 5, "error", {**SMALL, "weight_decay": 1e-4}
    ),
    "activations-digits": NetworkTask(
        layers.perceptron,
        "digits",
        {"activation": LEVELS, "lr": RATE, "dropout": DROPOUT, "width": WIDTH, "depth": DEPTH},
        5,
        fixed={"batch_size": 64},
    ),
    "everything-digits": NetworkTask(
        layers.perceptron,
        "digits",
        {
            **spaces.optimizers(["adam", "sgd"]),
            **spaces.schedules(),
            "width": WIDTH,
            "batch_size": BATCH,
            "weight_decay": DECAY,
        },
        6,
        fixed={"depth": 2, "activation": "gelu"},
    ),
    "perceptron-cancer": NetworkTask(
        layers.perceptron,
        "cancer",
        {
            **spaces.optimizers(ADAPTIVE),
            "activation": FEW,
            "norm": CNN["norm"],
            "width": WIDTH,
            "depth": DEPTH,
            "dropout": DROPOUT,
            "label_smoothing": Real(0.0, 0.3),
        },
        8,
        fixed={"batch_size": 32},
    ),
    "perceptron-wine": NetworkTask(
        layers.perceptron,
        "wine",
        {"lr": RATE, "weight_decay": DECAY, "width": WIDTH, "dropout": DROPOUT, "patience": Integer(1, 20)},
        40,
        fixed={"batch_size": 32, "depth": 1},
    ),
    "stopping-diabetes": NetworkTask(
        layers.perceptron,
        "diabetes",
        {
            **spaces.optimizers(ADAPTIVE),
            "width": WIDTH,
            "depth": DEPTH,
            "dropout": DROPOUT,
            "patience": Integer(1, 10),
            "batch_size": BATCH,
        },
        20,
        "squared error",
    ),
    "athletes": NetworkTask(
        layers.perceptron,
        "athletes",
        {"lr": RATE, "weight_decay": DECAY, "width": WIDTH, "activation": FEW, "noise": Real(0.0, 1.0)},
        60,
        "squared error",
        {"batch_size": 14, "depth": 1},
    ),
    "schedules-friedman": NetworkTask(
        layers.perceptron,
        "friedman",
        {"lr": RATE, **spaces.schedules(), "batch_size": BATCH, "weight_decay": DECAY},
        10,
        "squared error",
        {"width": 48, "depth": 2},
    ),
    "robust-outliers": NetworkTask(
        layers.perceptron,
        "outliers",
        {
            "loss": Categorical(["squared", "absolute", "huber"]),
            "delta": Real(0.01, 10.0, log=True, when=Condition("loss", "huber")),
            "lr": RATE,
            "weight_decay": DECAY,
            "width": WIDTH,
            "clip": Real(0.01, 10.0, log=True),
        },
        10,
        "squared error",
        {"batch_size": 32},
    ),
    "losses-rare": NetworkTask(
        layers.perceptron,
        "rare",
        {
            "loss": Categorical(["plain", "weighted", "focal"]),
            "power": Real(0.0, 1.5, when=Condition("loss", "weighted")),
            "focus": Real(0.0, 5.0, when=Condition("loss", "focal")),
            **spaces.optimizers(["adam", "sgd"]),
            "width": WIDTH,
            "dropout": DROPOUT,
        },
        8,
        "balanced error",
        {"batch_size": 64},
    ),
    "descent-moons": NetworkTask(
        layers.perceptron,
        "moons",
        {"lr": Real(1e-4, 10.0, log=True), "momentum": Real(0.0, 0.99), "width": WIDTH, "batch_size": BATCH},
        8,
        fixed={"optimizer": "sgd"},
    ),
    "norms-spirals": NetworkTask(
        layers.perceptron,
        "spirals",
        {
            **spaces.optimizers(ADAPTIVE),
            "norm": CNN["norm"],
            "norm_momentum": CNN["norm_momentum"],
            "activation": FEW,
            "depth": DEPTH,
        },
        12,
        fixed={"width": 32, "batch_size": 64},
    ),
    "encodings-wave": NetworkTask(
        layers.Encoded,
        "wave",
        {
            "encoding": Categorical(["none", "fourier", "sine"]),
            "scale": Real(0.1, 100.0, log=True, when=Condition("encoding", "fourier")),
            "features": Integer(2, 64, log=True, when=Condition("encoding", "fourier")),
            "omega": Real(0.5, 100.0, log=True, when=Condition("encoding", "sine")),
            "lr": RATE,
            "width": WIDTH,
        },
        20,
        "squared error",
        {"batch_size": 64},
    ),
    "factors-ratings": NetworkTask(
        layers.Factors,
        "ratings",
        {
            "rank": Integer(1, 16),
            "initial": Real(1e-3, 1.0, log=True),
            "weight_decay": Real(1e-6, 10.0, log=True),
            **spaces.optimizers(["adamw", "sgd", "adagrad"]),
        },
        12,
        "squared error",
        {"batch_size": 64},
    ),
    "autoencoder-digits": NetworkTask(
        layers.Autoencoder,
        "digits_again",
        {
            "decoder": Categorical(["linear", "deep"]),
            "code": Integer(2, 24, log=True),
            "width": WIDTH,
            "activation": FEW,
            "dropout": DROPOUT,
            "lr": RATE,
        },
        8,
        "squared error",
        {"batch_size": 32},
    ),
    # images
    "convolution-digits": NetworkTask(
        layers.convolutional, "small_images", {**CNN, "lr": RATE, "weight_decay": DECAY}, 3, fixed={"batch_size": 64}
    ),
    "convolution-shapes": NetworkTask(
        layers.convolutional,
        "shapes",
        {**CNN, **spaces.optimizers(ADAPTIVE)},
        4,
        "error",
        {"batch_size": 32},
    ),
    # sequences
    "cells-chirps": NetworkTask(layers.Sequence, "chirps", {**CELLS, "lr": RATE}, 6, fixed={"batch_size": 64}),
    "cells-attractor": NetworkTask(
        layers.Sequence,
        "attractor",
        {**CELLS, **spaces.optimizers(["adam", "sgd"])},
        6,
        "squared error",
        {"batch_size": 64},
    ),
    "attention-recall": NetworkTask(
        layers.Sequence,
        "recall",
        {
            "width": Ordinal([8, 16, 24, 32]),
            "heads": Ordinal([1, 2, 4]),
            "dropout": Real(0.0, 0.5),
            "lr": RATE,
            "warmup": Real(0.0, 0.4),
            "beta2": Real(0.8, 0.9999),
            "weight_decay": DECAY,
        },
        5,
        fixed={"cell": "attention", "layers": 1, "batch_size": 32},
    ),
    "clipping-text": NetworkTask(
        layers.Sequence,
        "text",
        {
            "cell": Categorical(["rnn", "gru", "lstm"]),
            "forget_bias": Real(-1.0, 3.0, when=Condition("cell", "lstm")),
            "width": Ordinal([8, 16, 24, 32]),
            "lr": RATE,
            "clip": Real(0.01, 10.0, log=True),
            "beta2": Real(0.8, 0.9999),
        },
        8,
        fixed={"layers": 1, "batch_size": 64},
    ),
}


class NetworkRun(Problem):
    """A small network that is trained by torch, and its loss on the rows held out, minimised.

    A run takes some tenths of a second. A value depends on the configuration and the seed alone, on one machine and
    with one version of torch and scikit-learn; neighbouring configurations differ by luck, as networks do. Training
    that diverges gives a large loss, or NaN: a failed trial. The optimum is unknown.

    Args:
        name: one of `TASKS`.
        noisy: whether each evaluation has a seed of its own; else all have the same one.
        seed: of the first evaluation, >= 0.

    Raises:
        SettingError: for an unknown name, or a seed below 0.
        MissingPackage: without scikit-learn, for its data.

    Example:
        >>> problem = NetworkRun("rate-digits")
        >>> problem({"lr": 1e-2, "weight_decay": 1e-4}) < problem({"lr": 1e-5, "weight_decay": 1e-4})
        True
    """

    def __init__(self, name: str, noisy: bool = False, seed: int = 0):
        one_of(TASKS, name=name)
        one_of((True, False), noisy=noisy)
        whole(0, seed=seed)
        self.name, self.noisy, self.seed = name, noisy, seed
        self.task = TASKS[name]
        self.space = SearchSpace(dict(self.task.space))
        self.data = load(self.task.data)
        self._times: Counter[int] = Counter()

    def __call__(self, params: Params) -> float:
        """The loss on the rows held out. Raises PointError for a configuration outside the space."""
        if not self.noisy:
            return self.trained(params, self.seed)
        digest = self._digest(params)
        self._times[digest] += 1
        return self.trained(params, digest + 7919 * self.seed + self._times[digest])

    def true_value(self, params: Params) -> float:
        """The value; with noise the mean over four other seeds."""
        if not self.noisy:
            return self(params)
        return sum(self.trained(params, seed) for seed in range(TRUTH)) / TRUTH

    def _digest(self, params: Params) -> int:
        """A large number that belongs to the configuration."""
        point = self.space.encode([params])[0].numpy().tobytes()
        return int.from_bytes(sha256(self.name.encode() + point).digest()[:4], "big") + TRUTH

    @torch.inference_mode(mode=False)  # the caller may have disabled gradients
    @torch.enable_grad()
    def trained(self, params: Params, seed: int) -> float:
        """The loss on the rows held out, with this seed of the weights, the order of the rows and the dropout.

        No global random state is changed.
        """
        self.space.encode([params])  # checks names and bounds
        given = {**(self.task.fixed or {}), **params}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = self.task.network(given, self.data)
            return train(
                network, self.data, given, self.task.epochs, lambda: measured(network, self.data, self.task.measure)
            )


@torch.no_grad()
def measured(network: nn.Module, data: Split, measure: str) -> float:
    """A measure of a network on the rows held out."""
    outputs, y = network(data.held_x), data.held_y
    if measure == "squared error":
        return float(mse_loss(outputs, y))
    if measure == "log loss":
        return float(cross_entropy(outputs, y))
    wrong = (outputs.argmax(1) != y).float()
    if measure == "error":
        return float(wrong.mean())
    return float(torch.stack([wrong[y == each].mean() for each in y.unique()]).mean())
