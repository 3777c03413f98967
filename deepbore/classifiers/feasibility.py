"""`Feasibility`: the probability that a configuration satisfies all black-box constraints."""

import math
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from deepbore.classifiers.kernel.least_squares import ROWS, KernelPLS
from deepbore.classifiers.posterior import MomentFormula
from deepbore.compute.arrays import Array, module_of, scalar, special_of
from deepbore.labels.constraints import BORDER, some_kept
from deepbore.labels.datamodule import LabelledBatch
from deepbore.space import SearchSpace

MAX_MODELS = 32  # the constraints that are violated least often share the last one
SHARED = -1  # the key of the model that several constraints share
CERTAIN = 1e-9  # the least standard deviation


class ConstraintModel(KernelPLS):
    """`KernelPLS` with a prior of less noise: constraints are more often computed than measured."""

    lambda_prior = (-13.0, 3.0)

    def __init__(self) -> None:
        super().__init__(alike=False, additive=False)


class Feasibility:
    """One model for each constraint that has been violated: a regression of its grade (`Labels.constraints`).

        log P(feasible | x) = sum_j log Phi(m_j(x) / s_j(x))

    m_j and s_j are the mean and standard deviation of `KernelPLS` on z_j - 1/2, so far from all data a constraint is
    satisfied with probability 1/2. While no row is feasible the prior mean is the mean grade instead: otherwise points
    far from all data would be more likely feasible than all others, and the search would visit the corners.

    Constraints count as independent. Of more than 32, those violated most often have one model each, and the others
    share one, which learns the least of their grades in each row. Constraints that were never violated have no model.

    This is the factor of expected improvement under constraints of Gardner et al. (2014, eq. 6), with grades in place
    of values. Hyperparameters start from those of the previous iteration.

    Attributes:
        has_feasible: whether a feasible row is known; if not, the search uses the probability of feasibility only.

    References:
        Gardner, Kusner, Xu, Weinberger & Cunningham, Bayesian optimization with inequality constraints, ICML 2014.
    """

    def __init__(self) -> None:
        self.has_feasible = True
        self._models: dict[int, ConstraintModel] = {}  # by constraint
        self._fitted: tuple[int, ...] = ()
        self._prior = torch.empty(0)  # prior mean of each fitted model minus the border

    @property
    def is_needed(self) -> bool:
        """Whether a row of the latest batch violates a constraint."""
        return bool(self._fitted)

    @property
    def none_feasible(self) -> bool:
        """Whether all rows violate a constraint, so that the search is for a feasible one."""
        return self.is_needed and not self.has_feasible

    @torch.no_grad()
    def fit(self, batch: LabelledBatch, space: SearchSpace, generator: torch.Generator) -> None:
        """Trains the models of a batch with constraints.

        Args:
            batch: n rows with `constraints`.
            space: the space of its points.
            generator: random numbers for a coreset of more than 200 rows.

        Raises:
            torch.linalg.LinAlgError: if a Gram matrix has no Cholesky factor.
        """
        self._fitted = ()
        if batch.constraints is None:
            return
        known = batch.constraints.isfinite().all(-1).nonzero().squeeze(-1)
        grades = batch.constraints[known]
        columns = graded_columns(grades)  # of all rows, since a coreset may have no violation
        if not columns:
            return
        self.has_feasible = some_kept(grades)
        z = torch.stack(list(columns.values()), dim=-1) - BORDER
        self._prior = torch.zeros_like(z[0]) if self.has_feasible else z.mean(0)
        rows = LabelledBatch(batch.points[known], z, torch.ones_like(z[:, 0])).coreset(ROWS, generator)
        for column, key in enumerate(columns):
            model = self._model(key, space).to(z.device)
            model.learn(replace(rows, z=rows.z[:, [column]] - self._prior[column]))
        self._fitted = tuple(columns)

    def log_probability(self, points: Tensor) -> Tensor:
        """Points (n x d) -> log P(feasible) (n), with gradients."""
        known = zip(self._fitted, map(scalar, self._prior), strict=True)
        each = [self._models[key].posterior(points).of_moments(log_chance_above(-prior)) for key, prior in known]
        return torch.stack(each).sum(0)

    def sampled_violation(self, points: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """The total violation in joint samples of the grades, 0 if feasible (count x n)."""
        draws = [self._models[key].posterior(points).sample(count, generator) for key in self._fitted]
        grades = torch.stack(draws) + self._prior[:, None, None]
        return (-grades).clamp(min=0).sum(0)

    def _model(self, key: int, space: SearchSpace) -> ConstraintModel:
        model = self._models.setdefault(key, ConstraintModel())
        model.bind(space)
        return model

    # --- plain data --------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[int, Tensor]:
        """The hyperparameters, by constraint; empty without models."""
        return {key: model.theta for key, model in self._models.items()}

    def load_state_dict(self, state: Mapping[int, Tensor], space: SearchSpace) -> None:
        """Restores what `state_dict` returned."""
        self._models, self._fitted = {}, ()
        for key, theta in state.items():
            self._model(key, space).theta.copy_(theta)


def log_chance_above(border: Array) -> MomentFormula:
    """log Phi(u) with u = (m - border) / s.

    With q = phi(u) / Phi(u) its derivatives are q / s in m and -q u / s in s.

    Args:
        border: a scalar.
    """

    def formula(mean: Array, std: Array) -> tuple[Array, Array, Array]:
        s = std.clip(CERTAIN)
        u = (mean - border) / s
        value = special_of(u).log_ndtr(u)
        q = module_of(u).exp(-u * u / 2 - value) / math.sqrt(2 * math.pi)
        return value, q / s, -q * u / s * (std >= CERTAIN)

    return formula


def graded_columns(grades: Tensor) -> dict[int, Tensor]:
    """Grades (n x c) -> the labels of each model (n), by constraint; see `Feasibility`."""
    often = (grades < BORDER).sum(0)
    order = [j for j in often.argsort(descending=True, stable=True).tolist() if often[j]]
    own = order if len(order) <= MAX_MODELS else order[: MAX_MODELS - 1]
    columns = {j: grades[:, j] for j in sorted(own)}
    if len(own) < len(order):
        columns[SHARED] = grades[:, order[MAX_MODELS - 1 :]].min(-1).values
    return columns
