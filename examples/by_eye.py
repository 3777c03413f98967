"""Tuning by eye: a scatter plot of many points is made readable, by nothing but "this one, or that one?".

    python examples/by_eye.py --comparisons 20

Each time by_eye.png shows a new picture beside the best one so far; you type 1 or 2, or = if they are as good. No
number says how good a picture is: the comparisons give each of them a utility, and these are learned.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from deepbore import Categorical, Real, SearchSpace, Study, Trial

SPACE = SearchSpace(
    {
        "size": Real(0.1, 100, log=True),
        "opacity": Real(0.01, 1, log=True),
        "colours": Categorical(["viridis", "jet", "Greys", "coolwarm"]),
    }
)
X, Y = np.random.default_rng(0).normal(size=(2, 4000)) * [[1.0], [0.4]] + np.repeat([[-1, 1], [0, 1]], 2000, axis=1)


def render(trials: list[Trial], file: Path) -> None:
    """Draws the plots of some trials side by side."""
    figure = Figure(figsize=(4 * len(trials), 3.2), layout="constrained")
    for number, (each, trial) in enumerate(zip(figure.subplots(1, len(trials)), trials, strict=True), 1):
        look = trial.params
        each.scatter(X, Y, c=X + Y, s=look["size"], alpha=look["opacity"], cmap=look["colours"], linewidths=0)
        each.set_title(str(number))
        each.set_axis_off()
    figure.savefig(file, dpi=100)


def ask_person(trials: list[Trial]) -> str:
    """1, 2 or =, as somebody who looks at the picture says."""
    render(trials, Path("by_eye.png"))
    answer = ""
    while answer not in ("1", "2", "="):
        answer = input("by_eye.png: which one is better, 1 or 2 (or =)? ").strip()
    return answer


def tune(judge: Callable[[list[Trial]], str], comparisons: int, seed: int = 0) -> Study:
    """Compares each new picture with the best one so far."""
    study = Study(SPACE, seed=seed, n_initial=6, preferences=True)
    pair = study.ask(2)
    for n in range(comparisons):
        answer = judge(pair)
        if answer in ("1", "="):
            study.prefer(pair[0], pair[1])
        if answer in ("2", "="):  # as good: both ways round
            study.prefer(pair[1], pair[0])
        if n + 1 < comparisons:
            pair = [*study.ask(), study.best_trial]
    return study


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=20)
    best = tune(ask_person, parser.parse_args().comparisons).best_trial
    print(f"best: trial {best.id} with {best.params}")
