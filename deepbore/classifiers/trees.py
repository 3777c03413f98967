"""What classifiers made of decision trees share: features, no gradient, and checkpoints by growing again."""

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
from deepbore.validation import whole


class TreeClassifier(Classifier):
    """Grows trees from new on each iteration's rows, and keeps these rows and the seed instead of the trees.

    The trees read `space.features`, where each split between two levels of an ordinal, or between one category and
    the others, is one feature. Labels of several columns are learned as their mean. A subclass implements `grow` and
    `predict`.

    The libraries behind them compute on the CPU: there, and only there, points leave the device.

    Args:
        members: m, scores for each point.
        rows: how many observations it learns from at most, so that its cost stays flat.

    Raises:
        SettingError: for rows < 1.
    """

    differentiable = False

    def __init__(self, members: int, rows: int):
        super().__init__()
        whole(1, rows=rows)
        self.members, self.rows = members, rows
        self.capabilities = frozenset({"std", "members"}) if members > 1 else frozenset()

    @abstractmethod
    def grow(self, x: np.ndarray, z: np.ndarray, weight: np.ndarray, seed: int) -> None:
        """Fits features (n x e, float32), labels (n) and weights (n), the same for the same seed."""

    @abstractmethod
    def predict(self, x: np.ndarray) -> np.ndarray:
        """Features (n x e, float32) -> scores (m x n) of the grown trees."""

    def build(self, space: SearchSpace, outputs: int) -> None:
        self.features = space.features
        self._remember(torch.zeros(0, len(space) + 2, dtype=torch.float64), torch.tensor(0))

    @torch.no_grad()
    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        batch = batch.coreset(self.rows, self.generator)
        labels = torch.stack([batch.z.mean(-1), batch.weight], dim=-1)
        seed = torch.randint(2**31, (), generator=self.generator)
        self._remember(torch.cat([batch.points, labels], dim=-1).cpu(), seed)
        self.count_step()
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
        """Keeps points, labels and weights side by side (n x (d + 2)), and grows the trees on them."""
        self._rows, self._seed = rows, seed
        if len(rows):
            z, weight = rows[:, -2:].T.numpy()
            self.grow(self._encode(rows[:, :-2]), z, weight, int(seed))

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def get_extra_state(self) -> dict[str, Tensor]:
        """What the trees were grown from."""
        return {"rows": self._rows, "seed": self._seed}

    def set_extra_state(self, state: dict[str, Tensor]) -> None:
        """Grows the trees of a checkpoint again."""
        self._remember(state["rows"].cpu(), state["seed"].cpu())


def library(module: str, user: str) -> Any:
    """A module of an optional package, imported when it is first needed.

    Args:
        module: its full name.
        user: what needs it, for the message.

    Raises:
        MissingPackage: if the package is not installed.
    """
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise MissingPackage(f"{user} needs {package}: pip install 'deepbore[trees]'.") from None
