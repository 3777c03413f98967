"""The classifier of a study, as numbers to draw."""

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from deepbore.errors import SettingError
from deepbore.labels import Labels
from deepbore.space.parameters import Parameter, Real

if TYPE_CHECKING:
    from deepbore.study import Study

MANY = 1000  # so many observations a picture shows at most
CHUNK = 512  # points that are scored at once


def nothing_learned(study: "Study") -> str | None:
    """Why the classifier has nothing to show; None if it has.

    Raises:
        SettingError: if it has never been trained, though there is something to learn.
    """
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
    return copy.copy(study.labels)(study.observations)


def name_of_pi(study: "Study") -> str:
    """What the classifier's pi is."""
    return "expected label" if study.classifier.estimates_labels else "class probability"


@torch.no_grad()
def probability(study: "Study", points: Tensor) -> np.ndarray:
    """pi at points (n x d): n."""
    classifier = study.classifier
    parts = [classifier.probability(part.to(classifier.device)) for part in points.split(CHUNK)]
    return torch.cat(parts).cpu().double().numpy()


def band(study: "Study", points: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """pi at one standard deviation of the score below and above its mean, at points (n x d): n and n."""
    mean, std = _moments(study, points)
    low, high = [_as_pi(study, end).numpy() for end in (mean - std, mean + std)]
    return low, high


def spread(study: "Study", points: Tensor) -> np.ndarray:
    """The standard deviation of the score at points (n x d): n."""
    return _moments(study, points)[1].numpy()


@torch.no_grad()
def _moments(study: "Study", points: Tensor) -> tuple[Tensor, Tensor]:
    classifier = study.classifier
    parts = [classifier.gaussian(part.to(classifier.device)) for part in points.split(CHUNK)]
    means, stds = zip(*parts, strict=True)
    return torch.cat(means).cpu().double(), torch.cat(stds).cpu().double()


def _as_pi(study: "Study", score: Tensor) -> Tensor:
    pi: Tensor = score.clamp(0, 1) if study.classifier.estimates_labels else score.sigmoid()
    return pi


def thinned(rows: Tensor, most: int) -> Tensor:
    """The rows, or so many of them evenly."""
    return rows if len(rows) <= most else rows[torch.linspace(0, len(rows) - 1, most).long()]


def shown_rows(study: "Study", most: int = MANY) -> Tensor:
    """Finished rows to draw, in order; of too many, half the best and half others evenly."""
    rows = study.observations.finished_rows.cpu()
    if len(rows) <= most:
        return rows
    best = study.observations.best_rows(most // 2).cpu()
    both: Tensor = torch.cat([best, thinned(rows, most // 2)]).unique()
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
    if isinstance(parameter, Real):
        return torch.linspace(0, 1, most, dtype=torch.float64)
    levels = parameter.levels or 1
    if levels <= most:
        return parameter.from_level(torch.arange(levels, dtype=torch.float64))
    upper = float(parameter.from_level(torch.tensor([levels - 1.0]).double()))
    spread = torch.linspace(0, upper, most, dtype=torch.float64)  # over its scale, so that a log is even
    return parameter.from_level(parameter.to_level(spread).unique())
