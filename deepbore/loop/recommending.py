"""The recommendation of a run: the configuration with the greatest predicted label, not the luckiest value."""

import copy
import math
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from deepbore.classifiers import Classifier
from deepbore.compute.devices import one_thread
from deepbore.data.columns import distinct_rows
from deepbore.data.observations import Observations
from deepbore.errors import SettingError
from deepbore.labels import LabelledObservations
from deepbore.loop.engine import learn
from deepbore.loop.state import UNCOPIED, RunState

CONSIDERED = 1000  # best trials, and newest trials, that are considered: the cost does not grow with n
TIE = 3e-3  # labels within this share of the greatest one are tied


def recommend(state: RunState) -> int | None:
    """The row of the feasible trial whose configuration has the greatest predicted label; None without feasible trials.

    A copy of the classifier is trained on all outcomes; the run and its random numbers are unchanged. Ties are broken
    by the best value. Trials with suspicious values are left out, unless there are no others. Before the end of the
    design, and while the classifier is not ready, only values are used.

    Raises:
        SettingError: with several objectives; or for a classifier or labels that can't be copied.
    """
    best = state.observations.best
    if best is None:
        return None
    rows = considered_rows(state.observations.believed)
    if not rows:
        return best.id
    if state.n_missing:
        return rows[0]
    expected = expected_labels(state, rows)
    if expected is None:
        return rows[0]
    expected = expected.nan_to_num(nan=-math.inf)
    return rows[int((expected >= expected.max() * (1 - TIE)).nonzero()[0])]


def considered_rows(observations: Observations, most: int = CONSIDERED) -> list[int]:
    """Rows of distinct configurations among this run's feasible trials, those of the best values first.

    Args:
        observations: of one objective; with budgets, only trials on the rung of the best one are considered.
        most: the number of best trials, and of newest trials.

    Returns:
        The best row of each configuration, sorted by the mean value of the configuration; ties are broken by row.
    """
    values, means = observations.values[:, 0], observations.averaged.values
    own = observations.may_be_best
    ranked = torch.where(own, means, math.inf)
    best = ranked.topk(min(most, len(ranked)), largest=False).indices
    rows = torch.cat([best[own[best]], own.nonzero().squeeze(-1)[-most:]]).unique()  # ascending
    for key in (values, means):  # the last counts most
        rows = rows[key[rows].sort(stable=True).indices]
    return distinct_rows(rows, observations.columns.first_rows).tolist()


def expected_labels(state: RunState, rows: list[int]) -> Tensor | None:
    """The labels of m rows predicted by a newly trained copy of the classifier (m); None if it is not ready.

    Raises:
        SettingError: for a classifier that can't be copied.
    """
    classifier, data = _copies(state)
    points = state.observations.points
    learn([classifier], data, 1 + state.warmup_epochs, points.device)  # the device of the rows, so that they stay there
    if not classifier.ready:
        return None
    classifier.to(points.device)
    with torch.no_grad(), one_thread():
        return classifier.probability(points[torch.tensor(rows, device=points.device)])


def _without_trainer(classifier: Classifier) -> AbstractContextManager[None]:
    from deepbore.loop.lightning import detached  # takes seconds

    return detached(classifier)


def _copies(state: RunState) -> tuple[Classifier, LabelledObservations]:
    """Copies of the classifier, the labelling and the generator of a run, with the original observations."""
    stream = torch.Generator(state.generator.device)
    stream.set_state(state.generator.get_state())
    parts = state.classifier, state.recipe.labels
    try:
        with nullcontext() if state.classifier.closed_form else _without_trainer(state.classifier):
            classifier, labels = copy.deepcopy(parts, {id(state.generator): stream})
    except UNCOPIED as error:
        raise SettingError(
            f"a recommendation needs a copy of the classifier and the labels, but {type(parts[0]).__name__} and "
            f"{type(parts[1]).__name__} can't be copied: {error} See `copy.deepcopy`."
        ) from error
    return classifier, LabelledObservations(state.observations, labels, state.with_earlier_tasks)
