"""A table of small networks trained on handwritten digits, shipped with deepbore: which architecture, trained how."""

from pathlib import Path

import numpy as np

from deepbore.problems.base import Problem
from deepbore.space import Ordinal, Params, SearchSpace

TABLE = Path(__file__).with_suffix(".npz")  # made by scripts/make_digits_architecture.py
LEVELS: dict[str, tuple[float, ...]] = {
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
    the value is the mean over two seeds. There is no noise; the optimum is the best entry, which several may share.

    It stands in for the search on MNIST of batch BORE (Oliveira et al. 2022, D.3.2), a random forest trained on runs on
    MNIST, whose data could not be had: the same six hyperparameters, but other images, ranges of our own, smaller
    networks, and a table in the place of a forest. Values and ranks of methods are not comparable with the paper's.

    Example:
        >>> problem = DigitsArchitecture()
        >>> params = {"learning_rate": 1e-2, "decay": 0.9, "dropout": 0.1, "batch_size": 64, "layers": 1, "units": 64}
        >>> 0 < problem.optimum <= problem(params) < 0.12 < problem(params | {"units": 8, "layers": 3, "dropout": 0.5})
        True
    """

    def __init__(self) -> None:
        self.space = SearchSpace({name: Ordinal(list(levels)) for name, levels in LEVELS.items()})
        with np.load(TABLE) as table:
            self._errors = table["wrong"] / table["images"]
        self.optimum = float(self._errors.min())

    def __call__(self, params: Params) -> float:
        """The share of digits that a configuration gets wrong. Raises PointError for one outside the space."""
        levels = self.space.encode([params])[0]  # indices of the levels
        return float(self._errors[tuple(levels.long().tolist())])
