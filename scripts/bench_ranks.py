#!/usr/bin/env python
"""What several ranks bring to a suggestion: training, of which they share the members, and the search.

    python scripts/bench_ranks.py [--ranks 1 2] [--rounds 3] [--out docs/results/ranks.json]

`DistributedStudy.ask(q)` in five dimensions, after 200 trials, each rank on one thread. Medians over the rounds, as in
`scripts/bench_candidates.py`: CPU seconds of the busiest rank, which is what it takes on cores of its own, and
seconds on the clock.
"""

import os
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

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


def measure(rank: int, world: int, rounds: int) -> list[dict[str, Any]]:
    """One rank's part; the first prints."""
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
    return rows


if __name__ == "__main__":
    print(f"{'head':30} {'ranks':>5} {'q':>5} {'seconds':>9} {'CPU':>9}")
    on_ranks(__doc__, measure, rounds=3)
