"""`TrialRunner`: evaluation of reserved rows."""

import math
from dataclasses import replace

from deepbore.data.outcome import LostWorker, Mistake, Outcome
from deepbore.data.running import RunningReports, forget_reports, running_path
from deepbore.data.trial import Trial
from deepbore.errors import ObjectiveError
from deepbore.evaluators import Evaluator, Timed
from deepbore.evaluators.base import Finished, warn
from deepbore.evaluators.ranks import SharedEvaluator
from deepbore.loop.engine import Engine
from deepbore.loop.quiet import in_caller_state
from deepbore.loop.stopping import RunControl
from deepbore.space import SearchSpace
from deepbore.worker.reporting import Reporting


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
        return f"the run ends, because the objective says {outcome.reason}. {stays} Fix the objective.\n\n{trace}"
    inactive = [name for name in outcome.missing if name in space.parameters and name not in trial.params]
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
    """An outcome with what its trial has reported, if an evaluator of the user's own has left that out."""
    reported = trial.reporter.reports if isinstance(trial.reporter, Reporting) else {}
    return replace(outcome, reports=reported) if reported and not outcome.reports else outcome


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
        pending = set(state.observations.pending_rows.tolist())
        self._asked = pending.difference(state.interrupted, state.unreturned)  # evaluated by the user
        timed = evaluator if isinstance(evaluator, Timed) else Timed(evaluator)
        self.evaluator = SharedEvaluator(timed, engine.ranks) if engine.ranks.world > 1 else timed

    @property
    def room(self) -> int:
        """The number of trials that the next iteration may ask for; 0 or less if the run is over."""
        if self.control.is_over:
            return 0
        state = self.engine.state
        left = math.inf if self.n_trials is None else self.n_trials - state.observations.n_asked
        left = max(left, min(self.evaluator.begun, len(state.queue)))
        return int(min(max(self.batch_size, self.evaluator.free), left, self.engine.n_left))

    def evaluate(self, rows: list[int]) -> None:
        """Submits trials, and waits until a batch of workers is free, or, at the end of the run, until all are done."""
        with self.control.interrupts.gently():
            judge, journal = self.engine.state.judge, self.engine.state.observations.journal
            for trial in self.engine.state.observations.trials(rows):
                send = None if journal is None else RunningReports(running_path(journal.path, trial.id))
                self.evaluator.submit(replace(trial, reporter=Reporting(judge, send)))
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
        self._keep(set(self.engine.state.observations.pending_rows.tolist()) - self._asked)
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
            recorded.append((one.trial, self.engine.record(one.trial, with_reports(*one))))
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
