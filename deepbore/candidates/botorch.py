"""Batches by BoTorch's Monte Carlo acquisitions, with optional linear constraints."""

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
Climb = Callable[[Tensor], Tensor]  # starts (k x q x d) -> the best local optimum (q x d)
TOLERANCE = 1e-8
PENDING = 64  # newest pending trials that count: the cost of joint scores is cubic in their number
BASELINE = 32  # rows with the best values: the baseline of noisy expected improvement


class BoTorchBatch(Candidates):
    """A batch of q points that maximise a Monte Carlo acquisition of the classifier's joint scores.

    The acquisition is `deepbore.acquisition.botorch.joint_acquisition`, or what a subclass returns from `monte_carlo`.
    The acquisition of the run is used only to rank spare points. By default the q points are chosen sequentially, which
    for these acquisitions is nearly as good as a joint optimisation, and faster (Wilson et al., Maximizing acquisition
    functions for Bayesian optimization, 2018). The newest 64 pending trials count as chosen already; with a classifier
    without standard deviations they are only never proposed again.

    For continuous spaces and differentiable classifiers; q > 1 also needs standard deviations. The constraints given
    here apply to all proposals but those of the initial design. Constraints of the space apply to both: a
    local optimum outside is projected to the feasible points.

    Several ranks share the evaluation of the random points and the starts, and use the best optimum of all. The
    optimiser is SciPy's: in each iteration only points and gradients are copied to the CPU.

    Args:
        joint: whether all q points are optimised at once.
        restarts: the number of starts, >= 1.
        samples: random points that starts are chosen from, besides neighbours of the best observed points.
        iterations: the maximum number of iterations of the optimiser.
        inequality_constraints: (indices of parameters, coefficients, right-hand side), in the units of the parameters:
            sum of coefficient * parameter >= right-hand side. Parameters with a log scale are not supported.

    Raises:
        SettingError: for a number below 1; when the run is set up, for a space or classifier without gradients, a
            classifier with a score for each objective, or a constraint that does not fit the space; at a proposal, for
            a constraint that can't be met, or for several points of a classifier without standard deviations.
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

    def accepts(self, space: SearchSpace, points: Tensor) -> Tensor:
        return feasible(points, self._constraints(space))

    def monte_carlo(self, search: Search) -> "AcquisitionFunction":
        """The joint acquisition of q points, one of BoTorch's."""
        import_quietly("gpytorch")
        from deepbore.acquisition.botorch import joint_acquisition  # takes a second to import

        seed = int(torch.randint(2**31, (), generator=search.generator))
        rows = search.observations.centres.best_rows(BASELINE)
        return joint_acquisition(search.classifier, seed, search.incumbent, search.points(rows) if len(rows) else None)

    def check(self, space: SearchSpace, classifier: Classifier) -> None:
        super().check(space, classifier)
        require_gradients(self, space, classifier)
        if "columns" in classifier.capabilities:
            raise SettingError(
                f"{type(self).__name__} needs one score a point, but {type(classifier).__name__} has one for each "
                "objective. Use GreedyBatch, or labels=ChebyshevLabels(ValueGradedLabels())."
            )
        self._constraints(space)

    def ranked(self, search: Search, q: int) -> Tensor:
        require_gradients(self, search.space, search.classifier)
        if q > 1:
            _require_uncertainty(search.classifier)
        if search.feasibility is not None:
            raise SettingError(
                f"{type(self).__name__} does not support black-box constraints, but some trials violate theirs. "
                "Use GreedyBatch or ThompsonBatch; Study.load(journal, candidates=GreedyBatch()) continues this run."
            )
        constraints = self._constraints(search.space)
        pool = self._pool(search, constraints, q)
        acquisition = self._weighted(search, self.monte_carlo(search))
        climb = partial(self._climbed, search, acquisition, constraints)
        pending = _counted_pending(search)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a start that does not converge is still usable
            if self.joint:
                acquisition.set_X_pending(pending if len(pending) else None)
                chosen = climb(self._groups(search, acquisition, pool, q))
            else:
                chosen = self._one_by_one(search, acquisition, pool, climb, pending, q)
        return torch.cat([chosen, search.best_first(pool)[0]])

    def _weighted(self, search: Search, acquisition: "AcquisitionFunction") -> "AcquisitionFunction":
        """The joint acquisition with what favours some points, if anything does."""
        if not search.is_favouring:
            return acquisition
        from deepbore.acquisition.botorch import Favouring

        return Favouring(acquisition, search.log_favour, search.classifier.link)

    # --- steps -------------------------------------------------------------------------------------------------------

    def _constraints(self, space: SearchSpace) -> Constraints:
        return [in_points(space, inequality) for inequality in self.inequality_constraints]

    def _pool(self, search: Search, constraints: Constraints, q: int) -> Tensor:
        """Random points, best observed points and their neighbours that meet the constraints, the same on all ranks."""
        samples, best = search.sample(self.samples), search.points(search.observations.centres.best_rows(self.restarts))
        near = search.sample_neighbours(self.samples // 4, self.restarts)
        pool = torch.cat([samples, search.keep_permitted(torch.cat([best, near]))])
        pool = pool[feasible(pool, constraints)]
        if len(pool) < q * self.restarts:
            raise SettingError(
                f"{q * self.restarts} points within the constraints are needed to start from, but of {self.samples} "
                f"random ones and others only {len(pool)} are. Raise samples, or relax the constraints: "
                f"{self.inequality_constraints}."
            )
        return pool

    def _one_by_one(
        self, search: Search, acquisition: "AcquisitionFunction", pool: Tensor, climb: Climb, pending: Tensor, q: int
    ) -> Tensor:
        """q points chosen sequentially, each given the pending and earlier ones (q x d)."""
        chosen = pending
        for _ in range(q):
            acquisition.set_X_pending(chosen if len(chosen) else None)
            starts = pool[_values(search, acquisition, pool).topk(self.restarts).indices]
            chosen = torch.cat([chosen, climb(starts[:, None])])
        return chosen[len(pending) :]

    def _groups(self, search: Search, acquisition: "AcquisitionFunction", pool: Tensor, q: int) -> Tensor:
        """Starts of the joint optimisation: random groups of the best single points (restarts x q x d)."""
        best = pool[_values(search, acquisition, pool).topk(self.restarts * q).indices]
        order = torch.randperm(len(best), generator=search.stream, device=search.stream.device).to(best.device)
        return best[order].view(self.restarts, q, -1)

    def _climbed(
        self, search: Search, acquisition: "AcquisitionFunction", constraints: Constraints, starts: Tensor
    ) -> Tensor:
        """The best local optimum from the starts, of which each rank has its share (k x q x d -> q x d)."""
        found = self._optimised(search, acquisition, constraints, search.ranks.part(starts))
        tops, values = zip(*(each for each in search.ranks.gather(found) if each is not None), strict=True)
        best: Tensor = tops[max(range(len(values)), key=values.__getitem__)]
        return best.to(starts)

    def _optimised(
        self, search: Search, acquisition: "AcquisitionFunction", constraints: Constraints, starts: Tensor
    ) -> tuple[Tensor, float] | None:
        """The best local optimum from these starts (q x d) and its value, on the CPU; None without starts.

        The optimiser ignores the constraints of the space; the optima are projected afterwards. One that is worse than
        its start then, or where the optimiser has left the given constraints, gives way to it.
        """
        from botorch.optim import optimize_acqf

        if not len(starts):
            return None
        ends, _ = optimize_acqf(
            acquisition,
            bounds=search.space.points.bounds.to(starts),
            q=starts.shape[1],
            num_restarts=len(starts),
            batch_initial_conditions=starts,
            inequality_constraints=[(i.to(starts.device), c.to(starts), rhs) for i, c, rhs in constraints] or None,
            return_best_only=False,
            options={"maxiter": self.iterations, "batch_limit": len(starts)},
        )
        tops = search.space.points.project_to_feasible(starts.flatten(0, 1), ends.detach().flatten(0, 1))
        tops = tops.view_as(starts)
        with torch.no_grad():
            values, before = acquisition(tops), acquisition(starts)
        is_met = feasible(tops.flatten(0, 1), constraints).view(tops.shape[:2]).all(-1)
        is_better = is_met & (values > before)
        tops = torch.where(is_better[:, None, None], tops, starts)
        values = torch.where(is_better, values, before)
        best = int(values.argmax())
        return tops[best].cpu(), float(values[best])


@torch.no_grad()
def _values(search: Search, acquisition: "AcquisitionFunction", points: Tensor) -> Tensor:
    """Values of single points (n), given the pending ones; each rank computes its share."""
    values: Tensor = search.ranks.whole(acquisition(search.ranks.part(points)[:, None]))
    return values


def _counted_pending(search: Search) -> Tensor:
    """The newest pending points, which improvement is counted beyond (k x d); none without standard deviations.

    With certain scores, only points with a better score than all pending ones would have any value.
    """
    pending = pending_points(search)[-PENDING:]
    return pending if "std" in search.classifier.capabilities else pending[:0]


def _require_uncertainty(classifier: Classifier) -> None:
    if "std" not in classifier.capabilities:
        raise SettingError(
            f"several points at once need standard deviations of the scores, but {type(classifier).__name__} has "
            f"none. Use {UNCERTAIN}, or ask for one point at a time."
        )


# --- constraints -----------------------------------------------------------------------------------------------------


def in_points(space: SearchSpace, inequality: Inequality) -> tuple[Tensor, Tensor, float]:
    """A linear inequality of parameters as one of points: x = low + u (high - low) with u in [0, 1].

    Raises:
        SettingError: for indices outside the space, or a parameter with a log scale.
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
    unit = max(map(abs, widths)) or 1.0  # so that the tolerance is relative to the range
    return torch.tensor(list(indices)), torch.tensor(widths, dtype=torch.float64) / unit, (rhs - offset) / unit


def _fits(inequality: Any, d: int) -> bool:
    """Whether it has integer indices below d, as many coefficients, and a bound."""
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
