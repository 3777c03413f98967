"""`Run`: a whole run, by `TrialRunner`, which evaluates reserved rows; `PlainLoop`: a run without a Trainer."""

import logging
import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Protocol, TypeVar

from torch import Tensor

from deepbore.candidates.selection import largest_possible_batch
from deepbore.compute.distributed import Ranks
from deepbore.compute.torch_state import clean_torch_state, hook
from deepbore.data.logged import artifacts_path
from deepbore.data.notes import RunningReports, forget_reports, running_path
from deepbore.data.outcome import LostWorker, Mistake, Outcome
from deepbore.data.trial import Trial
from deepbore.errors import ObjectiveError
from deepbore.evaluators import Evaluator, Timed
from deepbore.evaluators.base import Finished, warn
from deepbore.evaluators.ranks import SharedEvaluator
from deepbore.loop.engine import Engine, Iteration
from deepbore.loop.quiet import in_caller_state
from deepbore.loop.state import RunState
from deepbore.loop.stopping import RunControl
from deepbore.names import meant
from deepbore.space import SearchSpace
from deepbore.validation import whole
from deepbore.worker.objective import NoValue, UnknownName
from deepbore.worker.reporting import Reporting

log = logging.getLogger(__name__)
T = TypeVar("T")


def mistake_in(one: Finished, space: SearchSpace) -> str:
    """The complaint about a mistake in the program that an evaluation has met; empty for other outcomes."""
    trial, outcome = one.trial, one.outcome
    if not isinstance(outcome, Mistake):
        return ""
    stays = (
        "That is a mistake in the program, and not a failure of the configuration: "
        f"trial {trial.id} stays pending, and the next run begins with it."
    )
    trace = outcome.attributes.get("traceback", "")
    if not outcome.missing:
        is_value = isinstance(outcome, NoValue)
        said = outcome.reason if is_value else f"the objective says {outcome.reason}"
        way = '; if there is no value, it may return float("nan")' if is_value else ""
        if (outcome.reason or "").startswith("SystemExit"):
            said, way = (
                f"the objective ends the whole program ({outcome.reason})",
                ": a configuration that fails raises another error",
            )
        return f"the run ends, because {said}. {stays} Fix the objective{way}.\n\n{trace}".rstrip()
    inactive = [name for name in outcome.missing if name in space.parameters and name not in trial.params]
    if not inactive and isinstance(outcome, UnknownName):
        known = meant(outcome.missing[0], space.names)
        return f"the run ends, because the objective reads what is no parameter: {known}. {stays}\n\n{trace}"
    if not inactive:
        return ""
    name = inactive[0]
    parents = {each.parent: trial.params.get(each.parent) for each in space.parameters[name].conditions}
    under = ", ".join(f"{parent}={value!r}" for parent, value in parents.items())
    return (
        f"the run ends, because the objective reads {name!r}, which is inactive under {under}, so the configuration "
        f"has no such name. {stays} Read it where its condition holds, or as params.get({name!r}).\n\n{trace}"
    )


def with_reports(trial: Trial, outcome: Outcome) -> Outcome:
    """An outcome with what its trial has reported and logged, if an evaluator of the user's own has left that out."""
    reporting = Reporting.of(trial)
    return outcome if reporting is None else reporting.completed(outcome)


def with_cost(one: Finished) -> Outcome:
    """The outcome of a trial, which has cost the seconds that it took if it names no other cost."""
    if one.outcome.cost is not None or one.span is None:
        return one.outcome
    return replace(one.outcome, cost=round(max(0.0, one.span[1] - one.span[0]), 3))


class TrialRunner:
    """Evaluates trials, and determines how many an iteration may ask for.

    Args:
        engine: the steps of the run.
        evaluator: turns trials into outcomes; one for each rank.
        n_trials: the total number of trials of the study; None for no limit.
        batch_size: q, trials proposed in one iteration; more if more workers are free.
        control: ends the run early.
    """

    def __init__(
        self, engine: Engine, evaluator: Evaluator, n_trials: int | None, batch_size: int, control: RunControl
    ):
        self.engine, self.n_trials, self.batch_size, self.control = engine, n_trials, batch_size, control
        state = engine.state
        pending = set(state.observations.columns.pending_rows.tolist())
        self._asked = pending.difference(state.interrupted, state.unreturned)  # evaluated by the user
        timed = evaluator if isinstance(evaluator, Timed) else Timed(evaluator)
        self.evaluator = SharedEvaluator(timed, engine.ranks) if engine.ranks.world > 1 else timed

    @property
    def room(self) -> int:
        """The number of trials that the next iteration may ask for; 0 or less if the run is over."""
        if self.control.is_over or self.engine.is_spent:
            return 0
        state = self.engine.state
        left = math.inf if self.n_trials is None else self.n_trials - state.observations.ledger.n_asked
        left = max(left, min(self.evaluator.begun, len(state.queue)))
        return int(min(max(self.batch_size, self.evaluator.free), left, self.engine.n_left))

    def evaluate(self, rows: list[int]) -> None:
        """Submits trials, and waits until a batch of workers is free, or, at the end of the run, until all are done."""
        with self.control.interrupts.gently():
            judge, journal = self.engine.state.judge, self.engine.state.observations.journal
            for trial in self.engine.state.observations.trials(rows):
                send = None if journal is None else RunningReports(running_path(journal.path, trial.id))
                folder = None if journal is None else artifacts_path(journal.path)
                self.evaluator.submit(replace(trial, reporter=Reporting(judge, send, folder)))
            while self._must_wait:
                self._collect()
        self.control.interrupts.is_gentle = self.evaluator.outstanding > 0  # trials continue during training

    def finish(self) -> None:
        """Waits for all outstanding trials."""
        with self.control.interrupts.gently():
            while self.evaluator.outstanding:
                self._collect()

    def leave(self) -> None:
        """Abandons outstanding and reserved trials; the next run evaluates them first."""
        self._keep(set(self.engine.state.observations.columns.pending_rows.tolist()) - self._asked)
        self.evaluator.close()

    @property
    def _must_wait(self) -> bool:
        if self.room < 1:
            return self.evaluator.outstanding > 0
        alive = max(1, self.evaluator.workers - self.evaluator.lost)
        return self.evaluator.free < min(self.batch_size, alive)

    def _collect(self) -> None:
        with self.control.unlocked(), in_caller_state():
            collected = self.evaluator.collect()
        # Ctrl-C also stops the processes of the user's executor: these trials have not failed
        interrupted = self.control.interrupts.pressed
        known = [one for one in collected if not (interrupted and isinstance(one.outcome, LostWorker))]
        complaints = [mistake_in(one, self.engine.state.space) for one in known]
        finished = [one for one, complaint in zip(known, complaints, strict=True) if not complaint]
        recorded = []
        for one in finished:
            outcome = with_cost(one) if self.engine.counts_costs else one.outcome
            recorded.append((one.trial, self.engine.record(one.trial, with_reports(one.trial, outcome))))
            if (journal := self.engine.state.observations.journal) is not None:
                forget_reports(journal.path, one.trial.id)
            if one.span is not None:
                self.engine.state.observations.note_times(one.trial.id, *one.span)
        for trial, outcome in recorded:  # all of them before any listener
            if outcome.has_failed and self.engine.ranks.is_first:
                warn(f"trial {trial.id} failed with {trial.params}: {outcome.reason}")
            self.control.on_outcome(trial.id, outcome)
        if len(known) < len(collected):
            raise KeyboardInterrupt
        if complaint := next(filter(None, complaints), ""):
            raise ObjectiveError(complaint)
        self.control.update()
        if self.control.is_over:
            self._withdraw()

    def _withdraw(self) -> None:
        """Leaves trials that have not started to the next run."""
        self._keep({trial.id for trial in self.evaluator.withdraw()})

    def _keep(self, rows: set[int]) -> None:
        state = self.engine.state
        state.interrupted = self.engine.still_pending(sorted({*state.interrupted, *rows}))


class Driver(Protocol):
    """What begins an iteration of a run after the other, until it is to stop: a `PlainLoop`, or a Trainer."""

    should_stop: bool


def no_forecast(_points: Tensor) -> AbstractContextManager[None]:
    """What is recorded of the labels predicted for proposals (q x d), where nothing is logged."""
    return nullcontext()


class Run:
    """A run, from its first trial to the last, whatever drives its iterations.

    The first trials are a Sobol design of `n_initial` points, or a whole batch if that is more. An iteration starts
    when `batch_size` workers of the evaluator are free, and proposes one point for each free worker, while the others
    continue: with batches of one all workers are always busy, with batches of all workers the run is synchronous. At
    the end it waits for all outstanding trials.

    A driver calls `open`, `begin`, then `iterate` whenever the models have learned, until it is to stop, then `finish`
    and `close`; or `abandon`, where an error ends the run.

    Args:
        state: the state of the run.
        evaluator: turns trials into outcomes.
        n_trials: the total number of trials, after which the driver is stopped; None to let the driver decide.
        batch_size: q >= 1, trials proposed in one iteration; more if more workers are free.
        control: stop rules and listeners of the run; default none.

    Attributes:
        seconds: how long the latest iteration took, training included, until its trials were reserved.

    Raises:
        SettingError: for a batch_size below 1, or a number of trials below 0.
    """

    def __init__(
        self,
        state: RunState,
        evaluator: Evaluator,
        n_trials: int | None = None,
        batch_size: int = 1,
        control: RunControl | None = None,
    ):
        whole(0, n_trials=n_trials)
        whole(1, batch_size=batch_size)
        self.state, self.n_trials, self.batch_size = state, n_trials, batch_size
        self.control = control or RunControl()
        self.iteration, self.seconds = Iteration(state, state.observations.points.device), math.nan
        self._own, self._leave = evaluator, evaluator.close
        self._began = time.perf_counter()

    def open(
        self,
        driver: Driver,
        ranks: Ranks | None = None,
        forecast: Callable[[Tensor], AbstractContextManager[None]] = no_forecast,
    ) -> None:
        """Claims the evaluator, which must be free.

        Args:
            driver: of the iterations.
            ranks: the processes of the run.
            forecast: function of proposals (q x d) that gives a context in which they are reserved.
        """
        self._own.claim(self)
        self.driver, self._forecast = driver, forecast
        self.engine = Engine(self.state, ranks)
        self.state.data.ranks = self.engine.ranks  # until the end of the run
        self.runner = TrialRunner(self.engine, self._own, self.n_trials, self.batch_size, self.control)
        self._leave = self.runner.leave

    def begin(self) -> None:
        """Evaluates interrupted and enqueued trials, and the rest of the initial design."""
        state = self.state
        self.iteration.remember()
        self.control.begin(self.engine)
        if self.n_trials is None and self.control.timeout < math.inf:
            self.engine.time_left = self.control.time_left
        if self.control.is_over:
            self.driver.should_stop = True
            return
        self.runner.evaluator.open()
        rows, state.interrupted, state.unreturned = [*state.interrupted, *state.unreturned], [], []
        self.runner.evaluate(self.engine.still_pending(rows))
        while not self._is_over() and (rows := self._reserve_known()):
            self._evaluate(rows)

    def begin_iteration(self) -> None:
        """Starts the clock, before the models learn."""
        self._began = time.perf_counter()

    def iterate(self) -> bool:
        """Proposes, evaluates and records, by models that have learned; whether there were trials."""
        if self.state.warmup_epochs > 0:
            self.state.warmup_epochs -= 1
            self.iteration.remember()
            return False
        over = self._is_over()  # a Trainer may stop during training
        rows = [] if over else self.engine.reserve_queued(self.runner.room) or self._reserve_proposed()
        if not rows:
            self.iteration.settle()
            self.iteration.remember()
            return False
        self.seconds = time.perf_counter() - self._began
        self._evaluate(rows)
        while not self._is_over() and (rows := self._reserve_known()):
            self._evaluate(rows)
        return True

    def finish(self) -> None:
        """Waits for outstanding trials."""
        self.runner.finish()

    def close(self) -> None:
        """Releases the evaluator at the end of a run."""
        self._release(self._own.close)

    def abandon(self) -> None:
        """Abandons outstanding trials after an error, also on Ctrl-C; the next run evaluates them first."""
        try:
            self._release(self._leave)
        finally:
            self.iteration.settle()

    def _release(self, leave: Callable[[], None]) -> None:
        """Closes and releases the evaluator if this run has claimed it; later each process learns alone."""
        self.state.data.ranks = Ranks()
        if self._own.run is self:
            try:
                leave()
            finally:
                self._own.run = None

    def _evaluate(self, rows: list[int]) -> None:
        """Evaluates reserved rows, and keeps the state for the next ones."""
        self.runner.evaluate(rows)
        self.iteration.remember()

    def _reserve_known(self) -> list[int]:
        """Reserved rows that need no classifier: enqueued points, promotions, and the initial design."""
        self.engine.check_ranks()
        known = self.engine.reserve_queued(self.runner.room) or self.engine.reserve_promoted(self.runner.room)
        room, missing = self.runner.room, self.state.n_missing
        if known or not missing:
            return known
        q = min(room, missing) if self.state.n_begun else room  # the first batch has a trial for every worker
        points = self._new(self.engine.design, q)
        return [] if points is None else self.engine.reserve(points)

    def _reserve_proposed(self) -> list[int]:
        """Reserved rows of proposals; none if a stop rule or the timeout ends the run."""
        with clean_torch_state():
            proposal = self._new(self.engine.propose, self.runner.room)
            if proposal is None:
                return []
            self.control.on_proposal(proposal)  # before the snapshot is written
            if self._is_over():
                return []
            with self._forecast(proposal.points):  # before the snapshot, too
                return self.engine.reserve(proposal.points)  # last: these are evaluated even after an interrupt

    def _new(self, find: Callable[[int], T], q: int) -> T | None:
        """Up to q new points; None, and the run ends, if random sampling finds no new one in an infinite space."""
        found = largest_possible_batch(find, q)
        if found is None:
            seen = self.state.observations.n_distinct
            log.warning("the run ends: many random configurations were all among the %d known ones", seen)
            self.driver.should_stop = True
        return found

    def _is_over(self) -> bool:
        """Stops the driver if all trials are done or the space is exhausted; whether it is stopped."""
        self.driver.should_stop = self.driver.should_stop or self.runner.room < 1
        return self.driver.should_stop


class PlainLoop:
    """The iterations of a run whose models learn in closed form, one after the other: without a Trainer or Lightning.

    Args:
        run: not yet open.
    """

    def __init__(self, run: Run):
        self.run, self.should_stop = run, False

    @hook
    def drive(self) -> None:
        """Runs to the end; a StopIteration, as of a callback, becomes a RuntimeError, as under a Trainer."""
        for model in self.run.state.models:
            model.bind_to(self.run.state.data)
        try:
            self._iterate()
        except BaseException:
            self.run.abandon()
            raise

    def _iterate(self) -> None:
        run = self.run
        run.open(self)
        run.begin()
        while not self.should_stop:
            run.begin_iteration()
            run.iteration.learn()
            run.iterate()
        run.finish()
        run.close()
