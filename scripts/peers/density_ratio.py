"""BORE and LFBO as published, with features and search of the papers' codes.

Tiao et al., BORE: Bayesian optimization by density-ratio estimation, ICML 2021; Song et al., A general recipe for
likelihood-free Bayesian optimization, ICML 2022. Ordinals are one scaled number, categories one-hot. An evaluation is
good if it is below the quantile gamma = .33. What was proposed before is replaced by a random configuration. Failures
are bad.
"""

from abc import abstractmethod

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from deepbore.space import Params
from peers.base import PointPeer, one_hot

GAMMA = 0.33
CANDIDATES = 5000
TREES = 100


class DensityRatio(PointPeer):
    """What both have in common: features, labels, and a random point for a duplicate. The design is random."""

    packages = ("deepbore",)

    def ask(self, q: int) -> list[Params]:
        """The model takes one proposal at a time; the best q candidates make a batch."""
        if len(self.values) < self.n_initial:
            points = self.space.points.sample(q, self.generator)
            self.seen.update(self.space.points.identify(points))
            return self.space.decode(points)
        self.designed = self.n_initial
        return super().ask(q)

    def propose(self, q: int) -> Tensor:
        y = np.array(self.filled())
        failed = np.array([value is None for value in self.values])
        tau = np.quantile(y, GAMMA)
        good = (y < tau) & ~failed
        if not good.any():  # the least value is tied
            good = (y <= tau) & ~failed
        if not good.any() or good.all():
            return self.random(q)
        return self.fresh(self.best(self.features(self.points), good, tau - y, q))

    def features(self, points: Tensor) -> np.ndarray:
        """Points (n x d in the unit cube) -> what the classifier sees (n x e)."""
        return one_hot(self.space, points).numpy()

    @abstractmethod
    def best(self, x: np.ndarray, good: np.ndarray, improvement: np.ndarray, q: int) -> Tensor:
        """The q points (q x d) that the classifier likes best, once it has learned which rows of x (n x e) are good."""


class Trees(DensityRatio):
    """A forest or boosted trees, 100 of them; the best of 5000 random candidates.

    LFBO's code has forests of 1000 trees, which take ten times as long to find much the same.

    Args:
        classifier: "rf" or "xgb".
        weighted: LFBO's weights for expected improvement: every row counts as bad, and good ones once more as good with
            the weight tau - y, both classes weighing the same. Else BORE's labels.
    """

    def __init__(self, *arguments, classifier: str, weighted: bool, **settings):
        super().__init__(*arguments, **settings)
        self.classifier, self.weighted = classifier, weighted
        self.packages = ("scikit-learn",) if classifier == "rf" else ("xgboost-cpu",)

    def best(self, x: np.ndarray, good: np.ndarray, improvement: np.ndarray, q: int) -> Tensor:
        model, weights = self.model(), None
        labels = good.astype(int)
        if self.weighted:
            gain = improvement[good] if improvement[good].sum() > 0 else np.ones(good.sum())
            weights = np.concatenate([gain / gain.sum(), np.full(len(x), 1 / len(x))])
            weights /= weights.mean()
            x, labels = np.concatenate([x[good], x]), np.repeat([1, 0], [good.sum(), len(x)])
        model.fit(x, labels, sample_weight=weights)
        candidates = self.random(CANDIDATES)
        order = (-model.predict_proba(self.features(candidates))[:, 1]).argsort(kind="stable")
        return candidates[order[:q].copy()]

    def model(self):
        """A new classifier, as the papers set it."""
        seed = int(torch.randint(2**31, (), generator=self.generator))
        if self.classifier == "rf":
            from sklearn.ensemble import RandomForestClassifier

            return RandomForestClassifier(n_estimators=TREES, min_samples_split=2, random_state=seed, n_jobs=1)
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=TREES, learning_rate=0.3, min_child_weight=1, random_state=seed, n_jobs=1)


class Network(DensityRatio):
    """BORE-MLP: 2 x 32 ReLU units that learn on, 100 steps of Adam in batches of 64; the best of five ascents.

    L-BFGS climbs the logit from the five best of 1024 random candidates; one-hot columns are taken to their largest.
    Batches are its ascents and then the next best candidates, which the paper leaves open.
    """

    packages = ("torch",)
    STEPS, BATCH, SAMPLES, STARTS = 100, 64, 1024, 5

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        e = self.features(self.random(1)).shape[1]
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            layers = nn.Linear(e, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0)
            self.network = nn.Sequential(*layers).double()
        self.adam = torch.optim.Adam(self.network.parameters(), 1e-3)

    def best(self, x: np.ndarray, good: np.ndarray, improvement: np.ndarray, q: int) -> Tensor:
        self.train(torch.from_numpy(x), torch.from_numpy(good).double())
        candidates = self.random(self.SAMPLES)
        features = self.features(candidates)
        with torch.no_grad():
            order = self.network(torch.from_numpy(features)).argsort(descending=True)
        ascents = sorted((self.climbed(features[row]) for row in order[: self.STARTS].tolist()), key=lambda end: end[0])
        climbed = torch.stack([self.back(end) for _, end in ascents])
        return torch.cat([climbed, candidates[order]])[:q]

    def train(self, x: Tensor, labels: Tensor) -> None:
        """One hundred steps on minibatches."""
        rows = torch.empty(0, dtype=torch.long)
        for _ in range(self.STEPS):
            if not len(rows):
                rows = torch.randperm(len(x), generator=self.generator)
            batch, rows = rows[: self.BATCH], rows[self.BATCH :]
            self.adam.zero_grad()
            binary_cross_entropy_with_logits(self.network(x[batch]), labels[batch]).backward()
            self.adam.step()

    def climbed(self, start: np.ndarray) -> tuple[float, np.ndarray]:
        """Minus the logit at the top, and the features (e) there."""

        def descent(features: np.ndarray) -> tuple[float, np.ndarray]:
            at = torch.tensor(features[None], requires_grad=True)
            loss = -self.network(at).sum()
            (slope,) = torch.autograd.grad(loss, at)
            return loss.item(), slope[0].numpy()

        end = minimize(descent, start, jac=True, method="L-BFGS-B", bounds=[(0, 1)] * len(start))
        return float(end.fun), end.x

    def back(self, features: np.ndarray) -> Tensor:
        """Features (e) -> a point (d) of the unit cube."""
        point, column = [], 0
        for p in self.space.parameters.values():
            width = p.levels if p.kind == "categorical" else 1
            part = features[column : column + width]
            point.append(part.argmax() / p.upper if p.kind == "categorical" else part[0])
            column += width
        return torch.tensor(point, dtype=torch.float64)
