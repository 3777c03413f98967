"""`part_of`: some rows of observations as observations of their own."""

from dataclasses import replace

import numpy as np
from torch import Tensor

from deepbore.data.observations import Observations
from deepbore.data.outcomes import Status
from deepbore.data.repeats import regrouped
from deepbore.data.tally import Tally


def part_of(observations: Observations, rows: Tensor, n_beaten: int = 0) -> Observations:
    """A copy of some rows, to be labelled by themselves. It keeps no journal, and nobody proposes from it.

    Args:
        observations: the whole.
        rows: numbers of m rows, all of this run or all of one earlier task.
        n_beaten: how many trials outside the part count as its worst one does when a threshold is found.
    """
    part = Observations(observations.space, observations.directions)
    part._rows = observations._rows.take(rows)
    part.tasks.zero_()
    part.first_rows.copy_(regrouped(part.first_rows))
    status, feasible, first = (each.cpu().numpy() for each in (part.status, part.feasible, part.values[:, 0]))
    values = np.where(status == Status.COMPLETE, first, np.nan)
    known = Tally(n_asked=len(rows)).after_adding(0, values, feasible, None)
    n_failed, pending = int((status == Status.FAILED).sum()), np.flatnonzero(status == Status.PENDING)
    part._tally = replace(known, n_failed=n_failed, pending=pending, n_beaten=n_beaten)
    return part
