"""What acquisitions refuse, and when; how they are written down."""

import pytest
import torch

from cases import ACQUISITIONS
from deepbore import (
    BoTorchBatch,
    ExpectedProbability,
    GreedyBatch,
    LogExpectedImprovement,
    PosteriorSample,
    QuantileBound,
    Study,
    TheoremBound,
    UpperConfidenceBound,
)
from deepbore.acquisition import Acquisition
from deepbore.classifiers import DeepEnsemble, DeepPLS, FourierLogistic, GPClassifier, KernelPLS, MLPClassifier
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import UNCERTAIN, GaussianPosterior, PointEstimate
from deepbore.component import describe, make
from deepbore.errors import SettingError
from plane import LINE

MEMBERS = torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, -2.0], [4.0, 1.0, 0.0]])


class Independent(GaussianPosterior):
    def covariance(self):
        return self.std.square().diag()


def gaussian(link, mean=(0.3, -1.2, 0.9), std=(0.5, 2.0, 0.1)):
    return Independent(*(torch.tensor(moment, dtype=torch.float64) for moment in (mean, std)), link)


@pytest.mark.parametrize(
    ("make_one", "says"),
    [
        (lambda: TheoremBound(delta=1.0), "0 < delta < 1"),
        (lambda: TheoremBound(norm=0.0), "norm > 0"),
        (lambda: ExpectedProbability(by="guess"), "by must be"),
        (lambda: UpperConfidenceBound(-1), "kappa >= 0"),
        (lambda: QuantileBound(0), "0 < level <= 1"),
        (lambda: PosteriorSample(-1), "member >= 0"),
        (lambda: PosteriorSample(0.5), "member must be a whole number"),
    ],
)
def test_bad_settings_are_refused(make_one, says):
    with pytest.raises(SettingError, match=says):
        make_one()


@pytest.mark.parametrize(
    ("acquisition", "classifier", "says"),
    [
        (LogExpectedImprovement(), DeepEnsemble, "link identity, but those of DeepEnsemble have logit. Use Upper"),
        (LogExpectedImprovement(), GPClassifier, "those of GPClassifier have probit"),
        (PosteriorSample(), KernelPLS, "needs members of the scores, which KernelPLS does not have.*ThompsonBatch"),
        (PosteriorSample(), FourierLogistic, "needs members"),
        (ExpectedProbability("samples"), GPClassifier, 'needs members .*by="probit"'),
        (ExpectedProbability(), MLPClassifier, "needs std of the scores, which MLPClassifier does not have"),
        (UpperConfidenceBound(), MLPClassifier, "needs std"),
        (QuantileBound(), MLPClassifier, "needs std .*Use DeepEnsemble, .*or ClassProbability"),
        (
            TheoremBound(),
            DeepPLS,
            "needs the beta_t of Theorem 1, which DeepPLS does not have. Use KernelPLS, or Upper",
        ),
    ],
)
def test_what_the_classifier_lacks_is_refused_before_any_run(acquisition, classifier, says):
    with pytest.raises(SettingError, match=says):
        acquisition.check(classifier())


@pytest.mark.parametrize("acquisition", [PosteriorSample(), ExpectedProbability("samples")])
def test_members_that_are_not_there_are_no_silent_mean(acquisition):
    with pytest.raises(SettingError, match="needs members of the scores, but the classifier has none"):
        acquisition(gaussian(Link.LOGIT), 1.0)


@pytest.mark.parametrize("acquisition", [UpperConfidenceBound(1.0), QuantileBound(), ExpectedProbability()])
def test_a_point_estimate_has_no_silent_deviation_of_zero(acquisition):
    with pytest.raises(SettingError, match="MLPClassifier gives one score a point"):
        acquisition(PointEstimate(MEMBERS[0], Link.LOGIT, "MLPClassifier"), 1.0)


@pytest.mark.parametrize(
    "acquisition",
    [*(make_one() for make_one in ACQUISITIONS.values()), TheoremBound(0.2, norm=3.0), ExpectedProbability("samples")],
    ids=lambda acquisition: type(acquisition).__name__,
)
def test_an_acquisition_is_written_down_and_made_again(acquisition):
    again = make(describe(acquisition), Acquisition)
    assert type(again) is type(acquisition)
    assert vars(again) == vars(acquisition)


def test_a_head_with_deviations_is_among_those_that_errors_name():
    import cases  # the heads of the contract tests

    for name, head in cases.CLASSIFIERS.items():
        wrapped = name in ("Calibrated", "Relaxed", "AtBudgets", "PerColumn", "RelativeRatio")
        assert wrapped or ("std" in head().capabilities) == (name in UNCERTAIN), name


# regression: this was wrong once
def test_what_takes_one_score_refuses_a_classifier_of_several_objectives():
    from deepbore.integrations.botorch import BoTorchClassifier  # takes a second to import

    study = Study(LINE, directions=["minimize"] * 2)
    with pytest.raises(SettingError, match="Wrap one of its parts"):
        BoTorchClassifier(study.classifier)
    assert BoTorchClassifier(study.classifier.parts[1]).gaussian
    for candidates in (BoTorchBatch(), GreedyBatch(BoTorchBatch())):
        with pytest.raises(SettingError, match="one for each objective"):
            Study(LINE, directions=["minimize"] * 2, candidates=candidates)
