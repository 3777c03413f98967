"""`XGBoost`: gradient-boosted trees."""

from typing import Any

import numpy as np

from deepbore.classifiers.trees import TreeClassifier, library
from deepbore.validation import at_least, one_of, up_to, whole


class XGBoost(TreeClassifier):
    """Gradient-boosted trees for cross-entropy, the classifier of BORE-XGB (BORE J.2); scores are logits.

    Labels may be graded: cross-entropy takes any label in [0, 1].

    Departures from the paper: beyond `rows` observations it learns from a coreset, so that its cost stays flat. Splits
    are chosen by histograms, XGBoost's default today; that of its time was `tree_method="exact"` for so few rows.

    Args:
        rounds: of boosting, one tree each.
        learning_rate: what each tree is multiplied with, in (0, 1].
        max_depth: of each tree.
        min_child_weight: least sum of weight times p (1 - p) in a leaf, >= 0.
        rows: how many observations it learns from at most.
        tree_method: how splits are found: "hist", by histograms, or "exact", among all.

    Raises:
        SettingError: for a number outside its range.
        MissingPackage: without xgboost.

    Example:
        >>> from deepbore.testing import TOY_SPACES, fit, toy_data
        >>> space = TOY_SPACES["mixed"]
        >>> fit(XGBoost(rounds=20), toy_data(space)).posterior(space.sobol(4, seed=0)).mean.shape
        torch.Size([4])

    References:
        Chen & Guestrin, XGBoost: a scalable tree boosting system, 2016.
    """

    def __init__(
        self,
        rounds: int = 100,
        learning_rate: float = 0.3,
        max_depth: int = 6,
        min_child_weight: float = 1.0,
        rows: int = 1000,
        tree_method: str = "hist",
    ):
        super().__init__(1, rows)
        whole(1, rounds=rounds, max_depth=max_depth)
        up_to(0, 1, learning_rate=learning_rate)
        at_least(0, min_child_weight=min_child_weight)
        one_of(("hist", "exact"), tree_method=tree_method)
        self.rounds, self.max_depth, self.tree_method = rounds, max_depth, tree_method
        self.learning_rate, self.min_child_weight = learning_rate, min_child_weight
        library("xgboost", type(self).__name__)

    def grow(self, x: np.ndarray, z: np.ndarray, weight: np.ndarray, seed: int) -> None:
        xgboost = library("xgboost", type(self).__name__)
        settings: dict[str, Any] = {
            "objective": "binary:logistic",
            "base_score": 0.5,  # boosting starts from logit 0, as it did in the paper, and not from the labels' mean
            "eta": self.learning_rate,
            "max_depth": self.max_depth,
            "min_child_weight": self.min_child_weight,
            "tree_method": self.tree_method,
            "seed": seed,
            "nthread": 1,
            "verbosity": 0,
        }
        rows = xgboost.DMatrix(x, label=z, weight=weight, nthread=1)
        self._booster = xgboost.train(settings, rows, num_boost_round=self.rounds)

    def predict(self, x: np.ndarray) -> np.ndarray:
        logits: np.ndarray = self._booster.inplace_predict(x, predict_type="margin")
        return logits[None]
