"""Small networks that are trained by torch: what people tune, at some tenths of a second a run.

data       rows, images, sequences and text, drawn from a seed or shipped with scikit-learn
layers     from a configuration to a network
training   optimizers, schedules and the loop
spaces     the parameters that several tasks share
runs       the table of all tasks, and `NetworkRun`
"""

from deepbore.problems.benchmarks.networks.runs import TASKS, NetworkRun

__all__ = ["TASKS", "NetworkRun"]
