"""`StudyView`: what there is to read of a study."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from deepbore.acquisition import Acquisition
from deepbore.candidates import Candidates
from deepbore.classifiers import Classifier
from deepbore.data.frames import as_frame
from deepbore.data.observations import Observations, Trial
from deepbore.labels import Gamma, Labelling
from deepbore.loop.recipe import Recipe
from deepbore.loop.state import RunState
from deepbore.space import Params, SearchSpace

if TYPE_CHECKING:
    import pandas as pd


class Parts(TypedDict, total=False):
    """The settings of `Study` that a journal's header stands in for; see there."""

    classifier: Classifier | None
    acquisition: Acquisition | None
    candidates: Candidates | None
    labels: Labelling | None
    gamma: Gamma | None
    n_initial: int | None


@dataclass(frozen=True)
class Result:
    """What an optimisation found.

    Attributes:
        best_params: the best feasible configuration; None if there is none, or there are several objectives.
        best_value: its value, in the user's sign; NaN if there is none.
        values: all values in the order of evaluation, in the user's sign, NaN for failures: n, or n x k for several
            objectives.
        study: the study behind it, to go on with.
    """

    best_params: Params | None
    best_value: float
    values: np.ndarray
    study: "StudyView"

    @classmethod
    def of(cls, study: "StudyView") -> "Result":
        """What a study has found so far."""
        observations = study.observations
        values = observations.user_values.cpu().numpy()
        if observations.k > 1:
            return cls(None, float("nan"), values, study)
        best = observations.best
        if best is None or best.value is None:
            return cls(None, float("nan"), values[:, 0], study)
        return cls(best.params, best.value, values[:, 0], study)


class StudyView:
    """Everything that can be read of a study and its state."""

    _state: RunState

    @property
    def observations(self) -> Observations:
        """All trials as tensors."""
        return self._state.observations

    @property
    def recipe(self) -> Recipe:
        """The parts of the run."""
        return self._state.recipe

    @property
    def classifier(self) -> Classifier:
        """What learns."""
        return self.recipe.classifier

    @property
    def labels(self) -> Labelling:
        """How outcomes become labels."""
        return self.recipe.labels

    @property
    def space(self) -> SearchSpace:
        """The search space."""
        return self._state.space

    @property
    def seed(self) -> int:
        """Of everything random in the run."""
        return self._state.seed

    @property
    def best_trial(self) -> Trial | None:
        """The feasible trial with the best value; None while there is none.

        Raises:
            SettingError: for a study of several objectives, which has no single best.
        """
        return self.observations.best

    @property
    def trials(self) -> list[Trial]:
        """All trials in the order of asking."""
        return [self.observations.trial(row) for row in range(len(self.observations))]

    @property
    def result(self) -> Result:
        """What has been found so far."""
        return Result.of(self)

    def to_frame(self) -> "pd.DataFrame":
        """A pandas DataFrame: one row a trial, with id, parameters, value and status.

        Raises:
            MissingPackage: without pandas.
        """
        return as_frame(self.observations)
