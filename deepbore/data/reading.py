"""Records of trials, read off many rows of observations at once."""

import math
from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING

import torch

from deepbore.data.outcomes import Status
from deepbore.data.trial import Trial

if TYPE_CHECKING:
    from deepbore.data.view import ObservationsView


def trials_of(observations: "ObservationsView", rows: Sequence[int]) -> list[Trial]:
    """The records of some rows, in their order: what rows have in common, such as decoding, is done once.

    Args:
        observations: that they are of.
        rows: numbers of existing rows.
    """
    at = torch.tensor(rows, dtype=torch.long, device=observations.points.device)
    points, noise = observations.points[at], observations.noise
    columns = (
        observations.space.decode(points),
        observations.identities(points),
        [Status(status) for status in observations.status[at].tolist()],
        observations.to_user(observations.values[at].cpu().numpy(), slice(None)).tolist(),
        observations.constraints[at].tolist(),
        observations.budgets[at].tolist(),
        observations.tasks[at].tolist(),
        [math.nan] * len(rows) if noise is None else noise[at].tolist(),
    )
    found: dict[int, Trial] = {}
    for row, *told in zip(rows, *columns, strict=True):
        params, identity, status, values, constraints, budget, task, deviation = told
        of_task = observations.task_names[task - 1] if task else None
        known = tuple(values) if status is Status.COMPLETE else None
        found[row] = Trial(
            row,
            params,
            known[0] if known else None,
            status,
            known,
            tuple(constraints) if constraints and not math.isnan(constraints[0]) else None,
            _plain(observations, budget),
            of_task,
            deepcopy(observations.attributes_of(row)),  # a trial is a record: a change in it changes nothing here
            observations.reason_of(row),
            identity,
            _continued(observations, row, found),
            None if math.isnan(deviation) else deviation,
        )
    return list(found.values())


def _plain(observations: "ObservationsView", budget: float) -> float | None:
    """A budget as it was declared; None where there is none."""
    if math.isnan(budget):
        return None
    return budget if observations.budget is None else observations.budget.plain(budget)


def _continued(observations: "ObservationsView", row: int, known: dict[int, Trial]) -> Trial | None:
    """The trial that one goes on from; those read before are known."""
    if (before := observations.resumed.get(row)) is None:
        return None
    return known[before] if before in known else trials_of(observations, [before])[0]
