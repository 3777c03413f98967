#!/usr/bin/env python
"""What a GPU brings to a suggestion (relabel, train, propose), and to scoring, against one thread of a CPU.

    python scripts/bench_devices.py docs/results/devices.jsonl            # what is not there yet; needs a GPU
    python scripts/bench_devices.py docs/results/devices.jsonl --show     # the tables only

A row has the median seconds on each device, by turns: of `Study.ask` for q points with a head that knows n random
results of a bowl in twenty dimensions, told at once; or, where a row has no q, of the values of so many points. On a
CPU a study computes on one thread (`deepbore.compute.devices`).
"""

import gc
import os
from collections.abc import Callable
from functools import partial

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from torch import Tensor

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
WIDE = db.LocalSearch(samples=MANY, neighbours=MANY // 10, climbers=256)
STUDIES: dict[str, Callable[[], dict[str, object]]] = {  # settings of a study
    "the default": dict,
    "DeepEnsemble": lambda: {"classifier": db.DeepEnsemble()},
    "LaplaceGGN": lambda: {"classifier": db.LaplaceGGN()},
    "DeepEnsemble of 64 x (256, 256)": lambda: {"classifier": db.DeepEnsemble(members=64, hidden=(256, 256))},
    "the default, among 110 000 points": lambda: {"candidates": WIDE},
    "DeepEnsemble, among 110 000 points": lambda: {"classifier": db.DeepEnsemble(), "candidates": WIDE},
    "SVGD": lambda: {"candidates": db.SVGDCandidates()},
}
ASKED = [
    *[("the default", n, q) for n, q in [(100, 1), (1000, 1), (MILLION, 1), (1000, 64), (1000, 512)]],
    *[(name, n, 1) for name in ("DeepEnsemble", "LaplaceGGN") for n in (1000, MILLION)],
    ("DeepEnsemble of 64 x (256, 256)", 1000, 1),
    ("the default, among 110 000 points", 1000, 1),
    ("DeepEnsemble, among 110 000 points", 1000, 1),
    ("SVGD", 1000, 64),
]
SCORED = ["the default", "DeepEnsemble", "LaplaceGGN"]
WANTED: list[Row] = [
    *[{"study": study, "n": n, "q": q} for study, n, q in ASKED],
    *[{"study": study, "points": MANY} for study in SCORED],
]


def greatest(search: Search, points: Tensor) -> float:
    """The best value of the points, which only a finished computation has."""
    return float(search.values(points).max())


def scoring(study: Study, device: str, points: int) -> Callable[[], float]:
    """Scores as many points by what the study's classifier learns of its rows."""
    classifier = study.fit(2).to(device)
    search = Search(default_acquisition(classifier), classifier, study.observations, torch.Generator().manual_seed(0))
    return partial(greatest, search, SPACE.sample(points, torch.Generator().manual_seed(2)).to(device))


def measured(study: str, n: int = 1000, q: int = 0, points: int = 0) -> Row:
    """Seconds by device, and which GPU that was."""
    calls: dict[str, Callable[[], object]] = {}
    for name, device in DEVICES.items():
        made = study_with(SPACE, n, device=device, **STUDIES[study]())
        calls[name] = partial(suggest_and_tell, made, q) if q else scoring(made, device, points)
    found = in_turns(calls, ROUNDS, warm_up=1)  # each call ends with numbers on the CPU, and so when the GPU is done
    del calls, made
    gc.collect()  # a study is a cycle, and a large one would stay for long
    seconds = {name: float(f"{each:.3g}") for name, each in found.items()}
    return {"seconds": seconds, "gpu": torch.cuda.get_device_name()}


def show(kept: list[Row]) -> None:
    for of, unit in (("q", "points asked for"), ("points", "points scored")):
        rows = [row for row in kept if of in row]
        print(f"\n| study | rows | {unit} | {' | '.join(DEVICES)} |\n|---|---|---|{'---|' * len(DEVICES)}")
        for row in rows:
            numbers = " | ".join(f"{number:,}".replace(",", " ") for number in (row.get("n", 1000), row[of]))
            times = " | ".join(f"{row['seconds'][name]:.2g}" for name in DEVICES)
            print(f"| {row['study']} | {numbers} | {times} |")
    print("\nseconds; the GPU is", ", ".join(sorted({row["gpu"] for row in kept})))


if __name__ == "__main__":
    measure_or_show(__doc__, WANTED, measured, show)
