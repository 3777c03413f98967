"""What users tune: training runs, pipelines, policies and fits, at some hundredths of a second each.

task       `GroundTask`: a space, and what makes its function
networks   sixteen networks of torch
boosting   eight gradient-boosted trees of xgboost, lightgbm and scikit-learn
pipelines  six pipelines of scikit-learn, with a choice of model and of preprocessing
policies   five policies of gymnasium's simulators
others     two forecasters, the fit of a differential equation, an image filter, a schedule
runs       the table of all tasks, and `GroundRun`
"""

from deepbore.problems.benchmarks.ground.runs import KINDS, TASKS, GroundRun

__all__ = ["KINDS", "TASKS", "GroundRun"]
