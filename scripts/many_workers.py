"""What many asynchronous workers find: four evaluations of each, in simulated time, with real proposals.

    python scripts/many_workers.py docs/results/many_workers.jsonl [--workers 100] [--problems NAME ...] [--seeds 3]
    python scripts/many_workers.py docs/results/many_workers.jsonl --show

An evaluation takes a random time between .5 and 1.5. Sixteen times in a unit of it whatever has finished is told, and
as many new configurations are asked for at once: what a shared study does. TuRBO, which is made for batches, gets
synchronous ones (its exact kernel is too slow for 1000 workers); "sequential" is the default with one worker, and
`SPAN` evaluations. All problems are for development. A row has the best true values after 1, 2, 3 and 4 generations.
"""

import argparse
import heapq
import os
import random
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from deepbore.problems.suites import problem as problem_of
from deepbore.space import Params
from harness.ledger import Ledger
from harness.measuring import Row, complete, grid, rows
from peers import methods
from peers.base import Peer

PROBLEMS = (
    "hartmann6",
    "bbob/f01/i01/d20",
    "bbob/f08/i01/d20",
    "bbob/f15/i01/d20",
    "bbob/f21/i01/d20",
    "hpolib/protein_structure",
    "nasbench201/cifar10",
    "bbob-mixint/f08/i01/d20",
    "bbob-mixint/f15/i01/d20",
)
METHODS = ("random", "optuna-tpe", "turbo", "deepbore")
WORKERS = (100, 300, 1000)
GENERATIONS, LOOKS, SPAN = 4, 16, 400


def run(problem: str, method: str, workers: int, seed: int) -> Row:
    """The best values of a run after each generation, and the processor seconds of the method."""
    task = problem_of(problem, seed=seed)
    sequential, batches = method == "sequential", method == "turbo"
    trials = SPAN if sequential else GENERATIONS * workers
    ledger = Ledger(task)
    name = "deepbore" if sequential else method
    peer = methods.make(name, task.space, seed, n_initial=10, workers=workers if batches else min(workers, 2))
    drawn = random.Random(seed)
    running: list[tuple[float, int, Params]] = []
    best, seconds, asked, now = list[float](), 0.0, 0, 0.0
    while ledger.n < trials:
        done: list[Params] = []
        while running and (batches or running[0][0] <= now):
            done.append(heapq.heappop(running)[2])
        outcomes = [(params, ledger.evaluate(params)) for params in done]
        while len(best) < GENERATIONS and ledger.n >= (len(best) + 1) * trials // GENERATIONS:
            best.append(ledger.best[-1][1])
        began = peer.clock()
        for params, outcome in outcomes:
            peer.tell_outcome(params, outcome)
        room = min(workers - len(running), trials - asked)
        new = ask(peer, room)
        seconds += peer.clock() - began
        asked += len(new)
        if len(new) < room:  # a finite space is exhausted
            trials = asked
        for number, params in enumerate(new):
            heapq.heappush(running, (now + drawn.uniform(0.5, 1.5), asked - len(new) + number, params))
        now = running[0][0] if sequential and running else now + 1 / LOOKS
    peer.close()
    optimum = None if task.optimum is None else ledger.sign * task.optimum
    return {"trials": ledger.n, "best": best, "optimum": optimum, "seconds": round(seconds, 1)}


def ask(peer: Peer, q: int) -> list[Params]:
    """The next q configurations, none for q = 0."""
    return peer.ask(q) if q else []


def regrets(found: list[Row]) -> dict[tuple[str, str, int], np.ndarray]:
    """Geometric means over seeds of the regret after each generation, by problem, method and workers."""
    by: dict[tuple[str, str, int], list[np.ndarray]] = {}
    for row in found:
        regret = np.maximum(np.array(row["best"]) - (row["optimum"] or 0.0), 1e-9)
        by.setdefault((row["problem"], row["method"], row["workers"]), []).append(np.log(regret))
    return {key: np.exp(np.mean(each, axis=0)) for key, each in by.items()}


def show(found: list[Row]) -> None:
    """A line for each problem, number of workers and method."""
    for (problem, method, workers), regret in sorted(regrets(found).items()):
        count = sum((row["problem"], row["method"], row["workers"]) == (problem, method, workers) for row in found)
        print(f"{problem:26} {workers:5} {method:12} {count}", *(f"{each:9.3g}" for each in regret))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--workers", type=int, nargs="+", default=WORKERS)
    parser.add_argument("--problems", nargs="+", default=PROBLEMS)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    if given.show:
        show(rows(given.path))
        return
    wanted = grid(seed=range(given.seeds), workers=given.workers, problem=given.problems, method=given.methods)
    left_out = [row for row in wanted if row["method"] == "turbo" and row["workers"] > 300]
    complete(given.path, [row for row in wanted if row not in left_out], run)


if __name__ == "__main__":
    sys.exit(main())
