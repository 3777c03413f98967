"""`Study`: an optimisation by ask and tell."""

import os
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, SupportsFloat, Unpack

from lightning.pytorch import Trainer

from deepbore.checks import whole
from deepbore.classifiers import Classifier
from deepbore.compute.devices import Device, as_device
from deepbore.compute.distributed import Ranks
from deepbore.compute.neutral import as_usual
from deepbore.data.csv_file import read_csv
from deepbore.data.history import History, replay
from deepbore.data.journal import Journal
from deepbore.data.observations import Direction, Observations, Trial
from deepbore.data.outcomes import Outcome
from deepbore.errors import SettingError
from deepbore.evaluators import Evaluator, Objective, SerialEvaluator
from deepbore.loop.asking import Asker
from deepbore.loop.controller import LoopController
from deepbore.loop.engine import Engine
from deepbore.loop.lightning import listening, new_trainer, run
from deepbore.loop.recipe import Recipe
from deepbore.loop.recommending import recommend
from deepbore.loop.resume import restore
from deepbore.loop.state import RunState
from deepbore.space import Params, SearchSpace
from deepbore.study.view import Parts, Result, StudyView


class Study(StudyView):
    """An optimisation that you drive: ask for trials, evaluate them where you like, tell their values.

    A study may be used from several threads, one call at a time. A call that fails leaves it as it was.

    Args:
        space: the search space.
        direction: "minimize" or "maximize".
        directions: one for each objective, where there are several; then `labels` must grade several values.
        seed: of everything random; the same seed gives the same run on a CPU.
        journal: file that keeps every event; None for none. It must not hold another run: see `Study.load`.
        classifier: what learns; default `KernelPLS()`.
        acquisition: what is maximised; default: see `deepbore.acquisition.default_acquisition`.
        candidates: how it is maximised; default `GreedyBatch()` over `LocalSearch()`.
        labels: how outcomes become labels; default: see `deepbore.labels.default_labels`.
        gamma: proportion of good observations for the default labels, in (0, 1).
        n_initial: trials of a Sobol design before the classifier is asked; earlier results count among them.
        device: where points, classifier and search live: "cpu", "cuda", "cuda:1", ..., or "auto".

    Raises:
        SettingError: for a setting outside its range, or parts that do not go together.
        JournalError: if the journal holds a run already.

    Example:
        >>> from deepbore import Real, SearchSpace, Study
        >>> study = Study(SearchSpace({"x": Real(-1, 1)}), seed=0)
        >>> for trial in study.ask(4):
        ...     study.tell(trial, trial.params["x"] ** 2)
        >>> study.best_trial.value < 0.5
        True
    """

    @as_usual()
    def __init__(
        self,
        space: SearchSpace,
        *,
        direction: Direction | None = None,
        directions: Sequence[Direction] | None = None,
        seed: int = 0,
        journal: str | os.PathLike[str] | None = None,
        device: Device = "cpu",
        **parts: Unpack[Parts],
    ):
        if not isinstance(space, SearchSpace):
            raise SettingError(f"space must be a SearchSpace, but got {space!r:.100}. Give SearchSpace({{...}}).")
        if direction is not None and directions is not None:
            raise SettingError("give either direction or directions, not both.")
        observations = Observations(space, directions or (direction or "minimize",))
        recipe = Recipe.resolve(space, observations.k, **parts)
        self._begin(RunState(observations, recipe, seed), device)
        if journal is not None:
            self._keep_in(Journal.begin(journal, self._state.header()))

    def _begin(self, state: RunState, device: Device) -> None:
        self._state, self._device = state, as_device(device)
        self._asker = Asker(Engine(state), self._device)
        state.observations.to(self._device)
        self._history: History | None = None  # what was loaded, until it is restored
        self._recommended: tuple[tuple[int, ...], int | None] | None = None  # by what was known then
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}  # each copy has its own

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock())

    # --- ask and tell ------------------------------------------------------------------------------------------------

    def ask(self, q: int = 1) -> list[Trial]:
        """The next q trials to evaluate; they stay pending until they are told.

        Raises:
            SettingError: for q < 1.
            SpaceExhausted: if a finite space has fewer than q configurations left.
        """
        whole(1, q=q)
        with self._lock, as_usual():
            self._restore()
            return [self.observations.trial(row) for row in self._asker.ask(q)]

    def enqueue(self, params: Params) -> None:
        """Has a configuration tried next, before the design and the classifier's proposals.

        Raises:
            PointError: for a configuration outside the space.
        """
        with self._lock, as_usual():
            point = self.space.encode([params])
            self._restore()
            if self.observations.journal is not None:
                self.observations.journal.write({"event": "enqueued", "params": self.space.decode(point)[0]})
            self._state.queue.append(point[0])

    def tell(
        self,
        trial: Trial | int,
        value: SupportsFloat | Sequence[SupportsFloat] | Outcome | None = None,
        *,
        failed: bool = False,
    ) -> None:
        """Gives a trial its outcome, in any order; NaN and infinite values count as failed.

        Args:
            trial: what `ask` gave, or its id.
            value: objective value in the user's sign, or one for each direction, or an `Outcome`.
            failed: that there is no value.

        Raises:
            TrialError: for an unknown trial, one told before, or one of another study.
            ValueTypeError: for a value that is no number.
        """
        with self._lock, as_usual():
            self.observations.tell(trial, value, failed=failed)

    def add(
        self, columns: Mapping[str, Any], values: Sequence[Any] | SupportsFloat, *, task: str | None = None
    ) -> None:
        """Adds earlier results, one or a million.

        Args:
            columns: name -> n values (a dict of columns or a DataFrame), or of one trial name -> value.
            values: n objective values (n x k for several objectives), or one; NaN and infinite ones count as failed.
            task: name of the task that they are of; None for this one.

        Raises:
            PointError: for configurations outside the space.
            ShapeError: if there is not one value for each row.
        """
        with self._lock, as_usual():
            self.observations.add(columns, values, task=task)

    def add_csv(self, path: str | os.PathLike[str], value: str = "value") -> None:
        """Adds earlier results from a CSV file: a column for each parameter and one for the values, empty for failures.

        Raises:
            TableError: naming line and column, for what does not belong there.
        """
        self.add(*read_csv(path, self.space, value))

    # --- letting it run ----------------------------------------------------------------------------------------------

    def optimize(
        self,
        objective: Objective | Evaluator,
        n_trials: int | None,
        *,
        batch_size: int = 1,
        trainer: Trainer | None = None,
    ) -> Result:
        """Evaluates until there are `n_trials` more trials, all in one `fit`.

        What was pending when the study was loaded, and still is, comes first and is not counted.

        Args:
            objective: configuration -> value, or an evaluator of it, such as `ProcessEvaluator(train, workers=8)`.
                What raises an exception, or returns no finite number, is a failed trial, with a warning.
            n_trials: how many evaluations; a finite space may be exhausted before. None lets the trainer decide.
            batch_size: q, trials proposed in one iteration; more where more workers are free.
            trainer: a Trainer of your own, with its devices, loggers and callbacks; default: one without any.

        Raises:
            KeyboardInterrupt: on Ctrl-C; what was told until then stays.
        """
        evaluator = objective if isinstance(objective, Evaluator) else SerialEvaluator(objective)
        whole(0, n_trials=n_trials)
        with as_usual():
            self._restore()
            until = None if n_trials is None else len(self.observations) + n_trials
            controller = LoopController(self._state, evaluator, until, batch_size, logs=trainer is not None)
            own = trainer or new_trainer(self._device)
            with listening(own, controller):
                run(own, self.classifier, self._state.data)
        return self.result

    def fit(self, epochs: int = 10) -> Classifier:
        """Trains the classifier on the trials so far and proposes nothing: to look at what it says, or to draw it.

        `ask` and `optimize` train by themselves, and go on from the weights that this leaves.

        Args:
            epochs: so many times as in an iteration of a run, >= 1.

        Returns:
            the classifier; its `ready` says whether there was anything to learn.
        """
        whole(1, epochs=epochs)
        with self._lock, as_usual():
            generator = self._state.generator
            stream = generator.get_state()  # the run's stream stays as it is
            self._recommended = None
            try:
                generator.manual_seed(self._state.seed)
                run(new_trainer(self._device), self.classifier, self._state.data, epochs)
            finally:
                generator.set_state(stream)
            return self.classifier

    def _recommended_row(self) -> int | None:
        with self._lock, as_usual():
            self._restore()
            known = len(self.observations), self.observations.n_complete, self.observations.n_failed
            if self._recommended is None or self._recommended[0] != known:
                self._recommended = known, recommend(self._state)
            return self._recommended[1]

    def reseed(self, seed: int) -> None:
        """Goes on with another stream of random numbers, as copies of a study in several processes must."""
        with self._lock, as_usual():
            self._restore()
            self._state.reseed(seed)

    def share(self, ranks: Ranks) -> None:
        """Proposes together with copies of this study on other ranks (see `Suggester`); the first keeps the journal."""
        self._asker = Asker(Engine(self._state, ranks), self._device)

    # --- journal -----------------------------------------------------------------------------------------------------

    @classmethod
    @as_usual()
    def load(cls, journal: str | os.PathLike[str], *, device: Device = "cpu", **parts: Unpack[Parts]) -> "Study":
        """The study that a journal keeps, ready to go on, and to write to the same journal.

        It proposes what it would have proposed without interruption: its settings stand in the header of the journal,
        its state in the snapshot beside it (run.jsonl -> run.jsonl.ckpt). Looking at it disturbs no writer; the first
        `ask`, ... takes the lock.

        Args:
            journal: the file.
            device: as in `Study`.
            parts: classifier, acquisition, ... to go on with others than in the header, which is said, or where the
                header can't name them.

        Raises:
            JournalError: for a missing, damaged or contradictory journal.
            SettingError: for a part that the header can't name.
        """
        history = replay(Journal(journal))
        observations, header = history.observations, history.header
        recipe = Recipe.again(observations.space, observations.k, header.get("recipe", {}), parts)
        study = cls.__new__(cls)
        study._begin(RunState(observations, recipe, header["seed"]), device)
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

    def _restore(self) -> None:
        """Brings the state where the journal ended, before a loaded study goes on."""
        if self._history is not None:
            history, self._history = self._history, None
            restore(self._state, history)
