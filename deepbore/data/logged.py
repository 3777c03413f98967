"""What trials log beside their value: metrics that are tracked and not optimised, and artifacts.

Both travel with the outcome, in one of its attributes, wherever trials run; the journal has events of their own for
them (`deepbore.data.events`). Content of artifacts is kept once, by its checksum, in a folder beside the journal:

    run.jsonl.artifacts/3f/3f79bb7b435b05321651daefd374cdc681dc06faa65e374e38337b88ca046dea

Light to import: worker processes load it.
"""

import hashlib
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deepbore.data.journal import open_regular, replace_file
from deepbore.data.outcome import as_number, report_columns, reports_of
from deepbore.data.reports import as_step
from deepbore.errors import JournalError, TrialError, ValueTypeError

LOGGED = "deepbore:logged"  # the attribute of an outcome that carries them
LARGEST = 2**26  # bytes of content that is kept; larger files are by reference
NAME = 200  # characters of a name
DIGEST = re.compile(r"[0-9a-f]{64}")
Metrics = Mapping[str, Mapping[float, float]]  # name -> step -> value


# --- metrics ---------------------------------------------------------------------------------------------------------


def given_metrics(metrics: Any, value: Any = None) -> dict[str, float]:
    """What `trial.log({"accuracy": 0.9})` or `trial.log("accuracy", 0.9)` says, by name.

    Raises:
        ValueTypeError: for a name that is no text, or a value that is no number.
    """
    if isinstance(metrics, Mapping) and value is not None:
        raise ValueTypeError(
            f"metrics by name have their values, so {value!r:.50} is none: a step is step={value!r:.50}."
        )
    given = metrics if value is None else {metrics: value}
    if not isinstance(given, Mapping) or not given:
        raise ValueTypeError(f"metrics are logged by name, as in {{'accuracy': 0.9}}, but got {metrics!r:.100}.")
    return {as_name(name, "a metric"): as_number(each, f"the metric {name!r:.100}") for name, each in given.items()}


def as_name(name: Any, what: str) -> str:
    """A name of 1 to 200 characters that files can hold. Raises ValueTypeError for anything else."""
    if not isinstance(name, str) or not 0 < len(name) <= NAME:
        raise ValueTypeError(f"{what} has a name of 1 to {NAME} characters, but got {name!r:.100}.")
    if any("\ud800" <= each <= "\udfff" for each in name):
        raise ValueTypeError(f"{what} has a name of Unicode characters, but got half of one in {name!r:.100}.")
    return name


def with_metrics(known: Metrics, given: Mapping[str, float], step: float | None) -> dict[str, dict[float, float]]:
    """Metrics with further values at a step; None stands for the whole number after the last step of each.

    Raises:
        ValueTypeError: for a step that is no number >= 0.
    """
    found = {name: dict(curve) for name, curve in known.items()}
    for name, value in given.items():
        curve = found.setdefault(name, {})
        at = math.floor(max(curve)) + 1.0 if step is None and curve else as_step(step or 0)
        found[name] = dict(sorted({**curve, at: value if math.isfinite(value) else math.nan}.items()))
    return found


def metric_lines(metrics: Metrics) -> dict[str, Any]:
    """Metrics as plain data; one value at step 0 as a number."""
    return {
        name: curve[0.0] if list(curve) == [0.0] and math.isfinite(curve[0.0]) else report_columns(curve)
        for name, curve in metrics.items()
    }


def metrics_of(lines: Any) -> dict[str, dict[float, float]]:
    """Metrics from plain data.

    Raises:
        LookupError, TypeError, ValueError: for anything else.
    """
    if not isinstance(lines, Mapping):
        raise TypeError(f"metrics stand by name, but are {lines!r:.100}.")
    return {
        as_name(name, "a metric"): reports_of(each) if isinstance(each, Mapping) else {0.0: as_number(each, name)}
        for name, each in lines.items()
    }


# --- artifacts -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Artifact:
    """Something that a trial has made: a picture, a text, a checkpoint.

    Attributes:
        name: of the artifact, such as confusion.png.
        size: bytes.
        digest: SHA-256 of the content that is kept beside the journal; empty for one by reference.
        path: where it lies, for one by reference; else empty.

    Raises:
        ValueTypeError: for what is no artifact.
    """

    name: str
    size: int
    digest: str = ""
    path: str = ""

    def __post_init__(self) -> None:
        as_name(self.name, "an artifact")
        is_kept, is_named = isinstance(self.digest, str) and DIGEST.fullmatch(self.digest), isinstance(self.path, str)
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 0:
            raise ValueTypeError(f"an artifact has a size in bytes, but got {self.size!r:.100}.")
        if not is_named or bool(is_kept) == bool(self.path):
            raise ValueTypeError(
                f"an artifact has a SHA-256 or a path, but got {self.digest!r:.80}, {self.path!r:.80}."
            )

    def line(self) -> dict[str, Any]:
        """It as plain data."""
        return {name: each for name, each in vars(self).items() if each != ""}

    @classmethod
    def of(cls, line: Any) -> "Artifact":
        """It from plain data. Raises TypeError or ValueError for anything else."""
        return cls(**{str(name): each for name, each in dict(line).items()})


def artifacts_path(journal: Path) -> Path:
    """The folder of a journal: run.jsonl -> run.jsonl.artifacts."""
    return journal.with_name(f"{journal.name}.artifacts")


def content_path(folder: Path, digest: str) -> Path:
    """Where content lies in such a folder."""
    return folder / digest[:2] / digest


def kept(content: Any, name: str | None, folder: Path | None) -> Artifact:
    """An artifact, its content in the folder: bytes, or a file of at most 64 MiB; others are by reference.

    Args:
        content: bytes, or the path of a file or a folder.
        name: of the artifact; None for the file's own.
        folder: of the contents; None where there is no journal.

    Raises:
        ValueTypeError: for anything else, or bytes without a name.
        TrialError: for more than 64 MiB of bytes, bytes where there is no folder, or what can't be read.
        JournalError: if the folder can't be written.
    """
    if isinstance(content, bytes | bytearray | memoryview):
        if name is None:
            raise ValueTypeError("bytes are logged with a name, as in trial.log_artifact(data, 'plot.png').")
        return _stored(bytes(content), as_name(name, "an artifact"), folder)
    if not isinstance(content, str | os.PathLike) or not os.fspath(content):
        raise ValueTypeError(f"an artifact is bytes, or the path of a file, but got {content!r:.100}.")
    path = Path(os.path.abspath(os.fsdecode(content)))
    name = as_name(path.name if name is None else name, "an artifact")
    try:
        if path.is_dir():
            return Artifact(
                name, sum(each.stat().st_size for each in path.rglob("*") if each.is_file()), path=str(path)
            )
        size = path.stat().st_size
        if folder is None or size > LARGEST:
            return Artifact(name, size, path=str(path))
        with open_regular(path) as file:
            return _stored(file.read(LARGEST + 1), name, folder)
    except (OSError, ValueError) as error:  # a ValueError for a path with a null character
        raise TrialError(f"the artifact {path} can't be read ({error}). Name a file that exists.") from error


def _stored(content: bytes, name: str, folder: Path | None) -> Artifact:
    if folder is None:
        raise TrialError(
            f"the content of {name!r} is kept beside the journal, but the trial has none here. Give the study a "
            "journal, or log the path of a file."
        )
    if len(content) > LARGEST:
        raise TrialError(
            f"content of at most {LARGEST:,} bytes is kept, but {name!r} has {len(content):,}. Write it to a file, and "
            "log its path."
        )
    digest = hashlib.sha256(content).hexdigest()
    path = content_path(folder, digest)
    if not path.exists():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise JournalError(f"{path.parent} can't be made ({error}). Free the place.") from error
        replace_file(path, content)
    return Artifact(name, len(content), digest)


# --- on their way ----------------------------------------------------------------------------------------------------


@dataclass
class Logged:
    """What one trial has logged.

    Attributes:
        metrics: name -> step -> value.
        artifacts: in the order in which they were logged.
    """

    metrics: dict[str, dict[float, float]] = field(default_factory=dict)
    artifacts: tuple[Artifact, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.metrics or self.artifacts)

    def log(self, given: Mapping[str, float], step: float | None) -> None:
        """Takes metrics at a step."""
        self.metrics = with_metrics(self.metrics, given, step)

    def attach(self, artifact: Artifact) -> None:
        """Takes an artifact, in place of one of the same name."""
        self.artifacts = with_artifact(self.artifacts, artifact)

    def carried(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """The attributes of an outcome, with all of it."""
        plain = {"metrics": metric_lines(self.metrics), "artifacts": [each.line() for each in self.artifacts]}
        return {**attributes, LOGGED: plain} if self else dict(attributes)

    @classmethod
    def taken_from(cls, attributes: Mapping[str, Any]) -> "Logged":
        """What attributes carry.

        Raises:
            LookupError, TypeError, ValueError: for what is malformed.
        """
        carried = attributes.get(LOGGED, {})
        artifacts = tuple(Artifact.of(each) for each in carried.get("artifacts", ()))
        return cls(metrics_of(carried.get("metrics", {})), artifacts)


def with_artifact(known: Iterable[Artifact], new: Artifact) -> tuple[Artifact, ...]:
    """Artifacts, with a further one in place of that of the same name."""
    return (*(each for each in known if each.name != new.name), new)
