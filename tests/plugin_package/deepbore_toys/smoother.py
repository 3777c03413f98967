"""A classifier: the mean label of a point's neighbourhood (Nadaraya, 1964; Watson, 1964)."""

from typing import Any

import torch
from torch import Tensor

from deepbore.classifiers import Classifier, Link
from deepbore.classifiers.posterior import GaussianPosterior
from deepbore.labels import LabelledBatch
from deepbore.space import SearchSpace


class SmootherPosterior(GaussianPosterior):
    """Gaussian at each point, correlated as far as two points have the same neighbours."""

    def __init__(self, near: Tensor, mean: Tensor, std: Tensor):
        super().__init__(mean, std, Link.IDENTITY)
        self.near = near

    def covariance(self) -> Tensor:
        direction = self.near / self.near.norm(dim=-1, keepdim=True).clamp(min=1e-12)
        correlation = direction @ direction.mT
        correlation = correlation - correlation.diagonal().diag() + torch.eye(len(correlation)).to(correlation)
        return self.std[:, None] * correlation * self.std


class KernelSmoother(Classifier):
    """Less certain the fewer neighbours a point has."""

    closed_form = True  # no gradient steps, and so no Trainer
    link = Link.IDENTITY  # scores are labels in [0, 1], not logits
    capabilities = frozenset({"std"})  # and so a covariance and joint samples
    distance_aware = True  # the deviation grows away from the data

    def __init__(self, width: float = 0.1):
        super().__init__()
        self.width = width

    def build(self, space: SearchSpace, outputs: int) -> None:
        self.features = space.points.features
        self.data = torch.zeros(0, self.features.size), torch.zeros(0), torch.zeros(0)

    @torch.no_grad()
    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        batch = batch.coreset(500, self.generator)  # so that a million rows cost no more
        self.data = self.features(batch.points), batch.z.mean(-1), batch.weight
        return {"loss": (self.posterior(batch.points).mean - batch.z.mean(-1)).square().mean()}

    def posterior(self, points: Tensor) -> SmootherPosterior:
        self.check_points(points)
        x, z, weight = (part.to(points) for part in self.data)
        distances = torch.cdist(self.features(points), x, compute_mode="donot_use_mm_for_euclid_dist")
        near = weight * (-distances.square() / (2 * self.width**2 * self.features.size)).exp()  # n x rows
        count = near.sum(-1) + 0.1  # far from all data, a tenth of an observation with label 0
        return SmootherPosterior(near, near @ z / count, (0.025 / count).sqrt())

    def get_extra_state(self) -> tuple[Tensor, ...]:
        return self.data

    def set_extra_state(self, state: tuple[Tensor, Tensor, Tensor]) -> None:
        self.data = state
