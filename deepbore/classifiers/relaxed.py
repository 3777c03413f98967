"""`Relaxed`: any classifier, on a box of real numbers in place of the space."""

from dataclasses import replace
from typing import Any

from torch import Tensor

from deepbore.classifiers.base import Classifier
from deepbore.classifiers.on_another_space import OnAnotherSpace
from deepbore.classifiers.posterior import Posterior
from deepbore.labels.datamodule import LabelledBatch
from deepbore.space import SearchSpace
from deepbore.space.relaxation import Relaxation
from deepbore.validation import required


class Relaxed(OnAnotherSpace):
    """A classifier that sees categories one-hot and ordinals as one number, each of them real (BORE section 5).

    So it has values between configurations, and gradients there, by which `RelaxedSearch` climbs. In spaces of real
    numbers it is the base itself. The other classifiers see ordinals level by level, which learns quicker.

    Args:
        classifier: the base, not bound to a space yet.

    Raises:
        SettingError: for a base that is bound already.

    Example:
        >>> from deepbore.classifiers import MLPClassifier
        >>> from deepbore.testing import TOY_SPACES, fit, toy_data
        >>> space = TOY_SPACES["finite"]
        >>> fit(Relaxed(MLPClassifier()), toy_data(space)).base.space.names
        ['k', 'c, 0', 'c, 1', 'c, 2', 'n']

    References:
        Tiao et al., BORE: Bayesian optimization by density-ratio estimation, 2021.
    """

    learns = "another space"

    def __init__(self, classifier: Classifier):
        required(classifier=classifier)
        super().__init__(classifier)

    relaxation: Relaxation

    def build(self, space: SearchSpace, outputs: int) -> None:
        self.relaxation = Relaxation(space)
        self.base.bind(self.relaxation.box, outputs)

    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        return self.base.fit(replace(batch, points=self.relaxation.vectors(batch.points)))

    def posterior(self, points: Tensor) -> Posterior:
        """That of the base."""
        self.check_points(points)
        return self.base.posterior(self.relaxation.vectors(points))
