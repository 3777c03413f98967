"""The pictures, and the one list of them: `deepbore/plots/__init__.py` imports each from here when it is first used."""

from .html_report import report
from .landscape_plot import landscape
from .optimization_history import best_and_tau, history
from .pair_plot import pairs
from .parallel_plot import parallel_coordinates
from .permutation_importance import importance, importances
from .reliability_diagram import calibration
from .run_comparison import Curves, comparison
from .shapley_importance import Share, shares
from .slice_plot import slices

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
