"""`Journal`: the append-only file of a run, one strict JSON record a line: a `Log`.

An event is on the disk before memory changes (see `deepbore.data.log`). Files beside a journal are written whole or not
at all, and links are not followed.
"""

import contextlib
import errno
import gc
import logging
import os
import stat
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import BinaryIO, TypeVar

from filelock import FileLock, Timeout

from deepbore.data.log import VERSION, Line, checksum, first_line, left, parsed, written
from deepbore.errors import JournalError, JournalInUse
from deepbore.validation import as_path

__all__ = [
    "VERSION",
    "Journal",
    "Line",
    "content_of",
    "holds_anything",
    "open_regular",
    "patiently",
    "refuse_link",
    "replace_file",
    "scan_journal",
]

CHUNK = 2**20  # bytes that are written at once
QUOTED = 200  # bytes of a foreign file that an error shows, at most
LONGEST_LINE = 2**26  # bytes: an event of more is neither written nor read
PATIENCE = 0.2  # seconds: a command that only looks at a run holds its lock for a moment
HELD = 1.0  # seconds that another program may hold a file open: Windows replaces none that is
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}  # of a file system without flock
_CREATED = b'{"event": "created"'  # a journal begins so
_ONE_WRITER = (
    "One process writes a journal; to evaluate in several, give one run ProcessEvaluator(objective, workers=n), "
    "ExecutorEvaluator, or, on several machines, DDP or DistributedStudy."
)
_WAY_OUT = "Nothing was written. Close the study and load the journal again to go on with what it holds."
log = logging.getLogger(__name__)
T = TypeVar("T")


# --- files beside a journal ------------------------------------------------------------------------------------------


def patiently(action: Callable[[], T], patience: float = HELD) -> T:
    """The result of an action on a file, which is tried again while another program holds the file, as on Windows.

    Args:
        action: may raise PermissionError for a while; such as a virus scanner or a backup holds a file for.
        patience: seconds after which the error is raised.
    """
    end, pause = time.monotonic() + patience, 0.01
    while True:
        try:
            return action()
        except PermissionError:
            if time.monotonic() + pause > end:
                raise
        time.sleep(pause)
        pause *= 2


def replace_file(path: Path, content: bytes, patience: float = HELD) -> None:
    """Writes a file under a temporary name, then moves it into place: whole or not at all; a link is replaced.

    Args:
        path: of the file.
        content: all that it will have.
        patience: seconds for which a file that another program holds open is tried again.

    Raises:
        JournalError: if the folder can't be written, or a folder stands there.
    """
    half = path.parent / f".{path.name}.{uuid.uuid4().hex}"
    try:
        with half.open("xb") as file:  # refuses whatever is there already, a link as well
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        patiently(lambda: half.replace(path), patience)
    except OSError as error:
        raise JournalError(
            f"{path} can't be written ({error}). {way_out(error, 'Free the place, or name another file.')}"
        ) from error
    finally:
        with contextlib.suppress(OSError):  # such as of a disk that has become read-only
            half.unlink(missing_ok=True)


def open_regular(path: Path, *, follow: bool = True) -> BinaryIO:
    """A file, open to be read: a regular one, as opening a pipe waits for its writer, and a device may never end.

    Args:
        path: of the file.
        follow: whether it may be a link.

    Raises:
        JournalError: for anything but a regular file.
        OSError: if it can't be opened.
    """
    refuse = 0 if follow else getattr(os, "O_NOFOLLOW", 0)  # Windows has neither flag
    wait = getattr(os, "O_NONBLOCK", 0)
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | refuse | wait))  # noqa: SIM115  # returned
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise JournalError(f"{path} must be a regular file, but is a pipe, a device or the like. Name another file.")


def content_of(path: Path, most: int) -> bytes:
    """The content of a regular file beside a journal, which is no link.

    Args:
        path: of the file.
        most: bytes that it may have.

    Raises:
        JournalError: for a link, for anything but a regular file, or one that is larger.
        OSError: if it can't be read.
    """
    with open_regular(refuse_link(path), follow=False) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise JournalError(
                f"{path} must have at most {most:,} bytes, but has {size:,}. Move it away to do without."
            )
        return file.read()


def way_out(error: OSError | ValueError, otherwise: str = "Name another file.") -> str:
    """What helps where the system refuses a file; another name helps nothing where too many files are open."""
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return "Too many files are open: close some, or raise the limit, as by ulimit -n."
    return otherwise


def refuse_link(path: Path) -> Path:
    """The path itself, unless it is a link: one in a run that was received may point at any file.

    Raises:
        JournalError: for a link.
    """
    if path.is_symlink():
        raise JournalError(f"{path} is a link, and looking at a run follows none. Name the file that it stands for.")
    return path


# --- scanning a journal ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JournalScan:
    """The whole lines of a journal's file: where they end, and how the next one continues them.

    Attributes:
        file: its device and inode.
        run_id: what the first line calls the run; None in version 0.1.
        version: of the format.
        size: bytes of the whole lines.
        crc: checksum that the next line continues.
        torn: bytes after the whole lines, left by a crash.
    """

    file: tuple[int, int]
    run_id: str | None
    version: int = VERSION
    size: int = 0
    crc: int = 0
    torn: int = 0


def scan_journal(path: Path) -> JournalScan:
    """Checks all lines of a journal, and warns of half a line that a crash has left at its end.

    Raises:
        JournalError: for a missing or empty file, a damaged line or an unknown version.
    """
    try:
        with open_regular(path) as file:
            return _scan(path, file)
    except (OSError, ValueError) as error:
        is_missing = isinstance(error, FileNotFoundError)
        way_out = " Name a journal, or the folder of a run; `deepbore list DIR` finds those below DIR." * is_missing
        raise JournalError(f"the journal {path} can't be read ({error}).{way_out}") from error


def holds_anything(path: Path) -> bool:
    """Whether a file is there with more in it than half of the first line of a journal, as a crash may have left it.

    Raises:
        JournalError: if the file can't be read.
    """
    try:
        if not path.is_file():
            return False
        with open_regular(path) as file:
            first = file.readline(LONGEST_LINE)
    except (OSError, ValueError) as error:
        raise JournalError(f"the journal {str(path)!r} can't be read ({error}). {way_out(error)}") from error
    return not (_CREATED.startswith(first) or (first.startswith(_CREATED) and not first.endswith(b"\n")))


def events_in(path: Path, found: JournalScan) -> Iterator[Line]:
    """The events in the whole lines.

    Raises:
        JournalError: for a line that is no event.
    """
    position = 0
    with open_regular(path) as file:
        for number, line in enumerate(_lines(path, file), 1):
            position += len(line)
            if position > found.size:
                return
            yield _event(path, number, line)


def identity(status: os.stat_result) -> tuple[int, int]:
    """Device and inode of a file."""
    return status.st_dev, status.st_ino


def _scan(path: Path, file: BinaryIO) -> JournalScan:
    status, chain = os.fstat(file.fileno()), Chain(path)
    position, whole = 0, (0, 0)
    for line in _lines(path, file):
        if not line.endswith(b"\n"):
            chain.check_torn(line)
            break
        chain.check(line)
        position += len(line)
        if not left(line):  # what was added at once counts when all of it is there
            whole = position, chain.crc
        if position >= status.st_size:  # another may be writing the next line just now
            break
    if not chain.number:
        raise JournalError(f"the journal {path} holds no run: its first line is missing, or torn as by a crash.")
    torn = max(0, status.st_size - whole[0])
    if torn:
        file.seek(whole[0])
        log.warning("the end of %s is torn, as by a crash, and is passed over: %.80r", path, file.read(80))
    return JournalScan(identity(status), chain.run_id, chain.version, *whole, torn)


def _lines(path: Path, file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file.

    Raises:
        JournalError: for one that is longer than a journal's are.
    """
    for number in count(1):
        line = file.readline(LONGEST_LINE + 1)
        if len(line) > LONGEST_LINE:
            raise JournalError(f"line {number} of {path} must have at most {LONGEST_LINE:,} bytes, but has more.")
        if not line:
            return
        yield line


class Chain:
    """The checks of a journal's lines, one after the other: each line continues the checksum of the one before.

    Args:
        path: of the journal, for errors.

    Attributes:
        number: how many lines were checked.
        crc: checksum that the next line continues.
        version: of the format, as the first line says.
        run_id: what the first line calls the run; None in version 0.1.
    """

    def __init__(self, path: Path):
        self.path = path
        self.number = self.crc = 0
        self.version = VERSION
        self.run_id: str | None = None

    def check(self, line: bytes) -> None:
        """Takes the next whole line.

        Raises:
            JournalError: if it is damaged, or the first one and begins no run.
        """
        if not self.number:
            self._begin(line)
        found = self.crc if self.version == 1 else checksum(line[:-1], self.crc)
        if found is None:
            number, path = self.number + 1, self.path
            rest = f"A copy of the {number - 1} lines before it is a run: head -n {number - 1}." if number > 1 else ""
            raise JournalError(
                f"line {number} of {path} is damaged, or one before it was lost: its checksum does not fit: "
                f"{line[:80]!r}. {rest}".rstrip()
            )
        self.number, self.crc = self.number + 1, found

    def _begin(self, line: bytes) -> None:
        """Takes version and run from the first line."""
        created = _event(self.path, 1, line)
        version, run_id = created.get("version"), created.get("id")
        known = isinstance(run_id, str) if version == VERSION else version == 1
        if created["event"] != "created" or not known or isinstance(version, bool):
            raise JournalError(
                f"{self.path} must begin with the event 'created', version 1 or {VERSION}, not {line[:80]!r}."
            )
        self.version, self.run_id = int(version or 0), run_id

    def check_torn(self, line: bytes) -> None:
        """Raises JournalError for a last line that is whole, but for the end of line."""
        if self.number and self.version > 1 and checksum(line[:-1], self.crc) is not None:
            raise JournalError(f"line {self.number + 1} of {self.path} is damaged: it ends in {line[-1:]!r}.")

    def event(self, line: bytes) -> Line:
        """The event in the next whole line. Raises JournalError as `check`, or for a line that is no event."""
        self.check(line)
        return _event(self.path, self.number, line)


def _event(path: Path, number: int, line: bytes) -> Line:
    event = parsed(line)
    if event is None:
        raise JournalError(f"line {number} of {path} must be a JSON object with an event, but is {line[:80]!r}.")
    return event


# --- the journal -----------------------------------------------------------------------------------------------------


class Journal:
    """An append-only file of events. Each is on the disk (fsync) before `write` returns, or not at all.

    The first line is the event "created", with the version of the format, the id of the run and what the writer adds
    (the space, the directions, ...); then come "asked", "told", "failed", "preferred", "added", "enqueued",
    "annotated", "fixed", "withdrawn" and "corrected". Each line has a checksum (see `deepbore.data.log`). A
    journal of version 0.1 has none, and is continued without.

    There is one writer at a time: the first event takes a lock (a file beside the journal: run.jsonl.lock), which
    `close` or the death of the process releases. Reading needs no lock.

    Args:
        path: the file. It is made absolute here: a program may change its directory.

    Attributes:
        run_id: what the first line calls the run, from reading or beginning on; None before, and in version 0.1.

    Raises:
        JournalError: if the file can't be written, or another writes it.
    """

    def __init__(self, path: str | os.PathLike[str]):
        if not isinstance(path, (str, os.PathLike)):
            raise JournalError(f"a journal is named by the path of a file, but got {path!r:.100}.")
        path = as_path(path, "a journal", JournalError).absolute()
        self.path = Path(os.path.realpath(path)) if os.path.islink(path) else path  # a file has one lock
        self.run_id: str | None = None
        self._lock = FileLock(f"{self.path}.lock", thread_local=False, fallback_to_soft=False)
        self._locked_file: tuple[int, int] | None = None
        self._file: BinaryIO | None = None  # open as long as the lock is held, so that no other file gets its inode
        self._known: JournalScan | None = None
        self._locked_by: int | None = None  # the process
        self._is_dirty = False  # whether there may be bytes beyond the known size that must go

    def __getstate__(self) -> object:
        raise JournalError(
            f"a study with a journal can't be copied or pickled, as {self.path} has one writer. Load it elsewhere by "
            "Study.load when this one is closed, or make the study without a journal."
        )

    @classmethod
    def begin(cls, path: str | os.PathLike[str], header: Line) -> "Journal":
        """A new journal, its first line written.

        Args:
            path: the file, which must not exist, or be empty but for half a first line. Its folder is made.
            header: what the event "created" says of the run; its "id" is made if there is none.

        Raises:
            JournalError: if the file holds a run already, or anything else, or can't be written.
        """
        journal = cls(path)
        journal._refuse_content()
        try:
            journal._take_lock()
            journal._refuse_content()  # again: another may have begun one before the lock was taken
            journal._create(first_line(header))
        except BaseException:
            journal._clear()
            journal.close()
            raise
        return journal

    # --- writing -----------------------------------------------------------------------------------------------------

    @property
    def position(self) -> int | None:
        """Bytes that are written for good; None before the first `open` or `read`."""
        return None if self._known is None else self._known.size

    def write(self, event: Line) -> None:
        """Appends one event."""
        self.append([event])

    def append(self, lines: Iterable[Line]) -> None:
        """Appends several events with one fsync: all of them, or none if that fails or is interrupted.

        Raises:
            JournalError: if they can't be written, or the file or its lock was deleted, replaced or changed by another.
        """
        self.open()
        started: list[bytes] = []
        try:
            self._add(lines, started)
        except FileNotFoundError:
            raise JournalError(f"the journal {self.path} was deleted while it was in use. {_WAY_OUT}") from None
        except OSError as error:
            raise JournalError(
                f"the journal {self.path} can't be written ({error}). "
                f"{way_out(error, 'Free the disk or name another.')} Not written: "
                f"{b''.join(started[:1])[:QUOTED].decode().strip()}"
            ) from error

    def open(self) -> None:
        """Takes the lock, as the first `write` does by itself, and cuts off half a line that a crash has left.

        Raises:
            JournalError: if another holds the lock, the file is missing, no journal, or has grown since it was read, or
                the folder can't be written.
        """
        if self._is_inherited:
            raise self._forked()
        if self._lock.is_locked:
            return
        try:
            self._take_lock()
            if self._known is None:
                self._known = scan_journal(self.path)
                self.run_id = self._known.run_id
            self._file = self.path.open("rb+", buffering=0)
            self._check(self._file, self._known, "since it was read")
            _cut(self._file, self._known.size)
            self._known = replace(self._known, torn=0)
        except OSError as error:
            self.close()
            raise JournalError(f"the journal {self.path} can't be written ({error}). {way_out(error)}") from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Leaves the journal to another writer."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if not self._is_inherited:  # older versions of filelock would free the lock of the parent
            self._lock.release()
            self._locked_by = None

    @property
    def _is_inherited(self) -> bool:
        """Whether the lock was taken by the process that this one was forked from."""
        return self._locked_by not in (None, os.getpid())

    def _forked(self) -> JournalError:
        return JournalError(
            f"the journal {self.path} belongs to the process that this one was forked from. {_ONE_WRITER}"
        )

    def _take_lock(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._acquire()
            self._locked_file = identity(os.stat(self._lock.lock_file))
            self._locked_by = os.getpid()
        except Timeout:
            if not os.path.exists(self._lock.lock_file):  # where no file can be made, the lock is tried until then, too
                raise JournalError(
                    f"the journal {self.path} can't be written (no file can be made beside it). Name another file."
                ) from None
            raise JournalInUse(
                f"another process, or another study in this one, writes the journal {self.path}. Wait for its end, "
                f"end the other study by its close(), or name another file. {_ONE_WRITER}"
            ) from None
        except RuntimeError as error:  # this process was forked from the one that made the lock
            raise self._forked() from error
        except (OSError, ValueError) as error:
            if getattr(error, "errno", None) in _NO_LOCKS:
                raise JournalError(
                    f"the journal {self.path} can't be locked: the file system of {self._lock.lock_file} has no flock "
                    f"({error}), and two processes could write it at once. Name a file on a local disk, or on a file "
                    "system with flock, as NFS from version 4 on, or Lustre mounted with the option flock."
                ) from error
            raise JournalError(f"the journal {self.path} can't be written ({error}). {way_out(error)}") from error

    def _acquire(self) -> None:
        """Takes the lock file, also from a study that nothing refers to any more, such as one that Ctrl-C ended."""
        try:
            self._lock.acquire(timeout=PATIENCE)
        except Timeout:
            gc.collect()
            self._lock.acquire(blocking=False)

    def _refuse_content(self) -> None:
        if holds_anything(self.path):
            raise JournalError(
                f"{self.path} holds a run already, or something else. Go on with Study.load, or if_exists='load', or "
                "name another file."
            )
        if self.path.is_dir():
            raise JournalError(f"a journal is a file, but {self.path} is a directory. Name a file in it.")

    def _create(self, created: Line) -> None:
        try:
            self.path.touch()
            self._file = self.path.open("rb+", buffering=0)
            _cut(self._file, 0)  # of half a first line that a crash has left
            self._known = JournalScan(identity(os.fstat(self._file.fileno())), created["id"])
        except OSError as error:
            raise JournalError(f"the journal {self.path} can't be written ({error}). {way_out(error)}") from error
        self.run_id = created["id"]
        self.write(created)
        _sync_folder(self.path.parent)

    def _clear(self) -> None:
        """Empties a file that could not be begun, so that it can be begun again."""
        if self._known is not None:
            with contextlib.suppress(OSError):
                os.truncate(self.path, 0)

    def _add(self, events: Iterable[Line], started: list[bytes]) -> None:
        known, file = self._known, self._file
        assert known is not None and file is not None  # it is open  # noqa: PT018
        if self._is_dirty:  # an interrupt has come upon the clearing up
            _cut(file, known.size)
        self._check(file, known, "while it was in use")
        try:
            self._is_dirty = True
            after = self._written(file, events, known, started)
            os.fsync(file.fileno())
            self._known = after  # from here on it is written
            self._is_dirty = False
        except BaseException:
            if self._known is known:
                _cut(file, known.size)
            self._is_dirty = False
            raise

    def _written(self, file: BinaryIO, events: Iterable[Line], known: JournalScan, started: list[bytes]) -> JournalScan:
        """Writes events after the whole lines; what is known of the file then."""
        size, crc = known.size, known.crc
        file.seek(size)
        buffer = bytearray()
        for event in events:
            try:
                line, crc = written(event, known.version, crc)
            except (TypeError, ValueError) as error:
                raise JournalError(f"a journal takes plain JSON data, but got {event!r:.200}: {error}.") from error
            if len(line) > LONGEST_LINE:
                raise JournalError(
                    f"an event must have at most {LONGEST_LINE:,} bytes, but {event['event']!r} has {len(line):,}."
                )
            started[:] = started or [line]
            size += len(line)
            buffer += line
            if len(buffer) >= CHUNK:
                _write_whole(file, buffer)
                buffer.clear()
        _write_whole(file, buffer)
        return replace(known, size=size, crc=crc)

    def _check(self, file: BinaryIO, known: JournalScan, when: str) -> None:
        """Raises JournalError if the file, or its lock, is not the one it was, or has changed."""
        status = os.fstat(file.fileno())
        if not identity(status) == identity(os.stat(self.path)) == known.file:
            raise JournalError(f"the journal {self.path} was replaced by another file {when}. {_WAY_OUT}")
        if status.st_size != known.size + known.torn:
            raise JournalError(f"another has written to the journal {self.path} {when}. {_WAY_OUT} {_ONE_WRITER}")
        try:
            held = identity(os.stat(self._lock.lock_file))
        except FileNotFoundError:
            held = None
        if held != self._locked_file:
            raise JournalError(
                f"the lock {self._lock.lock_file} was deleted or replaced {when}, so another may write. {_WAY_OUT}"
            )

    # --- reading -----------------------------------------------------------------------------------------------------

    def read(self) -> Iterator[Line]:
        """The events, oldest first; before the first one is given, all lines have been checked.

        What a crash has left at the end, half a line or some of many rows that were added at once, is passed over with
        a warning.

        Raises:
            JournalError: for a missing or empty file, a damaged line or an unknown version.
        """
        found = scan_journal(self.path)
        self.run_id = found.run_id
        if not self._lock.is_locked:
            self._known = found
        return events_in(self.path, found)


def _write_whole(file: BinaryIO, data: bytes | bytearray) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def _cut(file: BinaryIO, size: int) -> None:
    """Takes back what stands after so many bytes."""
    file.truncate(size)


def _sync_folder(folder: Path) -> None:
    """Has the entry of a new file on the disk, too."""
    with contextlib.suppress(OSError):  # Windows opens no folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
