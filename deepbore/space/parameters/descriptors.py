"""`Descriptors`: what the levels of a choice are like, a row of numbers for each."""

import csv
import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deepbore.errors import SpaceError
from deepbore.space.parameters.scale import without_gradients
from deepbore.validation import as_path

FINGERPRINT = 32  # columns from which whole numbers, most of them 0, are taken as bits or counts
SAME = 1e-9  # of standardised columns: a smaller difference is rounding
MOST = 2000  # levels whose features are compared with each other, all with all


class Descriptors(ABC):
    """What the levels of a choice are like: K rows of f numbers, which models read a few rows at a time.

    A model reads `rows` of the levels in a batch, on its device; so they need not be in memory as a whole. Which inputs
    of a model they are is said by the `Block`s of `Features` and `Coordinates`.

    Attributes:
        is_tanimoto: whether two rows, of bits or counts, are compared by `tanimoto`; else by their Euclidean distance,
            and the rows are scaled so that two levels are about 1 apart, as two levels are in a one-hot code.
        are_known: whether rows can be read; of a run that is loaded without its space there is the checksum alone.
    """

    is_tanimoto: bool = False
    are_known: bool = True

    @property
    @abstractmethod
    def levels(self) -> int:
        """K, the number of rows."""

    @property
    @abstractmethod
    def width(self) -> int:
        """f, how many numbers a row has."""

    @property
    @abstractmethod
    def checksum(self) -> str:
        """A digest of all that the rows are made from; a journal keeps it, and equal ones have equal rows."""

    @abstractmethod
    def rows(self, levels: Tensor) -> Tensor:
        """The rows of some levels (indices, of any shape) -> ... x f, floating-point, on their device."""

    @property
    def nearest(self) -> Tensor | None:
        """The m levels most like each one (K x m), to which candidates move first; None if they are not compared."""
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descriptors) and self.checksum == other.checksum

    def __hash__(self) -> int:
        return hash(self.checksum)


def tanimoto(x: Tensor, y: Tensor) -> Tensor:
    """<x, y> / (|x|^2 + |y|^2 - <x, y>) of all pairs: n x f and m x f -> n x m.

    Of bits that is how many both have divided by how many either has. It is a kernel (Ralaivola et al. 2005), with the
    squared distance 2 (1 - T). Two rows of zeros are equal, T = 1.

    References:
        Ralaivola, Swamidass, Saigo & Baldi, Graph kernels for chemical informatics, Neural Networks 2005.
    """
    both = x @ y.mT
    either = x.square().sum(-1)[..., :, None] + y.square().sum(-1)[..., None, :] - both
    return torch.where(either > 0, both / either.clamp(min=1e-300 if x.dtype == torch.float64 else 1e-30), 1.0)


def are_fingerprints(features: np.ndarray) -> bool:
    """Whether rows are bits or counts: 32 columns or more of whole numbers >= 0, at least half of them 0."""
    if features.ndim != 2 or features.shape[1] < FINGERPRINT or 2 * np.count_nonzero(features) > features.size:
        return False
    return bool((features == np.floor(features)).all() and (features >= 0).all())


# --- in memory -------------------------------------------------------------------------------------------------------


class LevelFeatures(Descriptors):
    """Features of a few levels in memory, as rows whose Euclidean distances say how alike two levels are.

    Numbers are standardised. Columns that are the same for all levels, or equal to another one but for scale and sign,
    are dropped. Where as many as K or more remain, the rows are their principal coordinates, which are fewer than K
    and have the same distances. Bits or counts (see `are_fingerprints`) are compared by `tanimoto`, and the rows are
    principal coordinates of the distances (2 - 2 T)^(1/2). At last all are scaled so that the median of the distances
    between levels is 1.

    Args:
        features: K x f finite numbers.

    Raises:
        SpaceError: if no column tells two levels apart; for fingerprints of more than 2000 levels.

    Example:
        >>> import torch
        >>> features = LevelFeatures(np.array([[0.0, 7.0], [1.0, 7.0], [3.0, 7.0]]))
        >>> features.rows(torch.tensor([0, 1])).diff(dim=0)
        tensor([[0.5000]], dtype=torch.float64)
    """

    def __init__(self, features: np.ndarray):
        self.features = features
        assert self._table.ndim == 2  # made at once: what is wrong is refused where it is declared

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.features,)

    def __repr__(self) -> str:
        return f"<{self.features.shape[1]} features of {self.levels} levels>"

    @property
    def levels(self) -> int:
        return len(self.features)

    @property
    def width(self) -> int:
        return self._table.shape[1]

    @cached_property
    def checksum(self) -> str:
        return digest(self.features)

    def rows(self, levels: Tensor) -> Tensor:
        return self._table.to(levels.device)[levels]

    @cached_property
    def nearest(self) -> Tensor | None:
        """About K^(1/2) levels most like each one, nearest first (K x m); None for more than 2000 levels."""
        if self.levels > MOST:
            return None
        apart = torch.cdist(self._table, self._table).fill_diagonal_(math.inf)
        return apart.argsort(dim=-1, stable=True)[:, : math.ceil(math.sqrt(self.levels - 1))]

    @cached_property
    def _table(self) -> Tensor:
        rows = _by_likeness(self.features) if are_fingerprints(self.features) else _by_distance(self.features)
        if not rows.shape[1]:
            raise SpaceError("features must tell levels apart, but all of them are the same. Leave them out.")
        some = rows[:: math.ceil(len(rows) / MOST)]
        apart = np.sqrt(np.maximum(0, _squared_distances(some)))[np.triu_indices(len(some), 1)]
        return torch.from_numpy(rows / np.median(apart[apart > SAME * apart.max()]))


def _by_distance(features: np.ndarray) -> np.ndarray:
    """Standardised columns that differ from each other, or their principal coordinates where these are fewer."""
    columns = features / np.maximum(abs(features).max(0), np.finfo(float).tiny)  # whose squares are finite
    columns = columns - columns.mean(0)
    deviation = columns.std(0)
    varies = deviation > SAME
    columns = columns[:, varies] / deviation[varies]
    kept = columns[:, _different(columns)]
    return _principal(kept @ kept.T) if kept.shape[1] >= len(kept) else kept


def _different(columns: np.ndarray) -> list[int]:
    """The first of each set of standardised columns that are equal but for the sign."""
    found: list[int] = []
    for each in range(columns.shape[1]):
        correlation = columns[:, each] @ columns[:, found] / len(columns)
        if not (abs(correlation) > 1 - SAME).any():
            found.append(each)
    return found


def _by_likeness(features: np.ndarray) -> np.ndarray:
    """Principal coordinates of the distances (2 - 2 T)^(1/2) between fingerprints."""
    if len(features) > MOST:
        raise SpaceError(
            f"fingerprints of at most {MOST} choices are compared with each other, but got {len(features)}. Use "
            "Library for more."
        )
    bits = torch.from_numpy(features)
    gram = tanimoto(bits, bits).numpy()
    return _principal(gram - gram.mean(0) - gram.mean(1, keepdims=True) + gram.mean())


def _principal(gram: np.ndarray) -> np.ndarray:
    """Rows whose products are a Gram matrix (K x K): as many columns as it has ranks, the longest first."""
    values, vectors = np.linalg.eigh(gram)
    has = values > SAME * max(values[-1], SAME)
    axes = vectors[:, has][:, ::-1]
    axes = axes * np.sign(axes[abs(axes).argmax(0), np.arange(axes.shape[1])])  # whatever sign the library gives
    rows: np.ndarray = axes * np.sqrt(values[has][::-1])
    return rows


def _squared_distances(rows: np.ndarray) -> np.ndarray:
    square = (rows * rows).sum(1)
    squared: np.ndarray = square[:, None] + square - 2 * rows @ rows.T
    return squared


def digest(numbers: np.ndarray) -> str:
    """The first 16 digits of the SHA-256 of a shape and of the numbers, the same on all machines."""
    data = np.ascontiguousarray(numbers, dtype="<f8") + 0.0  # -0.0 equals 0.0
    return hashlib.sha256(repr(data.shape).encode() + data.tobytes()).hexdigest()[:16]


class UnknownFeatures(Descriptors):
    """In place of features of which a journal keeps the checksum alone.

    Args:
        levels: how many rows there were.
        checksum: of the features.
    """

    are_known = False
    levels = width = 0
    checksum = ""

    def __init__(self, levels: int, checksum: str):
        self.levels, self.checksum = levels, checksum

    def __repr__(self) -> str:
        return f"<features of {self.levels} levels, not known here>"

    def rows(self, levels: Tensor) -> Tensor:
        raise SpaceError(f"features are not known here, only their checksum {self.checksum}. Give the space again.")


# --- what is given ---------------------------------------------------------------------------------------------------


def descriptors_of(given: Any, names: Sequence[Any]) -> Descriptors:
    """The descriptors of K named levels.

    Args:
        given: K x f numbers, in the order of the names; name -> f numbers, or a data frame with the names as its index,
            which may have more of them; a file: a .npy with K x f numbers, or a .csv with the names in its first
            column and those of the columns in its first line; or what a journal has, {"checksum": ...}.
        names: of the levels.

    Raises:
        SpaceError: for anything else; for missing or infinite numbers, by level and column; for names that are missing
            or stand there twice.
    """
    if isinstance(given, Descriptors):
        if given.levels != len(names):
            raise SpaceError(f"features must have a row for each of {len(names)} choices, but have {given.levels}.")
        return given
    if isinstance(given, (str, Path)):
        given = _read(as_path(given, "a table of features", SpaceError))
    if isinstance(given, Mapping) and set(given) == {"checksum"} and isinstance(given["checksum"], str):
        return UnknownFeatures(len(names), given["checksum"])
    return LevelFeatures(_checked(*_in_order(given, list(map(str, names))), list(map(str, names))))


def _read(path: Path) -> Any:
    """The content of a file: an array, or names and a data frame's columns."""
    if path.suffix not in (".csv", ".npy"):
        raise SpaceError(f"features come from a .csv or .npy file, but got {str(path)!r}.")
    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
        with path.open(newline="", encoding="utf-8-sig") as file:
            head, *lines = [line for line in csv.reader(file) if line]
    except (OSError, ValueError) as error:  # no file, no array, or nothing in it
        raise SpaceError(f"features can't be read from {str(path)!r}: {error}") from None
    return _Table([line[0] for line in lines], head[1:], [line[1:] for line in lines])


@dataclass(frozen=True)
class _Table:
    """Rows with names, and names of their columns."""

    names: list[str]
    columns: list[str]
    rows: Sequence[Sequence[Any]]


def _in_order(given: Any, names: list[str]) -> tuple[Sequence[Any], list[str] | None]:
    """The rows of the levels, and the names of the columns if they have any."""
    if isinstance(given, Mapping):
        given = _Table(list(map(str, given)), [], list(given.values()))
        columns = None
    elif hasattr(given, "columns") and hasattr(given, "index") and not isinstance(given, _Table):  # a data frame
        columns, rows = list(map(str, given.columns)), given.to_numpy(dtype=object).tolist()
        has_names = type(given.index).__name__ != "RangeIndex"
        given = _Table(list(map(str, given.index)), columns, rows) if has_names else rows
    else:
        columns = given.columns if isinstance(given, _Table) else None
    if not isinstance(given, _Table):
        return given, columns
    if twice := [name for name in given.names if name in names and given.names.count(name) > 1]:
        raise SpaceError(f"features must have one row for each choice, but {twice[0]!r} has several.")
    row_of = dict(zip(given.names, given.rows, strict=True))
    if missing := [name for name in names if name not in row_of]:
        raise SpaceError(f"features must have a row for each choice, but {missing[:5]} have none.")
    return [row_of[name] for name in names], columns


def _checked(rows: Sequence[Any], columns: list[str] | None, names: list[str]) -> np.ndarray:
    """K x f finite numbers."""
    try:
        found = np.asarray(without_gradients(rows), dtype=np.float64)
    except (TypeError, ValueError):
        raise SpaceError(_what_is_wrong(rows, columns, names)) from None
    if found.ndim != 2 or len(found) != len(names) or not found.shape[1]:
        raise SpaceError(
            f"features must be {len(names)} rows of numbers, one for each choice, but have the shape {found.shape}."
        )
    wrong = np.argwhere(~np.isfinite(found))
    if len(wrong):
        row, column = wrong[0]
        raise SpaceError(
            f"features must be finite, but {_cell(columns, names, row, column)} is {found[row, column]}. Leave out the "
            "column, or fill it in."
        )
    return found


def _what_is_wrong(rows: Any, columns: list[str] | None, names: list[str]) -> str:
    """The first entry that is no number, or the first row that has another length, in words."""
    try:
        rows = [list(row) for row in rows]
    except TypeError:
        return f"features must be K x f numbers, but got {rows!r:.100}."
    for name, row in zip(names, rows, strict=False):
        if len(row) != len(rows[0]):
            return f"features must be rows of one length, but {name!r} has {len(row)}, and {names[0]!r} {len(rows[0])}."
    for number, row in enumerate(rows[: len(names)]):
        for column, entry in enumerate(row):
            try:
                float(entry)
            except (TypeError, ValueError):
                where = _cell(columns, names, number, column)
                return f"features must be numbers, but {where} is {entry!r:.60}. Leave out the column, or fill it in."
    return f"features must be {len(names)} rows of numbers, one for each choice, but got {len(rows)}."


def _cell(columns: list[str] | None, names: list[str], row: int, column: int) -> str:
    return f"column {columns[column]!r} of {names[row]!r}" if columns else f"column {column} of {names[row]!r}"
