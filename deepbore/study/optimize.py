"""`minimize` and `maximize`: an optimisation in one call."""

from typing import Any

from deepbore.evaluators import Evaluator, Objective
from deepbore.space import SearchSpace
from deepbore.study.study import Result, Study


def minimize(objective: Objective | Evaluator, space: SearchSpace, n_trials: int, **settings: Any) -> Result:
    """Finds a configuration with a small value.

    Args:
        objective: configuration (a dict) -> value, or an evaluator of it: see `Study.optimize`.
        space: the search space.
        n_trials: how many evaluations.
        settings: seed, classifier, journal, ...: see `Study`.

    Example:
        >>> from deepbore import Real, SearchSpace, minimize
        >>> result = minimize(lambda p: (p["x"] - 0.3) ** 2, SearchSpace({"x": Real(0, 1)}), n_trials=20, seed=0)
        >>> abs(result.best_params["x"] - 0.3) < 0.05
        True
    """
    return Study(space, direction="minimize", **settings).optimize(objective, n_trials)


def maximize(objective: Objective | Evaluator, space: SearchSpace, n_trials: int, **settings: Any) -> Result:
    """Finds a configuration with a large value: `minimize` the other way up."""
    return Study(space, direction="maximize", **settings).optimize(objective, n_trials)
