"""What a running trial reports to, wherever it runs: `Reporting`; the study's decisions over a socket: `JudgeServer`.

Light to import: worker processes load it.
"""

import contextlib
import errno
import hmac
import json
import logging
import math
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from deepbore.data.logged import LOGGED, Logged, given_metrics, kept
from deepbore.data.outcome import Outcome, as_number
from deepbore.data.reports import Stages, as_step
from deepbore.data.trial import Trial

Judge = Callable[[int, Mapping[float, float]], bool]  # of a trial's id, and its new reports: whether it should end
LONGEST = 2**24  # bytes of a message
WAIT = 30.0  # seconds for an answer, after which the trial goes on
PAUSE = 0.1  # seconds after a connection that could not be taken
UNANSWERED = (OSError, ValueError, LookupError, TypeError, RecursionError)  # by a stranger, or one that has gone
CLOSED = (errno.EBADF, errno.EINVAL, errno.ENOTSOCK)  # errors of a socket that was shut down
ADDRESS = "DEEPBORE_REPORTS"  # the variable that tells a program where its trial reports to
log = logging.getLogger(__name__)


class LocalJudge:
    """Decides in this process; a copy in another process decides nothing, and is None.

    Where the decision fails, which is a mistake in a pruner and no failure of the trial, trials go on, with a message
    in the log.

    Args:
        decide: the decision.
    """

    def __init__(self, decide: Judge):
        self._decide: Judge | None = decide

    def __call__(self, row: int, reports: Mapping[float, float]) -> bool:
        try:
            return self._decide is not None and self._decide(row, reports)
        except Exception as error:
            self._decide = None
            log.warning("trial %d goes on unjudged: the pruner has failed (%r).", row, error, exc_info=True)
            return False

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return type(None), ()


class Reporting:
    """Keeps what one attempt of a trial reports, and asks a judge whether it should end.

    The judge is told the reports when it is asked, so that reports alone cost next to nothing.

    Args:
        judge: decides; None if no trial is pruned.
        send: is given each step and value at once, where there are observers; None if there are none.
        artifacts: the folder for what trials have made; None where there is none.

    Attributes:
        logged: what else the trial has logged.
        reports: step -> value, in the user's sign, by ascending step.
    """

    def __init__(
        self,
        judge: Judge | None = None,
        send: Callable[[float, float], object] | None = None,
        artifacts: Path | None = None,
    ):
        self.judge, self.send, self.artifacts = judge, send, artifacts
        self.logged = Logged()
        self.reports: dict[float, float] = {}
        self._unsent: dict[float, float] = {}
        self._stages = Stages()
        self._decision = False

    @classmethod
    def of(cls, trial: Trial | None) -> "Reporting | None":
        """What a trial reports to that a run evaluates; None for any other, and for no trial."""
        reporter = None if trial is None else trial.reporter
        return reporter if isinstance(reporter, Reporting) else None

    def report(self, trial: Trial, value: Any, step: float) -> None:  # of `Reporter`
        """Keeps a value; without a budget a step that is not greater than the last one begins a stage behind it."""
        step, value = as_step(step), as_number(value, "a reported value")
        if trial.budget is None:
            step = self._stages.place(step)
        elif self.reports and step <= next(reversed(self.reports)):  # what was spent is told again: from a checkpoint
            self.reports = {each: kept for each, kept in self.reports.items() if each < step}
            self._unsent = {each: kept for each, kept in self._unsent.items() if each < step}
        self.reports[step] = self._unsent[step] = value if math.isfinite(value) else math.nan
        if self.send is not None:
            self.send(step, self.reports[step])

    def log(self, trial: Trial, metrics: Any, value: Any, step: float | None) -> None:  # of `Reporter`
        """Keeps metrics that are not optimised."""
        self.logged.log(given_metrics(metrics, value), step)

    def log_artifact(self, trial: Trial, content: Any, name: str | None) -> None:  # of `Reporter`
        """Keeps what the trial has made."""
        self.logged.attach(kept(content, name, self.artifacts))

    def completed(self, outcome: Outcome) -> Outcome:
        """An outcome with what its trial has reported and logged, unless it says so itself."""
        if self.reports and not outcome.reports:
            outcome = replace(outcome, reports=self.reports)
        if self.logged and LOGGED not in outcome.attributes:
            outcome = replace(outcome, attributes=self.logged.carried(outcome.attributes))
        return outcome

    def should_prune(self, trial: Trial) -> bool:
        """The judge's decision after the latest report."""
        if self.judge is not None and self._unsent:
            self._decision = self.judge(trial.id, self._unsent)
            self._unsent = {}
        return self._decision


# --- over a socket ---------------------------------------------------------------------------------------------------


class RemoteJudge:
    """Asks the judge of another process. Where it can't be reached, trials go on, with a message in the log.

    Args:
        hosts: under which the other process may be reached, the likeliest first.
        port: where it listens.
        key: that both know.
    """

    def __init__(self, hosts: tuple[str, ...], port: int, key: str):
        self.hosts, self.port, self.key = hosts, port, key
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._stream: Any = None
        self._process = 0
        self._is_lost = False

    def __call__(self, row: int, reports: Mapping[float, float]) -> bool:
        with self._lock:
            if self._process != os.getpid():  # forked
                self._stream, self._process = None, os.getpid()
            if self._is_lost:
                return False
            values = [value if math.isfinite(value) else None for value in reports.values()]
            try:
                if self._stream is None:
                    self._stream = self._connected()
                _send(self._stream, {"trial": row, "steps": list(reports), "values": values})
                return bool(_received(self._stream)["prune"])
            except UNANSWERED as error:
                self._is_lost = True
                log.warning("trial %d goes on unjudged: the study can't be reached (%s).", row, error)
                return False

    def _connected(self) -> Any:
        """A stream to the first host that answers."""
        refused: OSError | None = None
        for host in self.hosts:
            try:
                connection = socket.create_connection((host, self.port), timeout=WAIT / 6)
            except OSError as error:
                refused = error
                continue
            connection.settimeout(WAIT)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            stream = connection.makefile("rwb")
            challenge = _received(stream)["challenge"]
            _send(stream, {"answer": _signed(self.key, challenge)})
            return stream
        raise refused or OSError("it has no address")

    def __getstate__(self) -> dict[str, Any]:
        return {"hosts": self.hosts, "port": self.port, "key": self.key}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()

    @property
    def as_text(self) -> str:
        """All of it, for an environment variable."""
        return json.dumps([list(self.hosts), self.port, self.key])

    @classmethod
    def from_text(cls, text: str) -> "RemoteJudge":
        """What `as_text` gives."""
        hosts, port, key = json.loads(text)
        return cls(tuple(hosts), port, key)


class JudgeServer:
    """Answers the trials of other processes by a judge of this one, each connection in a thread of its own.

    Whoever connects must know a key of this server, which goes with the trials. Messages are lines of JSON.

    Args:
        judge: decides.
        is_local: whether all trials run on this machine: then nobody else can connect.

    Attributes:
        address: what the trials are given in place of the judge.
    """

    def __init__(self, judge: Judge, is_local: bool = True):
        self._judge = judge
        self._socket = socket.create_server(("127.0.0.1" if is_local else "", 0))
        self._socket.settimeout(None)  # whatever the program has set as its default
        port = self._socket.getsockname()[1]
        hosts = ("127.0.0.1",) if is_local else (*_own_addresses(), "127.0.0.1")
        self.address = RemoteJudge(hosts, port, secrets.token_hex(32))
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True, name="deepbore-reports").start()

    def close(self) -> None:
        """Ends all connections."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError as error:
                if self._socket.fileno() < 0 or error.errno in CLOSED:
                    return
                time.sleep(PAUSE)  # a client that is gone, or too many open files: the next one may be served
                continue
            self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True, name="deepbore-reports").start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rwb") as stream:
                connection.settimeout(WAIT)
                challenge = secrets.token_hex(32)
                _send(stream, {"challenge": challenge})
                answer = str(_received(stream)["answer"])
                if not hmac.compare_digest(answer.encode(), _signed(self.address.key, challenge).encode()):
                    return
                connection.settimeout(None)
                while True:
                    said = _received(stream)
                    values = [math.nan if value is None else value for value in said["values"]]
                    given = {as_step(step): value for step, value in zip(said["steps"], values, strict=True)}
                    _send(stream, {"prune": self._judge(int(said["trial"]), given)})
        except UNANSWERED:  # the trial has ended, or this is none
            return
        finally:
            self._open.discard(connection)


def _send(stream: Any, message: Mapping[str, Any]) -> None:
    stream.write(json.dumps(message).encode() + b"\n")
    stream.flush()


def _received(stream: Any) -> dict[str, Any]:
    """The next message. Raises OSError at the end, ValueError for anything else."""
    line = stream.readline(LONGEST)
    if not line.endswith(b"\n"):
        raise OSError("the connection has ended")
    message: dict[str, Any] = json.loads(line)
    return message


def _signed(key: str, challenge: Any) -> str:
    return hmac.new(key.encode(), str(challenge).encode(), "sha256").hexdigest()


def _own_addresses() -> tuple[str, ...]:
    """The names and numbers under which other machines may reach this one."""
    found = []
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing; the route there tells the address
        found.append(probe.getsockname()[0])
    return tuple(dict.fromkeys([*found, socket.gethostname()]))
