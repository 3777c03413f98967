"""Parts that go together, those that do not and are refused, and what the checks of one's own parts let through."""

from dataclasses import replace

import numpy as np
import pytest

from deepbore import Calibrated, DistributedStudy, HyperDeepEnsemble, KernelPLS, MLPClassifier, Real, SearchSpace, Study
from deepbore.classifiers import PerColumn, Relaxed
from deepbore.errors import SettingError
from deepbore.labels import NonDominationLabels, ObjectiveLabels, PreferenceLabels, ThresholdLabels, ValueGradedLabels
from deepbore.loop.metrics import hypervolume_so_far
from deepbore.testing import check_classifier, check_labelling

PLANE = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})
BOTH = ["minimize", "minimize"]


# --- columns ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("wrapped", [lambda head: head, Relaxed])
def test_as_many_columns_as_objectives_are_needed_also_within_another_head(wrapped, columns):
    with pytest.raises(SettingError, match=rf"has {columns} column\(s\), but ObjectiveLabels has 2"):
        Study(PLANE, directions=BOTH, classifier=wrapped(PerColumn(KernelPLS(), columns)))
    study = Study(PLANE, directions=BOTH, classifier=wrapped(PerColumn(KernelPLS(), 2)), seed=0)
    study.optimize(lambda p: [p["x"], (1 - p["x"]) ** 2 + p["y"]], 18)
    assert len(study.pareto_front) > 4


@pytest.mark.slow
def test_a_map_for_several_columns_is_refused_and_a_map_of_each_is_not():
    with pytest.raises(SettingError, match=r"Give PerColumn\(Calibrated"):
        Calibrated(PerColumn(KernelPLS(), 2))
    Study(PLANE, directions=BOTH, classifier=PerColumn(Calibrated(KernelPLS()), 2), seed=0).optimize(
        lambda p: [p["x"], p["y"]], 12
    )


def test_labels_of_too_few_columns_are_named():
    with pytest.raises(SettingError, match=r"PerColumn has 2 column\(s\), but the labels have 1"):
        check_classifier(lambda: PerColumn(KernelPLS(), 2))


# --- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preferences", [False, True])
@pytest.mark.parametrize(
    ("made", "loaded"), [({"classifier": MLPClassifier}, {"gamma": 0.3}), ({}, {"classifier": MLPClassifier})]
)
def test_default_labels_suit_the_classifier_that_a_study_is_loaded_with(tmp_path, preferences, made, loaded):
    def parts(given):
        return {name: part() if callable(part) else part for name, part in given.items()}

    Study(PLANE, preferences=preferences, journal=tmp_path / "run.jsonl", **parts(made)).close()
    labels = Study.load(tmp_path / "run.jsonl", **parts(loaded)).labels
    assert isinstance(labels, PreferenceLabels) is preferences
    assert type(labels.base if preferences else labels) is ThresholdLabels


def test_a_study_of_preferences_goes_on_with_the_labels_that_it_had(tmp_path):
    for labels in (None, PreferenceLabels(ThresholdLabels(0.2))):
        path = tmp_path / f"{type(labels).__name__}.jsonl"
        Study(PLANE, preferences=True, journal=path, labels=labels).close()
        again = Study(PLANE, preferences=True, journal=path, labels=labels, if_exists="load")
        assert type(again.labels.base) is (ValueGradedLabels if labels is None else ThresholdLabels)


@pytest.mark.parametrize("setting", [{"if_exists": "load"}, {"preferences": True}])
def test_a_suggester_takes_the_parts_of_a_run_and_nothing_else(setting):
    with pytest.raises(
        SettingError, match=f"a DistributedStudy does not take {next(iter(setting))}; other settings may be"
    ):
        DistributedStudy(PLANE, **setting)


def test_numbers_of_numpy_are_numbers():
    assert ObjectiveLabels(2, reference=np.array([1, 2])).reference == (1.0, 2.0)
    assert ObjectiveLabels(2, reference=np.array([1, 2], dtype=np.float32)).reference == (1.0, 2.0)
    HyperDeepEnsemble(width=(np.int64(8), np.int64(32)))
    with pytest.raises(SettingError, match="2 finite numbers"):
        ObjectiveLabels(2, reference=[True, 2])


# --- several objectives told late ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("failed", [3, 11])
def test_the_logged_hypervolume_never_falls_in_whatever_order_trials_are_told(failed):
    outcomes = [[k / 10, 1 - k / 10] for k in range(9)] + [[0.95, 0.95], [9.0, 9.0], [0.5, 0.1]]
    stream = np.random.default_rng(0)
    for _ in range(20):
        study = Study(PLANE, directions=BOTH, n_initial=12, seed=0)
        trials, volumes = study.ask(12), []
        for row in stream.permutation(12):
            study.tell(trials[row], float("nan") if row == failed else outcomes[row])
            volumes += hypervolume_so_far(study.observations).values()
        assert volumes == sorted(volumes)
        assert len(volumes) > 5


# --- checks of one's own parts ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_map_that_bends_passes_the_checks():
    check_classifier(lambda: Calibrated(KernelPLS()))


@pytest.mark.parametrize(
    "labels", [ValueGradedLabels, ThresholdLabels, NonDominationLabels, lambda: ObjectiveLabels(2)]
)
def test_labels_whose_constraints_have_grades_pass_the_checks(labels):
    check_labelling(labels, constraints=2)


class Turned(ValueGradedLabels):
    """Grades of constraints the wrong way round."""

    def __call__(self, observations):
        labels = super().__call__(observations)
        return labels if labels.constraints is None else replace(labels, constraints=1 - labels.constraints)


def test_grades_the_wrong_way_round_are_found():
    with pytest.raises(AssertionError, match="must be 1/2 or more where these are kept"):
        check_labelling(Turned, constraints=1)


def test_a_labelling_of_comparisons_is_told_that_it_is_none_of_values():
    with pytest.raises(AssertionError, match="grades comparisons"):
        check_labelling(PreferenceLabels)
