"""Where the design begins: at Sobol's first point, or in the middle of all numeric ranges, whatever the space.

The default begins in the middle in wide spaces only; docs/ablation.md has why ("Where the design begins").
"""

from collections.abc import Callable

from deepbore import Categorical, SearchSpace
from deepbore.space import Params


def sobol_first(space: SearchSpace, seed: int) -> Params:
    """The first point of the run's Sobol sequence."""
    return space.decode(space.points.sobol(1, seed))[0]


def middle_first(space: SearchSpace, seed: int) -> Params:
    """The middle of all ranges and levels, but for categories, which are those of Sobol's first point."""
    point = space.points.sobol(1, seed)
    for column, parameter in enumerate(space.parameters.values()):
        if not isinstance(parameter, Categorical):
            point[:, column] = parameter.from_uniform(point.new_tensor(0.5))
    point = space.points.snap(point)
    return space.decode(point)[0] if bool(space.points.permitted(point)) else sobol_first(space, seed)


FIRST: dict[str, Callable[[SearchSpace, int], Params]] = {
    "deepbore:sobol-first": sobol_first,
    "deepbore:middle-first": middle_first,
    "deepbore:levels-from-the-middle": middle_first,
}
