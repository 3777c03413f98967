"""`Scale`: the line that a numeric parameter's values stand on."""

import math
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Scale:
    """An axis of native values: from low to high, linear or logarithmic.

    Args:
        low: least value.
        high: greatest value, > low.
        log: whether equal factors are equally far, rather than equal differences; low > 0.
        whole: whether only whole numbers are values.

    Example:
        >>> import torch
        >>> Scale(-5, 10).place(torch.tensor([-5.0, 2.5, 10.0])).tolist()
        [0.0, 0.5, 1.0]
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def place(self, values: Tensor) -> Tensor:
        """Values in [low, high] -> places in [0, 1]."""
        low, high = self.low, self.high
        if self.log:
            values, low, high = values.log(), math.log(low), math.log(high)
        return ((values - low) / (high - low)).clamp(0, 1)

    def value(self, places: Tensor) -> Tensor:
        """Places in [0, 1] -> values in [low, high]."""
        if not self.log:
            return self.low + places * (self.high - self.low)
        return (math.log(self.low) + places * (math.log(self.high) - math.log(self.low))).exp()

    def ticks(self, most: int) -> list[float]:
        """Two to `most` round values in [low, high] to name on an axis, ascending.

        Example:
            >>> Scale(1e-5, 1e-1, log=True).ticks(5), Scale(0, 3).ticks(5)
            ([1e-05, 0.0001, 0.001, 0.01, 0.1], [0.0, 1.0, 2.0, 3.0])
        """
        found = self._powers(most) if self.log else []
        found = found if len(found) > 1 else self._multiples(most)
        return found if len(found) > 1 else [self.low, self.high]

    def _powers(self, most: int) -> list[float]:
        """1, 2 and 5 times powers of ten, or 1 and 3 times, or only the powers, or every other, ... of them."""
        exponents = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for factors in ((1, 2, 5), (1, 3), (1,)):
            found = [float(f"{f}e{k}") for k in exponents for f in factors if self._holds(float(f"{f}e{k}"))]
            if len(found) <= most:
                return found
        return found[:: math.ceil(len(found) / most)]

    def _multiples(self, most: int) -> list[float]:
        """Multiples of the smallest of the steps 1, 2, 2.5 and 5 times a power of ten that gives at most `most`."""
        power = math.floor(math.log10((self.high - self.low) / most))
        steps = [float(f"{f}e{power + k}") for k in (0, 1, 2) for f in (1, 2, 2.5, 5)]
        for width in [width for width in steps if not self.whole or width == round(width)]:
            first, last = math.ceil(self.low / width), math.floor(self.high / width)
            if last - first < most:
                found = [float(f"{k * width:.12g}") for k in range(first, last + 1)]
                return [value for value in found if self._holds(value)]
        return []

    def _holds(self, value: float) -> bool:
        return self.low <= value <= self.high and (not self.whole or value == round(value))
