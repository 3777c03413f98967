"""`Translation`: from what the classifier says back to values in the user's units."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepbore.data.outcome import Status
from deepbore.data.trial import sign_of
from deepbore.plots.predictions import labels_of, values_of

if TYPE_CHECKING:
    from deepbore.study import Study

LEVELS = 6  # different labels from which they tell values apart
BY_DEFINITION = (
    "A prediction is the value whose label is the expected label: labels are led back to values as the labelling has "
    "made them, between the trials by a straight line."
)
BY_CALIBRATION = (
    "The labels do not tell values apart, so predictions are calibrated: an isotonic regression, on trials that the "
    "classifier had not seen, from what it says to the rank of the value."
)


@dataclass(frozen=True)
class Translation:
    """A monotone map from pi to values.

    Attributes:
        pi: m knots, ascending.
        values: those of the knots, in the user's sign.
        says: where it comes from.
    """

    pi: np.ndarray
    values: np.ndarray
    says: str

    def __call__(self, pi: np.ndarray) -> np.ndarray:
        """Predicted values, the same shape; beyond the knots those at the ends."""
        found: np.ndarray = np.interp(pi, self.pi, self.values)
        return found

    @classmethod
    def of(cls, study: "Study", unseen: np.ndarray | None = None) -> "Translation | None":
        """The map of a study: by the labels' definition where they tell values apart, else by calibration.

        Args:
            study: whose labels are read.
            unseen: pi of trials by a classifier that had not seen them, NaN elsewhere (n); see `held_out`.

        Returns:
            None for several objectives, or where there is nothing to go by.
        """
        if study.observations.k > 1:
            return None
        return by_definition(study) or (None if unseen is None else by_calibration(study, unseen))


def by_definition(study: "Study") -> Translation | None:
    """The map along the trials' own labels and values; None if these do not determine it.

    Labels are of all values, feasible or not; where those of feasible trials alone follow their values, these count.
    """
    values, label = values_of(study), labels_of(study).z.mean(-1).cpu().double().numpy()
    own, feasible = study.observations.tasks == 0, study.observations.feasible
    sign = sign_of(study.observations.direction)
    known = [np.isfinite(values) & own.cpu().numpy(), (feasible & own).cpu().numpy()]
    return next((found for rows in known if (found := _along(sign * values[rows], label[rows], sign))), None)


def _along(values: np.ndarray, label: np.ndarray, sign: float) -> Translation | None:
    """The map along values (n, to minimise) and labels (n); None if one does not determine the other."""
    order = np.lexsort((-label, values))  # the best first
    y, z = values[order], label[order]
    levels = np.unique(z)
    if len(levels) < LEVELS or (np.diff(z) > 1e-9).any():
        return None
    middles = np.array([np.median(y[z == level]) for level in levels])
    return Translation(levels, sign * middles, BY_DEFINITION)


def by_calibration(study: "Study", unseen: np.ndarray) -> Translation | None:
    """The map that orders unseen trials best; None if there are fewer than ten of them.

    Failures rank behind all others.
    """
    finished = (study.observations.status != Status.PENDING).cpu().numpy()
    known = finished & np.isfinite(unseen) & (study.observations.tasks == 0).cpu().numpy()
    sign = sign_of(study.observations.direction)
    y = np.where(np.isnan(values_of(study)), np.inf, sign * values_of(study))[known]
    ranked = np.sort(y[np.isfinite(y)])
    if len(y) < 10 or len(ranked) < 2:
        return None
    rank = np.minimum(np.searchsorted(ranked, y), len(ranked) - 1).astype(float)
    order = np.argsort(unseen[known], kind="stable")
    pi, fitted = unseen[known][order], -isotonic(-rank[order])  # the greater pi, the better the rank
    knots = np.unique(pi)
    at = np.array([fitted[pi == knot].mean() for knot in knots])
    return Translation(knots, sign * np.interp(at, np.arange(len(ranked)), ranked), BY_CALIBRATION)


def isotonic(y: np.ndarray) -> np.ndarray:
    """The non-decreasing sequence nearest to y by least squares: neighbours that are out of order are pooled.

    Example:
        >>> isotonic(np.array([1.0, 3.0, 2.0, 4.0])).tolist()
        [1.0, 2.5, 2.5, 4.0]
    """
    blocks: list[tuple[float, int]] = []  # mean and size
    for value in y:
        mean, size = float(value), 1
        while blocks and blocks[-1][0] > mean:
            before, count = blocks.pop()
            mean, size = (before * count + mean * size) / (count + size), count + size
        blocks.append((mean, size))
    return np.repeat([mean for mean, _ in blocks], [size for _, size in blocks])
