"""Pictures of a run; each takes a study and returns a matplotlib figure. What shows the classifier needs it trained:
`ask` and `optimize` do that, and so does `Study.fit`, for a study taken up from its journal."""

from deepbore.plots.html_report import report
from deepbore.plots.landscape_plot import landscape
from deepbore.plots.optimization_history import best_and_tau, history
from deepbore.plots.pair_plot import pairs
from deepbore.plots.parallel_plot import parallel_coordinates
from deepbore.plots.permutation_importance import importance, importances
from deepbore.plots.reliability_diagram import calibration
from deepbore.plots.slice_plot import slices

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
