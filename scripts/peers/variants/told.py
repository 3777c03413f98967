"""Variants of `KernelPLS(noisy=True)`: other labels, and averages over the noise however little it is.

docs/ablation.md has what came of each ("Told of noise: labels, and when it counts").
"""

from collections.abc import Callable

import deepbore as db
from peers.variants.settings import Settings


class AlwaysAveraged(db.KernelPLS):
    """`KernelPLS(noisy=True)` that averages over the noise however small lambda's share of the variance is."""

    def __init__(self) -> None:
        super().__init__(noisy=True)

    def _update_noiseless(self) -> None:
        self._known = None
        self._noiseless = self._noiseless_rows() if len(self._data) > 1 else None


LINEAR = {"labels": db.ValueGradedLabels(0.97, tail=0)}  # as `LibraryPLS` has them
WIDE = {"labels": db.ValueGradedLabels(0.9)}  # linear but for the worst tenth, whose grades thin out

VARIANTS: dict[str, Callable[[], Settings]] = {
    "deepbore:told": lambda: {"classifier": db.KernelPLS(noisy=True)},
    "deepbore:told+linear": lambda: {"classifier": db.KernelPLS(noisy=True)} | LINEAR,
    "deepbore:told+linear+always": lambda: {"classifier": AlwaysAveraged()} | LINEAR,
    "deepbore:told+wide+always": lambda: {"classifier": AlwaysAveraged()} | WIDE,
}
