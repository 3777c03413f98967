"""The default labels of a classifier."""

import pytest

from deepbore import Calibrated, DeepEnsemble, KernelPLS, LaplaceGGN, MLPClassifier, Study, XGBoost
from deepbore.errors import SettingError
from deepbore.labels import ChebyshevLabels, ObjectiveLabels, ThresholdLabels, ValueGradedLabels, default_labels
from plane import LINE


def test_the_default_labels_are_graded_for_what_learns_grades():
    for head, kind, gamma in (
        (KernelPLS(), ValueGradedLabels, 0.5),
        (MLPClassifier(), ValueGradedLabels, 0.5),
        (Calibrated(DeepEnsemble(members=2), folds=2), ValueGradedLabels, 0.5),
        (LaplaceGGN(), ValueGradedLabels, 1 / 3),
        (LaplaceGGN(likelihood="bernoulli"), ThresholdLabels, 0.25),
        (XGBoost(), ThresholdLabels, 0.25),
    ):
        study = Study(LINE, classifier=head, n_initial=2)
        for trial, value in zip(study.ask(2), (1.0, 2.0), strict=True):
            study.tell(trial, value)
        study.ask()
        assert isinstance(study.state.recipe.labels, kind)
        assert study.state.recipe.labels.gamma == gamma
    assert default_labels(estimates_labels=False, gamma=0.1).gamma == 0.1


def test_the_default_labels_of_several_objectives_have_a_column_each_if_the_classifier_has():
    in_one = default_labels(estimates_labels=True, gamma=0.2, objectives=2)
    assert isinstance(in_one, ChebyshevLabels)
    assert isinstance(in_one.base, ValueGradedLabels)
    assert in_one.base.gamma == 0.2
    columns = default_labels(estimates_labels=True, objectives=2, per_column=True)
    assert isinstance(columns, ObjectiveLabels)
    assert columns.objectives == 2
    with pytest.raises(SettingError, match="have no gamma"):
        default_labels(estimates_labels=True, gamma=0.2, objectives=2, per_column=True)
