"""Real training runs on scikit-learn's own data sets: small enough for a benchmark, failures included.

data       the data sets, and how they are split
metrics    accuracy, log loss and root mean squared error
models     from a configuration to an estimator: one of scikit-learn's, or a choice of several
families   the spaces of the model families
network    Network: a network by torch, used like scikit-learn's estimators
levels     ranges as grids of levels
runs       TrainingRun, and the table of all runs: which family on which data by which metric
"""

from deepbore.problems.training.runs import RUNS, TrainingRun

__all__ = ["RUNS", "TrainingRun"]
