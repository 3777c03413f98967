#!/usr/bin/env python
"""What a GPU brings to a suggestion (relabel, train, propose), and to scoring, against one thread of a CPU.

    python scripts/bench_devices.py docs/results/devices.jsonl            # what is not there yet; needs a GPU
    python scripts/bench_devices.py docs/results/devices.jsonl --show     # the tables only

A row has the median seconds on each device, by turns: of `Study.ask` for q points with a head that knows n random
results of a bowl in twenty dimensions, told at once; or, where a row has no q, of the values of so many points. On a
CPU a study computes on one thread (`deepbore.compute.devices`), and the largest pools are left out. What bounds a call
on the GPU: `kernels`, how many kernels and copies it launches, and `busy`, the share of the time in which it computes.
"""

import gc
import os
from collections.abc import Callable
from functools import partial

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from torch import Tensor
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

import deepbore as db
from bench_suggest import SPACES, study_with, suggest_and_tell
from deepbore import Study
from deepbore.acquisition import default_acquisition
from deepbore.candidates import Search
from harness.measuring import Row, in_turns, measure_or_show

SPACE = SPACES["twenty reals"]
ROUNDS = 3
MILLION = 1_000_000
MANY = 100_000  # points
DEVICES = {"CPU": "cpu", "GPU": "cuda"}
SLOW = 10 * MILLION  # points that are too many for the CPU


def wide(samples: int) -> db.LocalSearch:
    """A search among so many random points, and a tenth of them near the best."""
    return db.LocalSearch(samples=samples, neighbours=samples // 10, climbers=256)


def among(samples: int) -> str:
    return f"among {samples + samples // 10:,} points".replace(",", " ")


HEADS: dict[str, Callable[[], dict[str, object]]] = {  # settings of a study
    "the default": dict,
    "DeepEnsemble": lambda: {"classifier": db.DeepEnsemble()},
    "LaplaceGGN": lambda: {"classifier": db.LaplaceGGN()},
    "DeepEnsemble of 64 x (256, 256)": lambda: {"classifier": db.DeepEnsemble(members=64, hidden=(256, 256))},
    "SVGD": lambda: {"candidates": db.SVGDCandidates()},
}
BOTH, POOLS = ("the default", "DeepEnsemble"), (MANY, MILLION, SLOW)
ASKED = [
    *[(head, n, q) for head in BOTH for n in (1000, MILLION) for q in (1, 1000)],
    ("the default", 100, 1),
    ("LaplaceGGN", 1000, 1),
    ("DeepEnsemble of 64 x (256, 256)", 1000, 1),
    ("SVGD", 1000, 64),
]
WANTED: list[Row] = [
    *[{"study": study, "n": n, "q": q} for study, n, q in ASKED],
    *[{"study": study, "n": 1000, "q": 1, "pool": pool} for study in BOTH for pool in POOLS],
    *[{"study": study, "points": points} for study in BOTH for points in POOLS],
]


def greatest(search: Search, points: Tensor) -> float:
    """The best value of the points, which only a finished computation has."""
    return float(search.values(points).max())


def scoring(study: Study, device: str, points: int) -> Callable[[], float]:
    """Scores as many points by what the study's classifier learns of its rows."""
    classifier = study.fit(2).to(device)
    acquisition = default_acquisition(classifier).resolved(classifier)
    search = Search(acquisition, classifier, study.observations, torch.Generator().manual_seed(0))
    return partial(greatest, search, SPACE.points.sample(points, torch.Generator().manual_seed(2)).to(device))


def work_of(call: Callable[[], object], seconds: float) -> Row:
    """Kernels and copies that a call launches on the GPU, and the share of its time in which they run."""
    with profile(activities=[ProfilerActivity.CUDA]) as watched:
        call()
    events = [event for event in watched.key_averages() if event.device_type == DeviceType.CUDA]
    busy = 1e-6 * sum(event.self_device_time_total for event in events)
    return {"kernels": sum(event.count for event in events), "busy": float(f"{busy / seconds:.2g}")}


def measured(study: str, n: int = 1000, q: int = 0, pool: int = 0, points: int = 0) -> Row:
    """Seconds by device, and which GPU that was."""
    calls: dict[str, Callable[[], object]] = {}
    for name, device in DEVICES.items():
        if device == "cpu" and max(pool, points) >= SLOW:
            continue
        settings = HEADS[study]() | ({"candidates": wide(pool)} if pool else {})
        made = study_with(SPACE, n, device=device, **settings)
        calls[name] = partial(suggest_and_tell, made, q) if q else scoring(made, device, points)
    found = in_turns(calls, ROUNDS, warm_up=1)  # each call ends with numbers on the CPU, and so when the GPU is done
    bounds = work_of(calls["GPU"], found["GPU"])
    del calls, made
    gc.collect()  # a study is a cycle, and a large one would stay for long
    seconds = {name: float(f"{each:.3g}") for name, each in found.items()}
    return {"seconds": seconds, **bounds, "gpu": torch.cuda.get_device_name()}


def show(kept: list[Row]) -> None:
    for of, unit in (("q", "points asked for"), ("points", "points scored")):
        rows = [row for row in kept if of in row]
        print(f"\n| study | rows | {unit} | {' | '.join(DEVICES)} | kernels | busy |\n|---|---|---|{'---|' * 4}")
        for row in rows:
            study = row["study"] + (f", {among(row['pool'])}" if "pool" in row else "")
            numbers = " | ".join(f"{number:,}".replace(",", " ") for number in (row.get("n", 1000), row[of]))
            times = " | ".join(f"{row['seconds'][name]:.2g}" if name in row["seconds"] else "" for name in DEVICES)
            print(f"| {study} | {numbers} | {times} | {row['kernels']} | {row['busy']:.0%} |")
    print("\nseconds; the GPU is", ", ".join(sorted({row["gpu"] for row in kept})))


if __name__ == "__main__":
    measure_or_show(__doc__, WANTED, measured, show)
