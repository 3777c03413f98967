#!/usr/bin/env python
"""What GPUs bring to large heads on many rows: a suggestion on one, and shared by several.

    python scripts/bench_heads_gpu.py docs/results/heads_gpu.jsonl --ranks 1 2 4   # on a machine with four GPUs
    python scripts/bench_heads_gpu.py FILE --ranks 1 2 --small                     # in small, on CPUs with gloo
    python scripts/bench_heads_gpu.py FILE --show                                  # the table only

A study in twenty dimensions knows 100 000 results of a bowl, of which an iteration sees all. A row has the median
seconds of a suggestion (relabel, train, propose) under a Trainer with so many devices, for each of these:

    five networks    `DeepEnsemble` of 5 x (1024, 1024, 1024), whose members are shared among the ranks
    one network      `MLPClassifier` of (1024, 1024, 1024), whose gradients are shared by DDP
    a large pool     the five networks, with a search among 1e7 points that are shared

The table would show how far each is from the ideal: with k GPUs, ceil(5 / k) / 5 of the time of one for the members,
1 / k for the gradients and the pool. The difference is what is exchanged: all weights with Adam's state once in an
iteration for the members, 2.2e6 gradients in each step for one network, the best points for the pool.
"""

import argparse
import logging
import os
import statistics
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from lightning.pytorch import Callback, LightningModule, Trainer

import deepbore as db
from bench_suggest import SPACES, study_with
from harness.files import append
from harness.measuring import Row, grid, rows

SPACE = SPACES["twenty reals"]
FULL = {"hidden": (1024,) * 3, "rows": 100_000, "batch": 1024, "steps": 100, "pool": 10_000_000, "rounds": 5}
SMALL = {"hidden": (600, 600), "rows": 500, "batch": 64, "steps": 10, "pool": 2000, "rounds": 2}  # LARGE all the same
QUIET = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)


def network(size: dict[str, Any]) -> dict[str, Any]:
    """The settings of a head."""
    return {"hidden": size["hidden"], "training": db.Training(steps=size["steps"], batch_size=size["batch"])}


def five(size: dict[str, Any]) -> dict[str, Any]:
    """The settings of a study with five networks."""
    return {"classifier": db.DeepEnsemble(**network(size))}


def one(size: dict[str, Any]) -> dict[str, Any]:
    """The settings of a study with one network."""
    return {"classifier": db.MLPClassifier(**network(size))}


def with_pool(size: dict[str, Any]) -> dict[str, Any]:
    """The settings of a study with five networks and a large pool."""
    return {**five(size), "candidates": db.LocalSearch(samples=size["pool"], neighbours=1000, focus=0.0)}


PARTS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "five networks": five,
    "one network": one,
    "a large pool": with_pool,
}


class Watch(Callback):
    """The seconds of each suggestion."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Reads what the run has logged."""
        if "seconds_per_suggestion" in trainer.callback_metrics:
            self.seconds.append(float(trainer.callback_metrics["seconds_per_suggestion"]))


def bowl(params: dict[str, float]) -> float:
    """A value of the function that the study knows."""
    return sum((x - 0.4) ** 2 for x in params.values())


def measure(part: str, ranks: int, small: bool) -> Row:
    """The median seconds of a suggestion, on every one of the ranks that `torch.distributed.run` has started."""
    size = SMALL if small else FULL
    torch.set_num_threads(1)
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    strategy = "ddp" if ranks > 1 else "auto"
    device = "cpu" if small else "gpu"
    watch = Watch()
    trainer = Trainer(accelerator=device, devices=ranks, strategy=strategy, max_epochs=-1, callbacks=[watch], **QUIET)
    study = study_with(SPACE, size["rows"], **PARTS[part](size))
    study.optimize(bowl, 1 + size["rounds"], trainer=trainer)
    name = "CPU" if small else torch.cuda.get_device_name()
    return {"seconds": float(f"{statistics.median(watch.seconds[1:] or watch.seconds):.3g}"), "device": name}


def on_ranks(file: Path, part: str, ranks: int, small: bool) -> None:
    """Measures one part in processes of its own, of which the first appends the row."""
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    size = ["--small"] if small else []
    subprocess.run([*start, __file__, str(file), "--part", part, "--ranks", str(ranks), *size], check=True)


def show(kept: list[Row]) -> None:
    """Seconds by number of ranks, and by those of one."""
    print("| | device | ranks | seconds | by one rank's |\n|---|---|---|---|---|")
    single = {(row["part"], row["small"]): row["seconds"] for row in kept if row["ranks"] == 1}
    for row in kept:
        alone = single.get((row["part"], row["small"]))
        ratio = f"{row['seconds'] / alone:.2f}" if alone else ""
        name = f"{row['part']}, in small" if row["small"] else row["part"]
        print(f"| {name} | {row['device']} | {row['ranks']} | {row['seconds']:.3g} | {ratio} |")


def main() -> None:
    """Measures what is missing, or, as one of the ranks, one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1])
    parser.add_argument("--small", action="store_true", help="on CPUs, to see that it works")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)  # within a rank
    parser.add_argument("--show", action="store_true", help="what is in the file only")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.part is not None:
        (ranks,) = given.ranks
        row = {"part": given.part, "ranks": ranks, "small": given.small, **measure(given.part, ranks, given.small)}
        if os.environ.get("RANK", "0") == "0":
            append(given.file, row)
        return
    known = [{name: row[name] for name in ("part", "ranks", "small")} for row in rows(given.file)]
    for row in [] if given.show else grid(part=PARTS, ranks=given.ranks, small=[given.small]):
        if row not in known:
            on_ranks(given.file, **row)
    show(rows(given.file))


if __name__ == "__main__":
    main()
