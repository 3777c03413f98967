"""An optimisation as one object: ask and tell, or in one call."""

import warnings
from typing import Any

from deepbore.errors import DeprecatedUse
from deepbore.loop.stopping import ExpectedImprovementBelow, NoImprovement, StopRule, TargetReached
from deepbore.study.distributed import DistributedStudy
from deepbore.study.optimize import maximize, minimize
from deepbore.study.options import Options, RunOptions, StudyOptions
from deepbore.study.study import Result, Study

__all__ = [
    "DistributedStudy",
    "ExpectedImprovementBelow",
    "NoImprovement",
    "Options",
    "Result",
    "RunOptions",
    "StopRule",
    "Study",
    "StudyOptions",
    "TargetReached",
    "maximize",
    "minimize",
]


def __getattr__(name: str) -> Any:
    if name == "Suggester":
        warnings.warn("Suggester is called DistributedStudy now.", DeprecatedUse, stacklevel=2)
        return DistributedStudy
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
