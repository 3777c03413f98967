"""Variants of the head of the near rows: which axes it has, and when its turns begin.

docs/ablation.md has what came of them ("Axes that the labels choose").
"""

from collections.abc import Callable

from torch import Tensor

from deepbore.classifiers.local_axes import LocalAxes
from deepbore.classifiers.nearby import Nearby, n_good, n_known
from deepbore.labels.datamodule import LabelledBatch


class Principal(Nearby):
    """In the principal axes of the good rows alone."""

    def axes(self, good: Tensor) -> list[tuple[LocalAxes, float]]:
        return super().axes(good)[:1]


class Late(Principal):
    """As it was before: in principal axes, from twice as many rows on as these are found from."""

    def take_turn(self, batch: LabelledBatch, values: Tensor, q: int) -> bool:
        enough = n_known(batch, values) >= 2 * n_good(batch.points.shape[1])
        return enough and super().take_turn(batch, values, q)


class Free(Nearby):
    """Whatever makes the labels likeliest, by however little."""

    def axes(self, good: Tensor) -> list[tuple[LocalAxes, float]]:
        return [(axes, 0.0) for axes, _ in super().axes(good)]


NEARBY: dict[str, Callable[[], Nearby]] = {
    "deepbore:principal-axes": Principal,
    "deepbore:late-principal-axes": Late,
    "deepbore:free-axes": Free,
}
