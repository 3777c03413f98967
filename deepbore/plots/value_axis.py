"""The axis of values, chosen by the data: logarithmic where the spread asks for it, and cut where outliers would
flatten the rest. Light to import."""

from dataclasses import dataclass

import numpy as np

SPREAD = 50.0  # greatest over least of the middle nine in ten from which a log scale shows more
CROWDED = 3.0  # how many times as long the whole axis may be as that of nine in ten values
BEYOND = 0.3  # how much of the length of nine in ten values a cut axis shows beyond them
MARGIN = 0.05
LARGEST = 1e300  # up to which differences are numbers


@dataclass(frozen=True)
class ValueAxis:
    """How values are shown.

    Attributes:
        low: the lower end.
        high: the upper end, > low.
        log: whether the scale is logarithmic.
        cut: whether some values lie outside.
    """

    low: float
    high: float
    log: bool
    cut: bool

    @classmethod
    def of(cls, values: np.ndarray, sign: float = 1.0) -> "ValueAxis | None":
        """The axis of some values; None if there is none to show.

        Args:
            values: n, in the user's sign; NaN and infinite ones are passed over.
            sign: 1 where they are minimised, -1 where they are maximised: the best one always shows.

        Example:
            >>> ValueAxis.of(np.array([1.0, 2.0, 3.0, 2.0, 2.5, 1.5, 1.2, 1.1, 2.2, 1e9])).cut
            True
            >>> ValueAxis.of(np.geomspace(1e-6, 1.0, 20)).log
            True
        """
        finite = np.asarray(values, dtype=float)
        finite = finite[np.isfinite(finite)].clip(-LARGEST, LARGEST)
        if not len(finite):
            return None
        log = bool(finite.min() > 0) and _ratio(finite) > SPREAD
        shown = np.log10(finite) if log else finite
        best, most = usual_range(sign * shown)
        worst = float((sign * shown).max())
        most = min(most + BEYOND * (most - best), worst)
        cut = most < worst
        ends = sorted([sign * best, sign * most])
        margin = MARGIN * (ends[1] - ends[0]) or (0.05 if log else MARGIN * max(abs(ends[0]), 1e-12))
        low, high = ends[0] - margin, ends[1] + margin
        return cls(10.0**low, 10.0**high, True, cut) if log else cls(low, high, False, cut)


def usual_range(values: np.ndarray) -> tuple[float, float]:
    """Least value and where the axis may end: where nine in ten of the values (to minimise) end, if the others would
    squeeze these together."""
    best, worst = float(values.min()), float(values.max())
    most = float(np.quantile(values, 0.9, method="lower"))  # one of the values: nothing between it and an outlier
    return (best, most) if worst - best > CROWDED * (most - best) > 0 else (best, worst)


def _ratio(positive: np.ndarray) -> float:
    low, high = np.quantile(positive, 0.05, method="higher"), np.quantile(positive, 0.95, method="lower")
    return float(high / low)
