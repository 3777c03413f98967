"""Cheap fidelities: what a search with budgets saves, against its peers; a row of JSON for each run.

    python scripts/budgets.py --output docs/results/budgets.jsonl --seeds 5
    python scripts/budgets.py --output docs/results/budgets.jsonl --show

Every epoch that a method trains is counted, and what a trial that goes on has trained before is not trained again. A
network counts as found when it has been trained to the end. A row has the regret after as many epochs as 5, 10, 25, ...
full trainings take: of the tables (`LearningCurves`) the loss above the best, as a share of the median's, of the
networks that are trained during the run (`live`) the loss itself; and of the tables how many epochs it took until one
of the best 1 % of all networks, or of the best 5 %, was found. A run that is in the file is not run again.
"""

import argparse
import math
import os
import statistics
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy

from deepbore import Budget, Integer, Real, SearchSpace
from deepbore.problems import LearningCurves
from harness.measuring import Row, complete, grid, longest
from peers.by_budget import METHODS

MARKS = (5, 10, 25, 50, 100)  # full trainings
GOALS = {"1 %": 0.01, "5 %": 0.05}  # shares of a table


class Table:
    """`LearningCurves` as trainings.

    Args:
        name: of the table.
    """

    def __init__(self, name: str):
        self._problem = LearningCurves(name)
        self.space, self.budget = self._problem.space, Budget("epochs", 1, 81)
        every = self.space.decode(self.space.points.enumerate())
        self.final = np.sort([self._problem(params) for params in every])

    def train(self, params: dict[str, Any], seed: int) -> Iterator[float]:
        """The losses after one epoch, after two, and so on."""
        return (self._problem.after(params, epoch) for epoch in range(1, self.budget.top + 1))

    def regret(self, loss: float) -> float:
        """The loss above the best, in units of the median's."""
        best, median = self.final[0], np.nanmedian(self.final)
        return float((loss - best) / (median - best))


class Live:
    """Small networks that learn handwritten digits, trained while the search runs."""

    final = None

    def __init__(self) -> None:
        rates = {"learning_rate": Real(1e-4, 1e-1, log=True), "decay": Real(1e-6, 1e-1, log=True)}
        self.space = SearchSpace({**rates, "width": Integer(8, 128, log=True), "dropout": Real(0, 0.6)})
        self.budget = Budget("epochs", 1, 27)
        images, labels = load_digits(return_X_y=True)
        self._x, self._y = torch.tensor(images / 16).float(), torch.tensor(labels)

    def train(self, params: dict[str, Any], seed: int) -> Iterator[float]:
        """The losses on held-out digits after one epoch, after two, and so on."""
        x, y, train, width = self._x, self._y, 1200, params["width"]
        torch.manual_seed(seed)
        layers = torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Dropout(params["dropout"])
        network = torch.nn.Sequential(*layers, torch.nn.Linear(width, 10))
        optimizer = torch.optim.AdamW(network.parameters(), params["learning_rate"], weight_decay=params["decay"])
        while True:
            network.train()
            with torch.enable_grad():
                for batch in torch.randperm(train).split(64):
                    optimizer.zero_grad()
                    cross_entropy(network(x[batch]), y[batch]).backward()
                    optimizer.step()
            with torch.no_grad():
                yield cross_entropy(network.eval()(x[train:]), y[train:]).item()

    def regret(self, loss: float) -> float:
        """The loss: nobody knows the best."""
        return loss


class Account:
    """Runs trainings and counts their epochs.

    Args:
        trainings: what is trained.
    """

    def __init__(self, trainings: Any):
        self.trainings, self.top = trainings, trainings.budget.top
        self.spent, self.begun, self.found = 0, 0, [(0, math.inf)]  # epochs, trainings, (epochs, best final loss)

    def begin(self, params: dict[str, Any]) -> Iterator[float]:
        """A training of which each epoch is counted."""
        self.begun += 1
        best = math.inf
        for epoch, loss in enumerate(self.trainings.train(params, self.begun), start=1):
            self.spent += 1
            if epoch == self.top:
                best = min(self.found[-1][1], loss if math.isfinite(loss) else math.inf)
                self.found.append((self.spent, best))
            yield loss

    def best_after(self, epochs: float) -> float:
        """The best final loss found within so many epochs."""
        return [loss for spent, loss in self.found if spent <= epochs][-1]

    def until(self, loss: float) -> int | None:
        """How many epochs it took to find so small a final loss."""
        return next((spent for spent, best in self.found if best <= loss), None)


PROBLEMS: dict[str, Callable[[], Any]] = {name: lambda name=name: Table(name) for name in LearningCurves.names}
PROBLEMS["live"] = Live


def run(problem: str, method: str, seed: int, trainings: int) -> Row:
    """What a row says of one run."""
    tuned = PROBLEMS[problem]()
    account, start = Account(tuned), clock()
    for _ in (steps := METHODS[method](account, seed)):
        known = tuned.final is not None and account.found[-1][1] <= tuned.final[0]
        if known or account.spent >= trainings * account.top:
            break
    steps.close()
    seconds = round(clock() - start, 1)
    row: Row = {"begun": account.begun, "epochs": account.spent, "seconds": seconds}
    found = {mark: account.best_after(mark * account.top) for mark in MARKS if mark <= trainings}
    row["regret"] = {mark: None if math.isinf(loss) else tuned.regret(loss) for mark, loss in found.items()}
    if tuned.final is not None:
        goals = {each: tuned.final[math.ceil(share * len(tuned.final)) - 1] for each, share in GOALS.items()}
        row["until"] = {each: account.until(loss) for each, loss in goals.items()}
    return row


def clock() -> float:
    """Seconds of processor time of this process, and of those that it started and that have ended."""
    return sum(os.times()[:4])


NAMES = {  # of the methods, as docs/outcomes.md has them
    "deepbore": "deepbore with `Budget`",
    "deepbore-halving": "deepbore with `SuccessiveHalvingPruner`",
    "deepbore-median": "deepbore with `MedianPruner`",
    "deepbore-in-full": "deepbore, full trainings",
    "random-asha": "random ASHA: deepbore's promotions, a Sobol sequence",
    "optuna-random-halving": "random search with Optuna's SuccessiveHalvingPruner",
    "smac-multi-fidelity": "SMAC3, multi-fidelity (Hyperband)",
    "optuna-tpe-rungs": "TPE of the highest rung with enough results, ASHA's promotions (as in BOHB)",
    "optuna-tpe-hyperband": "Optuna's TPE with HyperbandPruner",
    "optuna-tpe-halving": "Optuna's TPE with SuccessiveHalvingPruner",
    "optuna-tpe-median": "Optuna's TPE with MedianPruner",
    "optuna-tpe-in-full": "Optuna's TPE, full trainings",
}


def tables(path: Path) -> str:
    """Medians over the seeds, as two tables in Markdown: of the tables of curves, and of live networks."""
    by = defaultdict(list)
    for row in longest(path, "trainings", "problem", "method", "seed"):
        by[row["problem"], row["method"]].append(row)
    curves = [name for name in PROBLEMS if name != "live" and any(problem == name for problem, _ in by)]
    lines = ["| epochs until the best 5 %, 1 % | " + " | ".join(name.replace("_", " ") for name in curves) + " |"]
    lines += ["|---" * (1 + len(curves)) + "|"]
    for method, name in NAMES.items():
        cells = [[median(row["until"][goal] for row in by[each, method]) for goal in ("5 %", "1 %")] for each in curves]
        shown = [", ".join("–" if math.isinf(epochs) else f"{epochs:.0f}" for epochs in pair) for pair in cells]
        lines.append(f"| {name} | " + " | ".join(shown) + " |")
    lines += ["", "| loss after 5, 10 full trainings | live digits |", "|---|---|"]
    for method, name in NAMES.items():
        losses = [median(row["regret"].get(mark) for row in by["live", method]) for mark in ("5", "10")]
        lines.append(f"| {name} | " + ", ".join(f"{loss:.3f}".lstrip("0") for loss in losses) + " |")
    return "\n".join(lines)


def median(values: Any) -> float:
    """The median, None being infinite."""
    return statistics.median(math.inf if value is None else value for value in values)


def main() -> None:
    """Runs what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--trainings", type=int, default=10, help="epochs of so many full trainings")
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    if given.show:
        print(tables(given.output))
        return
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    problems, methods = given.problems.split(","), given.methods.split(",")
    wanted = grid(seed=range(given.seeds), problem=problems, method=methods, trainings=[given.trainings])
    complete(given.output, wanted, run, length="trainings")


if __name__ == "__main__":
    main()
