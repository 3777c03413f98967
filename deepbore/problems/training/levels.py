"""Ranges as grids of levels, as tables of training runs have them."""

from typing import TypeVar

import torch

from deepbore.space import Ordinal, Parameter

Kind = TypeVar("Kind", bound=Parameter)

DIGITS = 6  # of the levels of real numbers


def on_levels(parameter: Kind, count: int) -> Kind | Ordinal:
    """A range as levels from end to end, evenly spaced on its own scale; what has choices stays as it is.

    Args:
        parameter: of a space.
        count: how many levels, >= 2; of few whole numbers there are fewer.

    Example:
        >>> from deepbore import Integer
        >>> on_levels(Integer(1, 100, log=True), 3)
        Ordinal(choices=(1, 10, 100), when=None)
    """
    if not parameter.is_numeric:
        return parameter
    spaced = parameter.decode(torch.linspace(0, parameter.upper, count, dtype=torch.float64))
    values = [value if isinstance(value, int) else float(f"{value:.{DIGITS}g}") for value in spaced]
    return Ordinal(list(dict.fromkeys(values)), when=parameter.when)
