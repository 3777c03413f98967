"""From a configuration to an untrained estimator: one of scikit-learn's, a choice of several, or a network by torch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, gelu, mse_loss, relu, softmax

from deepbore.problems.base import Array, benchmark_package
from deepbore.problems.benchmarks.digits import new_layers, outputs
from deepbore.space import Categorical, Condition, Integer, Ordinal, Params, Real

Tunable = Real | Integer | Ordinal | Categorical

SCALERS = {"standard": "StandardScaler", "minmax": "MinMaxScaler", "robust": "RobustScaler"}


class Model(Protocol):
    """A family of models with their search space."""

    @property
    def parameters(self) -> Mapping[str, Tunable]:
        """The tunable parameters, by name."""

    def build(self, params: Params) -> Any:
        """An estimator with `fit`, `predict` and, where classes have probabilities, `predict_proba`."""


@dataclass(frozen=True)
class Estimator:
    """An estimator of scikit-learn, whose arguments are the parameters.

    Two parameters are of preprocessing steps: `scaler`, one of `SCALERS` or "none", and `components`, of a principal
    component analysis.

    Args:
        path: its path in scikit-learn, as "svm.SVC".
        parameters: the tunable ones, by the names of its arguments.
        fixed: its other arguments.
        arguments: configuration -> its arguments, if these differ.
    """

    path: str
    parameters: Mapping[str, Tunable]
    fixed: Params = field(default_factory=dict)
    arguments: Callable[[Params], Params] = dict

    def build(self, params: Params) -> Any:
        """The pipeline of its steps and the estimator. Incompatible settings fail here or in training."""
        arguments = self.arguments(params)
        steps = _steps(arguments.pop("scaler", "none"), arguments.pop("components", None))
        estimator = _made(self.path, **self.fixed, **arguments)
        return benchmark_package("sklearn.pipeline", "scikit-learn").make_pipeline(*steps, estimator)


@dataclass(frozen=True)
class Choice:
    """A choice between models; the parameters of each are active if it is chosen.

    Args:
        models: by name.
        shared: parameters of all models, as `scaler`.
    """

    models: Mapping[str, Estimator]
    shared: Mapping[str, Tunable] = field(default_factory=dict)

    @property
    def parameters(self) -> dict[str, Tunable]:
        """`model`, the shared parameters, and the parameters of each model as "svm_C"."""
        found: dict[str, Tunable] = {"model": Categorical(list(self.models)), **self.shared}
        for name, model in self.models.items():
            for own, parameter in model.parameters.items():
                found[f"{name}_{own}"] = replace(parameter, when=_conditions(name, parameter.conditions))
        return found

    def build(self, params: Params) -> Any:
        """The estimator of the chosen model."""
        name = params["model"]
        own = {key.removeprefix(f"{name}_"): value for key, value in params.items() if key.startswith(f"{name}_")}
        return self.models[name].build({key: params[key] for key in self.shared} | own)


def _conditions(model: str, when: Sequence[Condition]) -> list[Condition]:
    """Conditions of a model's parameter within the choice; its own imply the model, as their parents depend on it."""
    return [Condition(f"{model}_{each.parent}", each.values) for each in when] or [Condition("model", model)]


def _steps(scaler: str, components: int | None) -> list[Any]:
    steps = [] if scaler == "none" else [_made(f"preprocessing.{SCALERS[scaler]}")]
    return (
        steps if components is None else [*steps, _made("decomposition.PCA", n_components=components, random_state=0)]
    )


def _made(path: str, **arguments: Any) -> Any:
    module, name = path.split(".")
    return getattr(benchmark_package(f"sklearn.{module}", "scikit-learn"), name)(**arguments)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": relu, "tanh": torch.tanh, "gelu": gelu}
EPOCHS, SEED = 10, 0


class Network:
    """A fully connected network on standardised features, trained for 10 epochs, with scikit-learn's interface.

    Its weights depend on the data and the configuration alone: no global random state is read or changed. Diverged
    training gives NaN predictions.

    Args:
        params: a configuration of `NETWORK`.
        is_classifier: whether targets are classes 0, 1, ... or numbers.
    """

    def __init__(self, params: Params, is_classifier: bool):
        self.params, self.is_classifier = params, is_classifier

    @torch.inference_mode(mode=False)  # the caller may have disabled gradients
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
    """Standardisation by the mean and the standard deviation of given rows, column by column."""

    def __init__(self, rows: Array):
        self.mean, std = rows.mean(0), rows.std(0)
        self.std = np.where(std > 0, std, 1.0)

    def __call__(self, rows: Array) -> Array:
        return np.asarray((rows - self.mean) / self.std)

    def inverse(self, rows: Array) -> Array:
        """Standardised rows in their own units."""
        return np.asarray(rows * self.std + self.mean)


class NetworkModel:
    """The family of `Network`s with their search space.

    Args:
        is_classifier: whether targets are classes.
    """

    def __init__(self, is_classifier: bool):
        self.is_classifier = is_classifier
        smoothing: dict[str, Tunable] = {"label_smoothing": Real(0.0, 0.3)} if is_classifier else {}
        self.parameters: dict[str, Tunable] = NETWORK | smoothing

    def build(self, params: Params) -> Network:
        """An untrained network."""
        return Network(params, self.is_classifier)


NETWORK: dict[str, Tunable] = {
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
