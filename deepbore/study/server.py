"""`StudyServer` and `AsyncStudyServer`: one study for many clients, whose asks at the same time are one `ask(q)`."""

import asyncio
import math
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from functools import wraps
from threading import Lock
from typing import Any, Concatenate, ParamSpec, Self, SupportsFloat, TypeVar, cast

from deepbore.data.outcome import Outcome
from deepbore.data.trial import Trial
from deepbore.errors import SettingError, SpaceExhausted
from deepbore.study.study import Study
from deepbore.validation import required, seconds, within

P = ParamSpec("P")
T = TypeVar("T")


class Asked(Future[Trial]):
    """The trial that a client waits for."""


class Calls:
    """The calls of all clients, made by one thread in their order; asks that wait are one.

    Args:
        study: the study, or a function that makes it.
        window: seconds that an ask waits for others.
    """

    def __init__(self, study: Study | Callable[[], Study], window: float | timedelta):
        required(window=window)
        self.window = float(seconds(window) or 0)
        within(0, math.inf, window=self.window)
        made = study if isinstance(study, Study) else study()
        if not isinstance(made, Study):
            raise SettingError(f"study must be a Study, or a function that makes one, but got {made!r:.100}.")
        self.study = made
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="deepbore-server")
        self._asks: list[Asked] = []
        self._left: list[Trial] = []  # of clients that had gone when their trials came
        self._lock = Lock()
        self.is_closed = False

    def call(self, method: Callable[..., T], *args: Any, **named: Any) -> "Future[T]":
        """The result of a call, which is made after those before it.

        Raises:
            SettingError: after `close`.
        """
        if self.is_closed:
            raise SettingError("this server is closed. Make another one, of Study.load(journal).")
        return self._thread.submit(method, *args, **named)

    def close(self) -> None:
        """Makes the calls that were made before, and closes the study."""
        if not self.is_closed:
            self.call(self.study.close)
            self.is_closed = True
        self._thread.shutdown()

    def ask(self) -> Asked:
        """A trial of the next `ask(q)`."""
        future = Asked()
        with self._lock:
            self._asks.append(future)
            if len(self._asks) == 1:
                try:
                    self.call(self._answer)
                except SettingError:
                    self._asks.clear()
                    raise
        return future

    def give_up(self, future: "Future[Any]") -> None:
        """Keeps the trial that a client waits for no more, should it come all the same, for the next client."""
        if isinstance(future, Asked) and not future.cancel():
            future.add_done_callback(self._keep)

    def _keep(self, future: "Future[Trial]") -> None:
        if not future.cancelled() and future.exception() is None:
            with self._lock:
                self._left.append(future.result())

    def _answer(self) -> None:
        time.sleep(self.window)
        with self._lock:
            asks, self._asks = self._asks, []
        present = [each for each in asks if each.set_running_or_notify_cancel()]  # a client may have gone
        self._ask(self._after_those_left(present))

    def _after_those_left(self, asks: list[Asked]) -> list[Asked]:
        """Gives trials that nobody has to the first asks; the asks that remain."""
        with self._lock:
            left, self._left = self._left, []
        pending = {trial.id for trial in self.study.pending} if left else set()
        for trial in left:
            if trial.id in pending and asks:
                asks.pop(0).set_result(trial)
            elif trial.id in pending:
                self._left.append(trial)
        return asks

    def _ask(self, asks: list[Asked]) -> None:
        """Asks the study once; where a finite space has not so many configurations left, the first ones get them."""
        if not asks:
            return
        try:
            trials = self.study.ask(len(asks))
        except SpaceExhausted as error:
            if len(asks) == 1:
                asks[0].set_exception(error)
            else:
                self._ask(asks[: len(asks) // 2])
                self._ask(asks[len(asks) // 2 :])
        except BaseException as error:
            for each in asks:
                each.set_exception(error)
        else:
            for each, trial in zip(asks, trials, strict=True):
                each.set_result(trial)


class StudyServer:
    """A study for many threads that ask for one trial each: those that ask at the same time cost one `ask(q)`.

    A batch takes hardly longer than one proposal. Results that are told before an ask are learned from. The trial of a
    client that has stopped to wait for it goes to the next one. Actors of Ray
    and dask, which are coroutines, have `AsyncStudyServer`.

    Args:
        study: the study, or a function that makes it, such as `partial(Study, space, journal="run.jsonl")`.
        window: seconds, or a `timedelta`, that an ask waits for others.

    Raises:
        SettingError: for anything but a study, or a negative window.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> from deepbore import Real, Study
        >>> server = StudyServer(Study({"x": Real(-1, 1)}, seed=0))
        >>> def client(_):
        ...     trial = server.ask()
        ...     server.tell(trial, trial.params["x"] ** 2)
        >>> with ThreadPoolExecutor(8) as threads:
        ...     _ = list(threads.map(client, range(8)))
        >>> len(server.study.trials)
        8
    """

    def __init__(self, study: Study | Callable[[], Study], window: float | timedelta = 0.01):
        self._calls = Calls(study, window)

    @property
    def study(self) -> Study:
        """The study."""
        return self._calls.study

    def ask(self) -> Trial:
        """The next trial of this client: `Study.ask_one`.

        Raises:
            SpaceExhausted: if a finite space has no configuration left.
        """
        return self._wait(self._calls.ask())

    def tell(self, /, trial: Trial | int, value: Any = None, **outcome: Any) -> None:
        """Gives a trial its outcome: `Study.tell`."""
        return self._wait(self._calls.call(self.study.tell, trial, value, **outcome))

    def report(self, trial: Trial | int, value: SupportsFloat | Outcome, step: float) -> bool:
        """Takes the value of a running trial at a step, and says whether it should continue: `Study.report`."""
        return self._wait(self._calls.call(self.study.report, trial, value, step))

    def withdraw(self, trial: Trial | int, reason: str | None = None) -> None:
        """Gives up a trial, as that of a client that has died: `Study.withdraw`."""
        return self._wait(self._calls.call(self.study.withdraw, trial, reason))

    def best_trial(self) -> Trial | None:
        """The best trial so far: `Study.best_trial`."""
        return self._wait(self._calls.call(lambda: self.study.best_trial))

    def pending(self) -> list[Trial]:
        """The trials that clients have: `StudyTrials.pending`."""
        return self._wait(self._calls.call(lambda: list(self.study.trials.pending)))

    def _wait(self, future: "Future[T]") -> T:
        """What a call gives, once it was made."""
        try:
            return future.result()
        except BaseException:  # as Ctrl-C
            self._calls.give_up(future)
            raise

    def close(self) -> None:
        """Makes the calls that were made before, and closes the study; later ones raise SettingError."""
        self._calls.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class _Unwaited(StudyServer):
    """A server whose methods give the future of a call at once, for a coroutine to await."""

    def _wait(self, future: "Future[T]") -> T:
        return cast(T, future)


def awaiting(
    method: "Callable[Concatenate[StudyServer, P], T]",
) -> "Callable[Concatenate[AsyncStudyServer, P], Coroutine[Any, Any, T]]":
    """A method of `StudyServer` as a coroutine."""

    @wraps(method)
    async def call(self: "AsyncStudyServer", /, *args: P.args, **named: P.kwargs) -> T:
        return await self._awaited(cast("Future[T]", method(self._server, *args, **named)))

    return call


class AsyncStudyServer:
    """`StudyServer` with coroutines, for the event loop of an actor of Ray or dask, or of a web server.

    Its methods are those of `StudyServer`: ask, tell, report, withdraw, best_trial, pending and close.

    Args:
        study: the study, or a function that makes it where the actor lives.
        window: seconds, or a `timedelta`, that an ask waits for others.

    Raises:
        SettingError: for anything but a study, or a negative window.

    Example:
        >>> import asyncio
        >>> from deepbore import Real, Study
        >>> async def clients():
        ...     server = AsyncStudyServer(Study({"x": Real(-1, 1)}, seed=0))
        ...     trials = await asyncio.gather(*(server.ask() for _ in range(4)))
        ...     for trial in trials:
        ...         await server.tell(trial, trial.params["x"] ** 2)
        ...     return await server.best_trial()
        >>> asyncio.run(clients()).value < 0.5
        True
    """

    def __init__(self, study: Study | Callable[[], Study], window: float | timedelta = 0.01):
        self._server = _Unwaited(study, window)

    ask = awaiting(StudyServer.ask)
    tell = awaiting(StudyServer.tell)
    report = awaiting(StudyServer.report)
    withdraw = awaiting(StudyServer.withdraw)
    best_trial = awaiting(StudyServer.best_trial)
    pending = awaiting(StudyServer.pending)

    async def _awaited(self, future: "Future[T]") -> T:
        try:
            return await asyncio.wrap_future(future)
        except BaseException:  # as a timeout, or the end of its connection
            self._server._calls.give_up(future)
            raise

    async def close(self) -> None:
        """Makes the calls that were made before, and closes the study; later ones raise SettingError."""
        await asyncio.get_running_loop().run_in_executor(None, self._server.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()
