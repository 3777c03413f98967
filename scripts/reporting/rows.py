"""The runs in the files of results: one JSON object a line, as `scripts/benchmark.py` appends them."""

import json
import sys
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

Points = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Run:
    """One run of a method on a problem.

    Attributes:
        problem, method, seed, workers: what ran.
        n: number of evaluations, >= 1.
        best: (evaluations, true value of the best configuration so far), where it changes; in the sign that is
            minimised. On noisy problems the true value may rise: the best is what was seen to be so.
        recommended: the same of the configuration that the method recommends, at checkpoints; empty without noise.
        seconds: time of the optimiser alone, over the whole run; None where it was not taken.
        failed: evaluations that failed.
        version: of the package behind the method.
        rounds: sums of the true values of each round, where they were kept.
    """

    problem: str
    method: str
    seed: int
    workers: int
    n: int
    best: Points
    recommended: Points
    seconds: float | None
    failed: int
    version: str
    rounds: tuple[float, ...] = ()

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> "Run":
        """A run from its line. Raises KeyError, TypeError or ValueError where the line is not one of a run."""
        return cls(
            problem=str(row["problem"]),
            method=str(row["method"]),
            seed=int(row["seed"]),
            workers=int(row.get("workers") or 1),
            n=int(row["n"]),
            best=_points(row["best"]),
            recommended=_points(row.get("recommended") or ()),
            seconds=None if row.get("seconds") is None else float(row["seconds"]),
            failed=int(row.get("failed") or 0),
            version=str(row.get("version") or ""),
            rounds=tuple(float(value) for value in row.get("rounds") or ()),
        )

    @property
    def key(self) -> tuple[str, str, int, int, int]:
        """What no other run has."""
        return self.problem, self.method, self.seed, self.workers, self.n

    @property
    def pair(self) -> tuple[str, int]:
        """What methods are compared on: a problem and a seed."""
        return self.problem, self.seed

    def at(self, k: int, recommended: bool = False) -> float | None:
        """The value after k evaluations; None if there was none yet."""
        points = self.recommended if recommended else self.best
        place = bisect_right(points, k, key=lambda point: point[0])
        return points[place - 1][1] if place else None


def read(paths: Iterable[Path]) -> list[Run]:
    """All runs in files, and in the `*.jsonl` of folders.

    A line that is not one of a run, such as the last one of a runner that was killed, is left out and said so on
    stderr. Of two equal runs the later line counts.
    """
    runs: dict[Any, Run] = {}
    for path in paths:
        for file in sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]:
            for number, line in enumerate(file.read_text().splitlines(), start=1):
                if not line.strip():
                    continue
                try:
                    run = Run.from_row(json.loads(line))
                except (KeyError, TypeError, ValueError) as error:
                    print(f"{file}:{number} is left out: {type(error).__name__}: {error}", file=sys.stderr)
                else:
                    runs[run.key] = run
    return [runs[key] for key in sorted(runs)]


def _points(pairs: Iterable[Any]) -> Points:
    return tuple(sorted((int(k), float(value)) for k, value in pairs if value is not None and isfinite(value)))
