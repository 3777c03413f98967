"""`Acquisition`: the interface of the room."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from deepbore.classifiers.base import Classifier

SHARPNESS = 20.0  # of the smooth floor under estimated labels: below 0 their density falls by e each 1 / 20
TAIL = -20.0  # below this, log softplus(t) is t to all digits


class Acquisition(ABC):
    """A formula from a classifier's scores to the value of a point; higher is better."""

    @abstractmethod
    def __call__(self, classifier: Classifier, points: Tensor) -> Tensor:
        """Points (n x d) -> their values (n), with gradients where the classifier has them."""

    def log_density(self, classifier: Classifier, points: Tensor) -> Tensor:
        """Points (n x d) -> logarithm of the density to sample batches from, up to a constant (n).

        The density is proportional to the class probability, or to the bound on it, that the values stand for
        (Oliveira et al. 2022, eq. 23): the sigmoid of a logit; an estimated label itself, with a softplus in place of
        the clipping to 0 of eq. 20, which has no gradient. An acquisition that is a logarithm already overrides this.
        """
        values = self(classifier, points)
        return log_softplus(SHARPNESS * values) if classifier.estimates_labels else logsigmoid(values)


def log_softplus(t: Tensor) -> Tensor:
    """log(log(1 + e^t)), stable for all t."""
    return torch.where(t > TAIL, softplus(t.clamp(min=TAIL)).log(), t)
