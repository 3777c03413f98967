"""Variants of the prior of length scales: which spaces have some that are expected to be alike.

The default expects it of ten real parameters or more; docs/ablation.md has why ("Length scales that are alike").
"""

from collections.abc import Callable

import numpy as np

import deepbore as db
from deepbore.classifiers.kernel.kernels import correlated
from peers.variants.settings import Settings, independent


class AlikeEverywhere(db.KernelPLS):
    """`KernelPLS` whose prior correlates length scales in every space, also small ones, and those with levels."""

    def _precision(self, space: db.SearchSpace) -> np.ndarray:
        return correlated(len(space))


VARIANTS: dict[str, Callable[[], Settings]] = {
    "deepbore:independent-scales": independent(dict),
    "deepbore:alike-everywhere": lambda: {"classifier": AlikeEverywhere()},
}
