"""From the posterior of scores to the value of a point: what candidates are searched by. Nothing here searches."""

from deepbore.acquisition.base import Acquisition
from deepbore.acquisition.bounds import ClassProbability, QuantileBound, TheoremBound, UpperConfidenceBound
from deepbore.acquisition.defaults import default_acquisition
from deepbore.acquisition.hypervolume import LogHypervolumeImprovement
from deepbore.acquisition.improvement import LogExpectedImprovement
from deepbore.acquisition.posterior import ExpectedProbability, PosteriorSample

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
