#!/usr/bin/env python
"""What several ranks, or an accelerator, bring to one round in a library: each rank scores its share of the levels.

    python scripts/bench_library.py [--ranks 1 2] [--out docs/results/library_ranks.json]
    LEVELS=10000000 DEVICE=cuda python scripts/bench_library.py --ranks 1

`DistributedStudy.ask(10000)` in 300 000 made-up levels of 2048 bits, or LEVELS, after 1000 trials, each rank on one
thread, on a CPU or on DEVICE. CPU seconds are of the busiest rank, which is what it takes on cores of its own.
"""

import os
import time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from bench_candidates import on_ranks
from deepbore import DistributedStudy, Library

LEVELS, DEVICE = int(os.environ.get("LEVELS", "300000")), os.environ.get("DEVICE", "cpu")
TESTED, ASKED = 1000, 10_000


def measure(rank: int, world: int, rounds: int) -> list[dict[str, Any]]:
    """One rank's part; the first prints."""
    rng = np.random.default_rng(0)
    bits = np.empty((LEVELS, 256), np.uint8)
    for part in np.array_split(bits, max(1, LEVELS // 10_000)):
        part[:] = np.packbits(rng.random((len(part), 2048), dtype=np.float32) < 0.11, axis=1)
    rows = []
    for number in range(rounds):
        study = DistributedStudy({"molecule": Library(bits)}, seed=number, n_initial=TESTED, device=DEVICE)
        mine = study.share(study.ask(TESTED))
        study.tell({trial.id: float(np.sin(trial.params["molecule"])) for trial in mine})
        started, busy = time.perf_counter(), time.process_time()
        study.ask(ASKED)
        wall, cpu = time.perf_counter() - started, max(study.ranks.gather(time.process_time() - busy))
        rows.append({"levels": LEVELS, "ranks": world, "seconds": round(wall, 1), "cpu_seconds": round(cpu, 1)})
        if rank == 0:
            print(f"{LEVELS:9} {world:5} {wall:9.1f} {cpu:9.1f}", flush=True)
    return rows


if __name__ == "__main__":
    print(f"{'levels':>9} {'ranks':>5} {'seconds':>9} {'CPU':>9}")
    on_ranks(__doc__, measure, rounds=1)
