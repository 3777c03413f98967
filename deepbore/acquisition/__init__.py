"""From scores to the value of a point: what the candidates are searched by. Nothing here searches."""

from deepbore.acquisition.base import Acquisition
from deepbore.acquisition.bounds import ClassProbability, QuantileBound, UpperConfidenceBound

__all__ = ["Acquisition", "ClassProbability", "QuantileBound", "UpperConfidenceBound"]
