"""Real training runs on scikit-learn's own data sets: small enough for a benchmark, failures included.

data       data sets, cross-validation splits and metrics
models     from a configuration to an estimator: one of scikit-learn's, a choice of several, a network by torch
runs       the spaces of the model families, ranges as levels, the table of all tasks, and `TrainingRun`
"""

from deepbore.problems.benchmarks.training.runs import RUNS, TrainingRun

__all__ = ["RUNS", "TrainingRun"]
