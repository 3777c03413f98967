"""`Acquisition`: the interface of the room."""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor

from deepbore.classifiers.base import Classifier
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import UNCERTAIN, Posterior
from deepbore.errors import SettingError
from deepbore.parts import Part


class Acquisition(Part, ABC):
    """A formula from the posterior of the scores to the value of a point; higher is better.

    Attributes:
        links: which scores it is made for.
        needs: which of `Classifier.capabilities` it uses.
        heads: which classifiers have what it needs, for the message where one has not.
        otherwise: what to use where the classifier is another, for the message.
        takes_front: whether `best` is the labels of a Pareto front, (1 + f) x k (`Labelling.grades_front`).
    """

    links: ClassVar[frozenset[Link]] = frozenset(Link)
    needs: frozenset[str] = frozenset()
    heads: str = UNCERTAIN
    otherwise: str = "ClassProbability"
    takes_front: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, posterior: Posterior, best: Tensor | float) -> Tensor:
        """The values of n points, with gradients where the posterior has them.

        Args:
            posterior: of the scores at the points.
            best: the label that improvement is measured against, or those of a front.
        """

    def log_density(self, posterior: Posterior, best: Tensor | float) -> Tensor:
        """Logarithm of the density to sample batches from, up to a constant (n): see `Link.log_probability`.

        An acquisition that is a logarithm already overrides this.
        """
        return posterior.link.log_probability(self(posterior, best))

    def resolved(self, classifier: Classifier) -> "Acquisition":
        """This acquisition with its open settings filled in for a classifier; most have none."""
        return self

    def check(self, classifier: Classifier) -> None:
        """Raises SettingError unless the classifier has the scores and the capabilities that are needed."""
        own, head = type(self).__name__, type(classifier).__name__
        if classifier.link not in self.links:
            links = " or ".join(sorted(self.links))
            raise SettingError(
                f"{own} is made for scores with the link {links}, but those of {head} have {classifier.link}. "
                "Use UpperConfidenceBound or ClassProbability."
            )
        if missing := self.needs - classifier.capabilities:
            raise SettingError(
                f"{own} needs {' and '.join(sorted(missing))} of the scores, which {head} does not have. "
                f"Use {self.heads}, or {self.otherwise}."
            )
