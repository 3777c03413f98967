#!/usr/bin/env python
"""What learning from a coreset costs: under noise, where more data must not do harm, and in a search without noise.

    python scripts/bench_coreset.py docs/results/coreset.json          # resumable: what the file holds is not run again
    python scripts/bench_coreset.py docs/results/coreset.json --show   # the tables only

Rules compared: "shipped", `deepbore.labels.coreset`; "repeats", that of version 0.1, which drew rows with replacement
beside the best and the newest; "distinct", the same without repeats; "uniform", distinct rows drawn at random alone.

noise    a bowl in 2-D under noise of a standard deviation of 0.1, learned by `KernelPLS(rows=60)` from n rows, before
         the limit and beyond it: regret of the maximum of the posterior mean (times 1000), and log lambda.
search   functions without noise, shifted, 150 evaluations, `KernelPLS(rows=40)`: log10 of the regret.
"""

import argparse
import json
import os
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from torch import Tensor

import deepbore
from deepbore.candidates import GreedyBatch, LocalSearch
from deepbore.labels import LabelledBatch, ValueGradedLabels
from deepbore.labels.coreset import distinct_numbers
from deepbore.problems import Ackley, Levy, Rosenbrock
from deepbore.testing import fit, toy_data

Choice = Callable[[Tensor, int, torch.Generator], Tensor]
SHIPPED = LabelledBatch.coreset

NOISE, NOISE_ROWS, NOISE_SEEDS, SIZES = 0.1, 60, range(16), (57, 90, 300)
SEARCH_ROWS, SEARCH_SEEDS, TRIALS, AT = 40, range(5), 150, (50, 100, 150)
PLANE = deepbore.SearchSpace({"x": deepbore.Real(0, 1), "y": deepbore.Real(0, 1)})
CENTRE = np.array([0.3, 0.6])
FUNCTIONS = {"levy10": Levy(10), "rosenbrock10": Rosenbrock(10), "ackley20": Ackley(20)}

# --- rules -----------------------------------------------------------------------------------------------------------


def with_repeats(z: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """A quarter the newest, a quarter the best, the rest drawn with replacement from all: rows may come thrice."""
    newest, best = torch.arange(len(z) - size // 4, len(z)), z.sum(-1).topk(size // 4).indices
    return torch.cat([newest, best, torch.randint(len(z), (size - 2 * (size // 4),), generator=generator)])


def without_repeats(z: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """The same, filled up by rows that are not in it yet; all count in full."""
    chosen = torch.cat([torch.arange(len(z) - size // 4, len(z)), z.sum(-1).topk(size // 4).indices]).unique()
    order = torch.randperm(len(z), generator=generator)
    return torch.cat([chosen, order[~torch.isin(order, chosen)][: size - len(chosen)]])


def uniform(z: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """Distinct rows drawn at random."""
    return distinct_numbers(len(z), size, generator)


RULES: dict[str, Choice | None] = {
    "shipped": None,
    "repeats": with_repeats,
    "distinct": without_repeats,
    "uniform": uniform,
}


def install(rule: str) -> None:
    """Lets all classifiers of this process choose their rows so."""
    choice = RULES[rule]

    def coreset(self: LabelledBatch, size: int, generator: torch.Generator) -> LabelledBatch:
        rows = (self.weight > 0).nonzero().squeeze(-1)
        assert choice is not None
        return self.take(rows if len(rows) <= size else rows[choice(self.z[rows], size, generator)])

    LabelledBatch.coreset = SHIPPED if choice is None else coreset


# --- measurements ----------------------------------------------------------------------------------------------------


@torch.no_grad()
def noise(rule: str, n: int, seed: int) -> dict[str, float]:
    """Regret of the posterior mean's maximum on a grid, and log lambda."""
    install(rule)
    rng = np.random.default_rng(seed)
    x = rng.random((n, 2))
    data = toy_data(PLANE, 0, ValueGradedLabels())
    values = ((x - CENTRE) ** 2).sum(1) + NOISE * rng.normal(size=n)
    data.observations.add({"x": x[:, 0], "y": x[:, 1]}, values)
    classifier = fit(deepbore.KernelPLS(rows=NOISE_ROWS), data, epochs=4)
    line = torch.linspace(0, 1, 41, dtype=torch.float64)
    grid = torch.cartesian_prod(line, line)
    found = grid[classifier.posterior(grid).mean.argmax()].numpy()
    log_lambda = float(classifier.state_dict()["theta"][-1])
    return {"regret": float(((found - CENTRE) ** 2).sum()), "log_lambda": log_lambda}


def search(rule: str, name: str, seed: int) -> dict[str, Any]:
    """log10 of the regret after some numbers of evaluations."""
    install(rule)
    problem = FUNCTIONS[name]
    width = np.array([p.high - p.low for p in problem.space.parameters.values()])
    shift = np.random.default_rng(seed).uniform(-0.2, 0.2, len(width)) * width

    def shifted(params: dict[str, float]) -> float:
        return float(problem.formula(np.array(list(params.values())) - shift))

    few = GreedyBatch(LocalSearch(samples=400, neighbours=200, climbers=4, nearby=False))
    head = deepbore.KernelPLS(rows=SEARCH_ROWS)
    result = deepbore.minimize(shifted, problem.space, TRIALS, classifier=head, candidates=few, seed=seed)
    regret = np.minimum.accumulate(result.values) - problem.optimum
    return {"log10_regret": [round(float(np.log10(regret[at - 1])), 4) for at in AT]}


def cases() -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Names and measurements, seed by seed, so that a part of them compares all rules."""
    for seed in NOISE_SEEDS:
        for rule in RULES:
            for n in SIZES:
                yield f"noise {rule} {n} {seed}", partial(noise, rule, n, seed)
    for seed in SEARCH_SEEDS:
        for name in FUNCTIONS:
            for rule in ("shipped", "repeats"):
                yield f"search {rule} {name} {seed}", partial(search, rule, name, seed)


# --- tables ----------------------------------------------------------------------------------------------------------


def show(results: dict[str, dict[str, Any]]) -> None:
    """Prints means and standard errors."""
    print("| rule | " + " | ".join(f"n = {n}: 1000 regret, log lambda" for n in SIZES) + " |")
    print("|---|" + "---|" * len(SIZES))
    for rule in RULES:
        cells = []
        for n in SIZES:
            runs = [results[key] for s in NOISE_SEEDS if (key := f"noise {rule} {n} {s}") in results]
            lambdas = np.mean([run["log_lambda"] for run in runs]) if runs else np.nan
            cells.append(f"{mean_and_error([1000 * run['regret'] for run in runs])}, {lambdas:.1f}")
        print(f"| {rule} | " + " | ".join(cells) + " |")
    print(f"\n| search, rows = {SEARCH_ROWS} | " + " | ".join(f"after {at}" for at in AT) + " |")
    print("|---|" + "---|" * len(AT))
    for name in FUNCTIONS:
        curves: dict[str, list[Any]] = {"shipped": [], "repeats": []}
        for s in SEARCH_SEEDS:
            pair = [results.get(f"search {rule} {name} {s}") for rule in curves]
            for rule, run in zip(curves, pair, strict=True):
                if run is not None and all(pair):
                    curves[rule].append(run["log10_regret"])
        difference = np.array(curves["shipped"]) - np.array(curves["repeats"])
        for label, found in {**curves, "shipped - repeats": list(difference)}.items():
            columns = [mean_and_error([curve[i] for curve in found]) for i in range(len(AT))]
            print(f"| {name}, {label} | " + " | ".join(columns) + " |")


def mean_and_error(numbers: list[float]) -> str:
    """Mean and its standard error over the seeds."""
    if not numbers:
        return "-"
    return f"{np.mean(numbers):.2f} ± {np.std(numbers) / max(len(numbers) - 1, 1) ** 0.5:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--only", default="", help="measurements whose name begins so")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")  # Lightning's advice
    results = json.loads(args.file.read_text()) if args.file.exists() else {}
    for name, measure in cases():
        if args.show or name in results or not name.startswith(args.only):
            continue
        results[name] = measure()
        args.file.parent.mkdir(parents=True, exist_ok=True)
        lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in results.items())
        args.file.write_text("{\n" + lines + "\n}\n")
    show(results)


if __name__ == "__main__":
    main()
