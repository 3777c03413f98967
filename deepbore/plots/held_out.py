"""What a classifier says of trials that it has not learned from: by cross-validation."""

import copy
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from deepbore.classifiers import Classifier
from deepbore.component import Component
from deepbore.data.observations import Observations
from deepbore.errors import SettingError
from deepbore.labels import LabelledObservations, Labelling, Labels
from deepbore.loop.lightning import train
from deepbore.plots.predictions import judged_rows, labels_of, own_rows, thinned
from deepbore.validation import whole

if TYPE_CHECKING:
    from deepbore.study import Study

FOLDS, EPOCHS, MOST = 5, 10, 1000


class GivenLabels(Labelling):
    """Labels that were made elsewhere: those of the whole run, for a part of its trials.

    Args:
        labels: of the rows that are left.
    """

    objectives = None

    def __init__(self, labels: Labels):
        self.labels, self.outputs = labels, labels.z.shape[1]

    def __call__(self, observations: Observations) -> Labels:
        return self.labels


def held_out(study: "Study", folds: int = FOLDS, epochs: int = EPOCHS, seed: int = 0) -> np.ndarray:
    """pi of each finished trial by a classifier that has not seen it (n); NaN for the others.

    The run's finished trials are dealt into folds at random; where there are budgets, those of the largest. For each
    fold a new classifier with the study's settings learns the others, with the labels that they have in the whole run,
    but nothing of earlier tasks. Of more than 1000 trials an even share is used.

    Args:
        study: with at least twice as many finished trials as folds.
        folds: how many, >= 2.
        epochs: of training, each as long as in an iteration of a run.
        seed: of the dealing and the training.

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
    cheaper = thinned(own[budgets[own] < budgets[rows[0]]], MOST)  # none where there are no budgets
    for k in range(folds):
        out = shuffled[k::folds]
        rest = torch.cat([shuffled[~torch.isin(shuffled, out)], cheaper]).sort().values
        found[out.numpy()] = _said(study, labels, rest, out, epochs, seed)
    return found


def _said(study: "Study", labels: Labels, rest: Tensor, out: Tensor, epochs: int, seed: int) -> np.ndarray:
    """pi of some rows by a new classifier that has learned the rest; NaN if that has taught it nothing."""
    points = study.observations.points.cpu()
    observations = study.observations.part(rest.to(study.observations.points.device))  # which of them have failed, too
    observations.to(points.device)
    kept = Labels(labels.z[rest].cpu(), labels.weight[rest].cpu(), labels.best, _differ(labels.z[rest]))
    classifier = anew(study.classifier)
    classifier.generator = torch.Generator().manual_seed(seed)
    train(classifier, LabelledObservations(observations, GivenLabels(kept)), epochs)
    if not classifier.ready:
        return np.full(len(out), np.nan)
    with torch.no_grad():
        said: np.ndarray = classifier.probability(points[out]).cpu().double().numpy()
    return said


def _differ(z: Tensor) -> bool:
    return bool((z != z[:1]).any())


def anew(classifier: Classifier) -> Classifier:
    """A classifier with the same settings that has learned nothing.

    Raises:
        SettingError: for one that was given a network, whose weights may have learned already.
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
