"""From proposed trials to their values: in this process, in processes of our own, or by an engine that you have."""

from deepbore.evaluators.base import Evaluator, Finished
from deepbore.evaluators.executor import ExecutorEvaluator
from deepbore.evaluators.process import ProcessEvaluator
from deepbore.evaluators.serial import SerialEvaluator
from deepbore.evaluators.timed import Timed
from deepbore.worker.objective import Objective

__all__ = ["Evaluator", "ExecutorEvaluator", "Finished", "Objective", "ProcessEvaluator", "SerialEvaluator", "Timed"]
