"""The snapshot: the state of a run in a file beside its journal, so that it goes on with the same proposals."""

import hashlib
import io
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from deepbore.data.journal import Journal, replace_file
from deepbore.errors import JournalError
from deepbore.loop.promotions import Promotion
from deepbore.loop.state import RunState

MAGIC = b"deepbore snapshot 2\n"  # then the SHA-256 of the rest, in binary
DIGEST = 32
DAMAGED = (OSError, RuntimeError, pickle.UnpicklingError, ValueError, TypeError, LookupError, AttributeError, EOFError)


def snapshot_path(journal: Path) -> Path:
    """The file of a journal's snapshot: run.jsonl -> run.jsonl.ckpt."""
    return journal.with_name(f"{journal.name}.ckpt")


def save(state: RunState, points: Tensor, journal: Journal, *, promoted: Sequence[Promotion] = ()) -> None:
    """Writes the state beside a journal, in the place of the one before, whole or not at all.

    It is the state in which the points are chosen and still to be asked, written before the journal says that they are:
    so wherever a process dies, the journal is at most these points behind.

    Args:
        state: of the run.
        points: what is asked next, q x d.
        journal: open.
        promoted: where they are promotions, what is promoted.

    Raises:
        JournalError: if it can't be written, or the file there is none of ours.
    """
    path = snapshot_path(journal.path)
    _refuse_foreign(path)
    kept: dict[str, Any] = {"run": journal.run_id, "recipe": state.recipe.describe(), "points": points.cpu()}
    kept |= {"promoted": [tuple(each) for each in promoted]} if promoted else {}
    payload = _pickled({**kept, "state": state.state_dict()})
    replace_file(path, MAGIC + hashlib.sha256(payload).digest() + payload)


def load(journal: Journal) -> Mapping[str, Any]:
    """What `save` has written beside a journal: "recipe", "points" and "state". It is read without running any code.

    Raises:
        JournalError: if it is missing, damaged, or of another run.
    """
    path = snapshot_path(journal.path)
    if not path.exists():
        raise JournalError("it is missing")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise JournalError(f"it can't be read ({error})") from error
    head, payload = content[: len(MAGIC) + DIGEST], content[len(MAGIC) + DIGEST :]
    if head != MAGIC + hashlib.sha256(payload).digest():
        raise JournalError("it is damaged, or no snapshot of this version")
    try:
        kept: dict[str, Any] = torch.load(io.BytesIO(payload), weights_only=True, map_location="cpu")
    except DAMAGED as error:
        raise JournalError(f"it is damaged ({type(error).__name__})") from error
    if kept["run"] != journal.run_id:
        raise JournalError("it is of another run")
    return kept


def _pickled(kept: Mapping[str, Any]) -> bytes:
    buffer = io.BytesIO()
    torch.save(kept, buffer)
    return buffer.getvalue()


def _refuse_foreign(path: Path) -> None:
    try:
        with path.open("rb") as file:
            begins = file.read(len(MAGIC))
    except FileNotFoundError:
        return
    except OSError as error:
        raise JournalError(f"{path} can't be read ({error}). Name another journal.") from error
    if not MAGIC.startswith(begins):  # one that is empty, or cut off, may be overwritten
        raise JournalError(f"{path} is no snapshot of deepbore, so it stays. Move it, or name another journal.")
