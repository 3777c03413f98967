"""`minimize` and `maximize`: an optimisation in one call."""

import os
from typing import Unpack

from deepbore.compute.devices import Device
from deepbore.evaluators import Evaluator, Objective
from deepbore.space import SearchSpace
from deepbore.study.study import Study
from deepbore.study.view import Parts, Result


def minimize(
    objective: Objective | Evaluator,
    space: SearchSpace,
    n_trials: int,
    *,
    seed: int = 0,
    journal: str | os.PathLike[str] | None = None,
    device: Device = "cpu",
    **parts: Unpack[Parts],
) -> Result:
    """Finds a configuration with a small value.

    Args:
        objective: configuration (a dict) -> value, or an evaluator of it: see `Study.optimize`.
        space: the search space.
        n_trials: how many evaluations.
        seed: of everything random.
        journal: file that keeps every event.
        device: where points, classifier and search live.
        parts: classifier, acquisition, candidates, labels, gamma, n_initial: see `Study`.

    Example:
        >>> from deepbore import Real, SearchSpace, minimize
        >>> result = minimize(lambda p: (p["x"] - 0.3) ** 2, SearchSpace({"x": Real(0, 1)}), n_trials=20, seed=0)
        >>> abs(result.best_params["x"] - 0.3) < 0.05
        True
    """
    study = Study(space, direction="minimize", seed=seed, journal=journal, device=device, **parts)
    return study.optimize(objective, n_trials)


def maximize(
    objective: Objective | Evaluator,
    space: SearchSpace,
    n_trials: int,
    *,
    seed: int = 0,
    journal: str | os.PathLike[str] | None = None,
    device: Device = "cpu",
    **parts: Unpack[Parts],
) -> Result:
    """Finds a configuration with a large value: `minimize` the other way up."""
    study = Study(space, direction="maximize", seed=seed, journal=journal, device=device, **parts)
    return study.optimize(objective, n_trials)
