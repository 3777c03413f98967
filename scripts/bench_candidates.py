#!/usr/bin/env python
"""What several ranks bring to the search for candidates, each on one thread; and a GPU to scoring, where there is one.

    python scripts/bench_candidates.py [--ranks 1 2] [--rounds 10]

A `DeepEnsemble` of 200 observations in ten dimensions; the search shares its points and climbers among the ranks, and
gathers. Medians over the rounds.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from torch import distributed, multiprocessing

from deepbore import DeepEnsemble, LocalSearch, Real, SearchSpace, UpperConfidenceBound
from deepbore.candidates import Candidates, RandomSearch, Search
from deepbore.compute.distributed import Ranks
from deepbore.testing import fit, toy_data

SPACE = SearchSpace({f"x{i}": Real(0, 1) for i in range(10)})
SEARCHES: dict[str, tuple[Candidates, int]] = {  # with how many points they score
    "default search": (LocalSearch(focus=0.0), 3000 + 20 * 8 + 8),
    "wide search": (LocalSearch(samples=20_000, neighbours=10_000, climbers=64, focus=0.0), 30_000 + 20 * 64 + 64),
    "random pool": (RandomSearch(100_000), 100_000),
}


def median(rounds: int, call: Callable[[], object]) -> float:
    """Seconds of one call."""
    seconds = []
    for _ in range(rounds + 1):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[1:])


def new_search(ranks: Ranks) -> Search:
    data = toy_data(SPACE, 200)
    classifier = fit(DeepEnsemble(), data, epochs=3)
    return Search(UpperConfidenceBound(), classifier, data.observations, torch.Generator().manual_seed(0), ranks)


def measure(rank: int, world: int, rounds: int, meeting: str) -> None:
    """One rank's part; the first prints."""
    torch.set_num_threads(1)
    if world > 1:
        distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
    search = new_search(Ranks.found())
    for name, (candidates, points) in SEARCHES.items():
        seconds = median(rounds, lambda candidates=candidates: candidates.propose(search, 1))
        if rank == 0:
            print(f"{name:16} {world:5} {points:9,} {points / seconds:15,.0f} {1 / seconds:13.1f}", flush=True)
    if world > 1:
        distributed.destroy_process_group()


def compare_gpu(rounds: int) -> None:
    """Scoring on the CPU and on the GPU."""
    print(f"\n{'scoring on':16} {'points':>9} {'evaluations/s':>15}")
    search = new_search(Ranks())
    points = SPACE.sample(200_000, torch.Generator().manual_seed(0))
    for device in ("cpu", "cuda"):
        classifier = search.classifier.to(device)
        here = points.to(device)

        @torch.no_grad()
        def score(classifier=classifier, here=here) -> None:
            _ = float(search.acquisition(classifier, here).max())  # waits for the GPU

        print(f"{device:16} {len(points):9,} {len(points) / median(rounds, score):15,.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    print(f"{'search':16} {'ranks':>5} {'points':>9} {'evaluations/s':>15} {'suggestions/s':>13}")
    for world in options.ranks:
        with tempfile.TemporaryDirectory() as folder:
            multiprocessing.spawn(measure, (world, options.rounds, f"{folder}/meeting"), nprocs=world)
    if torch.cuda.is_available():
        compare_gpu(options.rounds)


if __name__ == "__main__":
    main()
