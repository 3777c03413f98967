"""Real training runs as objectives: a small network on scikit-learn's handwritten digits."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, linear, relu

from deepbore.data.outcome import Outcome
from deepbore.problems.base import Problem, benchmark_package
from deepbore.space import Categorical, Condition, Integer, Ordinal, Params, Real, SearchSpace
from deepbore.validation import whole

# --- fully connected layers ------------------------------------------------------------------------------------------

Layer = tuple[Tensor, Tensor]  # weight (out x in), bias (out)


def new_layers(sizes: list[int], generator: torch.Generator) -> list[Layer]:
    """New weights by He et al. (2015) and biases 0; torch.nn.Linear would draw from the global generator."""
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
    """Features (n x f) -> outputs (n x c) of the layers, with dropout if a generator is given."""
    for weight, bias in layers[:-1]:
        x = activation(linear(x, weight, bias))
        if generator is not None:
            x = x * (torch.rand(x.shape, generator=generator) >= dropout) / (1 - dropout)
    return linear(x, *layers[-1])


# --- problems --------------------------------------------------------------------------------------------------------

TRAINING, BATCH = 1200, 64  # images to train on, of 1797, and in a minibatch
PIXELS, BRIGHTEST, CLASSES = 64, 16, 10


class Digits(Problem):
    """Cross-entropy on held-out digits of a network trained with the given hyperparameters, minimised.

    The first 1200 of the 1797 images of 8 x 8 pixels are for training, the rest is held out. On one machine a value
    depends on (params, seed) alone. A run that diverges gives NaN or inf, a failed trial.

    Args:
        epochs: passes over the training images, >= 1; 10 of them take some tenths of a second.
        seed: of the initial weights, the order of the images and the dropout, >= 0.

    Raises:
        SettingError: for settings outside these ranges.
        MissingPackage: without scikit-learn.

    Example:
        >>> problem = Digits(epochs=1)
        >>> params = {"learning_rate": 0.01, "width": 32, "depth": 1, "dropout": 0.0, "weight_decay": 1e-6}
        >>> problem({**params, "optimizer": "adam"}) < problem({**params, "optimizer": "sgd", "momentum": 0.0})
        True
    """

    def __init__(self, epochs: int = 10, seed: int = 0):
        whole(1, epochs=epochs)
        whole(0, seed=seed)
        self.epochs, self.seed = epochs, seed
        self.space = SearchSpace(
            {
                "learning_rate": Real(1e-5, 1.0, log=True),
                "width": Integer(8, 256, log=True),
                "depth": Ordinal([1, 2, 3]),
                "dropout": Real(0.0, 0.8),
                "weight_decay": Real(1e-7, 1e-1, log=True),
                "optimizer": Categorical(["sgd", "adam"]),
                "momentum": Real(0.0, 0.99, when=Condition("optimizer", "sgd")),
            }
        )
        images, labels = benchmark_package("sklearn.datasets", "scikit-learn").load_digits(return_X_y=True)
        self._images = torch.from_numpy(images).float() / BRIGHTEST
        self.labels = torch.from_numpy(labels).long()

    def __call__(self, params: Params) -> float | Outcome:
        """The held-out cross-entropy of a configuration. Raises PointError for one outside the space."""
        return float(cross_entropy(self.held_out_scores(params), self.labels[TRAINING:]))

    @torch.inference_mode(mode=False)  # the caller may have disabled gradients
    @torch.enable_grad()
    def held_out_scores(self, params: Params) -> Tensor:
        """Logits of the held-out images (597 x 10) by a network trained with these hyperparameters."""
        self.space.encode([params])  # checks names and bounds
        generator = torch.Generator().manual_seed(self.seed)
        layers = new_layers([PIXELS] + [params["width"]] * params["depth"] + [CLASSES], generator)
        optimizer = _optimizer([weight for layer in layers for weight in layer], params)
        for _ in range(self.epochs):
            for batch in torch.split(torch.randperm(TRAINING, generator=generator), BATCH):
                logits = outputs(self._images[batch], layers, params["dropout"], generator)
                optimizer.zero_grad()
                cross_entropy(logits, self.labels[batch]).backward()
                optimizer.step()
        return outputs(self._images[TRAINING:], layers).detach()


class DigitsUnderLimit(Digits):
    """Accuracy on held-out digits, maximised, of a network with a limited number of parameters.

    As `Digits`, but feasible only with at most `limit` weights and biases: the constraint is their number / limit - 1.
    Larger networks are more accurate. A run that diverges has the accuracy of guessing.

    Args:
        limit: maximal number of weights and biases, >= 1000.
        epochs: as of `Digits`.
        seed: as of `Digits`.

    Raises:
        SettingError: for settings outside these ranges.
        MissingPackage: without scikit-learn.

    Example:
        >>> problem = DigitsUnderLimit(limit=3000, epochs=1)
        >>> params = {"learning_rate": 0.01, "width": 32, "depth": 1, "dropout": 0.0, "weight_decay": 1e-6}
        >>> outcome = problem({**params, "optimizer": "adam"})
        >>> outcome.values[0] > 0.5, [round(c, 3) for c in outcome.constraints]  # 65 * 32 + 33 * 10 = 2410 of 3000
        (True, [-0.197])
    """

    directions = ("maximize",)
    constraints = 1

    def __init__(self, limit: int = 5000, epochs: int = 10, seed: int = 0):
        whole(1000, limit=limit)
        super().__init__(epochs, seed)
        self.limit = limit

    def __call__(self, params: Params) -> Outcome:
        """Accuracy and constraint. Raises PointError for a configuration outside the space."""
        right = self.held_out_scores(params).argmax(-1) == self.labels[TRAINING:]
        return Outcome(float(right.double().mean()), constraints=[count_parameters(params) / self.limit - 1])


def count_parameters(params: Params) -> int:
    """The number of weights and biases of a configuration's network."""
    sizes = [PIXELS] + [params["width"]] * params["depth"] + [CLASSES]
    return sum((before + 1) * after for before, after in pairwise(sizes))


def _optimizer(weights: list[Tensor], params: dict[str, Any]) -> torch.optim.Optimizer:
    settings = {"lr": params["learning_rate"], "weight_decay": params["weight_decay"]}
    if params["optimizer"] == "adam":
        return torch.optim.Adam(weights, **settings)
    return torch.optim.SGD(weights, momentum=params["momentum"], **settings)
