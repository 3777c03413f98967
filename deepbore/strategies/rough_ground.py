"""`RoughGround`: proposals by a random forest, for values that jump where a kernel expects them to be smooth."""

from typing import Self

from deepbore.acquisition import UpperConfidenceBound
from deepbore.classifiers import RandomForest
from deepbore.data.trial import Budget
from deepbore.errors import SettingError
from deepbore.labels import Labelling
from deepbore.space import SearchSpace
from deepbore.strategies.base import Proposal, Strategy, View
from deepbore.validation import whole

ROWS = 200  # the default maximum of rows
TREES = 100
EVERY = 4
SMOOTH = 0.9  # share of the better labels' variance that the first model explains, from which ground is not rough


class RoughGround(Strategy):
    """Proposals by a random forest of all observations, at every fourth turn.

    The values of training runs are rough: neighbouring configurations differ by luck, and thresholds of settings make
    steps. A stationary kernel takes such steps for noise, or for short length scales, and then is most uncertain far
    from all data, in corners of the space. A forest splits where values change, and is as sure between two rows as at
    them: it stays close to what was good. Neither is better everywhere, so they take turns.

    Where the first model explains nine tenths of the variance of the better half of the labels, each by all other rows,
    the ground is not rough, and the first model makes these proposals, too. The upper confidence bound of the trees is
    maximised by the search of the first strategy. The forest is grown anew at each turn, so there is no state.

    It applies in spaces with unordered choices, to one objective without budgets, constraints or earlier tasks.

    Args:
        rows: the maximum number of rows to learn from, >= 1.
        trees: of the forest, >= 1.
        every: in `Turns`, it is due at every so many proposals, >= 2.

    Raises:
        SettingError: for a number outside its range.

    References:
        Tiao et al., BORE: Bayesian optimization by density-ratio estimation, ICML 2021 (BORE-RF).
    """

    def __init__(self, rows: int = ROWS, trees: int = TREES, every: int = EVERY):
        whole(1, rows=rows, trees=trees)
        whole(2, every=every)
        self.rows, self.trees, self.every = rows, trees, every
        self.model: RandomForest | None = None  # made when it is first due: scikit-learn takes a second to import

    def check(self, space: SearchSpace, labels: Labelling) -> None:
        if labels.grades_front:
            name = type(labels).__name__
            raise SettingError(f"RoughGround learns one label for each trial, but {name} grades a front. Leave it out.")

    def at_budgets(self, budget: Budget) -> Self:
        return self

    def applies(self, view: View) -> bool:
        has_choices = any(not each.is_ordered for each in view.space.parameters.values())
        return view.batch is not None and view.first is not None and view.has_plain_outcomes and has_choices

    def fit(self, view: View) -> bool:
        """Grows the forest on all labelled rows, unless the first model explains them."""
        assert view.batch is not None
        assert view.first is not None
        if view.first.classifier.explained > SMOOTH:
            return False
        self.model = self.model or RandomForest(trees=self.trees, rows=self.rows)
        self.model.bind(view.space.points.without_fixed)
        self.model.generator = view.generator
        self.model.to(view.batch.points.device)
        self.model.fit(view.batch)
        self.model.keep_best(view.batch.best)
        return True

    def propose(self, view: View, q: int) -> Proposal:
        assert view.first is not None
        assert self.model is not None
        acquisition = UpperConfidenceBound().resolved(self.model)
        return Proposal(view.first.candidates.propose(view.search(self.model, acquisition), q), self.model)
