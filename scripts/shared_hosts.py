"""What is lost when the network between the hosts of a shared study fails: its leader on one, its workers on another.

    python scripts/shared_hosts.py docs/results/shared_hosts.jsonl                    # PostgreSQL; as root, on Linux
    python scripts/shared_hosts.py docs/results/shared_hosts.jsonl --storage grpc     # behind Optuna's proxy
    python scripts/shared_hosts.py docs/results/shared_hosts.jsonl --show

The hosts are two network namespaces with a pair of virtual cards between them. The database, Optuna's proxy and the
leader are on the first, four workers on the second. Within a run the link goes down several times, for one to six
seconds; workers beat every second, so that the longer ones make them count as dead. The counts are those of
`shared_kills.py`.
"""

import ctypes
import json
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from optuna.storages import run_grpc_proxy_server

import shared_kills as kills
from deepbore.worker.shared import open_storage, patiently
from harness import postgres
from harness.measuring import of_one_file

FIRST, SECOND, PORT = "10.231.7.1", "10.231.7.2", 13000
TRIALS, CUTS, RUNS, WORKERS = 40, 5, 5, 4
CLONE_NEWNET = 0x40000000  # of <sched.h>
LONGEST = 150.0  # seconds of a run


def ip(*command: str) -> None:
    """Runs a command of iproute2."""
    subprocess.run(["ip", *command], check=True, capture_output=True, text=True)


def enter(name: str) -> None:
    """Moves this process into a network namespace."""
    with open(f"/run/netns/{name}") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"the namespace {name} can't be entered")


@contextmanager
def hosts() -> Iterator[tuple[str, str]]:
    """The names of two namespaces and of the first one's card, whose addresses are `FIRST` and `SECOND`."""
    cards = [f"db{os.getpid()}{end}" for end in "ab"]
    try:
        for card, address in zip(cards, (FIRST, SECOND), strict=True):
            ip("netns", "add", card)
            if card == cards[0]:
                ip("link", "add", card, "netns", card, "type", "veth", "peer", "name", cards[1])
            else:
                ip("link", "set", card, "netns", card)
            ip("-n", card, "addr", "add", f"{address}/24", "dev", card)
        for card in cards:
            ip("-n", card, "link", "set", "lo", "up")
            ip("-n", card, "link", "set", card, "up")
        yield cards[0], cards[1]
    finally:
        for card in cards:
            subprocess.run(["ip", "netns", "del", card], check=False, capture_output=True)


def run(url: str, kind: str, names: tuple[str, str], folder: Path, seed: int, cuts: int, trials: int) -> dict[str, Any]:
    """A run in which the link goes down so many times; its counts."""

    def on_the_second(call: Callable[..., object], *args: object) -> None:
        enter(names[1])
        call(*args)

    def serve() -> None:
        storage = patiently(open_storage, url, creates=True)  # the leader may make the tables at the same time
        run_grpc_proxy_server(storage, host=FIRST, port=PORT)

    draw, down, done = random.Random(seed), 0.0, 0
    processes = [kills.fork(kills.lead, url, folder, trials)]
    place = url
    if kind == "grpc":
        place = f"grpc://{FIRST}:{PORT}"
        processes.append(kills.fork(serve))
    processes += [kills.fork(on_the_second, kills.help_out, place, folder) for _ in range(WORKERS)]
    began = time.monotonic()
    try:
        while not kills.has_ended(processes[0]):
            assert time.monotonic() - began < LONGEST, f"the run in {folder} has not ended"
            time.sleep(draw.uniform(0.5, 2))
            for process in processes:
                kills.has_ended(process)  # an error if one has ended badly
            if done < cuts and (folder / "evaluated").exists():
                ip("-n", names[0], "link", "set", names[0], "down")
                down += (seconds := draw.uniform(1, 6))
                time.sleep(seconds)
                ip("-n", names[0], "link", "set", names[0], "up")
                done += 1
    finally:
        for process in processes:
            if not kills.has_ended(process):
                kills.kill(process)
    seconds = round(time.monotonic() - began, 1)
    return {"seed": seed, "cuts": done, "down": round(down, 1), "seconds": seconds, **kills.counts(url, folder, trials)}


def campaign(path: Path, kind: str, runs: int, cuts: int, trials: int) -> None:
    """Adds runs to the file until it has so many of this kind."""
    lines = path.read_text().splitlines() if path.exists() else []
    done = sum(json.loads(line)["storage"] == kind for line in lines)
    with hosts() as names:
        enter(names[0])
        for seed in range(done, runs):
            with postgres.server(FIRST) as url, tempfile.TemporaryDirectory() as folder:
                found = {"storage": kind, **run(url, kind, names, Path(folder), seed, cuts, trials)}
            with path.open("a") as file:
                file.write(json.dumps(found) + "\n")
            print(found, flush=True)


def show(path: Path) -> None:
    """Prints a table of the counts."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    names = ("trials", "cuts", "down", *kills.COUNTS, "again", "equal")
    print(f"| storage | runs | {' | '.join(names)} |\n|{'---|' * (2 + len(names))}")
    for kind in dict.fromkeys(row["storage"] for row in rows):
        own = [row for row in rows if row["storage"] == kind]
        print(f"| {kind} | {len(own)} | {' | '.join(f'{sum(row[n] for row in own):.4g}' for n in names)} |")


def main() -> None:
    parser = of_one_file(__doc__)
    parser.add_argument("--storage", choices=("postgresql", "grpc"), default="postgresql")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--cuts", type=int, default=CUTS, help="in one run")
    parser.add_argument("--trials", type=int, default=TRIALS)
    given = parser.parse_args()
    if given.show:
        return show(given.file)
    kills.be_quiet()
    return campaign(given.file, given.storage, given.runs, given.cuts, given.trials)


if __name__ == "__main__":
    main()
