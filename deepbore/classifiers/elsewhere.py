"""`Elsewhere`: proposals as if the branches of a space that are known in detail were not there, in turn with others."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from deepbore.classifiers.kernel_pls import KernelPLS
from deepbore.classifiers.kernel_posterior import KernelPosterior
from deepbore.data.array_ranking import threshold
from deepbore.data.observations import Observations
from deepbore.labels.datamodule import LabelledBatch
from deepbore.labels.graded import ValueGradedLabels
from deepbore.space import SearchSpace

FIRST = 10  # values that say what is a detail: ...
DETAIL = 0.01  # ... what is less than this share of the way from their tau to the best value
ENOUGH = 10  # trials that differ from the best of their branch by details, from which on it is known
LOOKED_AT = 1000  # of the best rows, and of the newest
HOPELESS = 1e3  # what is taken off the labels that are expected of a branch that is left out


class ElsewhereHead(KernelPLS):
    """`KernelPLS` that expects nothing of some branches."""

    left_out: Tensor  # branches, b x c

    def posterior(self, points: Tensor) -> KernelPosterior:
        assert self.space is not None
        hopeless = is_among(branches(self.space, points), self.left_out)
        return super().posterior(points).lowered(HOPELESS * hopeless.to(self.theta))


@dataclass(frozen=True)
class Rest:
    """What is left of the rows without the branches that are known in detail.

    Attributes:
        batch: the rows, graded among themselves.
        ranked: their numbers, best first, failures last.
        left_out: those branches, b x c.
    """

    batch: LabelledBatch
    ranked: Tensor
    left_out: Tensor


class Elsewhere:
    """Takes turns with the classifier once a branch is known in detail, and proposes as if that was not there.

    Labels are relative to the best values. So where a space has branches, the details of one of them soon fill the
    labels; everything in the others counts as bad then, however good it is beside what a random configuration gives,
    and what may be found there is not worth an evaluation. But what is best is the best of all branches. So once ten
    trials of the best branch differ by details, every other proposal is by a second kernel: it learns the trials of
    the other branches alone, graded among themselves, and goes on until one of these is known in detail, too. Then that
    is left out as well, and so on. A branch is which of the conditional parameters are active.
    """

    def __init__(self) -> None:
        self.head: ElsewhereHead | None = None
        self.rest: Rest | None = None  # of the latest turn
        self._is_due = True  # whether the next turn is the head's

    def take_turn(
        self, batch: LabelledBatch, observations: Observations, labels: ValueGradedLabels, like: KernelPLS, q: int
    ) -> bool:
        """Lets the head learn, if the next proposal, or half of the next q, is by it, and says so; counts the turns.

        Args:
            batch: n rows; their labels are not looked at.
            observations: the same rows, and any that were asked for since.
            labels: those of the run.
            like: the classifier of the run, whose settings the head has.
            q: how many points are proposed next.

        Raises:
            torch.linalg.LinAlgError: where a matrix has no factor.
        """
        self.rest = rest_of(batch, observations, labels)
        if self.rest is None:
            return False
        in_turn, self._is_due = self._is_due or q > 1, not self._is_due
        if in_turn:
            head = self._made(like).to(batch.points.device)
            head.left_out = self.rest.left_out
            head.learn(self.rest.batch)
            head.keep_best(self.rest.batch.best)
        return in_turn

    def _made(self, like: KernelPLS) -> ElsewhereHead:
        """The head, made when it is first needed."""
        if self.head is None:
            assert like.space is not None
            self.head = ElsewhereHead(**like.how_it_learns)
            self.head.bind(like.space)
        self.head.generator = like.generator
        return self.head

    # --- plain data --------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """What the next turn goes on from; empty while there was none."""
        if self.head is None:
            return {}
        rival = {} if self.head.rival is None else {"rival": self.head.rival.theta}
        return {"theta": self.head.theta, "is_due": self._is_due} | rival

    def load_state_dict(self, state: Mapping[str, Any], like: KernelPLS) -> None:
        """Takes up what `state_dict` gave."""
        self.head, self._is_due = None, bool(state.get("is_due", True))
        if state:
            head = self._made(like)
            head.theta.copy_(state["theta"])
            if head.rival is not None and "rival" in state:
                head.rival.theta.copy_(state["rival"])


def branches(space: SearchSpace, points: Tensor) -> Tensor:
    """The branch that each point lies in, as which of the c conditional parameters are active: n x c booleans."""
    columns = [column for column, each in enumerate(space.parameters.values()) if each.conditions]
    return space.active(points)[:, columns]


def is_among(these: Tensor, those: Tensor) -> Tensor:
    """Which branches (n x c) are among others (b x c): n booleans."""
    return (these[:, None] == those).all(-1).any(-1)


def rest_of(batch: LabelledBatch, observations: Observations, labels: ValueGradedLabels) -> Rest | None:
    """What is left without the branches that are known in detail; None where there are none, or nothing is left.

    Args:
        batch: n rows; their labels are not looked at.
        observations: the same rows, and any that were asked for since.
        labels: those of the run.
    """
    detail = DETAIL * way_of_the_first(observations, labels)
    newest = torch.arange(max(0, len(batch) - LOOKED_AT), len(batch), device=batch.points.device)
    best = observations.best_rows(LOOKED_AT).to(newest)
    rows = torch.cat([best[best < len(batch)], newest]).unique()  # what was told since has no weight yet
    rows = rows[batch.learned[rows]]
    values, here = observations.averaged.values[rows], branches(observations.space.released, batch.points[rows])
    left_out = here[:0]
    while bool((known := ~values.isnan()).any()):
        merit = values.nan_to_num(nan=math.inf)
        first = here[merit.argmin()][None]  # the branch of the best row that is left
        same = is_among(here, first)
        if int((merit[same] < merit.min() + detail).sum()) < ENOUGH:
            break
        left_out = torch.cat([left_out, first])
        rows, values, here = rows[~same], values[~same], here[~same]
    if not len(left_out) or not bool(known.any()):
        return None
    ranked = values[known].sort().values.cpu().numpy()
    z, _ = labels.label(values, ranked, threshold(ranked, labels.proportion(len(ranked))))
    regraded = replace(batch.take(rows), z=z[:, None], best=1.0)
    return Rest(regraded, rows[merit.argsort(stable=True)], left_out)


def way_of_the_first(observations: Observations, labels: ValueGradedLabels) -> float:
    """How far tau of the first ten values is from the best of all; 0 while there are fewer."""
    told = observations.averaged
    known = told.values[:LOOKED_AT]
    first = known[~known.isnan()][:FIRST].sort().values.cpu().numpy()
    if len(first) < FIRST:
        return 0.0
    return threshold(first, labels.proportion(FIRST)) - float(told.ranked[0])
