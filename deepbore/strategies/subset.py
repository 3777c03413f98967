"""`Subset`: some rows of a run, graded among themselves."""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from deepbore.data.array_ranking import threshold
from deepbore.data.observations import Observations
from deepbore.labels import LabelledBatch
from deepbore.labels.threshold import ThresholdFamily

CONSIDERED = 1000  # best rows, and newest rows, that are considered


@dataclass(frozen=True)
class Subset:
    """Some rows, graded among themselves.

    Attributes:
        batch: the rows.
        ranked: their numbers, best first, failures last.
    """

    batch: LabelledBatch
    ranked: Tensor


def considered_rows(batch: LabelledBatch, observations: Observations) -> Tensor:
    """The best and the newest rows that are learned, by number: so many that their cost does not grow with n.

    Args:
        batch: n rows.
        observations: the same rows, and trials asked for since then.
    """
    newest = torch.arange(max(0, len(batch) - CONSIDERED), len(batch), device=batch.points.device)
    best = observations.best_rows(CONSIDERED).to(newest)
    rows: Tensor = torch.cat([best[best < len(batch)], newest]).unique()  # newer rows have no label yet
    return rows[batch.learned[rows]]


def graded_alone(batch: LabelledBatch, rows: Tensor, values: Tensor, labels: ThresholdFamily) -> Subset:
    """Some rows, graded among themselves.

    Args:
        batch: n rows; their labels are not used.
        rows: k numbers.
        values: their values, k, at least one of them not NaN.
        labels: the labelling of the run.
    """
    ranked = values[~values.isnan()].sort().values.cpu().numpy()
    z, _ = labels.label(values, ranked, threshold(ranked, labels.proportion(len(ranked))))
    order = values.nan_to_num(nan=math.inf).argsort(stable=True)
    return Subset(replace(batch.take(rows), z=z[:, None], best=1.0), rows[order])
