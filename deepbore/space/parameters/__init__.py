"""Parameters of a space: `Real`, `Integer`, `Ordinal`, `Categorical` and `Library`, each possibly under a `Condition`.

A parameter has two representations. *Native* values are passed to the objective (`1e-3`, `"relu"`). In a *point* each
parameter is one float64 number: in [0, 1] for a numeric parameter (after the log), else the index of the choice.
"""

from collections.abc import Mapping
from typing import Any

from deepbore.errors import SpaceError
from deepbore.names import slip_in
from deepbore.space.condition import Condition
from deepbore.space.parameters.base import KINDS, Parameter, Reading
from deepbore.space.parameters.choice import Categorical, Ordinal
from deepbore.space.parameters.library import Library
from deepbore.space.parameters.numeric import Integer, Real
from deepbore.space.parameters.priors import Normal
from deepbore.space.parameters.scale import Scale

__all__ = [
    "Categorical",
    "Condition",
    "Integer",
    "Library",
    "Normal",
    "Ordinal",
    "Parameter",
    "Reading",
    "Real",
    "Scale",
    "parameter_from_dict",
]


def parameter_from_dict(name: str, declared: Mapping[str, Any]) -> Parameter:
    """The parameter declared by plain data, as from `Parameter.to_dict` or YAML.

    Args:
        name: name of the parameter, for messages.
        declared: its `type`, and the settings of this type.

    Raises:
        SpaceError: for an unknown type, a missing setting, or one that the type does not have.
    """
    settings = dict(declared)
    kind = settings.pop("type", None)
    if kind is None:
        raise SpaceError(
            f"parameter {name!r} must be declared whole, as {{type: real, low: 0, high: 1}}, but has no type, only "
            f"{settings}."
        )
    if kind not in KINDS:
        hint = slip_in(declared).rpartition("'. ")[2]
        raise SpaceError(f"parameter {name!r}: type must be one of {sorted(KINDS)}, but got {kind!r}. {hint}".rstrip())
    try:
        parameter: Parameter = KINDS[kind](**settings)
        return parameter
    except TypeError as error:
        raise SpaceError(f"parameter {name!r} of type {kind!r} can't be made from {settings}: {error}.") from None
    except SpaceError as error:
        raise SpaceError(f"parameter {name!r}: {error}") from None
