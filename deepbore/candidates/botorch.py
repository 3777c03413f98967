"""Batches by BoTorch's Monte Carlo acquisitions, perhaps under linear constraints."""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from deepbore.candidates.base import Candidates, Search
from deepbore.candidates.gradient import require_gradients
from deepbore.classifiers.base import Classifier
from deepbore.errors import SettingError
from deepbore.space import SearchSpace
from deepbore.space.parameters import Real

if TYPE_CHECKING:
    from botorch.acquisition import AcquisitionFunction

Inequality = tuple[Sequence[int], Sequence[float], float]
Constraints = list[tuple[Tensor, Tensor, float]]
TOLERANCE = 1e-8


class BoTorchBatch(Candidates):
    """q points that are good together, by a Monte Carlo acquisition over the classifier's joint scores.

    The acquisition is `deepbore.acquisition.botorch.joint_acquisition`, in place of the run's own, which only ranks
    what comes after the q points; override `monte_carlo` for another one. By default each point is chosen given those
    before it, which for these acquisitions is nearly as good as all at once, and quicker (Wilson et al., Maximizing
    acquisition functions for Bayesian optimization, 2018).

    For continuous spaces and differentiable classifiers; q > 1 also needs members or a posterior. The constraints bind
    what this search proposes, not the initial design, which asks no search.

    Args:
        joint: whether all q points are optimised at once.
        restarts: how many starts, >= 1.
        samples: from how many random points they are chosen, besides neighbours of the best observed.
        iterations: of the optimiser, at most.
        inequality_constraints: (indices of parameters, coefficients, right-hand side), in the parameters' own units:
            sum of coefficient * parameter >= right-hand side. None of these parameters may have a log scale.

    Raises:
        SettingError: for a number below 1, a constraint that can't be met or fits no space; at the first proposal, for
            a space or classifier without gradients, or one whose scores are certain.
    """

    def __init__(
        self,
        joint: bool = False,
        restarts: int = 5,
        samples: int = 500,
        iterations: int = 50,
        inequality_constraints: Sequence[Inequality] = (),
    ):
        for name, value in {"restarts": restarts, "samples": samples, "iterations": iterations}.items():
            if value < 1:
                raise SettingError(f"{name} >= 1 must hold, but got {name}={value}.")
        self.joint, self.restarts, self.samples, self.iterations = joint, restarts, samples, iterations
        self.inequality_constraints = list(inequality_constraints)

    def monte_carlo(self, search: Search) -> "AcquisitionFunction":
        """The acquisition of q points together, one of BoTorch's."""
        from deepbore.acquisition.botorch import joint_acquisition  # noqa: PLC0415  # takes a second to import

        return joint_acquisition(search.classifier, int(torch.randint(2**31, (), generator=search.generator)))

    def ranked(self, search: Search, q: int) -> Tensor:
        require_gradients(self, search)
        constraints = [in_points(search.space, inequality) for inequality in self.inequality_constraints]
        pool = self._pool(search, constraints, q).to(search.classifier.device)
        if q > 1:
            _require_uncertainty(search.classifier, pool)
        acquisition = self.monte_carlo(search)
        climb = partial(self._climbed, acquisition, search.space, constraints)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a start that does not converge is a start all the same
            if self.joint:
                chosen = climb(self._groups(acquisition, pool, search, q))
            else:
                chosen = self._one_by_one(acquisition, pool, climb, q)
        return torch.cat([search.space.snap(chosen.cpu()), search.rank(pool.cpu())[0]])

    # --- steps -------------------------------------------------------------------------------------------------------

    def _pool(self, search: Search, constraints: Constraints, q: int) -> Tensor:
        """Random points and neighbours of the best observed ones, within the constraints."""
        samples = search.space.sample(self.samples, search.generator)
        best = search.observations.points[search.observations.best_rows(self.restarts)].cpu()
        near = search.space.neighbours(best, self.samples // 4, search.generator) if len(best) else best
        pool = torch.cat([samples, best, near])
        pool = pool[feasible(pool, constraints)]
        if len(pool) < q * self.restarts:
            raise SettingError(
                f"{q * self.restarts} points within the constraints are needed to start from, but of {self.samples} "
                f"random ones and their like only {len(pool)} are. Raise samples, or loosen the constraints: "
                f"{self.inequality_constraints}."
            )
        return pool

    def _one_by_one(
        self, acquisition: "AcquisitionFunction", pool: Tensor, climb: Callable[[Tensor], Tensor], q: int
    ) -> Tensor:
        """Each point given those before it (q x d)."""
        chosen = pool[:0]
        for _ in range(q):
            acquisition.set_X_pending(chosen if len(chosen) else None)
            starts = pool[_values(acquisition, pool).topk(self.restarts).indices]
            chosen = torch.cat([chosen, climb(starts[:, None])])
        return chosen

    def _groups(self, acquisition: "AcquisitionFunction", pool: Tensor, search: Search, q: int) -> Tensor:
        """Random groups of the best single points, to start from all at once (restarts x q x d)."""
        best = pool[_values(acquisition, pool).topk(self.restarts * q).indices]
        order = torch.randperm(len(best), generator=search.generator).to(best.device)
        return best[order].view(self.restarts, q, -1)

    def _climbed(
        self, acquisition: "AcquisitionFunction", space: SearchSpace, constraints: Constraints, starts: Tensor
    ) -> Tensor:
        """The best of what the optimiser makes of the starts (k x q x d -> q x d)."""
        from botorch.optim import optimize_acqf  # noqa: PLC0415

        points, _ = optimize_acqf(
            acquisition,
            bounds=space.bounds.to(starts),
            q=starts.shape[1],
            num_restarts=len(starts),
            batch_initial_conditions=starts,
            inequality_constraints=[(i.to(starts.device), c.to(starts), rhs) for i, c, rhs in constraints] or None,
            options={"maxiter": self.iterations, "batch_limit": len(starts)},
        )
        climbed: Tensor = points.detach()
        return climbed


@torch.no_grad()
def _values(acquisition: "AcquisitionFunction", points: Tensor) -> Tensor:
    """Values of single points (n), given what is pending."""
    values: Tensor = acquisition(points[:, None])
    return values


def _require_uncertainty(classifier: Classifier, points: Tensor) -> None:
    if not classifier.estimates_labels and len(classifier.scores(points[:1])) == 1:
        raise SettingError(
            f"several points at once need a classifier with members or a posterior, but {type(classifier).__name__} "
            "gives one score. Use DeepEnsemble or KernelPLS, or ask for one point at a time."
        )


# --- constraints -----------------------------------------------------------------------------------------------------


def in_points(space: SearchSpace, inequality: Inequality) -> tuple[Tensor, Tensor, float]:
    """A linear inequality of parameters as one of points: x = low + u (high - low) with u in [0, 1].

    Raises:
        SettingError: if it names no parameters of the space, or one with a log scale.
    """
    indices, coefficients, rhs = inequality
    parameters = list(space.parameters.values())
    if not indices or len(indices) != len(coefficients) or not all(0 <= i < len(space) for i in indices):
        raise SettingError(
            f"an inequality needs one coefficient for each index among 0 ... {len(space) - 1}, but got {inequality}."
        )
    reals = [p for p in (parameters[i] for i in indices) if isinstance(p, Real) and not p.log]
    if len(reals) < len(indices):
        raise SettingError(f"an inequality is linear in parameters without a log scale, but got {inequality}.")
    widths = [c * (p.high - p.low) for c, p in zip(coefficients, reals, strict=True)]
    offset = sum(c * p.low for c, p in zip(coefficients, reals, strict=True))
    return torch.tensor(indices), torch.tensor(widths, dtype=torch.float64), rhs - offset


def feasible(points: Tensor, constraints: Constraints) -> Tensor:
    """Which points (n x d) meet all constraints: n booleans."""
    met = torch.ones(len(points), dtype=torch.bool)
    for indices, coefficients, rhs in constraints:
        met &= points[:, indices] @ coefficients >= rhs - TOLERANCE
    return met
