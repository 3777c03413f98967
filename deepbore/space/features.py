"""Points as a network sees them: the first layer of every classifier."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from deepbore.space.parameters import Categorical, Integer, Ordinal, Parameter

FEW_LEVELS = 32  # integers with at most this many levels are told to a network level by level
SCALED, REACHED, EQUAL = 0, 1, 2  # how a feature reads its parameter


class Features(nn.Module):
    """Encodes points for learning: n x d -> n x e.

    - real numbers and integers of many levels: one number in [-1, 1];
    - ordinals and integers of few levels: thermometer code, one bit `level >= k` for each k = 1 ... K - 1, so that a
      step between any two neighbouring levels is one bit for a network to weigh;
    - categories: one-hot;
    - conditional parameters: zeros where inactive, and one more bit that says whether it is active.

    Args:
        parameters: the d parameters, in the order of a point's columns.
        conditional: columns of the parameters that carry a condition.
        active: points (n x d) -> which parameters are active (n x d); asked only if any is conditional.

    Example:
        >>> from deepbore import Ordinal, Real, SearchSpace
        >>> space = SearchSpace({"x": Real(0, 1), "k": Ordinal([1, 2, 4])})
        >>> space.features(space.encode([{"x": 0.25, "k": 2}])).tolist()
        [[-0.5, 1.0, 0.0]]
    """

    columns: Tensor
    kinds: Tensor
    thresholds: Tensor

    def __init__(
        self,
        parameters: Sequence[Parameter],
        conditional: Sequence[int] = (),
        active: Callable[[Tensor], Tensor] | None = None,
    ):
        super().__init__()
        rows = [(column, *feature) for column, parameter in enumerate(parameters) for feature in _features(parameter)]
        columns, kinds, thresholds = zip(*rows, strict=True)
        self.register_buffer("columns", torch.tensor(columns), persistent=False)
        self.register_buffer("kinds", torch.tensor(kinds), persistent=False)
        self.register_buffer("thresholds", torch.tensor(thresholds, dtype=torch.float64), persistent=False)
        self._kinds_present = sorted(set(kinds))
        self._conditional = list(conditional)
        self._active = active

    @property
    def size(self) -> int:
        """e, the number of features."""
        return len(self.columns) + len(self._conditional)

    def forward(self, points: Tensor) -> Tensor:
        """Encodes points (n x d, or any leading shape) to n x e features, in their dtype.

        Differentiable in the columns of real numbers and of integers with many levels.
        """
        encoded = self._encode(points[..., self.columns])
        if not self._conditional or self._active is None:
            return encoded
        active = self._active(points).to(points)
        return torch.cat([encoded * active[..., self.columns], active[..., self._conditional]], dim=-1)

    def _encode(self, x: Tensor) -> Tensor:
        first, *others = self._kinds_present
        encoded = self._read(first, x)
        for kind in others:
            encoded = torch.where(self.kinds == kind, self._read(kind, x), encoded)
        return encoded

    def _read(self, kind: int, x: Tensor) -> Tensor:
        if kind == SCALED:
            return 2 * x - 1
        if kind == REACHED:
            return (x > self.thresholds).to(x)
        return ((x - self.thresholds).abs() < 0.5).to(x)  # EQUAL


def _features(parameter: Parameter) -> list[tuple[int, float]]:
    """(kind, threshold) of each of a parameter's features."""
    levels = parameter.levels
    if isinstance(parameter, Categorical):
        return [(EQUAL, float(level)) for level in range(len(parameter.choices))]
    if levels is None or (isinstance(parameter, Integer) and levels > FEW_LEVELS):
        return [(SCALED, 0.0)]
    assert isinstance(parameter, (Ordinal, Integer))
    place = parameter.from_level(torch.arange(levels, dtype=torch.float64))
    return [(REACHED, float(threshold)) for threshold in (place[:-1] + place[1:]) / 2]
