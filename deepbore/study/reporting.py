"""`Reporting`: values that a trial has on its way, and whether it is to go on."""

from typing import SupportsFloat

from deepbore.data.observations import Trial
from deepbore.data.outcome import Outcome, Status
from deepbore.data.trial import ROUNDING
from deepbore.errors import SettingError, TrialError
from deepbore.loop.engine import TrialAllocator
from deepbore.study.telling import Telling
from deepbore.validation import above, required


class Reporting(Telling):
    """The part of a study with cheap fidelities that listens while a trial runs."""

    _allocator: TrialAllocator

    def report(self, trial: Trial | int, value: SupportsFloat | Outcome, step: float) -> bool:
        """Notes the value of a running trial at a step, and says whether it is to go on.

        It is early stopping by the rule of promotions: below the trial's budget nothing is decided, and it goes on. At
        its budget the value is told; if that is among the best 1 / factor of its rung, the trial is promoted at once,
        and goes on with the budget of the next rung, under an id of its own that continues this one. So a program
        that reports after each epoch needs no checkpoint, and neither tells nor asks how far to go:

            for trial in study.ask():
                for epoch in itertools.count(1):
                    if not study.report(trial, train_one_epoch(trial.params), step=epoch):
                        break

        Trials that it has left behind may still be promoted later, as better ones turn out not to be: `ask` gives
        them again, with `resume_from`.

        Args:
            trial: what `ask` gave, or its id.
            value: the value at this step, in the user's sign; NaN and infinite ones end the trial as failed.
            step: what has been spent until now, in the unit of the budget, > 0; none between two rungs is kept.

        Returns:
            Whether to go on. If not, the trial has its outcome.

        Raises:
            SettingError: for a study without a budget, or a step that is no positive number.
            TrialError: for an unknown trial, or one that has ended.
            StudyRunning: while `optimize` runs: there a trial ends at its budget, and comes again if it is promoted.

        Example:
            >>> from deepbore import Budget, Real, SearchSpace, Study
            >>> study = Study(SearchSpace({"x": Real(0, 1)}), budget=Budget("epochs", 1, 9))
            >>> for trial in study.ask(3):  # of three results the best one goes on
            ...     goes_on = study.report(trial, trial.id, step=1)
            >>> goes_on, [study.trials[row].status.name for row in range(3)]
            (False, ['COMPLETE', 'COMPLETE', 'COMPLETE'])
        """
        required(step=step)
        above(0, step=step)
        with self._alone("report"):
            observations, budget = self.observations, self.observations.budget
            if budget is None:
                raise SettingError("report needs a study with a budget. Give Study(space, budget=Budget(...)).")
            row = observations.latest(observations.row_of(trial))
            if observations.status[row] != Status.PENDING:
                raise TrialError(f"a trial that has ended reports nothing, but trial {row} did. Ask for another.")
            outcome = value if isinstance(value, Outcome) else Outcome(value)
            if step < float(observations.budgets[row]) * (1 - ROUNDING) and not outcome.has_failed:
                return True
            observations.tell(row, outcome)
            return bool(self._allocator.engine.reserve_promoted(1, of=row))
