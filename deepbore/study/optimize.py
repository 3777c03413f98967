"""`minimize` and `maximize`: an optimisation in one call."""

from collections.abc import Mapping
from functools import partial
from typing import Unpack

from deepbore.data.trial import Direction
from deepbore.errors import SettingError
from deepbore.evaluators import Evaluator, Objective
from deepbore.space import Parameter, SearchSpace
from deepbore.space.search_space import as_space
from deepbore.study.options import Arguments, Options, explicit
from deepbore.study.running import as_evaluator, check_names, check_run, check_takes_trial
from deepbore.study.study import Result, study_of
from deepbore.validation import whole


@explicit
def minimize(
    objective: Objective | Evaluator,
    space: SearchSpace | Mapping[str, Parameter],
    n_trials: int | None,
    **options: Unpack[Arguments],
) -> Result:
    """Finds a configuration with a small value; with `directions=`, trade-offs of several.

    Args:
        objective: configuration (a dict) -> value, or an evaluator of it: see `Study.optimize`.
        space: the search space, or a dict of its parameters.
        n_trials: how many evaluations in all, >= 1: those of a run that is loaded count, so that a script may be run
            again. (`Study.optimize` counts those that are added.) None for no limit, where something else ends the run.
        options: what the study is made of, and how it runs: see `StudyOptions` and `RunOptions`.

    Raises:
        SettingError: for a setting outside its range, or parts that do not go together, before anything is evaluated.
        JournalError, ObjectiveError, KeyboardInterrupt: as of `Study` and `Study.optimize`.

    Example:
        >>> from deepbore import Real, minimize
        >>> result = minimize(lambda p: (p["x"] - 0.3) ** 2, {"x": Real(0, 1)}, n_trials=20, seed=0)
        >>> abs(result.best_params["x"] - 0.3) < 0.05
        True
    """
    return _optimized(objective, space, n_trials, _with_direction("minimize", options))


@explicit
def maximize(
    objective: Objective | Evaluator,
    space: SearchSpace | Mapping[str, Parameter],
    n_trials: int | None,
    **options: Unpack[Arguments],
) -> Result:
    """Finds a configuration with a large value.

    Args:
        objective: as all that follow, see `minimize`.
        space: the search space.
        n_trials: how many evaluations, in all.
        options: what the study is made of, and how it runs.
    """
    return _optimized(objective, space, n_trials, _with_direction("maximize", options))


def _with_direction(direction: Direction, options: Arguments) -> Options:
    """All options: of several objectives each has its own direction, and in a study of preferences there is none.

    Raises:
        SettingError: for directions that all say the opposite.
    """
    is_said = options.get("directions") is not None or options.get("preferences")
    found = Options(**options) if is_said else Options(direction=direction, **options)
    if found.directions is not None and direction not in (said := found.all_directions) and said:
        raise SettingError(f"{direction}(...) was called, but all its directions say {said[0]!r}. Call {said[0]}(...).")
    return found


def _optimized(
    objective: Objective | Evaluator,
    space: SearchSpace | Mapping[str, Parameter],
    n_trials: int | None,
    options: Options,
) -> Result:
    whole(1, n_trials=n_trials)
    evaluator = as_evaluator(objective, options.workers)
    check_takes_trial(objective, options.budget, options.pruner)
    check_names(objective, as_space(space))
    study = study_of(space, options, partial(check_run, n_trials=n_trials, trainer=None, options=options))
    left = None if n_trials is None else max(0, n_trials - study.observations.ledger.n_asked)
    try:
        of_run = options.of_run
        of_run["workers"] = 1  # the evaluator has them
        return study.optimize(evaluator, left, **of_run)
    finally:
        study.close()  # the caller has no study to close yet; one that continues takes the lock again
