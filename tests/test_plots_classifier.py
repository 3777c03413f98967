"""Pictures of what the classifier has learned, and the numbers in them."""

import numpy as np
import pytest
import torch
from sklearn.calibration import calibration_curve
from torchmetrics.functional.classification import binary_calibration_error

from deepbore import (
    Categorical,
    GPClassifier,
    Integer,
    MLPClassifier,
    Outcome,
    Real,
    SearchSpace,
    Study,
    ThresholdLabels,
    Training,
    plots as pictures,
)
from deepbore.errors import SettingError
from deepbore.plots.calibration_chart import Reliability
from deepbore.plots.importance_chart import exchanged
from drawn_studies import CUBE, LINE, MIXED, NAN, Known, told, trained


@pytest.fixture(scope="module")
def study():
    return trained()


def known(formula, space=CUBE, n=512):
    """A study of evenly spread trials with this formula as its classifier."""
    study = Study(space, classifier=Known(formula))
    for row in study.observations.reserve(space.sobol(n, seed=0)):
        study.tell(row, row)
    study.fit(epochs=1)
    return study


# --- importance ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (lambda x: 0.5 * x[:, 0] + 0.25 * x[:, 1], [4 / 5, 1 / 5, 0]),  # variances 1/4 and 1/16 of one
        (lambda x: x[:, 0] * x[:, 1], [4 / 7, 4 / 7, 0]),  # V = 7/144, V_1 = V_2 = 3/144, V_12 = 1/144
    ],
)
def test_importance_is_the_total_effect_index_where_trials_are_uniform(formula, expected):
    found = pictures.importances(known(formula), samples=8192)
    assert [found[name] for name in CUBE.names] == pytest.approx(expected, abs=0.03)
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_importance_of_conditional_parameters():
    momentum = known(lambda x: torch.where(MIXED.active(x)[:, 3], x[:, 3], 0.0), MIXED)
    found = pictures.importances(momentum)
    assert found["lr"] == found["units"] == found["nesterov"] == 0
    assert found["momentum"] > 0.1
    assert found["optimizer"] > 0.1  # what it switches on matters


def test_the_only_parameter_has_the_importance_of_all():
    study = told(LINE, [3.0, 1.0, 2.0])
    study.fit(epochs=1)
    assert pictures.importances(study) == {"x": pytest.approx(1)}


def test_an_exchange_gives_points_of_the_space_and_leaves_what_does_not_depend_on_it():
    generator = torch.Generator().manual_seed(0)
    points, donors = MIXED.sample(200, generator), MIXED.sample(200, generator)
    for column, untouched in [(0, [1, 2, 3, 4]), (2, [0, 1]), (3, [0, 1, 2, 4])]:
        moved = exchanged(MIXED, points, donors, column, generator)
        assert torch.equal(MIXED.snap(moved), moved)
        assert torch.equal(moved[:, untouched], points[:, untouched])
        active = MIXED.active(points)[:, column]
        assert torch.isin(moved[active, column], donors[MIXED.active(donors)[:, column], column]).all()
        assert not torch.equal(moved[:, column], points[:, column])


def test_bars_of_importance_are_in_order(study):
    figure = pictures.importance(study)
    bars = [bar.get_width() for bar in figure.axes[0].patches]
    assert bars == list(pictures.importances(study).values())
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == list(pictures.importances(study))
    assert figure.axes[0].yaxis_inverted()


# --- slices and pairs ------------------------------------------------------------------------------------------------


def test_a_slice_is_the_classifier_along_one_parameter_at_the_best_configuration(study):
    figure = pictures.slices(study, parameters=["lr", "units", "momentum"])
    lr = figure.axes[0]
    assert lr.get_xscale() == "log"
    assert lr.get_xlabel() == "lr"
    curve = next(line for line in lr.lines if len(line.get_xdata()) > 100)
    best = study.best_trial.params
    for k in (0, 57, 200):
        point = MIXED.encode([{**best, "lr": curve.get_xdata()[k]}])
        assert curve.get_ydata()[k] == pytest.approx(float(study.classifier.probability(point)), abs=1e-6)
    low, high = lr.collections[0].get_paths()[0].get_extents().intervaly
    assert low <= min(curve.get_ydata()) <= max(curve.get_ydata()) <= high


def test_the_band_of_a_probit_head_goes_by_the_probit():
    """Its ends are Phi(mean -+ std): version 0.1 drew the sigmoid of probits."""
    study = told(LINE, [3.0, 1.0, 2.0, 5.0, 4.0], classifier=GPClassifier())
    study.fit(epochs=1)
    (panel,) = pictures.slices(study).axes
    band, curve = panel.collections[0].get_paths()[0].vertices, panel.lines[0]
    point = LINE.encode([{"x": curve.get_xdata()[100]}])
    posterior = study.classifier.posterior(point)
    expected = torch.special.ndtr(posterior.mean + torch.tensor([[-1.0], [1.0]]) * posterior.std).flatten()
    ends = band[np.isclose(band[:, 0], curve.get_xdata()[100], rtol=1e-12)][:, 1]
    assert sorted(set(ends.round(9))) == pytest.approx(expected.tolist(), abs=1e-5)


def test_a_head_that_does_not_know_how_sure_it_is_has_no_band():
    space = SearchSpace({"x": Real(0, 1), "k": Categorical(["a", "b"])})
    study = told(space, [3.0, 1.0, 2.0], classifier=MLPClassifier(training=Training(steps=5)))
    study.fit(epochs=1)
    panel = next(axes for axes in pictures.slices(study).axes if axes.get_xlabel() == "x")
    outline = panel.collections[0].get_paths()[0].vertices
    assert np.isin(outline[:, 1], panel.lines[0].get_ydata()).all()  # no wider than the curve itself
    figure = pictures.landscape(study)
    assert [axes.get_ylabel() for axes in figure.axes] == ["k", "class probability"]  # and no picture of deviations


def test_a_slice_shows_the_labels_of_the_trials_that_have_the_parameter(study):
    (panel,) = pictures.slices(study, parameters=["momentum"]).axes
    sgd = [trial for trial in study.trials[:40] if trial.params["optimizer"] == "sgd"]
    assert 0 < len(sgd) < 40
    drawn = panel.collections[-1].get_offsets()
    assert np.allclose(sorted(drawn[:, 0]), sorted(trial.params["momentum"] for trial in sgd))


def test_categories_have_marks_and_names(study):
    (panel,) = pictures.slices(study, parameters=["optimizer"]).axes
    assert [label.get_text() for label in panel.get_xticklabels()] == ["sgd", "adam"]
    marks = panel.collections[1].get_offsets()
    best = study.best_trial.params
    assert best["optimizer"] == "sgd"
    expected = study.classifier.probability(
        MIXED.encode([best, {"lr": best["lr"], "units": best["units"], "optimizer": "adam"}])
    )
    assert np.allclose(marks[:, 1], expected, atol=1e-6)


def test_pairs_are_the_classifier_over_two_parameters(study):
    figure = pictures.pairs(study, parameters=["lr", "units"])
    panel, _bar = figure.axes
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
    mesh = panel.collections[0]
    best, table = study.best_trial.params, np.asarray(mesh.get_array())
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
    assert {int(column) for column in np.argwhere(~np.ma.getmaskarray(hatched.get_array()))[:, 1]} == {1}  # adam
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


# --- calibration -----------------------------------------------------------------------------------------------------


def test_reliability_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    pi = rng.random(500) ** 3
    z = (rng.random(500) < pi).astype(float)
    found = Reliability.of(pi, z, bins=7)
    theirs_z, theirs_pi = calibration_curve(z, pi, n_bins=7)
    assert found.counts.sum() == 500
    assert np.allclose(found.mean_pi[found.counts > 0], theirs_pi)
    assert np.allclose(found.mean_z[found.counts > 0], theirs_z)


def test_the_calibration_error_agrees_with_torchmetrics():
    study = told(CUBE, np.random.default_rng(0).random(60).tolist(), pending=5, labels=ThresholdLabels(0.4))
    study.fit(epochs=2)
    curve, histogram = pictures.calibration(study).axes
    z = torch.tensor([trial.value for trial in study.trials[:60]])
    z = (z <= z.sort().values[23]).long()  # the 24 best of 60
    expected = float(
        binary_calibration_error(study.classifier.probability(study.observations.points[:60]), z, n_bins=10)
    )
    assert f"error {expected:.3f}" in curve.get_legend().get_texts()[1].get_text()
    assert sum(bar.get_height() for bar in histogram.patches) == 60


def test_bad_bins_are_refused(study):
    with pytest.raises(SettingError, match="bins=0"):
        pictures.calibration(study, bins=0)


# --- landscapes ------------------------------------------------------------------------------------------------------


def test_a_line_shows_values_tau_what_is_next_and_the_classifier():
    study = told(LINE, [3.0, 1.0, 2.0, NAN, 5.0], pending=1, direction="maximize")
    study.fit(epochs=2)
    values, _corner, pi, shares = pictures.landscape(study, objective=lambda params: params["x"] / 20).axes
    named = {artist.get_label(): artist for artist in [*values.lines, *values.collections]}
    assert {"objective", "good", "not good", "latest", "failed", "tau", "next"} <= set(named)
    assert set(named["tau"].get_ydata()) == {3}  # the better half of four values
    assert sorted(named["good"].get_offsets()[:, 1]) == [3, 5]
    assert named["next"].get_xdata()[0] == pytest.approx(study.trials[5].params["x"])
    assert np.allclose(named["objective"].get_ydata(), named["objective"].get_xdata() / 20)
    assert pi.get_xscale() == values.get_xscale() == "log"
    assert pi.get_ylabel() == "expected label"
    assert shares.lines[0].get_ydata().tolist() == [5, 5, 3, 2, 1]  # from the best on


def test_a_plane_shows_the_classifier_and_where_the_objective_is_tau():
    space = SearchSpace({"x": Real(0, 1), "k": Integer(1, 9)})
    study = told(space, [], pending=12)
    for trial in study.trials:
        study.tell(trial, trial.params["x"])
    study.fit(epochs=2)
    figure = pictures.landscape(study, objective=lambda params: params["x"])
    pi, deviation, *_bars = figure.axes
    (border,) = (c for c in pi.collections if hasattr(c, "levels"))
    assert np.allclose(border.get_paths()[0].vertices[:, 0], sorted(t.value for t in study.trials)[5])
    assert (np.asarray(deviation.collections[0].get_array()) >= 0).all()


def test_an_objective_that_gives_outcomes_can_be_drawn():
    study = told(LINE, [3.0, 1.0, 2.0])
    study.fit(epochs=1)
    values = pictures.landscape(study, objective=lambda params: Outcome(params["x"], constraints=[1.0])).axes[0]
    (drawn,) = (line for line in values.lines if line.get_label() == "objective")
    assert np.allclose(drawn.get_ydata(), drawn.get_xdata())


def test_a_landscape_needs_few_parameters(study):
    with pytest.raises(SettingError, match=r"has 5\. Use slices or pairs"):
        pictures.landscape(study)
