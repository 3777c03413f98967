#!/usr/bin/env python
"""Where the time of a suggestion goes, and how much of it is arithmetic.

    python scripts/parts_of_ask.py docs/results/parts_of_ask.jsonl           # measures anew
    python scripts/parts_of_ask.py docs/results/parts_of_ask.jsonl --show    # the table only

A row has, for a number of observations in five real parameters, the processor milliseconds of an ask and a tell in each
part, on one thread, and how often it is entered: the mean of 20, so that the strategies that take turns count equally.
`arithmetic` is what LAPACK, exponentials and products of matrices alone take for the same calls, in a loop of their
own, where all data stay in the cache; the table has it in brackets.
"""

import json
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.linalg import blas, lapack

import bench_default
from deepbore.candidates import base, local
from deepbore.classifiers.kernel.evidence import Evidence
from deepbore.classifiers.kernel.kernels import matern52_with_slope, squared_distances
from deepbore.classifiers.kernel.least_squares import BaseKernelPLS
from deepbore.compute.devices import one_thread
from deepbore.data import observations
from deepbore.labels.datamodule import LabelledBatch, LabelledObservations
from deepbore.strategies import near_best
from harness.measuring import of_one_file

NUMBERS, ASKED, BEFORE, D = (50, 100, 180, 1000, 1_000_000), 20, 4, 5
PARTS: dict[str, list[tuple[Any, str]]] = {
    "evidence": [(Evidence, "__call__")],
    "around it": [(BaseKernelPLS, name) for name in ("_maximise", "_evidence", "_remember", "learn_all")],
    "pool": [(base.Search, "_chunked")],
    "ascent": [(local, "adam_ascent")],
    "rows": [(LabelledObservations, "batch"), (LabelledBatch, "coreset"), (near_best, "near_rows")],
    "suspicion": [(observations, "suspicion")],
}


class Clock:
    """Processor seconds in each part, without those of parts within it; and how often it is entered."""

    def __init__(self) -> None:
        self.seconds, self.calls = Counter[str](), Counter[str]()
        self.evidences, self.chunks = Counter[tuple[int, int]](), Counter[int]()
        self.within = [0.0]

    def watch(self, part: str, owner: Any, name: str) -> None:
        """Measures a function from now on."""
        function = getattr(owner, name)

        def watched(*given: Any, **named: Any) -> Any:
            begun = time.process_time()
            self.within.append(0.0)
            try:
                return function(*given, **named)
            finally:
                taken = time.process_time() - begun
                self.seconds[part] += taken - self.within.pop()
                self.within[-1] += taken
                self.calls[part] += 1
                if part == "evidence":
                    gram = given[0].gram
                    self.evidences[len(given[0].z), 1 + len(getattr(gram, "direct", ()))] += 1
                elif part == "pool":
                    rows = len(given[0].classifier.get_extra_state()["x"])
                    self.chunks[rows] += -(-len(given[2]) // base.CHUNK)

        setattr(owner, name, watched)


def fastest(call: Callable[[], object]) -> float:
    """Processor seconds of a call, the least of several means."""
    means = []
    for _ in range(6):
        begun = time.process_time()
        for _ in range(10):
            call()
        means.append((time.process_time() - begun) / 10)
    return min(means)


def bare_evidence(n: int, functions: int) -> float:
    """Seconds of a factor and an inverse of n rows, and of so many kernel functions with slopes of each pair."""
    x = np.random.default_rng(0).random((n, D))
    squared = squared_distances(x, x)
    packed = lapack.dtrttf(matern52_with_slope(squared, np)[0] + 0.1 * np.eye(n), uplo="L")[0]
    pairs = lapack.dtrttf(squared, uplo="L")[0]

    def once() -> None:
        lapack.dpftri(n, lapack.dpftrf(n, packed, uplo="L")[0], uplo="L", overwrite_a=1)
        for _ in range(functions):
            matern52_with_slope(pairs, np)

    return fastest(once)


def bare_chunk(n: int) -> float:
    """Seconds of distances, kernel function and triangular product of a chunk of points and n rows."""
    rng = np.random.default_rng(0)
    x, y, root = rng.random((base.CHUNK, D)), rng.random((n, D)), np.asfortranarray(np.triu(rng.random((n, n))))

    def once() -> None:
        k = matern52_with_slope(squared_distances(x, y), np, slopes=False)[0]
        blas.dtrmm(1.0, root, k.T, side=0, lower=0, trans_a=1)

    return fastest(once)


def measured(n: int, clock: Clock) -> dict[str, Any]:
    """A row."""
    once = bench_default.made("deepbore", bench_default.space_of("five reals"), n)
    for _ in range(BEFORE):
        once()
    for counter in (clock.seconds, clock.calls, clock.evidences, clock.chunks):
        counter.clear()
    begun = time.process_time()
    for _ in range(ASKED):
        once()
    clock.seconds["whole"] = time.process_time() - begun
    clock.seconds["rest"] = 2 * clock.seconds["whole"] - clock.seconds.total()
    arithmetic = {
        "evidence": sum(count * bare_evidence(*which) for which, count in clock.evidences.items()),
        "pool": sum(count * bare_chunk(rows) for rows, count in clock.chunks.items()),
    }
    milliseconds = {part: round(1e3 * each / ASKED, 2) for part, each in clock.seconds.items()}
    bare = {part: round(1e3 * each / ASKED, 2) for part, each in arithmetic.items()}
    return {"n": n, "ms": milliseconds, "arithmetic": bare, "calls": {p: c / ASKED for p, c in clock.calls.items()}}


def show(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    print("| ms |", " | ".join(f"n = {row['n']}" for row in rows), "|")
    print(f"|---|{'---|' * len(rows)}")
    for part in ("whole", *PARTS, "rest"):
        cells = []
        for row in rows:
            bare = f" ({row['arithmetic'][part]:.1f})" if part in row["arithmetic"] else ""
            cells.append(f"{row['ms'].get(part, 0):.1f}{bare}")
        print(f"| {part} | {' | '.join(cells)} |")
    print("| evaluations of the evidence |", " | ".join(f"{row['calls']['evidence']:.0f}" for row in rows), "|")


def main() -> None:
    given = of_one_file(__doc__).parse_args()
    if not given.show:
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        clock = Clock()
        for part, functions in PARTS.items():
            for owner, name in functions:
                clock.watch(part, owner, name)
        with one_thread():
            rows = [measured(n, clock) for n in NUMBERS]
        given.file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    show(given.file)


if __name__ == "__main__":
    main()
