"""Sweeps of W&B read as spaces: `from_sweep` gives the space, `sweep_in` also what is fixed and what is measured.

Their package is not needed: a sweep is a dict, or a YAML file.
"""

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from deepbore.errors import SpaceError
from deepbore.validation import as_path

if TYPE_CHECKING:
    from deepbore.space import SearchSpace

METHODS = ("grid", "random", "bayes")
WIDE = 4.0  # standard deviations to each side, within which a normal distribution is searched


@dataclass(frozen=True)
class Sweep:
    """What a sweep of W&B says.

    Attributes:
        space: the declarations of its parameters, as `SearchSpace.from_dict` takes them; nested names are joined by
            dots.
        fixed: parameters with a single value.
        metric: what is measured; None where it does not say.
        direction: "minimize" or "maximize".
    """

    space: dict[str, dict[str, Any]]
    fixed: dict[str, Any] = field(default_factory=dict)
    metric: str | None = None
    direction: str = "minimize"


def from_sweep(sweep: Mapping[str, Any] | str | os.PathLike[str]) -> "SearchSpace":
    """The search space of a sweep of W&B.

    Numbers in ascending order are an `Ordinal`, other values a `Categorical`, whose probabilities are a prior. Uniform
    and logarithmic ranges are `Real` or `Integer`, also in steps (q). A normal distribution is a `Real` of four
    standard deviations to each side with that prior. Constants are left out: `sweep_in(sweep).fixed` has them.

    Args:
        sweep: the configuration, or the path of its YAML file.

    Raises:
        SpaceError: for what is no sweep, or a distribution without a counterpart, by name.

    Example:
        >>> from_sweep({"method": "bayes", "parameters": {"lr": {"min": 0.001, "max": 0.1}, "seed": {"value": 1}}})
        SearchSpace({'lr': Real(0.001, 0.1)})
    """
    from deepbore.space import SearchSpace  # torch

    return SearchSpace.from_dict(sweep_in(sweep).space)


def is_sweep(declared: Any) -> bool:
    """Whether plain data is a sweep of W&B, rather than the declaration of a space."""
    return isinstance(declared, Mapping) and isinstance(declared.get("parameters"), Mapping) and "method" in declared


def sweep_in(sweep: Mapping[str, Any] | str | os.PathLike[str]) -> Sweep:
    """What a sweep says, checked; see `from_sweep`."""
    told = sweep if isinstance(sweep, Mapping) else _read(sweep)
    if not isinstance(told, Mapping) or not isinstance(told.get("parameters"), Mapping):
        raise SpaceError(f"a sweep must have parameters, as W&B's sweep.yaml has, but got {told!r:.100}.")
    space: dict[str, dict[str, Any]] = {}
    fixed: dict[str, Any] = {}
    for name, declared in _flat(told["parameters"]):
        if "value" in declared or declared.get("distribution") == "constant":
            fixed[name] = declared.get("value")
        else:
            space[name] = _parameter(name, declared)
    if not space:
        raise SpaceError("a sweep must have a parameter that varies, but all are constant.")
    metric = told.get("metric") if isinstance(told.get("metric"), Mapping) else {}
    assert metric is not None
    goal = metric.get("goal", "minimize")
    if goal not in ("minimize", "maximize"):
        raise SpaceError(f"the goal of a sweep is minimize or maximize, but got {goal!r:.100}.")
    return Sweep(space, fixed, metric.get("name"), goal)


def _read(path: str | os.PathLike[str]) -> Any:
    import yaml

    try:
        return yaml.safe_load(as_path(path, "a sweep").read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise SpaceError(f"a sweep must be a YAML file, but {os.fspath(path)} can't be read: {error}") from None


def _flat(parameters: Mapping[str, Any], before: str = "") -> list[tuple[str, Mapping[str, Any]]]:
    """The parameters of all depths, by their dotted names."""
    found: list[tuple[str, Mapping[str, Any]]] = []
    for name, declared in parameters.items():
        if not isinstance(declared, Mapping):
            raise SpaceError(f"a parameter of a sweep must be a mapping, but {before}{name} is {declared!r:.100}.")
        if isinstance(nested := declared.get("parameters"), Mapping):
            found += _flat(nested, f"{before}{name}.")
        else:
            found.append((f"{before}{name}", declared))
    return found


def _parameter(name: str, declared: Mapping[str, Any]) -> dict[str, Any]:
    """The declaration of one parameter."""
    kind = declared.get("distribution") or _usual(declared)
    if kind not in KINDS:
        raise SpaceError(
            f"the distribution of {name!r} must be one of {', '.join(KINDS)}, but is {kind!r:.100}. Give min and "
            "max, or values."
        )
    try:
        return KINDS[kind](declared)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise SpaceError(f"{name!r} of a sweep, a {kind}, is not complete: {type(error).__name__}: {error}.") from None


def _usual(declared: Mapping[str, Any]) -> str:
    """The distribution of a parameter that names none, as W&B has it."""
    if "values" in declared:
        return "categorical"
    ends = [declared.get("min"), declared.get("max")]
    return "int_uniform" if all(isinstance(end, int) for end in ends) else "uniform"


def _choices(declared: Mapping[str, Any]) -> dict[str, Any]:
    values, weights = list(declared["values"]), declared.get("probabilities")
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    if numeric and weights is None and values == sorted(values):
        return {"type": "ordinal", "choices": values}
    return {"type": "categorical", "choices": values, **({"prior": list(weights)} if weights is not None else {})}


def _range(log: bool = False, whole: bool = False, in_steps: bool = False, exponents: bool = False) -> Any:
    """How a range is read.

    Args:
        log: whether its logarithm is uniform.
        whole: whether it has whole numbers only.
        in_steps: whether it has multiples of q.
        exponents: whether its ends are natural logarithms.
    """

    def declared_as(declared: Mapping[str, Any]) -> dict[str, Any]:
        low, high = declared["min"], declared["max"]
        if exponents:
            low, high = math.exp(low), math.exp(high)
        q = declared.get("q", 1) if in_steps else None
        if log and q not in (None, 1):
            raise ValueError(f"a log scale has no equal steps, but q={q}; give values")
        is_whole = whole or (log and q is not None)
        if is_whole:
            low, high = math.ceil(low), math.floor(high)
        if q is not None and not log:
            low, high = math.ceil(low / q) * q, math.floor(high / q) * q
        found: dict[str, Any] = {"type": "integer" if is_whole else "real", "low": low, "high": high, "log": log}
        return found | ({"step": q} if q is not None and not log else {})

    return declared_as


def _normal(declared: Mapping[str, Any]) -> dict[str, Any]:
    centre, spread = float(declared.get("mu", 0)), float(declared.get("sigma", 1))
    low, high = centre - WIDE * spread, centre + WIDE * spread
    return {"type": "real", "low": low, "high": high, "prior": {"centre": centre, "spread": spread}}


KINDS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "categorical": _choices,
    "categorical_w_probabilities": _choices,
    "uniform": _range(),
    "int_uniform": _range(whole=True),
    "q_uniform": _range(in_steps=True),
    "log_uniform": _range(log=True, exponents=True),
    "log_uniform_values": _range(log=True),
    "q_log_uniform": _range(log=True, in_steps=True, exponents=True),
    "q_log_uniform_values": _range(log=True, in_steps=True),
    "normal": _normal,
}
