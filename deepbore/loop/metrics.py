"""`Metrics`: the stability of labels and the quality of predictions, at a cost that does not grow with n."""

import math
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from deepbore.compute.numerics import calibration_error
from deepbore.data.array_ranking import hypervolume
from deepbore.data.observations import Observations
from deepbore.data.outcome import Status
from deepbore.labels import LabelledBatch, changed_rows, front_rows

ROWS = 512  # labels that are compared, evenly spaced if there are more
FORECASTS = 50  # latest predictions that are evaluated
ENOUGH = 10  # of them, from which calibration and ranking are measured
BINS = 5  # of these predictions
MEASURED = 4  # objectives up to which the hypervolume takes milliseconds
DESIGN = 10  # first trials, whose worst values are the reference point of the hypervolume


class Metrics:
    """Logged metrics of the labels and the classifier of a run.

    Attributes:
        label_flips: the share of rows, complete before the previous iteration, whose label has crossed 1/2 since then
            because tau has changed (BORE section 3.1); NaN in the first iteration.
    """

    def __init__(self) -> None:
        self.label_flips = math.nan
        self._forecasts: dict[int, float] = {}  # row -> predicted label, until it is complete
        self._errors: deque[float] = deque(maxlen=FORECASTS)
        self._pairs: deque[tuple[float, float]] = deque(maxlen=FORECASTS)  # predicted and actual labels
        self._rows = torch.empty(0, dtype=torch.long)
        self._before = torch.empty(0, 1)

    @property
    def brier_score(self) -> float:
        """Mean squared error of the labels predicted for the latest proposals; NaN before the first outcome.

        Predictions are made before the evaluation, so this is not a training error. 0 is perfect, and 1/4 is the score
        of predicting 1/2 for labels of two classes.
        """
        return sum(self._errors) / len(self._errors) if self._errors else math.nan

    @property
    def forecasts(self) -> tuple[Tensor, Tensor]:
        """The labels predicted for the latest n <= 50 proposals, before they were evaluated, and those that came."""
        expected, label = torch.tensor(list(self._pairs), dtype=torch.float64).reshape(-1, 2).T
        return expected.clamp(0, 1), label

    @property
    def of_forecasts(self) -> dict[str, float]:
        """Calibration error and AUROC of the latest predictions, each made before its trial was evaluated.

        For the AUROC labels >= 1/2 are class 1; the calibration error compares with the labels themselves. Empty for
        fewer than ten predictions; without both classes there is no AUROC.
        """
        expected, label = self.forecasts
        if len(label) < ENOUGH:
            return {}
        from torchmetrics.functional.classification import binary_auroc  # takes seconds

        good = (label >= 0.5).long()
        found = {"forecast_calibration_error": float(calibration_error(expected, label, BINS))}
        is_both = bool(good.any()) and not bool(good.all())
        return {**found, **({"forecast_auroc": float(binary_auroc(expected, good))} if is_both else {})}

    @property
    def known(self) -> dict[str, float]:
        """The metrics that are not NaN, by name."""
        named = {"label_flips": self.label_flips, "brier_score": self.brier_score, **self.of_forecasts}
        return {name: value for name, value in named.items() if not math.isnan(value)}

    @contextmanager
    def forecast(self, first: int, expected: Tensor | None) -> Iterator[None]:
        """A context that records the labels predicted for q proposals, in rows from `first` on, unless it fails."""
        before = dict(self._forecasts)
        self._forecasts.update(enumerate([] if expected is None else expected.tolist(), first))
        try:
            yield
        except BaseException:
            self._forecasts = before
            raise

    def relabelled(self, batch: LabelledBatch, observations: Observations) -> None:
        """Updates the metrics with the labels of an iteration (rows of this run only)."""
        own = observations.columns.own_rows
        self._count_flips(batch.z, observations.status[own])
        for row in [row for row in self._forecasts if observations.status[row] != Status.PENDING]:
            expected, place = self._forecasts.pop(row), int(torch.searchsorted(own, row))
            if observations.status[row] != Status.WITHDRAWN:
                label = float(batch.z[place].mean())
                self._errors.append((expected - label) ** 2)
                self._pairs.append((expected, label))

    def _count_flips(self, z: Tensor, status: Tensor) -> None:
        kept = self._rows.to(z.device) < len(z)  # fewer, where trials were withdrawn
        if bool(kept.any()):
            rows, before = self._rows.to(z.device)[kept], self._before.to(z)[kept]
            self.label_flips = float(changed_rows(before, z[rows]).float().mean())
        rows = torch.arange(0, len(z), max(1, math.ceil(len(z) / ROWS)), device=z.device)
        self._rows = rows[status[rows] != Status.PENDING]
        self._before = z[self._rows]

    # --- plain data --------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The state, as tensors and plain data."""
        return {
            "label_flips": self.label_flips,
            "forecasts": dict(self._forecasts),
            "errors": list(self._errors),
            "pairs": list(self._pairs),
            "rows": self._rows.cpu(),
            "before": self._before.cpu(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores what `state_dict` returned."""
        self.label_flips, self._forecasts = state["label_flips"], dict(state["forecasts"])
        self._errors = deque(state["errors"], maxlen=FORECASTS)
        self._pairs = deque(map(tuple, state.get("pairs", ())), maxlen=FORECASTS)  # missing in version 0.3
        self._rows, self._before = state["rows"], state["before"]


def progress(observations: Observations) -> dict[str, float]:
    """The progress of a run: numbers of trials and failures, and the best value or the hypervolume."""
    best = observations.best if observations.k == 1 else None
    front = {} if observations.k == 1 else hypervolume_so_far(observations)
    return {
        "trials": float(len(observations)),
        "failed_trials": float(observations.ledger.statistics.n_failed),
        "best_value": math.nan if best is None or best.value is None else best.value,
        **front,
    }


def hypervolume_so_far(observations: Observations) -> dict[str, float]:
    """The volume that the front dominates, in the units of the objectives; empty for more than four objectives.

    The reference point is the worst value of each objective among the first ten trials that have not failed. It does
    not depend on later trials, and late outcomes of these ten can only move it outwards, so the volume never falls
    unless trials are withdrawn or corrected.
    """
    own = observations.columns.own_rows
    first = own[observations.status[own] != Status.FAILED][:DESIGN]
    complete = first[observations.status[first] == Status.COMPLETE]
    if observations.k > MEASURED or not len(complete):
        return {}
    rows = front_rows(observations)
    front = observations.values[rows[observations.feasible[rows]]]
    start = observations.values[complete].max(0).values
    return {"hypervolume": hypervolume(front.cpu().numpy(), start.cpu().numpy())}


def exact(metrics: Mapping[str, float]) -> dict[str, Tensor]:
    """Metrics as float64 tensors: Lightning would round numbers to float32."""
    return {name: torch.as_tensor(value, dtype=torch.float64) for name, value in metrics.items()}
