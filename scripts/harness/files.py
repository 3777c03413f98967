"""Rows in files, and which jobs they leave to be done."""

import json
import os
from collections.abc import Iterable
from pathlib import Path

from harness.job import Job
from reporting.rows import Run

Key = tuple[str, str, int, int]


def append(path: Path, row: dict[str, object]) -> None:
    """Adds a row, in one write: several benchmarks may share a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(end - 1, 0))
        torn = file.read(1) not in (b"", b"\n")  # one who wrote here was killed
        file.write(b"\n" * torn + json.dumps(row, separators=(",", ":")).encode() + b"\n")


def key(run: Run) -> Key:
    """What tells a run from others, but for its length."""
    return run.problem, run.method, run.seed, run.workers


def left(jobs: Iterable[Job], runs: Iterable[Run]) -> list[Job]:
    """The jobs that are not done: none of the runs has as many evaluations, and what the row should have."""
    longest = dict[tuple[Key, bool], int]()
    for run in runs:
        for rounds in {False, bool(run.rounds)}:
            longest[key(run), rounds] = max(longest.get((key(run), rounds), 0), run.n)
    return [job for job in jobs if longest.get((job.key, job.rounds), 0) < job.trials]
