"""Real training runs on data that come with scikit-learn or statsmodels: small enough for a benchmark, with failures.

data       data sets, cross-validation splits and metrics
models     from a configuration to an estimator: one of scikit-learn's, a choice of several, a network by torch
runs       the spaces of the model families, ranges as levels, the table of all tasks, and `TrainingRun`
"""

from deepbore.problems.benchmarks.training.runs import RUNS, RUNS_OF_STATSMODELS, TrainingRun

__all__ = ["RUNS", "RUNS_OF_STATSMODELS", "TrainingRun"]
