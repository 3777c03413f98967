"""Observations as a pandas DataFrame."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from deepbore.data.observations import Observations
from deepbore.data.trial import Trial
from deepbore.errors import MissingPackage
from deepbore.space.structure import free_name

if TYPE_CHECKING:
    import pandas as pd


def own_column(name: str, parameters: Iterable[str]) -> str:
    """What a column of ours is called, such as "id": where a parameter has that name, ours is called "id_"."""
    return free_name(name, parameters)


def as_frame(observations: Observations) -> "pd.DataFrame":
    """One row a trial, with id, parameters, value and status.

    Several values are called value_0, value_1, ... Where some trial has them, there are also constraint_0, ...,
    budget, task, noise, reason, and a column attribute_NAME for each attribute. Where a parameter has such a name, ours
    ends in an underscore.

    Raises:
        MissingPackage: without pandas.
    """
    try:
        import pandas as pd
    except ImportError:
        raise MissingPackage("to_frame needs pandas: pip install 'deepbore[frames]'.") from None
    names = observations.space.names
    k = observations.k
    values = [own_column(name, names) for name in (["value"] if k == 1 else [f"value_{j}" for j in range(k)])]
    id_, status = own_column("id", names), own_column("status", names)
    rows = []
    for trial in observations.trials():
        told = dict(zip(values, trial.values or [None] * k, strict=True))
        rest = {own_column(name, names): each for name, each in _rest(trial).items()}
        rows.append({id_: trial.id, **trial.params, **told, status: trial.status.name.lower(), **rest})
    fixed = [id_, *names, *values, status]
    more = dict.fromkeys(name for row in rows for name in row if name not in fixed)
    return pd.DataFrame(rows, columns=[*fixed, *more])


def _rest(trial: Trial) -> dict[str, Any]:
    """What only some trials have."""
    constraints = {f"constraint_{j}": each for j, each in enumerate(trial.constraints or ())}
    attributes = {f"attribute_{name}": each for name, each in trial.attributes.items()}
    optional = {"budget": trial.budget, "task": trial.task, "noise": trial.noise, "reason": trial.reason}
    return {**constraints, **{name: each for name, each in optional.items() if each is not None}, **attributes}
