"""`Telling`: what a study is told: outcomes, earlier results, what to try next, notes."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, SupportsFloat

import numpy as np

from deepbore.compute.torch_state import clean_torch_state
from deepbore.data.imported import ImportedResults, read_csv
from deepbore.data.observations import Trial, several_budgets
from deepbore.data.outcome import Outcome, as_noise, as_outcome
from deepbore.errors import SettingError, ValueTypeError
from deepbore.space import Params
from deepbore.study.shared import SharedStudy


class Telling(SharedStudy):
    """The half of a study that takes in. Each call is one at a time, whichever thread it comes from."""

    def enqueue(self, params: Params) -> None:
        """Has a configuration tried next, before the design and the classifier's proposals.

        Raises:
            PointError: for a configuration outside the space.
        """
        with self._lock, clean_torch_state():
            point = self.space.encode([params])
            self._restore()
            self._state.enqueue(point[0])

    def fix(self, params: Params) -> None:
        """Lets parameters stand still: later trials have these values wherever the parameters are active.

        What is pending, enqueued or known stays, and the classifier goes on learning from all of it; with a budget,
        trials with other values are not promoted. The journal keeps it, so a study that is loaded has the same fixed.
        Each call takes the place of the one before: `fix({})` releases all.

        Args:
            params: name -> value.

        Raises:
            SpaceError: for an unknown name, a value outside, or values that the space's constraints forbid.

        Example:
            >>> from deepbore import Categorical, Real, SearchSpace, Study
            >>> study = Study(SearchSpace({"x": Real(-1, 1), "optimizer": Categorical(["sgd", "adam"])}))
            >>> study.fix({"optimizer": "adam"})
            >>> {trial.params["optimizer"] for trial in study.ask(4)}
            {'adam'}
        """
        with self._lock, clean_torch_state():
            self._restore()
            self.observations.fix(params)

    def tell(
        self,
        trial: Trial | int,
        value: SupportsFloat | Sequence[SupportsFloat] | Outcome | None = None,
        *,
        constraints: Sequence[SupportsFloat] | None = None,
        failed: bool = False,
        noise: SupportsFloat | None = None,
    ) -> None:
        """Gives a trial its outcome, in any order; NaN and infinite values count as failed.

        Args:
            trial: what `ask` gave, or its id.
            value: objective value in the user's sign, or one for each direction, or an `Outcome`.
            constraints: black-box constraints, as many in each trial; it is feasible where all are <= 0.
            failed: that there is no value; one that is given is not kept.
            noise: standard deviation of the value, in its unit; see `Outcome`.

        Raises:
            TrialError: for an unknown trial, one told before, or one of another study.
            ValueTypeError: for a value, a constraint or a noise that is no such number, or another number of
                constraints than before.

        Example:
            >>> from deepbore import Real, SearchSpace, Study
            >>> study = Study(SearchSpace({"x": Real(0, 1)}))
            >>> for trial in study.ask(4):  # x, but at least 1/3
            ...     study.tell(trial, trial.params["x"], constraints=[1 / 3 - trial.params["x"]])
            >>> study.best_trial.value >= 1 / 3
            True
        """
        if not isinstance(failed, (bool, np.bool_)):
            raise ValueTypeError(f"failed must be True or False, but got failed={failed!r:.100}.")
        if constraints is not None:
            value = _with_constraints(value, constraints, bool(failed))
        if noise is not None and not failed:
            value = replace(as_outcome(value), noise=as_noise(noise))
        with self._lock, clean_torch_state():
            self.observations.tell(trial, value, failed=failed)

    def prefer(self, better: Trial | int, worse: Trial | int) -> None:
        """Says which of two trials is the better one, in a study of preferences: `Study(space, preferences=True)`.

        A trial is complete with its first comparison. Compare what `ask` gives with one another or with any trial of
        the study, `best_trial` above all, as often as you like; to say that two are as good, or when you change your
        mind, compare them the other way round, too. All comparisons together give each compared trial a utility, which
        is its value: see `deepbore.data.comparisons.fitted_utilities`.

        Args:
            better: what `ask` gave, one of `trials`, or its id.
            worse: the same.

        Raises:
            TrialError: for an unknown trial, one that has failed, one of another study, or twice the same.
            SettingError: in a study of values.

        Example:
            >>> from deepbore import Real, SearchSpace, Study
            >>> study = Study(SearchSpace({"x": Real(-1, 1)}), seed=0, preferences=True)
            >>> for _ in range(5):
            ...     one, other = study.ask(2)
            ...     is_better = abs(one.params["x"]) < abs(other.params["x"])  # or show both, and ask
            ...     study.prefer(one, other) if is_better else study.prefer(other, one)
            >>> study.best_trial.value > 0
            True
        """
        with self._lock, clean_torch_state():
            self.observations.prefer([(better, worse)])

    def annotate(self, trial: Trial | int, attributes: Mapping[str, Any]) -> None:
        """Notes attributes of a trial, whatever its status: they join, and replace, those that it has.

        They stand in `trial.attributes`, in the journal and in `to_frame`; the run takes no notice of them. An
        objective notes its own with `Outcome(value, attributes={...})`.

        Args:
            trial: what `ask` gave, one of `trials`, or its id.
            attributes: plain JSON data by name; NaN and infinite numbers become None.

        Raises:
            TrialError: for an unknown trial, or one of another study.
            ValueTypeError: for names that are no texts, or what JSON can't carry.

        Example:
            >>> from deepbore import Real, SearchSpace, Study
            >>> study = Study(SearchSpace({"x": Real(-1, 1)}))
            >>> (trial,) = study.ask()
            >>> study.annotate(trial, {"host": "node7", "epochs": 12})
            >>> study.trials[0].attributes["host"]
            'node7'
        """
        with self._lock:
            self.observations.annotate(trial, attributes)

    def add(
        self,
        columns: Mapping[str, Any],
        values: Sequence[Any] | SupportsFloat,
        *,
        constraints: Any = None,
        budgets: Any = None,
        task: str | None = None,
        noise: Any = None,
    ) -> None:
        """Adds earlier results, one or a million.

        Args:
            columns: name -> n values (a dict of columns or a DataFrame), or of one trial name -> value.
            values: n objective values (n x k for several objectives), or one; NaN and infinite ones count as failed.
            constraints: n x c black-box constraints, or c of one trial; NaN in rows that have none.
            budgets: what was spent on each, n or one for all, where the study has a budget: the highest rung for NaN.
            task: name of an earlier task that they are of, in the same space, better in the same direction; None for
                this one. Its values are graded among themselves; it says where to begin, and is learned from as much as
                it forecasts this one (see docs/outcomes.md).
            noise: standard deviations of the values, n or one for all.

        Raises:
            PointError: for configurations outside the space.
            ShapeError: if there is not one value for each row.
            ValueTypeError: for another number of constraints than before.
            SettingError: for a budget that is no rung, several budgets in a study without, or a task beside budgets.
        """
        with self._lock, clean_torch_state():
            about = {"constraints": constraints, "budgets": budgets, "task": task, "noise": noise}
            self._append([self._read(columns, values, **about)])

    def add_csv(self, path: str | os.PathLike[str], value: str = "value", *, task: str | None = None) -> None:
        """Adds earlier results from a CSV file: a column for each parameter and one for the values, empty for failures.

        What `to_frame` writes beside these is read, too: value_0, ... of several objectives, constraint_0, ..., budget,
        noise and task. Pending trials are left out.

        Args:
            path: the file, in UTF-8.
            value: name of the column of values.
            task: name of the task of those rows that name none, as in `add`.

        Raises:
            TableError: naming line and column, for what does not belong there.
            PointError, ValueTypeError, SettingError: as of `add`; then nothing is added.
        """
        observations = self.observations
        with_budget = observations.budget is not None
        read = read_csv(path, self.space, value, objectives=observations.k, task=task, has_budget=with_budget)
        with self._lock, clean_torch_state():
            self._append([observations.appendable(self._read(**vars(results))) for results in read])

    def _read(self, columns: Mapping[str, Any], values: Any, **about: Any) -> ImportedResults:
        """Earlier results, given as to `add`, still to be appended."""
        if about["task"] is not None:
            self._state.earlier.check()
        elif self.observations.budget is None and (different := several_budgets(about["budgets"], self.observations)):
            raise SettingError(f"there are {different} Give the study a budget, or leave out budgets=.")
        return ImportedResults.read(self.space, self.observations.k, columns, values, **about)

    def _append(self, several: Sequence[ImportedResults]) -> None:
        """Adds what was read, one after the other."""
        with self._lock, clean_torch_state():
            for each in several:
                self.observations.append(each)


def _with_constraints(value: Any, constraints: Sequence[SupportsFloat], failed: bool) -> Outcome:
    """A value, or several, with constraints, as an outcome. Raises ValueTypeError where they can't go together."""
    if isinstance(value, Outcome) or failed:
        raise ValueTypeError(
            "constraints are given with a value, but got "
            f"{'failed=True' if failed else value!r:.100} and constraints={constraints!r:.100}. "
            "Put them into the outcome: tell(trial, Outcome(value, constraints=[...]))."
        )
    return Outcome(value, constraints=constraints)
