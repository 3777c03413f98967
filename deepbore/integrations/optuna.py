"""`DeepBoreSampler`: deepbore inside Optuna, with its storages, pruners and dashboard."""

import math
import secrets
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from deepbore.errors import MissingPackage, SettingError, ValueTypeError

try:
    from optuna import Study as OptunaStudy
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.trial import FrozenTrial, TrialState
except ImportError:
    raise MissingPackage("DeepBoreSampler needs Optuna: pip install 'deepbore[optuna]'.") from None

from deepbore.acquisition import Acquisition
from deepbore.candidates import Candidates
from deepbore.checks import whole
from deepbore.classifiers import Classifier
from deepbore.data.observations import Direction
from deepbore.data.outcome import as_number
from deepbore.integrations.followed import CONSTRAINTS, PROPOSED, FollowedStudy
from deepbore.labels.threshold import Gamma, checked_gamma
from deepbore.loop.state import as_seed
from deepbore.space import SearchSpace
from deepbore.study import Study

GIVES_WAY = 4  # how often a process proposes anew because another has proposed the same in the same moment


class DeepBoreSampler(BaseSampler):
    """An Optuna sampler: a classifier learns from the study's trials which configurations are good.

    All parameters are sampled together by one classifier, conditional ones included: which parameter depends on which
    is read off the trials (see `SeenTrials`). What it does not know yet, parameters whose range changes from trial to
    trial, and those that no space of deepbore has, such as 10^15 whole numbers on a log scale, are sampled at random.

    Complete trials are labelled by their values. Pruned and failed trials are failures to deepbore: worse than any
    value, unless one among successes passes for a crash by chance. Running ones are pending: suggestions keep away from
    them. No configuration is proposed twice, unless all of a finite space have been.

    Constraints, by `trial.set_constraint` in the objective or by `constraints_func`, are deepbore's black-box
    constraints: each has a head that learns where it is kept, and while nothing is feasible the search is for something
    that is. A trial that lacks a constraint which others have is a failed one. Several objectives are
    deepbore's, too: the search is for their front. Pickled, it goes on with the same suggestions; `reseed_rng` makes
    copies differ.

    Args:
        seed: of everything random; None for another one each time.
        n_startup_trials: trials before the classifier is asked; after the first, they are a Sobol design.
        classifier: makes a new classifier whenever the space changes; default as in `deepbore.Study`.
        acquisition: what is maximised; default as in `deepbore.Study`.
        candidates: how it is maximised; default as in `deepbore.Study`.
        gamma: proportion of good trials, in (0, 1); default as in `deepbore.Study`.
        constraints_func: a trial that has ended -> its constraints, feasible where all are <= 0, as Optuna's own
            samplers take it. None if there are none, or where the objective calls `trial.set_constraint` (Optuna 5).

    Raises:
        SettingError: for a setting outside its range; when asked, for parts that do not go with the study's objectives.
        ValueTypeError: when a trial ends, for constraints that are no sequence of numbers.

    Example:
        >>> import optuna
        >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
        >>> study = optuna.create_study(sampler=DeepBoreSampler(seed=0))
        >>> study.optimize(lambda trial: (trial.suggest_float("x", 0, 1) - 0.3) ** 2, n_trials=20)
        >>> abs(study.best_params["x"] - 0.3) < 0.05
        True
    """

    def __init__(
        self,
        seed: int | None = None,
        n_startup_trials: int = 10,
        classifier: Callable[[], Classifier] | None = None,
        acquisition: Acquisition | None = None,
        candidates: Candidates | None = None,
        gamma: Gamma | None = None,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
    ):
        whole(1, n_startup_trials=n_startup_trials)
        if gamma is not None:
            checked_gamma(gamma)
        if classifier is not None and (isinstance(classifier, Classifier) or not callable(classifier)):
            raise SettingError(
                "classifier must make a new classifier whenever the space changes, as KernelPLS itself does, or be "
                f"a function without arguments, but got {classifier!r:.100}."
            )
        self.n_startup_trials, self.classifier = n_startup_trials, classifier
        self.acquisition, self.candidates, self.gamma = acquisition, candidates, gamma
        self.constraints_func = constraints_func
        self._seed = secrets.randbits(31) if seed is None else as_seed(seed)
        self._random = RandomSampler(seed=self._seed % 2**32)  # Optuna's are shorter
        self._followed: FollowedStudy | None = None
        self._lock = threading.RLock()  # Optuna's n_jobs are threads that share the sampler

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    # --- what Optuna asks --------------------------------------------------------------------------------------------

    def reseed_rng(self) -> None:
        with self._lock:
            self._seed = secrets.randbits(31)
            self._random.reseed_rng()
            if self._followed is not None:
                self._followed.reseed(self._seed)

    def infer_relative_search_space(self, study: OptunaStudy, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        with self._lock:
            return self._follow(study, study.get_trials(deepcopy=False)).seen.distributions

    def sample_relative(
        self, study: OptunaStudy, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        if not search_space:
            return {}
        with self._lock:
            trials = study.get_trials(deepcopy=False)
            for _ in range(1 + GIVES_WAY):
                followed = self._follow(study, trials)
                params, natives = followed.suggest(trials, trial.number, search_space)
                study._storage.set_trial_system_attr(trial._trial_id, PROPOSED, natives)  # for the other processes
                trials = study.get_trials(deepcopy=False)
                if not followed.leaves_to_another(trials, trial.number, natives):
                    break
            return params

    def sample_independent(
        self, study: OptunaStudy, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        with self._lock:
            return self._random.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self, study: OptunaStudy, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        if self.constraints_func is not None and state in (TrialState.COMPLETE, TrialState.PRUNED):
            constraints = as_constraints(self.constraints_func(trial))
            study._storage.set_trial_system_attr(trial._trial_id, CONSTRAINTS, constraints)

    # --- within ------------------------------------------------------------------------------------------------------

    def _follow(self, study: OptunaStudy, trials: Sequence[FrozenTrial]) -> FollowedStudy:
        """What is known of the study, up to these trials."""
        identity = study.study_name, trials[0].datetime_start if trials else None
        if self._followed is None or self._followed.identity != identity:
            directions = [direction.name.lower() for direction in study.directions]
            self._followed = FollowedStudy(identity, directions, self._new_study, self._seed)
        self._followed.look(trials)
        return self._followed

    def _new_study(
        self, space: SearchSpace, directions: Sequence[Direction], classifier: Classifier | None = None
    ) -> Study:
        if classifier is None and self.classifier is not None:
            classifier = self.classifier()
        return Study(
            space,
            directions=directions,
            seed=self._seed,
            classifier=classifier,
            acquisition=self.acquisition,
            candidates=self.candidates,
            gamma=self.gamma,
            n_initial=self.n_startup_trials,
        )


def as_constraints(returned: Any) -> list[float]:
    """What a `constraints_func` has returned, as numbers.

    Raises:
        ValueTypeError: for anything but a sequence of numbers, none of them NaN.
    """
    constraints = [as_number(value, "a constraint") for value in np.atleast_1d(np.asarray(returned, dtype=object))]
    if any(map(math.isnan, constraints)):
        raise ValueTypeError(
            f"a constraint must not be NaN, but constraints_func gave {constraints}. Prune such a trial."
        )
    return constraints
