"""Pictures of objective and classifier over one parameter or two."""

import math

import numpy as np
import pytest

from deepbore import Integer, Outcome, Real, SearchSpace, Study, plots, plots as pictures
from deepbore.errors import SettingError
from drawn_studies import LINE, NAN, told, trained


@pytest.fixture(scope="module")
def study():
    return trained()


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
    assert shares.lines[0].get_ydata().tolist() == [5, 3, 2, 1, 1]  # from the best on


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


# regression: this was wrong once
@pytest.mark.slow
@pytest.mark.parametrize("objective", [lambda p: math.sqrt(p["x"]), lambda p, trial: p["x"] + trial.id * 0])
def test_a_landscape_draws_every_objective_that_a_run_takes(objective):
    study = Study(SearchSpace({"x": Real(-1, 1)}), seed=0)
    study.optimize(objective, 12)
    study.fit()
    figure = plots.landscape(study, objective=objective)
    (curve,) = (line for line in figure.axes[0].lines if line.get_label() == "objective")
    assert np.isfinite(curve.get_ydata()[-50:]).all()
