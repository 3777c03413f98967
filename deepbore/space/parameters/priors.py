"""Beliefs about the best value of a parameter: as declared (`Normal`, weights), and as distributions on [0, 1]."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from deepbore.errors import SpaceError
from deepbore.names import meant
from deepbore.space.parameters.scale import Scale, as_scalar, checked_number, without_gradients

UNIFORM = "uniform"
NARROWEST, WIDEST = 1e-9, 1e3  # standard deviations in units of the range, beyond which nothing changes
WEAK = 0.3  # standard deviation of what a default alone says, in units of the range
FAVOURED = 2.0  # weight of a default among choices, whose other weights are 1
FORMS = "Normal(centre, spread), or 'uniform' for no belief"


@dataclass(frozen=True)
class Normal:
    """What is believed of the best value of a parameter: a normal distribution, cut off at the bounds.

    It is one of the value; where `log=True` one of its logarithm, and the spread is then a factor:
    `Normal(1e-3, 3.0)` says that the best value is between 1e-3 / 3 and 1e-3 * 3 with probability 0.68. Of an `Ordinal`
    it is one of positions: the centre is one of the choices, the spread a number of places in their order.

    Args:
        centre: the most likely value, within the bounds.
        spread: the standard deviation, > 0, in the units of the value; where `log=True` a factor > 1.

    Example:
        >>> from deepbore import Real
        >>> Real(1e-5, 0.3, log=True, prior=Normal(1e-3, 3.0))
        Real(1e-05, 0.3, log=True, prior=Normal(0.001, 3.0))
    """

    centre: Any
    spread: float

    def __repr__(self) -> str:
        return f"Normal({self.centre!r}, {self.spread!r})"

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {"centre": self.centre, "spread": self.spread}


Prior = Normal | tuple[float, ...] | str | None


# --- as declared -----------------------------------------------------------------------------------------------------


def as_normal(given: Any) -> Any:
    """A `Normal` in plain data as one; anything else unchanged. Raises SpaceError for a dict with other keys."""
    if not isinstance(given, Mapping):
        return given
    if unknown := sorted(map(str, given.keys() - {"centre", "spread"})):
        raise SpaceError(f"a normal prior takes centre, spread, but got {meant(unknown[0], ['centre', 'spread'])}")
    if missing := [name for name in ("centre", "spread") if name not in given]:
        raise SpaceError(f"a normal prior takes centre and spread, but {missing[0]!r} is missing in {dict(given)!r}.")
    return Normal(given["centre"], given["spread"])


def is_weights(given: Any) -> bool:
    """Whether something is meant as weights of choices by name, rather than as a `Normal` in plain data."""
    return isinstance(given, Mapping) and not given.keys() & {"centre", "spread"}


def checked_spread(given: Any, log: bool = False) -> float:
    """The spread of a prior as a number. Raises SpaceError unless it is finite, and > 0, or > 1 if `log`."""
    spread = float(checked_number(given, "the spread of a prior"))
    least = 1.0 if log else 0.0
    if not spread > least:
        unit = "a factor" if log else "a standard deviation"
        raise SpaceError(f"the spread of a prior is {unit}, and must be > {least:g}, but got {spread}.")
    return spread


def prior_of_number(given: Any, low: float, high: float, log: bool) -> Prior:
    """What is said of a number between two bounds, checked.

    Raises:
        SpaceError: unless it is None, "uniform", or a `Normal` whose centre lies within the bounds.
    """
    prior = as_normal(given)
    if prior is None or (isinstance(prior, str) and prior == UNIFORM):
        return prior
    if not isinstance(prior, Normal):
        hint = " A logarithmic scale is log=True." if isinstance(prior, str) and "log" in prior else ""
        raise SpaceError(f"the prior of a number must be {FORMS}, but got {given!r:.100}.{hint}")
    centre = checked_number(prior.centre, "the centre of a prior")
    if not low <= centre <= high:
        raise SpaceError(
            f"the centre of a prior must lie in [{low}, {high}], but got {centre}. Move the bounds, or the centre."
        )
    return Normal(centre, checked_spread(prior.spread, log))


def weights_of(given: Any, names: Sequence[Any]) -> tuple[float, ...]:
    """Weights of choices, as a list in their order or by name, as numbers.

    Raises:
        SpaceError: unless there is one for each choice, all are finite and >= 0, and one is > 0.
    """
    if isinstance(given, Mapping):
        if given.keys() != set(names):
            raise SpaceError(f"a prior needs a weight for each of {list(names)!r:.200}, but got {dict(given)!r:.200}.")
        given = [given[name] for name in names]
    listed = given.tolist() if hasattr(given, "tolist") else without_gradients(given)
    if isinstance(listed, (str, bytes)) or not isinstance(listed, Sequence):
        raise SpaceError(f"the prior of choices must be weights, as in [.7, .2, .1], but got {given!r:.100}.")
    if len(listed) != len(names):
        raise SpaceError(f"a prior needs a weight for each of {len(names)} choices, but got {len(listed)}.")
    weights = tuple(float(checked_number(as_scalar(each), "a weight of a prior")) for each in listed)
    if min(weights) < 0 or not 0 < sum(weights) < math.inf:
        raise SpaceError(f"weights of a prior must be >= 0, and one of them > 0, but got {list(weights)!r:.200}.")
    return weights


def plain_prior(prior: Prior) -> Any:
    """A checked prior as JSON carries it."""
    if isinstance(prior, Normal):
        return prior.to_dict()
    return list(prior) if isinstance(prior, tuple) else prior


# --- as distributions ------------------------------------------------------------------------------------------------


class Belief(ABC):
    """A distribution on [0, 1] of the number from which `Parameter.from_uniform` makes the best entry of a column.

    Densities are relative to uniform numbers. All methods work entry by entry.

    Attributes:
        mode: a number whose density is greatest.
    """

    mode: float

    @abstractmethod
    def quantile(self, u: Tensor) -> Tensor:
        """Uniform numbers in [0, 1] -> numbers with this distribution, rising with them."""

    @abstractmethod
    def log_density(self, u: Tensor) -> Tensor:
        """Numbers in [0, 1] -> the logarithms of their densities, with gradients where these have a slope."""

    @abstractmethod
    def log_mean_density(self, low: Tensor, high: Tensor) -> Tensor:
        """The logarithms of the mean densities between the ends of cells (n each, low < high)."""


class TruncatedNormal(Belief):
    """A normal distribution, cut off at 0 and 1.

    Args:
        mean: in [0, 1].
        std: > 0, moved into [1e-9, 1e3].

    Example:
        >>> TruncatedNormal(0.5, 0.1).quantile(torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64))
        tensor([0.0000, 0.5000, 1.0000], dtype=torch.float64)
    """

    def __init__(self, mean: float, std: float):
        self.mean, self.std = mean, min(max(std, NARROWEST), WIDEST)
        self.mode = mean
        below, above = mean / self.std, (1 - mean) / self.std  # ends in standard deviations
        self.log_mass = math.log((math.erf(below * math.sqrt(0.5)) + math.erf(above * math.sqrt(0.5))) / 2)
        self._left, self._right = (math.erfc(each * math.sqrt(0.5)) / 2 for each in (below, above))

    def quantile(self, u: Tensor) -> Tensor:
        mass = math.exp(self.log_mass)
        left, right = self._left + u * mass, self._right + (1 - u) * mass  # mass on either side of the quantile
        z = torch.where(left < right, torch.special.ndtri(left), -torch.special.ndtri(right))
        return (self.mean + self.std * z).clamp(0, 1)

    def log_density(self, u: Tensor) -> Tensor:
        scale = math.log(self.std) + math.log(2 * math.pi) / 2 + self.log_mass
        return -((u - self.mean) / self.std).square() / 2 - scale

    def log_mean_density(self, low: Tensor, high: Tensor) -> Tensor:
        one, other = (low - self.mean) / self.std, (high - self.mean) / self.std
        is_right = one + other > 0  # mirrored to the left, where small masses keep their digits
        one, other = torch.where(is_right, -other, one), torch.where(is_right, -one, other)
        least, most = torch.special.log_ndtr(one), torch.special.log_ndtr(other)
        log_mass: Tensor = most + torch.log(-torch.expm1(least - most))
        return log_mass - (high - low).log() - self.log_mass


class Weighted(Belief):
    """Choices with weights: the density is constant on each of K cells of equal length.

    Args:
        weights: K numbers >= 0, one of them > 0.
    """

    def __init__(self, weights: Sequence[float]):
        shares = torch.tensor(weights, dtype=torch.float64)
        self.shares = shares / shares.sum()
        self.mode = (int(self.shares.argmax()) + 0.5) / len(weights)

    def quantile(self, u: Tensor) -> Tensor:
        shares = self.shares.to(u)
        ends = shares.cumsum(0)
        last = int(self.shares.nonzero()[-1])
        cell = torch.searchsorted(ends, u.contiguous(), right=True).clamp(max=last)
        within = (u - (ends - shares)[cell]) / shares[cell]
        return (cell + within.clamp(0, 1 - 1e-9)) / len(shares)  # the end of a cell is in the next one

    def log_density(self, u: Tensor) -> Tensor:
        count = len(self.shares)
        return (self.shares.to(u) * count).log()[(u * count).long().clamp(0, count - 1)]

    def log_mean_density(self, low: Tensor, high: Tensor) -> Tensor:
        return self.log_density((low + high) / 2)


def normal_in(scale: Scale, prior: Normal) -> TruncatedNormal:
    """A normal prior of values on a scale as a distribution of places on it."""
    at = torch.tensor(float(prior.centre), dtype=torch.float64)
    width = math.log(scale.high / scale.low) if scale.log else scale.high - scale.low
    spread = math.log(prior.spread) if scale.log else prior.spread
    return TruncatedNormal(float(scale.place(at)), spread / width)


def normal_of_levels(level: float, spread: float, count: int) -> TruncatedNormal:
    """A normal prior around one of several levels, all equally wide, as a distribution on [0, 1].

    Args:
        level: index of the centre, or a number between two.
        spread: in levels.
        count: of the levels.
    """
    return TruncatedNormal((level + 0.5) / count, spread / count)


def favouring(level: int, count: int) -> Weighted:
    """What a default among unordered choices says."""
    return Weighted([FAVOURED if each == level else 1.0 for each in range(count)])
