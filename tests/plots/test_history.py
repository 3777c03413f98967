"""Pictures of how a run went: the best so far, tau, and labels."""

import math

import numpy as np
import pytest
import torch

import deepbore as db
from deepbore import EmphasiseChanges, Study, ThresholdLabels, plots, plots as pictures
from deepbore.data.array_ranking import best_and_tau, threshold
from deepbore.data.ranking import best_among
from deepbore.data.replay import read_record
from deepbore.errors import SettingError
from deepbore.labels import Labelling, Labels
from deepbore.plots import history, records
from deepbore.plots.history_chart import gamma_of
from deepbore.plots.page.curves import trade_off_sections
from deepbore.plots.parallel_chart import Parallel
from deepbore.plots.predictions import is_good
from deepbore.plots.sources import record_of
from drawn_studies import CUBE, LINE, NAN, told
from plane import SQUARE
from tried import tried

OF_CLASSIFIER = [pictures.importance, pictures.slices, pictures.pairs, pictures.calibration]


def test_best_and_tau_are_those_of_each_moment():
    best, tau = best_and_tau(np.array([3.0, np.nan, 1.0, 2.0, 0.0]), gamma=0.5)
    assert best.tolist() == [3, 3, 1, 1, 0]
    assert tau.tolist() == [3, 3, 1, 2, 1]  # the ceil(n / 2)-th smallest of n values


def test_the_picture_colours_values_by_label(tmp_path):
    figure = history([3, 1, 2, np.nan, 9], direction="maximize", gamma=0.3, path=tmp_path / "history.png")
    assert offsets(figure.axes[0], "good")[:, 1].tolist() == [3, 9]
    assert offsets(figure.axes[0], "worse than the threshold")[:, 1].tolist() == [1, 2]
    assert (tmp_path / "history.png").read_bytes().startswith(b"\x89PNG")


def test_outliers_do_not_squeeze_the_rest():
    figure = history([*np.linspace(1, 2, 30), 1e18])
    low, high = figure.axes[0].get_ylim()
    assert low < 1
    assert 2 < high < 3
    (outlier,) = (each for each in figure.axes[0].collections if len(each.get_offsets()) == 1)
    assert np.asarray(outlier.get_offsets()).tolist() == [[30, high]]  # at the edge


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
    drawn = [offsets(axes, name)[:, 1].tolist() for name in ("good", "worse than the threshold")]
    assert drawn == [[3, 9], [1, 2]]
    assert "tau (gamma = 0.3)" in [text.get_text() for text in axes.get_legend().get_texts()]
    assert offsets(axes, "failed").tolist() == [[3, axes.get_ylim()[0]]]  # the worse edge


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
    (chart,) = records.history(study)
    assert [chart.layer(name).trials.tolist() for name in ("good", "label 0", "failed")] == [[1, 3], [0, 4], [2]]
    named = {text.get_text() for text in axes.get_legend().get_texts()}
    assert not [name for name in named if name.startswith("tau")]
    study.fit(epochs=1)
    values = pictures.landscape(study).axes[0]
    assert "tau" not in {line.get_label() for line in values.lines}
    assert sorted(c.get_offsets()[:, 1].tolist() for c in values.collections[:2]) == [[1, 1.5], [3, 9]]
    for picture in [*OF_CLASSIFIER[:2], pictures.calibration]:
        picture(study).savefig(tmp_path / "picture.png", dpi=20)


# regression: each of these was wrong once
def test_no_threshold_of_values_of_all_budgets_is_drawn(tmp_path):
    path = tmp_path / "run.jsonl"
    study = db.Study(db.SearchSpace({"x": db.Real(0, 1)}), budget=db.Budget("epochs", 1, 9), n_initial=3, journal=path)
    tried(study, 6, lambda params: params["x"])
    for run in (study, read_record(path)):
        assert not [line for line in history(run).axes[0].lines if str(line.get_label()).startswith("tau")]


@pytest.mark.parametrize("n", [7, 2000, 4321])
def test_tau_is_drawn_of_many_values_at_no_more_than_a_picture_shows(n):
    values = np.random.default_rng(0).normal(size=n)
    values[3] = math.nan
    best, taus = best_and_tau(values, 0.5)
    assert taus[-1] == threshold(np.sort(values[~np.isnan(values)]), 0.5)
    assert best[-1] == np.nanmin(values)
    exact = [threshold(np.sort(values[: k + 1][~np.isnan(values[: k + 1])]), 0.5) for k in range(n)]
    assert n > 2000 or taus.tolist() == exact
    assert np.abs(taus - exact)[min(n, 100) - 1 :].max() < 0.1


def test_the_best_so_far_is_at_the_largest_budget(by_budget):
    study, record = by_budget
    curve = [0.1, 0.1, 0.1, 0.3, 0.3]
    assert best_among(record.trials, "minimize", has_budget=True).tolist() == curve
    for run in (study, record):
        (line,) = (each for each in history(run).axes[0].lines if each.get_label() == "best so far")
        x, y = line.get_data()  # where it changes
        assert [y[np.searchsorted(x, trial, side="right") - 1] for trial in range(5)] == curve


def test_no_tau_of_utilities_is_drawn_over_values(tmp_path):
    path = tmp_path / "journal.jsonl"
    study = db.Study(SQUARE, preferences=True, journal=path, seed=0)
    for _ in range(4):
        one, other = study.ask(2)
        study.prefer(one, other)
    study.fit()
    labels = study.state.recipe.labels(study.observations)
    assert labels.metrics == {}
    assert is_good(study, labels).sum() == (labels.z[:, 0] > 0).sum() > 0
    assert gamma_of(read_record(path).header) is None


def test_infeasible_values_beyond_a_log_axis_are_no_failures(tmp_path):
    study = db.Study(db.SearchSpace({"x": db.Real(0, 1)}), journal=tmp_path / "run.jsonl")
    for trial, value in zip(study.ask(5), [-1.0, 1.0, 10.0, 100.0, 1000.0], strict=True):
        study.tell(trial, value, constraints=[-value])
    study.close()
    good = Parallel.of(read_record(tmp_path / "run.jsonl"), ["x"], 5).good
    assert (np.diff(good) <= 0).all()  # none is NaN, which a failure is


def offsets(axes, label):
    """The points of the scatter with this label."""
    (found,) = (each for each in axes.collections if each.get_label() == label)
    return np.asarray(found.get_offsets())


def test_an_earlier_task_has_a_colour_of_its_own_and_no_part_in_tau(after_a_task):
    axes = plots.history(after_a_task).axes[0]
    assert len(offsets(axes, "earlier task")) == 40
    assert "infeasible" not in axes.get_legend_handles_labels()[1]
    (tau,) = (line for line in axes.lines if str(line.get_label()).startswith("tau"))
    assert tau.get_ydata()[-1] == pytest.approx(
        after_a_task.state.recipe.labels(after_a_task.observations).metrics["tau"]
    )
    assert axes.get_ylim()[1] < 100


def test_a_front_tells_infeasible_trials_from_beaten_ones():
    study = Study(SQUARE, directions=["minimize"] * 2, seed=0)
    for values, constraint in (([0.0, 0.0], 1.0), ([1.0, 2.0], -1.0), ([2.0, 1.0], -1.0), ([3.0, 3.0], -1.0)):
        (trial,) = study.ask()
        study.tell(trial, values, constraints=[constraint])
    front = trade_off_sections(record_of(study))[0].charts[0]
    found = {trace["name"]: trace["trials"] for trace in front.data}
    assert found == {"beaten by another": [3], "beaten by none": [1, 2], "infeasible": [0]}


@pytest.mark.parametrize(
    ("values", "optimum", "is_drawn"),
    [
        ([10.0**-k for k in range(10)], 0.0, False),
        ([10.0**-k for k in range(10)], 1e-12, True),
        ([1, 2, 1.5, 1.4, 1.3, 1.25, 1.2, 1.1, 2, 1e9], 0.0, True),
        ([1, 2, 3], 2.5, True),
    ],
)
def test_the_optimum_is_named_where_it_is_drawn(values, optimum, is_drawn):
    (axes,) = plots.history(values, optimum=optimum).axes
    assert ("optimum" in axes.get_legend_handles_labels()[1]) is is_drawn
    low, high = axes.get_ylim()
    assert bool(low < optimum < high) is is_drawn
