"""`DeepBoreSearchCV`: hyperparameter search for scikit-learn's estimators, in place of `RandomizedSearchCV`."""

import numbers
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from deepbore.candidates.selection import largest_possible_batch
from deepbore.errors import MissingPackage, SettingError
from deepbore.space import SearchSpace
from deepbore.study import Study
from deepbore.validation import whole

try:
    from sklearn.base import BaseEstimator
    from sklearn.model_selection._search import BaseSearchCV
    from sklearn.utils import check_random_state
except ImportError:
    raise MissingPackage("DeepBoreSearchCV needs scikit-learn: pip install 'deepbore[trees]'.") from None

Results = Mapping[str, Any]
ALL_FAILED = "fits failed"  # in scikit-learn's error if all fits of a batch fail, which ends a search


class DeepBoreSearchCV(BaseSearchCV):
    """Cross-validated search by deepbore, with the interface of scikit-learn's own searches.

    `fit`, `predict`, `best_params_`, `best_estimator_`, `cv_results_`, `n_jobs` and pipelines (`"svc__C"`) are as
    there; parameters may be conditional, and `study_` is the study. Choices are strings, numbers, booleans and None,
    which a journal can keep; for others, such as steps of a pipeline or tuples, give the estimator a parameter that
    names them. A configuration whose fits raise is a failed trial (with `error_score=np.nan`, the default); a batch in
    which all fits raise has no rows in `cv_results_`.

    Args:
        estimator: the estimator to tune.
        space: parameter name -> `Real`, `Integer`, ...; or a `SearchSpace`.
        n_iter: number of configurations, >= 1.
        batch_size: configurations proposed at once, >= 1, and evaluated in parallel by `n_jobs`.
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
        SettingError: from `fit`, for counts below 1, several scores without a `refit` that names one, or an invalid
            `random_state`.

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

    def _run_search(self, evaluate_candidates: Callable[[list[dict[str, Any]]], Results]) -> None:
        """Asks, cross-validates by scikit-learn, and tells; called by `fit`."""
        whole(1, n_iter=self.n_iter, batch_size=self.batch_size)
        if isinstance(self.scoring, (list, tuple, set, dict)):  # a function names its scores later
            self._check_refit()
        space = self.space if isinstance(self.space, SearchSpace) else SearchSpace(self.space)
        self.study_ = Study(space, direction="maximize", seed=_seed(self.random_state))
        observations = self.study_.observations
        while (left := int(min(self.n_iter - len(observations), observations.n_left))) > 0:
            trials = largest_possible_batch(self.study_.ask, min(self.batch_size, left))
            if trials is None:
                break
            try:
                scores = self._scores(evaluate_candidates([trial.params for trial in trials]))
            except ValueError as error:
                if ALL_FAILED not in str(error) or (left <= len(trials) and self.study_.best_trial is None):
                    raise
                scores = np.full(len(trials), np.nan)
            for trial, score in zip(trials, scores[-len(trials) :], strict=True):
                self.study_.tell(trial, score)

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
