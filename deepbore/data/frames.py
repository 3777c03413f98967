"""Observations as a pandas DataFrame."""

from typing import TYPE_CHECKING, Any

from deepbore.data.observations import Observations
from deepbore.data.trial import Trial
from deepbore.errors import MissingPackage

if TYPE_CHECKING:
    import pandas as pd


def as_frame(observations: Observations) -> "pd.DataFrame":
    """One row a trial, with id, parameters, value and status.

    Several values are called value_0, value_1, ... Where some trial has them, there are also constraint_0, ...,
    budget, task, noise, reason, and a column attribute_NAME for each attribute.

    Raises:
        MissingPackage: without pandas.
    """
    try:
        import pandas as pd
    except ImportError:
        raise MissingPackage("to_frame needs pandas: pip install 'deepbore[frames]'.") from None
    trials = [observations.trial(row) for row in range(len(observations))]
    values = ["value"] if observations.k == 1 else [f"value_{j}" for j in range(observations.k)]
    told = [dict(zip(values, t.values or [None] * observations.k, strict=True)) for t in trials]
    rows = [
        {"id": t.id, **t.params, **each, "status": t.status.name.lower(), **_rest(t)}
        for t, each in zip(trials, told, strict=True)
    ]
    fixed = ["id", *observations.space.names, *values, "status"]
    more = dict.fromkeys(name for row in rows for name in row if name not in fixed)
    return pd.DataFrame(rows, columns=[*fixed, *more])


def _rest(trial: Trial) -> dict[str, Any]:
    """What only some trials have."""
    constraints = {f"constraint_{j}": each for j, each in enumerate(trial.constraints or ())}
    attributes = {f"attribute_{name}": each for name, each in trial.attributes.items()}
    optional = {"budget": trial.budget, "task": trial.task, "noise": trial.noise, "reason": trial.reason}
    return {**constraints, **{name: each for name, each in optional.items() if each is not None}, **attributes}
