"""The charts of a run as records, `Chart`s: numbers with names, units and titles, under the names of the pictures.

The page, matplotlib and plotly draw these records. `slices`, `pairs`, `history` and `landscape` are lists of them.
`draw(chart)` is a figure of matplotlib, `plotly.graph_objects.Figure(**to_plotly(chart))` one of plotly.

Example:
    >>> import deepbore
    >>> from deepbore.plots import records
    >>> study = deepbore.Study({"x": deepbore.Real(0, 1)}, seed=0)
    >>> result = study.optimize(lambda params: params["x"] ** 2, 3, progress=False)
    >>> (chart,) = records.history(study)
    >>> chart.title, chart.y.title, len(chart.layers)
    ('value of each trial, and the best so far', 'value', 4)
"""

from deepbore.plots.calibration_chart import calibration_chart as calibration
from deepbore.plots.curves_chart import curves_chart as curves
from deepbore.plots.history_chart import comparison_chart as comparison, history_charts as history
from deepbore.plots.importance_chart import importance_chart as importance, local_chart as local_importance
from deepbore.plots.landscape_chart import landscape_charts as landscape
from deepbore.plots.objectives_chart import front_chart as front, hypervolume_chart as hypervolume
from deepbore.plots.on_matplotlib import drawn as draw
from deepbore.plots.on_plotly import for_plotly as to_plotly
from deepbore.plots.parallel_chart import parallel_coordinates_chart as parallel_coordinates
from deepbore.plots.slice_charts import pair_charts as pairs, slice_charts as slices
from deepbore.plots.timeline_chart import timeline_chart as timeline

__all__ = [
    "calibration",
    "comparison",
    "curves",
    "draw",
    "front",
    "history",
    "hypervolume",
    "importance",
    "landscape",
    "local_importance",
    "pairs",
    "parallel_coordinates",
    "slices",
    "timeline",
    "to_plotly",
]
