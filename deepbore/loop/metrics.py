"""`Metrics`: how steady the labels are and how good the forecasts, at a cost that does not grow with n."""

import math
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from deepbore.data.array_ranking import hypervolume
from deepbore.data.observations import Observations
from deepbore.data.outcome import Status
from deepbore.labels import LabelledBatch, changed_rows, front_rows

ROWS = 512  # the labels that are compared: all of them, or so many spread evenly
FORECASTS = 50  # the latest ones count
MEASURED = 4  # objectives up to which a hypervolume takes milliseconds
DESIGN = 10  # complete trials whose worst values it begins at


class Metrics:
    """What a run logs of its labels and its classifier.

    Attributes:
        label_flips: share of the rows told before the iteration before whose label has crossed 1/2 since then, as tau
            has moved (BORE section 3.1); NaN in the first iteration.
    """

    def __init__(self) -> None:
        self.label_flips = math.nan
        self._forecasts: dict[int, float] = {}  # row -> expected label, until it is told
        self._errors: deque[float] = deque(maxlen=FORECASTS)
        self._rows = torch.empty(0, dtype=torch.long)
        self._before = torch.empty(0, 1)

    @property
    def brier_score(self) -> float:
        """Mean squared error of the labels expected of the latest proposals; NaN before any is told.

        A proposal is forecast before it is evaluated, so this is no training error; 0 is perfect, and for labels of two
        classes always saying 1/2 gives 1/4.
        """
        return sum(self._errors) / len(self._errors) if self._errors else math.nan

    @property
    def known(self) -> dict[str, float]:
        """Those that have a value yet, by name."""
        named = {"label_flips": self.label_flips, "brier_score": self.brier_score}
        return {name: value for name, value in named.items() if not math.isnan(value)}

    @contextmanager
    def forecast(self, first: int, expected: Tensor | None) -> Iterator[None]:
        """Notes the labels (q) that the classifier expects of proposals, in rows from the first on; not if it fails."""
        before = dict(self._forecasts)
        self._forecasts.update(enumerate([] if expected is None else expected.tolist(), first))
        try:
            yield
        except BaseException:
            self._forecasts = before
            raise

    def relabelled(self, batch: LabelledBatch, observations: Observations) -> None:
        """Looks at the labels of an iteration, which are those of this run's rows."""
        status = observations.status
        self._count_flips(batch.z, status[observations.tasks == 0] if observations.task_names else status)
        told = [row for row in self._forecasts if observations.status[row] != Status.PENDING]
        for row in told:
            place = int((observations.tasks[:row] == 0).sum()) if observations.task_names else row
            self._errors.append((self._forecasts.pop(row) - float(batch.z[place].mean())) ** 2)

    def _count_flips(self, z: Tensor, status: Tensor) -> None:
        if len(self._rows):
            before = self._before.to(z)
            self.label_flips = float(changed_rows(before, z[self._rows.to(z.device)]).float().mean())
        rows = torch.arange(0, len(z), max(1, math.ceil(len(z) / ROWS)), device=z.device)
        self._rows = rows[status[rows] != Status.PENDING]
        self._before = z[self._rows]

    # --- plain data --------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """What it remembers, as tensors and plain data."""
        return {
            "label_flips": self.label_flips,
            "forecasts": dict(self._forecasts),
            "errors": list(self._errors),
            "rows": self._rows.cpu(),
            "before": self._before.cpu(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes up what `state_dict` gave."""
        self.label_flips, self._forecasts = state["label_flips"], dict(state["forecasts"])
        self._errors = deque(state["errors"], maxlen=FORECASTS)
        self._rows, self._before = state["rows"], state["before"]


def progress(observations: Observations) -> dict[str, float]:
    """How far a run has come: its trials, those that failed, and the best value, or the hypervolume."""
    best = observations.best if observations.k == 1 else None
    front = {} if observations.k == 1 else hypervolume_so_far(observations)
    return {
        "trials": float(len(observations)),
        "failed_trials": float(observations.n_failed),
        "best_value": math.nan if best is None or best.value is None else best.value,
        **front,
    }


def hypervolume_so_far(observations: Observations) -> dict[str, float]:
    """The volume that the front dominates, in the objectives' own units, and none for more than four objectives.

    It begins at the worst value of each objective among the first ten trials that have not failed, whatever comes
    later: what is told late can only move it outwards, so that the volume never falls.
    """
    first = ((observations.status != Status.FAILED) & (observations.tasks == 0)).nonzero().squeeze(-1)[:DESIGN]
    complete = first[observations.status[first] == Status.COMPLETE]
    if observations.k > MEASURED or not len(complete):
        return {}
    rows = front_rows(observations)
    front = observations.values[rows[observations.feasible[rows]]]
    start = observations.values[complete].max(0).values
    return {"hypervolume": hypervolume(front.cpu().numpy(), start.cpu().numpy())}


def exact(metrics: Mapping[str, float]) -> dict[str, Tensor]:
    """Metrics as Lightning keeps them: numbers it would round to float32, in which a large value falls by steps."""
    return {name: torch.as_tensor(value, dtype=torch.float64) for name, value in metrics.items()}
