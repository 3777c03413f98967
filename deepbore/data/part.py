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
    complete, feasible = (part.status == Status.COMPLETE).cpu().numpy(), part.feasible.cpu().numpy()
    first = part.values[:, 0].cpu().numpy()
    known = Tally(n_asked=len(rows)).after_adding(0, np.where(complete, first, np.nan), feasible, None)
    status = part.status.cpu().numpy()
    n_failed, pending = int((status == Status.FAILED).sum()), np.flatnonzero(status == Status.PENDING)
    part._tally = replace(known, n_failed=n_failed, pending=pending, n_beaten=n_beaten)
    return part
