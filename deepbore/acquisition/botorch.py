"""The bridge to BoTorch: an acquisition with its classifier as a BoTorch `AcquisitionFunction`."""

from botorch.acquisition import AcquisitionFunction
from torch import Tensor

from deepbore.acquisition.base import Acquisition
from deepbore.classifiers.base import Classifier
from deepbore.errors import ShapeError


class BoTorchAcquisition(AcquisitionFunction):  # type: ignore[misc]  # BoTorch is untyped
    """What any of BoTorch's optimisers can maximise: X (b x 1 x d) -> b.

    Args:
        acquisition: the formula.
        classifier: the trained classifier.
    """

    def __init__(self, acquisition: Acquisition, classifier: Classifier):
        super().__init__(model=classifier)
        self.acquisition = acquisition

    def forward(self, X: Tensor) -> Tensor:
        """Values of a t-batch of single points.

        Raises:
            ShapeError: for q > 1, which needs a joint acquisition.
        """
        if X.ndim != 3 or X.shape[1] != 1:
            raise ShapeError(f"X must have shape b x 1 x d, but got {tuple(X.shape)}.")
        return self.acquisition(self.model, X.squeeze(1)).to(X)
