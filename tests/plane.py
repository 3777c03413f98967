"""Real parameters to search, and trials that take next to no time: for tests of runs, whatever the classifier."""

from deepbore import Real, SearchSpace

LINE = SearchSpace({"x": Real(0, 1)})
SQUARE = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})
PLANE = SearchSpace({"x": Real(-1, 1), "y": Real(-1, 1)})
DESIGN = 100  # trials of a design, where the classifier doesn't matter: these take next to no time


def statuses(study):
    return [trial.status.name for trial in study.trials]
