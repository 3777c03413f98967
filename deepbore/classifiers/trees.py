"""Classifiers of decision trees: random forests by scikit-learn, and gradient boosting by XGBoost."""

from abc import abstractmethod
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from deepbore.classifiers.base import Classifier
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import Posterior, of_members
from deepbore.errors import MissingPackage
from deepbore.labels.datamodule import LabelledBatch
from deepbore.space import SearchSpace
from deepbore.validation import at_least, one_of, up_to, whole


class TreeClassifier(Classifier):
    """A classifier of trees, grown anew in each iteration; a checkpoint keeps the rows and the seed to regrow them.

    The trees use `space.features`, in which each split between two levels of an ordinal, or between one category and
    the others, is one feature. Labels of several columns are learned as their mean. A subclass implements `grow` and
    `predict`. The libraries compute on the CPU, so features are moved there and scores back.

    Args:
        members: m, scores per point.
        rows: maximal number of observations to learn from, which bounds the cost.

    Raises:
        SettingError: for rows < 1.
    """

    differentiable = False
    closed_form = True

    def __init__(self, members: int, rows: int):
        super().__init__()
        whole(1, rows=rows)
        self.members, self.rows = members, rows
        self.capabilities = frozenset({"std", "members"}) if members > 1 else frozenset()

    @abstractmethod
    def grow(self, x: np.ndarray, z: np.ndarray, weight: np.ndarray, seed: int) -> None:
        """Fits features (n x e, float32), labels (n) and weights (n); equal seeds give equal trees."""

    @abstractmethod
    def predict(self, x: np.ndarray) -> np.ndarray:
        """Features (n x e, float32) -> scores (m x n) of the grown trees."""

    def build(self, space: SearchSpace, outputs: int) -> None:
        self.features = space.points.features
        self._remember(torch.zeros(0, len(space) + 2, dtype=torch.float64), torch.tensor(0))

    @torch.no_grad()
    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        batch = batch.coreset(self.rows, self.generator)
        labels = torch.stack([batch.z.mean(-1), batch.weight], dim=-1)
        seed = torch.randint(2**31, (), generator=self.generator)
        self._remember(torch.cat([batch.points, labels], dim=-1).cpu(), seed)
        return {"loss": self._loss(self._scores(batch.points).mean(0), *labels.T), "rows": float(len(batch))}

    def _loss(self, score: Tensor, z: Tensor, weight: Tensor) -> Tensor:
        if self.link is Link.IDENTITY:
            return (weight * (score - z).square()).mean()
        return binary_cross_entropy_with_logits(score, z.to(score), weight.to(score))

    def posterior(self, points: Tensor) -> Posterior:
        """The trees' predictions, without gradients; 0 before the first fit."""
        self.check_points(points)
        return of_members(self._scores(points), self.link, type(self).__name__)

    @torch.no_grad()
    def _scores(self, points: Tensor) -> Tensor:
        """m x n."""
        if not len(self._rows):
            return points.new_zeros(self.members, len(points))
        return torch.from_numpy(self.predict(self._encode(points))).to(points)

    def _encode(self, points: Tensor) -> np.ndarray:
        features: Tensor = self.features(points.to(self.device))
        return features.float().cpu().numpy()

    def _remember(self, rows: Tensor, seed: Tensor) -> None:
        """Keeps points, labels and weights (n x (d + 2)), and grows the trees on them."""
        self._rows, self._seed = rows, seed
        if len(rows):
            z, weight = rows[:, -2:].T.numpy()
            self.grow(self._encode(rows[:, :-2]), z, weight, int(seed))

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def get_extra_state(self) -> dict[str, Tensor]:
        """The rows and the seed of the trees."""
        return {"rows": self._rows, "seed": self._seed}

    def set_extra_state(self, state: dict[str, Tensor]) -> None:
        """Regrows the trees of a checkpoint."""
        self._remember(state["rows"].cpu(), state["seed"].cpu())


def library(module: str, user: str) -> Any:
    """A module of an optional package, imported on first use.

    Args:
        module: its full name.
        user: the feature that needs it, for the message.

    Raises:
        MissingPackage: if the package is not installed, or lacks a library of the system.
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ImportError:
        raise MissingPackage(f"{user} needs {package}: pip install 'deepbore[trees]'.") from None
    except (OSError, ValueError) as error:  # XGBoost on a Mac without OpenMP raises an error of its own, a ValueError
        said = (
            f"{user} needs {package}, which can't be imported. On a Mac it needs OpenMP: brew install libomp. It said: "
        )
        raise MissingPackage(f"{said}{str(error).strip():.300}") from error


class RandomForest(TreeClassifier):
    """A random forest, the classifier of BORE-RF (BORE J.1: scikit-learn's defaults); each tree is a member.

    The trees are grown for squared error, so that labels may be graded. For labels 0 and 1 the variance of a node,
    p (1 - p), is half its Gini impurity, so that the trees are those of scikit-learn's `RandomForestClassifier`, and
    the prediction of a leaf is its share of class 1. Upper confidence bounds explore by the spread over the trees.

    A departure from the paper: beyond `rows` observations it learns from a coreset, which bounds the cost.

    Args:
        trees: m.
        max_depth: of each tree; None to grow until the leaves are pure.
        min_samples_split: least number of rows of a node that is split, >= 2.
        rows: maximal number of observations to learn from.

    Raises:
        SettingError: for a number below its minimum.
        MissingPackage: without scikit-learn.

    Example:
        >>> from deepbore.testing import TOY_SPACES, fit, toy_data
        >>> space = TOY_SPACES["mixed"]
        >>> fit(RandomForest(trees=20), toy_data(space)).posterior(space.points.sobol(4, seed=0)).members.shape
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
        # by scikit-learn's inner trees: its own `predict` checks every tree, which takes ten times as long
        return np.stack([tree.tree_.predict(x).reshape(-1) for tree in self._forest.estimators_])


class XGBoost(TreeClassifier):
    """Gradient-boosted trees for cross-entropy, the classifier of BORE-XGB (BORE J.2); scores are logits.

    Labels may be graded: cross-entropy is defined for all labels in [0, 1].

    Departures from the paper: beyond `rows` observations it learns from a coreset, which bounds the cost. Splits are
    found by histograms, XGBoost's present default; when the paper was written, the default for so few rows was
    `tree_method="exact"`.

    Args:
        rounds: of boosting, one tree each.
        learning_rate: factor of each tree, in (0, 1].
        max_depth: of each tree.
        min_child_weight: least sum of weight times p (1 - p) in a leaf, >= 0.
        rows: maximal number of observations to learn from.
        tree_method: the search for splits: "hist", by histograms, or "exact", over all splits.

    Raises:
        SettingError: for a number outside its range.
        MissingPackage: without xgboost.

    Example:
        >>> from deepbore.testing import TOY_SPACES, fit, toy_data
        >>> space = TOY_SPACES["mixed"]
        >>> fit(XGBoost(rounds=20), toy_data(space)).posterior(space.points.sobol(4, seed=0)).mean.shape
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
            "base_score": 0.5,  # boosting starts from logit 0, as in the paper, not from the mean label
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
