"""Points as a network sees them: the first layer of every classifier."""

from typing import TYPE_CHECKING

from deepbore.space.readings import Readings

if TYPE_CHECKING:
    from deepbore.space.search_space import SearchSpace


class Features(Readings):
    """Encodes points for learning: n x d -> n x e.

    - real numbers and integers of many levels: one number in [-1, 1];
    - ordinals and integers of few levels: thermometer code, one bit `level >= k` for each k = 1 ... K - 1, so that a
      step between any two neighbouring levels is one bit for a network to weigh;
    - categories: one-hot;
    - conditional parameters: zeros where inactive, and one more bit that says whether it is active.

    Args:
        space: the search space.

    Example:
        >>> from deepbore import Ordinal, Real, SearchSpace
        >>> space = SearchSpace({"x": Real(0, 1), "k": Ordinal([1, 2, 4])})
        >>> space.features(space.encode([{"x": 0.25, "k": 2}])).tolist()
        [[-0.5, 1.0, 0.0]]
    """

    def __init__(self, space: "SearchSpace"):
        super().__init__(space, [parameter.features() for parameter in space.parameters.values()])
