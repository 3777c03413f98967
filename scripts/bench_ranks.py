#!/usr/bin/env python
"""What several ranks bring to a suggestion: training, of which they share the members, and the search.

    python scripts/bench_ranks.py [--ranks 1 2] [--rounds 3] [--out docs/results/ranks.json]

`DistributedStudy.ask(q)` in five dimensions, after 200 trials, each rank on one thread. Medians over the rounds, as in
`scripts/bench_candidates.py`: CPU seconds of the busiest rank, which is what it takes on cores of its own, and
seconds on the clock.
"""

import json
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from torch import distributed

from bench_candidates import on_ranks, seconds
from deepbore import DeepEnsemble, DistributedStudy, HyperDeepEnsemble, KernelPLS, Real, SearchSpace
from deepbore.classifiers import Classifier

SPACE = SearchSpace({f"x{i}": Real(0, 1) for i in range(5)})
HEADS = {
    "the default": KernelPLS,
    "DeepEnsemble": DeepEnsemble,
    "DeepEnsemble of 64 x (64, 64)": lambda: DeepEnsemble(members=64, hidden=(64, 64)),
    "HyperDeepEnsemble": HyperDeepEnsemble,
}


def suggest_and_tell(study: DistributedStudy, q: int) -> None:
    """One suggestion of q points, of which each rank tells its share."""
    study.tell({trial.id: sum((x - 0.4) ** 2 for x in trial.params.values()) for trial in study.share(study.ask(q))})


def measure(rank: int, world: int, rounds: int, folder: str) -> None:
    """One rank's part; the first prints and writes."""
    torch.set_num_threads(1)
    if world > 1:
        distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=world)
    rows = []
    for name, head in HEADS.items():
        for q in (1, 1000):
            classifier: Classifier = head()
            study = DistributedStudy(SPACE, seed=0, n_initial=200, classifier=classifier)
            suggest_and_tell(study, 200)
            (_, wall, _), cpu = seconds(rounds, lambda study=study, q=q: suggest_and_tell(study, q))
            cpu = max(study.ranks.gather(cpu))
            row = {"head": name, "ranks": world, "q": q, "seconds": round(wall, 4), "cpu_seconds": round(cpu, 4)}
            rows.append(row)
            if rank == 0:
                print(f"{name:30} {world:5} {q:5} {wall:9.4f} {cpu:9.4f}", flush=True)
    if rank == 0:
        Path(folder, "rows.json").write_text(json.dumps(rows))
    if world > 1:
        distributed.destroy_process_group()


if __name__ == "__main__":
    print(f"{'head':30} {'ranks':>5} {'q':>5} {'seconds':>9} {'CPU':>9}")
    on_ranks(__doc__, measure, rounds=3)
