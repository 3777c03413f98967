"""What there is to read of a study: its trials, the best among them, and a line about it."""

from deepbore.data.observations import Observations, Trial
from deepbore.data.reading import trials_of
from deepbore.data.record import in_order, may_be_best
from deepbore.labels import front_rows


def pareto_front(observations: Observations) -> list[Trial]:
    """The feasible trials that are not dominated, in the order of the first objective; of equal values the first."""
    if observations.k == 1:
        return [] if observations.best is None else [observations.best]
    trials = trials_of(observations, front_rows(observations).tolist())
    return list(in_order(filter(may_be_best, trials), observations.directions).values())


def pending(observations: Observations) -> list[Trial]:
    """The trials without an outcome, in the order of asking."""
    return trials_of(observations, observations.pending_rows.tolist())


def in_brief(observations: Observations) -> str:
    """How many trials there are, and the best value."""
    counted = {"pending": len(observations.pending_rows), "failed": observations.n_failed}
    parts = [f"{len(observations)} trials", *(f"{n} {status}" for status, n in counted.items() if n)]
    best = observations.best if observations.k == 1 else None
    return f"{', '.join(parts)}{'' if best is None else f', best {best.value:.6g}'}"
