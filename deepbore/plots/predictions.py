"""What the classifier and the labels of a study say, as numbers to draw."""

import copy
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from deepbore.classifiers.link import Link
from deepbore.data.observations import Observations
from deepbore.data.trial import sign_of
from deepbore.errors import SettingError
from deepbore.labels import EmphasiseChanges, Labelling, Labels
from deepbore.labels.threshold import ThresholdFamily
from deepbore.plots.style import require_study
from deepbore.space.parameters import Parameter

if TYPE_CHECKING:
    from deepbore.study import Study

MANY = 1000  # so many observations a picture shows at most
CHUNK = 512  # points that are scored at once


def nothing_learned(study: "Study") -> str | None:
    """Why the classifier has nothing to show; None if it has.

    Raises:
        SettingError: if it has never been trained, though there is something to learn.
    """
    require_study(study)
    if study.classifier.ready:
        return None
    if not study.observations.n_complete:
        return "No trial has a value yet, so there is nothing to learn."
    if not labels_of(study).separable:
        return "All values are equal, so there is nothing to tell apart yet."
    if study.classifier.space is None:
        raise SettingError("the classifier must be trained before it is drawn. Call study.fit() first.")
    return "The classifier could not be trained, or not since there is something to learn: call study.fit()."


def labels_of(study: "Study") -> Labels:
    """The labels of all rows as of now; by a copy, as some labellings remember what they have labelled."""
    return copy.deepcopy(study.labels)(study.observations)


def own_rows(observations: Observations) -> Tensor:
    """This run's finished trials, on the CPU."""
    rows = observations.finished_rows
    return rows[observations.tasks[rows] == 0].cpu()


def judged_rows(observations: Observations, most: int) -> Tensor:
    """Up to so many of them that the classifier's word is about: where there are budgets, those of the largest."""
    rows = own_rows(observations)
    if observations.budget is not None and len(rows):
        spent = observations.budgets.cpu()[rows]
        rows = rows[spent == spent.max()]
    return thinned(rows, most)


def tau_of(labels: Labels) -> float:
    """The threshold of the good values, in the user's sign; NaN for labels that are made without one."""
    return labels.metrics.get("tau", math.nan)


def thresholds_of(labelling: Labelling) -> ThresholdFamily | None:
    """The labelling by thresholds of one value that stands behind a labelling; None if there is none."""
    while isinstance(labelling, EmphasiseChanges):
        labelling = labelling.base
    return labelling if isinstance(labelling, ThresholdFamily) else None


def is_good(study: "Study", labels: Labels) -> np.ndarray:
    """Which trials reach the threshold tau, or have a label above 0 where there is no threshold (n)."""
    tau = tau_of(labels)
    if math.isnan(tau):
        above: np.ndarray = (labels.z.mean(-1) > 0).cpu().numpy()
        return above
    values, sign = values_of(study), sign_of(study.observations.direction)
    return sign * values <= sign * tau


def values_of(study: "Study") -> np.ndarray:
    """The first objective value of each trial in the user's sign (n); NaN where there is none."""
    values: np.ndarray = study.observations.to_user(study.observations.values)[:, 0].cpu().numpy()
    return values


def name_of_pi(study: "Study") -> str:
    """What the classifier's pi is."""
    return "expected label" if study.classifier.link is Link.IDENTITY else "class probability"


@torch.no_grad()
def probability(study: "Study", points: Tensor) -> np.ndarray:
    """pi at points (n x d): n."""
    classifier = study.classifier
    parts = [classifier.probability(part.to(classifier.device)) for part in points.split(CHUNK)]
    return torch.cat(parts).cpu().double().numpy()


def has_deviation(study: "Study") -> bool:
    """Whether the classifier says how sure it is of its scores."""
    return "std" in study.classifier.capabilities


def band(study: "Study", points: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """pi at one standard deviation of the score below and above its mean, at points (n x d): n and n."""
    mean, std = _moments(study, points)
    link = study.classifier.link
    return link.probability(mean - std).numpy(), link.probability(mean + std).numpy()


def spread(study: "Study", points: Tensor) -> np.ndarray:
    """The standard deviation of the score at points (n x d): n."""
    return _moments(study, points)[1].numpy()


@torch.no_grad()
def _moments(study: "Study", points: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of the score (n and n)."""
    classifier = study.classifier
    parts = [classifier.posterior(part.to(classifier.device)) for part in points.split(CHUNK)]
    mean, std = torch.cat([part.mean for part in parts]), torch.cat([part.std for part in parts])
    return mean.cpu().double(), std.cpu().double()


def thinned(rows: Tensor, most: int) -> Tensor:
    """The rows, or so many of them evenly."""
    return rows if len(rows) <= most else rows[torch.linspace(0, len(rows) - 1, most).long()]


def shown_rows(study: "Study", most: int = MANY) -> Tensor:
    """This run's finished rows to draw, in order; of too many, half the best and half others evenly."""
    rows = own_rows(study.observations)
    if len(rows) <= most:
        return rows
    best = study.observations.best_rows(most // 2).cpu()
    own = best[study.observations.tasks.cpu()[best] == 0]
    both: Tensor = torch.cat([own, thinned(rows, most // 2)]).unique()
    return both


def centre(study: "Study", columns: Sequence[int] = ()) -> Tensor | None:
    """The best configuration in which the parameters of these columns are active; None if no trial has them (d).

    What is inactive there has its value from the best trial that has one, or the middle, for where a change of the
    others makes it active.
    """
    space, observations = study.space, study.observations
    points = observations.points[observations.best_rows(MANY)].cpu()
    active = space.active(points)
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
    """Up to `most` entries of a point's column over the parameter's whole range: every level, if they are so few."""
    if parameter.is_continuous:
        return torch.linspace(0, 1, most, dtype=torch.float64)
    levels = parameter.levels or 1
    if levels <= most:
        return parameter.from_level(torch.arange(levels, dtype=torch.float64))
    even = torch.linspace(0, parameter.upper, most, dtype=torch.float64)  # over its scale, so that a log is even
    return parameter.from_level(parameter.to_level(even).unique())
