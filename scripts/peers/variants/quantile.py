"""Another share of the values up to tau than one half, so that labels are spread over more of them.

docs/ablation.md has what came of it ("A wider scale of labels", and "Long runs, again" of a scale that is kept).
"""

from collections.abc import Callable

import deepbore as db
from peers.variants.settings import Settings

WORSE = 50  # values beyond tau where the scale is kept: half of the first hundred


class KeptScale(db.ValueGradedLabels):
    """Labels whose tau stays where it was after 100 trials, unless later ones are worse than it."""

    def proportion(self, n: int) -> float:
        return max(super().proportion(n), 1 - WORSE / n)


VARIANTS: dict[str, Callable[[], Settings]] = {
    "deepbore:gamma-.75": lambda: {"labels": db.ValueGradedLabels(gamma=0.75)},
    "deepbore:gamma-.9": lambda: {"labels": db.ValueGradedLabels(gamma=0.9)},
}
LONG: dict[str, Callable[[], Settings]] = {"kept-scale": lambda: {"labels": KeptScale()}}
