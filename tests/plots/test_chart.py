"""Charts as records: the same numbers by matplotlib, by plotly and on the page, with names, units and titles."""

import inspect

import numpy as np
import pytest

from deepbore import Outcome, Real, Study, TrialPruned, plots
from deepbore.data.array_ranking import hypervolume
from deepbore.data.replay import read_record
from deepbore.errors import SettingError
from deepbore.plots import Chart, records
from deepbore.plots.chart import Axis, Band, Bars, Heat, Line, Points, Rule, Texts
from deepbore.plots.on_matplotlib import draw, new_axes
from deepbore.plots.on_plotly import drawing
from deepbore.plots.style import UNIT, ValueAxis
from plane import SQUARE


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """A study of one objective with curves, pruned, failed, withdrawn and pending trials, and its journal."""
    path = tmp_path_factory.mktemp("one") / "run.jsonl"
    study = Study(SQUARE, seed=0, journal=path)

    def curve(params, trial):
        for step in range(4):
            trial.report(params["x"] + params["y"] + 1 / (1 + step), step=step)
            if trial.id % 5 == 3:
                raise TrialPruned
        return Outcome.failure("bad") if trial.id == 7 else params["x"] + params["y"]

    study.optimize(curve, 14, progress=False)
    study.withdraw(2, "wrong")
    study.ask(1)
    study.fit()
    study.close()
    return study, path


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """A study of two objectives, of which trial 0 is infeasible, and its journal."""
    path = tmp_path_factory.mktemp("two") / "run.jsonl"
    study = Study(SQUARE, seed=0, directions={"loss": "minimize", "speed": "maximize"}, journal=path)
    study.optimize(
        lambda p, trial: Outcome((p["x"], p["x"] - p["y"] ** 2), constraints=[0.5 - trial.id]), 14, progress=False
    )
    study.fit()
    study.close()
    return study, path


CHARTS = [name for name in records.__all__ if name not in ("comparison", "draw", "to_plotly")]  # of a study
OF_JOURNALS = ("history", "curves", "timeline")
ALL = [("one", name) for name in CHARTS if name not in ("front", "hypervolume")]
ALL += [("two", name) for name in CHARTS if name not in ("curves",)]


def size(layer):
    """The number of points."""
    return len(layer.low if isinstance(layer, Band) else layer.y)


def charts_of(name, run):
    found = getattr(records, name)(run)
    return found if isinstance(found, list) else [found]


@pytest.mark.parametrize(("which", "name"), ALL)
def test_each_picture_is_drawn_from_its_record(which, name, request):
    study, _ = request.getfixturevalue(which)
    charts = charts_of(name, study)
    figure = getattr(plots, name)(study)
    axes = [each for each in figure.axes if each.get_label() != "<colorbar>"]
    assert len(axes) >= len(charts) > 0
    for chart, drawn in zip(charts, axes, strict=False):
        assert chart.title
        assert chart.x.title or chart.x.is_hidden
        points = [layer for layer in chart.layers if isinstance(layer, Points) and layer.name and len(layer.x)]
        for layer in points:  # one scatter for each symbol
            parts = [each for each in drawn.collections if each.get_zorder() == chart.layers.index(layer) + 2]
            assert sum(len(part.get_offsets()) for part in parts) == len(layer.x)
        lines = [layer for layer in chart.layers if isinstance(layer, Line)]
        curves = [each for each in drawn.lines if len(each.get_xdata()) != 2 or each.get_label() != "_child0"]
        assert all(any(np.array_equal(each.get_ydata(), line.y, equal_nan=True) for each in curves) for line in lines)


@pytest.mark.parametrize(("which", "name"), ALL)
def test_plotly_gets_each_record_without_what_only_the_page_knows(which, name, request):
    study, _ = request.getfixturevalue(which)
    for chart in charts_of(name, study):
        figure = records.to_plotly(chart)
        assert figure["layout"]["title"]["text"]
        layers = [layer for layer in chart.layers if not isinstance(layer, (Rule, Texts)) and size(layer) > 0]
        assert len(figure["data"]) == len(layers)
        for trace, layer in zip(figure["data"], layers, strict=True):
            assert not {"trials", "more"} & trace.keys()
            if layer.trials is not None:
                assert [line.partition("<br>")[0] for line in trace["hovertext"]] == [
                    f"trial {trial}" for trial in layer.trials
                ]


@pytest.mark.parametrize("which", ["one", "two"])
def test_a_journal_and_its_study_have_the_same_records(which, request):
    study, path = request.getfixturevalue(which)
    record = read_record(path)
    for name in OF_JOURNALS + (("front", "hypervolume") if which == "two" else ()):
        for one, other in zip(charts_of(name, study), charts_of(name, record), strict=True):
            assert (one.title, one.x, one.y) == (other.title, other.x, other.y)
            assert len(one.layers) == len(other.layers)
            for layer, again in zip(one.layers, other.layers, strict=True):
                assert np.array_equal(layer.y, again.y, equal_nan=True)


def test_a_history_has_the_values_of_each_objective(two):
    study, _ = two
    for j, chart in enumerate(records.history(study)):
        drawn = {int(row): value for layer in chart.layers for row, value in zip(layer.trials, layer.y, strict=True)}
        assert chart.y.title == ["loss", "speed"][j]
        assert drawn == pytest.approx({trial.id: trial.values[j] for trial in study.trials})
    assert [axes.get_ylabel() for axes in plots.history(study).axes] == ["loss", "speed"]


def test_a_front_has_what_no_feasible_trial_beats(two):
    study, _ = two
    chart = records.front(study)
    feasible = [trial for trial in study.trials if trial.id > 0]

    def beats(one, other):
        return one.values != other.values and one.values[0] <= other.values[0] and one.values[1] >= other.values[1]

    expected = [trial.id for trial in feasible if not any(beats(other, trial) for other in feasible)]
    assert sorted(chart.layer("beaten by none").trials) == expected
    assert chart.layer("infeasible").trials.tolist() == [0]
    assert (chart.x.title, chart.y.title) == ("loss (minimize)", "speed (maximize)")


def test_the_hypervolume_is_that_of_the_front(two):
    study, _ = two
    (line,) = records.hypervolume(study).layers
    signed = np.array([[trial.values[0], -trial.values[1]] for trial in study.trials])
    reference = signed[:10].max(0)
    assert line.y[-1] == pytest.approx(hypervolume(signed[1:], reference))
    assert (np.diff(line.y) >= 0).all()


def test_curves_have_what_was_reported(one):
    study, _ = one
    drawn = {}
    for layer in records.curves(study).layers:
        if isinstance(layer, Line):
            for trial, step, value in zip(layer.trials, layer.x, layer.y, strict=True):
                drawn.setdefault(int(trial), {}).update({} if np.isnan(step) else {step: value})
    assert set(drawn) == {trial.id for trial in study.trials if trial.reports and trial.id != 2}  # which is withdrawn
    best = study.best_trial
    assert drawn[best.id] == pytest.approx(dict(best.reports))


def test_bars_of_a_timeline_are_as_long_as_trials_took(one):
    study, _ = one
    chart = records.timeline(study, {0: (100.0, 101.5), 1: (100.5, 102.0), 4: (102.0, 104.0)})
    (bars,) = chart.layers
    assert (bars.base.tolist(), bars.length.tolist(), bars.y.tolist()) == ([0, 0.5, 2], [1.5, 1.5, 2], [0, 1, 0])
    assert chart.x.title == "seconds since the first trial began"
    assert chart.y.ticks == ["1", "2"]


def test_one_objective_has_no_front(one):
    for name in ("front", "hypervolume"):
        with pytest.raises(SettingError, match=r"at least two objectives.*Use history"):
            getattr(plots, name)(one[0])


def test_what_is_no_run_is_refused():
    for name in CHARTS:
        with pytest.raises(SettingError, match="what is drawn is a study"):
            getattr(plots, name)("run.jsonl")


@pytest.mark.parametrize(
    ("k", "name"), [(1, "history"), (1, "curves"), (1, "timeline"), (2, "front"), (2, "hypervolume")]
)
def test_a_run_without_a_trial_is_drawn_with_a_remark_or_empty(k, name):
    study = Study(SQUARE, directions=["minimize"] * k)
    (chart,) = charts_of(name, study)
    assert all(len(layer.y) == 0 for layer in chart.layers)
    assert chart.remark or name == "front"
    assert getattr(plots, name)(study).axes
    assert drawing(chart).data == []


def test_slices_of_an_objective_that_is_none_are_refused(one, two):
    for study, objective in ((one[0], 1), (two[0], 2), (two[0], -1)):
        with pytest.raises(SettingError, match="objective must be the place"):
            plots.slices(study, objective=objective)
    assert records.slices(two[0], objective=1)[0].y.title == "predicted speed"


LAYERS = [
    Points(np.array([0.0, 1.0]), np.array([0.2, 0.8]), symbols=["up", "circle"], arms=(np.zeros(2), np.ones(2))),
    Line(np.array([0.0, 1.0, 2.0]), np.array([0.2, np.nan, 0.4]), dash="dash", steps=True),
    Band(np.arange(3.0), np.zeros(3), np.ones(3), colour="#1a7f5a", opacity=0.2),
    Bars(np.zeros(2), np.ones(2), np.arange(2.0), ends=["a", "b"]),
    Heat(np.arange(2.0), np.arange(3.0), np.full((3, 2), 0.5), ValueAxis(0.1, 1.0, log=True), less_is_better=True),
    Rule(x=0.5, colour="#1a7f5a"),
    Rule(y=0.5, name="optimum", colour="#1a7f5a"),
]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: type(layer).__name__)
def test_both_pens_know_each_layer(layer):
    chart = Chart("a title", [layer], Axis("across"), Axis("up", UNIT))
    axes = new_axes(3, 3)
    draw(chart, axes)
    assert axes.lines or axes.collections or axes.patches
    made = drawing(chart)
    assert len(made.data) + len(made.layout.get("shapes", [])) == 1


def test_every_record_has_a_picture_of_its_name_and_a_docstring():
    for name in CHARTS:
        assert name in plots.__all__
        assert inspect.getdoc(getattr(plots, name))
    with pytest.raises(KeyError, match="'worst' is none of the layers"):
        Chart("t", []).layer("worst")


def test_text_of_the_user_is_no_html_of_plotly():
    study = Study({"x": Real(0, 1)}, directions={"<b>a": "minimize", "b": "minimize"}, seed=0)
    study.add({"x": [0.1, 0.2]}, [[1.0, 2.0], [2.0, 1.0]])
    text = drawing(records.front(study)).layout["xaxis"]["title"]["text"]
    assert text == "&lt;b&gt;a (minimize)"
