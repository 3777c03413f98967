"""`Interrupts`: Ctrl-C and SIGTERM during a run. Once ends it after the running trials, twice at once."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import Any, Self

SAID = "{}: the run ends when the running trials are done; once more ends it at once."
DEFAULTS: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


class Interrupts:
    """Takes Ctrl-C, and SIGTERM, by which clusters end a job, while a run goes on.

    While trials run (`is_gentle`) the first is noted and the second raises KeyboardInterrupt; else both raise it at
    once. Signals that the program handles, or ignores, by itself stay its own; and outside of the main thread, which
    alone hears of signals, nothing happens. At the end all handlers are what they were.

    Attributes:
        pressed: whether there was one.
        is_gentle: whether the first one waits.
    """

    def __init__(self) -> None:
        self.pressed = self.is_gentle = False
        self._before: dict[int, Any] = {}
        self._process = os.getpid()

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: own for number, own in DEFAULTS.items() if signal.getsignal(number) == own}
        self.take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def take(self) -> None:
        """Takes the signals (again, if somebody else has taken them in between, as Lightning does SIGTERM)."""
        for number in self._before:
            signal.signal(number, self._handle)

    @contextmanager
    def gently(self) -> Iterator[None]:
        """Within, the first signal waits."""
        self.is_gentle = True
        try:
            yield
        finally:
            self.is_gentle = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # a process that the objective has forked: none of our business
            signal.signal(number, DEFAULTS[number])
            signal.raise_signal(number)
            return
        if self.pressed or not self.is_gentle:
            self.pressed = True
            raise KeyboardInterrupt
        self.pressed = True
        with suppress(Exception):  # a stream that is busy or closed
            print(SAID.format("Ctrl-C" if number == signal.SIGINT else "SIGTERM"), file=sys.stderr, flush=True)
