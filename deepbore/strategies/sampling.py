"""`RandomSampling`, `SobolSampling`, `GridSampling`: strategies that propose without any model."""

import logging
import math
from typing import Any, Literal

import torch
from torch import Tensor

from deepbore.candidates.selection import UniqueSelector, select_new
from deepbore.classifiers import Classifier, KernelPLS
from deepbore.data.observations import Observations
from deepbore.data.trial import Budget
from deepbore.errors import SettingError, SpaceExhausted
from deepbore.space import Parameter, SearchSpace
from deepbore.strategies.base import Proposal, Strategy, View
from deepbore.validation import one_of, required, whole

ByName = Literal["random", "sobol", "grid"]
MOST_OF_A_GRID = 10**6
ENOUGH = 1000  # points that are looked for to say that a grid goes on
log = logging.getLogger(__name__)


class Sampling(Strategy):
    """A strategy that learns nothing: what it proposes depends on the known configurations alone.

    Its model is trained only when it is asked for: `Study.fit`, `Study.recommended`, plots.
    """

    uses_models = False

    def __init__(self) -> None:
        self.classifier: Classifier = KernelPLS()

    @property
    def models(self) -> tuple[Classifier, ...]:
        return (self.classifier,)

    def at_budgets(self, budget: Budget) -> "Sampling":
        return self


class RandomSampling(Sampling):
    """Independent random configurations, uniform over the scale of each parameter: `strategy="random"`.

    Example:
        >>> from deepbore import Real, Study
        >>> len(Study({"x": Real(0, 1)}, strategy="random").ask(3))
        3

    References:
        Bergstra & Bengio, Random search for hyper-parameter optimization, JMLR 2012.
    """

    def propose(self, view: View, q: int) -> Proposal:
        sampled = view.space.points.sample(q, view.generator)
        return Proposal(select_new(sampled, view.observations, q, view.generator, view.chosen))


class SobolSampling(Sampling):
    """The configurations of a scrambled Sobol sequence, which fill the space evenly: `strategy="sobol"`.

    It is the initial design of other strategies, without an end.

    References:
        Owen, Scrambling Sobol' and Niederreiter-Xing points, Journal of Complexity 1998.
    """

    def propose(self, view: View, q: int) -> Proposal:
        sobol = view.space.points.sobol(4 * q, view.seed, skip=len(view.observations))
        return Proposal(select_new(sobol, view.observations, q, view.generator, view.chosen))


class GridSampling(Sampling):
    """All combinations of some values of each parameter, the last parameter fastest: `strategy="grid"`.

    A run ends with the grid. The order is that of the space, so that a run that is resumed goes on.

    Args:
        levels: values of each parameter that has more, evenly spaced along its scale, both bounds among them, >= 2. Of
            whole numbers and steps that are left out a warning says how many.

    Raises:
        SettingError: for fewer levels; in a study, for a grid of more than a million configurations.

    Example:
        >>> from deepbore import Categorical, Real, Study
        >>> study = Study({"lr": Real(1e-3, 1e-1, log=True), "act": Categorical(["relu", "tanh"])}, strategy="grid")
        >>> [tuple(trial.params.values()) for trial in study.ask(3)]
        [(0.001, 'relu'), (0.001, 'tanh'), (0.00316227766017, 'relu')]
    """

    def __init__(self, levels: int = 5):
        super().__init__()
        required(levels=levels)
        whole(2, levels=levels)
        self.levels = levels
        self._is_said = False  # which values are left out
        self._grid: tuple[SearchSpace, Tensor] | None = None  # cached, with its space
        self._start = 0  # all points before are known

    def check(self, space: SearchSpace, labels: Any) -> None:
        size = math.prod(len(self._entries(parameter)) for parameter in space.parameters.values())
        if size > MOST_OF_A_GRID:
            raise SettingError(
                f"a grid has at most {MOST_OF_A_GRID:,} configurations, but {self.levels} levels make {size:,}. Give "
                'fewer: strategy=GridSampling(levels=...), or strategy="sobol".'
            )
        self._say_what_is_left_out(space)

    def _say_what_is_left_out(self, space: SearchSpace) -> None:
        """Says once which parameters with a known number of values have more than the grid."""
        counts = {name: (each.levels, len(self._entries(each))) for name, each in space.parameters.items()}
        short = {name: (n, kept) for name, (n, kept) in counts.items() if n is not None and kept < n}
        if short and not self._is_said:
            said = ", ".join(f"{kept} of the {n} values of {name!r}" for name, (n, kept) in short.items())
            most = max(n for n, _ in short.values())
            log.warning("the grid has %s; strategy=GridSampling(levels=%d) has all of them", said, most)
        self._is_said = True

    def propose(self, view: View, q: int) -> Proposal:
        selector = self._new(view.observations, q, view.chosen)
        if selector.is_full:
            return Proposal(selector.points)
        raise SpaceExhausted(
            f"{q} new configurations were asked for, but the grid of {self.levels} levels has only "
            f"{len(selector.rows)} left. Ask for fewer, or give strategy=GridSampling(levels=...)."
        )

    def n_left(self, observations: Observations) -> float:
        selector = self._new(observations, ENOUGH)
        return math.inf if selector.is_full else len(selector.rows)

    def _new(self, observations: Observations, q: int, chosen: Tensor | None = None) -> UniqueSelector:
        """The next points of the grid that are not known, at most q."""
        space = observations.space
        if self._grid is None or self._grid[0] is not space:
            entries = [self._entries(parameter) for parameter in space.parameters.values()]
            self._grid, self._start = (space, space.points.snap(torch.cartesian_prod(*entries).view(-1, len(space)))), 0
        selector = UniqueSelector(observations, q, chosen)
        selector.add(self._grid[1][self._start :])
        if selector.rows and chosen is None:
            self._start += selector.rows[0]
        return selector

    def _entries(self, parameter: Parameter) -> Tensor:
        """The entries of a point that stand in the grid."""
        levels = parameter.levels
        if levels is not None and (levels <= self.levels or not parameter.is_numeric):
            return parameter.from_level(torch.arange(levels, dtype=torch.float64))
        spaced = torch.linspace(0, parameter.upper, self.levels, dtype=torch.float64)
        entries: Tensor = parameter.from_level(parameter.to_level(spaced)).unique()
        return entries


BY_NAME = {"random": RandomSampling, "sobol": SobolSampling, "grid": GridSampling}


def named_strategy(name: str) -> Strategy:
    """The strategy with a name. Raises SettingError for another name."""
    one_of(tuple(BY_NAME), strategy=name)
    return BY_NAME[name]()
