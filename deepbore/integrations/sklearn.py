"""`DeepBoreSearchCV`: hyperparameter search for scikit-learn's estimators, in place of `RandomizedSearchCV`."""

import hashlib
import math
import numbers
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from time import monotonic
from typing import Any

import numpy as np

from deepbore.candidates.selection import largest_possible_batch
from deepbore.errors import JournalError, MissingPackage, SettingError
from deepbore.loop.stopping import StopRule, as_rules
from deepbore.space import SearchSpace
from deepbore.space.search_space import as_space
from deepbore.study import Study
from deepbore.validation import above, seconds, whole

try:
    import joblib
    from sklearn.base import BaseEstimator, is_classifier
    from sklearn.model_selection import check_cv
    from sklearn.model_selection._search import BaseSearchCV
    from sklearn.utils import check_random_state
except ImportError:
    raise MissingPackage("DeepBoreSearchCV needs scikit-learn: pip install 'deepbore[trees]'.") from None

Results = Mapping[str, Any]
Evaluates = Callable[[list[dict[str, Any]]], Results]
Splits = list[tuple[np.ndarray, np.ndarray]]
KNOWN_BY = "search"  # attribute of a trial that says which data, estimator, scores and splits its score is of
ALL_FAILED = "fits failed"  # in scikit-learn's error if all fits of a batch fail, which ends a search


class DeepBoreSearchCV(BaseSearchCV):
    """Cross-validated search by deepbore, with the interface of scikit-learn's own searches.

    `fit`, `predict`, `best_params_`, `best_estimator_`, `cv_results_`, `n_jobs` and pipelines (`"svc__C"`) are as
    there; parameters may be conditional, and `study_` is the study. Choices may be estimators, such as a step of a
    pipeline, tuples, or any other objects, by name: `{"clf": Categorical({"svc": SVC(), "forest": forest})}`, and
    `"clf__C"` is conditional on `{"clf": "svc"}`. A configuration whose fits raise is a failed trial (with
    `error_score=np.nan`, the default); a batch in which all fits raise has no rows in `cv_results_`. The data are split
    once a `fit`, also by a splitter that shuffles anew each time: all configurations are compared on the same splits.

    Args:
        estimator: the estimator to tune.
        space: parameter name -> `Real`, `Integer`, ...; or a `SearchSpace`. Its defaults are tried first.
        n_iter: number of configurations, >= 1.
        batch_size: configurations proposed at once, >= 1, and evaluated in parallel by `n_jobs`.
        journal: file that keeps the search; None for none. A `fit` goes on where an earlier one with it has ended, and
            counts its configurations: of these only the best is in `cv_results_`, first, cross-validated again. It
            knows data, estimator, scores and splits by fingerprints, and refuses others.
        timeout: seconds, or a `timedelta`, after which no further configuration is tried; None for no limit.
        stop_when: `NoImprovement(trials=20)`, `TargetReached(score)`, or a list.
        random_state: seed of the search: an integer; None for a random one; or NumPy's `RandomState`, from which each
            `fit` draws a seed.
        scoring: this and the following as in scikit-learn's `RandomizedSearchCV`.
        n_jobs: fits at the same time.
        refit: whether the best estimator is fitted again on all data; of several scores the name of the one to
            maximise.
        cv: the splits.
        verbose: verbosity of scikit-learn.
        pre_dispatch: fits dispatched to the workers in advance.
        error_score: score of a fit that raises; "raise" to end the search.
        return_train_score: whether `cv_results_` has scores on the training data.

    Raises:
        SettingError: from `fit`, for counts below 1, rules that need forecasts, several scores without a `refit` that
            names one, or an invalid `random_state`.
        JournalError: from `fit`, for a journal of a search with other data, another estimator, other scores or splits.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> from deepbore import Real
        >>> search = DeepBoreSearchCV(SVC(), {"C": Real(1e-3, 1e3, log=True)}, n_iter=12, cv=3)
        >>> bool(search.fit(*load_iris(return_X_y=True)).best_score_ > 0.95)
        True
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        space: SearchSpace | Mapping[str, Any],
        *,
        n_iter: int = 50,
        batch_size: int = 1,
        journal: str | os.PathLike[str] | None = None,
        timeout: float | timedelta | None = None,
        stop_when: StopRule | Sequence[StopRule] = (),
        random_state: int | np.random.RandomState | None = 0,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: bool | str = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        error_score: Any = np.nan,
        return_train_score: bool = False,
    ):
        super().__init__(
            estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.space, self.n_iter, self.batch_size, self.random_state = space, n_iter, batch_size, random_state
        self.journal, self.timeout, self.stop_when = journal, timeout, stop_when

    def fit(self, X: Any, y: Any = None, **params: Any) -> "DeepBoreSearchCV":
        """Searches, and fits the best estimator again on all data; the arguments are scikit-learn's."""
        self._data = (X, y, params)
        try:
            super().fit(X, y, **params)
        finally:
            del self._data
        return self

    def _run_search(self, evaluate_candidates: Callable[..., Results]) -> None:
        """Asks, cross-validates by scikit-learn, and tells; called by `fit`."""
        whole(1, n_iter=self.n_iter, batch_size=self.batch_size)
        if isinstance(self.scoring, (list, tuple, set, dict)):  # a function names its scores later
            self._check_refit()
        above(0, timeout=seconds(self.timeout))
        space, seed = as_space(self.space), _seed(self.random_state)
        self.study_ = Study(space, direction="maximize", seed=seed, journal=self.journal, if_exists="load")
        try:
            self._search_on_same_splits(evaluate_candidates)
        finally:
            self.study_.close()

    def _search_on_same_splits(self, evaluate_candidates: Callable[..., Results]) -> None:
        """Goes on after what the journal has, if its trials can be compared with those to come."""
        known = [each.attributes[KNOWN_BY] for each in self.study_.trials if KNOWN_BY in each.attributes]
        search = Fingerprint(self.journal, known[0] if known else {})
        search.check(data=self._data, estimator=described(self.estimator, self.space), scoring=named(self.scoring))
        splits = Once(self.cv, is_classifier(self.estimator), search)

        def evaluate(configurations: list[dict[str, Any]]) -> Results:
            if hasattr(self.cv, "__next__"):  # scikit-learn has read it, and keeps its splits
                return evaluate_candidates(configurations)
            return evaluate_candidates(configurations, cv=splits)

        if (best := self.study_.best_trial) is not None:  # of an earlier `fit`
            evaluate([best.params])
        self._search(evaluate, best is not None, search)

    def _search(self, evaluate_candidates: Evaluates, has_results: bool, search: "Fingerprint") -> None:
        """Evaluates until the search ends; at least one configuration, if there are no results yet."""
        observations = self.study_.observations
        deadline = math.inf if self.timeout is None else monotonic() + float(seconds(self.timeout) or 0)
        rules = as_rules(self.stop_when, self.study_.state)
        if forecasting := [rule for rule in rules if type(rule).is_met is StopRule.is_met]:
            raise SettingError(f"a search ends by its scores, but got {forecasting[0]}. Give NoImprovement(trials=20).")
        waiting = self.study_.pending  # of an earlier `fit` that was cut off
        while waiting or (left := int(min(self.n_iter - len(observations), observations.columns.n_left))) > 0:
            if has_results and (monotonic() >= deadline or any(rule.is_met(self.study_.state) for rule in rules)):
                break
            q = min(self.batch_size, len(waiting) or left)
            trials = waiting[:q] or largest_possible_batch(self.study_.ask, q)
            if trials is None:
                break
            waiting = waiting[q:]
            try:
                scores = self._scores(evaluate_candidates([trial.params for trial in trials]))
                has_results = True
            except ValueError as error:
                is_last = not waiting and self.n_iter <= len(observations)
                if ALL_FAILED not in str(error) or (is_last and self.study_.best_trial is None):
                    raise
                scores = np.full(len(trials), np.nan)
            for trial, score in zip(trials, scores[-len(trials) :], strict=True):
                self.study_.tell(trial, score)
                if self.journal is not None and not search.known:
                    search.known = dict(search.found)
                    self.study_.annotate(trial, {KNOWN_BY: search.known})

    def _scores(self, results: Results) -> np.ndarray:
        """The mean scores of all configurations so far, by the metric to maximise."""
        if "mean_test_score" in results:
            return np.asarray(results["mean_test_score"])
        self._check_refit()
        return np.asarray(results[f"mean_test_{self.refit}"])

    def _check_refit(self) -> None:
        """Raises SettingError unless refit names a score."""
        if not isinstance(self.refit, str):
            raise SettingError(
                f"of several scores refit must name the one to maximise, but got refit={self.refit!r}. "
                "Give its name, such as refit='accuracy'."
            )


def _seed(random_state: Any) -> int:
    """The seed of a study from a `random_state` of scikit-learn."""
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    try:
        return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    except ValueError:
        raise SettingError(
            f"random_state must be an integer, None or a RandomState of NumPy, but got {random_state!r:.100}."
        ) from None


# --- the same splits, and a journal of the same search ---------------------------------------------------------------


class Fingerprint:
    """What the scores of a search are of, as digests by name, beside those that its journal knows.

    Args:
        journal: the journal, for messages.
        known: digests of an earlier `fit`; empty where there was none.

    Attributes:
        found: digests of this `fit`.
    """

    def __init__(self, journal: str | os.PathLike[str] | None, known: Mapping[str, str]):
        self.journal, self.known, self.found = journal, dict(known), dict[str, str]()

    def check(self, **parts: Any) -> None:
        """Takes in parts of the search.

        Raises:
            JournalError: if the journal knows others.
        """
        if self.journal is None:
            return
        self.found.update({name: digest(part) for name, part in parts.items()})
        others = [name for name in parts if self.known.get(name, self.found[name]) != self.found[name]]
        if others:
            hint = "; a splitter that shuffles needs a random_state to split alike" if "cv" in others else ""
            raise JournalError(
                f"{self.journal} has a search with other {' and '.join(others)}, whose scores can't be compared with "
                f"those of this fit{hint}. Give each search a journal of its own."
            )


class Once:
    """A splitter that splits once, and gives the same splits from then on.

    Args:
        cv: a splitter, a number of folds, splits, or None, as scikit-learn takes them.
        classifies: whether the estimator is a classifier.
        search: which is told of the splits.
    """

    def __init__(self, cv: Any, classifies: bool, search: Fingerprint):
        self.cv, self.classifies, self.search = cv, classifies, search
        self._splits: Splits = []

    def split(self, X: Any, y: Any = None, groups: Any = None, **given: Any) -> Iterator[tuple[Any, Any]]:
        """Indices to train and to test on, for each split.

        Raises:
            JournalError: if the journal knows scores of other splits.
        """
        if not self._splits:
            given = given if groups is None else {**given, "groups": groups}
            self._splits = list(check_cv(self.cv, y, classifier=self.classifies).split(X, y, **given))
            self.search.check(cv=self._splits)
        return iter(self._splits)


def named(thing: Any) -> str:
    """A text for a score, a setting or an estimator, without addresses."""
    if callable(thing) and hasattr(thing, "__qualname__"):
        return f"{thing.__module__}.{thing.__qualname__}"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(thing))


def described(estimator: BaseEstimator, space: Any) -> list[Any]:
    """What an estimator is, without the parameters that are searched."""
    settings = estimator.get_params(deep=True)
    searched = set(as_space(space).parameters)
    kept = {name: value for name, value in settings.items() if name not in searched and not _is_made_of_others(value)}
    return [named(type(estimator)), {name: _plain(value) for name, value in kept.items()}]


def _is_made_of_others(setting: Any) -> bool:
    """Whether a setting is an estimator, or a list of them: their own settings are there one by one."""
    if isinstance(setting, list | tuple):
        return any(map(_is_made_of_others, setting))
    return hasattr(setting, "get_params") and bool(setting.get_params(deep=False))


def _plain(setting: Any) -> Any:
    return setting if isinstance(setting, np.ndarray | list | tuple | dict) else named(setting)


def digest(thing: Any) -> str:
    """A short text that equal data have, in each process and with each version of the packages that hold them."""
    found = hashlib.blake2b(digest_size=8)
    _feed(found, thing)
    return found.hexdigest()


def _feed(found: Any, thing: Any) -> None:
    """Adds data to a digest: arrays by their bytes, frames by their columns, sparse matrices by their entries."""
    if isinstance(thing, np.ndarray) and not thing.dtype.hasobject:
        found.update(f"array {thing.shape} {thing.dtype.str}".encode())
        found.update(np.ascontiguousarray(thing).tobytes())
    elif isinstance(thing, Mapping):
        _feed(found, [each for name in sorted(thing, key=repr) for each in (name, thing[name])])
    elif hasattr(thing, "tocsr"):
        rows = thing.tocsr()
        _feed(found, ["sparse", rows.shape, rows.data, rows.indices, rows.indptr])
    elif hasattr(thing, "columns") and hasattr(thing, "to_numpy"):
        _feed(found, ["frame", *map(str, thing.columns), *(thing[name].to_numpy() for name in thing.columns)])
    elif hasattr(thing, "to_numpy"):
        _feed(found, thing.to_numpy())
    elif isinstance(thing, list | tuple | np.ndarray):
        found.update(f"{len(thing)} of".encode())
        for each in thing:
            _feed(found, each)
    elif thing is None or isinstance(thing, str | bytes | numbers.Number | bool):
        found.update(f"{type(thing).__name__} {thing!r};".encode())
    else:
        found.update(joblib.hash(thing).encode())
