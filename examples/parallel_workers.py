"""Evaluations of different length on several worker processes, none of which waits for another.

    python examples/parallel_workers.py --trials 60 --workers 4

As soon as a worker is free, a new trial is proposed that keeps away from those still running. An evaluation that is
killed, raises or takes longer than the timeout is a failed trial, and the run goes on.
"""

import argparse
import math
import time
import warnings

import deepbore


def objective(params: dict[str, float]) -> float:
    """A pretended simulation: the finer the step, the longer it takes; too coarse a one breaks down."""
    time.sleep(0.02 / params["step"])
    if params["step"] > 0.4:
        raise ArithmeticError("the integration is unstable")
    return abs(math.sin(3 * params["angle"]) - 0.5) + params["step"] + 0.1 * (params["angle"] - 2) ** 2


def main() -> None:
    """Everything below this is for the main process alone: the workers import this file, too."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--workers", type=int, default=4)
    args = parser.parse_args()
    warnings.filterwarnings("ignore", "trial .* failed", RuntimeWarning)  # counted below
    space = deepbore.SearchSpace({"angle": deepbore.Real(0, 4), "step": deepbore.Real(0.02, 1, log=True)})
    evaluator = deepbore.ProcessEvaluator(objective, workers=args.workers, timeout=30)
    started = time.perf_counter()
    result = deepbore.minimize(evaluator, space, n_trials=args.trials, seed=0)
    asleep = sum(0.02 / trial.params["step"] for trial in result.study.trials)
    failed = sum(math.isnan(value) for value in result.values)
    print(f"{args.trials} trials, {failed} failed, best value {result.best_value:.4f} with {result.best_params}")
    print(f"{asleep:.1f} s of evaluations in {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
