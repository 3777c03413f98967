"""`minimize` and `maximize`: an optimisation in one call."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypedDict, cast

from deepbore.acquisition import Acquisition
from deepbore.candidates import Candidates
from deepbore.classifiers import Classifier
from deepbore.compute.devices import Device, as_device
from deepbore.compute.torch_state import clean_torch_state
from deepbore.data.observations import Direction
from deepbore.data.trial import Budget
from deepbore.evaluators import Evaluator, Objective
from deepbore.labels import Gamma, Labelling
from deepbore.loop.stopping import StopRule
from deepbore.space import SearchSpace
from deepbore.strategies import Strategy
from deepbore.study.opening import IfExists, opened
from deepbore.study.running import MAX_FAILURES, Steered, StudyCallback, as_evaluator, check_objective, check_run
from deepbore.study.study import Study
from deepbore.study.view import Parts, Result
from deepbore.validation import whole


def minimize(
    objective: Objective | Evaluator,
    space: SearchSpace,
    n_trials: int | None,
    *,
    seed: int = 0,
    timeout: float | None = None,
    stop_when: StopRule | Sequence[StopRule] = (),
    max_failures: int | None = MAX_FAILURES,
    callbacks: Sequence[StudyCallback] = (),
    progress: bool | None = None,
    batch_size: int = 1,
    journal: str | os.PathLike[str] | None = None,
    if_exists: IfExists = "error",
    strategy: Strategy | None = None,
    classifier: Classifier | None = None,
    acquisition: Acquisition | None = None,
    candidates: Candidates | None = None,
    labels: Labelling | None = None,
    gamma: Gamma | None = None,
    n_initial: int | None = None,
    budget: Budget | None = None,
    device: Device = "cpu",
) -> Result:
    """Finds a configuration with a small value.

    Args:
        objective: configuration (a dict) -> value, or an evaluator of it: see `Study.optimize`.
        space: the search space.
        n_trials: how many evaluations, >= 1, those of a run that is loaded included; None for no limit, where something
            else ends the run.
        seed: of everything random.
        timeout: seconds after which no further trial begins; this and what follows up to `batch_size`: see
            `Study.optimize`.
        stop_when: rules that end the run.
        max_failures: if the first so many evaluations have all failed, that is an error.
        callbacks: functions of (study, trial), called after each trial.
        progress: whether to show a bar; None for: in a terminal and a notebook.
        batch_size: trials proposed in one iteration.
        journal: file that keeps every event; this and all that follow: see `Study`.
        if_exists: what happens if the journal holds a run: "error", or "load" to go on with it.
        strategy: what proposes, a new one for each run; as all that follow, see `Study`.
        classifier: what learns, a new one for each run.
        acquisition: what is maximised.
        candidates: how it is maximised.
        labels: how outcomes become labels.
        gamma: proportion of good observations for the default labels.
        n_initial: trials of a Sobol design before the classifier is asked.
        budget: cheap fidelities; the objective then takes the trial, too, for its `budget` and `resume_from`.
        device: where points, classifier and search live.

    Example:
        >>> from deepbore import Real, SearchSpace, minimize
        >>> result = minimize(lambda p: (p["x"] - 0.3) ** 2, SearchSpace({"x": Real(0, 1)}), n_trials=20, seed=0)
        >>> abs(result.best_params["x"] - 0.3) < 0.05
        True
    """
    return _optimized("minimize", **locals())  # all that was given


def maximize(
    objective: Objective | Evaluator,
    space: SearchSpace,
    n_trials: int | None,
    *,
    seed: int = 0,
    timeout: float | None = None,
    stop_when: StopRule | Sequence[StopRule] = (),
    max_failures: int | None = MAX_FAILURES,
    callbacks: Sequence[StudyCallback] = (),
    progress: bool | None = None,
    batch_size: int = 1,
    journal: str | os.PathLike[str] | None = None,
    if_exists: IfExists = "error",
    strategy: Strategy | None = None,
    classifier: Classifier | None = None,
    acquisition: Acquisition | None = None,
    candidates: Candidates | None = None,
    labels: Labelling | None = None,
    gamma: Gamma | None = None,
    n_initial: int | None = None,
    budget: Budget | None = None,
    device: Device = "cpu",
) -> Result:
    """Finds a configuration with a large value: `minimize` the other way up."""
    return _optimized("maximize", **locals())  # all that was given


class Opening(TypedDict):
    """Where a run comes from."""

    seed: int
    journal: str | os.PathLike[str] | None
    if_exists: IfExists
    budget: Budget | None


def _optimized(
    direction: Direction, objective: Objective | Evaluator, space: SearchSpace, n_trials: int | None, **given: Any
) -> Result:
    whole(1, n_trials=n_trials)
    evaluator = as_evaluator(objective)
    check_objective(objective, given["budget"])
    opening, parts, steered = (_among(given, kind) for kind in (Opening, Parts, Steered))
    check = partial(check_run, n_trials=n_trials, trainer=None, steered=cast(Steered, steered))
    device = as_device(given["device"])
    with clean_torch_state():
        study = Study.__new__(Study)._begin(opened(space, direction, None, check=check, **opening, **parts), device)
    left = None if n_trials is None else max(0, n_trials - study.observations.n_asked)
    try:
        return study.optimize(evaluator, left, **steered)
    finally:
        study.close()  # nobody else could; whoever goes on with the result's study takes the lock again


def _among(given: Mapping[str, Any], kind: type) -> dict[str, Any]:
    """Those of the arguments that a TypedDict has."""
    return {name: given[name] for name in kind.__annotations__}
