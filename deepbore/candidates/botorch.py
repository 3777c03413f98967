"""Batches by BoTorch's Monte Carlo acquisitions, perhaps under linear constraints."""

import math
import numbers
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from deepbore.candidates.base import Candidates, Search
from deepbore.candidates.batches import pending_points
from deepbore.candidates.relaxed import require_gradients
from deepbore.classifiers.base import Classifier
from deepbore.classifiers.posterior import UNCERTAIN
from deepbore.compute.torch_state import import_quietly
from deepbore.errors import SettingError
from deepbore.space import SearchSpace
from deepbore.space.parameters import Parameter
from deepbore.validation import one_of, whole

if TYPE_CHECKING:
    from botorch.acquisition import AcquisitionFunction

Inequality = tuple[Sequence[int], Sequence[float], float]
Constraints = list[tuple[Tensor, Tensor, float]]
Climb = Callable[[Tensor], Tensor]  # starts (k x q x d) -> the best that was found (q x d)
TOLERANCE = 1e-8
PENDING = 64  # trials that are kept away from, the newest: the joint scores cost the cube of their number
BASELINE = 32  # rows with the best values, one of which is taken for the best where values are noisy


class BoTorchBatch(Candidates):
    """q points that are good together, by a Monte Carlo acquisition over the classifier's joint scores.

    The acquisition is `deepbore.acquisition.botorch.joint_acquisition`, in place of the run's own, which only ranks
    what comes after the q points; override `monte_carlo` for another one. By default each point is chosen given those
    before it, which for these acquisitions is nearly as good as all at once, and quicker (Wilson et al., Maximizing
    acquisition functions for Bayesian optimization, 2018). Pending trials, the newest 64, count as chosen before all;
    a head that gives one score a point only never proposes them again.

    For continuous spaces and differentiable classifiers; q > 1 also needs a deviation. The constraints given here bind
    what this search proposes, not the initial design, which asks no search. Those of the space bind both: climbers stop
    where they forbid to go on.

    Several ranks share the pool's values and the starts, and take the best that any of them finds. SciPy steps: at
    every iteration the climbers' points and gradients, and nothing else, visit the CPU.

    Args:
        joint: whether all q points are optimised at once.
        restarts: how many starts, >= 1.
        samples: from how many random points they are chosen, besides neighbours of the best observed.
        iterations: of the optimiser, at most.
        inequality_constraints: (indices of parameters, coefficients, right-hand side), in the parameters' own units:
            sum of coefficient * parameter >= right-hand side. None of these parameters may have a log scale.

    Raises:
        SettingError: for a number below 1; when the run is set up, for a space or classifier without gradients, one
            with a score for each objective, or a constraint that does not fit the space; at a proposal, for a
            constraint that can't be met, or for several points of a classifier whose scores are certain.
    """

    def __init__(
        self,
        joint: bool = False,
        restarts: int = 5,
        samples: int = 500,
        iterations: int = 50,
        inequality_constraints: Sequence[Inequality] = (),
    ):
        one_of((True, False), joint=joint)
        whole(1, restarts=restarts, samples=samples, iterations=iterations)
        if not isinstance(inequality_constraints, Sequence):
            raise SettingError(
                "inequality_constraints must be a list of (columns, coefficients, bound), but got "
                f"{inequality_constraints!r:.100}."
            )
        self.joint, self.restarts, self.samples, self.iterations = joint, restarts, samples, iterations
        self.inequality_constraints = list(inequality_constraints)

    def monte_carlo(self, search: Search) -> "AcquisitionFunction":
        """The acquisition of q points together, one of BoTorch's."""
        import_quietly("gpytorch")
        from deepbore.acquisition.botorch import joint_acquisition  # takes a second to import

        seed = int(torch.randint(2**31, (), generator=search.generator))
        rows = search.observations.best_rows(BASELINE)
        return joint_acquisition(search.classifier, seed, search.goal, search.points(rows) if len(rows) else None)

    def check(self, space: SearchSpace, classifier: Classifier) -> None:
        super().check(space, classifier)
        require_gradients(self, space, classifier)
        if "columns" in classifier.capabilities:
            raise SettingError(
                f"{type(self).__name__} searches by one score, but {type(classifier).__name__} has one for each "
                "objective. Use GreedyBatch, or labels=ChebyshevLabels(ValueGradedLabels())."
            )
        self._constraints(space)

    def ranked(self, search: Search, q: int) -> Tensor:
        require_gradients(self, search.space, search.classifier)
        if q > 1:
            _require_uncertainty(search.classifier)
        if search.feasibility is not None:
            raise SettingError(
                f"{type(self).__name__} has no say in black-box constraints, but the outcomes have some that are "
                "violated. Use GreedyBatch or ThompsonBatch; Study.load(journal, candidates=GreedyBatch()) goes on."
            )
        constraints = self._constraints(search.space)
        pool = self._pool(search, constraints, q)
        acquisition = self.monte_carlo(search)
        climb = partial(self._climbed, search, acquisition, constraints)
        pending = _kept_away_from(search)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a start that does not converge is a start all the same
            if self.joint:
                acquisition.set_X_pending(pending if len(pending) else None)
                chosen = climb(self._groups(search, acquisition, pool, q))
            else:
                chosen = self._one_by_one(search, acquisition, pool, climb, pending, q)
        return torch.cat([chosen, search.best_first(pool)[0]])

    # --- steps -------------------------------------------------------------------------------------------------------

    def _constraints(self, space: SearchSpace) -> Constraints:
        return [in_points(space, inequality) for inequality in self.inequality_constraints]

    def _pool(self, search: Search, constraints: Constraints, q: int) -> Tensor:
        """Random points and neighbours of the best observed ones, within the constraints, the same on all ranks."""
        samples, best = search.sample(self.samples), search.points(search.observations.best_rows(self.restarts))
        near = search.near_best(self.samples // 4, self.restarts)
        pool = torch.cat([samples, search.allowed(torch.cat([best, near]))])
        pool = pool[feasible(pool, constraints)]
        if len(pool) < q * self.restarts:
            raise SettingError(
                f"{q * self.restarts} points within the constraints are needed to start from, but of {self.samples} "
                f"random ones and their like only {len(pool)} are. Raise samples, or loosen the constraints: "
                f"{self.inequality_constraints}."
            )
        return pool

    def _one_by_one(
        self, search: Search, acquisition: "AcquisitionFunction", pool: Tensor, climb: Climb, pending: Tensor, q: int
    ) -> Tensor:
        """Each point given the pending ones and those before it (q x d)."""
        chosen = pending
        for _ in range(q):
            acquisition.set_X_pending(chosen if len(chosen) else None)
            starts = pool[_values(search, acquisition, pool).topk(self.restarts).indices]
            chosen = torch.cat([chosen, climb(starts[:, None])])
        return chosen[len(pending) :]

    def _groups(self, search: Search, acquisition: "AcquisitionFunction", pool: Tensor, q: int) -> Tensor:
        """Random groups of the best single points, to start from all at once (restarts x q x d)."""
        best = pool[_values(search, acquisition, pool).topk(self.restarts * q).indices]
        order = torch.randperm(len(best), generator=search.stream, device=search.stream.device).to(best.device)
        return best[order].view(self.restarts, q, -1)

    def _climbed(
        self, search: Search, acquisition: "AcquisitionFunction", constraints: Constraints, starts: Tensor
    ) -> Tensor:
        """The best of what the optimiser makes of the starts, each rank of its share (k x q x d -> q x d)."""
        found = self._optimised(search, acquisition, constraints, search.ranks.part(starts))
        tops, values = zip(*(each for each in search.ranks.gather(found) if each is not None), strict=True)
        best: Tensor = tops[max(range(len(values)), key=values.__getitem__)]
        return best.to(starts)

    def _optimised(
        self, search: Search, acquisition: "AcquisitionFunction", constraints: Constraints, starts: Tensor
    ) -> tuple[Tensor, float] | None:
        """The best top of these starts (q x d) and its value, on the CPU; None without any.

        The optimiser knows nothing of the constraints of the space: tops are where climbers land.
        """
        from botorch.optim import optimize_acqf

        if not len(starts):
            return None
        ends, values = optimize_acqf(
            acquisition,
            bounds=search.space.bounds.to(starts),
            q=starts.shape[1],
            num_restarts=len(starts),
            batch_initial_conditions=starts,
            inequality_constraints=[(i.to(starts.device), c.to(starts), rhs) for i, c, rhs in constraints] or None,
            return_best_only=False,
            options={"maxiter": self.iterations, "batch_limit": len(starts)},
        )
        tops = search.landed(starts.flatten(0, 1), ends.detach().flatten(0, 1)).view_as(starts)
        if search.space.is_restricted:  # some have been drawn back
            with torch.no_grad():
                values = acquisition(tops)
        best = int(values.argmax())
        return tops[best].cpu(), float(values[best])


@torch.no_grad()
def _values(search: Search, acquisition: "AcquisitionFunction", points: Tensor) -> Tensor:
    """Values of single points (n), given what is pending; each rank computes its share."""
    values: Tensor = search.ranks.whole(acquisition(search.ranks.part(points)[:, None]))
    return values


def _kept_away_from(search: Search) -> Tensor:
    """The newest pending points, which a point must add something to (k x d).

    None of a score without a deviation, the only one possible: beside a better point another would be worth nothing.
    """
    pending = pending_points(search)[-PENDING:]
    return pending if "std" in search.classifier.capabilities else pending[:0]


def _require_uncertainty(classifier: Classifier) -> None:
    if "std" not in classifier.capabilities:
        raise SettingError(
            f"several points at once need a deviation of the scores, but {type(classifier).__name__} gives one score a "
            f"point. Use {UNCERTAIN}, or ask for one point at a time."
        )


# --- constraints -----------------------------------------------------------------------------------------------------


def in_points(space: SearchSpace, inequality: Inequality) -> tuple[Tensor, Tensor, float]:
    """A linear inequality of parameters as one of points: x = low + u (high - low) with u in [0, 1].

    Raises:
        SettingError: if it names no parameters of the space, or one with a log scale.
    """
    if not _fits(inequality, len(space)):
        raise SettingError(
            "an inequality is (indices, coefficients, bound) with one coefficient for each index among 0 ... "
            f"{len(space) - 1}, but got {inequality!r:.100}."
        )
    indices, coefficients, rhs = inequality
    parameters = list(space.parameters.values())
    ends = [_linear_range(parameters[i]) for i in indices]
    lines = [end for end in ends if end is not None]
    if len(lines) < len(ends):
        raise SettingError(f"an inequality is linear in parameters without a log scale, but got {inequality}.")
    widths = [c * (high - low) for c, (low, high) in zip(coefficients, lines, strict=True)]
    offset = sum(c * low for c, (low, _) in zip(coefficients, lines, strict=True))
    unit = max(map(abs, widths)) or 1.0  # so that a tolerance is the same share of any range
    return torch.tensor(list(indices)), torch.tensor(widths, dtype=torch.float64) / unit, (rhs - offset) / unit


def _fits(inequality: Any, d: int) -> bool:
    """Whether it is whole numbers below d, as many coefficients, and a bound."""
    try:
        indices, coefficients, rhs = inequality
        columns, others = list(indices), [*coefficients, rhs]
    except (TypeError, ValueError):
        return False
    known = all(isinstance(index, numbers.Integral) and 0 <= int(index) < d for index in columns)
    return known and 0 < len(columns) == len(others) - 1 and all(isinstance(each, numbers.Real) for each in others)


def _linear_range(parameter: Parameter) -> tuple[float, float] | None:
    """The least and the greatest value of a continuous parameter whose column is linear in its values, else None."""
    if not parameter.is_continuous:
        return None
    low, middle, high = parameter.decode(torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64))
    return (low, high) if math.isclose(middle, (low + high) / 2, abs_tol=1e-9 * (high - low)) else None


def feasible(points: Tensor, constraints: Constraints) -> Tensor:
    """Which points (n x d) meet all constraints: n booleans."""
    met = torch.ones(len(points), dtype=torch.bool, device=points.device)
    for indices, coefficients, rhs in constraints:
        met &= points[:, indices.to(points.device)] @ coefficients.to(points) >= rhs - TOLERANCE
    return met
