"""The default labels of a classifier."""

from deepbore import KernelPLS, MLPClassifier, Study
from deepbore.labels import ThresholdLabels, ValueGradedLabels, default_labels
from plane import LINE


def test_the_default_labels_are_those_of_the_classifiers_loss():
    for head, kind, gamma in ((KernelPLS, ValueGradedLabels, 0.5), (MLPClassifier, ThresholdLabels, 0.25)):
        study = Study(LINE, classifier=head(), n_initial=2)
        for trial, value in zip(study.ask(2), (1.0, 2.0), strict=True):
            study.tell(trial, value)
        study.ask()
        assert isinstance(study.labels, kind)
        assert study.labels.gamma == gamma
    assert default_labels(estimates_labels=False, gamma=0.1).gamma == 0.1
