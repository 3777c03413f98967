"""A journal in a database."""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

from deepbore.data.log import Line
from deepbore.errors import JournalError, JournalInUse

TABLE = "CREATE TABLE IF NOT EXISTS lines (number INTEGER PRIMARY KEY, line TEXT NOT NULL)"


class SqliteLog:
    """The lines of a run as the rows of a table of SQLite.

    Args:
        path: the file of the database.

    Attributes:
        run_id: what the first line calls the run; None before it is read or written.
    """

    def __init__(self, path: Path | str):
        self.path = Path(path).absolute()
        self.run_id: str | None = None
        self._read: int | None = None  # lines that were read
        self._database: sqlite3.Connection | None = None

    @property
    def position(self) -> int | None:
        """How many lines there are; None before the first look."""
        return self._read if self._database is None else self._count(self._database)

    def open(self) -> None:
        """Takes the lock of the database, which `close` releases."""
        if self._database is not None:
            return
        database = sqlite3.connect(self.path, timeout=0.1, isolation_level=None, check_same_thread=False)
        try:
            database.execute("PRAGMA locking_mode = EXCLUSIVE")
            database.execute("BEGIN EXCLUSIVE")
            database.execute(TABLE)
            database.execute("COMMIT")
            if self._read not in (None, self._count(database)):
                raise JournalError(f"another has written to {self.path} since it was read. Load it again.")
        except sqlite3.OperationalError as error:
            database.close()
            raise JournalInUse(f"{self.path} can't be opened ({error}). Close the study that writes it.") from error
        except BaseException:
            database.close()
            raise
        self._database = database

    def append(self, lines: Iterable[Line]) -> None:
        """Keeps lines in one transaction."""
        self.open()
        assert self._database is not None
        texts = [json.dumps(line, allow_nan=False) for line in lines]
        try:
            self._database.execute("BEGIN")
            self._database.executemany("INSERT INTO lines (line) VALUES (?)", ((text,) for text in texts))
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise
        self._name_the_run(texts)

    def read(self) -> Iterator[Line]:
        """The lines, oldest first; none where there is no database yet."""
        texts = self._texts()
        self._read = len(texts)
        self._name_the_run(texts)
        return map(json.loads, texts)

    def close(self) -> None:
        """Leaves the database to others."""
        if self._database is not None:
            self._read = self._count(self._database)
            self._database.close()
            self._database = None

    def _texts(self) -> list[str]:
        if self._database is None and not self.path.exists():
            return []
        query = "SELECT line FROM lines ORDER BY number"
        if self._database is not None:
            return [text for (text,) in self._database.execute(query)]
        with closing(sqlite3.connect(self.path)) as database:
            database.execute(TABLE)
            return [text for (text,) in database.execute(query)]

    def _name_the_run(self, texts: list[str]) -> None:
        if texts and self.run_id is None:
            self.run_id = json.loads(texts[0]).get("id")

    @staticmethod
    def _count(database: sqlite3.Connection) -> int:
        ((n,),) = database.execute("SELECT count(*) FROM lines")
        return int(n)
