"""A worker of a shared study: evaluates trials that wait in an Optuna storage. Needs Optuna, no torch.

The leader (`deepbore.integrations.shared.Leader`) puts trials into the storage; workers pop them, beat, and tell their
outcomes. They are ordinary trials of one Optuna study, which optuna-dashboard shows, with these attributes:

| attribute | of | written by | what it holds |
|---|---|---|---|
| `deepbore:study` | the study | the leader | the run's id, the names of its parameters, whether a pruner ends trials |
| `deepbore:done` | the study | the leader | whether there will be no more trials |
| `deepbore:queue` | the study | the leader | ids of the trials that wait, the first ones first, at its last look |
| `deepbore:leader` | the study | the leader | which process leads, and a count that goes up while it lives |
| `deepbore:alone` | the study | the leader | how workers propose without a leader: space, number of trials |
| `deepbore:trial` | a trial | the leader | id, configuration, budget, and the trial that it continues |
| `deepbore:beat` | a trial | its worker | who evaluates it, and a count that goes up while that one lives |
| `deepbore:reports` | a trial | its worker | values at steps that are not whole, which Optuna does not have |
| `deepbore:prune` | a trial | the leader | whether its worker should end it |
| `deepbore:lost` | a trial | the leader | how many workers have died with it |
| `deepbore:outcome` | a trial | its worker | the outcome, as a line of a journal |

Beats are attributes, and not Optuna's heartbeats: its gRPC proxy passes none on, a trial has none between pop and first
beat, and their retry leaves a failed trial for each lost worker. Here a lost trial waits again, as the same trial.

A worker that proposes while there is no leader writes `deepbore:trial`, too, with an id below zero. The next leader
asks its study for that configuration, and has the trial as its own from then on.
"""

import json
import logging
import math
import os
import random
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from importlib.util import find_spec
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar
from uuid import uuid4

from deepbore.data.events import Told
from deepbore.data.outcome import Mistake, Outcome, WrongReturn
from deepbore.data.trial import Status, Trial
from deepbore.errors import EvaluatorError, MissingPackage, ObjectiveError, SettingError
from deepbore.validation import above, required, seconds, whole
from deepbore.worker.objective import Objective, evaluate
from deepbore.worker.reporting import Reporting

try:
    from optuna.exceptions import StorageInternalError, TrialPruned, UpdateFinishedTrialError
    from optuna.storages import BaseStorage, RDBStorage
    from optuna.trial import FrozenTrial, TrialState, create_trial
except ImportError:
    raise MissingPackage("a shared study needs Optuna: pip install 'deepbore[optuna]'.") from None

if TYPE_CHECKING:
    from deepbore.integrations.alone import Sampled

STUDY, DONE, QUEUE, TRIAL = "deepbore:study", "deepbore:done", "deepbore:queue", "deepbore:trial"
ENDED = "what waits is the next leader's"  # what the second says where a leader has ended
LEADER, ALONE = "deepbore:leader", "deepbore:alone"
BEAT, LOST, PRUNE, OUTCOME = "deepbore:beat", "deepbore:lost", "deepbore:prune", "deepbore:outcome"
REPORTS = "deepbore:reports"
HEARTBEAT, RETRIES = 60.0, 3
MISSED = 3  # heartbeats without a sign of life after which a worker or a leader counts as dead
AWAY = 600.0  # seconds that a storage may be away, as while its server starts anew
STATES = {Status.COMPLETE: TrialState.COMPLETE, Status.FAILED: TrialState.FAIL, Status.PRUNED: TrialState.PRUNED}
TRIES = 4  # trials that the leader says wait, before a worker looks for itself
RARELY = 8  # times `poll` is the longest time between two looks for a trial
LATE = 30.0  # seconds that a worker waits for a leader where the study is done
LOCKED = 60.0  # seconds that a process waits for SQLite's lock
PASSING = {  # errors that pass, by name, so that no package is imported for them; the last two while tables are made
    "OperationalError", "InterfaceError", "RpcError", "OSError", "IntegrityError", "ProgrammingError",
}  # fmt: skip
UNREADABLE = (RecursionError, json.JSONDecodeError)  # of attributes that any program may have written
CHANCE = random.SystemRandom()  # for pauses and turns: the program's own stream stays as it is
log = logging.getLogger(__name__)
T = TypeVar("T")


# --- the storage -----------------------------------------------------------------------------------------------------


def open_storage(storage: str | BaseStorage, creates: bool = False) -> BaseStorage:
    """An Optuna storage by its URL: of a database (`sqlite:///`, `postgresql://`), or of a proxy (`grpc://host:port`).

    Args:
        storage: the URL, or a storage, which stays as it is.
        creates: whether missing tables of a database are made.

    Raises:
        SettingError: for anything else.
    """
    if isinstance(storage, BaseStorage):
        return storage
    if not isinstance(storage, str) or "://" not in storage:
        raise SettingError(
            f"storage must be an Optuna storage or its URL, as sqlite:///study.db, but got {storage!r:.100}."
        )
    if storage.startswith("grpc://"):
        from optuna.storages import GrpcStorageProxy

        host, _, port = storage.removeprefix("grpc://").partition(":")
        return GrpcStorageProxy(host=host, port=int(port or 13000))
    if not storage.startswith("sqlite"):
        return RDBStorage(storage, engine_kwargs={"pool_pre_ping": True}, skip_table_creation=not creates)
    made = RDBStorage(storage, {"connect_args": {"timeout": LOCKED}}, skip_table_creation=not creates)
    return _one_at_a_time(made)


def _one_at_a_time(storage: RDBStorage) -> RDBStorage:
    """A storage in SQLite whose transactions wait for one another: without, two workers can pop the same trial.

    SQLite has no SELECT FOR UPDATE, and Python begins a transaction at the first change, after Optuna has looked.
    """
    from sqlalchemy import event

    @event.listens_for(storage.engine, "connect")
    def by_hand(connection: Any, _record: object) -> None:
        connection.isolation_level = None

    @event.listens_for(storage.engine, "begin")
    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    storage.engine.dispose()  # connections from before
    return storage


def is_away(error: BaseException) -> bool:
    """Whether an error says that the storage can't be reached now, rather than that something is wrong with a call."""
    names = {each.__name__ for each in type(error).__mro__}
    return isinstance(error, StorageInternalError) or bool(names & PASSING)


def patiently(call: Callable[..., T], *args: Any, **named: Any) -> T:
    """The result of a call of the storage, which is tried again while that is away, for `AWAY` seconds at most."""
    began, pause = time.monotonic(), 0.1
    while True:
        try:
            return call(*args, **named)
        except UNREADABLE as error:
            raise unreadable(error) from error
        except Exception as error:
            if not is_away(error) or time.monotonic() - began > AWAY:
                raise
            log.warning("the storage is away, and tried again: %s", error.__cause__ or error)
        time.sleep(pause * CHANCE.uniform(0.5, 1))
        pause = min(2 * pause, 10.0)


def unreadable(error: BaseException) -> EvaluatorError:
    """The error of a storage in which another program has written what Optuna can't read."""
    return EvaluatorError(
        f"the storage holds what can't be read: {type(error).__name__}: {error}. Remove that attribute, or what has "
        "written it; the trials in the journal are safe."
    )


def process_name() -> str:
    """A name for what a process does, which no other process has, nor anything else in this one."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"


# --- trials ----------------------------------------------------------------------------------------------------------


def own_task(number: int, params: Mapping[str, Any]) -> dict[str, Any]:
    """The task of a trial that a worker has proposed, without a leader that knows an id for it.

    Args:
        number: of the trial in the storage.
        params: its configuration, as plain data.
    """
    return {"id": -1 - number, "params": dict(params)}


def is_own(trial: FrozenTrial) -> bool:
    """Whether a worker has proposed a trial, and no leader has it yet."""
    task = task_in(trial)
    return task is not None and int(task["id"]) < 0


def task_in(trial: FrozenTrial) -> dict[str, Any] | None:
    """The task in a trial of the storage; None if there is none, or what any program may have written in its place."""
    task = trial.system_attrs.get(TRIAL)
    if not isinstance(task, Mapping) or type(task.get("id")) is not int or not isinstance(task.get("params"), Mapping):
        return None
    return dict(task)


def mark_in(trial: FrozenTrial) -> dict[str, Any]:
    """Who evaluates a trial, and the rest of its sign of life; what is missing or malformed has its default."""
    return mark_of(trial.system_attrs.get(BEAT))


def mark_of(told: object, every: float = HEARTBEAT) -> dict[str, Any]:
    """A sign of life, of which what is missing or malformed has its default: worker, every, retries."""
    given = told if isinstance(told, Mapping) else {}
    worker, beat, retries = given.get("worker"), given.get("every"), given.get("retries")
    return {
        "worker": worker if isinstance(worker, str) else None,
        "every": float(beat) if isinstance(beat, int | float) and 0 < beat < math.inf else every,
        "retries": retries if isinstance(retries, int) and retries >= 0 else RETRIES,
    }


def reports_in(trial: FrozenTrial) -> dict[float, float]:
    """What a running trial has reported, by ascending step; without what any program may have written in its place."""
    told = trial.system_attrs.get(REPORTS)
    between: dict[float, float] = {}
    for step, value in told.items() if isinstance(told, Mapping) else ():
        with suppress(TypeError, ValueError):
            between[float(step)] = float(value)
    whole = {step: value for step, value in {**trial.intermediate_values, **between}.items() if 0 <= step < math.inf}
    return dict(sorted(whole.items()))


def task_of(trial: Trial) -> dict[str, Any]:
    """What a worker is told of a trial, as plain JSON data; `trial_of` is the way back."""
    task: dict[str, Any] = {"id": trial.id, "params": trial.params}
    if trial.budget is not None:
        task["budget"] = trial.budget
    if trial.resume_from is not None:
        task["resume_from"] = {**task_of(trial.resume_from), "attributes": dict(trial.resume_from.attributes)}
    return task


def trial_of(task: dict[str, Any]) -> Trial:
    """The trial that a task describes."""
    earlier = task.get("resume_from")
    return Trial(**{**task, "resume_from": earlier and trial_of(earlier)})


# --- the worker ------------------------------------------------------------------------------------------------------


def work(
    objective: Objective,
    storage: str | BaseStorage,
    study: str,
    *,
    heartbeat: float | timedelta = HEARTBEAT,
    retries: int = RETRIES,
    n_trials: int | None = None,
    patience: float | timedelta | None = None,
    poll: float | timedelta = 1.0,
    propose_after: float | timedelta | None = None,
) -> int:
    """Evaluates trials of a shared study until its leader says that there are no more.

    A trial whose worker dies waits again for another worker, once three heartbeats are missing; only what a worker
    states is a failure. A trial that is lost more than `retries` times counts as failed: it kills its workers. On
    Ctrl-C and SIGTERM, as by a pre-emption, the trial is given back at once. A mistake in the program (a name that is
    not defined, a package that is missing here) ends this worker, and the trial is given back, too.

    Args:
        objective: configuration -> value, or `Outcome`; one with a second argument named `trial` is given the trial.
        storage: an Optuna storage, or its URL: see `open_storage`. It is waited for.
        study: name of the study in it. Its leader is waited for.
        heartbeat: seconds, or a `timedelta`, between two signs of life.
        retries: how many times a trial is tried again whose worker has died.
        n_trials: how many trials it evaluates; None for no limit.
        patience: seconds, or a `timedelta`, without a trial after which it ends; None for no limit.
        poll: seconds between two looks for a trial; up to eight times as many while there is none.
        propose_after: seconds, or a `timedelta`, without a sign of life of a leader, and at least three of those that
            are due, after which it proposes by itself when no trial waits: by `DeepBoreSampler`, for which torch is
            imported then, from the trials in the storage, until the study has its `n_trials`. The next leader takes
            these trials in. Their `trial.id` is below zero. None: it waits for a leader.

    Returns:
        how many trials it has evaluated.

    Raises:
        ObjectiveError: for a mistake in the program, or a first evaluation that returns no value.
        EvaluatorError: if the storage can't be read, for what another program has written into it.
        KeyboardInterrupt: on Ctrl-C and SIGTERM.
        MissingPackage: for `propose_after` without torch.
        SettingError: for a setting outside its range.
    """
    required(heartbeat=heartbeat, retries=retries, poll=poll)
    every, limit, pause = seconds(heartbeat), seconds(patience), seconds(poll)
    alone = seconds(propose_after)
    above(0, heartbeat=every, patience=limit, poll=pause, propose_after=alone)
    whole(0, retries=retries)
    whole(1, n_trials=n_trials)
    assert every is not None  # it is required
    assert pause is not None
    if alone is not None and find_spec("torch") is None:
        raise MissingPackage("a worker that proposes needs torch: pip install torch, or leave propose_after out.")
    worker = Worker(objective, storage, study, every, retries, pause, alone)
    with worker.interruptible():
        return worker.run(n_trials, limit)


class Worker:
    """What `work` does, step by step; the arguments are the same, times in seconds."""

    def __init__(
        self,
        objective: Objective,
        storage: str | BaseStorage,
        study: str,
        every: float,
        retries: int,
        pause: float,
        alone: float | None = None,
    ):
        self.objective, self.place, self.study, self.pause = objective, storage, study, pause
        self.mark = {"worker": process_name(), "every": every, "retries": retries}
        self.every, self.alone = every, alone
        self.is_told_to_end = False
        self._has_value = False
        self._said: dict[str, Any] = {}  # attributes of the study, at the last look
        self._led: tuple[Any, float] = (None, 0.0)  # the leader's last sign of life, and when it was new
        self._proposals: Proposals | None = None  # without a leader
        self._is_warned = False  # that there is none

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """A context in which SIGTERM is a KeyboardInterrupt, in the main thread, if the program leaves it alone."""
        is_main = threading.current_thread() is threading.main_thread()
        takes = is_main and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        if takes:
            signal.signal(signal.SIGTERM, self._end)
        try:
            yield
        finally:
            if takes:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        self.is_told_to_end = True
        raise KeyboardInterrupt

    def run(self, n_trials: int | None, patience: float | None) -> int:
        """Evaluates until there are no more trials; the number of those evaluated."""
        if not self.connect(patience):
            return 0
        count, looks, idle_since, is_open = 0, 0, time.monotonic(), False  # it is idle from its first look on
        while n_trials is None or count < n_trials:
            idle = time.monotonic() - idle_since
            if (found := self.pop() or self.propose()) is not None:
                self.evaluate(found)
                count, looks, idle_since, is_open = count + 1, 0, time.monotonic(), True
                continue
            if patience is not None and idle > patience:
                break
            if not self._said.get(DONE):
                is_open = True
            elif is_open or idle > LATE:  # a leader that starts at the same time may continue a study that was done
                break
            # not all at the same time, and ever more rarely: a thousand that wait would keep the storage busy
            time.sleep(self.pause * min(2**looks, RARELY) * CHANCE.uniform(0.5, 1))
            looks += 1
        return count

    def connect(self, patience: float | None) -> bool:
        """Waits for the storage and the study; whether both are there."""
        began, is_first = time.monotonic(), True
        while patience is None or time.monotonic() - began <= patience:
            try:
                self.storage = open_storage(self.place)
                self.study_id = self.storage.get_study_id_from_name(self.study)
                told = self.storage.get_study_user_attrs(self.study_id).get(STUDY)
                if isinstance(told, Mapping) and isinstance(told.get("parameters"), list):
                    self.names = frozenset(map(str, told["parameters"]))
                    self.is_judged = bool(told.get("prunes"))
                    return True
                why = "it has no leader yet"
            except KeyError:
                why = "it is not in the storage yet"
            except UNREADABLE as error:
                raise unreadable(error) from error
            except Exception as error:
                if not is_away(error):
                    raise
                why = str(error.__cause__ or error).partition("\n")[0]
            if is_first:
                log.warning("waiting for the study %r: %s", self.study, why)
            is_first = False
            time.sleep(self.pause)
        return False

    # --- one trial ---------------------------------------------------------------------------------------------------

    def pop(self) -> FrozenTrial | None:
        """A waiting trial, which is this worker's now; None if there is none.

        To read all that wait costs the storage the more the longer the queue is: a worker goes for one of those that
        the leader says wait, and reads all only if others were faster, or no leader keeps the list.
        """
        self._said = patiently(self.storage.get_study_user_attrs, self.study_id)
        if self._said.get(DONE) == ENDED:  # what waits all the same is the next leader's
            return None
        queue = self._queue()
        older = queue[: (len(queue) + 1) // 2]  # not all workers go for the first one at the same time
        for identity in CHANCE.sample(older, min(TRIES, len(older))):
            if self._takes(identity):
                return patiently(self.storage.get_trial, identity)
        waiting = patiently(self.storage.get_all_trials, self.study_id, deepcopy=False, states=(TrialState.WAITING,))
        first, *others = sorted(waiting, key=lambda each: each.number) or [None]
        CHANCE.shuffle(others)
        for trial in filter(None, [first, *others]):
            # without this attribute it was enqueued by a user: the leader has not looked at it yet
            if TRIAL in trial.system_attrs and self._takes(trial._trial_id):
                return trial
        return None

    def _queue(self) -> list[int]:
        """Ids of trials that the leader says wait."""
        queue = self._said.get(QUEUE)
        return [each for each in queue if type(each) is int] if isinstance(queue, list) else []

    def propose(self) -> FrozenTrial | None:
        """A trial that this worker has made; None unless it may, and no leader lives."""
        if self.alone is None or not self._is_alone(self.alone):
            return None
        if self._proposals is None:
            from deepbore.integrations.alone import Sampled  # needs torch: a worker that has a leader does without

            space = self._said[ALONE]["space"]
            self._proposals = Proposals(patiently(Sampled, self.storage, self.study, space), self.study_id)
        return self._proposals.propose(self.mark, self._said[ALONE]["trials"])

    def _is_alone(self, limit: float) -> bool:
        """Whether the study goes on, and its leader has given no sign of life for so long, by this process's clock."""
        mark, now = self._said.get(LEADER), time.monotonic()
        if mark != self._led[0]:
            self._led, self._is_warned = (mark, now), False
        every = mark_of(mark)["every"]
        if mark is None or self._said.get(DONE) or now - self._led[1] <= max(limit, MISSED * every):
            return False
        may = self._said.get(ALONE)
        if not isinstance(may, Mapping):
            may = {"why": "what a leader has left for it is malformed"}
        if not self._is_warned:
            what = f"it waits: {may['why']}" if "why" in may else "it proposes by DeepBoreSampler until one is back"
            log.warning("no leader gives a sign of life, and no trial waits for this worker: %s", what)
        self._is_warned = True
        return "why" not in may

    def _takes(self, identity: int) -> bool:
        """Whether a trial waited, and is this worker's now."""
        with suppress(UpdateFinishedTrialError, KeyError):  # there may be none with such an id
            return bool(patiently(self.storage.set_trial_state_values, identity, TrialState.RUNNING))
        return False

    def evaluate(self, found: FrozenTrial) -> None:
        """Evaluates a trial of the queue, and tells the storage."""
        identity = found._trial_id
        try:
            trial = replace(trial_of(found.system_attrs[TRIAL]), reporter=self._reporting(identity))
        except Exception as error:  # any program may have written it
            self._refuse(identity, f"its task in the storage is malformed: {type(error).__name__}: {error}")
            return
        try:
            with Beats(partial(self.storage.set_trial_system_attr, identity, BEAT), self.mark):
                outcome = evaluate(self.objective, trial)
            if self.is_told_to_end:  # which the objective has caught
                raise KeyboardInterrupt
            if complaint := self._mistake(trial, outcome):
                raise ObjectiveError(complaint)
        except BaseException:
            self.give_back(identity)
            raise
        self.tell(identity, trial, outcome)

    def _refuse(self, identity: int, reason: str) -> None:
        """Ends a trial that can't be evaluated by any worker."""
        log.warning("a trial has failed: %s", reason)
        with suppress(UpdateFinishedTrialError):
            patiently(self.storage.set_trial_user_attr, identity, "reason", reason)
            patiently(self.storage.set_trial_state_values, identity, TrialState.FAIL)

    def tell(self, identity: int, trial: Trial, outcome: Outcome) -> None:
        """Writes an outcome, unless another worker was given the trial meanwhile, and was first."""
        self._has_value = self._has_value or not outcome.has_failed
        state, values = STATES[outcome.status], list(outcome.values) if outcome.status is Status.COMPLETE else None
        try:
            patiently(self.storage.set_trial_system_attr, identity, OUTCOME, Told(trial.id, outcome).line())
            if outcome.reason:
                patiently(self.storage.set_trial_user_attr, identity, "reason", outcome.reason)
            if outcome.constraints:  # as Optuna keeps them
                patiently(self.storage.set_trial_system_attr, identity, "constraints", list(outcome.constraints))
            patiently(self.storage.set_trial_state_values, identity, state, values)
        except UpdateFinishedTrialError:
            log.warning("trial %d was told by another worker, and by none twice", trial.id)

    def give_back(self, identity: int) -> None:
        """Has a trial wait again, unless it is another worker's now."""
        try:
            found = self.storage.get_trial(identity)
            if found.state == TrialState.RUNNING and found.system_attrs.get(BEAT, self.mark)["worker"] == self.worker:
                self.storage.set_trial_state_values(identity, TrialState.WAITING)
        except Exception as error:  # the leader will miss the beats
            log.warning("a trial was not given back: %s", error)

    @property
    def worker(self) -> str:
        """The name of this worker."""
        return str(self.mark["worker"])

    def _reporting(self, identity: int) -> Reporting:
        """What an attempt of a trial reports to: the storage, where the leader's decisions are, too."""

        between: dict[str, float] = {}

        def send(step: float, value: float) -> None:
            with suppress(UpdateFinishedTrialError):
                if step == int(step):
                    patiently(self.storage.set_trial_intermediate_value, identity, int(step), value)
                else:
                    between[repr(float(step))] = value
                    patiently(self.storage.set_trial_system_attr, identity, REPORTS, dict(between))

        def judge(_row: int, _reports: Mapping[float, float]) -> bool:
            return bool(patiently(self.storage.get_trial, identity).system_attrs.get(PRUNE))

        return Reporting(judge if self.is_judged else None, send)

    def _mistake(self, trial: Trial, outcome: Outcome) -> str:
        """What is wrong with the program, if that is the cause of a failure; else empty."""
        again = f"Trial {trial.id} waits again, for a worker that has not this mistake."
        if isinstance(outcome, Mistake):
            inactive = [name for name in outcome.missing if name in self.names and name not in trial.params]
            if not outcome.missing or inactive:
                what = f"it reads {inactive[0]!r}, which is inactive in {trial.params}" if inactive else outcome.reason
                trace = outcome.attributes.get("traceback", "")
                return f"the worker ends, because of a mistake in the objective: {what}. {again}\n\n{trace}"
        if isinstance(outcome, WrongReturn) and not self._has_value:
            return f"the worker ends with its first evaluation, because {(outcome.reason or '').rstrip('.')}. {again}"
        return ""


class Proposals:
    """Trials that a worker makes for itself while no leader lives.

    A trial is in the storage, with a sign of life, before it has a configuration, so that workers know of one another.

    Args:
        sampled: the study in its storage, and configurations for it.
        study_id: of the study in the storage.
    """

    def __init__(self, sampled: "Sampled", study_id: int):
        self.sampled, self.storage, self.study_id = sampled, sampled.storage, study_id

    def propose(self, mark: Mapping[str, Any], limit: int | None) -> FrozenTrial | None:
        """A new trial, which is this worker's.

        Args:
            mark: the worker's sign of life.
            limit: how many trials there are to be in all; None for no limit.

        Returns:
            the trial; None if there are as many already, or the storage is away.
        """
        if limit is not None and sum(map(counts, patiently(self.sampled.study.get_trials, deepcopy=False))) >= limit:
            return None
        begun = create_trial(state=TrialState.RUNNING, system_attrs={BEAT: {**mark, "count": 0}})
        identity = patiently(self.storage.create_new_trial, self.study_id, begun)
        try:
            with Beats(partial(self.storage.set_trial_system_attr, identity, BEAT), dict(mark)):
                task = own_task(self.storage.get_trial(identity).number, self.sampled.params(identity))
                self.storage.set_trial_system_attr(identity, TRIAL, task)
            return self.storage.get_trial(identity)
        except UpdateFinishedTrialError:  # a leader took it for lost
            return None
        except BaseException as error:
            self._give_up(identity, error)
            if is_away(error) or isinstance(error, TrialPruned):
                return None
            raise

    def _give_up(self, identity: int, error: BaseException) -> None:
        """Ends a trial that has no configuration."""
        log.warning("no configuration was found: %s", error.__cause__ or error)
        with suppress(Exception):  # the next leader ends it
            self.storage.set_trial_user_attr(identity, "reason", f"no configuration was found: {error}")
            self.storage.set_trial_state_values(identity, TrialState.FAIL)


def counts(trial: FrozenTrial) -> bool:
    """Whether a trial of the storage is one of the study, or is to become one."""
    return TRIAL in trial.system_attrs or (BEAT in trial.system_attrs and trial.state == TrialState.RUNNING)


class Beats:
    """A context in which a thread writes signs of life.

    Args:
        write: writes one of them into the storage.
        mark: what is written, with a count; `every` of it is the seconds between two of them.
    """

    def __init__(self, write: Callable[[dict[str, Any]], None], mark: dict[str, Any]):
        self.write, self.mark = write, mark
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True, name="deepbore-beats")

    def begin(self) -> None:
        """Writes the first one, soon."""
        self._thread.start()

    def end(self) -> None:
        """Waits until no more is written."""
        self._ended.set()
        self._thread.join()

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def _beat(self) -> None:
        count = 0
        while True:
            try:
                self.write({**self.mark, "count": count})
            except UpdateFinishedTrialError:
                return  # another worker was first
            except Exception as error:
                log.warning("a sign of life was not written: %s", error.__cause__ or error)
            count += 1
            if self._ended.wait(self.mark["every"]):
                return
