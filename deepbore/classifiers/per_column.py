"""`PerColumn`: a classifier for each column of the labels."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from deepbore.checks import required, whole
from deepbore.classifiers.base import Classifier, check_base, optimizers_of
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import MeanOnlyPosterior, Posterior
from deepbore.errors import SettingError
from deepbore.labels.datamodule import LabelledBatch
from deepbore.space import SearchSpace


class PerColumn(Classifier):
    """A copy of a classifier for each column of the labels, each with parameters of its own: one for each objective.

    The other classifiers learn the mean of the columns, or have outputs over a shared trunk. Objectives differ in what
    they depend on and how smoothly, so each is better off with length scales of its own.

    Its posterior has the columns' own in `ColumnsPosterior.columns`, which count as independent. As one score it is
    their mean, which has no deviation: what needs one is refused when the run is made.

    Args:
        classifier: the base, not bound to a space yet, whose posterior has a deviation.
        columns: k >= 1, how many columns the labels have.

    Raises:
        SettingError: for a base that is bound already, or without a deviation, or a number below 1.

    Example:
        >>> from deepbore import KernelPLS, Real, SearchSpace, Study
        >>> space = SearchSpace({"x": Real(0, 1)})
        >>> study = Study(space, directions=["minimize"] * 2, classifier=PerColumn(KernelPLS(rows=100), columns=2))
        >>> type(study.labels).__name__
        'ObjectiveLabels'
    """

    def __init__(self, classifier: Classifier, columns: int):
        super().__init__()
        required(classifier=classifier, columns=columns)
        check_base(classifier, "each column has a copy of the base")
        whole(1, columns=columns)
        if "std" not in classifier.capabilities:
            raise SettingError(
                f"each column needs a deviation of its score, which {type(classifier).__name__} does not have. Use "
                "KernelPLS or DeepPLS; or leave it as it is: then ChebyshevLabels put several objectives in one column."
            )
        self.parts = [classifier, *(deepcopy(classifier) for _ in range(columns - 1))]
        for number, part in enumerate(self.parts):  # not in a list: Lightning hands its trainer to children only
            self.add_module(f"column{number}", part)
        self.link, self.kappa, self.differentiable = classifier.link, classifier.kappa, classifier.differentiable
        self.distance_aware, self.closed_form = classifier.distance_aware, classifier.closed_form
        self.capabilities, self.columns = frozenset({"columns"}), columns
        self.generator = classifier.generator

    def build(self, space: SearchSpace, outputs: int) -> None:
        for part in self.parts:
            part.bind(space, 1)

    def configure_optimizers(self) -> list[Any]:
        """Those of all columns, each of which steps its own."""
        return optimizers_of(self.parts)

    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        if batch.z.shape[1] != len(self.parts):
            raise SettingError(f"PerColumn has {len(self.parts)} column(s), but the labels have {batch.z.shape[1]}.")
        logged: dict[str, Any] = {}
        for number, part in enumerate(self.parts):
            measured = part.fit(replace(batch, z=batch.z[:, [number]]))
            logged |= {f"{name}_{number}": value for name, value in measured.items()}
        return logged

    def posterior(self, points: Tensor) -> "ColumnsPosterior":
        self.check_points(points)
        return ColumnsPosterior([part.posterior(points) for part in self.parts], self.link)


class ColumnsPosterior(MeanOnlyPosterior):
    """The posteriors of k columns of labels at n points, which count as independent.

    As one score it is the mean of the columns, without a deviation.

    Args:
        columns: k posteriors of n points each.
        link: what the scores are.
    """

    def __init__(self, columns: list[Posterior], link: Link):
        self.columns, self.link = columns, link

    @property
    def means(self) -> Tensor:
        """Of each column, n x k."""
        return torch.stack([each.mean for each in self.columns], dim=-1)

    @property
    def stds(self) -> Tensor:
        """Standard deviations of each column, n x k."""
        return torch.stack([each.std for each in self.columns], dim=-1)

    @property
    def mean(self) -> Tensor:
        return self.means.mean(-1)

    @property
    def probability(self) -> Tensor:
        return torch.stack([each.probability for each in self.columns], dim=-1).mean(-1)

    def unavailable(self, what: str) -> SettingError:
        return SettingError(
            f"PerColumn has a score for each column, so there is no one {what}. Look at its `columns`; or use one "
            "column, as ChebyshevLabels give it, with KernelPLS."
        )
