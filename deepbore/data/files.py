"""Files beside a journal: written whole or not at all, and never through a link. Light to import."""

import os
import uuid
from pathlib import Path

from deepbore.errors import JournalError


def replace_file(path: Path, content: bytes) -> None:
    """Writes a file under a name of its own and puts it in the place of what is there: a link, too, is replaced.

    Raises:
        JournalError: if the folder can't be written, or a folder stands there.
    """
    half = path.parent / f".{path.name}.{uuid.uuid4().hex}"
    try:
        with half.open("xb") as file:  # refuses whatever is there already, a link as well
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        half.replace(path)
    except OSError as error:
        raise JournalError(f"{path} can't be written ({error}). Free the place, or name another file.") from error
    finally:
        half.unlink(missing_ok=True)


def refuse_link(path: Path) -> Path:
    """The path itself, unless it is a link: a folder that somebody has sent may point at files that are not theirs.

    Raises:
        JournalError: for a link.
    """
    if path.is_symlink():
        raise JournalError(f"{path} is a link, and looking at a run follows none. Name the file that it stands for.")
    return path
