"""An optimisation as one object: ask and tell, or let it run."""

from deepbore.loop.stopping import ExpectedImprovementBelow, NoImprovement, StopRule, TargetReached
from deepbore.study.optimize import maximize, minimize
from deepbore.study.study import Study
from deepbore.study.suggester import Suggester
from deepbore.study.view import Result

__all__ = [
    "ExpectedImprovementBelow",
    "NoImprovement",
    "Result",
    "StopRule",
    "Study",
    "Suggester",
    "TargetReached",
    "maximize",
    "minimize",
]
