"""Runs in a folder: the name, the files and the state of each. Light to import; a run is only read."""

import math
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from deepbore.data.journal import content_of, open_regular, refuse_link
from deepbore.data.log import JOURNAL, parsed, times_path
from deepbore.data.notes import finished_with, last_report
from deepbore.errors import JournalError, SettingError
from deepbore.validation import as_path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from deepbore.data.ledger import Ledger

CONFIG = "config.yaml"
JSONL = ".jsonl"
N_TRIALS = 100  # the default
LONGEST_CONFIG = 2**20  # bytes that are shown
LONGEST_YAML = 2**17  # characters that are read as settings, at some thousands in a second
MOST_NODES = 10**5  # of a configuration, where each alias counts as what it stands for
_NUMBER = re.compile(r"[-_.]?(seed|run)?[-_.]?\d+$")


def journal_of(run: Path | str) -> Path:
    """The journal of a run directory; a journal alone is its own.

    Raises:
        JournalError: for one that is a link out of the directory.
    """
    run = Path(run)
    return refuse_link(run / JOURNAL) if run.is_dir() else run


@dataclass(frozen=True)
class Run:
    """A run to look at: a directory, or a journal alone.

    Attributes:
        path: of the directory or the journal.
    """

    path: Path

    @classmethod
    def named(cls, text: str) -> "Run":
        """The run that the command line names. Raises JournalError for an address."""
        return cls(as_path(text, "a run", JournalError))

    @property
    def name(self) -> str:
        """The directory's name, or the journal's without .jsonl."""
        return self.path.resolve().name.removesuffix(JSONL)

    @property
    def stem(self) -> str:
        """The name without its number: branin-2, branin_seed3, branin/3 -> branin."""
        return _NUMBER.sub("", self.name) or self.path.resolve().parent.name

    @cached_property
    def journal(self) -> Path:
        """Its journal."""
        return journal_of(self.path)

    @cached_property
    def record(self) -> "Ledger":
        """The content of its journal now."""
        from deepbore.data.replay import read_record  # NumPy

        return read_record(self.journal)

    def beside(self, name: str) -> Path:
        """The path of a picture or page: in the directory under this name, or beside the journal."""
        if self.path.is_dir():
            return self.path / name
        return self.path.with_name(self.path.name.removesuffix(JSONL) + Path(name).suffix)

    @cached_property
    def configuration(self) -> str:
        """The text of config.yaml; empty if there is none.

        Raises:
            JournalError: for one that is a link, or can't be read.
        """
        config = self.path / CONFIG
        try:
            return content_of(config, LONGEST_CONFIG).decode("utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except (OSError, UnicodeDecodeError) as error:
            raise JournalError(f"{config} can't be read ({error}). Delete it to do without.") from error

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The configuration as plain data; empty if there is none, or it is not valid."""
        try:
            found = plain_data(self.configuration)
        except SettingError:
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def last_event(self) -> float:
        """When the journal was last written, in seconds since 1970.

        Raises:
            JournalError: if there is none.
        """
        try:
            return self.journal.stat().st_mtime
        except OSError as error:
            raise JournalError(f"the journal {self.journal} can't be read ({error}).") from error

    @property
    def last_change(self) -> float:
        """When the journal, or the reports of its running trials, were last written, in seconds since 1970."""
        return max(self.last_event, last_report(self.journal))

    @property
    def state(self) -> str:
        """ "running" while a process writes it; else "finished", with as many trials as were wanted, or "stopped".

        A run in Python is finished if its latest `optimize` came to its end, by trials or by another rule.
        """
        if self.is_locked:
            return "running"
        loop = self.settings.get("loop")
        wanted = loop.get("n_trials", N_TRIALS) if isinstance(loop, dict) else finished_with(times_path(self.journal))
        done = self.record.n_asked - len(self.record.statistics.pending)
        return "finished" if isinstance(wanted, int) and done >= wanted else "stopped"

    @property
    def is_locked(self) -> bool | None:
        """Whether another process holds the lock of the journal; None if the system has no such locks.

        A shared lock is requested, which writes nothing, and released at once. Windows has none: there the lock is
        taken, and released at once.
        """
        lock = self.journal.with_name(f"{self.journal.name}.lock")
        try:
            with open_regular(refuse_link(lock), follow=False) as file:
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if fcntl is None:
                return _is_taken(lock)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        except (JournalError, IsADirectoryError):  # a pipe or a link: nobody's lock
            return False
        except OSError:
            return None
        return False


def _is_taken(lock: Path) -> bool | None:
    """Whether a lock file of `filelock` is locked; None if that can't be found out."""
    try:
        FileLock(lock, fallback_to_soft=False).acquire(blocking=False).lock.release()
    except Timeout:
        return True
    except (OSError, ValueError, NotImplementedError):
        return None
    return False


def plain_data(text: str) -> Any:
    """The data in a text of YAML from elsewhere: plain, and not much larger than the text.

    Raises:
        SettingError: for any other text.
    """
    import yaml  # only for runs that have a configuration

    if len(text) > LONGEST_YAML:
        raise SettingError(f"a configuration must have at most {LONGEST_YAML:,} characters, but has {len(text):,}.")
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        if _size(node, {}) > MOST_NODES:
            raise SettingError(f"a configuration must have at most {MOST_NODES:,} values, but this one has more.")
        return loader.construct_document(node)
    except SettingError:
        raise
    except Exception as error:  # dates, numbers and tags of all kinds, nested too deeply
        raise SettingError(f"the configuration is no plain YAML: {type(error).__name__}: {error}") from None


def _size(node: Any, known: dict[int, float]) -> float:
    """The number of values in a node of YAML; infinite where one contains itself."""
    if id(node) not in known:
        known[id(node)] = math.inf  # while it is counted
        inner = node.value if isinstance(node.value, list) else []
        several = [each for pair in inner for each in (pair if isinstance(pair, tuple) else (pair,))]
        known[id(node)] = 1 + sum(_size(each, known) for each in several)
    return known[id(node)]


def runs_in(folder: Path, deep: int = 3) -> Iterator[Run]:
    """The runs in a folder and its folders, so many levels deep: run directories, and journals with other names.

    Raises:
        JournalError: if there is no such folder.
    """
    try:
        inside = sorted(path for path in folder.iterdir() if not path.is_symlink())
    except OSError as error:
        raise JournalError(f"{folder} must be a folder with runs, but can't be read ({error}).") from error
    if (folder / JOURNAL) in inside:
        yield Run(folder)
        return
    for path in inside:
        if path.is_dir() and deep and not path.name.startswith("."):
            with suppress(JournalError):  # a folder that can't be read
                yield from runs_in(path, deep - 1)
        elif path.suffix == JSONL and _begins_a_run(path):
            yield Run(path)


def _begins_a_run(path: Path) -> bool:
    """Whether the first line of a file is that of a journal."""
    try:
        with open_regular(path) as file:
            event = parsed(file.readline(2**20))
    except (OSError, JournalError):
        return False
    return event is not None and event["event"] == "created" and "space" in event


def ago(then: float) -> str:
    """How long ago a time (in seconds since 1970) is, in words: 5 s, 3 min, 2 h, 4 d."""
    seconds = max(0.0, time.time() - then)
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
