"""Studies of several objectives: their default parts, and their runs."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from deepbore import DeepEnsemble, KernelPLS, MLPClassifier, Outcome, Study
from deepbore.acquisition import LogHypervolumeImprovement
from deepbore.classifiers import PerColumn
from deepbore.data.array_ranking import hypervolume
from deepbore.errors import SettingError
from deepbore.labels import ChebyshevLabels, NonDominationLabels, ObjectiveLabels, ThresholdLabels, ValueGradedLabels
from deepbore.loop.metrics import hypervolume_so_far
from deepbore.study.study import Result
from plane import SQUARE
from trading_off import BOTH, run, trade_off

# --- recipes ---------------------------------------------------------------------------------------------------------


def parts(study):
    return [
        type(part).__name__ for part in (study.state.recipe.labels, study.classifier, study.state.recipe.acquisition)
    ]


def test_defaults_for_several_objectives():
    def made(**given):
        return parts(Study(SQUARE, directions=BOTH, **given))

    assert made() == ["ObjectiveLabels", "PerColumn", "LogHypervolumeImprovement"]
    assert made(classifier=PerColumn(KernelPLS(), 2)) == made()
    assert made(labels=ObjectiveLabels(2)) == made()
    assert made(classifier=KernelPLS()) == ["ChebyshevLabels", "KernelPLS", "LogExpectedImprovement"]
    assert made(labels=NonDominationLabels()) == ["NonDominationLabels", "KernelPLS", "LogExpectedImprovement"]
    study = Study(SQUARE, directions=BOTH, classifier=MLPClassifier(), gamma=0.2)
    assert (type(study.state.recipe.labels.base), study.state.recipe.labels.base.gamma) == (ValueGradedLabels, 0.2)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"labels": ThresholdLabels()}, "grades outcomes of 1 value"),
        ({"labels": ObjectiveLabels(3)}, "grades outcomes of 3 value"),
        ({"labels": ObjectiveLabels(2), "classifier": KernelPLS()}, "needs the front"),
        ({"labels": ChebyshevLabels(), "acquisition": LogHypervolumeImprovement()}, "needs the front"),
        ({"classifier": PerColumn(KernelPLS(), 3)}, "columns=2"),
        ({"gamma": 0.3}, "no gamma"),
    ],
)
def test_parts_that_do_not_go_together_are_refused(given, says):
    with pytest.raises(SettingError, match=says):
        Study(SQUARE, directions=BOTH, **given)


def test_per_column_needs_a_deviation():
    with pytest.raises(SettingError, match="ChebyshevLabels"):
        PerColumn(MLPClassifier(), 2)


# --- runs ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_study_without_settings_spreads_over_a_concave_front():
    study = run(Study(SQUARE, directions=BOTH, seed=0), 30)
    values = np.array([trial.values for trial in study.trials]) * [1, -1]
    best = 1.0 * 2.0 - 1 / 3  # the volume of the front x -> (x, 1 - x^2) from (1, -1)
    drawn = np.array(
        [trade_off(p) for p in SQUARE.decode(SQUARE.points.sample(30, torch.Generator().manual_seed(0)))]
    ) * [
        1,
        -1,
    ]
    assert hypervolume(values, [1.0, 1.0]) > 0.95 * (5 / 3)
    assert hypervolume(drawn, [1.0, 1.0]) < 0.8 * (5 / 3)
    assert best == pytest.approx(5 / 3)


def test_the_front_of_a_study_is_in_the_order_of_the_first_objective():
    study = run(Study(SQUARE, directions=BOTH, seed=1), 14)
    values = [trial.values for trial in study.trials]
    front = [
        trial.id
        for trial in study.trials
        if not any(a <= trial.values[0] and b >= trial.values[1] and (a, b) != trial.values for a, b in values)
    ]
    assert sorted(trial.id for trial in study.pareto_front) == front
    assert [trial.values[0] for trial in study.pareto_front] == sorted(values[row][0] for row in front)
    assert Result.of(study).pareto_front == study.pareto_front
    with pytest.raises(SettingError, match="pareto_front"):
        _ = study.best_trial


def test_infeasible_and_failed_trials_are_not_on_the_front():
    study = Study(SQUARE, directions=("minimize",) * 2, seed=0)
    one, two, three, four = study.ask(4)
    study.tell(one, Outcome([0.0, 0.0], constraints=[1.0]))
    study.tell(two, Outcome([1.0, 2.0], constraints=[-1.0]))
    study.tell(three, Outcome([2.0, 1.0], constraints=[0.0]))
    study.tell(four, failed=True)
    assert [trial.id for trial in study.pareto_front] == [1, 2]


@pytest.mark.parametrize("classifier", [lambda: None, lambda: DeepEnsemble(members=2)], ids=["default", "ensemble"])
def test_a_loaded_study_goes_on_bit_for_bit(tmp_path, classifier):
    whole = run(Study(SQUARE, directions=BOTH, seed=3, n_initial=5, classifier=classifier()), 11)
    part = run(
        Study(SQUARE, directions=BOTH, seed=3, n_initial=5, classifier=classifier(), journal=tmp_path / "run.jsonl"), 8
    )
    part.close()
    loaded = run(Study.load(tmp_path / "run.jsonl"), 3)
    assert torch.equal(loaded.observations.points, whole.observations.points)


def test_batches_are_distinct_and_constraints_are_honoured():
    study = Study(SQUARE, directions=BOTH, seed=0, n_initial=8)
    for _ in range(5):
        for trial in study.ask(4):
            values = trade_off(trial.params)
            study.tell(trial, Outcome(values, constraints=[trial.params["x"] - 0.5]))
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 20
    assert sum(trial.params["x"] <= 0.55 for trial in study.trials[8:]) >= 9
    assert all(trial.params["x"] <= 0.5 for trial in study.pareto_front)


def test_what_a_run_logs_of_its_front_never_falls():
    logged = []
    study = Study(SQUARE, directions=BOTH, seed=0, n_initial=4)
    for _ in range(8):
        run(study, 1)
        logged.append(hypervolume_so_far(study.observations).get("hypervolume", 0.0))
    assert all(a <= b + 1e-9 for a, b in pairwise(logged)), logged
