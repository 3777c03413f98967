"""`GroundRun`, and the table of all tasks."""

import contextlib
import warnings

import numpy as np
import torch

from deepbore.problems.base import Problem, benchmark_package
from deepbore.problems.benchmarks.ground import boosting, networks, others, pipelines, policies
from deepbore.problems.benchmarks.ground.task import GroundTask
from deepbore.space import Params, SearchSpace
from deepbore.validation import one_of

KINDS: dict[str, dict[str, GroundTask]] = {
    "networks": networks.TASKS,
    "boosting": boosting.TASKS,
    "pipelines": pipelines.TASKS,
    "policies": policies.TASKS,
    "others": others.TASKS,
}
TASKS = {f"{kind}/{name}": task for kind, tasks in KINDS.items() for name, task in tasks.items()}


class GroundRun(Problem):
    """A task of the kind that people tune, small enough for some hundredths of a second, minimised.

    A value depends on the configuration alone, on one machine and with one version of the packages; training has the
    same seed each time, and neighbouring configurations differ by luck, as they do. Incompatible settings raise the
    errors of their package, and training that diverges gives a large value or NaN: failed trials. The optima are
    unknown.

    Args:
        name: one of `TASKS`, a kind and a task, as "networks/perceptron-digits".

    Raises:
        SettingError: for an unknown name.
        MissingPackage: without the packages that the task needs.

    Example:
        >>> problem = GroundRun("others/hunters")
        >>> len(problem.space), problem.direction
        (8, 'minimize')
    """

    def __init__(self, name: str):
        one_of(TASKS, name=name)
        self.name = name
        self.space = SearchSpace(dict(TASKS[name].space))
        self._function = TASKS[name].make()

    @torch.inference_mode(mode=False)  # the caller may have disabled gradients
    @torch.enable_grad()
    def __call__(self, params: Params) -> float:
        """The value of a configuration.

        Raises:
            PointError: for a configuration outside the space.
            Exception: of the packages, for incompatible settings or failed training.
        """
        self.space.encode([params])  # checks names and bounds
        one_thread = benchmark_package("threadpoolctl", "threadpoolctl").threadpool_limits(1)
        with one_thread, torch.random.fork_rng(devices=[]), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # of convergence and overflow, which the value shows
            with contextlib.suppress(OverflowError):
                return float(self._function(params))
            return float("nan")
