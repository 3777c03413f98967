"""`Feasibility`: how likely a configuration keeps all black-box constraints."""

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from deepbore.classifiers.kernel.fit import ROWS
from deepbore.classifiers.kernel.least_squares import KernelPLS
from deepbore.labels.constraints import BORDER, some_kept
from deepbore.labels.datamodule import LabelledBatch
from deepbore.space import SearchSpace

HEADS = 32  # at most; the constraints that are violated least often share the last one
REST = -1  # the key of the head that several constraints share
CERTAIN = 1e-9  # the least standard deviation


class ConstraintHead(KernelPLS):
    """A constraint is more often a formula or a count than a measurement: less noise of its grades is expected."""

    lambda_prior = (-13.0, 3.0)

    def __init__(self) -> None:
        super().__init__(alike=False, additive=False)


class Feasibility:
    """One head for each constraint that has been violated: a regression of its grade (`Labels.constraints`).

        log P(feasible | x) = sum_j log Phi(m_j(x) / s_j(x))

    m_j and s_j are the mean and deviation of `KernelPLS` on z_j - 1/2, so far from all data a constraint is as likely
    kept as not. While nothing is feasible the prior mean is that of the grades instead: else what is far from all data
    would be likelier feasible than anything near what is known, and the search would go from corner to corner.

    Constraints count as independent. Of more than 32 those that are violated most often have a head each, and the
    rest one together, which learns the least grade of them in each row. A constraint that nothing has violated yet has
    none.

    It is the weight of expected improvement under constraints of Gardner et al. (2014, eq. 6), with grades in place of
    values. Length scales, amplitude and lambda go on from one iteration to the next.

    Attributes:
        found: whether a row that keeps all constraints is known; if not, the search looks for one, and nothing else.

    References:
        Gardner, Kusner, Xu, Weinberger & Cunningham, Bayesian optimization with inequality constraints, ICML 2014.
    """

    def __init__(self) -> None:
        self.found = True
        self._heads: dict[int, ConstraintHead] = {}  # by constraint, those that were needed at some time
        self._fitted: tuple[int, ...] = ()
        self._prior = torch.empty(0)  # how far the prior mean of each fitted head is above the border

    @property
    def is_needed(self) -> bool:
        """Whether the latest batch has a row that violates a constraint."""
        return bool(self._fitted)

    @property
    def is_alone(self) -> bool:
        """Whether all rows violate a constraint: what is searched for is one that does not."""
        return self.is_needed and not self.found

    @torch.no_grad()
    def fit(self, batch: LabelledBatch, space: SearchSpace, generator: torch.Generator) -> None:
        """Learns the constraints of a batch, if it has any.

        Args:
            batch: n rows with `constraints`.
            space: that its points are of.
            generator: draws a coreset of more than 200 rows.

        Raises:
            torch.linalg.LinAlgError: where a Gram matrix has no factor.
        """
        self._fitted = ()
        if batch.constraints is None:
            return
        known = batch.constraints.isfinite().all(-1).nonzero().squeeze(-1)
        grades = batch.constraints[known]
        columns = graded_columns(grades)  # of all rows, so that a coreset leaves out no constraint
        if not columns:
            return
        self.found = some_kept(grades)
        z = torch.stack(list(columns.values()), dim=-1) - BORDER
        self._prior = torch.zeros_like(z[0]) if self.found else z.mean(0)
        rows = LabelledBatch(batch.points[known], z, torch.ones_like(z[:, 0])).coreset(ROWS, generator)
        for column, key in enumerate(columns):
            head = self._head(key, space).to(z.device)
            head.learn(replace(rows, z=rows.z[:, [column]] - self._prior[column]))
        self._fitted = tuple(columns)

    def log_probability(self, points: Tensor) -> Tensor:
        """Points (n x d) -> log P(feasible) (n), with gradients."""
        posteriors = [self._heads[key].posterior(points) for key in self._fitted]
        means = torch.stack([each.mean for each in posteriors]) + self._prior[:, None]
        stds = torch.stack([each.std for each in posteriors]).clamp(min=CERTAIN)
        logarithms: Tensor = torch.special.log_ndtr(means / stds)
        return logarithms.sum(0)

    def sampled_violation(self, points: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """By how much joint draws of the grades violate the constraints in all, 0 where they keep them (count x n)."""
        draws = [self._heads[key].posterior(points).sample(count, generator) for key in self._fitted]
        grades = torch.stack(draws) + self._prior[:, None, None]
        return (-grades).clamp(min=0).sum(0)

    def _head(self, key: int, space: SearchSpace) -> ConstraintHead:
        head = self._heads.setdefault(key, ConstraintHead())
        head.bind(space)
        return head

    # --- plain data --------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[int, Tensor]:
        """What the next fit goes on from, by constraint; empty while no head was needed."""
        return {key: head.theta for key, head in self._heads.items()}

    def load_state_dict(self, state: Mapping[int, Tensor], space: SearchSpace) -> None:
        """Takes up what `state_dict` gave."""
        self._heads, self._fitted = {}, ()
        for key, theta in state.items():
            self._head(key, space).theta.copy_(theta)


def graded_columns(grades: Tensor) -> dict[int, Tensor]:
    """Grades (n x c) -> those that a head each learns (n), by constraint: the violated ones; see `Feasibility`."""
    often = (grades < BORDER).sum(0)
    order = [j for j in often.argsort(descending=True, stable=True).tolist() if often[j]]
    own = order if len(order) <= HEADS else order[: HEADS - 1]
    columns = {j: grades[:, j] for j in sorted(own)}
    if len(own) < len(order):
        columns[REST] = grades[:, order[HEADS - 1 :]].min(-1).values
    return columns
