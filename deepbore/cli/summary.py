"""What a run has found, in a few lines. Light to import."""

import math
from collections.abc import Iterable
from typing import Protocol

from deepbore.data.outcome import Status
from deepbore.data.ranking import front
from deepbore.data.trial import Direction, Trial

FRONT = 10  # trials of several values that are shown


class Told(Protocol):
    """What a summary is made of: `Observations`, or the `Record` of a journal."""

    directions: tuple[Direction, ...]

    @property
    def status(self) -> Iterable[int]:
        """Of each trial."""

    @property
    def best(self) -> Trial | None:
        """The best feasible trial of a run with one value."""

    @property
    def n_left(self) -> float:
        """How many configurations are left; infinite where nobody knows."""

    def trial(self, row: int) -> Trial:
        """One of them."""


def summary(run: Told, optimum: float | None = None, recommended: Trial | None = None) -> str:
    """What a run has found, in a few lines.

    Args:
        run: its observations, or its record.
        optimum: the value that can be reached; None if it is not known.
        recommended: `study.recommended`, which is shown where it is another than the best trial; None to leave it out.
    """
    statuses = [int(code) for code in run.status]
    parts = [f"{len(statuses)} trials"]
    unfinished = (Status.FAILED, Status.PENDING)
    parts += [f"{n} {status.name.lower()}" for status in unfinished if (n := statuses.count(status))]
    if run.n_left == 0:
        parts.append("every configuration of the space")
    counts = ", ".join(parts)
    if len(run.directions) > 1:
        return "\n".join(_of_several(run, statuses, counts))
    best = run.best
    if best is None or best.value is None:
        return _no_value(run, statuses, counts)
    regret = "" if optimum is None else f", {abs(best.value - optimum):.3g} from the optimum"
    lines = [f"best value {best.value:.8g} in trial {best.id} ({counts}{regret})"]
    lines += _configuration(best)
    if recommended is not None and recommended.id != best.id:
        lines.append(f"recommended if values are noisy: trial {recommended.id}, value {recommended.value:.8g}")
        lines += _configuration(recommended)
    return "\n".join(lines)


def _of_several(run: Told, statuses: list[int], counts: str) -> list[str]:
    complete = (run.trial(row) for row, code in enumerate(statuses) if code == Status.COMPLETE)
    best = front(complete, run.directions)
    if not best:
        return [_no_value(run, statuses, counts)]
    some = "" if len(best) <= FRONT else ", of which some are shown"
    lines = [f"{len(best)} trials that no other beats in every value ({counts}){some}"]
    for trial in best[:: math.ceil(len(best) / FRONT)]:
        lines.append(f"trial {trial.id}: {', '.join(f'{value:.8g}' for value in trial.values or ())}")
        lines += _configuration(trial)
    return lines


def _no_value(run: Told, statuses: list[int], counts: str) -> str:
    """That nothing is the best yet, and whether that is for constraints."""
    own = (run.trial(row) for row, code in enumerate(statuses) if code == Status.COMPLETE)
    has_one = any(trial.task is None for trial in own)
    return f"no {'feasible ' if has_one else ''}value yet ({counts})"


def _configuration(trial: Trial) -> list[str]:
    return [f"  {name}: {value}" for name, value in trial.params.items()]
