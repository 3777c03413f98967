"""Every deep head as it is shipped, beside random search, the default and the papers' recipes; a row of JSON a run.

    python scripts/heads.py --seeds 2                              # shifted functions, tables, tasks of ground
    python scripts/heads.py --part coco --methods default DeepPLS  # COCO's 24 functions in 5-D, instance 1
    python scripts/heads.py --show                                 # the tables of docs/results/heads.md
    python scripts/heads.py --picture docs/pictures/heads.png

The optimum of a shifted function is drawn for each seed in the inner 70 % of every range, so that no head wins by its
taste for the middle or for corners. A row has the best value after each tenth evaluation, the regret (None on `ground`,
whose optima nobody knows), and CPU seconds. A run that is in the file is not run again. Defaults were chosen on other
shifts (`Shifted.STREAM`) of some of the functions.
"""

import argparse
import math
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import rankdata, wilcoxon

import deepbore as db
from deepbore.problems import suites
from deepbore.problems.benchmarks import synthetic
from harness.measuring import Row, complete, grid, rows
from peers import papers
from peers.variants.heads import LATER

FILE = Path(__file__).parents[1] / "docs" / "results" / "deep_heads.jsonl"
TRIALS, FLOOR = 60, 1e-8  # regrets below the floor count as it, as in COCO
HEADS = ("MLPClassifier", "DeepEnsemble", "HyperDeepEnsemble", "MCDropout", "LaplaceGGN", "DeepPLS")
RECIPES = {  # of the papers, in continuous spaces and in others
    "paper:bore-mlp": ("bore_mlp_elu", "bore_mlp"),
    "paper:boggn": ("boggn_continuous", "boggn"),
    "paper:bore-pls": ("bore_pls", "bore_pls"),
}
ORIGIN = {"LaplaceGGN": "paper:boggn", "DeepPLS": "paper:bore-pls"}  # the others come from BORE's network
COLUMNS = (
    "method",
    "seeds",
    "functions, regret by random's",
    "tables, likewise",
    "all, won : lost against random",
    "ground, won : lost against the default",
    "functions, regret by its recipe's",
    "CPU ms a suggestion",
)
TRIED = {"vbll": "deepbore:vbll"}  # of docs/ablation.md
METHODS = ("random", "default", *HEADS, *RECIPES, *TRIED)


# --- problems --------------------------------------------------------------------------------------------------------


def ellipsoid(x: np.ndarray) -> np.ndarray:
    """The sum of 10^(3 i / (d - 1)) x_i^2."""
    d = x.shape[-1]
    return np.asarray((10 ** (3 * np.arange(d) / (d - 1)) * x**2).sum(-1))


def styblinski_tang(x: np.ndarray) -> np.ndarray:
    """Half the sum of x^4 - 16 x^2 + 5 x, moved to have its minimum at 0."""
    return np.asarray((x**4 - 16 * x**2 + 5 * x + 78.33233140754285).sum(-1) / 2)


HARTMANN3 = [0.11458888, 0.55564889, 0.85254698]
HARTMANN6 = [0.20168951, 0.15001069, 0.47687397, 0.27533243, 0.31165162, 0.65730053]
FUNCTIONS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float, float, list[float], float]] = {
    # formula, lower and upper ends, a minimiser, the minimum
    "branin-2": (synthetic.branin, -5.0, 10.0, [math.pi, 2.275], synthetic.Branin().optimum or 0.0),
    "hartmann-3": (synthetic.hartmann, 0.0, 1.0, HARTMANN3, synthetic.Hartmann(3).optimum or 0.0),
    "rosenbrock-4": (synthetic.rosenbrock, -2.0, 2.0, [1.0] * 4, 0.0),
    "ackley-5": (synthetic.ackley, -15.0, 15.0, [0.0] * 5, 0.0),
    "styblinski-5": (styblinski_tang, -5.0, 5.0, [-2.903534] * 5, 0.0),
    "hartmann-6": (synthetic.hartmann, 0.0, 1.0, HARTMANN6, synthetic.Hartmann(6).optimum or 0.0),
    "levy-8": (synthetic.levy, -10.0, 10.0, [1.0] * 8, 0.0),
    "ellipsoid-10": (ellipsoid, -5.0, 5.0, [0.0] * 10, 0.0),
}


class Shifted:
    """A synthetic function whose minimiser is at a drawn point of its box.

    Args:
        name: of `FUNCTIONS`.
        seed: of the shift.
    """

    STREAM = 2026  # that of development was another one

    def __init__(self, name: str, seed: int):
        self.formula, low, high, minimiser, self.optimum = FUNCTIONS[name]
        drawn = np.random.default_rng([self.STREAM, seed, *name.encode()]).uniform(0.15, 0.85, len(minimiser))
        self.shift = low + (high - low) * drawn - np.array(minimiser)
        self.space = db.SearchSpace({f"x{i}": db.Real(low, high) for i in range(len(minimiser))})

    def __call__(self, params: dict[str, Any]) -> float:
        """The value of a configuration."""
        return float(self.formula(np.array(list(params.values())) - self.shift))

    def regret(self, value: float) -> float:
        """How much a value is above the minimum."""
        return value - self.optimum


TABLES = ("hpolib/slice_localization", "nasbench201/cifar10", "hpolib/protein_structure")
GROUND = tuple(suites.suite("ground")[::2])
COCO = tuple(suites.suite("bbob", dimensions=[5], instances=[1]))
PARTS = {
    "main": (*(f"shifted/{name}" for name in FUNCTIONS), *TABLES, *GROUND),
    "coco": COCO,
}


def problem(name: str, seed: int) -> Any:
    """A problem by its name."""
    return Shifted(name.partition("/")[2], seed) if name.startswith("shifted/") else suites.problem(name, seed)


# --- runs ------------------------------------------------------------------------------------------------------------


def settings(method: str, space: db.SearchSpace) -> dict[str, Any]:
    """The settings of a study."""
    if method in RECIPES:
        file = RECIPES[method][0 if space.points.is_continuous else 1]
        return papers.settings(papers.CONFIGS / f"{file}.yaml")
    if method in TRIED:
        return LATER[TRIED[method]]()
    if method in HEADS:
        return {"classifier": getattr(db, method)()}
    return {"strategy": "random"} if method == "random" else {}


def run(problem_name: str, method: str, seed: int, trials: int) -> Row:
    """What a row says of one run."""
    solved = problem(problem_name, seed)
    study = db.Study(solved.space, seed=seed, **settings(method, solved.space))
    best, found, cpu = math.inf, {}, 0.0
    for number in range(1, trials + 1):
        start = time.process_time()
        (trial,) = study.ask()
        cpu += time.process_time() - start
        outcome = solved(trial.params)
        study.tell(trial, outcome)
        best = min(best, study.trials[-1].value or math.inf)
        if not number % 10:
            found[number] = best
    knows = getattr(solved, "optimum", None) is not None
    regret = float(solved.regret(best)) if knows else None
    return {"best": found, "regret": regret, "cpu": round(cpu, 2), "version": db.__version__}


# --- what it says ----------------------------------------------------------------------------------------------------


def by_problem(found: Iterable[Row], part: str) -> dict[str, dict[str, dict[int, Row]]]:
    """Rows of a part: of each problem, by method and seed."""
    sorted_: dict[str, dict[str, dict[int, Row]]] = defaultdict(lambda: defaultdict(dict))
    for row in found:
        if row["problem"] in PARTS[part]:
            sorted_[row["problem"]][row["method"]][row["seed"]] = row
    return sorted_


def log_ratio(of: dict[int, Row], to: dict[int, Row]) -> float | None:
    """The mean log of the ratio of two methods' regrets on a problem, over the seeds that both have."""
    both = [seed for seed in of if seed in to and of[seed]["regret"] is not None]
    logs = [math.log(max(FLOOR, of[s]["regret"]) / max(FLOOR, to[s]["regret"])) for s in both]
    return float(np.mean(logs)) if logs else None


def ratio(found: dict[str, dict[str, dict[int, Row]]], names: Iterable[str], of: str, to: str) -> str:
    """The geometric mean of the ratio over problems, and over how many."""
    logs = [log for name in names if (log := log_ratio(found[name][of], found[name][to])) is not None]
    return f"{math.exp(np.mean(logs)):.2g} ({len(logs)})" if logs else ""


def ahead(found: dict[str, dict[str, dict[int, Row]]], names: Iterable[str], of: str, to: str) -> str:
    """On how many problems a method is ahead of and behind another one, and the signed-rank test of their ranks."""
    differences = []
    for name in names:
        seeds = [seed for seed in found[name][of] if seed in found[name][to]]
        ranks = [ranked(found[name], seed) for seed in seeds]
        differences += [float(np.mean([each[of] - each[to] for each in ranks]))] if ranks else []
    moved = [each for each in differences if each]
    if not moved:
        return ""
    wins = sum(each < 0 for each in moved)
    return f"{wins}:{len(moved) - wins} (p {wilcoxon(moved).pvalue:.2g})"


def ranked(methods: dict[str, dict[int, Row]], seed: int) -> dict[str, float]:
    """Ranks on a problem and seed, of all methods that have a run, by their best value."""
    present = [method for method in METHODS if seed in methods[method]]
    best = [methods[method][seed]["best"][str(TRIALS)] for method in present]
    return dict(zip(present, map(float, rankdata(best)), strict=True))


def show(path: Path) -> None:
    """The tables of what is in the file."""
    found = by_problem(rows(path), "main")
    functions = [name for name in PARTS["main"] if name.startswith("shifted/")]
    print("| " + " | ".join(COLUMNS) + " |")
    print("|---" * len(COLUMNS) + "|")
    for method in METHODS:
        seeds = {len(found[name][method]) for name in PARTS["main"]} - {0}
        cpu = [row["cpu"] / TRIALS * 1000 for name in found for row in found[name][method].values()]
        if not cpu:
            continue
        recipe = ORIGIN.get(method, "paper:bore-mlp") if method in HEADS else None
        cells = [
            method,
            "-".join(map(str, sorted({min(seeds), max(seeds)}))),
            ratio(found, functions, method, "random"),
            ratio(found, TABLES, method, "random"),
            ahead(found, PARTS["main"], method, "random") if method != "random" else "",
            ahead(found, GROUND, method, "default") if method != "default" else "",
            ratio(found, functions, method, recipe) if recipe else "",
            f"{np.median(cpu):.0f}",
        ]
        print("| " + " | ".join(cells) + " |")
    coco = by_problem(rows(path), "coco")
    for method in METHODS:
        if method != "default" and (text := ratio(coco, COCO, method, "default")):
            print(f"COCO 5-D, regret by the default's: {method} {text}; {ahead(coco, COCO, method, 'default')}")


def picture(path: Path, to: Path) -> None:
    """Regret by that of random search, a dot for each function and a line for the geometric mean of each method."""
    import matplotlib.pyplot as plt

    found = by_problem(rows(path), "main")
    functions = [name for name in PARTS["main"] if name.startswith("shifted/")]
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    shown = [method for method in METHODS if method != "random" and any(found[name][method] for name in functions)]
    for height, method in enumerate(reversed(shown)):
        logs = [log for name in functions if (log := log_ratio(found[name][method], found[name]["random"])) is not None]
        axes.plot(np.exp(logs), [height] * len(logs), "o", color="tab:blue", alpha=0.5)
        axes.plot([math.exp(np.mean(logs))] * 2, [height - 0.3, height + 0.3], color="tab:red", lw=2)
    axes.axvline(0.1, color="grey", lw=0.8, ls="--")
    axes.set(xscale="log", xlabel="regret after 60 evaluations / regret of random search", yticks=range(len(shown)))
    axes.set_yticklabels(list(reversed(shown)))
    figure.savefig(to, dpi=130)


def main() -> None:
    """Runs what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--part", choices=PARTS, default="main")
    parser.add_argument("--problems", nargs="+")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS[: -len(TRIED)])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    if given.show or given.picture:
        show(given.file)
        if given.picture:
            picture(given.file, given.picture)
        return
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    wanted = grid(seed=range(given.seeds), problem=given.problems or PARTS[given.part], method=given.methods)
    complete(given.file, wanted, lambda problem, method, seed: run(problem, method, seed, TRIALS))


if __name__ == "__main__":
    main()
