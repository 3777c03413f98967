"""Begins with earlier results: from a table, such as last year's experiments.

    python examples/warm_start.py --trials 20
    python examples/warm_start.py --trials 20 --table mine.csv   # columns temperature, catalyst, yield

Earlier results count among the trials of the initial design: with ten or more of them, the first proposal is the
classifier's. A row without a value is a failed experiment. Needs deepbore[frames].
"""

import argparse
import io
from pathlib import Path

import pandas as pd

import deepbore

TABLE = """temperature,catalyst,yield
20,A,0.05
40,A,0.18
60,A,0.31
80,A,0.37
100,A,0.33
20,B,0.11
45,B,0.41
70,B,
95,B,0.35
30,C,0.02
60,C,0.10
90,C,0.14
"""
SPACE = deepbore.SearchSpace({"temperature": deepbore.Real(10, 120), "catalyst": deepbore.Categorical(["A", "B", "C"])})


def experiment(params: dict) -> float:
    """This year's experiment; here a formula."""
    best_at, height, width = {"A": (82, 0.37, 35), "B": (58, 0.47, 30), "C": (95, 0.14, 40)}[params["catalyst"]]
    return height * 2 ** -(((params["temperature"] - best_at) / width) ** 2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--table", type=Path, help="a CSV file in the place of the built-in table")
    args = parser.parse_args()
    table = pd.read_csv(args.table or io.StringIO(TABLE))
    study = deepbore.Study(SPACE, direction="maximize", seed=0)
    study.add(table[["temperature", "catalyst"]], table["yield"])
    print(f"{len(table)} earlier results, the best of them {study.best_trial.value:.3f}")
    study.optimize(experiment, n_trials=args.trials)
    print(study.to_frame().tail(args.trials).sort_values("value", ascending=False).head(3).to_string(index=False))
    print(f"best yield {study.best_trial.value:.4f} with {study.best_trial.params}")
