"""The values over each parameter: each trial at its own place, by its declaration alone."""

import numpy as np
import pytest

from deepbore import Categorical, Integer, Outcome, Real, SearchSpace, Study
from deepbore.plots.values_chart import values_charts

SPACE = {"x": Real(0, 1), "lr": Real(1e-4, 1, log=True), "n": Integer(1, 9), "kind": Categorical(["a", "b", "c"])}


def told(direction="minimize"):
    study = Study(SearchSpace(SPACE), seed=0, direction=direction)
    for k in range(12):
        trial = study.ask_one()
        study.tell(trial, Outcome(trial.params["x"], constraints=[1.0 if k % 4 == 0 else -1.0]))
    return study


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_each_trial_stands_at_its_value_of_each_parameter(direction):
    study = told(direction)
    charts = values_charts(study)
    assert [chart.x.title for chart in charts] == list(SPACE)
    for chart, name in zip(charts, SPACE, strict=True):
        found = {
            int(row): (x, y) for layer in chart.layers for row, x, y in zip(layer.trials, layer.x, layer.y, strict=True)
        }
        assert set(found) == set(range(12))
        for trial in study.trials:
            value = trial.params[name]
            place = "abc".index(value) if name == "kind" else value
            assert found[trial.id] == pytest.approx((place, trial.value))
            assert chart.x.scale.low < place < chart.x.scale.high
        assert chart.x.scale.log == (name == "lr")


def test_the_best_and_the_infeasible_have_layers_of_their_own():
    study = told()
    (chart, *_) = values_charts(study)
    best = chart.layers[-1]
    assert best.trials.tolist() == [study.best_trial.id]
    assert set(chart.layers[0].trials.tolist()) == {0, 4, 8}
    assert np.unique(np.concatenate([layer.trials for layer in chart.layers])).size == 12


def test_without_a_value_there_is_no_chart():
    assert values_charts(Study(SearchSpace(SPACE), seed=0)) == []
