"""`Acquisition`: the interface of all acquisition functions."""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor

from deepbore.classifiers.base import Classifier
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import UNCERTAIN, MomentFormula, Posterior
from deepbore.component import Component
from deepbore.errors import SettingError


class Acquisition(Component, ABC):
    """A formula from the posterior of the scores to the value of a point; higher is better.

    Attributes:
        links: the links of scores that it is defined for.
        needs: the `Classifier.capabilities` that it uses.
        suited: for the error message, classifiers that have these capabilities.
        otherwise: for the error message, an acquisition for other classifiers.
        takes_front: whether `best` is the labels of a Pareto front, (1 + f) x k (`Labelling.grades_front`).
        is_logarithm: whether its values are logarithms of positive ones.
        by_moments: whether a mean and a deviation of each point are enough: by default, where it needs no more.
    """

    links: ClassVar[frozenset[Link]] = frozenset(Link)
    needs: frozenset[str] = frozenset()
    suited: str = UNCERTAIN
    otherwise: str = "ClassProbability"
    takes_front: ClassVar[bool] = False
    is_logarithm: ClassVar[bool] = False

    @property
    def by_moments(self) -> bool:
        return self.needs <= {"std"}

    @abstractmethod
    def __call__(self, posterior: Posterior, best: Tensor | float) -> Tensor:
        """The values of n points, with gradients where the posterior has them.

        Args:
            posterior: of the scores at the points.
            best: the incumbent label, which improvement is measured against, or those of a front.
        """

    def formula(self, best: Tensor | float) -> MomentFormula | None:
        """The values as a formula of the posterior's moments, if they are one and it is known; else None."""
        return None

    def log_density(self, posterior: Posterior, best: Tensor | float) -> Tensor:
        """Log density that batches are sampled from, and that factors multiply, up to a constant (n).

        That of a logarithm is itself; of others see `Link.log_probability`.
        """
        value = self(posterior, best)
        return value if self.is_logarithm else posterior.link.log_probability(value)

    def resolved(self, classifier: Classifier) -> "Acquisition":
        """This acquisition with the settings that depend on the classifier filled in; most have none."""
        return self

    def check(self, classifier: Classifier) -> None:
        """Raises SettingError unless the classifier has the link and the capabilities that are needed."""
        own, model = type(self).__name__, type(classifier).__name__
        if classifier.link not in self.links:
            links = " or ".join(sorted(self.links))
            raise SettingError(
                f"{own} is made for scores with the link {links}, but those of {model} have {classifier.link}. "
                "Use UpperConfidenceBound or ClassProbability."
            )
        if missing := self.needs - classifier.capabilities:
            raise SettingError(
                f"{own} needs {' and '.join(sorted(missing))} of the scores, which {model} does not have. "
                f"Use {self.suited}, or {self.otherwise}."
            )
