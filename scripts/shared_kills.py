"""What is lost when the processes of a shared study are killed: SIGKILL of workers and of the leader at random times.

    python scripts/shared_kills.py docs/results/shared_kills.jsonl                        # SQLite
    python scripts/shared_kills.py docs/results/shared_kills.jsonl --storage postgresql   # a server of its own
    python scripts/shared_kills.py docs/results/shared_kills.jsonl --show

A run has a leader and four workers, real processes; about every half second one of them is killed, and another one
takes its place. Each line of the file is one run:

- lost: trials that the journal or the storage lacks in the end, or whose value is not that of their configuration;
- doubled: trials that were told more than once;
- orphaned: trials that are still waiting or running in the storage;
- junk: trials of the storage that are none of the study's;
- failed: trials that have failed, which none does by itself;
- again: evaluations that were ended more than once, which costs time, and nothing else;
- equal: whether a study that is asked and told in the same order, by one process without kills, proposes the same, to
  the last digit.
"""

import argparse
import json
import logging
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import lightning.pytorch  # noqa: F401  # here, so that the processes which are forked off have it
import optuna
import torch

import deepbore
from deepbore.integrations.shared import Leader
from deepbore.loop.engine import Engine
from deepbore.worker.shared import TRIAL, open_storage, work
from harness import postgres

SPACE = deepbore.SearchSpace(
    {"x": deepbore.Real(0, 1), "y": deepbore.Real(1e-4, 1, log=True), "kind": deepbore.Categorical(["a", "b", "c"])}
)
TRIALS, WORKERS, KILLS, RUNS = 40, 4, 10, 10
LONGEST = 300.0  # seconds of a run
OF_LEADERS = 0.3  # share of the kills
COUNTS = ("lost", "doubled", "orphaned", "junk", "failed")


def value(params: dict[str, Any]) -> float:
    """The objective."""
    return float((params["x"] - 0.3) ** 2 + abs(params["y"] - 0.01) + 0.1 * "abc".index(params["kind"]))


# --- the processes ---------------------------------------------------------------------------------------------------


def fork(call: Callable[..., object], *args: object) -> int:
    """The id of a new process that makes a call."""
    sys.stdout.flush()
    if child := os.fork():
        return child
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        call(*args)
        status = 0
    finally:
        os._exit(status)


def lead(url: str, folder: Path, trials: int) -> None:
    """One leader, the first or a later one; it notes which trials were asked for together."""
    reserve = Engine.reserve

    def noted(engine: Engine, points: torch.Tensor) -> list[int]:
        rows = reserve(engine, points)
        note(folder / "asked", f"{rows[0]} {len(rows)}")
        return rows

    Engine.reserve = noted  # type: ignore[method-assign]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = deepbore.Study(SPACE, seed=0, journal=folder / "run.jsonl", if_exists="load")
        Leader(url, "kills", study, poll=0.1).run(trials, progress=False)


def help_out(url: str, folder: Path) -> None:
    """One worker."""

    def train(params: dict[str, Any], trial: deepbore.Trial) -> float:
        time.sleep(random.Random(trial.id).uniform(0.05, 0.4))
        note(folder / "evaluated", str(trial.id))
        return value(params)

    random.seed()
    work(train, url, "kills", heartbeat=1, retries=1000, poll=0.05)


def note(path: Path, line: str) -> None:
    """Appends a line at once."""
    with path.open("ab", buffering=0) as file:
        file.write(f"{line}\n".encode())


def disturbed(url: str, folder: Path, seed: int, kills: int, trials: int) -> dict[str, Any]:
    """A run with so many kills; its counts."""
    draw, killed = random.Random(seed), Counter[str]()
    leader, workers = fork(lead, url, folder, trials), [fork(help_out, url, folder) for _ in range(WORKERS)]
    began = time.monotonic()
    try:
        while not has_ended(leader):
            assert time.monotonic() - began < LONGEST, f"the run in {folder} has not ended"
            time.sleep(draw.uniform(0.1, 0.9))
            if killed.total() >= kills or has_ended(leader):
                continue
            if draw.random() < OF_LEADERS:
                kill(leader)
                leader = fork(lead, url, folder, trials)
                killed["leader"] += 1
            else:
                place = draw.randrange(WORKERS)
                kill(workers[place])
                workers[place] = fork(help_out, url, folder)
                killed["workers"] += 1
    finally:
        for process in [leader, *workers]:
            if not has_ended(process):
                kill(process)
    seconds = time.monotonic() - began
    return {"seed": seed, **killed, "seconds": round(seconds, 1), **counts(url, folder, trials)}


ENDED: set[int] = set()


def has_ended(process: int) -> bool:
    """Whether a child is over; one that has ended badly raises an error."""
    if process not in ENDED:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            assert status == 0, f"a process has ended with {status}"
            ENDED.add(process)
    return process in ENDED


def kill(process: int) -> None:
    """Kills a child, which ends with it."""
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)


# --- what has become of it -------------------------------------------------------------------------------------------


def counts(url: str, folder: Path, trials: int) -> dict[str, Any]:
    """The counts of a run that has ended."""
    events = [json.loads(line) for line in (folder / "run.jsonl").read_text().splitlines()]
    asked = {event["trial"]: event["params"] for event in events if event["event"] == "asked"}
    told = [event for event in events if event["event"] in ("told", "failed")]
    values = {event["trial"]: event.get("value") for event in told}
    storage = optuna.storages.get_storage(open_storage(url))
    stored = storage.get_all_trials(storage.get_study_id_from_name("kills"))
    ours = {each.system_attrs[TRIAL]["id"]: each.value for each in stored if TRIAL in each.system_attrs}
    right = {row for row, params in asked.items() if values.get(row) == ours.get(row) == value(params)}
    ends = Counter((folder / "evaluated").read_text().split())
    return {
        "trials": trials,
        "lost": trials - len(right),
        "doubled": len(told) - len(values),
        "orphaned": sum(not each.state.is_finished() for each in stored),
        "junk": len(stored) - len(ours),
        "failed": sum(event["event"] == "failed" for event in told),
        "again": sum(each - 1 for each in ends.values()),
        "equal": asked == replayed(events, folder),
    }


def replayed(events: list[dict[str, Any]], folder: Path) -> dict[int, dict[str, Any]]:
    """What a study proposes that is asked and told in this order."""
    groups = dict(tuple(map(int, line.split())) for line in (folder / "asked").read_text().splitlines())
    study = deepbore.Study(SPACE, seed=0)
    rows = [event["trial"] for event in events if event["event"] == "asked"]
    for event in events:
        n = len(study.trials)
        if event["event"] == "asked" and event["trial"] == n:
            later = [row for row in rows if row > n and row in groups]  # a leader may die before it has noted it
            study.ask(groups.get(n) or (min(later) if later else len(rows)) - n)
        elif event["event"] == "told":
            study.tell(event["trial"], event["value"])
    return {trial.id: trial.params for trial in study.trials}


# --- the campaign ----------------------------------------------------------------------------------------------------


@contextmanager
def storages(kind: str) -> Iterator[Callable[[Path, int], str]]:
    """A function of folder and number that gives the URL of a new storage."""
    with postgres.server() if kind == "postgresql" else nullcontext("") as url:

        def make(folder: Path, number: int) -> str:
            if kind == "sqlite":
                return f"sqlite:///{folder}/storage.db"
            engine = __import__("sqlalchemy").create_engine(url, isolation_level="AUTOCOMMIT")
            with engine.connect() as connection:
                connection.exec_driver_sql(f"CREATE DATABASE run{number}")
            engine.dispose()
            return f"{url.rpartition('/')[0]}/run{number}"

        yield make


def campaign(path: Path, kind: str, runs: int, kills: int, trials: int) -> None:
    """Adds runs to the file until it has so many of this kind."""
    lines = path.read_text().splitlines() if path.exists() else []
    done = sum(json.loads(line)["storage"] == kind for line in lines)
    with storages(kind) as url_of:
        for seed in range(done, runs):
            with tempfile.TemporaryDirectory() as folder:
                found = disturbed(url_of(Path(folder), seed), Path(folder), seed, kills, trials)
            with path.open("a") as file:
                file.write(json.dumps({"storage": kind, **found}) + "\n")
            print({"storage": kind, **found}, flush=True)


def show(path: Path) -> None:
    """Prints a table of the counts."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    print(f"| storage | runs | trials | kills of workers | of the leader | {' | '.join(COUNTS)} | again | equal |")
    print("|---|" + "---|" * (7 + len(COUNTS)))
    for kind in dict.fromkeys(row["storage"] for row in rows):
        own = [row for row in rows if row["storage"] == kind]
        sums = [sum(row.get(n, 0) for row in own) for n in ("trials", "workers", "leader", *COUNTS, "again", "equal")]
        print(f"| {kind} | {len(own)} | {' | '.join(map(str, sums))} |")


def be_quiet() -> None:
    """Lets a campaign print nothing but its rows: no warnings, and of the logs errors alone."""
    for name in ("deepbore", "optuna", "lightning.pytorch"):
        logging.getLogger(name).setLevel(logging.ERROR)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--storage", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--kills", type=int, default=KILLS, help="in one run")
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    if given.show:
        return show(given.path)
    be_quiet()
    return campaign(given.path, given.storage, given.runs, given.kills, given.trials)


if __name__ == "__main__":
    main()
