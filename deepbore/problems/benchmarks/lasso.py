"""The penalties of a weighted Lasso, one for each feature, on data of which few features matter."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deepbore.problems.base import Array, VectorProblem, benchmark_package
from deepbore.validation import one_of, whole

FOLDS = 5
CORRELATION = 0.6  # of neighbouring features: that of features i and j is .6^|i - j|
SIGNAL = 10.0  # |X b| / |noise|
WIDTH = 100.0  # the greatest penalty by the least


@dataclass(frozen=True)
class Size:
    """How many features, how many of them matter, and how many rows there are."""

    features: int
    active: int
    rows: int


SIZES = {"simple": Size(60, 3, 30), "medium": Size(100, 5, 50), "high": Size(300, 15, 150)}


class Lasso(VectorProblem):
    """The cross-validated squared error of a Lasso with a penalty of its own for each feature, minimised.

        b = argmin |y - X b|^2 / (2 n) + sum_j lambda_j |b_j|

    | name | features d | that matter | rows |
    |---|---|---|---|
    | simple | 60 | 3 | 30 |
    | medium | 100 | 5 | 50 |
    | high | 300 | 15 | 150 |

    A parameter x_j from -1 to 1 stands for lambda_j from a hundredth of the least single penalty with which all b are 0
    to that penalty, on a log scale. Data are drawn by the seed: normal features with correlations .6^|i - j|, those
    that matter at random places with coefficients +1 or -1, and noise of a tenth of the signal. The error is the mean
    over five folds.

    Args:
        name: of the size.
        seed: of the data, >= 0.

    Raises:
        SettingError: for another name or seed.
        MissingPackage: without scikit-learn.

    Example:
        >>> problem = Lasso("simple")
        >>> len(problem.space), problem(dict.fromkeys(problem.space.names, 1.0)) > 0.5  # nothing is learned
        (60, True)

    References:
        Sehic, Gramfort, Salmon & Nardi, LassoBench: A High-Dimensional Hyperparameter Optimization Benchmark Suite for
        Lasso, AutoML 2022, section 3 (the synthetic benchmarks; data are drawn anew here).
    """

    def __init__(self, name: str, seed: int = 0):
        one_of(SIZES, name=name)
        whole(0, seed=seed)
        self.linear = benchmark_package("sklearn.linear_model", "scikit-learn")
        size = SIZES[name]
        super().__init__([(-1.0, 1.0)] * size.features)
        self.x, self.y = drawn(size, np.random.default_rng([seed, size.features]))
        self.largest = float(np.abs(self.x.T @ self.y).max() / len(self.y))

    def value(self, x: Array) -> float:
        """The error with the penalties of a vector (d)."""
        penalties = self.largest * WIDTH ** ((x - 1) / 2)
        fold = np.arange(len(self.y)) % FOLDS
        return float(np.mean([self.error(penalties, fold == each) for each in range(FOLDS)]))

    def error(self, penalties: Array, out: NDArray[np.bool_]) -> float:
        """The mean squared error on rows left out, by the others; a feature by its penalty has the penalty 1."""
        scaled = self.x / penalties
        model = self.linear.Lasso(alpha=1.0, fit_intercept=False, max_iter=2000, tol=1e-4)
        model.fit(scaled[~out], self.y[~out])
        return float(np.mean((scaled[out] @ model.coef_ - self.y[out]) ** 2))


def drawn(size: Size, generator: np.random.Generator) -> tuple[Array, Array]:
    """Features (n x d) and targets (n)."""
    off = np.abs(np.subtract.outer(np.arange(size.features), np.arange(size.features)))
    root = np.linalg.cholesky(CORRELATION**off)
    x = generator.normal(size=(size.rows, size.features)) @ root.T
    coefficients = np.zeros(size.features)
    places = generator.choice(size.features, size.active, replace=False)
    coefficients[places] = generator.choice([-1.0, 1.0], size.active)
    signal, noise = x @ coefficients, generator.normal(size=size.rows)
    return x, signal + noise * np.linalg.norm(signal) / np.linalg.norm(noise) / SIGNAL
