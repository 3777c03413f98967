"""One run of a study: who steers it, and who looks on."""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict

from lightning.pytorch import Trainer

from deepbore.data.observations import Trial
from deepbore.data.outcome import Outcome
from deepbore.data.trial import Budget
from deepbore.errors import SettingError
from deepbore.evaluators import Evaluator, ExecutorEvaluator, Objective, ProcessEvaluator, SerialEvaluator, Timed
from deepbore.loop.controller import LoopController
from deepbore.loop.lightning import listening, may_end, new_trainer, quiet, run, waiting_for
from deepbore.loop.state import RunState
from deepbore.loop.stopping import Listener, Steering, StopRule, as_rules
from deepbore.study.progress import ProgressBar, somebody_watches
from deepbore.validation import above, one_of, refusal, required, whole
from deepbore.worker.objective import takes_trial

if TYPE_CHECKING:
    from deepbore.study.study import Study

log = logging.getLogger(__name__)

StudyCallback = Callable[["Study", Trial], object]
MAX_FAILURES = 20  # without any success: where nine in ten configurations fail, one run in eight meets it


class Steered(TypedDict):
    """The settings of `Study.optimize` that say how a run goes, when it ends and who looks on; see there."""

    timeout: float | None
    stop_when: StopRule | Sequence[StopRule]
    max_failures: int | None
    callbacks: Sequence[StudyCallback]
    progress: bool | None
    batch_size: int


STEPS = {  # settings of a Trainer that a classifier, which takes its own steps, has no use for, and what means nothing
    "limit_train_batches": (None, 1),  # an epoch is one batch
    "gradient_clip_val": (None, 0),
    "accumulate_grad_batches": (None, 1),
    "precision": (None, 32, "32", "32-true"),
    "val_check_interval": (None, 1, 1.0),
}


def refuse_steps(trainer: Mapping[str, Any]) -> None:
    """Raises SettingError for settings of the steps of a Trainer: see `STEPS`."""
    for name, harmless in STEPS.items():
        if (given := trainer.get(name)) not in harmless:
            raise SettingError(
                f"a classifier takes its own steps on all trials, in full precision, so trainer.{name} does nothing "
                f"for it, but got {given!r}. Leave it out."
            )


def check_run(state: RunState, n_trials: int | None, trainer: Trainer | None, steered: Steered) -> None:
    """Raises SettingError for a setting of `Study.optimize` that is outside its range, or a run that nothing ends."""
    if state.observations.by_preference:
        raise SettingError("in a study of preferences nobody compares within `optimize`. Call ask and prefer instead.")
    whole(0, n_trials=n_trials)
    above(0, timeout=steered["timeout"])
    required(batch_size=steered["batch_size"])
    whole(1, max_failures=steered["max_failures"], batch_size=steered["batch_size"])
    one_of((True, False, None), progress=steered["progress"])
    rules, callbacks = as_rules(steered["stop_when"], state), steered["callbacks"]
    if not isinstance(callbacks, (list, tuple)) or not all(callable(each) for each in callbacks):
        raise SettingError(f"callbacks must be a list of functions of (study, trial), but got {callbacks!r:.100}.")
    for each in callbacks:
        if says := refusal(each, None, None):
            raise SettingError(f"callbacks must be functions of (study, trial), but {each!r:.100} is none: {says}.")
    if trainer is not None and not isinstance(trainer, Trainer):
        raise SettingError(f"trainer must be a lightning.pytorch.Trainer, but got {trainer!r:.100}. Leave it out.")
    if trainer is not None:
        refuse_steps({name: getattr(trainer, name) for name in STEPS})
    ends = (n_trials, steered["timeout"], rules or None, callbacks or None)
    ended = trainer is not None and may_end(trainer)
    if not ended and all(each is None for each in ends) and state.space.cardinality == math.inf:
        raise SettingError(
            "n_trials=None needs something else that ends the run. Give timeout=, stop_when= or n_trials."
        )


def steering_of(study: "Study", steered: Steered) -> Steering:
    """What ends a run of the study and hears of its trials, by checked settings."""
    rules = as_rules(steered["stop_when"], study._state)
    listeners = [listener(each, study) for each in steered["callbacks"]]
    return Steering(rules, steered["timeout"], steered["max_failures"], listeners, study._unlocked)


def run_steered(
    state: RunState,
    evaluator: Evaluator,
    n_trials: int | None,
    trainer: Trainer | None,
    steering: Steering,
    steered: Steered,
) -> None:
    """Evaluates until so many more trials are done, or the steering ends the run.

    Args:
        state: of the run, restored.
        evaluator: what turns trials into outcomes.
        n_trials: how many trials to ask for; None for no limit.
        trainer: the user's; None for one of our own.
        steering: when the run ends before that.
        steered: how it goes.

    Raises:
        KeyboardInterrupt: after Ctrl-C or SIGTERM.
        ObjectiveError: for an objective that gives no values.
    """
    goal = None if n_trials is None else state.observations.n_asked + n_trials
    own = trainer or new_trainer(state.observations.points.device)
    shown = somebody_watches() if steered["progress"] is None else steered["progress"]
    bar = ProgressBar(state.observations, goal, partial(logged_by, own), shown and own.is_global_zero)
    steering.listeners = [bar, *steering.listeners]
    batch_size, logs = steered["batch_size"], trainer is not None
    controller = LoopController(state, evaluator, goal, batch_size, logs, steering)
    with bar, steering.interrupts, waiting_for(own, "best_value"), listening(own, controller):
        run(own, state.module, state.data)
    if steering.is_interrupted:
        raise KeyboardInterrupt
    _say_what_ended(own, state.observations.n_asked, goal)


def _say_what_ended(trainer: Trainer, n: int, goal: int | None) -> None:
    """Logs that a limit of the trainer, rather than the goal of so many trials, has ended a run of n."""
    limit = trainer.max_epochs
    if goal is not None and n < goal and limit not in (None, -1) and trainer.current_epoch >= limit:
        log.warning("the run ends after %d of %d trials, at trainer.max_epochs=%d: give -1 for all.", n, goal, limit)


def logged_by(trainer: Trainer) -> Mapping[str, Any]:
    """What a trainer has logged, without what Lightning has to say when it is asked on several ranks."""
    with quiet():
        return trainer.callback_metrics


def check_objective(objective: Objective | Evaluator, budget: Budget | None) -> None:
    """Raises SettingError for what never hears of budgets, in an evaluator or not, or can't spend this one."""
    called = called_by(objective)
    if budget is None or called is None:
        return
    if not takes_trial(called):
        named = getattr(called, "function", called)
        raise SettingError(
            f"with a budget the objective takes the trial, too, but {named!r:.100} takes the configuration alone. "
            "Define it as objective(params, trial), and let it spend trial.budget."
        )
    if (check := getattr(called, "check_budget", None)) is not None:  # of a problem, which may know of limits
        check(budget)


def called_by(objective: Objective | Evaluator) -> Objective | None:
    """The function that is called with a trial in the end; None where an evaluator of somebody else's sees to it."""
    if isinstance(objective, Timed):
        return called_by(objective.own)
    if isinstance(objective, (SerialEvaluator, ExecutorEvaluator, ProcessEvaluator)):
        return objective.objective
    return None if isinstance(objective, Evaluator) else objective


def as_evaluator(objective: Objective | Evaluator) -> Evaluator:
    """What evaluates: a function is called in this process.

    Raises:
        SettingError: for what is neither a function nor an evaluator.
    """
    return objective if isinstance(objective, Evaluator) else SerialEvaluator(objective)


def listener(callback: StudyCallback, study: "Study") -> Listener:
    """What hears of the study's trials, for a function that wants the study and the trial."""

    def hears(row: int, _outcome: Outcome) -> None:
        callback(study, study.observations.trial(row))

    return hears
