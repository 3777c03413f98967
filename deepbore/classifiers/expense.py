"""`Expense`: what an evaluation is expected to cost, by which its gain is divided."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from deepbore.classifiers.kernel.least_squares import ROWS, KernelPLS
from deepbore.compute.arrays import Array
from deepbore.data.observations import Observations
from deepbore.labels.datamodule import LabelledBatch

FEWEST = 5  # costs that a model is learned from
SPREAD = 0.05  # the least standard deviation of log costs that is worth a model
LEAST = 1e-3  # the least cost that is told from nothing, by the median
SCALE = 0.25  # the standard deviation of what `KernelPLS` expects to learn: labels in [0, 1]


@dataclass(frozen=True)
class Expense:
    """The factor max(c(x), c*)^-alpha of an acquisition, where what evaluations cost in all is limited.

        log c(x) = m(x) + a constant,   alpha = (T - t) / (T - t_0)

    m is the mean of a `KernelPLS` of the logarithms of costs, so far from all data an evaluation costs what is usual;
    t of the limit T are spent, t_0 of them by the initial design. So cheap gains come first, and the last evaluations
    are chosen by their gain alone (EI-cool of Lee et al. 2020).

    Departures from the paper: it has expected improvement; here the same product is of a class probability, or whatever
    the acquisition is. And what is dearer than the best trial, which has cost c*, must promise more, but what is
    cheaper need not promise less: where good configurations are dear, as wide networks are, the search would leave
    them otherwise.

    Attributes:
        model: of log costs, centred and divided by `spread`.
        spread: what a unit of the model is in log costs.
        exponent: alpha, in (0, 1].
        least: log c* in units of the model; minus infinity where the best trial's cost is unknown.

    References:
        Lee, Perrone, Archambeau & Seeger, Cost-aware Bayesian optimization, 2020, arXiv:2003.10870.
    """

    model: KernelPLS
    spread: float
    exponent: float
    least: float = -math.inf

    @classmethod
    @torch.no_grad()
    def learned(cls, observations: Observations, exponent: float, generator: torch.Generator) -> "Expense | None":
        """The factor by the costs so far; None where these are too few, or all alike.

        Args:
            observations: all trials.
            exponent: alpha.
            generator: random numbers for a coreset of more than 200 rows.

        Raises:
            torch.linalg.LinAlgError: if the Gram matrix has no Cholesky factor.
        """
        rows, logs = log_costs(observations.ledger.notes.costs)
        spread = float(np.std(logs)) if len(logs) else 0.0
        if exponent <= 0 or len(rows) < FEWEST or spread < SPREAD:
            return None
        points = observations.points[torch.from_numpy(rows).to(observations.points.device)]
        z = torch.from_numpy((logs - logs.mean()) * SCALE / spread).to(points.device)[:, None]
        model = KernelPLS(alike=False, crashes=False, additive=False)
        model.bind(observations.space.points.without_fixed)
        model.to(points.device).learn(LabelledBatch(points, z, torch.ones_like(z[:, 0])).coreset(ROWS, generator))
        (best,) = observations.centres.best_rows(1).tolist() or (-1,)
        own = z[rows == best]
        return cls(model, spread / SCALE, exponent, float(own[0]) if len(own) else -math.inf)

    def log_factor(self, points: Tensor) -> Tensor:
        """Points (n x d) -> -alpha log max(c(x), c*), but for a constant (n), with gradients."""
        return -self.exponent * self.spread * self.model.posterior(points).of_moments(self._at_least)

    def _at_least(self, mean: Array, std: Array) -> tuple[Array, Array, Array]:
        """The mean, or the least one that counts, and its derivatives by mean and deviation."""
        return mean.clip(self.least), (mean > self.least) * 1.0, 0.0 * std


def log_costs(costs: Mapping[int, float]) -> tuple[Array, Array]:
    """The rows whose costs are known, and the logarithms of these (m each); none where nothing has cost anything."""
    rows, known = np.array(list(costs), dtype=np.int64), np.array(list(costs.values()), dtype=np.float64)
    if not known.any():
        return rows[:0], known[:0]
    return rows, np.log(known.clip(LEAST * np.median(known[known > 0])))


def share_left(costs: Mapping[int, float], limit: float, n_initial: int) -> float:
    """alpha, by the costs so far, of which the first belong to the initial design; 0 once the limit is reached."""
    known = list(costs.values())
    begun, spent = math.fsum(known[:n_initial]), math.fsum(known)
    return max(0.0, (limit - spent) / (limit - begun)) if begun < limit else 0.0
