"""From proposed trials to their values."""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import SupportsFloat

from deepbore.errors import ValueTypeError
from deepbore.observations import Trial, as_number
from deepbore.space import Params

Objective = Callable[[Params], SupportsFloat]


class Evaluator(ABC):
    """Evaluates trials; a failure is an outcome, not an error."""

    @abstractmethod
    def __call__(self, trials: Iterable[Trial]) -> Iterator[tuple[Trial, float]]:
        """Yields each trial with its value, as soon as it is known; NaN for a failure."""


class SerialEvaluator(Evaluator):
    """Calls the objective in this process, one trial after the other.

    An exception, or a value that is no number, makes a failed trial and a warning; the run goes on.

    Args:
        objective: configuration -> value.
    """

    def __init__(self, objective: Objective):
        self.objective = objective

    def __call__(self, trials: Iterable[Trial]) -> Iterator[tuple[Trial, float]]:
        for trial in trials:
            yield trial, self._value(trial)

    def _value(self, trial: Trial) -> float:
        try:
            return as_number(self.objective(trial.params))
        except ValueTypeError as error:
            reason = str(error)
        except Exception as error:  # whatever the user's code raises is a failed trial
            reason = f"{type(error).__name__}: {error}"
        warnings.warn(f"trial {trial.id} failed with {trial.params}: {reason}", RuntimeWarning, stacklevel=2)
        return math.nan
