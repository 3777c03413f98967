"""The pictures, and the one list of them: `deepbore/plots/__init__.py` imports each from here when it is first used."""

from .calibration_chart import calibration
from .history_chart import Curves, best_and_tau, comparison, history
from .importance_chart import Share, importance, importances, shares
from .landscape_chart import landscape
from .page.page import report
from .parallel_chart import parallel_coordinates
from .slice_charts import pairs, slices

__all__ = [
    "Curves",
    "Share",
    "best_and_tau",
    "calibration",
    "comparison",
    "history",
    "importance",
    "importances",
    "landscape",
    "pairs",
    "parallel_coordinates",
    "report",
    "shares",
    "slices",
]
