#!/usr/bin/env python
"""Which model knows the good molecules where thousands are tested: Enamine 10k, of which n drawn at random are learned.

    python scripts/library_forecasts.py docs/results/library_forecasts.jsonl           # resumable
    python scripts/library_forecasts.py docs/results/library_forecasts.jsonl --show    # the table only

The data are those of `scripts/library.py`, as counts of atom pairs. Each model learns from the same n molecules and
scores all others. A row:

    model, n, seed
    order    rank correlation of its mean score with what was measured
    found    of the best 5 % of the others, the share that is among the 5 % that it scores best
    cpu      processor seconds to learn and to score, on one core
"""

import time
from collections.abc import Callable

import numpy as np
import torch
from scipy.stats import spearmanr

import deepbore as db
from harness.measuring import Row, grid, measure_or_show
from library import DATA, molecules_in

SIZES, SEEDS = (500, 1000, 2500, 5000), range(3)
TOP = 0.05
NETWORKS, EPOCHS = ("DeepEnsemble", "DeepPLS"), 60
MODELS: dict[str, Callable[[], db.Classifier]] = {
    "LibraryPLS": db.LibraryPLS,
    "DeepEnsemble": db.DeepEnsemble,
    "DeepPLS": db.DeepPLS,
    "RandomForest": db.RandomForest,
}


def run(model: str, n: int, seed: int) -> Row:
    """What a row says."""
    molecules, start = molecules_in(DATA), time.process_time()
    drawn = np.random.default_rng(seed).permutation(len(molecules))
    known, others = drawn[:n], drawn[n:]
    study = db.Study({"molecule": db.Library(molecules.counts)}, seed=seed, classifier=MODELS[model]())
    study.add({"molecule": known.tolist()}, molecules.scores[known])
    classifier = study.fit(EPOCHS if model in NETWORKS else 1)
    with torch.no_grad():
        scores = classifier.posterior(study.space.encode([{"molecule": int(each)} for each in others])).mean
    merit, count = scores.double().numpy(), round(TOP * len(others))
    measured = molecules.scores[others]
    best = measured <= np.sort(measured)[count - 1]
    found = best[np.argsort(-merit, kind="stable")[:count]].sum() / best.sum()
    return {
        "order": round(float(spearmanr(merit, -measured)[0]), 3),
        "found": round(float(found), 3),
        "cpu": round(time.process_time() - start, 1),
    }


def show(kept: list[Row]) -> None:
    """The mean over seeds of the share that is found (and of the rank correlation), by model and n."""
    print("| model | " + " | ".join(f"{n} known" for n in SIZES) + " | CPU s at the last |")
    print("|---" * (len(SIZES) + 2) + "|")
    for model in MODELS:
        of = {n: [row for row in kept if (row["model"], row["n"]) == (model, n)] for n in SIZES}
        cells = [_means(found) for found in of.values()]
        cpu = np.median([row["cpu"] for row in of[SIZES[-1]]]) if of[SIZES[-1]] else np.nan
        print(f"| {model} | " + " | ".join(cells) + f" | {cpu:.0f} |")


def _means(found: list[Row]) -> str:
    if not found:
        return ""
    share, order = (np.mean([row[name] for row in found]) for name in ("found", "order"))
    return f"{share:.2f} ({order:.2f})"


if __name__ == "__main__":
    measure_or_show(__doc__, grid(seed=SEEDS, n=SIZES, model=MODELS), run, show)
