"""`OnAnotherSpace`: what a classifier has of another one that it puts on points of another space."""

from typing import Any, ClassVar

from torch import Tensor

from deepbore.classifiers.base import Classifier, check_base


class OnAnotherSpace(Classifier):
    """A base on points of another space, which a subclass maps points to: all else is the base's.

    Args:
        classifier: the base, not bound to a space yet.

    Raises:
        SettingError: for a base that is no classifier, or is bound already.
    """

    learns: ClassVar[str]  # what the base learns in place of the run's space, for the error

    def __init__(self, classifier: Classifier):
        super().__init__()
        check_base(classifier, f"the base learns {self.learns}")
        self.base = classifier
        self.link, self.kappa, self.capabilities = classifier.link, classifier.kappa, classifier.capabilities
        self.differentiable, self.distance_aware = classifier.differentiable, classifier.distance_aware
        self.columns, self.closed_form = classifier.columns, classifier.closed_form
        self.generator = classifier.generator

    def configure_optimizers(self) -> Any:
        """That of the base, which steps it."""
        return self.base.configure_optimizers()

    def keep_best(self, best: float | Tensor) -> None:
        """That of the base."""
        self.base.keep_best(best)
        super().keep_best(self.base.best_label)
