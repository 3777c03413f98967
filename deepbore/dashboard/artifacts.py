"""What trials have made, to be shown: content that a run keeps, by its checksum. Files by reference are named only."""

import hashlib

from deepbore.dashboard.runs import Entry
from deepbore.data.journal import content_of
from deepbore.data.logged import DIGEST, LARGEST, artifacts_path, content_path
from deepbore.errors import JournalError

ALONE = "default-src 'none'; sandbox"  # content of a trial runs nothing and asks for nothing
PICTURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def artifact_of(entry: Entry, digest: str) -> tuple[bytes, str] | None:
    """The content that trials of a run have logged with this checksum, and its name; None if there is none.

    The content must lie in the run's own folder, be no link, and have the checksum.
    """
    ledger, journal = entry.ledger, entry.journal
    if ledger is None or journal is None or not DIGEST.fullmatch(digest):
        return None
    found = (each for several in ledger.notes.artifacts.values() for each in several if each.digest == digest)
    artifact = next(found, None)
    if artifact is None:
        return None
    folder = artifacts_path(journal)
    path = content_path(folder, digest)
    if folder.is_symlink() or path.parent.is_symlink():
        return None
    try:
        content = content_of(path, LARGEST)
    except (OSError, JournalError):
        return None
    return (content, artifact.name) if hashlib.sha256(content).hexdigest() == digest else None


def kind_of(content: bytes) -> str | None:
    """The type of a picture that browsers show without running anything in it; None for all else."""
    return next((kind for begin, kind in PICTURES.items() if content.startswith(begin)), None)
