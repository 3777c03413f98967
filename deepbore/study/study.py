"""`Study`: an optimisation by ask and tell."""

import os
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsFloat

import numpy as np
import torch
from lightning.pytorch import Trainer

from deepbore.acquisition import Acquisition
from deepbore.candidates import Candidates
from deepbore.classifiers import Classifier, KernelPLS
from deepbore.compute.distributed import Ranks
from deepbore.data.csv_file import read_csv
from deepbore.data.frames import as_frame
from deepbore.data.journal import Journal
from deepbore.data.observations import Direction, Observations, Trial
from deepbore.errors import SettingError
from deepbore.evaluators import Evaluator, Objective, SerialEvaluator
from deepbore.labels import Labelling, suited_labels
from deepbore.labels.datamodule import LabelledObservations
from deepbore.labels.gamma import Gamma
from deepbore.loop.controller import LoopController
from deepbore.loop.lightning import new_trainer, quiet, train
from deepbore.loop.resume import History, replay, take_up
from deepbore.space import Params, SearchSpace

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Result:
    """What an optimisation found.

    Attributes:
        best_params: the best configuration; None if every trial failed.
        best_value: its value, in the user's sign; NaN if every trial failed.
        values: all values in the order of evaluation, in the user's sign, NaN for failures.
        study: the study behind it, to go on with.
    """

    best_params: Params | None
    best_value: float
    values: np.ndarray
    study: "Study"


class Study:
    """An optimisation that you drive: ask for trials, evaluate them where you like, tell their values.

    Args:
        space: the search space.
        direction: "minimize" or "maximize".
        seed: of everything random; the same seed gives the same run on a CPU.
        journal: file that keeps every event; None for none. It must not hold another run: see `Study.load`.
        classifier: what learns; default `KernelPLS()`.
        acquisition: what is maximised; default: what suits the classifier, see `deepbore.acquisition.suited_to`.
        candidates: how it is maximised; default `GreedyBatch()` over `LocalSearch()`.
        labels: how values become labels; default: what suits the classifier, see `deepbore.labels.suited_labels`.
        gamma: proportion of good observations for the default labels, in (0, 1).
        n_initial: trials of a Sobol design before the classifier is asked; earlier results count among them.

    Raises:
        SettingError: for a setting outside its range.
        JournalError: if the journal holds a run already.

    Example:
        >>> from deepbore import Real, SearchSpace, Study
        >>> study = Study(SearchSpace({"x": Real(-1, 1)}), seed=0)
        >>> for trial in study.ask(4):
        ...     study.tell(trial, trial.params["x"] ** 2)
        >>> study.best_trial.value < 0.5
        True
    """

    def __init__(
        self,
        space: SearchSpace,
        *,
        direction: Direction = "minimize",
        seed: int = 0,
        journal: str | os.PathLike[str] | None = None,
        classifier: Classifier | None = None,
        acquisition: Acquisition | None = None,
        candidates: Candidates | None = None,
        labels: Labelling | None = None,
        gamma: Gamma | None = None,
        n_initial: int | None = None,
    ):
        if labels is not None and gamma is not None:
            raise SettingError("give either labels or gamma, not both: labels carry their own gamma.")
        self.observations = Observations(space, direction)
        self.classifier = classifier or KernelPLS()
        self.labels = labels or suited_labels(self.classifier.estimates_labels, gamma)  # how values become labels
        self._data = LabelledObservations(self.observations, self.labels)
        self._loop = LoopController(acquisition=acquisition, candidates=candidates, n_initial=n_initial, seed=seed)
        self._loop.data, self._loop.classifier, self._loop.logs = self._data, self.classifier, False
        self._history: History | None = None  # what was loaded, until it is taken up
        self._trainer: Trainer | None = None
        if journal is not None:
            self._keep_in(Journal.begin(journal, self.observations.header(seed)))

    # --- ask and tell ------------------------------------------------------------------------------------------------

    def ask(self, q: int = 1) -> list[Trial]:
        """The next q trials to evaluate; they stay pending until they are told.

        Raises:
            SettingError: for q < 1.
            SpaceExhausted: if a finite space has fewer than q configurations left.
        """
        if q < 1:
            raise SettingError(f"q >= 1 must hold, but got q={q}.")
        self._take_up()
        rows = self._loop.queued(q)
        if len(rows) < q:
            rows = rows + self._propose(q - len(rows))
        return [self.observations.trial(row) for row in rows]

    def _propose(self, q: int) -> list[int]:
        if self._loop.needs_design:
            return self._loop.design(q)
        self._loop.batch_size = q
        self._run_epochs(1 + self._loop.rehearsals)
        return self._loop.proposed

    def _run_epochs(self, epochs: int) -> None:
        """Lets the one trainer run: so many more epochs, or (-1) until the loop stops it."""
        trainer = self._trainer = self._trainer or new_trainer([self._loop])
        trainer.should_stop = False
        trainer.fit_loop.max_epochs = -1 if epochs < 0 else trainer.current_epoch + epochs
        with quiet():
            trainer.fit(self.classifier, datamodule=self._data)

    def enqueue(self, params: Params) -> None:
        """Has a configuration tried next, before the design and the classifier's proposals.

        Raises:
            PointError: for a configuration outside the space.
        """
        point = self.space.encode([params])
        self._take_up()
        if self.observations.journal is not None:
            self.observations.journal.write({"event": "enqueued", "params": self.space.decode(point)[0]})
        self._loop.queue.append(point)

    def tell(self, trial: Trial | int, value: SupportsFloat | None = None, *, failed: bool = False) -> None:
        """Gives a trial its outcome, in any order; NaN and infinite values count as failed.

        Args:
            trial: what `ask` gave, or its id.
            value: objective value, in the user's sign.
            failed: that there is no value.

        Raises:
            TrialError: for an unknown trial, or one told before.
            ValueTypeError: for a value that is no number.
        """
        self.observations.tell(trial.id if isinstance(trial, Trial) else trial, value, failed=failed)

    def add(self, columns: Mapping[str, Sequence[Any]], values: Sequence[SupportsFloat]) -> None:
        """Adds earlier results, one or a million: name -> n values (a dict of columns or a DataFrame), and n values.

        Raises:
            PointError: for configurations outside the space.
            ShapeError: if there is not one value for each row.
        """
        self.observations.add(columns, values)

    def add_csv(self, path: str | os.PathLike[str], value: str = "value") -> None:
        """Adds earlier results from a CSV file: a column for each parameter and one for the values, empty for failures.

        Raises:
            TableError: naming line and column, for what does not belong there.
        """
        self.observations.add(*read_csv(path, self.space, value))

    def optimize(self, objective: Objective | Evaluator, n_trials: int) -> Result:
        """Evaluates until there are `n_trials` more trials, all in one `fit`.

        What was pending when the study was loaded, and still is, comes first and is not counted.

        Args:
            objective: configuration -> value, or an evaluator of it, such as `ProcessEvaluator(train, workers=8)`.
                What raises an exception, or returns no finite number, is a failed trial, with a warning.
            n_trials: how many evaluations; a finite space may be exhausted before.
        """
        self._take_up()
        loop = self._loop
        loop.evaluator = objective if isinstance(objective, Evaluator) else SerialEvaluator(objective)
        loop.n_trials, loop.batch_size = len(self.observations) + n_trials, 1
        try:
            self._run_epochs(-1)
        finally:
            loop.evaluator, loop.n_trials = None, None
        return self.result

    def reseed(self, seed: int) -> None:
        """Goes on with another stream of random numbers, as copies of a study in several processes must."""
        self._take_up()
        self._loop.reseed(seed)

    def share(self, ranks: Ranks) -> None:
        """Proposes together with copies of this study on other ranks (see `Suggester`); the first keeps the journal."""
        self._loop.ranks = ranks
        if not ranks.is_first:
            self.observations.journal = None

    def fit(self, epochs: int = 10) -> Classifier:
        """Trains the classifier on the trials so far and proposes nothing: to look at what it says, or to draw it.

        `ask` and `optimize` train by themselves, and go on from the weights that this leaves.

        Args:
            epochs: so many times as in an iteration of a run, >= 1.

        Returns:
            the classifier; its `ready` says whether there was anything to learn.
        """
        if epochs < 1:
            raise SettingError(f"epochs >= 1 must hold, but got epochs={epochs}.")
        self.classifier.generator = torch.Generator().manual_seed(self._loop.seed)  # the run's stream stays as it is
        return train(self.classifier, self._data, epochs)

    # --- reading -----------------------------------------------------------------------------------------------------

    @property
    def space(self) -> SearchSpace:
        """The search space."""
        return self.observations.space

    @property
    def best_trial(self) -> Trial | None:
        """The trial with the best value; None while there is none."""
        return self.observations.best

    @property
    def trials(self) -> list[Trial]:
        """All trials in the order of asking."""
        return [self.observations.trial(row) for row in range(len(self.observations))]

    @property
    def result(self) -> Result:
        """What has been found so far."""
        best = self.best_trial
        values = self.observations.to_user(self.observations.values.cpu().numpy())
        if best is None or best.value is None:
            return Result(None, float("nan"), values, self)
        return Result(best.params, best.value, values, self)

    def to_frame(self) -> "pd.DataFrame":
        """A pandas DataFrame: one row a trial, with id, parameters, value and status.

        Raises:
            MissingPackage: without pandas.
        """
        return as_frame(self.observations)

    # --- journal -----------------------------------------------------------------------------------------------------

    @classmethod
    def load(cls, journal: str | os.PathLike[str], **settings: Any) -> "Study":
        """The study that a journal keeps, ready to go on, and to write to the same journal.

        Given the same settings, it proposes what it would have proposed without interruption, by the snapshot beside
        the journal (run.jsonl -> run.ckpt). Looking at it disturbs no writer; the first `ask`, ... takes the lock.

        Args:
            journal: the file.
            settings: classifier, acquisition, ... if they were not the defaults.

        Raises:
            JournalError: for a missing, damaged or contradictory journal.
        """
        history = replay(Journal(journal))
        observations = history.observations
        study = cls(observations.space, direction=observations.direction, seed=history.seed, **settings)
        study.observations = study._data.observations = observations
        study._keep_in(history.journal)
        study._history = history
        return study

    def close(self) -> None:
        """Leaves the journal to another writer; the end of the study or of the process does so, too."""
        if self.observations.journal is not None:
            self.observations.journal.close()

    def _keep_in(self, journal: Journal) -> None:
        self.observations.journal = journal
        weakref.finalize(self, journal.close)

    def _take_up(self) -> None:
        """Brings loop and classifier where the journal ended, before a loaded study goes on."""
        if self._history is not None:
            history, self._history = self._history, None
            take_up(history, self._loop, self.classifier)
