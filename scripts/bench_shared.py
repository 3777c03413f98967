"""Costs of a shared study (memory and start of a worker, statements per trial, how busy workers are) and of a server.

    python scripts/bench_shared.py docs/results/shared_costs.json                                 # all of it
    python scripts/bench_shared.py docs/results/shared_costs.json --workers 100 --seconds 30      # the last alone
    python scripts/bench_shared.py docs/results/shared_costs.json --show

On PostgreSQL, a server of its own. Evaluations are simulated: they sleep for `--seconds`, times .5 to 1.5. The workers
are threads of four processes, each with a storage; "busy" is the share of time in which they evaluate, from the first
evaluation to the last beginning of one; "busy_once_all_run" from when as many evaluations have begun as there
are workers.
"""

import argparse
import json
import logging
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
from sqlalchemy import event

import deepbore
from deepbore.integrations.shared import Leader
from deepbore.study.server import StudyServer
from deepbore.worker.shared import open_storage, work
from harness import postgres

SPACE = deepbore.SearchSpace({f"x{k}": deepbore.Real(0, 1) for k in range(6)})
PARTS = ("worker", "statements", "clients", "busy")
PROCESSES = 4
START = """
import re, sys, time
from deepbore.worker.shared import work
n = work(lambda params: 0.0, sys.argv[1], "costs", patience=0.2, poll=0.1)
print(time.process_time(), int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) / 1024)
"""


def value(params: dict[str, Any]) -> float:
    """The objective."""
    return float(sum((x - 0.3) ** 2 for x in params.values()))


def leader(storage: Any, folder: Path, name: str, poll: float) -> Leader:
    """The leader of a new study."""
    study = deepbore.Study(SPACE, seed=0, journal=folder / f"{name}.jsonl")
    return Leader(storage, name, study, poll=poll)


def of_a_worker(url: str) -> dict[str, float]:
    """Processor seconds and peak memory (MB) of a worker that finds no trial."""
    optuna.create_study(storage=open_storage(url, creates=True), study_name="costs").set_user_attr(
        "deepbore:study", {"run": "", "parameters": [], "prunes": False}
    )
    done = subprocess.run([sys.executable, "-c", START, url], capture_output=True, text=True, check=True)
    seconds, memory = map(float, done.stdout.split())
    return {"processor_seconds": round(seconds, 2), "peak_megabytes": round(memory)}


def statements(url: str, folder: Path, trials: int = 50) -> dict[str, float]:
    """Statements of SQL per trial, of the worker and of the leader, where one worker's evaluations take a while."""
    counts: Counter[str] = Counter()
    storages = {"leader": open_storage(url, creates=True), "worker": open_storage(url)}
    for who, storage in storages.items():

        def count(*_: object, who: str = who) -> None:
            counts[who] += 1

        event.listen(storage.engine, "before_cursor_execute", count)  # type: ignore[attr-defined]

    def slow(params: dict[str, Any]) -> float:
        time.sleep(0.2)
        return value(params)

    thread = threading.Thread(target=work, args=(slow, storages["worker"], "statements"), kwargs={"poll": 0.5})
    thread.start()
    leader(storages["leader"], folder, "statements", poll=0.5).run(trials, progress=False)
    thread.join()
    return {who: round(each / trials, 1) for who, each in counts.items()}


def clients(count: int = 1000, known: int = 200) -> dict[str, float]:
    """Processor seconds in which so many clients of a `StudyServer` get a trial each, and of one `ask` for each.

    The second is measured for a tenth of them.
    """
    studies = [deepbore.Study(SPACE, seed=0) for _ in range(2)]
    for study in studies:
        for trial in study.ask(known):
            study.tell(trial, value(trial.params))
        study.tell(trial := study.ask_one(), value(trial.params))  # the first proposal takes longer
    server = StudyServer(studies[0], window=0.5)
    threads = [threading.Thread(target=server.ask) for _ in range(count)]
    began = time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = time.process_time() - began
    began = time.process_time()
    for _ in range(count // 10):
        studies[1].ask_one()
    each = 10 * (time.process_time() - began)
    return {"clients": count, "trials": known, "together": round(together, 2), "one_by_one": round(each, 1)}


def busy(url: str, folder: Path, n_workers: int, seconds: float, rounds: int) -> dict[str, float]:
    """The share of time in which so many workers evaluate, and what the leader's process takes."""

    def simulated(params: dict[str, Any], trial: deepbore.Trial) -> float:
        began = time.time()
        time.sleep(seconds * random.Random(trial.id).uniform(0.5, 1.5))
        with (folder / "spans").open("ab", buffering=0) as file:
            file.write(f"{began} {time.time()}\n".encode())
        return value(params)

    def workers() -> None:
        storage = optuna.storages.RDBStorage(
            url, engine_kwargs={"pool_size": 25, "max_overflow": 0, "pool_timeout": 300}, skip_table_creation=True
        )
        arguments = (simulated, storage, "busy")
        threads = [threading.Thread(target=work, args=arguments) for _ in range(n_workers // PROCESSES)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    made = open_storage(url, creates=True)
    made.engine.dispose()  # type: ignore[attr-defined]  # no connection is forked
    children = [fork(workers) for _ in range(PROCESSES)]
    began = time.process_time()
    leader(url, folder, "busy", poll=0.5).run(n_workers * rounds, progress=False)
    taken = time.process_time() - began
    theirs = 0.0
    for child in children:
        usage = os.wait4(child, 0)[2]
        theirs += usage.ru_utime + usage.ru_stime
    spans = [tuple(map(float, line.split())) for line in (folder / "spans").read_text().splitlines()]
    begins = sorted(begin for begin, _ in spans)
    last = begins[-1]

    def share(since: float) -> float:
        evaluated = sum(max(0.0, min(end, last) - max(begin, since)) for begin, end in spans)
        return round(evaluated / (n_workers * (last - since)), 3)

    return {
        "workers": n_workers,
        "seconds": seconds,
        "trials": len(spans),
        "busy": share(begins[0]),
        "busy_once_all_run": share(begins[n_workers - 1]),
        "seconds_until_all_run": round(begins[n_workers - 1] - begins[0], 1),
        "leader_processor_seconds_per_trial": round(taken / len(spans), 3),
        "workers_processor_seconds_per_trial": round(theirs / len(spans), 3),
        "load": round(os.getloadavg()[1], 1),
    }


def fork(call: Callable[[], None]) -> int:
    """The id of a new process that makes a call."""
    if child := os.fork():
        return child
    try:
        call()
    finally:
        os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rounds", type=int, default=4, help="trials of each worker")
    parser.add_argument("--only", nargs="+", choices=PARTS)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    known = json.loads(given.path.read_text()) if given.path.exists() else {}
    if given.show:
        print(json.dumps(known, indent=1))
        return
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    logging.getLogger("deepbore").setLevel(logging.ERROR)
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    for name in given.only or PARTS:
        with postgres.server() as url, tempfile.TemporaryDirectory() as folder:
            if name == "clients":
                known[name] = clients()
            elif name == "worker":
                known[name] = of_a_worker(url)
            elif name == "statements":
                known[name] = statements(url, Path(folder))
            else:
                found = busy(url, Path(folder), given.workers, given.seconds, given.rounds)
                others = [row for row in known.get(name, []) if row["workers"] != given.workers]
                known[name] = [*others, found]
        given.path.write_text(json.dumps(known, indent=1) + "\n")
        print(name, known[name], flush=True)


if __name__ == "__main__":
    main()
