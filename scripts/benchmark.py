#!/usr/bin/env python
"""Runs methods on problems over several seeds and writes their regret curves.

    python scripts/benchmark.py --problems hpolib/protein_structure branin --methods deepbore random --seeds 5 \
        --out results.json

Every run is added to the file as soon as it is done, and a run that stands in it already is not done again, so an
interrupted benchmark goes on where it stopped. One process per core, one thread each. Rows:
{"problem", "method", "seed", "regret_after": {"10": ..., ...}, "ms_per_trial"}; regret is the simple regret,
best value so far minus the optimum, and 0 from the evaluation that finds it, where the run ends.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

import deepbore as db
from deepbore import Study, problems
from deepbore.candidates import Candidates
from deepbore.classifiers import Classifier
from deepbore.data.observations import Trial

PROBLEMS: dict[str, Callable[[], problems.Problem]] = {
    **{
        f"hpolib/{name}": lambda name=name: problems.HPOLib(name)
        for name in ("naval_propulsion", "parkinsons_telemonitoring", "protein_structure", "slice_localization")
    },
    **{
        f"nasbench201/{name}": lambda name=name: problems.NASBench201(name)
        for name in ("cifar10", "cifar100", "imagenet")
    },
    "branin": problems.Branin,
    "camel": problems.SixHumpCamel,
    "hartmann3": lambda: problems.Hartmann(3),
    "hartmann6": lambda: problems.Hartmann(6),
    "ackley10": lambda: problems.Ackley(10),
    "rosenbrock5": lambda: problems.Rosenbrock(5),
    "levy10": lambda: problems.Levy(10),
    "michalewicz5": lambda: problems.Michalewicz(5),
}
SUITES = {
    "tables": [name for name in PROBLEMS if "/" in name],
    "continuous": [name for name in PROBLEMS if "/" not in name],
    "all": list(PROBLEMS),
}
Settings = dict[str, object]


def bore(classifier: Classifier, searched_by: Candidates | None = None) -> Settings:
    """A head with BORE's labels and acquisition: one threshold at gamma 1/3, the class probability."""
    settings = {"classifier": classifier, "labels": db.ThresholdLabels(1 / 3), "acquisition": db.ClassProbability()}
    return settings | ({"candidates": searched_by} if searched_by else {})


METHODS: dict[str, Callable[[], Settings]] = {
    "deepbore": dict,  # the defaults: KernelPLS
    "random": dict,  # see `trials`
    # the default classifier with other batches
    "top": lambda: {"candidates": db.LocalSearch()},
    "Thompson": lambda: {"candidates": db.ThompsonBatch()},
    "SVGD": lambda: {"candidates": db.SVGDCandidates()},
    "BoTorchBatch": lambda: {"candidates": db.BoTorchBatch()},
    # every other head with its defaults
    "DeepPLS": lambda: {"classifier": db.DeepPLS()},
    "DeepEnsemble": lambda: {"classifier": db.DeepEnsemble()},
    "HyperDeepEnsemble": lambda: {"classifier": db.HyperDeepEnsemble()},
    "MCDropout": lambda: {"classifier": db.MCDropout()},
    "LaplaceGGN": lambda: {"classifier": db.LaplaceGGN()},
    "FourierLogistic": lambda: {"classifier": db.FourierLogistic()},
    "GPClassifier": lambda: {"classifier": db.GPClassifier()},
    "RandomForest": lambda: {"classifier": db.RandomForest()},
    "XGBoost": lambda: {"classifier": db.XGBoost()},
    "Calibrated": lambda: {"classifier": db.Calibrated(db.DeepEnsemble())},
    # the papers' methods
    "BORE-MLP": lambda: bore(db.MLPClassifier(training=db.Training(learning_rate=1e-3)), db.LocalSearch(neighbours=0)),
    "BORE-RF": lambda: bore(db.RandomForest(), db.RandomSearch(500)),
    "BORE-XGB": lambda: bore(db.XGBoost(), db.RandomSearch(500)),
    "BORE-PLS": lambda: bore(db.KernelPLS()),
    "BORE++": lambda: bore(db.KernelPLS()) | {"acquisition": db.UpperConfidenceBound(3)},
    "BOGGN": lambda: (
        bore(
            db.LaplaceGGN(activation="relu", training=db.Training(batch_size=32, learning_rate=1e-3)),
            db.EpsilonGreedy(db.LocalSearch(neighbours=0)),
        )
        | {"acquisition": db.ExpectedProbability()}
    ),
}
CHECKPOINTS = (10, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150, 200)
Row = dict[str, object]


@dataclass(frozen=True)
class Job:
    """One run: what is optimised how, and how many trials are evaluated at the same time."""

    problem: str
    method: str
    seed: int
    trials: int
    workers: int = 1
    asynchronous: bool = False

    @property
    def label(self) -> str:
        """The method's name in the results."""
        kind = "workers" if self.asynchronous else "batch"
        return self.method if self.workers == 1 else f"{self.method}, {kind} of {self.workers}"


def trials(problem: problems.Problem, job: Job) -> np.ndarray:
    """All values of one run, in the order of evaluation; it ends early when the optimum is found."""
    if job.method == "random":
        points = problem.space.sample(job.trials, torch.Generator().manual_seed(job.seed))
        return np.array([problem(params) for params in problem.space.decode(points)])
    study = Study(problem.space, direction=problem.direction, seed=job.seed, **METHODS[job.method]())
    pending: list[Trial] = []
    while (left := job.trials - study.observations.n_complete) > 0:
        room = min(job.workers, left) - len(pending)
        if job.asynchronous or not pending:
            pending += study.ask(room) if room > 0 else []
        trial = pending.pop(0)
        value = problem(trial.params)
        study.tell(trial, value)
        if problem.regret(value) <= 0 or study.observations.n_left == 0:
            break
    told = [trial.value for trial in study.trials if trial.value is not None]
    return np.array(told)


def run(job: Job) -> Row:
    """One run as a row of the results."""
    torch.set_num_threads(1)
    problem = PROBLEMS[job.problem]()
    started = time.perf_counter()
    values = trials(problem, job)
    seconds = time.perf_counter() - started
    regret = np.fmin.accumulate(problem.regret(values))
    return {
        "problem": job.problem,
        "method": job.label,
        "seed": job.seed,
        "regret_after": {str(k): float(regret[min(k, len(regret)) - 1]) for k in CHECKPOINTS if k <= job.trials},
        "ms_per_trial": 1e3 * seconds / len(values),
    }


def chosen(names: list[str]) -> list[str]:
    """Problems by name or suite."""
    wanted = [problem for name in names for problem in SUITES.get(name, [name])]
    if unknown := [name for name in wanted if name not in PROBLEMS]:
        sys.exit(f"unknown problems {unknown}; there are {', '.join([*PROBLEMS, *SUITES])}")
    return list(dict.fromkeys(wanted))


def report(rows: list[Row]) -> None:
    """Prints mean, spread and all seeds of the last common checkpoint."""
    for problem in dict.fromkeys(row["problem"] for row in rows):
        print(problem)
        for method in dict.fromkeys(row["method"] for row in rows if row["problem"] == problem):
            runs = [row for row in rows if (row["problem"], row["method"]) == (problem, method)]
            last = max(set.intersection(*(set(row["regret_after"]) for row in runs)), key=int)
            ends = [row["regret_after"][last] for row in sorted(runs, key=lambda row: row["seed"])]
            spread = statistics.stdev(ends) if len(ends) > 1 else 0.0
            seeds = " ".join(f"{end:.2e}" for end in ends)
            ms = statistics.median(row["ms_per_trial"] for row in runs)
            print(
                f"  {method:12s} after {last}: {statistics.mean(ends):.2e} +- {spread:.1e} [{seeds}] {ms:.0f} ms/trial"
            )


def markdown(rows: list[Row], checkpoints: tuple[str, ...] = ("50", "100", "200")) -> str:
    """Tables of mean regrets, a method a row and a problem a column, one for each checkpoint."""
    names, methods = (list(dict.fromkeys(row[key] for row in rows)) for key in ("problem", "method"))
    tables = []
    for k in checkpoints:
        lines = [f"After {k} evaluations:", "", "| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
        for method in methods:
            cells = []
            for name in names:
                ends = [
                    row["regret_after"][k]
                    for row in rows
                    if (row["problem"], row["method"]) == (name, method) and k in row["regret_after"]
                ]
                cells.append(f"{statistics.mean(ends):.2g}" if ends else "")
            if any(cells):
                lines.append(f"| {method} | " + " | ".join(cells) + " |")
        tables.append("\n".join(lines))
    return "\n\n".join(tables)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", default=["all"], help=f"names, or the suites {', '.join(SUITES)}")
    parser.add_argument("--methods", nargs="+", default=["deepbore"], choices=METHODS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--workers", type=int, default=1, help="trials evaluated at the same time")
    parser.add_argument("--asynchronous", action="store_true", help="ask as soon as one is done, not for whole batches")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--markdown", action="store_true", help="print tables for a document")
    arguments = parser.parse_args()
    rows: list[Row] = json.loads(arguments.out.read_text()) if arguments.out.exists() else []
    done = {(row["problem"], row["method"], row["seed"]) for row in rows}
    jobs = [
        job
        for method in arguments.methods
        for problem in chosen(arguments.problems)
        for seed in range(arguments.seeds)
        for job in [Job(problem, method, seed, arguments.trials, arguments.workers, arguments.asynchronous)]
        if (problem, job.label, seed) not in done
    ]
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as pool:
        for count, row in enumerate(pool.imap_unordered(run, jobs), 1):
            rows.append(row)
            part = arguments.out.with_suffix(".part")
            part.write_text(json.dumps(rows, indent=1))
            part.replace(arguments.out)
            print(f"\r{count} of {len(jobs)} runs", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(markdown(rows)) if arguments.markdown else report(rows)


if __name__ == "__main__":
    main()
