#!/usr/bin/env python
"""What a suggestion of the default costs, before and after a change, with peers beside it.

    python scripts/bench_default.py docs/results/suggest_default.jsonl --base ../before     # what is not there yet
    python scripts/bench_default.py docs/results/suggest_default.jsonl --show               # the table only

A row has, for a space and a number of observations, the processor milliseconds of an ask and a tell, on one thread, the
median over means of two, as two models of the default take turns: of this tree, of the tree at --base, of Optuna's
Gaussian process and TPE, and of BoTorch's LogEI. Each has a process of its own, and they take turns, so what else runs
on the machine weighs on all alike. `"a whole run"` is a run of 60 trials, in seconds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROUNDS, WARM_UP = 7, 1  # each of two suggestions
PEERS = ("optuna-gp", "optuna-tpe", "botorch")
SLOW = {"optuna-gp": 200, "optuna-tpe": 1000, "botorch": 50}  # observations up to which a peer is measured
RUN, TRIALS = 0, 60  # the "number of observations" of a whole run
WANTED = [
    ("five reals", (RUN, 20, 50, 180, 1000, 100, 1_000_000)),
    ("twenty reals", (50, 180, 1000)),
    ("nine ordinals", (50, 180, 1000)),
    ("twelve mixed", (50, 180, 1000)),
    ("forty binaries", (50, 180, 1000)),
]


def space_of(name: str) -> Any:
    """One of the spaces."""
    from deepbore import Categorical, Integer, Ordinal, Real, SearchSpace

    mixed = {
        "optimizer": Categorical(["sgd", "adam", "rms"]),
        "lr": Real(1e-5, 1, log=True),
        "decay": Real(1e-6, 1, log=True),
        "layers": Integer(1, 8),
        "units": Integer(16, 512, log=True),
        "activation": Categorical(["relu", "tanh", "gelu"]),
        "dropout": Real(0, 0.8),
        "batch": Ordinal([16, 32, 64, 128]),
        "momentum": Real(0, 1, when={"optimizer": "sgd"}),
        "nesterov": Categorical([True, False], when={"optimizer": "sgd"}),
        "beta1": Real(0.5, 1, when={"optimizer": "adam"}),
        "beta2": Real(0.5, 1, when={"optimizer": "adam"}),
    }
    spaces = {
        "five reals": {f"x{i}": Real(0, 1) for i in range(5)},
        "twenty reals": {f"x{i}": Real(0, 1) for i in range(20)},
        "nine ordinals": {f"x{i}": Ordinal(list(range(6))) for i in range(9)},
        "twelve mixed": mixed,
        "forty binaries": {f"x{i}": Categorical(["no", "yes"]) for i in range(40)},
    }
    return SearchSpace(spaces[name])


def cost(space: Any, params: dict[str, object]) -> float:
    """A bowl in the unit cube."""
    upper = space.points.bounds[1].clamp(min=1e-9)
    return float((space.encode([params])[0] / upper - 0.4).square().sum())


def made(method: str, space: Any, n: int) -> Callable[[], None]:
    """An ask and a tell by a method that knows n random results of the bowl."""
    import torch

    if method == "deepbore":
        from deepbore import Study

        study = Study(space, seed=0)

        def once() -> None:
            for trial in study.ask():
                study.tell(trial, cost(space, trial.params))

        if n:
            points = space.points.sample(n, torch.Generator().manual_seed(1))
            rows = space.decode(points)
            columns = {name: [row.get(name) for row in rows] for name in space.names}
            study.add(columns, (points / space.points.bounds[1].clamp(min=1e-9) - 0.4).square().sum(1).numpy())
        return once

    from peers import methods

    peer = methods.make(method, space, 0)
    for params in space.decode(space.points.sample(n, torch.Generator().manual_seed(1))):
        know(peer, space, params)

    def ask() -> None:
        for params in peer.ask(1):
            peer.tell(params, cost(space, params))

    return ask


def know(peer: Any, space: Any, params: dict[str, object]) -> None:
    """Gives a peer a result that it did not ask for."""
    if not hasattr(peer, "study"):
        peer.tell(params, cost(space, params))
        peer.designed = peer.n_initial
        return
    import optuna

    from peers.optuna_samplers import suggest

    levels = {
        name: space.parameters[name].choices.index(value) if space.parameters[name].kind == "ordinal" else value
        for name, value in params.items()
    }
    fixed = optuna.trial.FixedTrial(levels)
    suggest(fixed, space)
    known = optuna.trial.create_trial(params=levels, distributions=fixed.distributions, value=cost(space, params))
    peer.study.add_trial(known)


def serve(method: str) -> None:
    """The process of a method: it makes what a line names, or asks and tells, and answers with processor seconds."""
    import time
    import warnings

    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    once: Callable[[], None] = bool
    for line in sys.stdin:
        wanted = json.loads(line)
        begun = time.process_time()
        for _ in range(wanted.get("times", 0)):
            once()
        if "space" in wanted:
            once = made(method, space_of(wanted["space"]), wanted["n"])
        print(f"took {time.process_time() - begun}", flush=True)


class Process:
    """A method in a process of its own, with the package of a tree and its script, which knows the names of then."""

    def __init__(self, method: str, tree: Path):
        scripts = tree / "scripts"
        environment = os.environ | {"PYTHONPATH": f"{tree}:{scripts}", "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, scripts / Path(__file__).name, "--serve", method],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )

    def __call__(self, **wanted: object) -> float:
        """Processor seconds."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(wanted), file=self.process.stdin, flush=True)
        while not (line := self.process.stdout.readline()).startswith("took "):
            if not line:
                raise RuntimeError(f"{self.process.args} has ended")
        return float(line.removeprefix("took "))


def measured(processes: dict[str, Process], space: str, n: int) -> dict[str, float]:
    """Milliseconds of each method; of whole runs seconds."""
    some = {
        name: each for name, each in processes.items() if n <= SLOW.get(name, n) and not (n == RUN and name in PEERS)
    }
    for each in some.values():
        each(space=space, n=n)
    if n == RUN:
        return {name: round(each(times=TRIALS), 2) for name, each in some.items()}
    times: dict[str, list[float]] = {name: [] for name in some}
    for _ in range(WARM_UP + ROUNDS):
        for name, each in some.items():
            times[name].append(each(times=2) / 2)
    return {name: round(1e3 * statistics.median(each[WARM_UP:]), 1) for name, each in times.items()}


def show(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    print("| space | n | before | now | before / now | now / Optuna's GP | Optuna's GP | TPE | BoTorch |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        ms = row["ms"]
        gp = f"{ms['now'] / ms['optuna-gp']:.2f}" if "optuna-gp" in ms else ""
        others = " | ".join(f"{ms[name]:.0f}" if name in ms else "" for name in PEERS)
        n, unit = ("a whole run, s", 1) if row["n"] == RUN else (row["n"], 0)
        own = " | ".join(f"{ms[name]:.{unit}f}" for name in ("before", "now"))
        print(f"| {row['space']} | {n} | {own} | {ms['before'] / ms['now']:.1f} | {gp} | {others} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--base", type=Path, help="the root of the tree before, such as one by git worktree")
    parser.add_argument("--show", action="store_true", help="the table only")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve)
        return
    if not given.show:
        known = [json.loads(line) for line in given.file.read_text().splitlines()] if given.file.exists() else []
        done = {(row["space"], row["n"]) for row in known}
        here = HERE.parent.resolve()
        wanted = [(space, n) for space, numbers in WANTED for n in numbers if (space, n) not in done]
        processes = {"before": Process("deepbore", given.base.resolve()), "now": Process("deepbore", here)}
        needed = [name for name in PEERS if any(RUN < n <= SLOW[name] for _, n in wanted)]
        processes |= {name: Process(name, here) for name in needed}
        for space, n in wanted:
            row = {"space": space, "n": n, "ms": measured(processes, space, n)}
            with given.file.open("a") as file:
                print(json.dumps(row), file=file)
    show(given.file)


if __name__ == "__main__":
    main()
