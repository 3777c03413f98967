#!/usr/bin/env python
"""Whether what batch BORE's appendix E leaves open decides who is ahead in figure E.1, batch BORE or BORE++.

    python scripts/batch_protocol.py [--seeds 3] [--rounds 20]

Rosenbrock's function in three dimensions, by the configurations of the figure, but for: the domain (the usual one, or
[-2.048, 2.048]), where SVGD's particles start, and on which scale the upper bound is taken: of the logit, or of the
probability p, with p (1 - p) times the logit's deviation (the delta method). Regret is summed over all points of the
batches, and over the best of each. Rows go to docs/results/papers/batch-E1-protocol.jsonl; what is there is not run
again.
"""

import argparse
import itertools
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from torch import Tensor

import deepbore as db
from deepbore.acquisition import Acquisition
from deepbore.classifiers import Posterior
from deepbore.problems import Rosenbrock
from harness.measuring import Row, complete, grid

ROWS = Path(__file__).parent.parent / "docs" / "results" / "papers" / "batch-E1-protocol.jsonl"
DIM, Q, NOISE = 3, 10, 0.01
DOMAINS = {"usual": (-5.0, 10.0), "small": (-2.048, 2.048)}


class ProbabilityBound(Acquisition):
    """Mean and kappa deviations of the class probability, by the delta method."""

    needs = frozenset({"std"})

    def __init__(self, kappa: float):
        self.kappa = kappa

    def __call__(self, posterior: Posterior, best: Tensor | float) -> Tensor:
        p = posterior.mean.sigmoid()
        return p + self.kappa * p * (1 - p) * posterior.std

    def log_density(self, posterior: Posterior, best: Tensor | float) -> Tensor:
        return self(posterior, best).log()


METHODS = {
    "BORE": db.ClassProbability(),
    "BORE++, logit": db.UpperConfidenceBound(3),
    "BORE++, logit, beta 1": db.UpperConfidenceBound(1),
    "BORE++, probability": ProbabilityBound(3),
}


def run(protocol: list[str], seed: int, rounds: int) -> Row:
    """Cumulative regret after some rounds: of all points, and of the best of each batch."""
    domain, start, method = protocol
    low, high = DOMAINS[domain]
    problem, noise = Rosenbrock(DIM), np.random.default_rng(seed)
    study = db.Study(
        db.SearchSpace({f"x{i}": db.Real(low, high) for i in range(DIM)}),
        seed=seed,
        n_initial=Q,
        classifier=db.FourierLogistic(300),
        labels=db.ThresholdLabels(1 / 4),
        acquisition=METHODS[method],
        candidates=db.SVGDCandidates(start=start, sweeps=0, optimizer="lbfgs", steps=100),
    )
    batches: list[list[float]] = []
    for _ in range(rounds + 1):
        batches.append([])
        for trial in study.ask(Q):
            value = float(problem.value(vector(trial.params)))
            batches[-1].append(value)
            study.tell(trial, value + NOISE * noise.standard_normal())
    return {"all": round(sum(map(sum, batches[1:]))), "best": round(sum(map(min, batches[1:])))}


def vector(params: db.Params) -> np.ndarray:
    """The point of a configuration."""
    return np.array([params[f"x{i}"] for i in range(DIM)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    torch.set_num_threads(1)
    protocols = [list(each) for each in itertools.product(DOMAINS, ("uniform", "density"), METHODS)]
    found = complete(ROWS, grid(seed=range(given.seeds), protocol=protocols, rounds=[given.rounds]), run)
    for protocol in protocols:
        rows = [row for row in found if row["protocol"] == protocol and row["rounds"] == given.rounds]
        print(", ".join(protocol), *(f"{row['all']:.3g}" for row in rows), "| best:", *(row["best"] for row in rows))


if __name__ == "__main__":
    main()
