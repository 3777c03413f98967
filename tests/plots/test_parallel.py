"""Parallel coordinates: a line for each trial."""

import math

import numpy as np
import pytest
from matplotlib.figure import Figure

from deepbore import Outcome, Real, SearchSpace, Study, plots, plots as pictures
from deepbore.data.replay import read_record
from deepbore.plots.page.sections import parallel_section, trials_table
from deepbore.plots.sources import record_of
from deepbore.plots.style import INFEASIBLE
from drawn_studies import CUBE, told, trained
from plane import SQUARE


@pytest.fixture(scope="module")
def study():
    return trained()


def test_each_trial_is_a_line_the_best_on_top(study):
    (axes,) = pictures.parallel_coordinates(study, parameters=["lr", "momentum"]).axes
    (lines,) = (c for c in axes.collections if c.get_label().startswith("_") and len(c.get_segments()) > 5)
    segments = lines.get_segments()
    assert len(segments) == 39  # without the failed one
    best = study.best_trial
    top = segments[-1][:, 1]
    assert top[0] == pytest.approx((math.log10(best.params["lr"]) + 5) / 4)
    assert top[-1] == 0
    adam = [trial for trial in study.trials[:40] if trial.params["optimizer"] == "adam" and trial.id != 7]
    assert sum(segment[1, 1] < -0.05 for segment in segments) == len(adam)
    assert "inactive" in [text.get_text() for text in axes.texts]


def test_the_best_is_the_greatest_when_maximising():
    study = told(CUBE, [1.0, 5.0, 3.0], direction="maximize")
    (axes,) = pictures.parallel_coordinates(study).axes
    (lines,) = (c for c in axes.collections if len(c.get_segments()) == 3)
    assert [segment[-1, 1] for segment in lines.get_segments()] == [0, 0.5, 1]
    widths = lines.get_linewidths()
    assert widths[-1] == max(widths)


def test_many_parameters_and_trials_are_thinned():
    space = SearchSpace({f"x{i}": Real(0, 1) for i in range(30)})
    study = told(space, np.linspace(0, 1, 700).tolist())
    (axes,) = pictures.parallel_coordinates(study).axes
    names = {text.get_text() for text in axes.texts}
    assert {"x0", "x11", "value"} <= names
    assert "x12" not in names
    assert max(len(c.get_segments()) for c in axes.collections) <= 500


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
    drawn = {trace["line"]["color"]: set(trace["trials"]) for trace in chart.data}
    assert study.best_trial.id in list(drawn.values())[-1]
    assert drawn[INFEASIBLE] == {trial.id for trial in study.trials if max(trial.constraints) > 0}


def test_lines_of_infeasible_trials_have_their_colour_and_no_say_in_the_scale(limited):
    study, _ = limited
    (axes,) = plots.parallel_coordinates(study).axes
    lines = max(axes.collections, key=lambda each: len(each.get_colors()))
    pink = [tuple(colour[:3]) == pytest.approx((0xD0 / 255, 0x8A / 255, 0x9A / 255)) for colour in lines.get_colors()]
    count = sum(max(trial.constraints) > 0 for trial in study.trials)
    assert pink == [True] * count + [False] * (len(study.trials) - count)  # below all others
    ends = [path.vertices[-1, 1] for path in lines.get_paths()]
    assert ends[-1] == pytest.approx(1)  # the best feasible one is at the end of the axis


def test_several_objectives_have_no_best_line(tmp_path):
    study = Study(SQUARE, directions=["minimize", "maximize"], seed=0, journal=tmp_path / "run.jsonl")
    study.optimize(lambda p: [p["x"], p["y"]], 6, progress=False)
    for shown in (study, read_record(tmp_path / "run.jsonl")):
        for j, axes in enumerate(plots.history(shown).axes):
            assert axes.get_ylabel() == f"value {j}"
            assert "best so far" not in axes.get_legend_handles_labels()[1]
