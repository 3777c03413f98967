"""Observations as a pandas DataFrame."""

from typing import TYPE_CHECKING

from deepbore.data.observations import Observations
from deepbore.errors import MissingPackage

if TYPE_CHECKING:
    import pandas as pd


def as_frame(observations: Observations) -> "pd.DataFrame":
    """One row a trial, with id, parameters, value and status.

    Raises:
        MissingPackage: without pandas.
    """
    try:
        import pandas as pd  # noqa: PLC0415
    except ImportError:
        raise MissingPackage("to_frame needs pandas: pip install 'deepbore[frames]'.") from None
    trials = [observations.trial(row) for row in range(len(observations))]
    rows = [{"id": t.id, **t.params, "value": t.value, "status": t.status.name.lower()} for t in trials]
    return pd.DataFrame(rows, columns=["id", *observations.space.names, "value", "status"])
