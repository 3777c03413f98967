"""The search space of an Optuna study, read off its trials: Optuna declares parameters only while a trial runs."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from deepbore.errors import SpaceError
from deepbore.space import Categorical, Condition, Integer, Real, SearchSpace

Distributions = dict[str, BaseDistribution]
PARENT_LEVELS = 32  # a parameter with more levels is not taken for the cause of another's absence


class SeenTrials:
    """What the finished trials of a study say about its space.

    A parameter whose distribution differs between trials, or holds a single value, is left out, as in Optuna's
    `IntersectionSearchSpace`; so is one that no parameter of deepbore can be, such as 2^62 whole numbers. One that some
    complete trials do without is conditional: on the parameter with levels that occurs wherever it does and whose
    values tell apart the trials with it from those without. Of several such parameters it is the one with the fewest
    levels. Values that no trial has had yet count as ones that activate it.

    If no parameter explains the absence, it is unconditional. Failed and pruned trials may have ended before they asked
    for all their parameters, so only complete ones say what is conditional.
    """

    def __init__(self) -> None:
        self._distributions: dict[str, BaseDistribution | None] = {}  # None where they differ
        self._branches: dict[frozenset[str], dict[str, set[float]]] = {}  # which parameters -> levels of each

    def add(self, trial: FrozenTrial) -> None:
        """Takes note of one finished trial."""
        for name, distribution in trial.distributions.items():
            if self._distributions.setdefault(name, distribution) != distribution or not is_possible(distribution):
                self._distributions[name] = None
        if trial.state != TrialState.COMPLETE:
            return
        seen = self._branches.setdefault(frozenset(trial.distributions), {})
        for name, distribution in trial.distributions.items():
            if is_possible(distribution) and 1 < len(levels(distribution)) <= PARENT_LEVELS:
                seen.setdefault(name, set()).add(to_native(distribution, trial.params[name]))

    @property
    def distributions(self) -> Distributions:
        """The parameters that can be sampled together, by name."""
        return {name: d for name, d in sorted(self._distributions.items()) if d is not None and not d.single()}

    def space(self, distributions: Mapping[str, BaseDistribution]) -> SearchSpace:
        """The search space of some of the parameters, with the conditions that the trials suggest.

        Args:
            distributions: name -> distribution, at least one.
        """
        return SearchSpace(
            {name: parameter(d, self._condition(name, distributions)) for name, d in distributions.items()}
        )

    def _condition(self, name: str, distributions: Mapping[str, BaseDistribution]) -> Condition | None:
        """What the parameter depends on, if anything; None also where nothing explains its absence."""
        having = [branch for branch in self._branches if name in branch]
        lacking = [branch for branch in self._branches if name not in branch]
        if not having or not lacking:
            return None
        for parent in sorted(distributions, key=lambda parent: (len(levels(distributions[parent])), parent)):
            wider = [branch for branch in lacking if parent in branch]
            if not wider or not all(parent in branch for branch in having):
                continue  # a cause occurs in more branches than what depends on it, so there are no circles
            active, idle = self._seen_levels(parent, having), self._seen_levels(parent, wider)
            if active and idle and not active & idle:
                return Condition(parent, [level for level in levels(distributions[parent]) if level not in idle])
        return None

    def _seen_levels(self, name: str, branches: Iterable[frozenset[str]]) -> set[float]:
        return set().union(*(self._branches[branch].get(name, set()) for branch in branches))


# --- one distribution as one parameter -------------------------------------------------------------------------------


def parameter(distribution: BaseDistribution, when: Condition | None = None) -> Real | Integer | Categorical:
    """The parameter of deepbore for a distribution: choices and steps become whole numbers, counted from 0."""
    d = distribution
    if isinstance(d, CategoricalDistribution):
        return Categorical(range(len(d.choices)), when)
    if _on_grid(d):
        return Integer(0, len(levels(d)) - 1, when=when)
    return (Integer if isinstance(d, IntDistribution) else Real)(d.low, d.high, log=d.log, when=when)


def is_possible(distribution: BaseDistribution) -> bool:
    """Whether there is a parameter of deepbore for a distribution."""
    try:
        return distribution.single() or bool(parameter(distribution))
    except (SpaceError, OverflowError):
        return False


def to_native(distribution: BaseDistribution, value: Any) -> float:
    """A value of Optuna's -> the same as `parameter` has it; the nearest bound for a number outside."""
    d = distribution
    internal = d.to_internal_repr(value)
    if isinstance(d, CategoricalDistribution):
        return int(internal)
    internal = min(max(internal, d.low), d.high)
    if _on_grid(d):
        level: int = round((internal - d.low) / d.step)
        return level
    return int(internal) if isinstance(d, IntDistribution) else float(internal)


def to_optuna(distribution: BaseDistribution, native: Any) -> Any:
    """A value of `parameter` -> the same as Optuna has it."""
    d = distribution
    if isinstance(d, CategoricalDistribution):
        return d.choices[native]
    if _on_grid(d):
        return type(d.low)(Decimal(str(d.low)) + native * Decimal(str(d.step)))  # 0.3, not 0.30000000000000004
    return native


def levels(distribution: BaseDistribution) -> range:
    """The values of `parameter`; none for a continuous one."""
    d = distribution
    if isinstance(d, CategoricalDistribution):
        return range(len(d.choices))
    if d.step is None:
        return range(0)
    return range(round((d.high - d.low) / d.step) + 1) if _on_grid(d) else range(d.low, d.high + 1)


def _on_grid(d: BaseDistribution) -> bool:
    """Whether a numeric distribution has steps other than those between whole numbers."""
    return d.step is not None and not (isinstance(d, IntDistribution) and d.step == 1)
