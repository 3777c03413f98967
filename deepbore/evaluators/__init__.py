"""From proposed trials to their outcomes: in this process, in worker processes, or on an engine of yours."""

from deepbore.evaluators.base import Evaluator, Finished, SerialEvaluator, Timed
from deepbore.evaluators.executor import ExecutorEvaluator
from deepbore.evaluators.process import ProcessEvaluator
from deepbore.worker.objective import Objective

__all__ = ["Evaluator", "ExecutorEvaluator", "Finished", "Objective", "ProcessEvaluator", "SerialEvaluator", "Timed"]
