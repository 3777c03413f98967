"""Parallel coordinates: a line for each trial."""

import math

import numpy as np
import pytest
from matplotlib.figure import Figure

from deepbore import Outcome, Real, SearchSpace, Study, plots, plots as pictures
from deepbore.data.replay import read_record
from deepbore.plots import records
from deepbore.plots.chart import Line, Texts
from deepbore.plots.page.sections import parallel_section, trials_table
from deepbore.plots.parallel_chart import COLOURS
from deepbore.plots.sources import record_of
from deepbore.plots.style import INFEASIBLE
from drawn_studies import CUBE, told, trained
from plane import SQUARE


@pytest.fixture(scope="module")
def study():
    return trained()


def drawn(chart):
    """The colour and the heights of each trial's line, by its id, the lowest first."""
    d = sum(len(layer.words) for layer in chart.layers if isinstance(layer, Texts) and layer.is_head)
    found = {}
    for layer in (each for each in chart.layers if isinstance(each, Line) and each.trials is not None):
        for row, heights in zip(layer.trials[:: d + 1].tolist(), layer.y.reshape(-1, d + 1), strict=True):
            found[row] = layer.colour, heights[:-1].tolist()
    return found


def test_each_trial_is_a_line_the_best_on_top(study):
    lines = drawn(records.parallel_coordinates(study, parameters=["lr", "momentum"]))
    assert len(lines) == 40
    assert [row for row, (_, heights) in lines.items() if math.isnan(heights[-1])] == [7]  # the failed one
    best = study.best_trial
    assert list(lines)[-1] == best.id
    assert lines[best.id][1][0] == pytest.approx((math.log10(best.params["lr"]) + 5) / 4, abs=1e-4)
    assert lines[best.id][1][-1] == 1
    adam = [trial.id for trial in study.trials[:40] if trial.params["optimizer"] == "adam"]
    assert [row for row, (_, heights) in sorted(lines.items()) if heights[1] < -0.05] == adam
    (axes,) = pictures.parallel_coordinates(study, parameters=["lr", "momentum"]).axes
    assert {"inactive", "lr", "momentum", "value", "best"} <= {text.get_text() for text in axes.texts}


def test_the_best_is_the_greatest_when_maximising():
    study = told(CUBE, [1.0, 5.0, 3.0], direction="maximize")
    lines = drawn(records.parallel_coordinates(study))
    assert [(row, heights[-1]) for row, (_, heights) in lines.items()] == [(0, 0), (2, 0.5), (1, 1)]
    assert lines[1][0] == COLOURS[2]


def test_many_parameters_and_trials_are_thinned():
    space = SearchSpace({f"x{i}": Real(0, 1) for i in range(30)})
    study = told(space, np.linspace(0, 1, 700).tolist())
    (axes,) = pictures.parallel_coordinates(study).axes
    names = {text.get_text() for text in axes.texts}
    assert {"x0", "x11", "value"} <= names
    assert "x12" not in names
    assert len(drawn(records.parallel_coordinates(study))) <= 500


# regression: each of these was wrong once
def test_parallel_coordinates_take_huge_values():
    study = Study(SQUARE, seed=0)
    for value in (1e308, -1e308, 1.0):
        (trial,) = study.ask()
        study.tell(trial, value)
    assert isinstance(plots.parallel_coordinates(study), Figure)


def test_an_attribute_that_a_trial_lacks_is_blank_and_its_column_a_number():
    study = Study(SQUARE, seed=0)
    for k in range(6):
        (trial,) = study.ask()
        study.tell(trial, Outcome.failure("lost") if k == 2 else Outcome(k, attributes={"epochs": k}))
    table = trials_table(record_of(study))
    assert table["columns"][-1] == {"name": "epochs", "number": True}
    assert [row[-1] for row in table["rows"]] == [0, 1, None, 3, 4, 5]


def test_the_greenest_line_is_the_best_feasible_trial(limited):
    study, path = limited
    (chart,) = parallel_section(read_record(path)).charts
    lines = {trace["line"]["color"]: set(trace["trials"]) for trace in chart.data if "trials" in trace}
    assert study.best_trial.id in list(lines.values())[-1]
    assert lines[INFEASIBLE] == {trial.id for trial in study.trials if max(trial.constraints) > 0}


def test_lines_of_infeasible_trials_have_their_colour_and_no_say_in_the_scale(limited):
    study, _ = limited
    lines = drawn(records.parallel_coordinates(study))
    pink = [colour == INFEASIBLE for colour, _ in lines.values()]
    count = sum(max(trial.constraints) > 0 for trial in study.trials)
    assert pink == [True] * count + [False] * (len(study.trials) - count)  # below all others
    assert list(lines.values())[-1][1][-1] == pytest.approx(1)  # the best feasible one is at the end of the axis


def test_several_objectives_have_no_best_line(tmp_path):
    study = Study(SQUARE, directions=["minimize", "maximize"], seed=0, journal=tmp_path / "run.jsonl")
    study.optimize(lambda p: [p["x"], p["y"]], 6, progress=False)
    for shown in (study, read_record(tmp_path / "run.jsonl")):
        for j, axes in enumerate(plots.history(shown).axes):
            assert axes.get_ylabel() == f"value {j}"
            assert "best so far" not in axes.get_legend_handles_labels()[1]
