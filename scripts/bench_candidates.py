#!/usr/bin/env python
"""What several ranks bring to the search for candidates, each on one thread.

    python scripts/bench_candidates.py [--ranks 1 2] [--rounds 10] [--out docs/results/two_ranks.json]

A `DeepEnsemble` of 200 observations in ten dimensions; the search shares its points, then the climbing from the best of
them, and gathers both. Medians and quartiles over the rounds. Where other work keeps the cores busy (`load` is the
machine's load average when a number of ranks begins), a rank waits for others that have no core: then the CPU time of
the busiest rank, its threads for talking to the others included, says what the search would take on cores of its own.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from torch import distributed, multiprocessing

from deepbore import DeepEnsemble, GreedyBatch, LocalSearch, Real, SearchSpace, UpperConfidenceBound
from deepbore.candidates import BoTorchBatch, Candidates, RandomSearch, Search
from deepbore.compute.distributed import Ranks
from deepbore.testing import fit, toy_data

SPACE = SearchSpace({f"x{i}": Real(0, 1) for i in range(10)})
SEARCHES: dict[str, tuple[Candidates, int]] = {  # with how many points they propose
    "default search": (LocalSearch(focus=0.0), 1),
    "default batch": (GreedyBatch(LocalSearch(focus=0.0)), 64),
    "wide search": (LocalSearch(samples=20_000, neighbours=10_000, climbers=64, focus=0.0), 1),
    "random pool": (RandomSearch(100_000), 1),
    "BoTorchBatch": (BoTorchBatch(restarts=8, iterations=20), 2),
}


def seconds(rounds: int, call: Callable[[], object]) -> tuple[list[float], float]:
    """Quartiles of the seconds of one call, and the median of its CPU seconds."""
    wall, cpu = [], []
    for _ in range(rounds + 1):
        started, busy = time.perf_counter(), time.process_time()
        call()
        wall.append(time.perf_counter() - started)
        cpu.append(time.process_time() - busy)
    return statistics.quantiles(wall[1:], n=4, method="inclusive"), statistics.median(cpu[1:])


def new_search(ranks: Ranks) -> Search:
    data = toy_data(SPACE, 200)
    classifier = fit(DeepEnsemble(), data, epochs=3)
    return Search(UpperConfidenceBound(), classifier, data.observations, torch.Generator().manual_seed(0), ranks)


def measure(rank: int, world: int, rounds: int) -> list[dict[str, Any]]:
    """One rank's part; the first prints."""
    search, rows = new_search(Ranks.found()), []
    for name, (candidates, q) in SEARCHES.items():
        (low, median, high), cpu = seconds(rounds, partial(candidates.propose, search, q))
        cpu = max(search.ranks.gather(cpu))
        row = {"search": name, "ranks": world, "q": q, "seconds": median, "quartiles": [low, high], "cpu_seconds": cpu}
        rows.append({key: round(x, 4) if isinstance(x, float) else x for key, x in row.items()})
        if rank == 0:
            print(f"{name:16} {world:5} {q:4} {median:9.4f} {cpu:9.4f}   {low:.4f} to {high:.4f}", flush=True)
    return rows


Measure = Callable[[int, int, int], list[dict[str, Any]]]


def measured_on(rank: int, measure: Measure, world: int, rounds: int, folder: str) -> None:
    """One rank's process, on one thread; the first writes the rows."""
    torch.set_num_threads(1)
    if world > 1:
        distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=world)
    rows = measure(rank, world, rounds)
    if rank == 0:
        Path(folder, "rows.json").write_text(json.dumps(rows))
    if world > 1:
        distributed.destroy_process_group()


def on_ranks(about: str | None, measure: Measure, rounds: int) -> None:
    """The command line of a script that measures on several numbers of ranks.

    Args:
        about: the script's docstring.
        measure: called on each rank with its number, how many there are, and the rounds; the first one's rows are kept.
        rounds: by default.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--out", type=Path, help="a JSON file for the measurements")
    options = parser.parse_args()
    rows, load = [], {}
    for world in options.ranks:
        load[world] = os.getloadavg()[0]
        with tempfile.TemporaryDirectory() as folder:
            multiprocessing.spawn(measured_on, (measure, world, options.rounds, folder), nprocs=world)
            rows += json.loads(Path(folder, "rows.json").read_text())
    if options.out is not None:
        ranks, script = " ".join(map(str, options.ranks)), Path(sys.argv[0]).name
        command = f"python scripts/{script} --ranks {ranks} --rounds {options.rounds} --out {options.out}"
        said = {"command": command, "cores": os.cpu_count(), "load": load, "rows": rows}
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(said, indent=1) + "\n")


if __name__ == "__main__":
    print(f"{'search':16} {'ranks':>5} {'q':>4} {'seconds':>9} {'CPU':>9}   quartiles")
    on_ranks(__doc__, measure, rounds=10)
