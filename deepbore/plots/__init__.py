"""Pictures of a run; each takes a study and returns a matplotlib figure. What shows the classifier needs it trained:
`ask` and `optimize` do that, and so does `Study.fit`, for a study taken up from its journal."""

from deepbore.plots.influence import importance, importances
from deepbore.plots.landscapes import landscape
from deepbore.plots.parallel import parallel_coordinates
from deepbore.plots.reliability import calibration
from deepbore.plots.reports import report
from deepbore.plots.runs import best_and_tau, history
from deepbore.plots.sections import pairs, slices

__all__ = [
    "best_and_tau",
    "calibration",
    "history",
    "importance",
    "importances",
    "landscape",
    "pairs",
    "parallel_coordinates",
    "report",
    "slices",
]
