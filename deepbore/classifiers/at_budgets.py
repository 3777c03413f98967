"""`AtBudgets`: any classifier, with the budget as one more feature."""

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from deepbore.checks import of_kind, required
from deepbore.classifiers.base import Classifier
from deepbore.classifiers.posterior import Posterior
from deepbore.classifiers.wrappers import OnAnotherSpace
from deepbore.data.trial import Budget
from deepbore.errors import SettingError
from deepbore.labels.datamodule import LabelledBatch
from deepbore.space import Real, SearchSpace
from deepbore.space.structure import free_name


class AtBudgets(OnAnotherSpace):
    """One classifier of all rungs: it learns the label of a configuration on a budget, and answers for the highest.

    The logarithm of the budget is one more real parameter of the space that the base learns. So what is good after one
    epoch counts for what will be good after eighty as far as the data say that it does, and a search, which asks what
    is best at the highest budget, needs to know of none. A study with a budget wraps its classifier in this by itself.

    Without budgets in a batch all of it is learned as of the highest.

    Args:
        classifier: the base, not bound to a space yet.
        budget: the rungs.

    Raises:
        SettingError: for a base that is bound already.

    Example:
        >>> from deepbore import Budget, KernelPLS, Real, SearchSpace, Study
        >>> study = Study(SearchSpace({"x": Real(0, 1)}), budget=Budget("epochs", 1, 9))
        >>> type(study.classifier).__name__, type(study.classifier.base).__name__
        ('AtBudgets', 'KernelPLS')

    References:
        Klein et al., Model-based Asynchronous Hyperparameter and Neural Architecture Search, 2020: one model of all
        rungs beside asynchronous promotions.
    """

    learns = "one parameter more"

    def __init__(self, classifier: Classifier, budget: Budget):
        required(classifier=classifier, budget=budget)
        super().__init__(classifier)
        of_kind(Budget, budget=budget)
        self.budget = budget

    def build(self, space: SearchSpace, outputs: int) -> None:
        spent = {free_name("budget", space.names): Real(self.budget.low, self.budget.top, log=True)}
        self.base.bind(SearchSpace({**space.parameters, **spent}), outputs)

    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        return self.base.fit(self._spent(batch))

    def quality(self, batch: LabelledBatch) -> dict[str, Tensor]:
        """That of the base, each row at its own budget."""
        return self.base.quality(self._spent(batch))

    def posterior(self, points: Tensor) -> Posterior:
        """That of the base at the highest budget."""
        self.check_points(points)
        return self.base.posterior(_with_column(points, torch.ones_like(points[:, 0])))

    def _spent(self, batch: LabelledBatch) -> LabelledBatch:
        """The batch with the place of each budget between the lowest and the highest, in logarithms, as a column."""
        if batch.budgets is None:
            return replace(batch, points=_with_column(batch.points, torch.ones_like(batch.points[:, 0])))
        spent = (batch.budgets / self.budget.low).log() / math.log(self.budget.top / self.budget.low)
        return replace(batch, points=_with_column(batch.points, spent.nan_to_num(nan=1.0)))


def at_budgets(classifier: Classifier, budget: Budget) -> "AtBudgets":
    """A classifier in `AtBudgets`, unless it is in one already.

    Raises:
        SettingError: for one of another budget.
    """
    wrapped = classifier if isinstance(classifier, AtBudgets) else AtBudgets(classifier, budget)
    if wrapped.budget != budget:
        raise SettingError(
            f"the classifier is of {wrapped.budget}, but the study has {budget}. Give the classifier alone: it is "
            "wrapped in AtBudgets by itself."
        )
    return wrapped


def _with_column(points: Tensor, column: Tensor) -> Tensor:
    return torch.cat([points, column[:, None].to(points)], dim=-1)
