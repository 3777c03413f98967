"""`Leader`: one study, evaluated by workers on many machines that share an Optuna storage with it.

The leader is a `deepbore.Study` with a journal, whose lock elects it. It keeps some trials waiting in the storage, and
takes in what workers (`deepbore.worker.shared.work`) tell. Whoever dies loses nothing: a worker's trial waits again,
and the next leader continues from the journal, where each trial is told once.
"""

import json
import logging
import math
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any, Unpack

from deepbore.data.events import Told, outcome_of
from deepbore.data.inbox import Inbox
from deepbore.data.outcome import LostWorker, Outcome
from deepbore.data.trial import Trial
from deepbore.errors import DeepBoreError, MissingPackage, SettingError, SpaceError
from deepbore.evaluators import Evaluator, Finished
from deepbore.integrations.leading import LEADS, Lead
from deepbore.integrations.optuna import DeclaredSpace
from deepbore.space import Params
from deepbore.space.parameters import Parameter
from deepbore.study import Result, Study
from deepbore.study.options import RunArguments
from deepbore.validation import above, required, seconds, whole
from deepbore.worker.reporting import Reporting
from deepbore.worker.shared import (
    ALONE,
    BEAT,
    DONE,
    ENDED,
    HEARTBEAT,
    LEADER,
    LOST,
    MISSED,
    OUTCOME,
    PRUNE,
    QUEUE,
    STUDY,
    TRIAL,
    Beats,
    is_own,
    mark_in,
    open_storage,
    patiently,
    process_name,
    reports_in,
    task_in,
    task_of,
)
from deepbore.worker.shared_inbox import EVERY, Passing, StorageInbox

try:
    from optuna import create_study
    from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
    from optuna.exceptions import UpdateFinishedTrialError
    from optuna.storages import BaseStorage, get_storage
    from optuna.trial import FrozenTrial, TrialState, create_trial
except ImportError:
    raise MissingPackage("a shared study needs Optuna: pip install 'deepbore[optuna]'.") from None

FIXED = "fixed_params"  # system attribute in which Optuna keeps what a user has enqueued
REST = 3  # times as long as a look at the storage takes, the leader leaves it alone then
NUMBER = "storage_trial"  # attribute of a trial that a worker proposed: its number in the storage
log = logging.getLogger(__name__)


# --- to Optuna -------------------------------------------------------------------------------------------------------


def distribution(parameter: Parameter) -> BaseDistribution:
    """The distribution of a parameter, for optuna-dashboard and for Optuna's own workers."""
    scale = parameter.scale
    if scale is None:
        return CategoricalDistribution(parameter.choices)  # type: ignore[attr-defined]  # of what is no number
    if scale.whole:
        return IntDistribution(int(scale.low), int(scale.high), log=scale.log)
    return FloatDistribution(scale.low, scale.high, log=scale.log)


# --- what the evaluator keeps in mind --------------------------------------------------------------------------------


class Queue:
    """The trials that wait for workers: those that there are, how many there should be, and what workers know of them.

    Args:
        write: writes ids into the storage, where workers read them.
        ahead: how many trials wait: below 1 a share of those that run, but at least one; else a number.
    """

    def __init__(self, write: Callable[[list[int]], None], ahead: float):
        self.write, self.ahead = write, ahead
        self.ids: list[int] = []
        self.running = self.wanted = 0
        self.written: list[int] = []
        self.written_at = -math.inf

    def tell(self, every: float = 0.0) -> None:
        """Tells the workers which trials wait, at most once in so many seconds."""
        if self.written != self.ids and time.monotonic() - self.written_at >= every:
            self.written, self.written_at = list(self.ids), time.monotonic()
            self.write(self.written)

    def seen(self, ids: list[int], running: Sequence[FrozenTrial], finished: Sequence[FrozenTrial]) -> None:
        """Takes in what waits, and sets how many should: after it was emptied, four times what was taken."""
        taken = len(self.ids) - len(ids)
        self.ids, self.running = ids, len(running)
        self.wanted = max(1, math.ceil(self.ahead * len(running)) if self.ahead < 1 else int(self.ahead))
        if not ids:
            busy = {mark_in(each)["worker"] for each in [*running, *finished]}
            self.wanted = max(self.wanted, min(4 * taken, 2 * len(busy)))


class Pace:
    """When the storage is looked at: after `poll` seconds, and `REST` times as long as the last look took.

    Args:
        poll: seconds.
    """

    def __init__(self, poll: float):
        self.poll = poll
        self.ended, self.took = -math.inf, 0.0  # when the latest look ended, and what it took
        self.is_urgent = False  # whether that found an empty queue, and there are new trials

    def rest(self) -> None:
        """Waits until the next look is due."""
        pause = REST * self.took if self.is_urgent else max(self.poll, REST * self.took)
        time.sleep(max(0.0, self.ended + pause - time.monotonic()))

    def looked(self, began: float) -> None:
        """Takes in a look that has ended now."""
        self.ended, self.is_urgent = time.monotonic(), False
        self.took = self.ended - began


class Watch:
    """Signs of life of workers, by this process's clock."""

    def __init__(self) -> None:
        self.marks: dict[int, tuple[Any, float]] = {}  # the last sign for each running trial, and when it came
        self.every = HEARTBEAT  # of the latest worker that was seen

    def lost(self, running: Iterable[FrozenTrial]) -> list[FrozenTrial]:
        """The trials whose worker gives no sign of life any more."""
        now, before, gone = time.monotonic(), self.marks, []
        self.marks = {}
        for trial in running:
            mark = trial.system_attrs.get(BEAT)
            last, since = before.get(trial._trial_id, (None, now))
            self.every = mark_in(trial)["every"] if mark else self.every
            if last == mark and now - since > MISSED * self.every:
                gone.append(trial)
            else:
                self.marks[trial._trial_id] = (mark, since if last == mark else now)
        return gone


class Stored:
    """The trials of the storage that are for ours, or were for those of another run with the same numbers."""

    def __init__(self) -> None:
        self.tasks: dict[int, dict[int, dict[str, Any]]] = {}  # by number of a trial: ids there, and their tasks
        self.ids: set[int] = set()  # of all of these
        self.known: dict[int, int] = {}  # trial of ours -> id of the storage's trial
        self.is_crossed = False  # whether trials there have numbers of ours, and other configurations

    def add(self, trials: Iterable[FrozenTrial]) -> None:
        """Remembers which trials of the storage are for which numbers of ours."""
        for trial in trials:
            if trial._trial_id in self.ids or TRIAL not in trial.system_attrs:
                continue
            task = task_in(trial)
            if task is not None and task["id"] >= 0:
                self.tasks.setdefault(task["id"], {})[trial._trial_id] = task
                self.ids.add(trial._trial_id)


@dataclass
class Others:
    """Trials of the storage that are not from its leader.

    Attributes:
        enqueued: by users, or begun by workers; not yet one of our trials.
        begun: ids of those of them that workers have begun.
        taken: numbers of such trials that earlier leaders were told of; None until they are looked up.
    """

    enqueued: dict[int, Params] = field(default_factory=dict)
    begun: set[int] = field(default_factory=set)
    taken: set[int] | None = None


@dataclass
class PassedOn:
    """How far the reports of running trials were passed on, by ids of the storage's trials, and commands to the study.

    Attributes:
        judged: what the pruner has seen.
        shown: the last step that was shown to observers.
        commands: passes on those of the storage; None for a study without a journal, which takes none.
    """

    judged: dict[int, dict[float, float]] = field(default_factory=dict)
    shown: dict[int, float] = field(default_factory=dict)
    commands: Passing | None = None


# --- the evaluator ---------------------------------------------------------------------------------------------------


class StorageEvaluator(Evaluator):
    """An evaluator whose workers are processes anywhere that share an Optuna storage with the run.

    It keeps trials waiting there: a share of those that run, more while workers find none. A trial that a worker has
    died with, or that an earlier leader has put there, is the same trial of the storage: one with its number and its
    configuration. One evaluator at a time leads the study: from when it is made until it is closed.

    Args:
        storage: an Optuna storage, or its URL: see `deepbore.worker.shared.open_storage`.
        name: of the study in it, which is made if it is missing.
        study: whose trials these are.
        ahead: how many trials wait: below 1 a share of those that run, but at least one; else a number.
        poll: seconds between two looks at the storage.
        n_trials: how many trials there are in all, for workers that propose without a leader; None for no limit.
        heartbeat: seconds between two signs of life, for these workers.

    Raises:
        SettingError: for a setting outside its range, or a study in the storage that is another one.
        StudyLed: while another process leads that study.
    """

    def __init__(
        self,
        storage: str | BaseStorage,
        name: str,
        study: Study,
        ahead: float = 0.05,
        poll: float | timedelta = 0.5,
        n_trials: int | None = None,
        heartbeat: float | timedelta = LEADS,
    ):
        required(ahead=ahead, poll=poll, heartbeat=heartbeat)
        above(0, ahead=ahead, poll=seconds(poll), heartbeat=seconds(heartbeat))
        if ahead >= 1:
            whole(1, ahead=ahead)
        if objects := [name for name, parameter in study.space.parameters.items() if not parameter.is_plain]:
            raise SettingError(
                f"choices that are objects do not go through a storage, but those of {objects} are. Give their names, "
                "and let the workers look up what they stand for."
            )
        self.study, self.name = study, name
        self.n_trials = n_trials
        self.heartbeat = float(seconds(heartbeat) or 0)
        self.mark = {"leader": process_name(), "every": self.heartbeat}
        self.storage = get_storage(patiently(open_storage, storage, creates=True))
        self.study_id = self._found()
        self._lead()
        self._stored = Stored()
        self._links: dict[int, Trial] = {}  # by the id of the storage's trial
        self._others = Others()
        self._passed_on = PassedOn()
        # no method of its own: it ends, and gives up the lead, as soon as nothing has it
        write = partial(patiently, self.storage.set_study_user_attr, self.study_id, QUEUE)
        self._queue, self._pace, self._watch = Queue(write, ahead), Pace(float(seconds(poll) or 0)), Watch()
        self._beats: Beats | None = None
        journal = study.observations.journal
        if journal is not None:
            outer = StorageInbox(self.storage, self.study_id)
            self._passed_on.commands = Passing(outer, Inbox(journal.path, journal.run_id))
        self._look()  # what workers have begun is in the study's queue before a run counts its trials

    def _found(self) -> int:
        """The id of the study in the storage, which is made if it is missing.

        Raises:
            SettingError: if it has other directions.
        """
        own = list(self.study.observations.directions)
        study = patiently(create_study, storage=self.storage, study_name=self.name, directions=own, load_if_exists=True)
        there = [each.name.lower() for each in study.directions]
        if there != own:
            raise SettingError(
                f"the study {self.name!r} in this storage has the directions {there}, but the run has {own}. Give "
                "another name."
            )
        return int(patiently(self.storage.get_study_id_from_name, self.name))

    def _lead(self) -> None:
        """Claims the study, and says what is to be known of its run."""
        self._right = Lead(self.storage, self.study_id, self.name, self.heartbeat)
        self._release = weakref.finalize(self, self._right.release)  # at the latest when nobody has this evaluator
        try:
            self._join()
        except BaseException:
            self._release()
            raise

    def _join(self) -> None:
        """Says what workers are to know of the run, whose study this is now.

        Raises:
            SettingError: if it is another run's.
        """
        journal = self.study.observations.journal
        run = None if journal is None else journal.run_id
        known = patiently(self.storage.get_study_user_attrs, self.study_id).get(STUDY, {"run": run})
        if isinstance(known, Mapping) and "run" in known and known["run"] != run:
            raise SettingError(
                f"the study {self.name!r} in this storage belongs to another run ({known['run']!r:.100}). Load the "
                "study from the journal of that run, or give another name."
            )
        prunes = self.study.state.judge is not None
        self._say(STUDY, {"run": run, "parameters": list(self.study.space.names), "prunes": prunes})
        self._say(ALONE, self._for_workers_alone())
        self._say(LEADER, {**self.mark, "count": -1})
        self._say(DONE, False)

    def _say(self, attribute: str, told: object) -> None:
        patiently(self.storage.set_study_user_attr, self.study_id, attribute, told)

    def _for_workers_alone(self) -> dict[str, Any]:
        """What workers need to propose without a leader; or why they can't."""
        if self.study.observations.budget is not None:
            return {"why": "the study has a budget, and only a leader promotes"}
        try:
            DeclaredSpace(self.study.space)
        except SpaceError as error:
            return {"why": str(error)}
        return {"space": self.study.space.to_dict(), "trials": self.n_trials}

    def end(self) -> None:
        """Tells the workers that there are no more trials."""
        self._queue.ids = []
        self._queue.tell()
        self._say(DONE, ENDED)

    # --- Evaluator ---------------------------------------------------------------------------------------------------

    @property
    def workers(self) -> int:  # type: ignore[override]  # they come and go
        return max(1, self._queue.running)

    @property
    def outstanding(self) -> int:
        return len(self._links)

    @property
    def free(self) -> int:
        return self._queue.wanted - len(self._queue.ids)

    @property
    def begun(self) -> int:
        return len(self._others.begun & self._others.enqueued.keys())

    def open(self) -> None:
        if not self._release.alive:  # it was closed
            self._lead()
        self._look()
        self._beats = Beats(partial(self.storage.set_study_user_attr, self.study_id, LEADER), self.mark)
        self._beats.begin()

    def submit(self, trial: Trial) -> None:
        identity = self._linked(trial)
        if identity is None:
            identity = self._adopted(trial) or self._created(trial)
        self._stored.known[trial.id] = identity
        self._links[identity] = trial
        if identity in self._others.begun:  # it does not wait
            return
        self._pace.is_urgent = self._pace.is_urgent or not self._queue.ids
        self._queue.ids.append(identity)  # until the next look
        self._queue.tell(every=self._pace.poll)  # a large batch takes seconds

    def collect(self) -> list[Finished]:
        if not self._links:
            return []
        self._queue.tell()
        self._pace.rest()
        return self._look()

    def withdraw(self) -> list[Trial]:
        """The trials that no worker has taken: they stay in the storage, as the same trials, for the next leader."""
        states = (TrialState.WAITING,)
        waiting = patiently(self.storage.get_all_trials, self.study_id, deepcopy=False, states=states)
        ours = [each._trial_id for each in waiting if each._trial_id in self._links]
        self._queue.ids = []
        return [self._links.pop(identity) for identity in ours]

    def close(self) -> None:
        self._links.clear()
        if self._release.alive:
            self._pass_commands(every=0.0)  # what became of the last ones
        if self._beats is not None:
            self._beats.end()
        self._release()

    # --- within ------------------------------------------------------------------------------------------------------

    def _pass_commands(self, every: float = EVERY) -> None:
        """Passes on what a dashboard has left in the storage; the run goes on where that can't be read."""
        if self._passed_on.commands is None:
            return
        try:
            self._passed_on.commands.look(every)
        except Exception as error:  # of any database
            log.warning("commands in the storage can't be read now: %s", type(error).__name__)

    def _created(self, trial: Trial) -> int:
        """A new waiting trial of the storage."""
        waiting = create_trial(
            state=TrialState.WAITING,
            params=trial.params,
            distributions={name: distribution(self.study.space.parameters[name]) for name in trial.params},
            system_attrs={TRIAL: task_of(trial)},
        )
        return int(patiently(self.storage.create_new_trial, self.study_id, waiting))

    def _linked(self, trial: Trial) -> int | None:
        """The storage's trial for one of ours: what has its number and its configuration; the first of several."""
        if trial.id in self._stored.known:
            return self._stored.known[trial.id]
        there = self._stored.tasks.get(trial.id, {})
        ours = essence(task_of(trial))
        for identity, task in there.items():
            if essence(task) == ours:
                return identity
        if there and not self._stored.is_crossed:
            self._stored.is_crossed = True
            log.warning(
                "the storage has trials under numbers of this run, as %d, with other configurations: of a leader with "
                "a copy of the journal. They are left alone",
                trial.id,
            )
        return None

    def _adopted(self, trial: Trial) -> int | None:
        """A trial with this configuration that a user has enqueued in the storage, or a worker has begun, if any."""
        for identity, params in self._others.enqueued.items():
            if params == trial.params:
                del self._others.enqueued[identity]
                for name, value in params.items() if identity not in self._others.begun else ():
                    own = distribution(self.study.space.parameters[name])
                    patiently(self.storage.set_trial_param, identity, name, own.to_internal_repr(value), own)
                with suppress(UpdateFinishedTrialError):  # begun, and ended since
                    patiently(self.storage.set_trial_system_attr, identity, TRIAL, task_of(trial))
                return identity
        return None

    def _look(self) -> list[Finished]:
        """Reads the storage: what has finished, how many trials wait and run, who is lost, what was enqueued."""
        self._right.check()
        began = time.monotonic()
        trials = patiently(self.storage.get_all_trials, self.study_id, deepcopy=False)
        self._stored.add(trials)
        own = [trial for trial in trials if trial._trial_id in self._links]
        running = [trial for trial in own if trial.state == TrialState.RUNNING]
        finished = [trial for trial in own if trial.state.is_finished()]
        waiting = [trial._trial_id for trial in own if trial.state == TrialState.WAITING]
        self._queue.seen(waiting, running, finished)
        self._show(running)
        self._judge(running)
        unborn = [trial for trial in trials if trial.state == TrialState.RUNNING and is_unborn(trial)]
        for trial in self._watch.lost([*running, *unborn]):
            self._lose(trial)
        self._enqueue([trial for trial in trials if self._is_for_the_study(trial)])
        finished.sort(key=lambda each: (each.datetime_complete is None, each.datetime_complete, each.number))
        self._pass_commands()
        self._pace.looked(began)
        return [self._finished(each) for each in finished]

    def _finished(self, trial: FrozenTrial) -> Finished:
        """One of ours that has finished; a failure, with the reason, where the storage has no outcome of it."""
        ours = self._links.pop(trial._trial_id)
        try:
            outcome = numbered(trial, outcome_in(trial, ours.id))
            Told(ours.id, outcome).normal(self.study.observations.ledger)
        except Exception as error:  # any program may have written it
            log.warning("the outcome of trial %d in the storage is malformed: %s", ours.id, error)
            outcome = numbered(trial, Outcome.failure(f"its outcome in the storage is malformed: {says(error)}"))
        return Finished(ours, outcome)

    def _is_for_the_study(self, trial: FrozenTrial) -> bool:
        """Whether a trial was enqueued by a user, or begun by a worker, and the study does not know of it."""
        if trial._trial_id in self._others.enqueued or trial._trial_id in self._others.begun:
            return False
        if not is_own(trial):
            return trial.state == TrialState.WAITING and TRIAL not in trial.system_attrs
        if self._others.taken is None:
            told = self.study.observations.ledger.notes.attributes.values()
            self._others.taken = {attributes[NUMBER] for attributes in told if NUMBER in attributes}
        return trial.number not in self._others.taken

    def _show(self, running: Iterable[FrozenTrial]) -> None:
        """Passes on what running trials have reported, to observers."""
        for trial in running:
            reporting = Reporting.of(self._links[trial._trial_id])
            if reporting is not None and reporting.send is not None:
                shown = self._passed_on.shown.get(trial._trial_id, -math.inf)
                for step, value in reports_in(trial).items():
                    if step > shown:
                        reporting.send(step, value)
                        self._passed_on.shown[trial._trial_id] = step

    def _judge(self, running: Iterable[FrozenTrial]) -> None:
        """Has the pruner look at what running trials have reported, and tells the workers of those that should end."""
        for trial in running:
            identity, ours = trial._trial_id, self._links[trial._trial_id]
            judge = None if (reporting := Reporting.of(ours)) is None else reporting.judge
            reports = reports_in(trial)
            if judge is None or PRUNE in trial.system_attrs or reports == self._passed_on.judged.get(identity, {}):
                continue
            self._passed_on.judged[identity] = reports
            if judge(ours.id, reports):
                with suppress(UpdateFinishedTrialError):
                    patiently(self.storage.set_trial_system_attr, identity, PRUNE, True)

    def _lose(self, trial: FrozenTrial) -> None:
        identity = trial._trial_id
        if identity not in self._links:
            self._fail(identity, "its worker died and proposed nothing")
            return
        row = self._links[identity].id
        times = as_count(trial.system_attrs.get(LOST)) + 1
        again = times <= mark_in(trial)["retries"]
        try:
            patiently(self.storage.set_trial_system_attr, identity, LOST, times)
            if again:
                log.warning("trial %d was lost with its worker, and waits again", row)
                patiently(self.storage.set_trial_state_values, identity, TrialState.WAITING)
                self._queue.ids.append(identity)
            else:
                outcome = replace(LostWorker.failure(f"{times} workers died with it"), reports=reports_in(trial))
                patiently(self.storage.set_trial_system_attr, identity, OUTCOME, Told(row, outcome).line())
                patiently(self.storage.set_trial_state_values, identity, TrialState.FAIL)
        except UpdateFinishedTrialError:  # it was slow, and not dead
            log.info("trial %d came back after all", row)

    def _enqueue(self, trials: Iterable[FrozenTrial]) -> None:
        """Enqueues in the study what users have enqueued in the storage, or workers begun; the trial stays theirs."""
        for trial in trials:
            params = trial.system_attrs.get(FIXED, trial.params)
            if (task := task_in(trial)) is not None:
                params = task["params"]
                self._others.begun.add(trial._trial_id)
            try:
                if not isinstance(params, Mapping):
                    raise SpaceError(f"a configuration must be a dict of parameters, but got {params!r:.100}.")
                (native,) = self.study.space.decode(self.study.space.encode([params]))
                others = list(self._others.enqueued.values())
                if self._taken_up().count(native) <= others.count(native):
                    self.study.enqueue(native)
                self._others.enqueued[trial._trial_id] = native
            except DeepBoreError as error:
                self._fail(trial._trial_id, f"refused: {error}")

    def _fail(self, identity: int, reason: str) -> None:
        """Ends a trial of the storage that is not part of the study, unless it has ended since."""
        with suppress(UpdateFinishedTrialError):
            patiently(self.storage.set_trial_user_attr, identity, "reason", reason)
            patiently(self.storage.set_trial_state_values, identity, TrialState.FAIL)

    def _taken_up(self) -> list[Params]:
        """Configurations that an earlier leader has enqueued or asked for, and not linked to a trial of the storage."""
        state = self.study.state
        asked = state.observations.trials(state.observations.columns.pending_rows.tolist())
        queued = [self.study.space.decode(point[None])[0] for point in state.queue]
        return queued + [trial.params for trial in asked if self._linked(trial) is None]


def is_unborn(trial: FrozenTrial) -> bool:
    """Whether a worker was about to propose a configuration for a trial."""
    return BEAT in trial.system_attrs and TRIAL not in trial.system_attrs


def essence(task: Mapping[str, Any]) -> str:
    """What a task asks for: configuration, budget, and which trial it continues, as text."""
    earlier = task.get("resume_from")
    continued = earlier.get("id") if isinstance(earlier, Mapping) else None
    return json.dumps([task.get("params"), task.get("budget"), continued], sort_keys=True, default=repr)


def as_count(told: object) -> int:
    """A number of times; 0 where something else was written."""
    return told if isinstance(told, int) and told >= 0 else 0


def says(error: Exception) -> str:
    """What is wrong, in a line: raw errors of a malformed line say nothing without their name."""
    text = " ".join(str(error).split())
    return text if isinstance(error, DeepBoreError) else f"{type(error).__name__}: {text}"


def outcome_in(trial: FrozenTrial, row: int) -> Outcome:
    """The outcome of a finished trial of the storage, which a worker of Optuna's may have told, too.

    Raises:
        Exception: of any kind, for a malformed one.
        SettingError: for the outcome of a trial other than `row`.
    """
    if OUTCOME in trial.system_attrs:
        line = trial.system_attrs[OUTCOME]
        outcome = outcome_of(line)
        if line["trial"] not in (row, -1 - trial.number):  # the second where a worker has proposed it
            raise SettingError(f"it must be that of trial {row}, but is that of trial {line['trial']!r:.100}.")
        return outcome
    if trial.state == TrialState.COMPLETE:
        return Outcome(list(trial.values))
    if trial.state == TrialState.PRUNED:
        return replace(Outcome.pruned(), reports=trial.intermediate_values)
    return replace(Outcome.failure(trial.user_attrs.get("reason")), reports=reports_in(trial))


def numbered(trial: FrozenTrial, outcome: Outcome) -> Outcome:
    """An outcome with the number of its trial, if a worker has proposed that: later leaders know by it who was told."""
    return replace(outcome, attributes={**outcome.attributes, NUMBER: trial.number}) if is_own(trial) else outcome


# --- the leader ------------------------------------------------------------------------------------------------------


class Leader:
    """The process that proposes for a shared study, and keeps its journal.

    Args:
        storage: an Optuna storage, or its URL: see `deepbore.worker.shared.open_storage`.
        name: of the study in it.
        study: the study, with a journal. That of a leader that has ended continues by `Study.load(journal)`, or by
            `Study(..., journal=..., if_exists="load")`.
        ahead: how many trials wait: below 1 a share of those that run, but at least one; else a number.
        poll: seconds between two looks at the storage.
        heartbeat: seconds between two signs of life, for workers that may propose without a leader.

    Raises:
        SettingError: for a study without a journal.
    """

    def __init__(
        self,
        storage: str | BaseStorage,
        name: str,
        study: Study,
        ahead: float = 0.05,
        poll: float | timedelta = 0.5,
        heartbeat: float | timedelta = LEADS,
    ):
        if study.observations.journal is None:
            raise SettingError("a leader needs a study with a journal, from which another one can continue. Give one.")
        self.storage, self.name, self.study = storage, name, study
        self.ahead, self.poll, self.heartbeat = ahead, poll, heartbeat

    def run(self, n_trials: int | None, **options: Unpack[RunArguments]) -> Result:
        """Proposes until the study has so many trials, those of earlier leaders included, and all are told.

        Args:
            n_trials: how many trials, in all; None for no limit, where something else ends the run.
            options: as of `Study.optimize`.

        Raises:
            JournalError: while another leader has the journal.
            StudyLed: while another leader, with another journal or a copy of this one, has the study of the storage.
            KeyboardInterrupt: on Ctrl-C and SIGTERM, the first of which waits for the trials that are in the storage.
            ObjectiveError: if no evaluation ever gives a value.
        """
        whole(1, n_trials=n_trials)
        journal = self.study.observations.journal
        assert journal is not None
        journal.open()  # before the storage is touched: another process may lead
        evaluator = StorageEvaluator(
            self.storage, self.name, self.study, self.ahead, self.poll, n_trials, self.heartbeat
        )
        try:
            left = None if n_trials is None else max(0, n_trials - self.study.observations.ledger.n_asked)
            result = self.study.optimize(evaluator, left, **options)
            evaluator.end()
        finally:
            evaluator.close()
        return result
