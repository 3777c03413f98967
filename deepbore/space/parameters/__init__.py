"""What can be tuned: `Real`, `Integer`, `Ordinal` and `Categorical` parameters, each perhaps under a `Condition`.

A parameter lives in two worlds. *Native* values are what the objective sees (`1e-3`, `"relu"`). In a *point* each
parameter is one float64 number: numeric parameters their place in [0, 1] (after the log), others their level's index.
"""

from collections.abc import Mapping
from typing import Any

from deepbore.errors import SpaceError
from deepbore.space.condition import Condition
from deepbore.space.parameters.base import KINDS, Parameter
from deepbore.space.parameters.choice import Categorical, Ordinal
from deepbore.space.parameters.integer import Integer
from deepbore.space.parameters.readings import Reading
from deepbore.space.parameters.real import Real
from deepbore.space.parameters.scale import Scale

__all__ = [
    "Categorical",
    "Condition",
    "Integer",
    "Ordinal",
    "Parameter",
    "Reading",
    "Real",
    "Scale",
    "parameter_from_dict",
]


def parameter_from_dict(name: str, declared: Mapping[str, Any]) -> Parameter:
    """The parameter that `to_dict` describes (or the same written by hand in YAML).

    Raises:
        SpaceError: for an unknown type, a setting that is missing or one that the type does not have.
    """
    settings = dict(declared)
    kind = settings.pop("type", None)
    if kind is None:
        raise SpaceError(
            f"parameter {name!r} must be declared whole, as {{type: real, low: 0, high: 1}}, but has no type, only "
            f"{settings}."
        )
    if kind not in KINDS:
        raise SpaceError(f"parameter {name!r}: type must be one of {sorted(KINDS)}, but got {kind!r}.")
    try:
        parameter: Parameter = KINDS[kind](**settings)
        return parameter
    except TypeError as error:
        raise SpaceError(f"parameter {name!r} of type {kind!r} can't be made from {settings}: {error}.") from None
    except SpaceError as error:
        raise SpaceError(f"parameter {name!r}: {error}") from None
