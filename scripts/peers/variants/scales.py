"""Variants of the prior of length scales: which spaces have some that are expected to be alike.

The default expects it of ten ordered parameters or more; docs/ablation.md has why ("Length scales that are alike", "Ten
parameters with levels").
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


class IndependentWithLevels(db.KernelPLS):
    """`KernelPLS` whose prior correlates length scales in spaces of real parameters alone."""

    def build(self, space: db.SearchSpace, outputs: int) -> None:
        super().build(space, outputs)
        if not space.points.is_continuous:
            for model in (self, self.additive_model):
                if model is not None:
                    model._prior_precision = np.eye(len(model._prior))


VARIANTS: dict[str, Callable[[], Settings]] = {
    "deepbore:independent-scales": independent(dict),
    "deepbore:alike-everywhere": lambda: {"classifier": AlikeEverywhere()},
}
WITH_LEVELS: dict[str, Callable[[], Settings]] = {
    "deepbore:independent-with-levels": lambda: {"classifier": IndependentWithLevels()},
    "deepbore:levels-from-the-middle": dict,  # see `design.FIRST`
}
