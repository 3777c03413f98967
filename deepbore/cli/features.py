"""`space_with_features`: the space of a run with the tables of features that its configuration names."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepbore.data.journal import open_regular
from deepbore.data.runs import Run
from deepbore.errors import DeepBoreError, SpaceError
from deepbore.space import SearchSpace
from deepbore.text import visible
from deepbore.validation import as_path

if TYPE_CHECKING:
    from deepbore.data.ledger import Ledger

ABOVE = 3  # folders from that of the run upwards, in which files of relative names are looked for
LARGEST_TABLE = 2**28  # bytes of a table that is read as a whole
LONGEST_NAME = 1000  # bytes that a line of a list of names has on average at most
ABROAD = re.compile(r"[\\/]{2}")  # how the name of another machine begins
MAGIC = b"\x93NUMPY"
SAID = (
    "the features of {name} are not at hand: {why}. Call the command where the run was begun, or put the files back; "
    "or, from Python, plots.report(study) of a study that has them."
)


def space_with_features(run: Run, record: "Ledger") -> SearchSpace | None:
    """The space of a run whose journal has checksums of features, with the files that the run's config.yaml names.

    The journal declares the space; of the configuration the names of the files are read alone. A file counts if its
    checksum is that in the journal. It is looked for from here, and from the folder of the run and those above it. No
    function or class of the user's is imported.

    Args:
        run: with its configuration.
        record: what its journal says.

    Returns:
        the space; None where it has no features.

    Raises:
        SpaceError: where files are not found, or hold others.
    """
    kept = {name: each for name, each in record.space.items() if isinstance(each.get("features"), Mapping)}
    if not kept:
        return None
    named, found = _named_in(run.settings), {}
    for name, declared in kept.items():
        try:
            found[name] = _with_files(run, name, declared, named.get(name))
        except DeepBoreError as error:
            raise SpaceError(SAID.format(name=visible(repr(name)), why=visible(str(error).rstrip(".")))) from None
    return SearchSpace.from_dict({**record.header["space"], **found})


def _named_in(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters that a configuration declares; empty if it declares none."""
    declared: Any = settings.get("problem")
    if isinstance(declared, Mapping):
        inner = declared.get("init_args", declared)
        declared = inner.get("space") if isinstance(inner, Mapping) else None
    return declared if isinstance(declared, Mapping) else {}


def _with_files(run: Run, name: str, declared: Mapping[str, Any], named: Any) -> dict[str, Any]:
    """The declaration of a parameter with files in the place of checksums.

    Raises:
        DeepBoreError: where there are no such files, or they are others.
    """
    if not isinstance(named, Mapping) or not isinstance(named.get("features"), str):
        raise SpaceError("the configuration of the run names no file of them")
    reasons = []
    for folder in _folders(run):
        try:
            return _in_folder(folder, name, declared, named)
        except DeepBoreError as error:
            reasons.append(error)
    raise next((each for each in reasons if isinstance(each, _OtherFeatures)), reasons[0])


class _OtherFeatures(SpaceError):
    """A file that has other features than the run had."""


def _folders(run: Run) -> Iterator[Path]:
    """Where relative names are looked for."""
    yield Path()
    yield from (run.path.resolve() / "journal").parents[:ABOVE]


def _in_folder(folder: Path, name: str, declared: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """The declaration with the files of a folder, whose checksum is that of the journal."""
    is_library = declared.get("type") == "library"
    files: dict[str, Any] = {"features": _table(folder, named["features"], is_library)}
    if is_library and isinstance(named.get("names"), str):
        files["names"] = _listed(folder, named["names"], declared.get("size"))
    elif is_library:
        files["names"] = named.get("names")
    without = {key: each for key, each in declared.items() if key not in ("features", "names", "size", "when")}
    made = SearchSpace.from_dict({name: {**without, **files}}).to_dict()[name]
    if made["features"] != declared["features"]:
        raise _OtherFeatures(f"those in {named['features']!r:.200} are others than the run had")
    return {**{key: each for key, each in declared.items() if key != "size"}, **files}


def _table(folder: Path, given: str, is_library: bool) -> str:
    """The path of a table of features; a library's stays on the disk, others are read as a whole."""
    path = _regular(folder, given, None if is_library else LARGEST_TABLE)
    if is_library or path.suffix == ".npy":
        with open_regular(path) as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise SpaceError(f"{given!r:.200} is no .npy file")
    return str(path)


def _listed(folder: Path, given: str, size: Any) -> str:
    """The path of a list of names, which is not much longer than so many levels need."""
    return str(_regular(folder, given, LONGEST_NAME * size if isinstance(size, int) else 0))


def _regular(folder: Path, given: str, most: int | None) -> Path:
    """The path of a regular file on this machine, of so many bytes at most.

    Raises:
        DeepBoreError: for anything else.
    """
    if ABROAD.match(given):
        raise SpaceError(f"{given!r:.200} may be on another machine, so it is not opened")
    path = folder / as_path(given, "a table of features", SpaceError)
    try:
        with open_regular(path) as file:
            size = file.seek(0, 2)
    except (OSError, ValueError) as error:
        raise SpaceError(f"{given!r:.200} can't be read ({type(error).__name__})") from None
    if most is not None and size > most:
        raise SpaceError(f"{given!r:.200} has {size:,} bytes, and {most:,} are read at most")
    return path
