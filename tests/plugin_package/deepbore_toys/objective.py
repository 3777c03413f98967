"""An objective with two values and a constraint. Light to import: jobs load it."""

from typing import Any

from deepbore import Outcome


def trade_off(params: dict[str, Any]) -> Outcome:
    """The second value rises where the first falls; what is turned by more than 180 degrees is infeasible."""
    x, turn = params["x"], params["turn"]
    return Outcome([x**2, 1 - (1 - x) ** 2], constraints=[turn - 180])
