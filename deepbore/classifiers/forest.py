"""`RandomForest`, by scikit-learn."""

import numpy as np

from deepbore.classifiers.link import Link
from deepbore.classifiers.trees import TreeClassifier, library
from deepbore.validation import whole


class RandomForest(TreeClassifier):
    """A random forest, the classifier of BORE-RF (BORE J.1: scikit-learn's defaults); each tree is a member.

    The trees are grown for squared error on the labels, which may so be graded. On labels 0 and 1 the variance of a
    node, p (1 - p), is half its Gini impurity: that gives the trees of scikit-learn's `RandomForestClassifier`, and a
    leaf's prediction is its share of class 1. The spread over the trees is what upper bounds explore by.

    A departure from the paper: beyond `rows` observations it learns from a coreset, so that its cost stays flat.

    Args:
        trees: m.
        max_depth: of each tree; None to grow until the leaves are pure.
        min_samples_split: rows that a node needs to be split, >= 2.
        rows: how many observations it learns from at most.

    Raises:
        SettingError: for a number below its least.
        MissingPackage: without scikit-learn.

    Example:
        >>> from deepbore.testing import TOY_SPACES, fit, toy_data
        >>> space = TOY_SPACES["mixed"]
        >>> fit(RandomForest(trees=20), toy_data(space)).posterior(space.sobol(4, seed=0)).members.shape
        torch.Size([20, 4])

    References:
        Breiman, Random forests, 2001.
    """

    link = Link.IDENTITY

    def __init__(self, trees: int = 100, max_depth: int | None = None, min_samples_split: int = 2, rows: int = 1000):
        whole(1, trees=trees, max_depth=max_depth)
        whole(2, min_samples_split=min_samples_split)
        super().__init__(trees, rows)
        self.max_depth, self.min_samples_split = max_depth, min_samples_split
        library("sklearn.ensemble", type(self).__name__)

    def grow(self, x: np.ndarray, z: np.ndarray, weight: np.ndarray, seed: int) -> None:
        ensemble = library("sklearn.ensemble", type(self).__name__)
        self._forest = ensemble.RandomForestRegressor(
            self.members,
            max_depth=self.max_depth,
            min_samples_split=self.min_samples_split,
            max_features="sqrt",  # as for classification
            random_state=seed,
        ).fit(x, z, sample_weight=weight)

    def predict(self, x: np.ndarray) -> np.ndarray:
        # the trees beneath scikit-learn's `predict`, whose checks for each tree take ten times as long
        return np.stack([tree.tree_.predict(x).reshape(-1) for tree in self._forest.estimators_])
