"""`LabelledObservations`: the data of a run, relabelled every epoch; `EmphasiseChanges`: weights of changed labels."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from deepbore.compute.distributed import Ranks
from deepbore.compute.numerics import places, up_to
from deepbore.data.observations import Observations, Status
from deepbore.labels.base import Labelling, Labels, WrappedLabels
from deepbore.labels.constraints import BORDER
from deepbore.labels.coreset import NEGLIGIBLE, coreset
from deepbore.labels.defaults import default_labels
from deepbore.space import SearchSpace
from deepbore.validation import at_least


@dataclass(frozen=True)
class LabelledBatch:
    """The whole labelled data set: the one batch of an epoch.

    Attributes:
        points: n x d.
        z: labels in [0, 1], n x k.
        weight: weights in the loss, n.
        best: the label that improvement is measured against, or those of a front; see `Labels`.
        separable: whether labels differ.
        metrics: numbers to log, by name.
        constraints: grades of the black-box constraints, n x c, or None; see `Labels`.
        budgets: the budgets of the trials, n; None without budgets.
        n_earlier: the number of rows of earlier tasks, which precede those of this run.
        failed: which trials have failed, n booleans; None if none has.
        pending: which trials have no outcome yet, n booleans; None if only the weights decide what is learned.
        pruned: which trials were pruned, n booleans; None if none was. Their labels are those of likely values.
        ranks: the processes that learn the same batch, and may share the work.
    """

    points: Tensor
    z: Tensor
    weight: Tensor
    best: float | Tensor = 1.0
    separable: bool = True
    metrics: Mapping[str, float] = field(default_factory=dict)
    constraints: Tensor | None = None
    budgets: Tensor | None = None
    n_earlier: int = 0
    failed: Tensor | None = None
    pending: Tensor | None = None
    pruned: Tensor | None = None
    ranks: Ranks = field(default_factory=Ranks)

    @classmethod
    def of(cls, observations: Observations, labelling: Labelling) -> "LabelledBatch":
        """The observations of one task with their current labels."""
        budgets = None if observations.budget is None else observations.budgets
        failed = observations.status == Status.FAILED if observations.ledger.statistics.n_failed else None
        pruned = observations.status == Status.PRUNED if observations.ledger.statistics.n_pruned else None
        return cls(observations.points, **vars(labelling(observations)), budgets=budgets, failed=failed, pruned=pruned)

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def ignored(self) -> Tensor:
        """Numbers of the rows that are not learned, ascending: pending ones, and those of negligible weight."""
        if self.pending is None or bool((self.weight[places(self.pending)] <= NEGLIGIBLE).all()):  # as it mostly is
            return up_to(self.weight, NEGLIGIBLE)
        return up_to(self.weight.masked_fill(self.pending, 0.0), NEGLIGIBLE)

    @property
    def learned(self) -> Tensor:
        """Which rows are learned, n booleans."""
        return torch.ones_like(self.weight, dtype=torch.bool).index_fill_(0, self.ignored, False)

    @property
    def n_own(self) -> int:
        """The number of rows of this run, the last ones."""
        return len(self) - self.n_earlier

    @property
    def own(self) -> "LabelledBatch":
        """The batch of the rows of this run."""
        return self.take(torch.arange(self.n_earlier, len(self), device=self.points.device)) if self.n_earlier else self

    @property
    def n_learned(self) -> int:
        """The number of rows that are learned."""
        return len(self) - len(self.ignored)

    @property
    def failures(self) -> Tensor:
        """Which trials have failed, n booleans."""
        return torch.zeros_like(self.weight, dtype=torch.bool) if self.failed is None else self.failed

    @property
    def may_be_best(self) -> Tensor:
        """Which rows may be the incumbent (n booleans): those of this run, only feasible ones if there are any."""
        own = torch.arange(len(self), device=self.points.device) >= self.n_earlier
        if self.pruned is not None:
            own = own & ~self.pruned
        kept = own
        if self.constraints is not None:
            kept = own & ~self.failures & ~(self.constraints < BORDER).any(-1)  # False for NaN
        return next((rows for rows in (kept, own) if bool(rows.any())), torch.ones_like(own))

    @property
    def training_rows(self) -> "LabelledBatch":
        """The batch of the rows that are learned."""
        return self.at_even_distances(len(self)) if len(self.ignored) else self

    def take(self, rows: Tensor) -> "LabelledBatch":
        """The batch of some rows, given by number."""
        names = ("constraints", "budgets", "failed", "pending", "pruned")
        taken: dict[str, Any] = {name: each[rows] for name in names if (each := getattr(self, name)) is not None}
        taken |= {"n_earlier": int((rows < self.n_earlier).sum())} if self.n_earlier else {}
        return replace(self, points=self.points[rows], z=self.z[rows], weight=self.weight[rows], **taken)

    def at_even_distances(self, most: int) -> "LabelledBatch":
        """The batch of every k-th of the rows that are learned, at most `most`."""
        learned = torch.arange(0, self.n_learned, max(1, math.ceil(self.n_learned / most)), device=self.points.device)
        ignored = self.ignored
        before = ignored - torch.arange(len(ignored), device=ignored.device)  # learned rows before each ignored one
        return self.take(learned + torch.searchsorted(before, learned, right=True))

    def coreset(self, size: int, generator: torch.Generator) -> "LabelledBatch":
        """At most `size` distinct rows to learn from: a quarter the newest, a quarter the best, the rest at random.

        The cost of a suggestion then does not grow with n. Rows selected by label have smaller weights than random
        rows, so that predictions are not biased; see `deepbore.labels.coreset`. Ignored rows are not selected.

        Args:
            size: of the coreset, >= 1.
            generator: random numbers.

        Returns:
            All learned rows if there are few enough; else rows by age, with their weights times those of the coreset.
        """
        if self.n_learned <= size:
            return self.training_rows
        score = self.z[:, 0] if self.z.shape[1] == 1 else self.z.sum(-1)
        rows, weight = coreset(score, self.ignored, size, generator)
        chosen = self.take(rows)
        return replace(chosen, weight=chosen.weight * weight)


class LabelledObservations:
    """The data of a run: one batch an epoch, all observations with new labels, already on the device.

    Under a Trainer it is within a data module; see `deepbore.loop.lightning`.

    Args:
        observations: the rows to label.
        labels: the labelling; None for the default of the classifier (`deepbore.labels.default_labels`).
        joined: adds rows of earlier tasks to the labelled rows of this run; None for none.

    Attributes:
        latest: the latest labelled rows of this run; None before the first labelling.
        ranks: the processes that learn together at present; else this one alone.

    Example:
        >>> from deepbore import Real, SearchSpace
        >>> space = SearchSpace({"x": Real(0, 1)})
        >>> data = LabelledObservations(Observations(space))
        >>> data.observations.add({"x": [0.1, 0.5, 0.9]}, [3.0, 1.0, 2.0])
        >>> [round(z, 3) for z in data.labelled().z.squeeze(-1).tolist()]
        [0.111, 1.0, 0.333]
    """

    def __init__(
        self,
        observations: Observations,
        labels: Labelling | None = None,
        joined: Callable[[LabelledBatch], LabelledBatch] | None = None,
    ):
        self.joined = joined
        self.observations = observations
        self.labels = labels
        self.latest: LabelledBatch | None = None
        self.ranks = Ranks()

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"ranks": Ranks()}  # a copy belongs to one process

    @property
    def space(self) -> SearchSpace:
        """The search space without fixed parameters: a classifier learns all of it."""
        return self.observations.space.points.without_fixed

    def labelled(self) -> LabelledBatch:
        """All rows of this run with their current labels, without those of earlier tasks.

        Trials with suspicious values are labelled as failures; see `deepbore.data.suspicion`.
        """
        self.latest = LabelledBatch.of(
            self.observations.believed.of_task(0), self.labels or default_labels(estimates_labels=True)
        )
        return self.latest

    def batch(self) -> LabelledBatch:
        """The batch of an epoch: rows of earlier tasks, then those of this run with new labels."""
        labelled = self.labelled()
        joined = labelled if self.joined is None else self.joined(labelled)
        return joined if self.ranks.world == 1 else replace(joined, ranks=self.ranks)

    @contextmanager
    def learned_by(self, ranks: Ranks) -> Iterator[None]:
        """A context in which several processes learn together: all of them train the same models."""
        self.ranks = ranks
        try:
            yield
        finally:
            self.ranks = Ranks()


# --- what has changed since the last epoch ---------------------------------------------------------------------------


class EmphasiseChanges(WrappedLabels):
    """Another labelling, with more weight on rows that are new, or whose class has changed, since the last iteration.

    The class changes if a label crosses 1/2, or becomes or ceases to be 0.

    BORE appendix F, strategy (i): between iterations the data change little, so emphasise the changes.

    Args:
        base: the other labelling.
        boost: the factor of the weights of new and changed rows, >= 1.

    Raises:
        SettingError: for boost < 1.
    """

    def __init__(self, base: Labelling, boost: float = 2.0):
        super().__init__(base)
        at_least(1, boost=boost)
        self.boost = boost
        self.previous = torch.empty(0, base.outputs)

    def __call__(self, observations: Observations) -> Labels:
        """The base's labels, re-weighted."""
        labels = self.base(observations)
        told = ~observations.pending.to(labels.z.device)
        changed = told & told_or_changed(self.previous.to(labels.z), labels.z)
        self.previous = labels.z.masked_fill(~told[:, None], math.nan)
        return replace(labels, weight=torch.where(changed, labels.weight * self.boost, labels.weight))

    def forget(self) -> None:
        self.previous = self.previous[:0]
        super().forget()

    def state_dict(self) -> dict[str, Any]:
        return {"previous": self.previous.cpu(), "base": self.base.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.previous = state["previous"]
        self.base.load_state_dict(state["base"])


def told_or_changed(before: Tensor, after: Tensor) -> Tensor:
    """Which rows of `after` (n x k) are new, had no label before, or changed their class (n); see `changed_rows`."""
    before = before[: len(after)]
    known = after[: len(before)]
    changed = changed_rows(before, after)
    changed[: len(before)] |= ((before > 0) != (known > 0)).any(-1) | before.isnan().any(-1)
    return changed


def changed_rows(before: Tensor, after: Tensor) -> Tensor:
    """Which rows of `after` (n x k) are new, or crossed 1/2 in some column, since `before` (m x k): n.

    When trials are withdrawn, later rows move up, and count as changed where the labels of their places have.
    """
    before = before[: len(after)]
    changed = torch.ones(len(after), dtype=torch.bool, device=after.device)
    changed[: len(before)] = ((before >= 0.5) != (after[: len(before)] >= 0.5)).any(-1)
    return changed
