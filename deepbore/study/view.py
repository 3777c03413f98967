"""`StudyView`: what there is to read of a study."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from deepbore.acquisition import Acquisition
from deepbore.candidates import Candidates
from deepbore.classifiers import Classifier
from deepbore.data.imported import as_frame
from deepbore.data.observations import Observations, Trial
from deepbore.labels import Gamma, Labelling
from deepbore.loop.recipe import Recipe
from deepbore.loop.state import RunState
from deepbore.space import Params, SearchSpace
from deepbore.strategies import Strategy

if TYPE_CHECKING:
    import pandas as pd


class Parts(TypedDict, total=False):
    """The settings of `Study` that a journal's header stands in for; see there."""

    strategy: Strategy | None
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
        best_params: the best feasible configuration; None if there is none, or there are several objectives, which have
            a `pareto_front` instead.
        best_value: its value, in the user's sign; NaN if there is none.
        values: all values in the order of asking, in the user's sign, NaN for failures and for what is not told yet: n,
            or n x k for several objectives.
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

    @property
    def pareto_front(self) -> list[Trial]:
        """What there is to choose among, by all that the study has been told until now: `Study.pareto_front`."""
        return self.study.pareto_front

    @property
    def recommended(self) -> Trial | None:
        """What to use where values are noisy, by all that the study has been told until now: `Study.recommended`."""
        return self.study.recommended


class StudyView(ABC):
    """Everything that can be read of a study and its state."""

    _state: RunState

    def __repr__(self) -> str:
        """How many trials it has, and the best value."""
        observations = self.observations
        counted = {"pending": len(observations.pending_rows), "failed": observations.n_failed}
        parts = [f"{len(observations)} trials", *(f"{n} {what}" for what, n in counted.items() if n)]
        best = observations.best if observations.k == 1 else None
        return f"Study({', '.join(parts)}{'' if best is None else f', best {best.value:.6g}'})"

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
        """The feasible trial with the best value; None while there is none. See `recommended` for noisy values.

        Raises:
            SettingError: for a study of several objectives, which has no single best. See `pareto_front`.
        """
        return self.observations.best

    @property
    def pareto_front(self) -> list[Trial]:
        """The feasible trials that no other beats in one objective without being worse in another.

        They stand in the order of the first objective, best first; of trials with equal values there is the first. With
        one objective it is the best trial alone.
        """
        if self.observations.k == 1:
            return [] if self.best_trial is None else [self.best_trial]
        return self.observations.front

    @property
    def recommended(self) -> Trial | None:
        """The feasible trial whose configuration has the greatest expected label: what to use where values are noisy.

        The best of many noisy values is mostly a lucky one. The classifier weighs it against the values around it, so
        the configuration that it expects most of is better on average. Trials of an equal configuration count as one,
        shown by its best value; of expected labels that differ by less than 0.3 % the best mean value decides. Without
        noise this is `best_trial`, or as good; before the end of the design, and while no value is better than another,
        it is the configuration of the best mean value. Where there are budgets, it is among the trials of the largest
        one that has a feasible value.

        A copy of the classifier learns all values told so far, which takes about as long as a suggestion; the next
        suggestions stay as they are. Beyond 1000 trials those of the 1000 best values and the 1000 newest are
        considered. Under several ranks each that asks trains a copy of its own, and finds the same.

        Raises:
            SettingError: for a study of several objectives; or for a classifier that can't be copied.
        """
        row = self._recommended_row()
        return None if row is None else self.observations.trial(row)

    @abstractmethod
    def _recommended_row(self) -> int | None:
        """The row of the recommended trial; None while there is none."""

    @property
    def trials(self) -> list[Trial]:
        """All trials in the order of asking."""
        return self.observations.trials()

    @property
    def pending(self) -> list[Trial]:
        """The trials that were asked for and not told, in the order of asking, as after a crash."""
        return self.observations.trials(self.observations.pending_rows.tolist())

    @property
    def result(self) -> Result:
        """What has been found so far."""
        return Result.of(self)

    def to_frame(self) -> "pd.DataFrame":
        """A pandas DataFrame: one row a trial, with id, parameters, value and status.

        Raises:
            MissingPackage: without pandas.
        """
        return as_frame(self.observations.table)
