"""`SharedStudy`: how several threads, and a run, use one study."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from deepbore.compute.torch_state import clean_torch_state
from deepbore.errors import StudyRunning
from deepbore.loop.stopping import Steering
from deepbore.study.restored import RestoredStudy


class SharedStudy(RestoredStudy):
    """A study with one lock: calls come one at a time, whichever thread they come from.

    A run holds the lock, too, but for the time in which it waits for trials; what would disturb it is refused.
    """

    _lock: threading.RLock
    _steering: Steering | None  # of the run that goes on

    def stop(self) -> None:
        """Ends the run that goes on, if one does, after its running trials: from a callback, or another thread."""
        if (steering := self._steering) is not None:
            steering.stop()

    def __getstate__(self) -> dict[str, Any]:
        own = ("_lock", "_steering")  # each copy has its own lock, and no run that goes on
        return {name: value for name, value in vars(self).items() if name not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock(), _steering=None)

    @contextmanager
    def _alone(self, call: str, restored: bool = True) -> Iterator[None]:
        """Nobody else uses the study within; raises StudyRunning while a run has it."""
        with self._lock, clean_torch_state():
            if self._steering is not None:
                raise StudyRunning(
                    f"a study is asked by its run while `optimize` goes on, but `{call}` was called. Call it after the "
                    "run; `enqueue` has a configuration tried next, and `stop` ends the run."
                )
            if restored:
                self._go_on()
            yield

    @contextmanager
    def _unlocked(self) -> Iterator[None]:
        """Others may use the study within, while this thread waits for trials."""
        self._lock.release()
        try:
            yield
        finally:
            try:
                self._lock.acquire()
            except KeyboardInterrupt:  # while another thread has it: who hears of it clears up, with the lock
                self._lock.acquire()
                raise
