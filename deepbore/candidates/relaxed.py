"""Candidates by a search of the box that a space is relaxed to."""

from dataclasses import dataclass, field

from torch import Tensor

from deepbore.candidates.base import Candidates, Search
from deepbore.classifiers.base import Classifier
from deepbore.classifiers.relaxed import Relaxed
from deepbore.errors import SettingError
from deepbore.space import SearchSpace
from deepbore.space.relaxation import Relaxation
from deepbore.validation import of_kind, required


@dataclass(frozen=True)
class BoxSearch(Search):
    """A search of the box: the same observations and acquisition, the classifier being the base that learns the box.

    Attributes:
        relaxation: of the space.
    """

    relaxation: Relaxation = field(kw_only=True)

    @property
    def space(self) -> SearchSpace:
        """The box."""
        return self.relaxation.box

    def points(self, rows: Tensor) -> Tensor:
        """The vectors of some rows of the observations (k x r)."""
        return self.relaxation.vectors(super().points(rows))

    def configurations(self, points: Tensor) -> Tensor:
        """What vectors (k x r) are rounded to (k x d)."""
        return self.relaxation.points(points)


class RelaxedSearch(Candidates):
    """Another search of the box that discrete parameters are relaxed to; what it finds is rounded (BORE section 5).

    So gradients climb in any space, with a `Relaxed` classifier: BORE-MLP on tables is L-BFGS over one-hot categories
    and indices of ordinals. Rounding may move a point to where the classifier promises little (Garrido-Merchan and
    Hernandez-Lobato, 2020); `LocalSearch` looks at configurations only.

    Args:
        base: the other search.

    Raises:
        SettingError: when the run is set up, for a classifier that is not `Relaxed`.
    """

    def __init__(self, base: Candidates):
        required(base=base)
        of_kind(Candidates, base=base)
        self.base = base

    def check(self, space: SearchSpace, classifier: Classifier) -> None:
        self.base.check(Relaxation(space).box, _relaxed(classifier).base)

    def ranked(self, search: Search, q: int) -> Tensor:
        classifier = _relaxed(search.classifier)
        # the classifier learns all of the box, whatever stands still; the search does not leave where it does
        relaxation = Relaxation(search.space) if search.space.is_fixed else classifier.relaxation
        box = BoxSearch(
            search.acquisition,
            classifier.base,
            search.observations,
            search.generator,
            search.ranks,
            search.ambition,
            search.feasibility,
            relaxation=relaxation,
        )
        return relaxation.points(self.base.ranked(box, q))


def _relaxed(classifier: Classifier) -> Relaxed:
    """The classifier itself. Raises SettingError for one that knows no box."""
    if not isinstance(classifier, Relaxed):
        raise SettingError(
            f"RelaxedSearch needs a classifier between configurations, but got {type(classifier).__name__}. "
            f"Give Relaxed({type(classifier).__name__}(...)), or use LocalSearch."
        )
    return classifier
