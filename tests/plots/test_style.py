"""What all pictures have in common: names, axes, ticks, and that looking changes nothing."""

import copy

import numpy as np
import pytest
import torch

import deepbore as db
from deepbore import Categorical, Condition, Integer, Ordinal, Real, SearchSpace, Study, plots, plots as pictures
from deepbore.errors import SettingError
from deepbore.plots import history, pairs, records, slices
from deepbore.plots.on_matplotlib import tick_labels
from deepbore.plots.on_plotly import value_axis
from deepbore.plots.page.sections import parallel_section
from deepbore.plots.parallel_chart import Parallel
from deepbore.plots.sources import record_of
from deepbore.plots.style import ValueAxis, short_names
from drawn_studies import CUBE, LINE, MIXED, NAN, told, trained
from pictured import DOTTED, tried_on
from plane import SQUARE
from tried import tried


@pytest.mark.parametrize(
    ("values", "sign", "log", "cut"),
    [
        (np.linspace(1, 2, 30), 1, False, False),
        ([*np.linspace(1, 2, 30), 1e18], 1, False, True),
        ([*np.linspace(1, 2, 30), -1e18], -1, False, True),
        (np.geomspace(1e-6, 1, 30), 1, True, False),
        ([*np.geomspace(1e-6, 1, 30), 1e80], 1, True, True),
        (np.linspace(-5, 5, 30), 1, False, False),
        ([1.0], 1, False, False),
        ([0.0, 0.0], 1, False, False),
        ([1e308, -1e308], 1, False, False),
    ],
)
def test_the_axis_is_chosen_by_the_data(values, sign, log, cut):
    axis = ValueAxis.of(np.array(values), sign)
    assert (axis.log, axis.cut) == (log, cut)
    best = (np.min if sign > 0 else np.max)(values).clip(-1e300, 1e300)
    assert axis.low <= best <= axis.high
    assert axis.low < axis.high


def test_an_outlier_does_not_flatten_a_history():
    axis = ValueAxis.of(np.array([*np.linspace(1, 2, 30), 1e18]))
    assert 2 < axis.high < 3
    few = ValueAxis.of(np.array([1.0, 2.0, 3.0, 2.0, 2.5, 1.5, 1.2, 1.1, 2.2, 1e9]))
    assert (few.log, few.cut) == (False, True)
    assert 2.5 <= few.high < 4


def test_there_is_no_axis_without_values():
    assert ValueAxis.of(np.array([np.nan, np.inf])) is None


OF_ALL = [pictures.history, pictures.parallel_coordinates]

OF_CLASSIFIER = [pictures.importance, pictures.slices, pictures.pairs, pictures.calibration]


@pytest.fixture(scope="module")
def study():
    return trained()


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


# regression: each of these was wrong once
def test_pictures_reach_to_the_ends_of_numbers(recwarn):
    space = db.SearchSpace({"x": db.Real(1e-290, 1e300, log=True), "y": db.Real(0, 1)})
    study = db.Study(space, seed=0)
    tried(study, 12, lambda params: params["y"])
    study.fit()
    for picture in (slices, pairs):
        picture(study).canvas.draw()
    assert not [each for each in recwarn if "deepbore" in each.filename]


@pytest.mark.parametrize(("low", "high", "every"), [(1e-3, 10, 1), (1e-12, 1, 2), (2, 30, None)])
def test_a_logarithmic_axis_has_powers_of_ten_where_there_are_several(low, high, every):
    assert value_axis(ValueAxis(low, high, True, False), "value").get("dtick") == every


def test_fixed_parameters_stay_on_their_axes():
    space = db.SearchSpace({"x": db.Real(0, 1), "c": db.Categorical(["a", "b", "c", "d"])})
    for fixed in ("a", "b"):
        study = db.Study(space, seed=0)
        tried(study, 8, lambda params: params["x"])
        study.fix({"c": fixed})
        heights = Parallel.of(record_of(study), ["x", "c"], 8).heights
        assert np.isfinite(heights).all()
        assert ((heights > -0.1) & (heights < 1.1)).all()


def test_pictures_of_the_trials_are_about_this_run(after_a_task):
    (chart,) = records.slices(after_a_task, ["x"])
    assert len(next(layer.trials for layer in chart.layers if layer.trials is not None)) == 12


@pytest.mark.parametrize(
    "draw",
    [
        lambda study: plots.slices(study, parameters=[]),
        lambda study: plots.importances(study, samples=0),
        lambda _: plots.importances([1.0]),
        lambda _: plots.shares("x"),
        lambda _: plots.parallel_coordinates([1.0]),
    ],
)
def test_what_can_not_be_drawn_is_refused(draw):
    study = tried_on(SQUARE, lambda params: params["x"])
    study.fit()
    with pytest.raises(SettingError):
        draw(study)


def test_short_names_differ_and_show_where_dotted_ones_do():
    assert short_names([*DOTTED.names, "lr"], 16) == ["…er.init_args.lr", "…gs.weight_decay", "…t_args.momentum", "lr"]
    assert short_names(["a long choice of this", "a long choice of that"], 10) == ["a long ch… (0)", "a long ch… (1)"]


def test_pictures_of_dotted_names_tell_parameters_apart(dotted):
    def texts(axes):
        return [text.get_text() for text in axes.texts if "…" in text.get_text()]

    assert len({axes.get_xlabel() for axes in plots.slices(dotted).axes if axes.get_xlabel()}) == 3
    assert len(set(texts(plots.parallel_coordinates(dotted).axes[0]))) == 3
    assert len({label.get_text() for label in plots.importance(dotted).axes[0].get_yticklabels()}) == 3


def test_choices_that_begin_alike_have_different_ticks():
    choices = ["torch.optim.Adam", "torch.optim.AdamW", "torch.optim.SGD"]
    study = Study(SearchSpace({"optimizer": Categorical(choices), "x": Real(0, 1)}), seed=0)
    study.optimize(lambda p: p["x"] + (p["optimizer"] == choices[1]), 12, progress=False)
    study.fit()
    (chart,) = parallel_section(record_of(study)).charts
    named = [note["text"] for note in chart.layout["annotations"] if note["x"] == 0 and "<b>" not in note["text"]]
    assert len(set(named)) == 3
    ticks = [[label.get_text() for label in axes.get_xticklabels()] for axes in plots.slices(study).axes]
    assert any(len(set(labels)) == 3 and all("…" in label for label in labels) for labels in ticks)
