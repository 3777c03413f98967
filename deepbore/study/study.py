"""`Study`: an optimisation by ask and tell, or with an objective that it evaluates by itself."""

import json
import logging
import math
import os
import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, wraps
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Self, SupportsFloat, TypeVar, Unpack

import numpy as np

from deepbore.classifiers import Classifier
from deepbore.compute.devices import Device, as_device, stream_seed
from deepbore.compute.distributed import Ranks
from deepbore.compute.torch_state import clean_torch_state
from deepbore.data.imported import (
    ImportedResults,
    Outside,
    as_frame,
    as_params,
    dropped,
    read_csv,
    rows_inside,
    rows_of,
    with_defaults,
)
from deepbore.data.journal import replace_file
from deepbore.data.log import Log
from deepbore.data.logged import Artifact, artifacts_path, given_metrics, kept
from deepbore.data.observations import Observations, Trial, several_budgets
from deepbore.data.outcome import Outcome, as_cost, as_noise, as_number, as_outcome
from deepbore.data.reports import Stages, as_step
from deepbore.data.summary import Summary, summary_of
from deepbore.data.trial import ROUNDING, Status, Trials, finite
from deepbore.errors import (
    DeepBoreError,
    DeprecatedUse,
    NoBestTrial,
    SettingError,
    StudyRunning,
    TrialError,
    ValueTypeError,
)
from deepbore.evaluators import Evaluator, Objective
from deepbore.loop.engine import Engine, TrialAllocator, learn
from deepbore.loop.metrics import Metrics
from deepbore.loop.recommending import recommend
from deepbore.loop.state import RunState
from deepbore.loop.stopping import Listener, RunControl, as_rules
from deepbore.names import no_attribute
from deepbore.space import Parameter, Params, SearchSpace
from deepbore.space.search_space import check_known
from deepbore.study.commands import take_up
from deepbore.study.opening import WRITERS, Check, Loaded, loaded, opened
from deepbore.study.options import (
    Parts,
    RunArguments,
    RunOptions,
    StudyArguments,
    StudyCallback,
    StudyOptions,
    explicit,
)
from deepbore.study.running import as_evaluator, check_names, check_run, check_takes_trial, run_trials
from deepbore.text import as_html
from deepbore.validation import above, as_path, required, whole, within
from deepbore.worker.reporting import Reporting

if TYPE_CHECKING:
    import pandas as pd
    from lightning.pytorch import Trainer

P = ParamSpec("P")
T = TypeVar("T")
log = logging.getLogger(__name__)
RERUN, EDITED = "run again", "edited before it ran"  # reasons of withdrawn trials
SHOWN = 10  # trials of a front in a notebook
LARGEST_BATCH = 1_000_000


@dataclass(frozen=True, repr=False)
class Result:
    """What an optimisation found.

    Attributes:
        best_value: the best feasible value, in the user's sign; NaN if there is none.
        values: all values in the order of asking, in the user's sign, NaN for failures and for pending trials: n, or
            n x k for several objectives.
        study: the study, to continue with.
        best_trial: the trial of the best value; None if there is none, or there are several objectives, which have a
            `pareto_front` instead.
    """

    best_value: float
    values: np.ndarray
    study: "Study"
    best_trial: Trial | None

    def __repr__(self) -> str:
        """The best value and configuration, or the size of the front."""
        if self.values.ndim > 1:
            return f"Result({len(self.pareto_front)} trials on the front of {len(self.values)})"
        best = None if self.best_trial is None else self.best_trial.params
        return f"Result(best_value={self.best_value:.6g}, best_params={best}, trials={len(self.values)})"

    def _repr_html_(self) -> str:
        return self.study._repr_html_()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            known = [*self.__dataclass_fields__, "best_params", "pareto_front", "recommended"]
            hint = "" if name.startswith("_") or not hasattr(type(self.study), name) else f" Give result.study.{name}."
            error = no_attribute("a result", name, known)
            raise AttributeError(f"{error}{hint}", name=name)

    @classmethod
    def of(cls, study: "Study") -> "Result":
        """The result of a study so far."""
        observations = study.observations
        values = observations.columns.user_values.cpu().numpy()
        if observations.k > 1:
            return cls(float("nan"), values, study, None)
        best = observations.best
        if best is None or best.value is None:
            return cls(float("nan"), values[:, 0], study, None)
        return cls(best.value, values[:, 0], study, best)

    @property
    def best_params(self) -> Params:
        """The configuration of the best trial.

        Raises:
            NoBestTrial: if no trial has a feasible value, or there are several objectives. `best_trial` is None then.
        """
        if self.best_trial is None:
            raise _no_best(self.study, "result")
        return self.best_trial.params

    @property
    def pareto_front(self) -> list[Trial]:
        """The trade-offs to choose from, by all that the study knows now: `StudyTrials.front`."""
        return self.study.trials.front

    @property
    def recommended(self) -> Trial | None:
        """The choice where values are noisy, by all that the study knows now: `Study.recommended`."""
        return self.study.recommended


def _no_best(study: "Study", name: str = "study") -> NoBestTrial:
    """The error that says why there is no best configuration, or value, and where to look instead."""
    ledger = study.state.observations.ledger
    if ledger.k > 1:
        return NoBestTrial(f"several objectives have no single best. See {name}.pareto_front.")
    return NoBestTrial(
        f"none of {ledger.n_asked} trials has a feasible value so far. {name}.best_trial is None until one has."
    )


def locked(method: "Callable[Concatenate[Study, P], T]") -> "Callable[Concatenate[Study, P], T]":
    """Decorator of a method that one thread calls at a time, in torch's usual modes."""

    @wraps(method)
    def call(self: "Study", /, *args: P.args, **kwargs: P.kwargs) -> T:
        is_outermost = not self._is_entered
        try:
            with self._lock, clean_torch_state():
                if is_outermost:
                    self._settle()
                return method(self, *args, **kwargs)
        finally:
            self._catch_up()

    return call


def queued(method: "Callable[Concatenate[Study, P], None]") -> "Callable[Concatenate[Study, P], None]":
    """Decorator of a method as `locked`; a call from within another one of this thread is done right after it.

    Signal handlers, finalizers (`__del__`) and callbacks of a Trainer may come at any line, such as between the two
    halves of a write.
    """
    locked_method = locked(method)

    @wraps(method)
    def call(self: "Study", /, *args: P.args, **kwargs: P.kwargs) -> None:
        if self._is_entered:
            self._later.append(partial(method, self, *args, **kwargs))
        else:
            locked_method(self, *args, **kwargs)

    return call


def locked_between_runs(method: "Callable[Concatenate[Study, P], T]") -> "Callable[Concatenate[Study, P], T]":
    """Decorator of a method as `locked`; raises StudyRunning while `optimize` runs, or from within another call."""

    @wraps(method)
    def checked(self: "Study", /, *args: P.args, **kwargs: P.kwargs) -> T:
        if self._control is not None:
            raise StudyRunning(
                f"while `optimize` runs it alone asks the study, but `{method.__name__}` was called. Call it after the "
                "run; `enqueue` has a configuration tried next, and `stop` ends the run."
            )
        return method(self, *args, **kwargs)

    locked_method = locked(checked)

    @wraps(method)
    def call(self: "Study", /, *args: P.args, **kwargs: P.kwargs) -> T:
        if self._is_entered and self._control is None:
            raise StudyRunning(
                f"`{method.__name__}` was called, as by a signal handler or a finalizer, while another call of the "
                "study is at work in this thread. Call it after that; tell, add, annotate and enqueue may come now."
            )
        return locked_method(self, *args, **kwargs)

    return call


ELSEWHERE = {  # attribute of a study -> where it is, too
    "add_csv": "add",
    "classifier": "state.classifier",
    "observations": "state.observations",
    "pareto_front": "trials.front",
    "pending": "trials.pending",
    "space": "state.space",
    "summary": "trials.summary",
    "suspicious": "trials.suspicious",
    "to_frame": "trials.to_frame",
    "to_json": "trials.to_json",
}


@explicit
class Study:
    """An optimisation that you drive: ask for trials, evaluate them where you like, tell their values.

    A study may be used from several threads, one call at a time. A call that fails leaves it as it was. What a signal
    handler or a finalizer tells, corrects, withdraws, adds, annotates, fixes or enqueues while another call is at work
    in the same thread is done right after that; what it asks for then is refused.

    What users need is here; `trials` can be asked for more, and `state` has what parts and plots ask.

    Args:
        space: the search space, or a dict of its parameters. Its default configuration is tried first, if it has one:
            `Real(1e-5, 1e-1, log=True, default=1e-3)`.
        options: what the study is made of: see `StudyOptions`.

    Raises:
        SettingError: for a setting outside its range, or parts that do not go together.
        JournalError: if the journal holds a run already, or with "load" another one.

    Example:
        >>> from deepbore import Real, Study
        >>> study = Study({"x": Real(-1, 1)}, seed=0)
        >>> for trial in study.ask(4):
        ...     study.tell(trial, trial.params["x"] ** 2)
        >>> study.best_value < 0.5
        True
    """

    @clean_torch_state()
    def __init__(self, space: SearchSpace | Mapping[str, Parameter], **options: Unpack[StudyArguments]):
        self._begin(space, StudyOptions(**options))

    @classmethod
    @clean_torch_state()
    def load(
        cls,
        journal: str | os.PathLike[str] | Log,
        *,
        space: SearchSpace | Mapping[str, Parameter] | None = None,
        device: Device = "cpu",
        **parts: Unpack[Parts],
    ) -> Self:
        """The study that a journal keeps, ready to continue, and to write to the same journal.

        It proposes what it would have proposed without interruption: its settings stand in the header of the journal,
        its state in the snapshot beside it (run.jsonl -> run.jsonl.ckpt). Looking at it disturbs no writer; the first
        `ask`, ... takes the lock.

        Args:
            journal: the file, or the directory of a run of the command line; or a `deepbore.data.log.Log` of your own.
            space: only where it has functions as constraints, or objects as choices: a journal keeps their names alone.
            device: as in `Study`.
            parts: classifier, acquisition, ... to continue with others than in the header, which is logged, or where
                the header can't name them.

        Raises:
            JournalError: for a missing, damaged or contradictory journal, or one of another space than is given.
            SettingError: for a part that the header can't name.
        """
        study = cls.__new__(cls)
        study._hold(loaded(journal, space, **parts), device)
        return study

    def _begin(
        self, space: SearchSpace | Mapping[str, Parameter], options: StudyOptions, check: Check | None = None
    ) -> None:
        self._hold(opened(space, options, check), options.device)

    def _hold(self, run: RunState | Loaded, device: Device) -> None:
        """Takes the state of a run, and makes what works on it."""
        self._loaded = run if isinstance(run, Loaded) else None  # until the study continues
        self._state = run.state if isinstance(run, Loaded) else run
        self._device = as_device(device)
        self._allocator = TrialAllocator(Engine(self._state), self._device)
        self._lock = threading.RLock()
        self._later: deque[partial[None]] = deque()  # calls that came within another one of the same thread
        self._control: RunControl | None = None  # of the run in progress
        self._recommendation: tuple[tuple[int, ...], int | None] | None = None  # with the counts that it is based on
        self._asked: dict[int, float] = {}  # row -> when `ask` gave it, in seconds since 1970
        self._stages: dict[int, Stages] = {}  # row -> the steps that a running trial has reported
        self._promoted: dict[int, int] = {}  # row -> the one that continues it, where `report` has promoted it
        self.state.observations.to(self._device)
        if self.state.observations.journal is not None:
            weakref.finalize(self, self.state.observations.journal.close)
            WRITERS[self.state.observations.journal.path] = self

    def __repr__(self) -> str:
        """How many trials it has, and the best value."""
        observations = self.state.observations
        counted = {
            "pending": len(observations.columns.pending_rows),
            "failed": observations.ledger.statistics.n_failed,
            "pruned": observations.ledger.statistics.n_pruned,
            "withdrawn": observations.ledger.statistics.n_withdrawn,
        }
        parts = [f"{len(observations)} trials", *(f"{n} {status}" for status, n in counted.items() if n)]
        best = observations.best if observations.k == 1 else None
        return f"Study({', '.join(parts)}{'' if best is None else f', best {best.value:.6g}'})"

    def _repr_html_(self) -> str:
        """The best trial, or the first of the front, as a table for notebooks; then the run in ten lines."""
        observations = self.state.observations
        shown = self.trials.front[:SHOWN]
        names = list(observations.objectives) or (
            ["value"] if observations.k == 1 else [f"value {j}" for j in range(observations.k)]
        )
        rows = [
            [trial.id, *(trial.values or ()), *(trial.params.get(name, "") for name in self.state.space.names)]
            for trial in shown
        ]
        table = as_html(repr(self), rows, ["trial", *names, *self.state.space.names])
        return table + self.trials.summary()._repr_html_() if shown else table

    if TYPE_CHECKING:  # elsewhere, and here as well: see `ELSEWHERE`
        add_csv: Callable[..., None]
        classifier: Classifier
        observations: Observations
        pareto_front: list[Trial]
        pending: list[Trial]
        space: SearchSpace
        summary: Callable[[], Summary]
        suspicious: list[Trial]
        to_frame: "Callable[[], pd.DataFrame]"
        to_json: Callable[..., str]
    else:

        def __getattr__(self, name: str) -> Any:
            """An attribute of a part; with a DeprecationWarning, if it is one that few use."""
            if name in ELSEWHERE:
                return attrgetter(ELSEWHERE[name])(self)
            if name in FORMER:
                what, read = FORMER[name]
                warnings.warn(f"study.{name} is now {what}.", DeprecatedUse, stacklevel=2)
                return read(self)
            raise no_attribute("a study", name, [*(each for each in dir(type(self)) if each[0] != "_"), *ELSEWHERE])

    # --- ask ---------------------------------------------------------------------------------------------------------

    @locked_between_runs
    def ask(self, q: int = 1) -> list[Trial]:
        """The next q trials to evaluate; they stay pending until they are told.

        With a budget promoted trials come first: the configuration of an earlier trial, `resume_from`, with more to
        spend.

        Raises:
            SettingError: for q < 1 or above a million; or if another study was given the classifier since.
            SpaceExhausted: if a finite space has fewer than q configurations left.
            StudyRunning: while `optimize` runs, which asks by itself.
        """
        required(q=q)
        whole(1, q=q)
        within(1, LARGEST_BATCH, q=q)
        self._take_up(self._allocator.engine.ranks.world)
        self._resume()
        self._state.check_classifier()
        rows = self._allocator.ask(q)
        self._asked.update(dict.fromkeys(rows, time.time()))
        return self._running(rows)

    def ask_one(self) -> Trial:
        """The next trial to evaluate: `ask` for a single one."""
        (trial,) = self.ask()
        return trial

    @queued
    def enqueue(self, params: Params) -> None:
        """Queues a configuration for the next `ask`, before the design and the classifier's proposals.

        Args:
            params: a configuration; or a part of one, the rest of which is proposed when its turn comes. A row of a
                DataFrame, or a DataFrame with several, will do: missing values are proposed, too.

        Raises:
            PointError: for a configuration outside the space; then nothing is queued.

        Example:
            >>> from deepbore import Integer, Real, Study
            >>> study = Study({"lr": Real(1e-5, 1e-1, log=True), "layers": Integer(1, 9)})
            >>> study.enqueue({"lr": 1e-3})
            >>> study.ask_one().params["lr"]
            0.001
        """
        several = [as_params(each, self.state.space) for each in rows_of(params)]
        for each in several:
            self.state.space.points.encode_part(each)
        self._restore()
        for each in several:
            self._state.enqueue(each)

    @queued
    def fix(self, params: Params) -> None:
        """Fixes parameters in later trials, wherever they are active; replaces earlier fixes.

        Pending, enqueued and known trials stay, and the classifier learns from all of them; with a budget, trials with
        other values are not promoted. The journal keeps it, so a study that is loaded has the same parameters fixed.
        `fix({})` releases all.

        Args:
            params: name -> value.

        Raises:
            SpaceError: for an unknown name, a value outside, or values that the space's constraints forbid.

        Example:
            >>> from deepbore import Categorical, Real, SearchSpace, Study
            >>> study = Study(SearchSpace({"x": Real(-1, 1), "optimizer": Categorical(["sgd", "adam"])}))
            >>> study.fix({"optimizer": "adam"})
            >>> {trial.params["optimizer"] for trial in study.ask(4)}
            {'adam'}
        """
        self._restore()
        self.state.observations.fix(params)

    # --- tell --------------------------------------------------------------------------------------------------------

    @queued
    def tell(
        self,
        trial: Trial | int,
        value: SupportsFloat | Sequence[SupportsFloat] | Outcome | None = None,
        *,
        constraints: Sequence[SupportsFloat] | None = None,
        failed: bool = False,
        noise: SupportsFloat | None = None,
        pruned: bool = False,
        cost: SupportsFloat | None = None,
    ) -> None:
        """Gives a trial its outcome, in any order; NaN and infinite values count as failed.

        Args:
            trial: from `ask`, or its id.
            value: objective value in the user's sign, or one for each direction, or an `Outcome`.
            constraints: black-box constraints, as many in each trial; it is feasible where all are <= 0.
            failed: whether the trial has failed; then it has neither a value nor noise.
            noise: standard deviation of the value, in its unit; see `Outcome`.
            pruned: whether the trial was ended early (`trial.should_prune`): it has no value, but is graded by what it
                has reported.
            cost: what the evaluation has cost, failed ones too: seconds, or another unit that is the same for all
                trials. With `cost_limit=` the study weighs what it may gain by what that is expected to cost.

        Raises:
            TrialError: for an unknown trial, one told before, or one of another study.
            ValueTypeError: for a value, a constraint, a noise or a cost that is no such number, or another number of
                constraints than before.

        Example:
            >>> from deepbore import Real, SearchSpace, Study
            >>> study = Study(SearchSpace({"x": Real(0, 1)}))
            >>> for trial in study.ask(4):  # x, but at least 1/3
            ...     study.tell(trial, trial.params["x"], constraints=[1 / 3 - trial.params["x"]])
            >>> study.best_trial.value >= 1 / 3
            True
        """
        _check_flags(failed=failed, pruned=pruned)
        if failed:
            _refuse_beside_failure(value, noise)
        if pruned:
            if failed or value is not None or constraints is not None or noise is not None:
                raise ValueTypeError("a pruned trial has no other outcome, but got one. Give pruned=True alone.")
            value = Outcome.pruned()
        if constraints is not None:
            value = _with_constraints(value, constraints, bool(failed))
        if noise is not None:
            value = replace(as_outcome(value), noise=as_noise(noise))
        if cost is not None:
            value, failed = replace(Outcome.failure() if failed else as_outcome(value), cost=as_cost(cost)), False
        held = self._held(trial)
        self._state.observations.tell(held, value, failed=failed)
        self._note_time(held)

    @queued
    def withdraw(self, trial: Trial | int | Iterable[Trial | int], reason: str | None = None) -> None:
        """Takes trials back that were told or added wrongly, as if they had never been.

        They count nowhere: not in labels, thresholds, models and promotions, not as the best, on the front or in means
        over replicates; comparisons with them are dropped, and the initial design is filled up. Their configurations
        may be proposed, enqueued and added again. A configuration that was promoted keeps its results of other budgets.

        They stay in the history, as withdrawn, with what was told in `trial.former`. They still count as trials of the
        run, `n_trials`: they have been evaluated. A pending trial is given up, without a failure; what an evaluation of
        it returns later is not kept. In a study of preferences a trial whose only comparisons were with withdrawn ones
        is pending again.

        Args:
            trial: from `ask` or `trials`, or its id; or several of them, all of which are withdrawn, or none. Those of
                an earlier task: `[trial for trial in study.trials if trial.task == "last year"]`.
            reason: why, for the history.

        Raises:
            TrialError: for an unknown trial, one that was withdrawn before, one of another study, or twice the same.
            ValueTypeError: for a reason that is no text.

        Example:
            >>> from deepbore import Real, SearchSpace, Study
            >>> study = Study(SearchSpace({"x": Real(0, 1)}))
            >>> for trial, value in zip(study.ask(3), [0.5, -1e6, 0.25]):
            ...     study.tell(trial, value)
            >>> study.withdraw(study.best_trial, reason="it had diverged")
            >>> study.best_trial.value, study.trials[1].status.name, study.trials[1].former[0].value
            (0.25, 'WITHDRAWN', -1000000.0)
        """
        self.state.observations.withdraw(trial, reason)

    @queued
    def correct(
        self,
        trial: Trial | int,
        value: SupportsFloat | Sequence[SupportsFloat] | Outcome | None = None,
        *,
        constraints: Sequence[SupportsFloat] | None = None,
        failed: bool = False,
        noise: SupportsFloat | None = None,
    ) -> None:
        """Replaces the outcome of a trial that was told or added wrongly, as if it had been told right at once.

        What is not given stays: `correct(trial, 0.3)` keeps constraints and noise, `correct(trial, constraints=[-1])`
        the value. An `Outcome` replaces all but the attributes, which it adds to. A failed trial may get a value, and a
        complete one may turn out failed. The outcomes before are in `trial.former`; notes about them, `trial.traceback`
        and `trial.suspicious`, go with them.

        Args:
            trial: from `ask` or `trials`, or its id.
            value: as in `tell`; NaN and infinite values count as failed.
            constraints: as in `tell`.
            failed: whether the trial has failed after all.
            noise: as in `tell`.

        Raises:
            TrialError: for an unknown trial, one that is pending or withdrawn, or one of another study.
            ValueTypeError: for what is no such number, for nothing at all, or in a study of preferences.

        Example:
            >>> from deepbore import Real, SearchSpace, Study
            >>> study = Study(SearchSpace({"x": Real(0, 1)}))
            >>> (trial,) = study.ask()
            >>> study.tell(trial, 31)
            >>> study.correct(trial, 0.31)
            >>> study.best_trial.value, study.best_trial.former[0].value
            (0.31, 31.0)
        """
        _check_flags(failed=failed)
        self.state.observations.correct(trial, value, constraints=constraints, failed=bool(failed), noise=noise)

    def report(self, trial: Trial | int, value: SupportsFloat | Outcome, step: float) -> bool:
        """Takes the value of a running trial at a step, and says whether the trial should continue.

        It is `trial.report` and `trial.should_prune` in one; a trial that the pruner ends is told as pruned.

        With a budget it is early stopping by the rule of promotions, too: below the trial's budget only a pruner ends
        it. At its budget the value is told; if that is among the best 1 / factor of its rung, the trial is promoted at
        once, and continues with the budget of the next rung, under an id of its own, which the handle stands for from
        then on. So a program that reports after each epoch needs no checkpoint, and neither tells nor asks for how long
        to train:

            for trial in study.ask():
                for epoch in itertools.count(1):
                    if not study.report(trial, train_one_epoch(trial.params), step=epoch):
                        break

        A trial that was stopped may still be promoted later, when better ones turn out worse: `ask` gives it again,
        with `resume_from`.

        Args:
            trial: from `ask`, or its id.
            value: the value at this step, in the user's sign; with a budget NaN and infinite ones end it as failed.
            step: such as the epoch, >= 0; with a budget what was spent until now, in its unit, > 0.

        Returns:
            Whether to continue. If not, the trial has its outcome; but for the objective of a run (`optimize`), where a
            trial ends at its budget, and comes again if it is promoted: it returns its value, or raises `TrialPruned`.

        Raises:
            SettingError: with a budget for a step that is no positive number.
            TrialError: for an unknown trial, or one that has ended.
            ValueTypeError: for a value or a step that is no such number.
            StudyRunning: while `optimize` runs, for another trial than the one that the objective was given.

        Example:
            >>> from deepbore import Budget, Real, SearchSpace, Study
            >>> study = Study(SearchSpace({"x": Real(0, 1)}), budget=Budget("epochs", 1, 9))
            >>> for trial in study.ask(3):  # of three results the best one is promoted
            ...     goes_on = study.report(trial, trial.id, step=1)
            >>> goes_on, [study.trials[row].status.name for row in range(3)]
            (False, ['COMPLETE', 'COMPLETE', 'COMPLETE'])
        """
        if isinstance(trial, Trial) and Reporting.of(trial) is not None:  # of a run, by its objective
            trial.report(value.values[0] if isinstance(value, Outcome) and value.values else value, step)
            is_spent = trial.budget is not None and step >= trial.budget * (1 - ROUNDING)
            return not (is_spent or trial.should_prune())
        return self._report(trial, value, step)

    @locked_between_runs
    def _report(self, trial: Trial | int, value: SupportsFloat | Outcome, step: float) -> bool:
        """`report` between runs."""
        self._resume()
        observations, has_budget = self.state.observations, self.state.observations.budget is not None
        row = observations.latest(observations.columns.row_of(trial))
        if observations.status[row] != Status.PENDING:
            raise TrialError(f"a trial that has ended reports nothing, but trial {row} did. Ask for another.")
        outcome = value if isinstance(value, Outcome) else Outcome(value)
        if has_budget:
            required(step=step)
            above(0, step=step)
        observations.report(row, {self._placed(row, step): outcome.values[0] if outcome.values else float("nan")})
        if has_budget and (outcome.has_failed or step >= float(observations.budgets[row]) * (1 - ROUNDING)):
            observations.tell(row, outcome)
            self._note_time(row)
            promoted = self._allocator.engine.reserve_promoted(1, of=row)
            self._promoted.update(dict.fromkeys([row], *promoted) if promoted else {})
            self._asked.update(dict.fromkeys(promoted, time.time()))
            return bool(promoted)
        if self._state.should_prune(row):
            observations.tell(row, Outcome.pruned())
            self._note_time(row)
            return False
        return True

    @queued
    def _keep_report(self, trial: Trial | int, value: SupportsFloat, step: float) -> None:
        """`trial.report` of a trial that `ask` gave."""
        self._restore()
        held, number = self._held(trial), as_number(value, "a reported value")
        self.state.observations.report(held, {self._placed(self.state.observations.columns.row_of(held), step): number})

    def _placed(self, row: int, step: float) -> float:
        """The step that is kept: without a budget, one that is not greater than the last begins a stage behind it."""
        step = as_step(step)
        if self.state.observations.budget is not None:
            return step
        return self._stages.setdefault(row, Stages()).place(step)  # another process began the training again

    def _note_time(self, trial: Trial | int) -> None:
        """Keeps how long a trial took that `ask` gave in this process."""
        row = trial.id if isinstance(trial, Trial) else int(trial)
        self._stages.pop(row, None)
        if (began := self._asked.pop(row, None)) is not None:
            self.state.observations.note_times(row, began, time.time())

    def _held(self, trial: Trial | int) -> Trial | int:
        """The trial that a handle stands for: the latest one that `report` has promoted it to, or itself."""
        if not self._promoted:
            return trial
        row = first = self.state.observations.columns.row_of(trial)
        while row in self._promoted:
            row = self._promoted[row]
        return trial if row == first else row

    def _running(self, rows: Sequence[int]) -> list[Trial]:
        """Pending trials as they are handed out: what they report is kept here."""
        reporter = _StudyReporter(self)
        return [replace(trial, reporter=reporter) for trial in self.state.observations.trials(rows)]

    @queued
    def prefer(self, better: Trial | int, worse: Trial | int) -> None:
        """Says which of two trials is the better one, in a study of preferences: `Study(space, preferences=True)`.

        A trial is complete with its first comparison. Compare trials from `ask` with one another or with any trial of
        the study, `best_trial` above all, as often as you like; to say that two are as good, or when you change your
        mind, compare them the other way round, too. All comparisons together give each compared trial a utility, which
        is its value: see `deepbore.data.comparisons.fitted_utilities`.

        Args:
            better: from `ask` or `trials`, or its id.
            worse: the same.

        Raises:
            TrialError: for an unknown trial, one that has failed, one of another study, or twice the same.
            SettingError: in a study of values.

        Example:
            >>> from deepbore import Real, SearchSpace, Study
            >>> study = Study(SearchSpace({"x": Real(-1, 1)}), seed=0, preferences=True)
            >>> for _ in range(5):
            ...     one, other = study.ask(2)
            ...     is_better = abs(one.params["x"]) < abs(other.params["x"])  # or show both, and ask
            ...     study.prefer(one, other) if is_better else study.prefer(other, one)
            >>> study.best_trial.value > 0
            True
        """
        self.state.observations.prefer([(better, worse)])

    @queued
    def annotate(self, trial: Trial | int, attributes: Mapping[str, Any]) -> None:
        """Adds attributes to a trial of any status; they replace former ones of the same names.

        They are in `trial.attributes`, in the journal and in `to_frame`, and have no effect on the run. An
        objective adds its own with `Outcome(value, attributes={...})`.

        Args:
            trial: from `ask` or `trials`, or its id.
            attributes: plain JSON data by name; NaN and infinite numbers become None.

        Raises:
            TrialError: for an unknown trial, or one of another study.
            ValueTypeError: for names that are no texts, or values that are no JSON data.

        Example:
            >>> from deepbore import Real, SearchSpace, Study
            >>> study = Study(SearchSpace({"x": Real(-1, 1)}))
            >>> (trial,) = study.ask()
            >>> study.annotate(trial, {"host": "node7", "epochs": 12})
            >>> study.trials[0].attributes["host"]
            'node7'
        """
        self.state.observations.annotate(trial, attributes)

    @queued
    def _log(self, trial: Trial | int, given: Mapping[str, float], step: float | None) -> None:
        """`trial.log` of a trial that `ask` gave."""
        self._restore()
        self.state.observations.log(self._held(trial), given, step)

    @queued
    def _attach(self, trial: Trial | int, artifact: Artifact) -> None:
        """`trial.log_artifact` of a trial that `ask` gave."""
        self._restore()
        self.state.observations.attach(self._held(trial), artifact)

    @queued
    def add(
        self,
        columns: Mapping[str, Any] | str | os.PathLike[str],
        values: Sequence[Any] | SupportsFloat | str | None = None,
        *,
        constraints: Any = None,
        budgets: Any = None,
        task: str | None = None,
        noise: Any = None,
        outside: Outside = "raise",
        defaults: Mapping[str, Any] | None = None,
        value: str = "value",
    ) -> None:
        """Adds earlier results, one or a million; also those in a CSV file.

        Args:
            columns: name -> n values (a dict of columns or a DataFrame), or of one trial name -> value. Or a CSV file
                in UTF-8, as `trials.to_frame` writes it: a column for each parameter and one for the values, empty for
                failures. Several objectives stand by their names, or as value_0, ..., and beside them may stand
                constraint_0, ..., budget, noise and task. Pending trials are left out.
            values: n objective values (n x k for several objectives), or one; NaN and infinite ones count as failed. Of
                a file the name of their column, "value" by default.
            constraints: n x c black-box constraints, or c of one trial; NaN in rows that have none.
            budgets: spent on each, n or one for all, where the study has a budget: the highest rung for NaN.
            task: name of an earlier task that they are of, in the same space, better in the same direction; None for
                this one. Its values are graded among themselves; it suggests where to begin, and the classifier learns
                from it as much as it forecasts this task (see docs/outcomes.md). Of a file it counts for rows that name
                none.
            noise: standard deviations of the values, n or one for all.
            outside: "drop" leaves out rows that the space has not, such as after its ranges were narrowed, with a log
                message; "raise" refuses them.
            defaults: name -> value of parameters that the results lack: those that the space had not then.
            value: another way to name the column of values in a file.

        Raises:
            PointError: naming the row, for configurations outside the space.
            ShapeError: if there is not one value for each row.
            ValueTypeError: for another number of constraints than before.
            SettingError: for a budget that is no rung, several budgets in a study without, or a task beside budgets.
            TableError: naming line and column, for an unexpected column or entry of a file.
        """
        about = {"constraints": constraints, "budgets": budgets, "task": task, "noise": noise}
        if isinstance(columns, (str, os.PathLike)) or (columns is None and values is None):
            _check_file(values, about)
            named = values if isinstance(values, str) else value
            results = [results_for(self._state, **each) for each in self._read(columns, named, task, outside, defaults)]
        else:
            required(values=values)
            results = list(self._inside(columns, values, about, outside, defaults))
        observations = self._state.observations
        for each in [observations.appendable(each) for each in results]:
            observations.append(each)

    def _inside(
        self, columns: Any, values: Any, about: dict[str, Any], outside: Outside, defaults: Mapping[str, Any] | None
    ) -> Iterator[ImportedResults]:
        """Results in memory, still to be appended; none if all are outside the space."""
        space = self._state.space
        if defaults:
            columns = with_defaults(columns, defaults, space)
        inside = rows_inside(space, columns, values, about) if dropped(outside) else (columns, values, about)
        if inside is not None:
            columns, values, about = inside
            yield results_for(self._state, columns, values, **about)

    def _read(
        self,
        path: str | os.PathLike[str],
        value: str,
        task: str | None,
        outside: Outside,
        defaults: Mapping[str, Any] | None,
    ) -> Iterator[dict[str, Any]]:
        """Results in a CSV file, as arguments of `results_for`."""
        observations = self._state.observations
        about: dict[str, Any] = {
            "objectives": observations.k,
            "names": observations.objectives,
            "defaults": defaults,
            "task": task,
            "has_budget": observations.budget is not None,
            "drops": dropped(outside),
        }
        return (vars(each) for each in read_csv(path, observations.space, value, **about))

    # --- run ---------------------------------------------------------------------------------------------------------

    @explicit
    @locked_between_runs
    def optimize(
        self,
        objective: Objective | Evaluator,
        n_trials: int | None,
        *,
        trainer: "Trainer | None" = None,
        **options: Unpack[RunArguments],
    ) -> Result:
        """Evaluates until there are `n_trials` more trials.

        Under a Trainer, yours or one that models with gradient steps need, the run is one `fit`; others run without.

        Trials that an earlier run, also of another process, has left pending come first and are not counted.

        Ctrl-C ends the run when the running trials are done, and twice at once; then it reaches the caller as
        KeyboardInterrupt. SIGTERM does the same. The next run begins with the trials that this one leaves pending.
        Other threads, and the objective, may tell, add, enqueue, annotate and stop meanwhile, but not ask.

        Args:
            objective: configuration -> value, or an evaluator of it, such as `ProcessEvaluator(train, workers=8)`.
                If it raises an exception, or returns no finite number, the trial has failed, with a warning. With a
                budget the function takes the trial, too.
            n_trials: how many evaluations more, whatever the study has; `minimize`, with a journal, and `deepbore fit`
                count in all. A finite space may be exhausted before. None for no limit, where something else ends the
                run. 0 only finishes pending trials.
            trainer: a Trainer of your own, with its devices, loggers and callbacks; default: one without any, or none.
            options: how the run goes: see `RunOptions`.

        Raises:
            SettingError: for a setting outside its range, before anything is evaluated.
            ObjectiveError: if the first evaluation returns no value, or the first `max_failures` have failed.
            KeyboardInterrupt: on Ctrl-C and SIGTERM; results told until then are kept.
            StudyRunning: if it runs already.
        """
        settings = RunOptions(**options)
        evaluator = as_evaluator(objective, settings.workers)
        check_takes_trial(objective, self.state.observations.budget, self._state.recipe.pruner)
        check_names(objective, self.state.space)
        check_run(self._state, n_trials, trainer, settings)
        self._resume()
        self._state.check_classifier()
        if self.state.observations.journal is not None:
            self.state.observations.journal.open()  # refused while another process has it, and before any evaluation
        listeners = [self._listener(each) for each in settings.callbacks]
        rules = as_rules(settings.stop_when, self._state)
        control = RunControl(rules, settings.timeout, settings.max_failures, listeners, self._unlocked)
        began = time.time()
        listeners.append(lambda _row, _outcome: take_up(self, control.engine.ranks.world, began))
        self._control, self._state.is_running = control, True
        try:
            if trainer is None or trainer.world_size == 1:  # with several ranks after the first trial
                self._take_up(began=began)
            run_trials(self._state, evaluator, n_trials, trainer, self._control, settings)
        finally:
            self._control, self._state.is_running = None, False
        return Result.of(self)

    def _take_up(self, ranks: int = 1, began: float = math.inf) -> None:
        """Does what waits in the inbox, as other threads may do it, before this one goes on."""
        if self.state.observations.journal is not None:
            with self._unlocked():
                take_up(self, ranks, began)

    def _listener(self, callback: StudyCallback) -> Listener:
        """Function of a trial's row and outcome that calls a function of the study and the trial."""

        def on_trial(row: int, _outcome: Outcome) -> None:
            callback(self, self.state.observations.trial(row))

        return on_trial

    @contextmanager
    def _unlocked(self) -> Iterator[None]:
        """Releases the lock within, while this thread waits for trials, or calls functions of the user."""
        self._lock.release()
        try:
            self._catch_up()
            yield
        finally:
            try:
                self._lock.acquire()
            except KeyboardInterrupt:  # while another thread has it: the error is handled with the lock
                self._lock.acquire()
                raise

    def stop(self) -> None:
        """Ends the run in progress, if any, after its running trials: from a callback, or another thread."""
        if (control := self._control) is not None:
            control.stop()

    @locked_between_runs
    def fit(self, epochs: int = 10) -> Classifier:
        """Trains the classifier on the trials so far and proposes nothing: to look at its predictions, or to plot them.

        `ask` and `optimize` train by themselves, and continue from these weights; a study that was loaded continues
        from those of its snapshot.

        Args:
            epochs: so many times as in an iteration of a run, >= 1.

        Returns:
            the classifier; its `ready` says whether there was anything to learn.
        """
        required(epochs=epochs)
        whole(1, epochs=epochs)
        self._state.check_classifier()
        generator, labels = self._state.generator, self._state.recipe.labels
        stream, remembered = generator.get_state(), labels.state_dict()  # both of the run stay as they are
        self._recommendation = None
        if self._loaded is not None:
            self._loaded.keep_unlearned()
        try:
            generator.manual_seed(stream_seed(self._state.seed))
            learn(self._state.models, self._state.data, epochs, self._device)
        finally:
            generator.set_state(stream)
            labels.load_state_dict(remembered)
        return self._state.classifier

    def __enter__(self) -> Self:
        """The study, whose journal is closed at the end: `with Study(space, journal="run.jsonl") as study`."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @queued
    def close(self) -> None:
        """Leaves the journal to another writer; the end of the study or of the process does so, too."""
        if self.state.observations.journal is not None:
            self.state.observations.journal.close()

    # --- read --------------------------------------------------------------------------------------------------------

    @property
    def best_trial(self) -> Trial | None:
        """The feasible trial with the best value; None while there is none. See `recommended` for noisy values.

        Here one finds out whether there is one: `best_params` and `best_value` raise an error where there is none.

        Raises:
            SettingError: for a study of several objectives, which has no single best. See `pareto_front`.
        """
        return self.state.observations.best

    @property
    def best_params(self) -> Params:
        """The configuration of `best_trial`.

        Raises:
            NoBestTrial: while there is none.
        """
        if (best := self.best_trial) is None:
            raise _no_best(self)
        return best.params

    @property
    def best_value(self) -> float:
        """The value of `best_trial`, in the user's sign.

        Raises:
            NoBestTrial: while there is none.
        """
        if (best := self.best_trial) is None or best.value is None:
            raise _no_best(self)
        return best.value

    @property
    def recommended(self) -> Trial | None:
        """The feasible trial whose configuration has the greatest expected label: the choice for noisy values.

        The best of many noisy values is mostly a lucky one. The classifier weighs it against the values around it, so
        the configuration that it expects most of is better on average. Trials of an equal configuration count as one,
        shown by its best value; of expected labels that differ by less than 0.3 % the best mean value decides. Without
        noise this is `best_trial`, or as good; before the end of the design, and while no value is better than another,
        it is the configuration of the best mean value. Where there are budgets, it is among the trials of the largest
        one that has a feasible value.

        A copy of the classifier learns all values told so far, which takes about as long as a suggestion; the next
        suggestions stay as they are. Beyond 1000 trials those of the 1000 best values and the 1000 newest are
        considered. Under several ranks each that asks trains a copy of its own, and finds the same.

        Raises:
            SettingError: for a study of several objectives; or for a classifier that can't be copied.
        """
        row = self._recommended_row()
        return None if row is None else self.state.observations.trial(row)

    @locked
    def _recommended_row(self) -> int | None:
        self._restore()
        self._state.check_classifier()
        told = self.state.observations
        known = len(told), told.ledger.statistics.n_complete, told.ledger.statistics.n_failed, told.ledger.revision
        if self._recommendation is None or self._recommendation[0] != known:
            self._recommendation = known, recommend(self._state)
        return self._recommendation[1]

    @property
    def trials(self) -> "StudyTrials":
        """All trials in the order of asking, a read-only sequence: each trial is made when it is read."""
        return StudyTrials(self)

    @property
    def state(self) -> RunState:
        """What parts, plots and integrations ask: all that the run knows (`deepbore.loop.state.RunState`).

        Of a loaded study these are only its trials and parts, until it continues.
        """
        log = self._state.observations.write_ahead_log
        if log.is_interrupted and not self._is_entered and self._lock.acquire(blocking=False):
            try:
                log.complete_pending_write()
            finally:
                self._lock.release()
        return self._state

    # --- within ------------------------------------------------------------------------------------------------------

    def _restore(self) -> None:
        """Restores the state of a loaded run, before anything changes it."""
        if self._loaded is not None:
            self._loaded.restore()

    def _resume(self) -> None:
        """Restores the state of a loaded run, the classifier included, and continues it."""
        if self._loaded is not None:
            check_known(self._state.space)
            self._loaded.resume()
            self._loaded = None

    def _settle(self) -> None:
        """Ends what interrupts have left undone, those that came upon its clearing up included."""
        self._state.observations.write_ahead_log.complete_pending_write()
        self._allocator.settle()

    @property
    def _is_entered(self) -> bool:
        """Whether this thread is within a call of the study, and has not released its lock."""
        return bool(self._lock._is_owned())  # type: ignore[attr-defined]  # as threading.Condition asks it

    def _catch_up(self) -> None:
        """Makes the calls that came within another one; whatever is refused now is logged."""
        while self._later and not self._is_entered:
            with self._lock, clean_torch_state():
                if not self._later:  # another thread has made it
                    return
                self._settle()
                later = self._later[0]
                try:
                    later()
                except DeepBoreError as error:
                    log.error(
                        "`%s` was called within another call of the study, and refused: %s", later.func.__name__, error
                    )
                self._later.popleft()  # last: an interrupt before loses nothing

    def __getstate__(self) -> dict[str, Any]:
        own = ("_lock", "_later", "_control")  # each copy has its own lock, and no run in progress
        return {name: value for name, value in vars(self).items() if name not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock(), _later=deque(), _control=None)
        self._state.is_running = False


class StudyTrials(Trials):
    """All trials of a study in the order of asking, some of them by what they are, and what is rarely done with them.

    Args:
        study: the study.
    """

    def __init__(self, study: Study):
        observations = study.state.observations
        super().__init__(observations.trials, range(len(observations)))
        self._study = study

    @property
    def pending(self) -> list[Trial]:
        """The trials that were asked for and not told, in the order of asking, as after a crash."""
        return self._study._running(self._study.state.observations.columns.pending_rows.tolist())

    @property
    def front(self) -> list[Trial]:
        """The feasible trials that are not dominated: none other is better in one objective and no worse in the rest.

        They stand in the order of the first objective, best first; of trials with equal values there is the first. With
        one objective it is the best trial alone.
        """
        observations = self._study.state.observations
        if observations.k > 1:
            return observations.front
        return [] if observations.best is None else [observations.best]

    @property
    def suspicious(self) -> list[Trial]:
        """The trials of this run whose values the other trials contradict, in the order of asking.

        A value is suspicious if it is much better than all others predict, until a trial beside it comes close; or if
        it is far worse than all ordinary ones, although the others predict an ordinary value at its place. These trials
        count as failed in all that the study learns and decides: no single wrong value misleads it. `best_trial` and
        `front` go by the values as they were told. A warning names those that are too good (`SuspiciousValue`).
        """
        observations = self._study.state.observations
        return observations.trials(observations.suspicion.rows)

    def rerun(self, trials: Trial | int | Iterable[Trial | int] | Literal["failed"] = "failed") -> None:
        """Queues configurations of earlier trials for the next asks, as after a mistake in the program was mended.

        Failed trials are withdrawn, so that nothing is learned from failures that were not theirs; other ones stay, and
        their configuration is evaluated once more. Budgets are chosen anew.

        Args:
            trials: from `trials`, or their numbers; "failed" for all that have failed.

        Raises:
            TrialError: for an unknown trial, or one that has not ended.

        Example:
            >>> from deepbore import Real, Study
            >>> study = Study({"x": Real(0, 1)}, seed=0)
            >>> first = study.ask_one()
            >>> study.tell(first, failed=True)
            >>> study.trials.rerun("failed")
            >>> study.ask_one().params == first.params, study.trials[0].status.name
            (True, 'WITHDRAWN')
        """
        for trial in self._to_rerun(trials):
            self._study.enqueue(trial.params)
            if trial.status is Status.FAILED:
                self._study.withdraw(trial, RERUN)

    def _to_rerun(self, trials: Trial | int | Iterable[Trial | int] | Literal["failed"]) -> list[Trial]:
        """The trials that are meant, all checked before any is queued."""
        own = [trial for trial in self._study.trials if trial.task is None]
        if isinstance(trials, str):
            if trials != "failed":
                raise SettingError(f'trials are given by number, or as "failed", but got {trials!r:.100}.')
            return [trial for trial in own if trial.status is Status.FAILED]
        several = [trials] if isinstance(trials, Trial) or not isinstance(trials, Iterable) else list(trials)
        observations = self._study.state.observations
        found = [observations.trial(row) for row in dict.fromkeys(map(observations.columns.row_of, several))]
        if waiting := [trial.id for trial in found if trial.status is Status.PENDING]:
            raise TrialError(
                f"a trial runs again once it has ended, but {waiting[0]} has not. Tell it, or withdraw it."
            )
        return found

    def edit(self, trial: Trial | int, params: Params) -> None:
        """Replaces a trial that was asked for and does not run yet: the next `ask` gives the edited configuration.

        The trial itself is withdrawn, which is no failure.

        Args:
            trial: a pending one, or its number.
            params: what changes. The rest of its configuration stays, but for parameters that the change makes
                inactive, which go; those that it makes active, and that are not given, are proposed.

        Raises:
            TrialError: for a trial that has ended.
            PointError: for a configuration outside the space, or a parameter that is given and inactive; then nothing
                has changed.

        Example:
            >>> from deepbore import Integer, Real, Study
            >>> study = Study({"lr": Real(0, 1), "layers": Integer(1, 9)}, seed=0)
            >>> study.trials.edit(study.ask_one(), {"layers": 3})
            >>> study.ask_one().params["layers"]
            3
        """
        space, observations = self._study.state.space, self._study.state.observations
        known = observations.trial(observations.columns.row_of(trial))
        if known.status is not Status.PENDING:
            raise TrialError(
                f"a trial is edited before it runs, but {known.id} is {known.status}. Enqueue another one."
            )
        self._study.enqueue(space.points.changed(known.params, as_params(params, space)))
        self._study.withdraw(known.id, EDITED)

    def note(
        self, text: str | None = None, trial: Trial | int | None = None, tags: Iterable[str] | None = None
    ) -> None:
        """Replaces the note and the tags of a trial, or of the run; they have no effect on the run.

        Args:
            text: of at most 10,000 characters; None leaves the former one.
            trial: from `ask` or `trials`, or its id; None for the run.
            tags: short texts, at most 20; None leaves the former ones.

        Raises:
            TrialError: for an unknown trial, or one of another study.
            ValueTypeError: for what is too long, or no text.

        Example:
            >>> from deepbore import Real, SearchSpace, Study
            >>> study = Study(SearchSpace({"x": Real(-1, 1)}))
            >>> (trial,) = study.ask()
            >>> study.trials.note("it looks odd", trial, tags=["look again"])
            >>> study.trials[0].note, study.trials[0].tags
            ('it looks odd', ('look again',))
        """
        note(self._study, text, trial, tags)

    def summary(self) -> Summary:
        """The study in at most ten lines: what was found, what failed or is doubted, what limits it, what to do next.

        Limits are noise (equal configurations differ as much as the best ones), bounds on which the best trials lie,
        and corners. `print(study.summary())`; of a run on the disk `deepbore summary RUN` says the same.

        Example:
            >>> from deepbore import Real, minimize
            >>> print(minimize(lambda params: -params["x"], {"x": Real(0, 1)}, 25, seed=0).study.summary().advice[0])
            widen the range, if that makes sense: high of x
        """
        state = self._study.state
        observations, suspicious = state.observations, [trial.id for trial in self.suspicious]
        return summary_of(observations.ledger, state.space.to_dict(), observations.objectives, suspicious)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The study as JSON: space, directions, seed, the best trial, and all trials as `Trial.to_dict` gives them.

        Choices that are objects have their names. What is not finite is null. For programs that read results; a study
        continues from its journal alone.

        Args:
            path: a file that it is written to, too.
        """
        state = self._study.state
        observations, kept = state.observations, state.observations.ledger
        best = [trial.id for trial in kept.front] if observations.k > 1 else [kept.best.id] if kept.best else []
        told = {
            "space": state.space.to_dict(),
            "directions": list(observations.directions),
            "objectives": list(observations.objectives),
            "seed": state.seed,
            "best": best,
            "trials": [trial.to_dict() for trial in kept.trials],
        }
        text = json.dumps(finite(told), indent=1)
        if path is not None:
            replace_file(as_path(path, "the study as JSON"), f"{text}\n".encode())
        return text

    def to_frame(self) -> "pd.DataFrame":
        """A pandas DataFrame: one row a trial, with id, parameters, value and status.

        Raises:
            MissingPackage: without pandas.
        """
        observations = self._study.state.observations
        return as_frame(observations.columns, observations.objectives)


# --- what doors and integrations do with a study ---------------------------------------------------------------------


@clean_torch_state()
def study_of(space: SearchSpace | Mapping[str, Parameter], options: StudyOptions, check: Check | None = None) -> Study:
    """The study that a record of options describes.

    Args:
        space: the search space.
        options: what the study is made of.
        check: function of its state that raises an error for a run that can't be, before a journal is begun.
    """
    study = Study.__new__(Study)
    study._begin(space, options, check)
    return study


def metrics_of(study: Study) -> Metrics | None:
    """How well the latest proposals were predicted, as a run with a Trainer logs it; None for other runs."""
    return study._state.metrics if study._loaded is None else study._loaded.metrics


@locked_between_runs
def reseed(study: Study, seed: int) -> None:
    """Continues with another stream of random numbers, as copies of a study in several processes must.

    It is kept with the next `ask`: a study that is loaded before that has its former seed.
    """
    study._resume()
    study._state.reseed(seed)


@queued
def note(study: Study, text: str | None, trial: Trial | int | None = None, tags: Iterable[str] | None = None) -> None:
    """`StudyTrials.note`."""
    if isinstance(tags, str):
        raise ValueTypeError(f"tags are several texts, as in tags=[{tags!r:.60}], but got one text.")
    study._restore()
    study.state.observations.note(trial, text, None if tags is None else tuple(dict.fromkeys(tags)))


@locked
def share(study: Study, ranks: Ranks) -> None:
    """Proposes with copies of a study on other ranks (see `DistributedStudy`); the first keeps the journal."""
    study._resume()
    study._allocator = TrialAllocator(Engine(study._state, ranks), study._device)


FORMER: dict[str, tuple[str, Callable[[Study], Any]]] = {  # attribute -> what it is now, and how it is read
    "recipe": ("study.state.recipe", attrgetter("state.recipe")),
    "labels": ("study.state.recipe.labels", attrgetter("state.recipe.labels")),
    "seed": ("study.state.seed", attrgetter("state.seed")),
    "objectives": ("study.state.observations.objectives", attrgetter("state.observations.objectives")),
    "result": ("Result.of(study)", Result.of),
    "edit": ("study.trials.edit", attrgetter("trials.edit")),
    "note": ("study.trials.note", attrgetter("trials.note")),
    "rerun": ("study.trials.rerun", attrgetter("trials.rerun")),
    "metrics": ("deepbore.study.study.metrics_of(study)", metrics_of),
    "is_running": ("study.state.is_running", attrgetter("state.is_running")),
    "reseed": ("deepbore.study.study.reseed(study, seed)", lambda study: partial(reseed, study)),
    "share": ("deepbore.study.study.share(study, ranks)", lambda study: partial(share, study)),
}


class _StudyReporter:
    """What a trial reports to that `Study.ask` gave; a copy of the trial in another process has none.

    Args:
        study: where its reports are kept.
    """

    def __init__(self, study: Study):
        self._study = study

    def report(self, trial: Trial, value: SupportsFloat, step: float) -> None:
        self._study._keep_report(trial, value, step)

    def should_prune(self, trial: Trial) -> bool:
        held = self._study._held(trial)
        return self._study.state.should_prune(held if isinstance(held, int) else held.id)

    def log(self, trial: Trial, metrics: Any, value: Any, step: float | None) -> None:
        self._study._log(trial, given_metrics(metrics, value), step)

    def log_artifact(self, trial: Trial, content: Any, name: str | None) -> None:
        journal = self._study.observations.journal
        self._study._attach(trial, kept(content, name, None if journal is None else artifacts_path(journal.path)))

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return type(None), ()


def results_for(state: RunState, columns: Mapping[str, Any], values: Any, **about: Any) -> ImportedResults:
    """Earlier results, given as to `Study.add`, still to be appended to the observations of a run.

    Raises:
        SettingError: for several budgets in a study without, or a task that can't be learned from.
        PointError, ShapeError, ValueTypeError: as of `Study.add`.
    """
    observations = state.observations
    if about["task"] is not None:
        state.earlier.check()
    elif observations.budget is None and (different := several_budgets(about["budgets"], observations)):
        raise SettingError(f"there are {different} Give the study a budget, or leave out budgets=.")
    return ImportedResults.read(observations.space, observations.k, columns, values, **about)


def _check_file(values: Any, about: Mapping[str, Any]) -> None:
    """Raises ValueTypeError for what stands in a CSV file, and is given beside it."""
    given = [name for name, each in about.items() if each is not None and name != "task"]
    if values is not None and not isinstance(values, str):
        given.append("values")
    if given:
        raise ValueTypeError(
            f"a CSV file has its {', '.join(given)} in columns, but got {given[0]}= beside it. Leave them out, or give "
            'the name of the column of values: add("results.csv", "loss").'
        )


def _check_flags(**flags: Any) -> None:
    """Raises ValueTypeError for what is neither True nor False."""
    for name, given in flags.items():
        if not isinstance(given, (bool, np.bool_)):
            raise ValueTypeError(f"{name} must be True or False, but got {name}={given!r:.100}.")


def _refuse_beside_failure(value: Any, noise: Any) -> None:
    """Raises ValueTypeError for a value or noise of a trial that has failed; NaN says the same."""
    has_value = value is not None and not as_outcome(value).has_failed
    if has_value or noise is not None:
        raise ValueTypeError(
            f"failed=True is all of an outcome, but came with {f'the value {value!r:.100}' if has_value else 'noise'}. "
            "Give one of them."
        )


def _with_constraints(value: Any, constraints: Sequence[SupportsFloat], failed: bool) -> Outcome:
    """A value, or several, with constraints, as an outcome. Raises ValueTypeError where they can't go together."""
    if isinstance(value, Outcome) or failed:
        raise ValueTypeError(
            "constraints are given with a value, but got "
            f"{'failed=True' if failed else value!r:.100} and constraints={constraints!r:.100}. "
            "Put them into the outcome: tell(trial, Outcome(value, constraints=[...]))."
        )
    return Outcome(value, constraints=constraints)
