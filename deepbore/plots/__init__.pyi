"""The pictures, and the one list of them: `deepbore/plots/__init__.py` imports each from here when it is first used."""

from .html_report import report as report
from .landscape_plot import landscape as landscape
from .optimization_history import best_and_tau as best_and_tau, history as history
from .pair_plot import pairs as pairs
from .parallel_plot import parallel_coordinates as parallel_coordinates
from .permutation_importance import importance as importance, importances as importances
from .reliability_diagram import calibration as calibration
from .run_comparison import comparison as comparison
from .shapley_importance import shares as shares
from .slice_plot import slices as slices
