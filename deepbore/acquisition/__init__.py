"""Acquisition functions: from the posterior of the scores to the value of a point."""

from deepbore.acquisition.base import Acquisition
from deepbore.acquisition.bounds import (
    ClassProbability,
    ExpectedProbability,
    PosteriorSample,
    QuantileBound,
    TheoremBound,
    UpperConfidenceBound,
)
from deepbore.acquisition.defaults import default_acquisition
from deepbore.acquisition.hypervolume import LogHypervolumeImprovement
from deepbore.acquisition.improvement import LogExpectedImprovement

__all__ = [
    "Acquisition",
    "ClassProbability",
    "ExpectedProbability",
    "LogExpectedImprovement",
    "LogHypervolumeImprovement",
    "PosteriorSample",
    "QuantileBound",
    "TheoremBound",
    "UpperConfidenceBound",
    "default_acquisition",
]
