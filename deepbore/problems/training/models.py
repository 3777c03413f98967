"""From a configuration to an estimator that is not yet trained."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from deepbore.problems.base import benchmark_package
from deepbore.space import Categorical, Condition, Integer, Ordinal, Params, Real

Parameter = Real | Integer | Ordinal | Categorical

SCALERS = {"standard": "StandardScaler", "minmax": "MinMaxScaler", "robust": "RobustScaler"}


class Model(Protocol):
    """A family of models."""

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """What can be tuned."""

    def build(self, params: Params) -> Any:
        """An estimator with `fit`, `predict` and, where classes have probabilities, `predict_proba`."""


@dataclass(frozen=True)
class Estimator:
    """An estimator of scikit-learn, whose arguments are the parameters.

    Two parameters are steps before it: `scaler`, one of `SCALERS` or "none", and `components`, of a principal component
    analysis.

    Args:
        path: where it is in scikit-learn, as "svm.SVC".
        parameters: what can be tuned, by the names of its arguments.
        fixed: its other arguments.
        arguments: makes its arguments of a configuration, where they are not the same.
    """

    path: str
    parameters: Mapping[str, Parameter]
    fixed: Params = field(default_factory=dict)
    arguments: Callable[[Params], Params] = dict

    def build(self, params: Params) -> Any:
        """The estimator, after its steps. Settings that do not go together fail here or when it is trained."""
        arguments = self.arguments(params)
        steps = _steps(arguments.pop("scaler", "none"), arguments.pop("components", None))
        estimator = _made(self.path, **self.fixed, **arguments)
        return benchmark_package("sklearn.pipeline", "scikit-learn").make_pipeline(*steps, estimator)


@dataclass(frozen=True)
class Choice:
    """A choice between models, whose parameters are active where theirs is chosen.

    Args:
        models: by name.
        shared: parameters that all have, as `scaler`.
    """

    models: Mapping[str, Estimator]
    shared: Mapping[str, Parameter] = field(default_factory=dict)

    @property
    def parameters(self) -> dict[str, Parameter]:
        """`model`, what all share, and the parameters of each model as "svm_C"."""
        found: dict[str, Parameter] = {"model": Categorical(list(self.models)), **self.shared}
        for name, model in self.models.items():
            for own, parameter in model.parameters.items():
                found[f"{name}_{own}"] = replace(parameter, when=_conditions(name, parameter.conditions))
        return found

    def build(self, params: Params) -> Any:
        """The estimator of the model that is chosen."""
        name = params["model"]
        own = {key.removeprefix(f"{name}_"): value for key, value in params.items() if key.startswith(f"{name}_")}
        return self.models[name].build({key: params[key] for key in self.shared} | own)


def _conditions(model: str, when: Sequence[Condition]) -> list[Condition]:
    """Active where the model is chosen and, as parents are active only there, too, where its own conditions hold."""
    return [Condition(f"{model}_{each.parent}", each.values) for each in when] or [Condition("model", model)]


def _steps(scaler: str, components: int | None) -> list[Any]:
    steps = [] if scaler == "none" else [_made(f"preprocessing.{SCALERS[scaler]}")]
    return (
        steps if components is None else [*steps, _made("decomposition.PCA", n_components=components, random_state=0)]
    )


def _made(path: str, **arguments: Any) -> Any:
    module, name = path.split(".")
    return getattr(benchmark_package(f"sklearn.{module}", "scikit-learn"), name)(**arguments)
