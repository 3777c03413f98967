"""One run of a study: checks of its settings, its progress bar, and what drives its iterations."""

import logging
import math
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self, SupportsFloat

from deepbore.classifiers.base import Classifier
from deepbore.compute.devices import check_float64
from deepbore.data.observations import Observations
from deepbore.data.outcome import Outcome
from deepbore.data.trial import Budget
from deepbore.errors import SettingError
from deepbore.evaluators import Evaluator, ExecutorEvaluator, Objective, ProcessEvaluator, SerialEvaluator, Timed
from deepbore.loop.quiet import quiet
from deepbore.loop.runner import PlainLoop, Run
from deepbore.loop.state import RunState
from deepbore.loop.stopping import RunControl, as_rules
from deepbore.pruners import Pruner
from deepbore.space import SearchSpace
from deepbore.study.options import RunOptions
from deepbore.validation import whole
from deepbore.worker.objective import by_keywords, keywords_of, takes_trial

if TYPE_CHECKING:
    from lightning.pytorch import Trainer

log = logging.getLogger(__name__)

STEPS: dict[str, tuple[Any, ...]] = {  # settings of a Trainer that mean its own steps, and their neutral values
    "limit_train_batches": (None, 1),  # an epoch is one batch
    "gradient_clip_val": (None, 0),
    "accumulate_grad_batches": (None, 1),
    "precision": (None, 32, "32", "32-true"),
}
NEVER: dict[str, tuple[Any, ...]] = {"val_check_interval": (None, 1, 1.0)}  # there is no validation
HALF = ("16-true", "bf16-true", "transformer-engine", "transformer-engine-float16")  # precisions of weights


# --- checks ----------------------------------------------------------------------------------------------------------


def as_evaluator(objective: Objective | Evaluator, workers: int = 1) -> Evaluator:
    """The evaluator of an objective: a function is called in this process, or by several workers in theirs.

    Raises:
        SettingError: for anything but a function or an evaluator, or workers of what is an evaluator already.
    """
    if not isinstance(objective, Evaluator):
        return SerialEvaluator(objective) if workers == 1 else ProcessEvaluator(objective, workers)
    if workers != 1:
        name = type(objective).__name__
        raise SettingError(
            f"a {name} has workers of its own, but got workers={workers}. Give {name}(..., workers=...)."
        )
    return objective


def check_takes_trial(objective: Objective | Evaluator, budget: Budget | None, pruner: Pruner | None = None) -> None:
    """Raises SettingError for an objective, in an evaluator or not, that takes no trial, or not this budget."""
    called = called_by(objective)
    if (budget is None and pruner is None) or called is None:
        return
    if not takes_trial(called):
        named = getattr(called, "function", called)
        what, use = ("budget", "spend trial.budget") if budget is not None else ("pruner", "call trial.report")
        raise SettingError(
            f"with a {what} the objective takes the trial, too, but {named!r:.100} takes the configuration alone. "
            f"Define it as objective(params, trial), and let it {use}."
        )
    check = getattr(called, "check_budget", None)  # of a problem, which may know of limits
    if budget is not None and check is not None:
        check(budget)


def check_names(objective: Objective | Evaluator, space: SearchSpace) -> None:
    """Raises SettingError for an objective that takes parameters by their names, if they are not those of the space."""
    called = called_by(objective)
    function = getattr(called, "function", called)
    if function is None or not by_keywords(function):
        return
    needed, taken = keywords_of(function)
    missing = sorted(needed - set(space.names))
    surplus = sorted(set(space.names) - taken) if taken is not None else []
    if missing or surplus:
        wrong = f"needs {', '.join(missing)}, which the space has not" if missing else f"takes no {', '.join(surplus)}"
        raise SettingError(
            f"an objective takes the dict of parameters, or each by its name, but {function!r:.100} {wrong}; the space "
            f"has {', '.join(space.names)}. Give lambda params: {getattr(function, '__name__', 'train')}(**params), "
            "with what it needs."
        )


def called_by(objective: Objective | Evaluator) -> Objective | None:
    """The function that is called with a trial in the end; None for an evaluator of the user's, which decides."""
    if isinstance(objective, Timed):
        return called_by(objective.own)
    if isinstance(objective, (SerialEvaluator, ExecutorEvaluator, ProcessEvaluator)):
        return objective.objective
    return None if isinstance(objective, Evaluator) else objective


def refuse_steps(trainer: Mapping[str, Any], models: Sequence[Classifier]) -> None:
    """Raises SettingError for settings of a Trainer that the models can't follow: see `STEPS`."""
    from deepbore.loop.lightning import may_be_stepped  # takes seconds

    for name, harmless in (NEVER if may_be_stepped(models) else NEVER | STEPS).items():
        if (given := trainer.get(name)) not in harmless:
            raise SettingError(
                f"only a single head of networks takes the steps of a Trainer, so trainer.{name} does nothing for "
                f"{' and '.join(type(each).__name__ for each in models)}, but got {given!r}. Leave it out."
            )
    if trainer.get("precision") in HALF:
        raise SettingError(
            f"weights of 16 bits can't tell near points apart, but got trainer.precision={trainer['precision']!r}. "
            'Give "bf16-mixed", which computes in 16 bits and keeps weights of 32.'
        )


def check_run(state: RunState, n_trials: int | None, trainer: "Trainer | None", options: RunOptions) -> None:
    """Raises SettingError for a run that can't be, by the study's state, or that nothing ends."""
    if state.observations.ledger.by_preference:
        raise SettingError("a study of preferences has no values to optimise. Call ask and prefer instead.")
    whole(0, n_trials=n_trials)
    rules = as_rules(options.stop_when, state)
    ends = (n_trials, options.timeout, state.cost_limit, rules or None, options.callbacks or None)
    ended = trainer is not None and _ends_by_itself(trainer, state.models)
    if not ended and all(each is None for each in ends) and state.space.cardinality == math.inf:
        raise SettingError(
            "n_trials=None needs something else that ends the run. Give timeout=, cost_limit=, stop_when= or n_trials."
        )


def _ends_by_itself(trainer: "Trainer", models: Sequence[Classifier]) -> bool:
    """Whether a trainer may end a run. Raises SettingError for one that can't run it."""
    from lightning.pytorch import Trainer

    from deepbore.loop.lightning import has_own_limit

    if not isinstance(trainer, Trainer):
        raise SettingError(f"trainer must be a lightning.pytorch.Trainer, but got {trainer!r:.100}. Leave it out.")
    refuse_steps({name: getattr(trainer, name) for name in NEVER | STEPS}, models)
    check_float64(trainer.strategy.root_device)
    return has_own_limit(trainer)


# --- its progress ----------------------------------------------------------------------------------------------------


class ProgressBar:
    """Trials done, best value, failures and, if the run logs them, threshold and seconds per suggestion, on one line.

    Args:
        observations: what is shown.
        goal: how many trials the study has in the end; None if that is unknown.
        logged: returns what the run has logged, by name.
        shown: whether anything is shown.
    """

    def __init__(
        self,
        observations: Observations,
        goal: int | None,
        logged: Callable[[], Mapping[str, SupportsFloat]] = dict,
        shown: bool = True,
    ):
        self.observations, self.goal, self.logged, self.shown = observations, goal, logged, shown
        self.bar: Any = None
        self._shows_warning = warnings.showwarning

    def __enter__(self) -> Self:
        if self.shown:
            n_pending = len(self.observations.columns.pending_rows)
            done = self.observations.ledger.n_asked - n_pending
            self.bar = _tqdm()(total=self.goal, initial=done, desc="trials", unit="trial", dynamic_ncols=True)
            self._shows_warning, warnings.showwarning = warnings.showwarning, self._show_warning
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            if warnings.showwarning == self._show_warning:  # unless the program has replaced it since
                warnings.showwarning = self._shows_warning
            self._show()
            self.bar.close()
            self.bar = None

    def __call__(self, row: int, outcome: Outcome) -> None:
        """Moves on by one trial."""
        if self.bar is not None:
            self._show()
            self.bar.update()

    def _show_warning(self, *about: Any, **more: Any) -> None:
        """A warning on a line of its own, above the bar."""
        with _tqdm().external_write_mode(file=sys.stderr):
            self._shows_warning(*about, **more)

    def _show(self) -> None:
        observations, logged = self.observations, self.logged()
        best = observations.best if observations.k == 1 else None
        shown = {
            "best": math.nan if best is None or best.value is None else best.value,
            "tau": float(logged.get("tau", math.nan)),
            "s/suggestion": float(logged.get("seconds_per_suggestion", math.nan)),
            "failed": observations.ledger.statistics.n_failed or math.nan,
            "pruned": observations.ledger.statistics.n_pruned or math.nan,
        }
        known = {name: f"{value:.4g}" for name, value in shown.items() if not math.isnan(value)}
        self.bar.set_postfix(known, refresh=False)


def is_interactive() -> bool:
    """Whether stderr is a terminal, or this is a notebook."""
    if sys.stderr is not None and sys.stderr.isatty():
        return True
    return "ipykernel.zmqshell" in sys.modules and sys.modules["IPython"].get_ipython() is not None


def _tqdm() -> Any:
    """The bar for a terminal or a notebook; without ipywidgets a notebook gets a bar of text, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm  # only for runs that show one
    return tqdm


# --- the run ---------------------------------------------------------------------------------------------------------


def run_trials(
    state: RunState,
    evaluator: Evaluator,
    n_trials: int | None,
    trainer: "Trainer | None",
    control: RunControl,
    options: RunOptions,
) -> None:
    """Evaluates until so many more trials are done, or `control` ends the run.

    Args:
        state: of the run, restored.
        evaluator: turns trials into outcomes.
        n_trials: how many trials to ask for; None for no limit.
        trainer: the user's; None for one of our own.
        control: ends the run early.
        options: how it goes.

    Raises:
        KeyboardInterrupt: after Ctrl-C or SIGTERM.
        ObjectiveError: for an objective that gives no values.
    """
    goal = None if n_trials is None else state.observations.ledger.n_asked + n_trials
    shown = is_interactive() if options.progress is None else options.progress
    run = Run(state, evaluator, goal, options.batch_size, control)
    if trainer is None and all(model.closed_form for model in state.models):
        _in_a_plain_loop(run, shown)
    else:
        _by_a_trainer(run, trainer, shown)
    if control.is_interrupted:
        raise KeyboardInterrupt
    control.end()
    state.observations.note_finished()


def _in_a_plain_loop(run: Run, shown: bool) -> None:
    """Drives a run whose models learn in closed form; Lightning is not imported."""
    bar = ProgressBar(run.state.observations, run.n_trials, shown=shown)
    run.control.listeners = [bar, *run.control.listeners]
    with bar, run.control.interrupts:
        PlainLoop(run).drive()


def _by_a_trainer(run: Run, trainer: "Trainer | None", shown: bool) -> None:
    """Drives a run at the end of each epoch of one `fit`, of the user's Trainer or one of our own."""
    from deepbore.loop.controller import LoopController  # these take seconds
    from deepbore.loop.lightning import listening, new_trainer, run as fit, tolerating_nan

    observations, control = run.state.observations, run.control
    own = trainer or new_trainer(observations.points.device)
    bar = ProgressBar(observations, run.n_trials, partial(logged_by, own), shown and own.is_global_zero)
    control.listeners = [bar, *control.listeners]
    if own.loggers and own.is_global_zero:
        from deepbore.loop.trial_logs import TrialLog

        control.listeners.append(TrialLog(observations, own.loggers))
    controller = LoopController(run, logs=trainer is not None)
    with bar, control.interrupts, tolerating_nan(own, "best_value"), listening(own, controller):
        fit(own, run.state.module, run.state.data)
    if not control.is_interrupted:
        _log_early_end(own, observations.ledger.n_asked, run.n_trials)


def _log_early_end(trainer: "Trainer", n: int, goal: int | None) -> None:
    """Logs that a limit of the trainer, rather than the goal of so many trials, has ended a run of n."""
    limit = trainer.max_epochs
    if goal is not None and n < goal and limit not in (None, -1) and trainer.current_epoch >= limit:
        log.warning("the run ends after %d of %d trials, at trainer.max_epochs=%d: give -1 for all.", n, goal, limit)


def logged_by(trainer: "Trainer") -> Mapping[str, Any]:
    """What a trainer has logged, without Lightning's warnings under several ranks."""
    with quiet():
        return trainer.callback_metrics
