"""`Library`: one of many described levels, such as a molecule, whose features are never in memory as a whole."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deepbore.errors import PointError, SpaceError
from deepbore.space.condition import When
from deepbore.space.parameters.base import UNSET, Parameter, Reading
from deepbore.space.parameters.descriptors import Descriptors, UnknownFeatures, are_fingerprints
from deepbore.space.parameters.scale import without_gradients
from deepbore.validation import as_path

SAMPLE = 10_000  # levels at even distances whose features tell scales, and are in the checksum
MADE = 16  # of them where features are made by a function
BLOCK = 2**24  # bytes of a file of names that are read at once

FeatureFunction = Callable[[list[Any]], Any]


@dataclass(frozen=True, eq=False, repr=False)
class Library(Parameter):
    """One of 1e3 to 1e8 described levels, such as the molecules of a library: features say what each is like.

    Features are read from a memory-mapped file, or made by a function, for a few levels at a time, so they need not
    fit into memory. In a space with a library every level that was not evaluated yet is scored at each proposal; see
    `LibrarySearch`.

    The type of the features says what they are: uint8 for bits packed by `numpy.packbits`, 8 in a byte; booleans for
    bits; whole numbers, most of them 0, for counts; all else for numbers, which are standardised. Bits and counts are
    compared by the Tanimoto similarity, numbers by their distance.

    Args:
        features: K x f numbers: a .npy file, an array, or a function from a list of names to an array, one row each.
        names: of the levels, all different: a text file with one in each line, of which in a .smi only the first word
            counts; or a list. The objective gets a name. Without names it gets the number of the level, from 0.
        when: the condition under which it is active, or several: a `Condition`, a dict {parent: values}, or a list.
        default: the level that is tried first; see `SearchSpace.default`.
        size: K, in a journal, which has neither features nor names but their checksum; leave it out.

    Raises:
        SpaceError: for files that can't be read, other shapes, or names that stand there twice.

    Example:
        >>> library = Library(np.eye(4, 32, dtype=bool), names=["C", "CC", "CCO", "CN"])
        >>> library.levels, library.encode(["CCO"]), library.decode(torch.tensor([3.0]))
        (4, tensor([2.], dtype=torch.float64), ['CN'])
    """

    features: Any = field()  # not the former method of this name
    names: Any = None
    when: When | None = None
    default: Any = field(default=UNSET, kw_only=True)
    size: int | None = field(default=None, kw_only=True)

    kind = "library"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self._is_from_journal:  # what is wrong is refused where it is declared
            assert self._names.index is not None
            object.__setattr__(self, "size", self._names.size)
            assert self.descriptors.width
        if not isinstance(self.size, int) or isinstance(self.size, bool) or self.size < 2:
            raise SpaceError(f"a library needs at least two levels, but has {self.size}.")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Library):
            return NotImplemented
        return self.descriptors == other.descriptors and (self.size, self.when) == (other.size, other.when)

    def __hash__(self) -> int:
        return hash(self.descriptors)

    def _declared(self, name: str) -> Any:
        if name == "features" and isinstance(self.features, np.ndarray):
            return self.descriptors
        if name == "names" and not isinstance(self.names, (str, Path, bool, type(None))):
            return [*self.names[:3], ...]
        return None if name == "size" else getattr(self, name)

    @property
    def _is_from_journal(self) -> bool:
        return isinstance(self.features, Mapping)

    @property
    def levels(self) -> int:
        assert self.size is not None
        return self.size

    @property
    def is_ordered(self) -> bool:
        return False

    @property
    def is_library(self) -> bool:
        return True

    @property
    def are_known(self) -> bool:
        """Whether its features are at hand; of those that no file has a journal keeps the checksum alone."""
        return self.descriptors.are_known

    @cached_property
    def descriptors(self) -> Descriptors:
        if self._is_from_journal:
            return UnknownFeatures(self.levels, str(self.features["checksum"]))
        return LibraryFeatures(self.features, self._names)

    @cached_property
    def _names(self) -> "Names":
        return names_of(self.names, self.features, self.size)

    def encode(self, values: Sequence[Any]) -> Tensor:
        natives = values.tolist() if hasattr(values, "tolist") else list(values)
        return torch.from_numpy(self._names.find(natives).astype(np.float64))

    def decode(self, column: Tensor) -> list[Any]:
        return self._names.at(self.to_level(column).long().tolist())

    def read(self, text: str) -> Any:
        return self._names.read(text)

    def readings(self) -> list[Reading]:
        return []

    def coordinates(self) -> list[Reading]:
        return []

    def settings(self) -> dict[str, Any]:
        """Of features and names the checksum alone: a journal opens no other file."""
        has_names = self.names is not None
        return {"features": {"checksum": self.descriptors.checksum}, "names": has_names or None, "size": self.levels}


# --- features --------------------------------------------------------------------------------------------------------


class LibraryFeatures(Descriptors):
    """Features of a library, of which a few rows are read at a time.

    Args:
        given: a .npy file, an array, or a function of names.
        names: of the levels.

    Raises:
        SpaceError: unless there is one row for each name.
    """

    def __init__(self, given: Any, names: "Names"):
        self.given, self.names = given, names
        if not isinstance(given, (str, Path, np.ndarray)) and not callable(given):
            self.given = np.asarray(without_gradients(given))
        shape = self._some.shape
        if len(shape) != 2 or not shape[1] or self._size != names.size:
            raise SpaceError(
                f"features of a library are one row of numbers for each level, but {names.size} levels have features "
                f"of the shape {(self._size, *shape[1:])}."
            )
        if self._some.dtype.kind not in "buif":
            raise SpaceError(f"features of a library are numbers, but are of the type {self._some.dtype}.")
        in_memory = isinstance(self.given, np.ndarray) and not isinstance(self.given, np.memmap)
        self._refuse_gaps(self.given if in_memory else self._some, range(self._size) if in_memory else self._sampled)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.given, self.names)

    def __repr__(self) -> str:
        return f"<{self.width} features of {self.levels} levels>"

    @property
    def levels(self) -> int:
        return self.names.size

    @property
    def width(self) -> int:
        return int(self._some.shape[1]) * (8 if self._is_packed else 1)

    @property
    def is_tanimoto(self) -> bool:  # type: ignore[override]
        return self._scale is None

    @cached_property
    def checksum(self) -> str:
        """Of the number of levels, and of features and names of up to `SAMPLE` levels at even distances."""
        some = np.ascontiguousarray(self._some)
        digest = hashlib.sha256(repr((self.levels, some.shape, some.dtype.str)).encode())
        digest.update(some.tobytes())
        digest.update(repr(self.names.at(self._sampled)).encode())
        return digest.hexdigest()[:16]

    def rows(self, levels: Tensor) -> Tensor:
        found = self._read(levels.reshape(-1).tolist())
        rows = torch.from_numpy(np.ascontiguousarray(found)).to(levels.device)
        if self._is_packed:
            rows = unpacked(rows)
        elif self._scale is not None:
            mean, deviation = (torch.from_numpy(each).to(rows.device) for each in self._scale)
            rows = (rows.double() - mean) / deviation
            self._refuse_gaps(found, levels.reshape(-1).tolist())
        return rows.float().reshape(*levels.shape, self.width)

    def _refuse_gaps(self, rows: np.ndarray, levels: Sequence[int]) -> None:
        """Raises SpaceError for a row that is not finite."""
        has_gap = ~np.isfinite(rows).all(1)
        if has_gap.any():
            name = self.names.at([levels[int(has_gap.argmax())]])[0]
            raise SpaceError(
                f"features must be finite, but those of {name!r} are not. Fill them in, or leave the level out."
            )

    @property
    def _is_packed(self) -> bool:
        return self._some.dtype == np.uint8

    @property
    def _size(self) -> int:
        return self.names.size if callable(self.given) else len(self._array)

    @cached_property
    def _array(self) -> np.ndarray:
        if isinstance(self.given, np.ndarray):
            return self.given
        return mapped(self.given)

    def _read(self, levels: list[int]) -> np.ndarray:
        if not callable(self.given):
            return np.asarray(self._array[levels])
        if not levels and self.names.size:
            return self._some[:0]
        made = np.asarray(without_gradients(self.given(self.names.at(levels))))
        if len(made) != len(levels):
            raise SpaceError(f"a function of features gives one row for each of {len(levels)} names, not {len(made)}.")
        return made

    @property
    def _sampled(self) -> list[int]:
        most = min(self._size, self.names.size)
        count = min(most, MADE if callable(self.given) else SAMPLE)
        return [int(level) for level in np.linspace(0, most - 1, count).round()]

    @cached_property
    def _some(self) -> np.ndarray:
        """Features of some levels at even distances."""
        return self._read(self._sampled)

    @cached_property
    def _scale(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Means and standard deviations of numbers, such that levels are about 1 apart; None for bits and counts."""
        some = self._some
        if some.dtype in (np.uint8, np.bool_) or are_fingerprints(some):
            return None
        deviation = some.std(0, dtype=np.float64)
        varies = deviation > 0
        apart = np.sqrt(2 * max(varies.sum(), 1))  # the mean squared distance of standardised columns is twice that
        return some.mean(0, dtype=np.float64), np.where(varies, deviation, 1.0) * apart


def mapped(path: str | Path) -> np.ndarray:
    """The array in a .npy file, which stays on the disk. Raises SpaceError if it can't be read."""
    try:
        found: np.ndarray = np.load(as_path(path, "a library", SpaceError), mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise SpaceError(f"features of a library can't be read from {str(path)!r}: {error}") from None
    return found


def unpacked(packed: Tensor) -> Tensor:
    """Bits of bytes, as `numpy.unpackbits` gives them: n x b -> n x 8 b, on the device."""
    if packed.device.type == "cpu":
        return torch.from_numpy(np.unpackbits(packed.numpy(), axis=1))
    place = torch.arange(7, -1, -1, device=packed.device, dtype=torch.uint8)
    return ((packed[:, :, None] >> place) & 1).flatten(1)


# --- names -----------------------------------------------------------------------------------------------------------


class Names:
    """Numbers of levels as their names: 0, 1, ..., size - 1.

    Args:
        size: how many there are.

    Attributes:
        index: what finds the level of a name.
    """

    index: Any = ()

    def __init__(self, size: int):
        self.size = size

    def at(self, levels: Sequence[int]) -> list[Any]:
        """The names of some levels."""
        return list(levels)

    def find(self, names: Sequence[Any]) -> np.ndarray:
        """The levels of some names. Raises PointError if one has none."""
        return np.array([self._level(name) for name in names], dtype=np.int64)

    def read(self, text: str) -> Any:
        """The name with this text."""
        try:
            return int(text)
        except ValueError:
            raise PointError(f"a level of the library is a whole number, but got {text!r}.") from None

    def _level(self, name: Any) -> int:
        try:
            level = int(name)
        except (TypeError, ValueError):
            level = -1
        if isinstance(name, (str, bool)) or level != name or not 0 <= level < self.size:
            raise PointError(f"levels of the library are 0 to {self.size - 1}, but got {name!r:.200}.")
        return level


class ListedNames(Names):
    """Names in memory.

    Args:
        names: all different.
    """

    def __init__(self, names: Sequence[Any]):
        super().__init__(len(names))
        self.names = [str(name) for name in names]

    @cached_property
    def index(self) -> dict[str, int]:
        """Name -> level."""
        found: dict[str, int] = {}
        for level, name in enumerate(self.names):
            if found.setdefault(name, level) != level:
                raise twice(name, found[name], level)
        return found

    def at(self, levels: Sequence[int]) -> list[Any]:
        return [self.names[level] for level in levels]

    def read(self, text: str) -> Any:
        return text

    def _level(self, name: Any) -> int:
        try:
            return self.index[name]
        except (KeyError, TypeError):
            raise unknown(name) from None


class SeenNames(Names):
    """Names of a library that a journal does not have: each one counts as the next level when it is first read.

    So a run can be read and shown without its library.
    """

    def __init__(self, size: int):
        super().__init__(size)
        self.levels: dict[str, int] = {}

    def at(self, levels: Sequence[int]) -> list[Any]:
        names = list(self.levels)
        return [names[level] if level < len(names) else f"level {level}" for level in levels]

    def read(self, text: str) -> Any:
        return text

    def _level(self, name: Any) -> int:
        if not isinstance(name, str) or (name not in self.levels and len(self.levels) == self.size):
            raise unknown(name)
        return self.levels.setdefault(name, len(self.levels))


class FileNames(Names):
    """Names in a text file, one in each line; in memory are the place and a hash of each, 24 bytes.

    Args:
        path: the file.

    Raises:
        SpaceError: if it can't be read.
    """

    def __init__(self, path: Path):
        self.path = path
        try:
            with path.open("rb") as file:
                ends = [np.flatnonzero(each == 10) + start for start, each in _blocks(file)]
            last = path.stat().st_size
        except OSError as error:
            raise SpaceError(f"names of a library can't be read from {str(path)!r}: {error}") from None
        found = np.concatenate([[-1], *ends])
        self.starts = np.append(found, last) + 1 if found[-1] + 1 < last else found + 1
        super().__init__(len(self.starts) - 1)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path,)

    @cached_property
    def index(self) -> tuple[np.ndarray, np.ndarray]:
        """Hashes of the names, ascending, and the level of each."""
        with self.path.open("rb") as file:
            hashes = np.fromiter((hash(self._name(line)) for line in file), np.int64, self.size)
        order = hashes.argsort(kind="stable")
        ascending = hashes[order]
        for place in np.flatnonzero(ascending[1:] == ascending[:-1]):
            one, other = self.at(order[place : place + 2].tolist())
            if one == other:
                raise twice(one, int(order[place]), int(order[place + 1]))
        return ascending, order

    def at(self, levels: Sequence[int]) -> list[Any]:
        names = []
        with self.path.open("rb") as file:
            for level in levels:
                file.seek(int(self.starts[level]))
                names.append(self._name(file.readline()))
        return names

    def find(self, names: Sequence[Any]) -> np.ndarray:
        if wrong := [name for name in names if not isinstance(name, str)]:
            raise unknown(wrong[0])
        hashes, _ = self.index
        wanted = np.array([hash(name) for name in names], dtype=np.int64)
        first = np.searchsorted(hashes, wanted)
        return np.array(list(map(self._among, names, wanted, first)), dtype=np.int64)

    def _among(self, name: str, wanted: int, place: int) -> int:
        """The level of a name whose hash stands at this place, or at the next ones."""
        hashes, order = self.index
        while place < len(hashes) and hashes[place] == wanted:
            if self.at([int(order[place])]) == [name]:
                return int(order[place])
            place += 1
        raise unknown(name)

    def read(self, text: str) -> Any:
        return text

    def _name(self, line: bytes) -> str:
        text = line.decode().strip()
        return text.split(maxsplit=1)[0] if self.path.suffix == ".smi" and text else text


def _blocks(file: Any) -> Iterator[tuple[int, np.ndarray]]:
    """Where each block of a file starts, and its bytes."""
    start = 0
    while block := file.read(BLOCK):
        yield start, np.frombuffer(block, dtype=np.uint8)
        start += len(block)


def names_of(given: Any, features: Any, size: int | None) -> Names:
    """The names of a library: in a file, in a list, or the numbers of its features.

    Args:
        given: a file, a list, None, or of a journal True.
        features: the features.
        size: K; None if it is not known yet.

    Raises:
        SpaceError: if there are none, and features are a function of names.
    """
    if isinstance(given, (str, Path)):
        return FileNames(as_path(given, "the list of a library's names", SpaceError))
    if given is True and size is not None:
        return SeenNames(size)
    if given is not None:
        return ListedNames(given)
    if isinstance(features, Mapping):
        return Names(size or 0)
    if callable(features):
        raise SpaceError("a function makes features from names, but a library without names has none. Give names=.")
    return Names(len(mapped(features) if isinstance(features, (str, Path)) else features))


def twice(name: str, one: int, other: int) -> SpaceError:
    """The error for a name of two levels."""
    return SpaceError(
        f"names of a library must differ, but {name!r} is the name of levels {one} and {other}. Leave out one of them."
    )


def unknown(name: Any) -> PointError:
    """The error for a name that the library does not have."""
    return PointError(f"values must be names of the library, but it has none that is {name!r:.200}.")
