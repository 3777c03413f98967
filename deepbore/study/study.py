"""`Study`: an optimisation by ask and tell."""

import os
import threading
import weakref
from collections.abc import Sequence
from typing import Self, Unpack

import torch
from lightning.pytorch import Trainer

from deepbore.acquisition import Acquisition
from deepbore.candidates import Candidates
from deepbore.classifiers import Classifier
from deepbore.compute.devices import Device, as_device
from deepbore.compute.distributed import Ranks
from deepbore.compute.torch_state import clean_torch_state
from deepbore.data.observations import Direction, Trial
from deepbore.data.trial import Budget
from deepbore.evaluators import Evaluator, Objective
from deepbore.labels import Gamma, Labelling
from deepbore.loop.engine import Engine, TrialAllocator
from deepbore.loop.lightning import new_trainer, run
from deepbore.loop.recommending import recommend
from deepbore.loop.stopping import StopRule
from deepbore.space import SearchSpace
from deepbore.strategies import Strategy
from deepbore.study.opening import IfExists, Opened, loaded, opened
from deepbore.study.reporting import Reporting
from deepbore.study.running import (
    MAX_FAILURES,
    Steered,
    StudyCallback,
    as_evaluator,
    check_objective,
    check_run,
    run_steered,
    steering_of,
)
from deepbore.study.view import Parts, Result
from deepbore.validation import required, whole


class Study(Reporting):
    """An optimisation that you drive: ask for trials, evaluate them where you like, tell their values.

    A study may be used from several threads, one call at a time. A call that fails leaves it as it was.

    Args:
        space: the search space.
        direction: "minimize" or "maximize".
        directions: one for each objective, where there are several; what is found is then a `pareto_front`.
        seed: of everything random; the same seed gives the same run on a CPU.
        journal: file that keeps every event; None for none.
        if_exists: what happens if the journal holds a run: "error", or "load" to go on with it, as `load` does. It must
            then be the run that is described here: space, directions, seed, and the parts that are given.
        strategy: what proposes, a new one for each study; default: the model that classifier, acquisition and
            candidates describe, in turns with others where they help (`deepbore.strategies`).
        classifier: what learns, a new one for each study; default `KernelPLS()`, of several objectives one for each
            (`PerColumn`).
        acquisition: what is maximised; default: see `deepbore.acquisition.default_acquisition`.
        candidates: how it is maximised; default `GreedyBatch()` over `LocalSearch()`.
        labels: how outcomes become labels; default: see `deepbore.labels.default_labels`.
        gamma: proportion of good observations for the default labels, in (0, 1).
        n_initial: trials of a Sobol design, which of ten real parameters or more begins in the middle of the ranges,
            before the classifier is asked; earlier results count among them, those of other tasks do not.
        budget: cheap fidelities, as in `Budget("epochs", 1, 81)`: each trial has a `budget` to spend, little at first,
            and the best are asked for again, with more; see docs/outcomes.md. None for evaluations that are all equal.
        device: where points, classifier and search live: "cpu", "cuda", "cuda:1", ..., or "auto".
        preferences: whether trials are compared by `prefer` and not told values: what is best is best by utility.

    Raises:
        SettingError: for a setting outside its range, or parts that do not go together.
        JournalError: if the journal holds a run already, or with "load" another one.

    Example:
        >>> from deepbore import Real, SearchSpace, Study
        >>> study = Study(SearchSpace({"x": Real(-1, 1)}), seed=0)
        >>> for trial in study.ask(4):
        ...     study.tell(trial, trial.params["x"] ** 2)
        >>> study.best_trial.value < 0.5
        True
    """

    @clean_torch_state()
    def __init__(
        self,
        space: SearchSpace,
        *,
        direction: Direction | None = None,
        directions: Sequence[Direction] | None = None,
        seed: int = 0,
        journal: str | os.PathLike[str] | None = None,
        if_exists: IfExists = "error",
        strategy: Strategy | None = None,
        classifier: Classifier | None = None,
        acquisition: Acquisition | None = None,
        candidates: Candidates | None = None,
        labels: Labelling | None = None,
        gamma: Gamma | None = None,
        n_initial: int | None = None,
        budget: Budget | None = None,
        device: Device = "cpu",
        preferences: bool = False,
    ):
        where = as_device(device)  # what is wrong is said before a journal is begun
        parts: Parts = {
            "strategy": strategy,
            "classifier": classifier,
            "acquisition": acquisition,
            "candidates": candidates,
        }
        parts |= {"labels": labels, "gamma": gamma, "n_initial": n_initial}
        self._begin(opened(space, direction, directions, seed, journal, if_exists, budget, preferences, **parts), where)

    def _begin(self, run: Opened, device: torch.device) -> Self:
        self._take(run)
        self._device, self._allocator = device, TrialAllocator(Engine(self._state), device)
        self.observations.to(device)
        self._recommended: tuple[tuple[int, ...], int | None] | None = None  # by what was known then
        self._lock, self._steering = threading.RLock(), None
        if self.observations.journal is not None:
            weakref.finalize(self, self.observations.journal.close)
        return self

    # --- ask and tell ------------------------------------------------------------------------------------------------

    def ask(self, q: int = 1) -> list[Trial]:
        """The next q trials to evaluate; they stay pending until they are told.

        With a budget those that are promoted come first: the configuration of an earlier trial, `resume_from`, with
        more to spend.

        Raises:
            SettingError: for q < 1; or if another study was given the classifier since.
            SpaceExhausted: if a finite space has fewer than q configurations left.
            StudyRunning: while `optimize` runs, which asks by itself.
        """
        required(q=q)
        whole(1, q=q)
        with self._alone("ask"):
            self._state.check_classifier()
            return self.observations.trials(self._allocator.ask(q))

    # --- letting it run ----------------------------------------------------------------------------------------------

    def optimize(
        self,
        objective: Objective | Evaluator,
        n_trials: int | None,
        *,
        timeout: float | None = None,
        stop_when: StopRule | Sequence[StopRule] = (),
        max_failures: int | None = MAX_FAILURES,
        callbacks: Sequence[StudyCallback] = (),
        progress: bool | None = None,
        batch_size: int = 1,
        trainer: Trainer | None = None,
    ) -> Result:
        """Evaluates until there are `n_trials` more trials, all in one `fit`.

        What an earlier run, also of another process, has left pending comes first and is not counted.

        Ctrl-C ends the run when the running trials are done, and twice at once; then it reaches the caller as
        KeyboardInterrupt. SIGTERM does the same. What a run that has ended leaves pending, the next one begins with.
        Other threads, and the objective, may tell, add, enqueue, annotate and stop meanwhile, but not ask.

        Args:
            objective: configuration -> value, or an evaluator of it, such as `ProcessEvaluator(train, workers=8)`.
                What raises an exception, or returns no finite number, is a failed trial, with a warning. With a budget
                the function takes the trial, too.
            n_trials: how many evaluations; a finite space may be exhausted before. None for no limit, where something
                else ends the run. 0 only finishes what is pending.
            timeout: seconds, the design included, after which no further trial begins; those that run are waited for.
            stop_when: `NoImprovement(trials=20)`, `TargetReached(value)`, `ExpectedImprovementBelow(share)`, or a list.
            max_failures: if the first so many evaluations have all failed, the objective is at fault; None for never.
            callbacks: functions of (study, trial), called after each trial in this thread, under several ranks on the
                first; what they return is ignored. `study.stop()` ends the run. An exception ends it and is raised.
            progress: whether to show a bar; None for: in a terminal and a notebook.
            batch_size: q, trials proposed in one iteration; more where more workers are free.
            trainer: a Trainer of your own, with its devices, loggers and callbacks; default: one without any.

        Raises:
            SettingError: for a setting outside its range, before anything is evaluated.
            ObjectiveError: if the first evaluation returns what is no value, or the first `max_failures` have failed.
            KeyboardInterrupt: on Ctrl-C and SIGTERM; what was told until then stays.
            StudyRunning: if it runs already.
        """
        evaluator = as_evaluator(objective)
        check_objective(objective, self.observations.budget)
        steered: Steered = {
            "timeout": timeout,
            "stop_when": stop_when,
            "max_failures": max_failures,
            "callbacks": callbacks,
            "progress": progress,
            "batch_size": batch_size,
        }
        self._check_run(n_trials, trainer, steered)
        with self._alone("optimize"):
            self._state.check_classifier()
            if self.observations.journal is not None:
                self.observations.journal.open()  # refused while another process has it, and before any evaluation
            self._steering = steering = steering_of(self, steered)
            try:
                run_steered(self._state, evaluator, n_trials, trainer, steering, steered)
            finally:
                self._steering = None
        return self.result

    def _check_run(self, n_trials: int | None, trainer: Trainer | None, steered: Steered) -> None:
        """Raises SettingError as `optimize` does; `deepbore fit` asks before it writes anything."""
        check_run(self._state, n_trials, trainer, steered)

    def fit(self, epochs: int = 10) -> Classifier:
        """Trains the classifier on the trials so far and proposes nothing: to look at what it says, or to draw it.

        `ask` and `optimize` train by themselves, and go on from the weights that this leaves; a study that was loaded
        begins with those of its snapshot.

        Args:
            epochs: so many times as in an iteration of a run, >= 1.

        Returns:
            the classifier; its `ready` says whether there was anything to learn.
        """
        required(epochs=epochs)
        whole(1, epochs=epochs)
        with self._alone("fit", restored=False):
            self._state.check_classifier()
            generator = self._state.generator
            labels = self._state.recipe.labels
            stream, remembered = generator.get_state(), labels.state_dict()  # both of the run stay as they are
            self._recommended = None
            self._keep_unlearned()
            try:
                generator.manual_seed(self._state.seed)
                run(new_trainer(self._device), self._state.module, self._state.data, epochs)
            finally:
                generator.set_state(stream)
                labels.load_state_dict(remembered)
            return self.classifier

    def _recommended_row(self) -> int | None:
        with self._lock, clean_torch_state():
            self._restore()
            self._state.check_classifier()
            told = self.observations
            known = len(told), told.n_complete, told.n_failed, len(told.preferences)
            if self._recommended is None or self._recommended[0] != known:
                self._recommended = known, recommend(self._state)
            return self._recommended[1]

    def reseed(self, seed: int) -> None:
        """Goes on with another stream of random numbers, as copies of a study in several processes must.

        It is kept with the next `ask`: a study that is loaded before that has its former seed.
        """
        with self._alone("reseed"):
            self._state.reseed(seed)

    def share(self, ranks: Ranks) -> None:
        """Proposes together with copies of this study on other ranks (see `Suggester`); the first keeps the journal."""
        self._allocator = TrialAllocator(Engine(self._state, ranks), self._device)

    # --- journal -----------------------------------------------------------------------------------------------------

    @classmethod
    @clean_torch_state()
    def load(
        cls,
        journal: str | os.PathLike[str],
        *,
        space: SearchSpace | None = None,
        device: Device = "cpu",
        **parts: Unpack[Parts],
    ) -> "Study":
        """The study that a journal keeps, ready to go on, and to write to the same journal.

        It proposes what it would have proposed without interruption: its settings stand in the header of the journal,
        its state in the snapshot beside it (run.jsonl -> run.jsonl.ckpt). Looking at it disturbs no writer; the first
        `ask`, ... takes the lock.

        Args:
            journal: the file, or the directory of a run of the command line.
            space: only where it has functions as constraints: a journal can't keep them.
            device: as in `Study`.
            parts: classifier, acquisition, ... to go on with others than in the header, which is said, or where the
                header can't name them.

        Raises:
            JournalError: for a missing, damaged or contradictory journal, or one of another space than is given.
            SettingError: for a part that the header can't name.
        """
        return cls.__new__(cls)._begin(loaded(journal, space, **parts), as_device(device))

    def close(self) -> None:
        """Leaves the journal to another writer; the end of the study or of the process does so, too."""
        if self.observations.journal is not None:
            self.observations.journal.close()
