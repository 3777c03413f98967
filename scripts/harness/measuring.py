"""Measurements that are no races of methods: rows in one file, each made once."""

import json
import statistics
import time
import warnings
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any

from harness.files import append

Row = dict[str, Any]


def rows(path: Path) -> list[Row]:
    """What a file holds; nothing where there is none."""
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()] if path.exists() else []


def grid(**choices: Iterable[Any]) -> list[Row]:
    """One row for each combination of choices; the last entry changes fastest."""
    return [dict(zip(choices, each, strict=True)) for each in product(*choices.values())]


def longest(path: Path, length: str, *names: str) -> list[Row]:
    """The rows of a file, of those that have the same under these names the longest only."""
    rising = sorted(rows(path), key=itemgetter(length))
    return list({tuple(row[name] for name in names): row for row in rising}.values())


def complete(path: Path, wanted: Iterable[Row], measure: Callable[..., Row], length: str = "") -> list[Row]:
    """Measures what a file has no row of, and adds each row as soon as it is made.

    Args:
        path: of the file.
        wanted: what tells a row from others, such as {"problem": "branin", "method": "random", "seed": 0}.
        measure: called with that as keywords; returns the rest of the row.
        length: an entry, such as "trials", of which a row may have more than is wanted.

    Returns:
        All rows of the file.
    """
    found = rows(path)
    for row in wanted:
        if not any(_covers(old, row, length) for old in found):
            append(path, {**row, **measure(**row)})
    return rows(path)


def of_one_file(about: str | None) -> ArgumentParser:
    """The command line of a script with one file, `FILE [--show]`, to which it may add arguments of its own."""
    parser = ArgumentParser(description=about, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--show", action="store_true", help="what is in the file only")
    return parser


def measure_or_show(
    about: str | None, wanted: Iterable[Row], measure: Callable[..., Row], show: Callable[[list[Row]], object]
) -> None:
    """The command line of a script with one file of rows: it measures what is missing and shows all, or shows only.

    Args:
        about: the script's docstring.
        wanted: as `complete` has it.
        measure: as `complete` has it.
        show: prints rows.
    """
    given = of_one_file(about).parse_args()
    warnings.simplefilter("ignore")
    show(rows(given.file) if given.show else complete(given.file, wanted, measure))


def in_turns(calls: dict[str, Callable[[], object]], rounds: int, warm_up: int) -> dict[str, float]:
    """Median wall seconds of calls that take turns, so many rounds, after some to warm up."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(warm_up + rounds):
        for name, call in calls.items():
            started = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - started)
    return {name: statistics.median(each[warm_up:]) for name, each in times.items()}


def _covers(found: Row, wanted: Row, length: str) -> bool:
    """Whether a row is what is wanted, and as long."""
    is_same = all(found.get(name) == value for name, value in wanted.items() if name != length)
    return is_same and found.get(length, 0) >= wanted.get(length, 0)
