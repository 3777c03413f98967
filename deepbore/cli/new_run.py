"""The directory of a new run: it is found, made at once, and left if nothing comes of it. Light to import."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from deepbore.errors import JournalError, SettingError

RUNS = Path("runs")
NAMED = "DEEPBORE_RUN"  # the variable by which the ranks that Lightning starts know the run
RANK = ("RANK", "LOCAL_RANK", "SLURM_PROCID", "JSM_NAMESPACE_RANK")  # the variables that Lightning looks at


def new_run(stem: str, alone: bool = False) -> Path:
    """The next free directory for a run: runs/branin-1, runs/branin-2, ...; for other ranks that of the first.

    It is made at once, so that runs which begin at the same time have one each; see `leave_unused`.

    Args:
        stem: of its name.
        alone: whether this is a run of one process, which is no rank whatever the environment says.

    Raises:
        SettingError: in another rank that the first one has not started, and so can't tell the directory.
        JournalError: if it can't be made.
    """
    if not alone and next((int(os.environ[name]) for name in RANK if name in os.environ), 0):
        if NAMED not in os.environ:
            raise SettingError("ranks that are started side by side share a run: name its directory by --run.")
        return Path(os.environ[NAMED])
    try:
        RUNS.mkdir(parents=True, exist_ok=True)
        found = next(path for k in count(1) if _claimed(path := RUNS / f"{stem}-{k}"))
    except OSError as error:
        raise JournalError(f"{RUNS} can't hold the directory of a run ({error}). Name another by --run.") from error
    os.environ[NAMED] = str(found.absolute())
    return found


def _claimed(path: Path) -> bool:
    """Makes a directory; whether it was not there."""
    try:
        path.mkdir()
    except FileExistsError:
        return False
    return True


@contextmanager
def leave_unused() -> Iterator[None]:
    """Within, `new_run` may make a directory; it is removed at the end if it is empty."""
    try:
        yield
    finally:
        if NAMED in os.environ:
            claimed = Path(os.environ[NAMED])
            with suppress(OSError):  # those that are not empty stay
                claimed.rmdir()
                claimed.parent.rmdir()
