"""`Live`: looks at all runs again and again, and tells open pages which have changed."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from deepbore.dashboard.content import Content
from deepbore.dashboard.runs import Entry, Shelf, row_of

EVERY, SELDOM = 1.0, 10.0  # seconds between two looks, while a page is open, and while none is
BEAT = 15.0  # seconds after which a silent connection is told that it lives
ABREAST = 100  # messages that a slow reader may be behind
BEHIND = "behind"  # stands for all of them
log = logging.getLogger(__name__)


class Live:
    """The runs of a shelf, kept up with.

    Args:
        shelf: the runs.

    Attributes:
        rows: key -> the line of the run in the list, at the latest look.
        is_over: whether the server ends.
    """

    def __init__(self, shelf: Shelf):
        self.shelf = shelf
        self.rows: dict[str, dict[str, Any]] = {}
        self._contents: dict[str, Content] = {}
        self._readers: dict[asyncio.Queue[str], asyncio.AbstractEventLoop] = {}
        self._seen: dict[str, tuple[int, str]] = {}
        self._wanted = asyncio.Event()
        self.is_over = False

    def content(self, key: str) -> Content | None:
        """The page of a run; None for an unknown key."""
        entry = self.shelf.entries.get(key)
        if entry is None:
            return None
        return self._contents.setdefault(key, Content(entry))

    def entry(self, key: str) -> Entry | None:
        """The run of a key; None for an unknown one."""
        return self.shelf.entries.get(key)

    # --- looking -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Looks for ever."""
        while True:
            more = await asyncio.to_thread(self.look)
            pause = 0.01 if more else EVERY if self._readers else SELDOM
            self._wanted.clear()
            try:
                await asyncio.wait_for(self._wanted.wait(), pause)
            except TimeoutError:
                continue
            await asyncio.sleep(0.05)

    def look(self) -> bool:
        """Looks at each run once; whether there is more to read of some."""
        with _going_on():
            self.shelf.scan()
        more = False
        for entry in list(self.shelf.entries.values()):
            with _going_on():
                more = entry.look() or more
                self._note(entry)
        return more

    def look_soon(self) -> None:
        """Ends the pause before the next look: a page has opened, or something was asked for."""
        self._wanted.set()

    def _note(self, entry: Entry) -> None:
        """Tells readers of a run that has changed."""
        seen = entry.version, entry.state
        if self._seen.get(entry.key) == seen:
            return
        self._seen[entry.key] = seen
        self.rows[entry.key] = {**row_of(entry), "version": entry.version}
        self._tell(json.dumps({"rows": [self.rows[entry.key]]}))

    def _tell(self, message: str) -> None:
        for queue, loop in list(self._readers.items()):
            loop.call_soon_threadsafe(partial(_put, queue, message))

    # --- reading -----------------------------------------------------------------------------------------------------

    async def messages(self) -> AsyncIterator[str]:
        """Server-sent events for one reader: all rows first, then those that change."""
        with self._reader() as queue:
            yield _event(self._all())
            while not self.is_over:
                try:
                    message = await asyncio.wait_for(queue.get(), BEAT)
                    yield _event(self._all() if message == BEHIND else message) if message else ""
                except TimeoutError:
                    yield ": alive\n\n"

    def _all(self) -> str:
        return json.dumps({"rows": list(self.rows.values()), "all": True})

    def end(self) -> None:
        """Ends the messages to all readers."""
        self.is_over = True
        for queue in list(self._readers):
            _put(queue, "")

    @contextmanager
    def _reader(self) -> Iterator[asyncio.Queue[str]]:
        queue: asyncio.Queue[str] = asyncio.Queue(ABREAST)
        self._readers[queue] = asyncio.get_running_loop()
        self.look_soon()
        try:
            yield queue
        finally:
            self._readers.pop(queue, None)


@contextmanager
def _going_on() -> Iterator[None]:
    """Logs an error within: one run must not end the watch over the others."""
    try:
        yield
    except Exception:
        log.exception("a look at the runs has failed")


def _put(queue: asyncio.Queue[str], message: str) -> None:
    """Adds a message; a reader that is far behind is told all rows anew instead."""
    if queue.full():
        while not queue.empty():
            queue.get_nowait()
        message = BEHIND
    queue.put_nowait(message)


def _event(message: str) -> str:
    return f"data: {message}\n\n"
