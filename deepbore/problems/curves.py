"""Tables of learning curves, shipped with deepbore: what a network is worth after each epoch."""

from pathlib import Path

import numpy as np

from deepbore.checks import one_of
from deepbore.data.trial import Trial
from deepbore.errors import SettingError
from deepbore.problems.base import Problem
from deepbore.space import Ordinal, Params, SearchSpace

TABLE = Path(__file__).with_suffix(".npz")  # made by scripts/make_learning_curves.py
EPOCHS = 81
LEVELS: dict[str, tuple[float, ...]] = {
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
    by Adam for 81 epochs on two thirds of a data set of scikit-learn's. The loss is the cross-entropy, or for diabetes
    the mean squared error of the standardised target. Curves cross: what learns fast overfits.

    In a study with `Budget("epochs", 1, 81)` a trial's value is that after the epochs of its budget; without a budget
    it is that after all 81. There is no noise; the optimum is the best entry after 81 epochs.

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
        self.space = SearchSpace({each: Ordinal(list(levels)) for each, levels in LEVELS.items()})
        with np.load(TABLE) as table:
            self._losses = table[name].astype(np.float64)
        self.optimum = float(np.nanmin(self._losses[..., -1]))

    def __call__(self, params: Params, trial: Trial | None = None) -> float:
        """The loss of a configuration after the epochs of the trial's budget, or after all 81."""
        return self.after(params, EPOCHS if trial is None or trial.budget is None else trial.budget)

    def after(self, params: Params, epochs: float) -> float:
        """The loss of a configuration after 1 to 81 epochs; NaN where the training has diverged.

        Raises:
            PointError: for a configuration outside the space.
            SettingError: for another number of epochs.
        """
        if epochs not in range(1, EPOCHS + 1):
            raise SettingError(f"epochs must be a whole number from 1 to {EPOCHS}, but got {epochs!r}.")
        levels = self.space.encode([params])[0]  # indices of the levels
        return float(self._losses[(*levels.long().tolist(), int(epochs) - 1)])
