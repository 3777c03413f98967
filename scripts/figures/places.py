"""Where results are, and what is in them."""

import json
import sys
from pathlib import Path

from figures.catalogue import RACES
from figures.kinds import Demonstration, Figure, Numbers
from reporting import rows
from reporting.rows import Run


class Results:
    """The folder of rows and pictures, a file of rows for each figure.

    Args:
        folder: docs/results/papers, but in tests.
    """

    def __init__(self, folder: Path):
        self.folder = folder

    def rows(self, figure: Figure) -> Path:
        return self.folder / f"{figure.name}.jsonl"

    def picture(self, figure: Figure) -> Path:
        return self.folder / f"{figure.name}.png"

    @property
    def optima(self) -> Path:
        return self.folder / "optima.json"

    @property
    def page(self) -> Path:
        return self.folder.with_suffix(".md")

    def runs(self) -> list[Run]:
        """The runs of all races: those that two figures share are made once."""
        return rows.read(path for race in RACES.values() if (path := self.rows(race)).exists())

    def numbers(self, figure: Demonstration, size: int | None = None) -> dict[int, Numbers]:
        """Seed -> what was computed; of a size, or the largest there is of each seed."""
        found: dict[int, tuple[int, Numbers]] = {}
        for line in _lines(self.rows(figure)):
            try:
                row = json.loads(line)
                seed, n, numbers = int(row["seed"]), int(row["size"]), dict(row["numbers"])
            except (KeyError, TypeError, ValueError) as error:
                print(f"a line of {self.rows(figure)} is left out: {error}", file=sys.stderr)
                continue
            if size in (None, n) and n >= found.get(seed, (0, {}))[0]:
                found[seed] = n, numbers
        return {seed: found[seed][1] for seed in sorted(found)}


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line.strip()] if path.exists() else []
