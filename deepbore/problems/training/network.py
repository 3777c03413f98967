"""A network by torch, used like scikit-learn's estimators."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, gelu, mse_loss, relu, softmax

from deepbore.problems.base import Array
from deepbore.problems.layers import new_layers, outputs
from deepbore.problems.training.models import Parameter
from deepbore.space import Categorical, Condition, Integer, Ordinal, Params, Real

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": relu, "tanh": torch.tanh, "gelu": gelu}
EPOCHS, SEED = 10, 0


class Network:
    """Fully connected layers on standardised features, trained for 10 epochs.

    Its weights depend on the data and the configuration alone: no global random state is read or changed. Training that
    diverges gives predictions that are NaN.

    Args:
        params: a configuration of `NETWORK`.
        is_classifier: whether targets are classes 0, 1, ...; else they are numbers.
    """

    def __init__(self, params: Params, is_classifier: bool):
        self.params, self.is_classifier = params, is_classifier

    @torch.inference_mode(mode=False)  # a loop that calls this may have switched gradients off
    @torch.enable_grad()
    def fit(self, x: Array, y: Array) -> "Network":
        """Trains on features (n x f) and targets (n)."""
        self.classes_ = np.unique(y)
        self._features, self._targets = Scale(x), Scale(y)
        inputs = _tensor(self._features(x))
        goal = torch.from_numpy(y).long() if self.is_classifier else _tensor(self._targets(y))
        generator = torch.Generator().manual_seed(SEED)
        widths = [self.params["width"]] * self.params["depth"]
        self._layers = new_layers([x.shape[1], *widths, len(self.classes_) if self.is_classifier else 1], generator)
        optimizer = _optimizer([weight for layer in self._layers for weight in layer], self.params)
        for _ in range(EPOCHS):
            for rows in torch.split(torch.randperm(len(x), generator=generator), self.params["batch_size"]):
                optimizer.zero_grad()
                self._loss(self._outputs(inputs[rows], generator), goal[rows]).backward()
                optimizer.step()
        return self

    def predict(self, x: Array) -> Array:
        """The most probable class, or the expected target, of each row (n)."""
        outputs = self._held_out(x)
        return outputs.argmax(1) if self.is_classifier else self._targets.inverse(outputs[:, 0])

    def predict_proba(self, x: Array) -> Array:
        """Probabilities of the classes (n x c)."""
        return softmax(torch.from_numpy(self._held_out(x)), 1).numpy()

    @torch.no_grad()
    def _held_out(self, x: Array) -> Array:
        return self._outputs(_tensor(self._features(x))).double().numpy()

    def _outputs(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Features (n x f) -> outputs (n x c), with dropout where a generator is given."""
        activation = ACTIVATIONS[self.params["activation"]]
        return outputs(x, self._layers, self.params["dropout"], generator, activation)

    def _loss(self, outputs: Tensor, goal: Tensor) -> Tensor:
        if self.is_classifier:
            return cross_entropy(outputs, goal, label_smoothing=self.params["label_smoothing"])
        return mse_loss(outputs[:, 0], goal)


class Scale:
    """Subtracts the mean and divides by the standard deviation of the rows it is made from, column by column."""

    def __init__(self, rows: Array):
        self.mean, std = rows.mean(0), rows.std(0)
        self.std = np.where(std > 0, std, 1.0)

    def __call__(self, rows: Array) -> Array:
        return np.asarray((rows - self.mean) / self.std)

    def inverse(self, rows: Array) -> Array:
        """Standardised rows in their own units again."""
        return np.asarray(rows * self.std + self.mean)


class NetworkModel:
    """The family of `Network`.

    Args:
        is_classifier: whether targets are classes.
    """

    def __init__(self, is_classifier: bool):
        self.is_classifier = is_classifier
        smoothing: dict[str, Parameter] = {"label_smoothing": Real(0.0, 0.3)} if is_classifier else {}
        self.parameters: dict[str, Parameter] = NETWORK | smoothing

    def build(self, params: Params) -> Network:
        """A network that is not yet trained."""
        return Network(params, self.is_classifier)


NETWORK: dict[str, Parameter] = {
    "learning_rate": Real(1e-4, 1.0, log=True),
    "width": Integer(4, 128, log=True),
    "depth": Ordinal([1, 2, 3]),
    "activation": Categorical(list(ACTIVATIONS)),
    "batch_size": Ordinal([32, 64, 128, 256]),
    "dropout": Real(0.0, 0.8),
    "weight_decay": Real(1e-6, 1e-1, log=True),
    "optimizer": Categorical(["sgd", "adam", "rmsprop"]),
    "momentum": Real(0.0, 0.99, when=Condition("optimizer", ["sgd", "rmsprop"])),
}


def _tensor(rows: Array) -> Tensor:
    return torch.from_numpy(rows).float()


def _optimizer(weights: list[Tensor], params: Params) -> torch.optim.Optimizer:
    settings: dict[str, Any] = {"lr": params["learning_rate"], "weight_decay": params["weight_decay"]}
    if params["optimizer"] == "adam":
        return torch.optim.Adam(weights, **settings)
    if params["optimizer"] == "rmsprop":
        return torch.optim.RMSprop(weights, momentum=params["momentum"], **settings)
    return torch.optim.SGD(weights, momentum=params["momentum"], **settings)
