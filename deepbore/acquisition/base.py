"""`Acquisition`: the interface of the room."""

from abc import ABC, abstractmethod

from torch import Tensor

from deepbore.classifiers.base import Classifier


class Acquisition(ABC):
    """A formula from a classifier's scores to the value of a point; higher is better."""

    @abstractmethod
    def __call__(self, classifier: Classifier, points: Tensor) -> Tensor:
        """Points (n x d) -> their values (n), with gradients where the classifier has them."""
