"""What the classifier and the labels of a study say, as numbers to draw: pi, values, predictions of unseen trials."""

import copy
import inspect
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from deepbore.classifiers import Classifier
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import Posterior
from deepbore.classifiers.wrappers import ColumnsPosterior
from deepbore.component import Component
from deepbore.data.observations import Observations
from deepbore.data.trial import sign_of
from deepbore.errors import SettingError
from deepbore.labels import EmphasiseChanges, LabelledObservations, Labelling, Labels
from deepbore.labels.threshold import ThresholdFamily
from deepbore.loop.engine import learn
from deepbore.plots.sources import names_of_values, record_of, require_study
from deepbore.plots.style import UNIT, ValueAxis
from deepbore.space.parameters import Parameter
from deepbore.validation import whole

if TYPE_CHECKING:
    from deepbore.study import Study

MANY = 1000  # observations that a picture shows at most
CHUNK = 512  # points that are scored at once
log = logging.getLogger(__name__)


def nothing_learned(study: "Study") -> str | None:
    """The reason why the classifier has nothing to show; None if it has something.

    Raises:
        SettingError: if it has never been trained, though there is something to learn.
    """
    require_study(study)
    if study.classifier.ready:
        return None
    if not study.observations.ledger.statistics.n_complete:
        return "No trial has a value yet, so there is nothing to learn."
    if not labels_of(study).separable:
        return "All values are equal, so there is nothing to tell apart yet."
    if study.classifier.space is None:
        raise SettingError("the classifier must be trained before it is drawn. Call study.fit() first.")
    return "The classifier could not be trained, or not since there is something to learn: call study.fit()."


# --- labels and values of the trials ---------------------------------------------------------------------------------


def labels_of(study: "Study") -> Labels:
    """The current labels of all rows; by a copy, as some labellings keep a memory of their calls."""
    return copy.deepcopy(study.state.recipe.labels)(study.observations)


def mean_labels(study: "Study", objective: int | None = None) -> np.ndarray:
    """The label of each trial, averaged over the classifier's outputs, or that of one objective (n)."""
    z = labels_of(study).z
    labels: np.ndarray = (z.mean(-1) if objective is None else z[:, objective]).cpu().double().numpy()
    return labels


def tau_of(labels: Labels) -> float:
    """The threshold of the good values, in the user's sign; NaN for labels that are made without one."""
    return labels.metrics.get("tau", math.nan)


def thresholds_of(labelling: Labelling) -> ThresholdFamily | None:
    """The labelling by thresholds of one value that stands behind a labelling; None if there is none."""
    while isinstance(labelling, EmphasiseChanges):
        labelling = labelling.base
    return labelling if isinstance(labelling, ThresholdFamily) else None


def is_good(study: "Study", labels: Labels) -> np.ndarray:
    """Whether each trial reaches the threshold tau, or has a label above 0 where there is no threshold (n)."""
    tau = tau_of(labels)
    if math.isnan(tau):
        above: np.ndarray = (labels.z.mean(-1) > 0).cpu().numpy()
        return above
    values, sign = values_of(study), sign_of(study.observations.direction)
    return sign * values <= sign * tau


def values_of(study: "Study", objective: int | None = None) -> np.ndarray:
    """The first objective value of each trial, or another one, in the user's sign (n); NaN where there is none."""
    column = objective or 0
    values: np.ndarray = study.observations.columns.to_user(study.observations.values[:, column], column).cpu().numpy()
    return values


# --- which trials ----------------------------------------------------------------------------------------------------


def is_own(study: "Study") -> np.ndarray:
    """Whether each trial is of this run (n): not of an earlier task, whose values may be on another scale.

    Withdrawn trials are of none.
    """
    observations = study.observations
    own = np.zeros(len(observations), dtype=bool)
    own[observations.columns.own_rows.cpu().numpy()] = True
    return own


def own_rows(observations: Observations) -> Tensor:
    """This run's finished trials, on the CPU."""
    rows = observations.columns.finished_rows
    return rows[observations.columns.tasks[rows] == 0].cpu()


def judged_rows(observations: Observations, most: int) -> Tensor:
    """At most so many finished trials that the classifier predicts: where there are budgets, those of the largest."""
    rows = own_rows(observations)
    if observations.budget is not None and len(rows):
        spent = observations.budgets.cpu()[rows]
        rows = rows[spent == spent.max()]
    return evenly(rows, most)


def shown_rows(study: "Study", most: int = MANY) -> Tensor:
    """This run's finished rows to draw, in order; of too many, half the best and half others evenly."""
    rows = own_rows(study.observations)
    if len(rows) <= most:
        return rows
    best = study.observations.centres.best_rows(most // 2).cpu()
    own = best[study.observations.columns.tasks.cpu()[best] == 0]
    both: Tensor = torch.cat([own, evenly(rows, most // 2)]).unique()
    return both


def evenly(rows: Tensor, most: int) -> Tensor:
    """The rows, or evenly chosen ones of too many."""
    return rows if len(rows) <= most else rows[torch.linspace(0, len(rows) - 1, most).long()]


# --- what the classifier says ----------------------------------------------------------------------------------------


def name_of_pi(study: "Study") -> str:
    """The meaning of the classifier's pi."""
    return "expected label" if study.classifier.link is Link.IDENTITY else "class probability"


def has_columns(study: "Study") -> bool:
    """Whether the classifier has scores of its own for each objective."""
    return "columns" in study.classifier.capabilities


def _posterior(study: "Study", points: Tensor, objective: int | None) -> Posterior:
    found = study.classifier.posterior(points.to(study.classifier.device))
    return found.columns[objective] if objective is not None and isinstance(found, ColumnsPosterior) else found


@torch.no_grad()
def probability(study: "Study", points: Tensor, objective: int | None = None) -> np.ndarray:
    """pi at points (n x d), of all objectives together or of one: n."""
    parts = [_posterior(study, part, objective).probability for part in points.split(CHUNK)]
    return torch.cat(parts).cpu().double().numpy()


def has_deviation(study: "Study", objective: int | None = None) -> bool:
    """Whether the classifier has a standard deviation of its scores."""
    return "std" in study.classifier.capabilities or (objective is not None and has_columns(study))


def band(study: "Study", points: Tensor, objective: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """pi at one standard deviation of the score below and above its mean, at points (n x d): n and n."""
    mean, std = _moments(study, points, objective)
    link = study.classifier.link
    return link.probability(mean - std).numpy(), link.probability(mean + std).numpy()


def spread(study: "Study", points: Tensor) -> np.ndarray:
    """The standard deviation of the score at points (n x d): n."""
    return _moments(study, points)[1].numpy()


@torch.no_grad()
def _moments(study: "Study", points: Tensor, objective: int | None = None) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of the score (n and n)."""
    parts = [_posterior(study, part, objective) for part in points.split(CHUNK)]
    mean, std = torch.cat([part.mean for part in parts]), torch.cat([part.std for part in parts])
    return mean.cpu().double(), std.cpu().double()


# --- where it is asked -----------------------------------------------------------------------------------------------


def centre(study: "Study", columns: Sequence[int] = ()) -> Tensor | None:
    """The best configuration in which the parameters of these columns are active; None if no trial has them (d).

    An inactive parameter has its value from the best trial in which it is active, or the middle, in case a change of
    the others makes it active.
    """
    space, observations = study.space, study.observations
    points = observations.points[observations.centres.best_rows(MANY)].cpu()
    active = space.points.active(points)
    suited = active[:, list(columns)].all(-1)
    if not bool(suited.any()):
        return None
    row = int(suited.int().argmax())
    known = points[active.int().argmax(0), torch.arange(len(space))]  # of the best trial that has each
    middle = torch.cat([p.from_uniform(torch.tensor([0.5]).double()) for p in space.parameters.values()])
    filled = torch.where(active.any(0), known, middle)
    best: Tensor = torch.where(active[row], points[row], filled)
    return best


def grid(parameter: Parameter, most: int) -> Tensor:
    """Up to `most` entries of a point's column over the parameter's range: every level, if there are so few."""
    if parameter.is_continuous:
        return torch.linspace(0, 1, most, dtype=torch.float64)
    levels = parameter.levels or 1
    if levels <= most:
        return parameter.from_level(torch.arange(levels, dtype=torch.float64))
    even = torch.linspace(0, parameter.upper, most, dtype=torch.float64)  # over its scale, so that a log is even
    return parameter.from_level(parameter.to_level(even).unique())


# --- from pi to values -----------------------------------------------------------------------------------------------

LEVELS = 6  # different labels from which they tell values apart
BY_DEFINITION = (
    "A prediction is the value whose label is the expected label: labels are translated to values as the labelling "
    "made them, with straight lines between the trials."
)
BY_CALIBRATION = (
    "The labels do not tell values apart, so predictions are calibrated: an isotonic regression, on trials that the "
    "classifier had not seen, from the expected label to the rank of the value."
)


@dataclass(frozen=True)
class Translation:
    """A monotone map from pi to values.

    Attributes:
        pi: m knots, ascending.
        values: at the knots, in the user's sign.
        says: how it was made.
    """

    pi: np.ndarray
    values: np.ndarray
    says: str

    def __call__(self, pi: np.ndarray) -> np.ndarray:
        """Predicted values, the same shape; beyond the knots those at the ends."""
        found: np.ndarray = np.interp(pi, self.pi, self.values)
        return found

    @classmethod
    def of(cls, study: "Study", unseen: np.ndarray | None = None) -> "Translation | None":
        """The map of a study: by the labels' definition where they tell values apart, else by calibration.

        Args:
            study: whose labels are read.
            unseen: pi of trials by a classifier that had not seen them, NaN elsewhere (n); see `held_out`.

        Returns:
            None for several objectives, or without enough trials.
        """
        if study.observations.k > 1:
            return None
        return by_definition(study) or (None if unseen is None else by_calibration(study, unseen))


@dataclass(frozen=True)
class Units:
    """What a chart of predictions shows: pi, or the values that it is translated to.

    Attributes:
        name: of them.
        axis: theirs.
        translation: from pi to values; None to show pi.
    """

    name: str
    axis: ValueAxis = UNIT
    translation: Translation | None = None

    def __call__(self, pi: np.ndarray) -> np.ndarray:
        """pi in these units, the same shape."""
        return pi if self.translation is None else self.translation(pi)


def units_of(
    study: "Study", objective: int | None = None, unseen: "Callable[[], np.ndarray | None] | None" = None
) -> Units:
    """What slices and pairs show: predicted values, or pi where it can't be translated.

    Args:
        study: with a trained classifier.
        objective: one of several; None for the only one, or for pi of all together.
        unseen: gives pi of trials by a classifier that had not seen them, where the labels do not define values; None
            for `predicted_unseen`.
    """
    j = objective or 0
    shown = ValueAxis.of(values_of(study, j)[is_own(study)], sign_of(study.observations.directions[j]))
    several = study.observations.k > 1
    if several:
        translation = None if objective is None else by_definition(study, objective)
    else:
        translation = by_definition(study)
        if translation is None and (found := (unseen or (lambda: predicted_unseen(study)))()) is not None:
            translation = by_calibration(study, found)
    if several and objective is not None:
        name = names_of_values(record_of(study))[objective]
        pi = f"{name_of_pi(study)} of {name}"
    else:
        name, pi = "value", name_of_pi(study)
    return Units(pi) if translation is None or shown is None else Units(f"predicted {name}", shown, translation)


def predicted_unseen(study: "Study") -> np.ndarray | None:
    """`held_out`; None where no trial can be held out."""
    started = time.monotonic()
    try:
        found = held_out(study)
    except SettingError as error:
        log.info("no predictions of unseen trials: %s", error)
        return None
    log.info("predictions of unseen trials took %.1f s", time.monotonic() - started)
    return found if np.isfinite(found).any() else None


def by_definition(study: "Study", objective: int | None = None) -> Translation | None:
    """The map along the trials' own labels and values, of one objective; None if these do not determine it.

    Labels are of all values, feasible or not; where only those of feasible trials follow their values, these count.
    """
    values, label, own = values_of(study, objective), mean_labels(study, objective), is_own(study)
    sign = sign_of(study.observations.directions[objective or 0])
    known = [np.isfinite(values) & own, study.observations.feasible.cpu().numpy() & own]
    return next((found for rows in known if (found := _along(sign * values[rows], label[rows], sign))), None)


def _along(values: np.ndarray, label: np.ndarray, sign: float) -> Translation | None:
    """The map along values (n, to minimise) and labels (n); None if one does not determine the other."""
    z = label[np.lexsort((-label, values))]  # the best first
    order = np.lexsort((values, label))
    levels, first, count = np.unique(label[order], return_index=True, return_counts=True)
    if len(levels) < LEVELS or (np.diff(z) > 1e-9).any():
        return None
    y = values[order]
    middles = (y[first + (count - 1) // 2] + y[first + count // 2]) / 2  # medians
    return Translation(levels, sign * middles, BY_DEFINITION)


def by_calibration(study: "Study", unseen: np.ndarray) -> Translation | None:
    """The map that orders unseen trials best; None if there are fewer than ten of them.

    Failures rank behind all others.
    """
    is_pending = study.observations.pending.cpu().numpy()
    known = ~is_pending & np.isfinite(unseen) & is_own(study)
    sign = sign_of(study.observations.direction)
    y = np.where(np.isnan(values_of(study)), np.inf, sign * values_of(study))[known]
    ranked = np.sort(y[np.isfinite(y)])
    if len(y) < 10 or len(ranked) < 2:
        return None
    rank = np.minimum(np.searchsorted(ranked, y), len(ranked) - 1).astype(float)
    order = np.argsort(unseen[known], kind="stable")
    pi, fitted = unseen[known][order], -isotonic(-rank[order])  # the greater pi, the better the rank
    knots = np.unique(pi)
    at = np.array([fitted[pi == knot].mean() for knot in knots])
    return Translation(knots, sign * np.interp(at, np.arange(len(ranked)), ranked), BY_CALIBRATION)


def isotonic(y: np.ndarray) -> np.ndarray:
    """The non-decreasing sequence nearest to y by least squares: adjacent blocks that are out of order are pooled.

    Example:
        >>> isotonic(np.array([1.0, 3.0, 2.0, 4.0])).tolist()
        [1.0, 2.5, 2.5, 4.0]
    """
    blocks: list[tuple[float, int]] = []  # mean and size
    for value in y:
        mean, size = float(value), 1
        while blocks and blocks[-1][0] > mean:
            before, count = blocks.pop()
            mean, size = (before * count + mean * size) / (count + size), count + size
        blocks.append((mean, size))
    return np.repeat([mean for mean, _ in blocks], [size for _, size in blocks])


# --- unseen trials ---------------------------------------------------------------------------------------------------

FOLDS, EPOCHS, MOST = 5, 10, 1000


class GivenLabels(Labelling):
    """Labels made before: those of the whole run, for a part of its trials.

    Args:
        labels: of the rows of that part.
    """

    objectives = None

    def __init__(self, labels: Labels):
        self.labels, self.outputs = labels, labels.z.shape[1]

    def __call__(self, observations: Observations) -> Labels:
        return self.labels


def held_out(study: "Study", folds: int = FOLDS, epochs: int = EPOCHS, seed: int = 0) -> np.ndarray:
    """pi of each finished trial by a classifier that has not seen it (n), by cross-validation; NaN for the others.

    The run's finished trials are split into folds at random; where there are budgets, those of the largest. For each
    fold a new classifier with the study's settings learns the other folds, with their labels in the whole run, but
    nothing of earlier tasks. Of more than 1000 trials an even share is used.

    Args:
        study: with at least twice as many finished trials as folds.
        folds: how many, >= 2.
        epochs: of training, each as long as in an iteration of a run.
        seed: of the split and the training.

    Raises:
        SettingError: for too few trials or folds, or a classifier that can't be made again.
    """
    whole(2, folds=folds)
    whole(1, epochs=epochs)
    rows = judged_rows(study.observations, MOST)
    if len(rows) < 2 * folds:
        raise SettingError(f"{folds} folds need {2 * folds} finished trials, but there are {len(rows)}.")
    labels = labels_of(study)
    shuffled = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))]
    found = np.full(len(study.observations), np.nan)
    budgets, own = study.observations.budgets.cpu(), own_rows(study.observations)
    cheaper = evenly(own[budgets[own] < budgets[rows[0]]], MOST)  # none where there are no budgets
    for k in range(folds):
        out = shuffled[k::folds]
        rest = torch.cat([shuffled[~torch.isin(shuffled, out)], cheaper]).sort().values
        found[out.numpy()] = _predicted(study, labels, rest, out, epochs, seed)
    return found


def _predicted(study: "Study", labels: Labels, rest: Tensor, out: Tensor, epochs: int, seed: int) -> np.ndarray:
    """pi of some rows by a new classifier that has learned the rest; NaN if it could not be trained."""
    points = study.observations.points.cpu()
    observations = study.observations.part(rest.to(study.observations.points.device))  # which of them have failed, too
    observations.to(points.device)
    z = labels.z[rest]
    kept = Labels(z.cpu(), labels.weight[rest].cpu(), labels.best, separable=bool((z != z[:1]).any()))
    classifier = anew(study.classifier)
    classifier.generator = torch.Generator().manual_seed(seed)
    learn([classifier], LabelledObservations(observations, GivenLabels(kept)), epochs, torch.device("cpu"))
    if not classifier.ready:
        return np.full(len(out), np.nan)
    with torch.no_grad():
        said: np.ndarray = classifier.probability(points[out]).cpu().double().numpy()
    return said


def anew(classifier: Classifier) -> Classifier:
    """An untrained classifier with the same settings.

    Raises:
        SettingError: for one with a given network, whose weights may be trained already.
    """
    made = _again(classifier)
    assert isinstance(made, Classifier)
    return made


def _again(value: Any) -> Any:
    if isinstance(value, Component):
        settings = dict(vars(value).get("_arguments", {}))
        kinds = inspect.signature(type(value).__init__).parameters.values()
        several = [kind.name for kind in kinds if kind.kind in (kind.VAR_KEYWORD, kind.VAR_POSITIONAL)]
        if several:
            raise SettingError(f"{type(value).__name__} can't be made again from its settings, so nothing is held out.")
        return type(value)(**{name: _again(each) for name, each in settings.items()})
    if isinstance(value, torch.nn.Module):
        raise SettingError("a network of your own may have learned from all trials already, so nothing is held out.")
    if isinstance(value, Mapping):
        return {name: _again(each) for name, each in value.items()}
    return copy.deepcopy(value)
