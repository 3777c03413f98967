"""Variants of `NearBest`: which axes it has, and when its turns begin.

docs/ablation.md has what came of them ("Axes that the labels choose").
"""

from collections.abc import Callable

from torch import Tensor

import deepbore as db
from deepbore.strategies import ModelStrategy, NearBest, Turns, View
from deepbore.strategies.near_best import LocalAxes, knows, n_good
from peers.variants.settings import Settings


class Principal(NearBest):
    """In the principal axes of the good rows alone."""

    def axes(self, good: Tensor) -> list[tuple[LocalAxes, float]]:
        return super().axes(good)[:1]


class Late(Principal):
    """As it was before: in principal axes, from twice as many rows on as these are found from."""

    def applies(self, view: View) -> bool:
        return super().applies(view) and knows(view.batch, view.values, 2 * n_good(len(view.space)))


class Free(NearBest):
    """Whatever makes the labels likeliest, by however little."""

    def axes(self, good: Tensor) -> list[tuple[LocalAxes, float]]:
        return [(axes, 0.0) for axes, _ in super().axes(good)]


def near_by(kind: type[NearBest]) -> Callable[[], Settings]:
    """The default of a continuous space with another kind of `NearBest`."""
    return lambda: {"strategy": Turns([ModelStrategy(db.KernelPLS()), kind()])}


VARIANTS: dict[str, Callable[[], Settings]] = {
    "deepbore:principal-axes": near_by(Principal),
    "deepbore:late-principal-axes": near_by(Late),
    "deepbore:free-axes": near_by(Free),
}
