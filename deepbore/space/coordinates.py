"""Points as kernels and distances see them."""

from typing import TYPE_CHECKING

from torch import Tensor

from deepbore.space.readings import Readings

if TYPE_CHECKING:
    from deepbore.space.search_space import SearchSpace


class Coordinates(Readings):
    """Points as a kernel sees them: n x d -> n x c, every parameter spanning a length of 1.

    Numbers and ordinals keep one coordinate in [0, 1]. A category becomes K coordinates, one of them 1 / sqrt(2), so
    that any two are 1 apart. A conditional parameter gets one more that says whether it is active,
    and is 0 where it is not.

    Args:
        space: the search space.

    Attributes:
        owner: the parameter that each of the c coordinates belongs to.
    """

    def __init__(self, space: "SearchSpace"):
        super().__init__(space, [parameter.coordinates() for parameter in space.parameters.values()])


def squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """All squared distances: n x c and m x c -> n x m."""
    squared = x.square().sum(-1, keepdim=True) + y.square().sum(-1) - 2 * x @ y.mT
    return squared.clamp(min=0)
