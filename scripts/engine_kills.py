"""What is lost when workers of Ray, dask and submitit are killed: SIGKILL while they evaluate, at random times.

    python scripts/engine_kills.py docs/results/engine_kills.jsonl                   # goes on where it was
    python scripts/engine_kills.py docs/results/engine_kills.jsonl --only dask
    python scripts/engine_kills.py docs/results/engine_kills.jsonl --show

A run has two workers of an engine on this machine; whenever an evaluation has begun, it is killed in two of five cases,
within its time. Each line of the file is one run:

- kills: processes that were killed while they evaluated;
- lost: trials that the journal lacks in the end, or whose value is not that of their configuration;
- failed: trials that have failed, which none does by itself;
- doubled: trials that were told more than once;
- again: evaluations that were begun more than once, which costs time, and nothing else.
"""

import argparse
import json
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import deepbore
from deepbore import ExecutorEvaluator
from deepbore.data.replay import read_record

SPACE = deepbore.SearchSpace({"x": deepbore.Real(0, 1), "k": deepbore.Integer(1, 9)})
ENGINES = ("dask", "ray", "submitit")
TRIALS, KILLS, LOSSES = 16, 24, 50  # of a run; of an engine at least; that a trial may have
SECONDS = 0.5  # of an evaluation
CHANCE = 0.4  # that one is killed
SINGLE = ["--nworkers", "1", "--nthreads", "1", "--no-nanny", "--no-dashboard"]  # of a worker of dask


def value(params: dict[str, Any]) -> float:
    return float((params["x"] - 0.3) ** 2 + params["k"])


class Evaluation:
    """An objective that says, in a folder, which process evaluates.

    Args:
        folder: of a file for each evaluation that has begun.
    """

    def __init__(self, folder: Path):
        self.folder = folder

    def __call__(self, params: dict[str, Any], trial: deepbore.Trial) -> float:
        mark = self.folder / f"{trial.id}-{os.getpid()}-{time.time_ns()}"
        mark.touch()
        time.sleep(SECONDS)
        mark.rename(mark.with_suffix(".done"))
        return value(params)


# --- engines ---------------------------------------------------------------------------------------------------------


@contextmanager
def dask() -> Iterator[Any]:
    import dask as package
    from distributed import Client, LocalCluster

    package.config.set({"distributed.scheduler.allowed-failures": LOSSES})
    settings: dict[str, Any] = {"dashboard_address": None, "silence_logs": logging.CRITICAL}
    worker = [sys.executable, "-m", "distributed.cli.dask_worker"]
    with (
        LocalCluster(n_workers=0, **settings) as cluster,
        Client(cluster) as client,
        kept_alive([*worker, cluster.scheduler_address, *SINGLE]),
    ):
        client.wait_for_workers(2)
        yield client.get_executor()


@contextmanager
def kept_alive(command: list[str]) -> Iterator[None]:
    """Two processes, each of which is started again when it ends: a `LocalCluster` does so a few times only."""
    ended, running = threading.Event(), list[subprocess.Popen[bytes]]()

    def keep() -> None:
        while not ended.wait(0.1):
            running[:] = [each for each in running if each.poll() is None]
            while len(running) < 2:
                running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    thread = threading.Thread(target=keep)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        for each in running:
            each.kill()
            each.wait()


@contextmanager
def ray() -> Iterator[Any]:
    import ray as package

    from deepbore.integrations.ray import RayExecutor

    package.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.CRITICAL)
    try:
        yield RayExecutor(workers=2)
        time.sleep(2.0)  # Ray ends a process in which any thread asks for it while it is shut down
    finally:
        package.shutdown()


@contextmanager
def submitit() -> Iterator[Any]:
    import submitit as package

    from deepbore.integrations.submitit import SubmititExecutor

    with tempfile.TemporaryDirectory() as logs:
        local = package.LocalExecutor(folder=logs)
        local.update_parameters(timeout_min=5)
        yield SubmititExecutor(local, workers=2)


# --- campaign --------------------------------------------------------------------------------------------------------


class Killer:
    """A thread that kills some of the evaluations that begin.

    Args:
        folder: see `Evaluation`.
        seed: of which, and when.
        enough: kills.
    """

    def __init__(self, folder: Path, seed: int, enough: int):
        self.folder, self.random, self.enough = folder, random.Random(seed), enough
        self.kills, self._seen, self._ended = 0, set[str](), threading.Event()
        self._thread = threading.Thread(target=self._go)

    def __enter__(self) -> "Killer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _go(self) -> None:
        while not self._ended.wait(0.01) and self.kills < self.enough:
            for mark in self.folder.iterdir():
                if mark.name not in self._seen and mark.suffix != ".done":
                    self._seen.add(mark.name)
                    self._perhaps(mark)

    def _perhaps(self, mark: Path) -> None:
        if self.random.random() > CHANCE:
            return
        time.sleep(self.random.uniform(0, SECONDS / 2))
        with suppress(OSError):
            if mark.exists():
                os.kill(int(mark.name.split("-")[1]), signal.SIGKILL)
                self.kills += 1


def run(engine: str, seed: int) -> dict[str, Any]:
    """One run."""
    make: Callable[[], Any] = globals()[engine]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        marks, journal = Path(folder, "marks"), Path(folder, "run.jsonl")
        marks.mkdir()
        with make() as executor, Killer(marks, seed, enough=2 * TRIALS) as killer:
            evaluator = ExecutorEvaluator(Evaluation(marks), executor, workers=2, lost_retries=LOSSES)
            study = deepbore.Study(SPACE, seed=seed, journal=journal)
            study.optimize(evaluator, TRIALS, progress=False)
            study.close()
        found = read_record(journal).trials
        told = [json.loads(line) for line in journal.read_text().splitlines()]
        numbers = [line["trial"] for line in told if line["event"] == "told"]
        right = sum(trial.value == value(dict(trial.params)) for trial in found)
        begun = len(list(marks.iterdir()))
    return {
        "engine": engine, "seed": seed, "trials": TRIALS, "kills": killer.kills, "lost": TRIALS - right,
        "failed": sum(trial.status.name == "FAILED" for trial in found),
        "doubled": len(numbers) - len(set(numbers)), "again": begun - TRIALS,
        "seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip


def rows_of(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def of_engine(out: Path, engine: str) -> list[dict[str, Any]]:
    return [row for row in rows_of(out) if row["engine"] == engine]


def campaign(out: Path, engine: str) -> None:
    """Runs until there are enough kills."""
    while sum(row["kills"] for row in of_engine(out, engine)) < KILLS:
        row = run(engine, len(of_engine(out, engine)))
        with out.open("a") as file:
            file.write(json.dumps(row) + "\n")


def show(out: Path) -> None:
    """The counts, as a table."""
    print("| engine | runs | trials | kills | lost | failed | doubled | evaluated again |")
    print("|---|---|---|---|---|---|---|---|")
    for engine in ENGINES:
        rows = of_engine(out, engine)
        names = ("trials", "kills", "lost", "failed", "doubled", "again")
        sums = [sum(row[name] for row in rows) for name in names]
        print(f"| {engine} | {len(rows)} | {' | '.join(map(str, sums))} |")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--only", choices=ENGINES)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    for engine in () if given.show else ENGINES:
        if given.only in (None, engine):
            campaign(given.out, engine)
    show(given.out)


if __name__ == "__main__":
    main()
