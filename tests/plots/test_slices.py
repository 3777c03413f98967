"""Slices along one parameter, and pairs of two."""

import numpy as np
import pytest
import torch

from deepbore import Categorical, GPClassifier, MLPClassifier, Real, SearchSpace, Training, plots, plots as pictures
from deepbore.errors import SettingError
from deepbore.plots import records
from deepbore.plots.chart import Band, Heat, Line, Points
from deepbore.plots.predictions import Units
from drawn_studies import LINE, MIXED, told, trained
from pictured import tried_on
from plane import SQUARE

PI = Units("class probability")


def the(chart, kind):
    """The first layer of a kind."""
    return next(layer for layer in chart.layers if isinstance(layer, kind))


@pytest.fixture(scope="module")
def study():
    return trained()


def test_a_slice_is_the_classifier_along_one_parameter_at_the_best_configuration(study):
    chart = records.slices(study, ["lr", "units", "momentum"], units=PI)[0]
    assert (chart.x.title, chart.x.scale.log, chart.y.title) == ("lr", True, "class probability")
    curve, (band,) = the(chart, Line), (layer for layer in chart.layers if isinstance(layer, Band))
    best = study.best_trial.params
    for k in (0, 57, 200):
        point = MIXED.encode([{**best, "lr": curve.x[k]}])
        assert curve.y[k] == pytest.approx(float(study.classifier.probability(point)), abs=1e-6)
    assert (band.low <= curve.y).all()
    assert (curve.y <= band.high).all()


def test_a_slice_is_in_the_users_units(study):
    """A trial's expected label stands for its own value, as the labels are graded by value."""
    line = told(SearchSpace({"x": Real(0, 1)}), np.linspace(50, 70, 12).tolist(), direction="maximize")
    line.fit()
    (chart,) = records.slices(line)
    assert chart.y.title == "predicted value"
    trials, curve = the(chart, Points), the(chart, Line)
    assert sorted(trials.y) == pytest.approx(sorted(trial.value for trial in line.trials))
    labels = line.state.recipe.labels(line.observations).z[:, 0].numpy()
    pi = line.classifier.probability(line.space.encode([{"x": float(curve.x[100])}])).item()
    order = np.argsort(labels)
    values = np.array([trial.value for trial in line.trials])
    assert curve.y[100] == pytest.approx(np.interp(pi, labels[order], values[order]), abs=1.0)
    figure = pictures.slices(line)
    assert figure.axes[0].get_ylabel() == "predicted value"
    assert np.allclose(figure.axes[0].lines[-1].get_ydata(), curve.y)


def test_the_band_of_a_probit_head_goes_by_the_probit():
    """Its ends are Phi(mean -+ std): version 0.1 drew the sigmoid of probits."""
    study = told(LINE, [3.0, 1.0, 2.0, 5.0, 4.0], classifier=GPClassifier())
    study.fit(epochs=1)
    (chart,) = records.slices(study, units=PI)
    band = next(layer for layer in chart.layers if isinstance(layer, Band))
    point = LINE.encode([{"x": band.x[100]}])
    posterior = study.classifier.posterior(point)
    expected = torch.special.ndtr(posterior.mean + torch.tensor([[-1.0], [1.0]]) * posterior.std).flatten()
    assert [band.low[100], band.high[100]] == pytest.approx(expected.tolist(), abs=1e-5)


def test_a_head_that_does_not_know_how_sure_it_is_has_no_band():
    space = SearchSpace({"x": Real(0, 1), "k": Categorical(["a", "b"])})
    study = told(space, [3.0, 1.0, 2.0], classifier=MLPClassifier(training=Training(steps=5)))
    study.fit(epochs=1)
    chart = next(chart for chart in records.slices(study) if chart.x.title == "x")
    band = next(layer for layer in chart.layers if isinstance(layer, Band))
    assert (band.low == band.high).all()  # no wider than the curve itself
    figure = pictures.landscape(study)
    assert [axes.get_ylabel() for axes in figure.axes] == ["k", "class probability"]  # and no picture of deviations


def test_a_slice_shows_the_trials_that_have_the_parameter(study):
    (chart,) = records.slices(study, ["momentum"], units=PI)
    sgd = [trial for trial in study.trials[:40] if trial.params["optimizer"] == "sgd"]
    assert 0 < len(sgd) < 40
    assert np.allclose(sorted(the(chart, Points).x), sorted(trial.params["momentum"] for trial in sgd))


def test_categories_have_marks_and_names(study):
    (panel,) = pictures.slices(study, parameters=["optimizer"]).axes
    assert [label.get_text() for label in panel.get_xticklabels()] == ["sgd", "adam"]
    (chart,) = records.slices(study, ["optimizer"], units=PI)
    marks = chart.layers[-1]
    best = study.best_trial.params
    assert best["optimizer"] == "sgd"
    expected = study.classifier.probability(
        MIXED.encode([best, {"lr": best["lr"], "units": best["units"], "optimizer": "adam"}])
    )
    assert np.allclose(marks.y, expected, atol=1e-6)


def test_pairs_are_the_classifier_over_two_parameters(study):
    figure = pictures.pairs(study, parameters=["lr", "units"])
    panel, bar = figure.axes
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
    assert bar.get_ylabel() == "predicted value"
    (chart,) = records.pairs(study, ["lr", "units"], units=PI)
    best, table = study.best_trial.params, the(chart, Heat).table
    corner = MIXED.encode([{**best, "lr": 1e-5, "units": 1024}])
    assert table[-1, 0] == pytest.approx(float(study.classifier.probability(corner)), abs=1e-6)


def test_every_pair_of_the_most_important_has_a_panel(study):
    figure = pictures.pairs(study)
    shown = [axes for axes in figure.axes if axes.get_xlabel()]
    first = list(pictures.importances(study))[:4]
    assert [(axes.get_xlabel(), axes.get_ylabel()) for axes in shown] == [
        (first[i], first[j]) for i in range(4) for j in range(i + 1, 4)
    ]


def test_what_is_inactive_is_hatched_and_its_trials_lie_on_the_frame(study):
    panel = pictures.pairs(study, parameters=["optimizer", "momentum"]).axes[0]
    (hatched,) = (collection for collection in panel.collections if collection.get_hatch())
    assert {path.vertices[:4, 0].mean() for path in hatched.get_paths()} == {1}  # adam
    adam = sum(trial.params["optimizer"] == "adam" for trial in study.trials)
    on_frame = [c.get_offsets()[:, 1] == panel.get_ylim()[0] for c in panel.collections[2:] if len(c.get_offsets())]
    best_is_adam = study.best_trial.params["optimizer"] == "adam"  # it is drawn twice
    assert sum(on.sum() for on in on_frame) == adam + best_is_adam


def test_unknown_parameters_are_refused(study):
    for picture in (pictures.slices, pictures.pairs, pictures.parallel_coordinates):
        with pytest.raises(SettingError, match="'speed'"):
            picture(study, parameters=["lr", "speed"])
    with pytest.raises(SettingError, match="Use slices"):
        pictures.pairs(study, parameters=["lr"])


# regression: this was wrong once
@pytest.mark.slow
def test_what_stands_still_is_drawn_as_it_was_learned():
    study = tried_on(SQUARE, lambda params: params["x"], 15)
    study.fit()
    matters, explains = plots.importances(study), plots.shares(study)
    lines = [plots.slices(study, parameters=["x"]), plots.pairs(study)]
    study.fix({"x": 0.5})
    assert plots.importances(study) == pytest.approx(matters)
    assert plots.shares(study) == explains
    for before, after in zip(lines, [plots.slices(study, parameters=["x"]), plots.pairs(study)], strict=True):
        (one, other) = (figure.axes[0] for figure in (before, after))
        drawn = [axes.lines[-1].get_ydata() if axes.lines else axes.collections[0].get_array() for axes in (one, other)]
        assert np.allclose(*drawn)
        assert np.ptp(drawn[1]) > 0.1
