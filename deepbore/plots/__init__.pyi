"""The pictures, and the one list of them: `deepbore/plots/__init__.py` imports each from here when it is first used."""

from .calibration_chart import calibration
from .chart import Chart
from .curves_chart import curves
from .history_chart import Curves, best_and_tau, comparison, history
from .importance_chart import Share, importance, importances, local_importance, local_shares, shares
from .landscape_chart import landscape
from .objectives_chart import front, hypervolume
from .page.page import report
from .parallel_chart import parallel_coordinates
from .slice_charts import pairs, slices
from .timeline_chart import timeline

__all__ = [
    "Chart",
    "Curves",
    "Share",
    "best_and_tau",
    "calibration",
    "comparison",
    "curves",
    "front",
    "history",
    "hypervolume",
    "importance",
    "importances",
    "landscape",
    "local_importance",
    "local_shares",
    "pairs",
    "parallel_coordinates",
    "report",
    "shares",
    "slices",
    "timeline",
]
