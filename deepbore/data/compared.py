"""`ComparedTrials`: the part of `Observations` that takes in comparisons."""

from collections.abc import Callable, Iterable

import torch

from deepbore.data import writing
from deepbore.data.bradley_terry import compared_utilities
from deepbore.data.budget import Budget
from deepbore.data.changes import Changes
from deepbore.data.directions import Direction
from deepbore.data.journal import Journal
from deepbore.data.outcomes import Status
from deepbore.data.preferences import Pair, check_pair
from deepbore.data.trial import Trial
from deepbore.data.view import ObservationsView
from deepbore.errors import SettingError, TrialError
from deepbore.space import SearchSpace


class ComparedTrials(ObservationsView, Changes):
    """Rows that may be compared, where that is what the run is about.

    Args:
        space: the search space.
        directions: of the values.
        journal: where each event is written before it takes effect; None for nowhere.
        budget: cheap fidelities; None where there are none.
        by_preference: whether trials are compared.
    """

    def __init__(
        self,
        space: SearchSpace,
        directions: tuple[Direction, ...],
        journal: Journal | None = None,
        budget: Budget | None = None,
        by_preference: bool = False,
    ):
        ObservationsView.__init__(self, space, directions, budget, by_preference)
        Changes.__init__(self, journal)

    def prefer(self, pairs: Iterable[tuple[int | Trial, int | Trial]]) -> None:
        """Takes in comparisons, the preferred trial of each first; contradictory ones, too.

        All rows that have been compared have their utility for a value, fitted anew. A pending row is complete with its
        first comparison.

        Raises:
            TrialError: for an unknown trial, one that has failed, one of another run, or one compared with itself.
            SettingError: for a run of values.
        """
        self.settle()
        if not self.by_preference:
            raise SettingError("trials are compared in a study of preferences. Make it with Study(preferences=True).")
        rows = [(self.row_of(better), self.row_of(worse)) for better, worse in pairs]
        for pair in rows:
            check_pair(pair)
            for row in pair:
                if self.status[row] == Status.FAILED:
                    raise TrialError(f"trials that have not failed are compared, but trial {row} has.")
        if rows:
            self.commit(map(writing.preferred, rows), self._effect_of_preferring((*self._pairs, *rows)))

    def row_of(self, trial: int | Trial) -> int:
        """The row of a trial, given by itself or by its number.

        Raises:
            TrialError: for an unknown trial, or one of another run.
        """
        return self._own(trial) if isinstance(trial, Trial) else self._checked(trial)

    def _own(self, trial: Trial) -> int:
        """The row of a trial of this run."""
        own = self.trial(trial.id)
        known = trial.identity is not None
        if (own.identity != trial.identity) if known else (own.params != trial.params):
            raise TrialError(
                f"a trial is told to the run that gave it, but here trial {trial.id} has {own.params}, and not "
                f"{trial.params}. Results from elsewhere are added by `add`."
            )
        return own.id

    def _effect_of_preferring(self, pairs: tuple[Pair, ...]) -> Callable[[], None]:
        """What comparisons change: the values of all rows in them."""
        compared, utilities = compared_utilities(pairs)
        tally, rows = self._tally.after_preferring(compared, -utilities), torch.from_numpy(compared)

        def effect() -> None:
            self.values[rows, 0] = self.values.new_tensor(-utilities)
            self.status[rows] = int(Status.COMPLETE)
            self._pairs, self._tally = pairs, tally

        return effect
