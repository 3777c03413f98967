"""Pictures of a run, and the numbers in them; what all pictures have in common."""

import copy
import math

import numpy as np
import pytest
import torch

from deepbore import (
    Categorical,
    Condition,
    EmphasiseChanges,
    Integer,
    Ordinal,
    Real,
    SearchSpace,
    ThresholdLabels,
    plots as pictures,
)
from deepbore.errors import SettingError
from deepbore.labels import Labelling, Labels
from deepbore.plots import best_and_tau, history
from deepbore.plots.on_matplotlib import tick_labels
from drawn_studies import CUBE, LINE, MIXED, NAN, told, trained

OF_ALL = [pictures.history, pictures.parallel_coordinates]
OF_CLASSIFIER = [pictures.importance, pictures.slices, pictures.pairs, pictures.calibration]


@pytest.fixture(scope="module")
def study():
    return trained()


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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    assert tick_labels(values) == expected
