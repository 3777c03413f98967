"""`EarlierTasks`: what earlier tasks forecast of the present one."""

import logging
import math
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from deepbore.classifiers.kernel.fit import ROWS
from deepbore.classifiers.kernel.least_squares import KernelPLS
from deepbore.compute.numerics import LinAlgError, rank_correlation
from deepbore.data.observations import Observations
from deepbore.errors import SettingError
from deepbore.labels import LabelledBatch, Labelling

ITERATIONS = 100  # of a task's head, which is fitted once
DESIGNED = 1000  # points of a Sobol sequence among which the design looks for the best forecast
SHARE = 0.5  # the weight of the rows of a task that ranks this run's rows as they are
BEGINNING = 10  # rows of this run from which on it falls
LEAST = 1e-3  # tasks of less weight are left out
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Task:
    """An earlier task: its rows with the labels that they have among themselves, and a head that has learned them.

    Attributes:
        rows: how many it had.
        batch: a coreset of them; None where none is better than another.
        head: what forecasts labels; None where there is nothing to learn.
    """

    rows: int
    batch: LabelledBatch | None = None
    head: KernelPLS | None = None


class EarlierTasks:
    """Heads of the earlier tasks of a run, one for each, fitted once to the labels within the task.

    The run's own labelling grades each task by its own quantile, so values of different scale can be compared. The
    heads say where to begin (`promising`) and how much a task is worth: its weight is

        w_t = rho_t^4 / 2 * min(1, 10 / n)^2,

    rho_t >= 0 the rank correlation of its forecasts with the labels of this run's n rows. With that weight its rows are
    learned beside this run's (`joined`), by any classifier. It falls as this run goes on: where its own rows crowd
    around the best, their grades tell apart what to a task is all equally good. The rows fill up what this run leaves
    of 200, so in the end they are gone; those of a task that says nothing of this run never come.

    The heads are a function of the rows alone, whatever the seed: nothing of them is kept in a snapshot. They are
    fitted when they are first asked, and that of a task again after rows of it were added.

    Args:
        observations: all rows of the run.
        labels: the run's labelling, a copy of which labels each task by itself.
    """

    def __init__(self, observations: Observations, labels: Labelling):
        self.observations, self.labels = observations, labels
        self._tasks: list[Task] = []
        self._known = 0

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.observations.task_names)

    def __deepcopy__(self, memo: dict[int, Any]) -> "EarlierTasks":
        """Itself, for a copy of the run's classifier alone; in a copy of the whole run, one of the copied rows."""
        observations = memo.get(id(self.observations))
        if observations is None:
            return self
        copied = memo[id(self)] = EarlierTasks(observations, deepcopy(self.labels, memo))
        return copied

    def check(self) -> None:
        """Raises SettingError where the labels of several objectives are one column, which may mean something else."""
        if self.observations.k > 1 and self.labels.outputs == 1:
            raise SettingError(
                f"{type(self.labels).__name__} puts all objectives into one column, so labels of earlier tasks can't "
                "be compared with this run's. Leave out labels= for one column an objective, or leave out task=."
            )

    @property
    def tasks(self) -> list[Task]:
        """Those of now, by number."""
        if self._known != self.observations.n_earlier:
            before = [*self._tasks, *[Task(0)] * (len(self.observations.task_names) - len(self._tasks))]
            self._tasks = [self._learned(number, task) for number, task in enumerate(before, 1)]
            self._known = self.observations.n_earlier
        return self._tasks

    def forecasts(self, points: Tensor) -> Tensor:
        """Points (n x d) -> the label that each of T tasks forecasts (n x T), 0 where there is nothing to learn."""
        return torch.stack([_forecast(task, points) for task in self.tasks], dim=-1)

    # --- for the design ----------------------------------------------------------------------------------------------

    @torch.no_grad()
    def promising(self, count: int) -> Tensor:
        """Points of which the best is forecast, in turns by all tasks together and by each one (k x d, k >= count).

        They are chosen from the rows of the tasks and a Sobol sequence.
        """
        space, device = self.observations.space, self.observations.points.device
        known = [task.batch.points.to(device) for task in self.tasks if task.batch is not None]
        points = torch.cat([*known, space.sobol(DESIGNED, seed=0).to(device)])
        forecasts = self.forecasts(points)
        orders = torch.cat([forecasts.mean(-1, keepdim=True), forecasts], dim=-1).argsort(dim=0, descending=True)
        return points[orders[: count + self.observations.n_distinct].flatten()]

    # --- for the classifier ------------------------------------------------------------------------------------------

    @torch.no_grad()
    def joined(self, batch: LabelledBatch) -> LabelledBatch:
        """A batch of n rows of this run after 200 - n rows of the tasks, each with the weight of its task."""
        room = ROWS - len(batch)
        weights = self.weights(batch).tolist() if room > 0 else []
        pairs = [(task.batch, w) for task, w in zip(self.tasks, weights, strict=False) if task.batch and w >= LEAST]
        if not pairs or room < len(pairs):
            return batch
        parts = [_thinned(part, room // len(pairs), weight) for part, weight in pairs] + [batch]
        device = batch.points.device  # which the rows may have moved to since the tasks were learned
        n_earlier, grades = sum(map(len, parts[:-1])), batch.constraints
        return replace(
            batch,
            points=torch.cat([part.points.to(device) for part in parts]),
            z=torch.cat([part.z.to(device) for part in parts]),
            weight=torch.cat([part.weight.to(device) for part in parts]),
            constraints=grades if grades is None else pad(grades, (0, 0, n_earlier, 0), value=math.nan),
            n_earlier=n_earlier,
            failed=torch.cat([part.failures.to(device) for part in parts]),
            pending=None if batch.pending is None else pad(batch.pending, (n_earlier, 0), value=False),
        )

    def weights(self, batch: LabelledBatch) -> Tensor:
        """What a row of each task weighs beside those of a batch of this run, in [0, 1/2] (T)."""
        told = batch.learned
        z, forecasts = batch.z[told].double().mean(-1), self.forecasts(batch.points[told])
        rho = torch.stack([rank_correlation(each, z) for each in forecasts.unbind(-1)]).clamp(min=0)
        return SHARE * rho**4 * min(1.0, BEGINNING / max(1, len(z))) ** 2

    # --- within ------------------------------------------------------------------------------------------------------

    def _learned(self, number: int, known: Task) -> Task:
        """The task as it is now; that which is known, if no row is new."""
        rows = int((self.observations.tasks == number).sum())
        if rows == known.rows:
            return known
        own = self.observations.of_task(number)
        labelling = deepcopy(self.labels)
        labelling.forget()
        labelled = LabelledBatch.of(own, labelling)
        if not labelled.separable:
            return Task(rows)
        stream = torch.Generator().manual_seed(number)
        batch = labelled.coreset(ROWS, stream)
        head = KernelPLS(iterations=ITERATIONS, additive=False)
        head.generator = stream
        head.bind(self.observations.space.without_fixed)
        try:
            head.to(own.points.device).learn(batch)
        except LinAlgError as error:
            log.warning("the earlier task %s could not be learned: %s", self.observations.task_names[number - 1], error)
            return Task(rows, batch)
        return Task(rows, batch, head)


def _thinned(part: LabelledBatch, rows: int, weight: float) -> LabelledBatch:
    """At most so many rows of a task, always the same ones, at the weight of the task."""
    few = part.coreset(rows, torch.Generator().manual_seed(0))
    return replace(few, weight=few.weight * weight)


def _forecast(task: Task, points: Tensor) -> Tensor:
    if task.head is None:
        return points.new_zeros(len(points), dtype=torch.float64)
    return task.head.to(points.device).posterior(points).mean
