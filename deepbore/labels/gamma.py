"""The proportion gamma: how many values count as good."""

import math
import numbers
from dataclasses import dataclass

from deepbore.errors import SettingError
from deepbore.validation import above, between, required


@dataclass(frozen=True)
class DecayingGamma:
    """A proportion that falls from `start` towards `floor`: floor + (start - floor) * 2^(-n / half_life).

    BORE section 3.1 suggests to begin with balanced classes and to focus as the optimisation goes on.

    Args:
        start: gamma at n = 0, in (0, 1).
        floor: gamma in the limit, in (0, start].
        half_life: after how many observations half of the way is gone, > 0.

    Example:
        >>> round(DecayingGamma(start=0.5, floor=0.1, half_life=50)(50), 6)
        0.3
    """

    start: float = 0.5
    floor: float = 0.1
    half_life: float = 50.0

    def __post_init__(self) -> None:
        required(start=self.start, floor=self.floor, half_life=self.half_life)
        between(0, 1, start=self.start, floor=self.floor)
        above(0, half_life=self.half_life)
        if self.floor > self.start:
            raise SettingError(f"0 < floor <= start < 1 and half_life > 0 must hold, but got {self}.")

    def __call__(self, n: int) -> float:
        """Gamma for n observations."""
        return self.floor + (self.start - self.floor) * math.exp2(-n / self.half_life)


Gamma = float | DecayingGamma


def checked_gamma(gamma: Gamma) -> Gamma:
    """The proportion itself, if it is in (0, 1) or a schedule.

    Raises:
        SettingError: otherwise.
    """
    if isinstance(gamma, DecayingGamma) or (isinstance(gamma, numbers.Real) and 0 < gamma < 1):
        return gamma
    raise SettingError(f"0 < gamma < 1 must hold, but got gamma={gamma!r:.100}. Typical values are 0.1 to 0.5.")
