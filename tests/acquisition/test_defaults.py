"""The default acquisition of each classifier."""

import pytest

from cases import CLASSIFIERS
from deepbore import ClassProbability, LogExpectedImprovement, UpperConfidenceBound
from deepbore.acquisition import default_acquisition
from deepbore.classifiers import DeepEnsemble, DeepPLS, KernelPLS, LaplaceGGN, MLPClassifier, RandomForest
from deepbore.component import describe


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_the_default_suits_every_classifier(name):
    classifier = CLASSIFIERS[name]()
    default_acquisition(classifier).check(classifier)


def test_the_default_suits_the_kind_of_scores():
    assert isinstance(default_acquisition(KernelPLS()), LogExpectedImprovement)
    assert isinstance(default_acquisition(LaplaceGGN()), LogExpectedImprovement)
    boggn = LaplaceGGN(likelihood="bernoulli")
    for head in (DeepEnsemble(), DeepPLS(), boggn, RandomForest()):  # not uncertain enough far from the data
        assert isinstance(default_acquisition(head), UpperConfidenceBound)
    assert isinstance(default_acquisition(MLPClassifier()), ClassProbability)


def test_a_resolved_acquisition_is_written_down_with_what_was_filled_in():
    described = describe(UpperConfidenceBound().resolved(KernelPLS()))
    assert described == {"class_path": "deepbore.acquisition.UpperConfidenceBound", "init_args": {"kappa": 2.0}}
