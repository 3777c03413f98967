"""Pictures, and the numbers in them."""

import copy
import math

import numpy as np
import pytest
import torch
from sklearn.calibration import calibration_curve
from torchmetrics.functional.classification import binary_calibration_error

from deepbore import (
    Categorical,
    Condition,
    EmphasiseChanges,
    GPClassifier,
    Integer,
    MLPClassifier,
    Ordinal,
    Outcome,
    Real,
    SearchSpace,
    Study,
    ThresholdLabels,
    Training,
    plots as pictures,
)
from deepbore.classifiers import Classifier
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import PointEstimate
from deepbore.errors import SettingError
from deepbore.labels import Labelling, Labels
from deepbore.plots import best_and_tau, history
from deepbore.plots.permutation_importance import exchanged
from deepbore.plots.reliability_diagram import reliability
from deepbore.plots.scales import short
from deepbore.testing import TOY_SPACES

NAN = float("nan")
MIXED = TOY_SPACES["mixed"]
CUBE = SearchSpace({f"x{i}": Real(0, 1) for i in range(3)})
LINE = SearchSpace({"x": Real(1, 100, log=True)})
OF_ALL = [pictures.history, pictures.parallel_coordinates]
OF_CLASSIFIER = [pictures.importance, pictures.slices, pictures.pairs, pictures.calibration]


def told(space, values, pending=0, **settings):
    """A study of random configurations with these values, NaN for failures, and some more that are pending."""
    study = Study(space, **settings)
    points = space.sample(len(values) + pending, torch.Generator().manual_seed(0))
    for row, value in zip(study.observations.reserve(points), values, strict=False):
        study.tell(row, value)
    return study


def mixed(params):
    """A value that `nesterov` has no part in."""
    loss = abs(math.log10(params["lr"]) + 2.5) + abs(math.log2(params["units"]) - 6) / 4
    return loss + (1.0 if params["optimizer"] == "adam" else abs(params["momentum"] - 0.9))


@pytest.fixture(scope="module")
def study():
    """40 trials in a mixed space, one failed and two pending, and a trained classifier."""
    study = told(MIXED, [], pending=42)
    for trial in study.trials[:40]:
        study.tell(trial, mixed(trial.params), failed=trial.id == 7)
    study.fit(epochs=3)
    return study


class Known(Classifier):
    """A classifier that is a formula: points (n x d) -> pi (n)."""

    link = Link.IDENTITY

    def __init__(self, formula):
        super().__init__()
        self.formula = formula

    def build(self, space, outputs):
        pass

    def fit(self, batch):
        return {}

    def posterior(self, points):
        return PointEstimate(self.formula(points), self.link, "Known")


def known(formula, space=CUBE, n=512):
    """A study of evenly spread trials with this formula as its classifier."""
    study = Study(space, classifier=Known(formula))
    for row in study.observations.reserve(space.sobol(n, seed=0)):
        study.tell(row, row)
    study.fit(epochs=1)
    return study


# --- history ---------------------------------------------------------------------------------------------------------


def test_best_and_tau_are_those_of_each_moment():
    best, tau = best_and_tau(np.array([3.0, np.nan, 1.0, 2.0, 0.0]), gamma=0.5)
    assert best.tolist() == [3, 3, 1, 1, 0]
    assert tau.tolist() == [3, 3, 1, 2, 1]  # the ceil(n / 2)-th smallest of n values


def test_the_picture_colours_values_by_label(tmp_path):
    figure = history([3, 1, 2, np.nan, 9], direction="maximize", gamma=0.3, path=tmp_path / "history.png")
    good, bad = figure.axes[0].collections[:2]
    assert good.get_offsets()[:, 1].tolist() == [3, 9]
    assert bad.get_offsets()[:, 1].tolist() == [1, 2]
    assert (tmp_path / "history.png").read_bytes().startswith(b"\x89PNG")


def test_outliers_do_not_squeeze_the_rest():
    figure = history([*np.linspace(1, 2, 30), 1e18])
    low, high = figure.axes[0].get_ylim()
    assert low < 1
    assert 2 < high < 3


def test_a_run_of_failures_can_be_drawn():
    for values in ([np.nan, np.nan], []):
        assert [text.get_text() for text in history(values).axes[0].texts] == ["no value yet"]


def test_a_bad_gamma_is_refused():
    for gamma in (2, 0):
        with pytest.raises(SettingError, match=f"gamma={gamma}"):
            history([1.0], gamma=gamma)


def test_a_studys_history_knows_its_direction_and_gamma_and_leaves_pending_trials_out():
    study = told(CUBE, [3, 1, 2, NAN, 9], pending=2, direction="maximize", labels=ThresholdLabels(0.3))
    axes = history(study).axes[0]
    drawn = [collection.get_offsets()[:, 1].tolist() for collection in axes.collections[:2]]
    assert drawn == [[3, 9], [1, 2]]
    assert "tau (gamma = 0.3)" in [text.get_text() for text in axes.get_legend().get_texts()]
    (failed,) = (c for c in axes.collections if c.get_label() == "failed")
    assert [segment[0, 0] for segment in failed.get_segments()] == [4]


def test_the_history_knows_the_gamma_within_another_labelling():
    study = told(CUBE, [3, 1, 2], labels=EmphasiseChanges(ThresholdLabels(0.3)))
    assert "tau (gamma = 0.3)" in [text.get_text() for text in history(study).axes[0].get_legend().get_texts()]


class BelowTwo(Labelling):
    """Labels that know of no threshold: 1 for a first value below 2 in a feasible trial."""

    objectives = None

    def __call__(self, observations):
        z = (observations.values[:, :1] < 2).float()
        return Labels(z, torch.ones(len(z)), separable=bool(z.min() < z.max()))


def test_labels_without_a_threshold_can_be_drawn(tmp_path):
    study = told(LINE, [3, 1, NAN, 1.5, 9], pending=1, labels=BelowTwo())
    axes = history(study).axes[0]
    drawn = [collection.get_offsets()[:, 1].tolist() for collection in axes.collections[:2]]
    assert drawn == [[1, 1.5], [3, 9]]
    named = {text.get_text() for text in axes.get_legend().get_texts()}
    assert not [name for name in named if name.startswith("tau")]
    study.fit(epochs=1)
    values = pictures.landscape(study).axes[0]
    assert "tau" not in {line.get_label() for line in values.lines}
    assert sorted(c.get_offsets()[:, 1].tolist() for c in values.collections[:2]) == [[1, 1.5], [3, 9]]
    for picture in [*OF_CLASSIFIER[:2], pictures.calibration]:
        picture(study).savefig(tmp_path / "picture.png", dpi=20)


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
    active = lambda x: MIXED.active(x)[:, 3]  # noqa: E731
    momentum = known(lambda x: torch.where(active(x), x[:, 3], 0.0), MIXED)
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


# --- parallel coordinates --------------------------------------------------------------------------------------------


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


# --- calibration -----------------------------------------------------------------------------------------------------


def test_reliability_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    pi = rng.random(500) ** 3
    z = (rng.random(500) < pi).astype(float)
    mean_pi, mean_z, counts = reliability(pi, z, bins=7)
    theirs_z, theirs_pi = calibration_curve(z, pi, n_bins=7)
    assert counts.sum() == 500
    assert np.allclose(mean_pi[counts > 0], theirs_pi)
    assert np.allclose(mean_z[counts > 0], theirs_z)


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
    assert {"objective", "class 1", "class 0", "latest", "failed", "tau", "next"} <= set(named)
    assert set(named["tau"].get_ydata()) == {3}  # the better half of four values
    assert sorted(named["class 1"].get_offsets()[:, 1]) == [3, 5]
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


# --- all of them -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("picture", OF_CLASSIFIER, ids=lambda f: f.__name__)
def test_an_untrained_classifier_is_refused_with_the_way_out(picture):
    untrained = told(MIXED, [1.0, 2.0, 3.0])
    with pytest.raises(SettingError, match=r"study\.fit\(\)"):
        picture(untrained)


@pytest.mark.parametrize(
    ("values", "says"),
    [([], "No trial has a value"), ([NAN] * 3, "No trial has a value"), ([1.0] * 3, "All values are equal")],
)
def test_where_nothing_is_learned_the_picture_says_why(values, says):
    study = told(MIXED, values, pending=1)
    study.fit(epochs=1)
    for picture in OF_CLASSIFIER:
        assert says in picture(study).texts[0].get_text()
    line = told(LINE, values, pending=1)
    line.fit(epochs=1)
    assert says in pictures.landscape(line).axes[2].texts[0].get_text()
    assert set(pictures.importances(line).values()) == {0.0}


@pytest.mark.slow
@pytest.mark.parametrize("values", [[NAN, 1.0], [3.0, 1.0, NAN, 2.0]])
def test_few_trials_are_enough(values, tmp_path):
    study = told(MIXED, values, pending=1)
    study.fit(epochs=1)
    for picture in [*OF_ALL, *OF_CLASSIFIER]:
        picture(study).savefig(tmp_path / "picture.png", dpi=20)


@pytest.mark.slow
def test_odd_spaces_can_be_drawn(tmp_path):
    space = SearchSpace(
        {
            "$unbalanced_{": Ordinal([None, True, "$a$b$"]),
            "many": Categorical([f"level number {k}" for k in range(300)]),
            "wide": Integer(-5, 100_000),
            "tiny": Real(-1e-9, 1e-9),
            "narrow": Real(3, 4, log=True),
            "rare": Real(0, 1, when=Condition("many", "level number 299")),
        }
    )
    study = told(space, np.random.default_rng(0).random(20).tolist())
    study.fit(epochs=1)
    for picture in [*OF_ALL, *OF_CLASSIFIER]:
        picture(study).savefig(tmp_path / "picture.png", dpi=20)
    rare = pictures.slices(study, parameters=["rare"]).axes[0]
    assert rare.texts[0].get_text() == "inactive in every trial"


def test_pictures_are_drawn_where_one_wants_them(study):
    figure = history([1.0])
    figure.clear()
    left, right = figure.subplots(1, 2)
    assert pictures.history(study, axes=left) is figure
    assert pictures.importance(study, axes=right) is figure
    for picture in (pictures.slices, pictures.pairs, pictures.calibration):
        figure.clear()
        assert picture(study, figure=figure) is figure
        assert figure.axes


def test_looking_does_not_change_the_run():
    def run(look):
        study = told(CUBE, [3.0, 1.0, 2.0, 5.0], n_initial=4, seed=1)
        for _ in range(3):
            (trial,) = study.ask()
            if look:
                for picture in [*OF_ALL, *OF_CLASSIFIER]:
                    picture(study)
            study.tell(trial, sum(trial.params.values()))
        return [trial.params for trial in study.trials]

    before = torch.random.get_rng_state(), copy.deepcopy(np.random.get_state())
    assert run(look=False) == run(look=True)
    assert torch.equal(before[0], torch.random.get_rng_state())
    assert (before[1][1] == np.random.get_state()[1]).all()


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        (Real(1e-5, 1e-1, log=True), ["1e-5", "1e-4", "0.001", "0.01", "0.1"]),
        (Real(1, 10, log=True), ["1", "2", "5", "10"]),
        (Real(0, 1), ["0", "0.25", "0.5", "0.75", "1"]),
        (Integer(1, 4), ["1", "2", "3", "4"]),
        (Integer(16, 512, log=True), ["20", "50", "100", "200", "500"]),
        (Ordinal([1, 2.5, None]), ["1", "2.5", "None"]),
        (Categorical(["a", "$b", "a very long name"]), ["a", r"\$b", "a very long…"]),
        (Real(3.1, 3.2, log=True), ["3.1", "3.125", "3.15", "3.175", "3.2"]),
    ],
)
def test_ticks_are_round_values_of_the_parameter(parameter, expected):
    values = parameter.ticks(5)
    parameter.encode(values)
    assert [short(value) for value in values] == expected
