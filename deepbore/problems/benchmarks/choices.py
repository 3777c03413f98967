"""`Choices`: synthetic spaces of choices whose best branch or level is easily missed."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from deepbore.problems.base import Array, Problem
from deepbore.space import Categorical, Condition, Integer, Params, Real, SearchSpace
from deepbore.space.parameters import Parameter
from deepbore.validation import one_of, whole

UNTRAINED = 1.0  # the most that one bowl adds
ROUGH = 0.01  # neighbours differ by up to twice this, as networks do that are trained anew


@dataclass(frozen=True)
class Bowl:
    """min(1, s sum_j (x_j - o_j)^2) over parameters in [0, 1]: narrow for large s, and flat far away.

    Attributes:
        names: of the parameters.
        steepness: s.
        lowest: o.
    """

    names: tuple[str, ...]
    steepness: float
    lowest: Array

    def __call__(self, params: Params) -> float:
        """Its depth at a configuration."""
        away = np.array([params[name] for name in self.names]) - self.lowest
        return min(UNTRAINED, self.steepness * float(away @ away))

    def waves(self, params: Params) -> float:
        """A sum of the distances with large and unequal factors, 0 at the lowest point."""
        away = np.array([params[name] for name in self.names]) - self.lowest
        return float(away @ (37 + 11 * np.arange(len(away))))


@dataclass(frozen=True)
class Arm:
    """One value of a choice: what it adds, a bowl in parameters of its own, and choices within.

    Attributes:
        offset: what it adds, >= 0.
        bowl: over its parameters.
        within: further choices, by name.
    """

    offset: float
    bowl: Bowl
    within: "Mapping[str, Choice]"


Choice = Mapping[str, Arm]
Stream = np.random.Generator


def bowl(stream: Stream, names: list[str], steepness: float) -> Bowl:
    """A bowl with a random lowest point, at least a tenth from the bounds."""
    return Bowl(tuple(names), steepness, 0.1 + 0.8 * stream.random(len(names)))


def arm(stream: Stream, offset: float, steepness: float = 1.0, names: tuple[str, ...] = ()) -> Arm:
    """An arm without choices within."""
    return Arm(offset, bowl(stream, list(names), steepness), {})


def optimizers(stream: Stream) -> dict[str, Choice]:
    """Three optimizers, two of which share a learning rate, best in different places; and an activation."""
    found = {
        "o0": arm(stream, 0.0, 6.0, ("rate", "o0_x")),
        "o1": arm(stream, 0.03, 6.0, ("rate", "o1_x")),
        "o2": arm(stream, 0.05),
    }
    return {"optimizer": found, "activation": levels(stream, 4, 0.03)}


def narrowest(stream: Stream) -> dict[str, Choice]:
    """Four branches with two parameters each: the deeper, the narrower."""
    shapes = [(0.0, 25.0), (0.03, 9.0), (0.05, 4.0), (0.08, 1.0)]
    return {"model": {f"m{k}": arm(stream, *shape, (f"m{k}_x", f"m{k}_y")) for k, shape in enumerate(shapes)}}


def nested(stream: Stream) -> dict[str, Choice]:
    """Three branches, the best of which has three branches within, the best of them narrow."""
    shapes = [(0.0, 16.0), (0.04, 4.0), (0.06, 2.0)]
    within = {f"k{k}": arm(stream, *shape, (f"k{k}_x",)) for k, shape in enumerate(shapes)}
    return {
        "model": {
            "m0": Arm(0.0, bowl(stream, ["m0_x"], 4.0), {"kernel": within}),
            "m1": arm(stream, 0.05, 2.0, ("m1_x", "m1_y")),
            "m2": arm(stream, 0.07, 1.0, ("m2_x",)),
        }
    }


def two_choices(stream: Stream) -> dict[str, Choice]:
    """Two choices at once, each of three arms with a parameter: the deeper, the narrower."""
    shapes = [(0.0, 16.0), (0.03, 6.0), (0.04, 2.0)]
    return {
        choice: {f"{choice}{k}": arm(stream, *shape, (f"{choice}{k}_x",)) for k, shape in enumerate(shapes)}
        for choice in ("optimizer", "schedule")
    }


def plain(stream: Stream) -> dict[str, Choice]:
    """Four branches with two parameters each, one of which is plainly the best."""
    shapes = [(0.0, 1.0), (0.4, 1.0), (0.5, 1.0), (0.6, 1.0)]
    return {"model": {f"m{k}": arm(stream, *shape, (f"m{k}_x", f"m{k}_y")) for k, shape in enumerate(shapes)}}


def levels(stream: Stream, count: int, most: float) -> Choice:
    """A choice between levels without parameters, which add evenly spaced numbers from 0 to `most`."""
    return {f"l{k}": arm(stream, most * float(rank) / count) for k, rank in enumerate(stream.permutation(count))}


def fifty(stream: Stream) -> dict[str, Choice]:
    """One choice of fifty levels."""
    return {"level": levels(stream, 50, 1.0)}


def thirty_by_thirty(stream: Stream) -> dict[str, Choice]:
    """Two choices of thirty levels, which interact (see `Choices`)."""
    return {"one": levels(stream, 30, 0.5), "other": levels(stream, 30, 0.5)}


FAMILIES: dict[str, Callable[[Stream], dict[str, Choice]]] = {
    "optimizers": optimizers,
    "narrowest": narrowest,
    "nested": nested,
    "two": two_choices,
    "plain": plain,
    "fifty": fifty,
    "thirty": thirty_by_thirty,
}
SHARED = 3  # parameters that are always active


class Choices(Problem):
    """Choices, each of whose arms has an offset, a bowl in parameters of its own, and perhaps choices within.

        f(x) = shared bowl + sum over choices (offset + bowl) + interaction + r (1 - cos w(x)),  r = 1/100

    The waves w are 0 at the lowest point, where f is 0. Bowls are flat far from their lowest point, as is the loss of a
    network with a wrong learning rate: few random trials of the best branch say how good it is.

    Args:
        family: "optimizers" (two share a learning rate), "narrowest" (four branches), "nested", "two" (choices at
            once), "plain" (one branch is plainly the best), "fifty" (levels), or "thirty" (by thirty levels, whose
            interaction is a product of two random numbers).
        seed: of offsets and bowls, >= 0.

    Raises:
        SettingError: for another family, or a seed below 0.

    Example:
        >>> problem = Choices("nested")
        >>> problem.space.names[:7]
        ['x0', 'x1', 'n', 'model', 'm0_x', 'm1_x', 'm1_y']
        >>> problem(problem.best)
        0.0
    """

    optimum = 0.0

    def __init__(self, family: str = "optimizers", seed: int = 0):
        one_of(FAMILIES, family=family)
        whole(0, seed=seed)
        stream = np.random.default_rng([list(FAMILIES).index(family), seed])
        self.choices = FAMILIES[family](stream)
        self.shared = Bowl(("x0", "x1"), 0.3, 0.1 + 0.8 * stream.random(2))
        self.count = int(stream.integers(1, 101))
        self.lean = [dict(zip(arms, stream.random(len(arms)), strict=True)) for arms in self.choices.values()]
        self.interacts = family == "thirty"
        space: dict[str, Parameter] = {"x0": Real(0, 1), "x1": Real(0, 1), "n": Integer(1, 100)}
        self.space = SearchSpace(space | declared(self.choices))

    @property
    def best(self) -> Params:
        """The best configuration."""
        best = {**dict(zip(self.shared.names, self.shared.lowest.tolist(), strict=True)), "n": self.count}
        return best | lowest(self.choices)

    def __call__(self, params: Params) -> float:
        """The loss of a configuration."""
        total, waves = self.shared(params), self.shared.waves(params) + 0.7 * (params["n"] - self.count)
        total += 0.05 * abs(params["n"] - self.count) / 100
        for each in taken(self.choices, params):
            total, waves = total + each.offset + each.bowl(params), waves + each.bowl.waves(params)
        if self.interacts:
            first, second = self.lean
            total += 0.5 * first[params["one"]] * second[params["other"]] * self.differs(params)
        loss: float = total + ROUGH * (1 - math.cos(waves))
        return loss

    def differs(self, params: Params) -> bool:
        """Whether a level is not the best one."""
        return any(self.choices[name][params[name]].offset > 0 for name in self.choices)


def declared(choices: Mapping[str, Choice], *when: Condition) -> dict[str, Parameter]:
    """The parameters of choices, and of their arms.

    Args:
        choices: by name.
        when: the conditions under which the choices are active.
    """
    found: dict[str, Parameter] = {}
    for name, arms in choices.items():
        found[name] = Categorical(list(arms), when=list(when) or None)
        for parameter in dict.fromkeys(own for each in arms.values() for own in each.bowl.names):
            having = [level for level, each in arms.items() if parameter in each.bowl.names]
            found[parameter] = Real(0, 1, when=Condition(name, having))
        for level, each in arms.items():
            found |= declared(each.within, Condition(name, level))
    return found


def taken(choices: Mapping[str, Choice], params: Params) -> list[Arm]:
    """The arms of a configuration, those of choices within included."""
    found = [arms[params[name]] for name, arms in choices.items()]
    return [*found, *(inner for each in found for inner in taken(each.within, params))]


def lowest(choices: Mapping[str, Choice]) -> Params:
    """The best level of each choice, and the lowest points of its bowls."""
    found: Params = {}
    for name, arms in choices.items():
        level, best = min(arms.items(), key=lambda item: item[1].offset)
        found |= {name: level, **dict(zip(best.bowl.names, best.bowl.lowest.tolist(), strict=True))}
        found |= lowest(best.within)
    return found
