"""`EarlierTasks`: transfer of trials from earlier tasks to a run."""

import logging
import math
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from deepbore.classifiers.kernel.least_squares import ROWS, KernelPLS
from deepbore.compute.numerics import LinAlgError, rank_correlation
from deepbore.data.observations import Observations
from deepbore.errors import SettingError
from deepbore.labels import LabelledBatch, Labelling

ITERATIONS = 100  # of L-BFGS for the model of a task, which is fitted once
DESIGNED = 1000  # points of a Sobol sequence whose best predictions are used in the design
MAX_WEIGHT = 0.5  # of the rows of a task that ranks the rows of this run perfectly
DECAY_FROM = 10  # rows of this run from which the weight of tasks decreases
MIN_WEIGHT = 1e-3  # tasks with less weight are ignored
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Task:
    """An earlier task: its rows, labelled among themselves, and a model of these labels.

    Attributes:
        rows: the number of rows.
        batch: a coreset of the rows; None if all labels are equal.
        model: predicts labels; None if it could not be fitted.
    """

    rows: int
    batch: LabelledBatch | None = None
    model: KernelPLS | None = None


class EarlierTasks:
    """Models of the earlier tasks of a run, one for each, fitted once to the labels within the task.

    Each task is labelled by its own quantile, so values of different scales are comparable. The models suggest points
    for the design (`promising`), and determine the weight of a task,

        w_t = rho_t^4 / 2 * min(1, 10 / n)^2,

    with rho_t >= 0 the rank correlation of its predictions with the labels of the n rows of this run. The rows of the
    task are added to those of this run with this weight (`joined`), for any classifier. The weight decreases with n,
    because later rows are close to the best one, and distinguish points that are equally good in the task. There are at
    most 200 rows in total, so the tasks are gone in the end; tasks unrelated to this run are never used.

    The models are a function of the rows only, so snapshots do not contain them. They are fitted on first use, and
    again after rows of their task were added, withdrawn or corrected.

    Args:
        observations: all rows of the run.
        labels: the labelling of the run, a copy of which labels each task.
    """

    def __init__(self, observations: Observations, labels: Labelling):
        self.observations, self.labels = observations, labels
        self._tasks: list[Task] = []
        self._known = (0, 0)  # rows, and the revision, that the tasks are of

    def __bool__(self) -> bool:
        """Whether there are earlier tasks."""
        return bool(self.observations.ledger.statistics.n_earlier)

    def __deepcopy__(self, memo: dict[int, Any]) -> "EarlierTasks":
        """The same object if only the classifier is copied; a new one if the observations are copied too."""
        observations = memo.get(id(self.observations))
        if observations is None:
            return self
        copied = memo[id(self)] = EarlierTasks(observations, deepcopy(self.labels, memo))
        return copied

    def check(self) -> None:
        """Raises SettingError if labels scalarise several objectives, which differs between tasks."""
        if self.observations.k > 1 and self.labels.outputs == 1:
            raise SettingError(
                f"{type(self.labels).__name__} puts all objectives into one column, so labels of earlier tasks can't "
                "be compared with this run's. Leave out labels= for one column an objective, or leave out task=."
            )

    @property
    def tasks(self) -> list[Task]:
        """The tasks that have rows, by number."""
        now = self.observations.ledger.statistics.n_earlier, self.observations.ledger.revision
        if self._known != now:
            known = self._tasks if self._known[1] == now[1] else []
            before = [*known, *[Task(0)] * (len(self.observations.ledger.task_names) - len(known))]
            self._tasks = [self._learned(number, task) for number, task in enumerate(before, 1)]
            self._known = now
        return [task for task in self._tasks if task.rows]

    def forecasts(self, points: Tensor) -> Tensor:
        """Points (n x d) -> the labels predicted by each of T tasks (n x T), 0 without a model."""
        return torch.stack([_forecast(task, points) for task in self.tasks], dim=-1)

    # --- for the design ----------------------------------------------------------------------------------------------

    @torch.no_grad()
    def promising(self, count: int) -> Tensor:
        """Points with the best predictions, alternately by the mean of all tasks and by each task (k x d, k >= count).

        They are chosen from the rows of the tasks and a Sobol sequence.
        """
        space, device = self.observations.space, self.observations.points.device
        known = [task.batch.points.to(device) for task in self.tasks if task.batch is not None]
        points = torch.cat([*known, space.points.sobol(DESIGNED, seed=0).to(device)])
        forecasts = self.forecasts(points)
        orders = torch.cat([forecasts.mean(-1, keepdim=True), forecasts], dim=-1).argsort(dim=0, descending=True)
        return points[orders[: count + self.observations.n_distinct].flatten()]

    # --- for the classifier ------------------------------------------------------------------------------------------

    @torch.no_grad()
    def joined(self, batch: LabelledBatch) -> LabelledBatch:
        """A batch of n rows of this run, preceded by up to 200 - n rows of tasks with the weights of these."""
        room = ROWS - len(batch)
        weights = self.weights(batch).tolist() if room > 0 else []
        each = zip(self.tasks, weights, strict=False)
        pairs = [(task.batch, w) for task, w in each if task.batch and w >= MIN_WEIGHT]
        if not pairs or room < len(pairs):
            return batch
        parts = [_thinned(part, room // len(pairs), weight) for part, weight in pairs] + [batch]
        device = batch.points.device  # rows may have moved since the tasks were fitted
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
            pruned=None if batch.pruned is None else pad(batch.pruned, (n_earlier, 0), value=False),
        )

    def weights(self, batch: LabelledBatch) -> Tensor:
        """The weight of the rows of each task, given a batch of this run, in [0, 1/2] (T)."""
        told = batch.learned
        z, forecasts = batch.z[told].double().mean(-1), self.forecasts(batch.points[told])
        rho = torch.stack([rank_correlation(each, z) for each in forecasts.unbind(-1)]).clamp(min=0)
        return MAX_WEIGHT * rho**4 * min(1.0, DECAY_FROM / max(1, len(z))) ** 2

    # --- within ------------------------------------------------------------------------------------------------------

    def _learned(self, number: int, known: Task) -> Task:
        """The task with its current rows; the known one if no row is new."""
        own = self.observations.of_task(number).believed
        rows = len(own)
        if rows == known.rows:
            return known
        labelling = deepcopy(self.labels)
        labelling.forget()
        labelled = LabelledBatch.of(own, labelling)
        if not labelled.separable:
            return Task(rows)
        stream = torch.Generator().manual_seed(number)
        batch = labelled.coreset(ROWS, stream)
        model = KernelPLS(iterations=ITERATIONS, additive=False)
        model.generator = stream
        model.bind(self.observations.space.points.without_fixed)
        try:
            model.to(own.points.device).learn(batch)
        except LinAlgError as error:
            log.warning(
                "the earlier task %s could not be learned: %s", self.observations.ledger.task_names[number - 1], error
            )
            return Task(rows, batch)
        return Task(rows, batch, model)


def _thinned(part: LabelledBatch, rows: int, weight: float) -> LabelledBatch:
    """At most `rows` rows of a task, chosen with a fixed seed, with the weight of the task."""
    few = part.coreset(rows, torch.Generator().manual_seed(0))
    return replace(few, weight=few.weight * weight)


def _forecast(task: Task, points: Tensor) -> Tensor:
    if task.model is None:
        return points.new_zeros(len(points), dtype=torch.float64)
    return task.model.to(points.device).posterior(points).mean
