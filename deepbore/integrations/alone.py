"""`Proposals`: trials that a worker of a shared study makes for itself while no leader lives."""

import logging
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from deepbore.errors import MissingPackage
from deepbore.integrations.optuna import DeepBoreSampler, suggest
from deepbore.space import SearchSpace
from deepbore.worker.shared import ALONE, BEAT, TRIAL, Beats, is_away, own_task, patiently

try:
    from optuna import Trial, TrialPruned, load_study
    from optuna.exceptions import UpdateFinishedTrialError
    from optuna.storages import BaseStorage, get_storage
    from optuna.trial import FrozenTrial, TrialState, create_trial
except ImportError:
    raise MissingPackage("a shared study needs Optuna: pip install 'deepbore[optuna]'.") from None

log = logging.getLogger(__name__)


class Proposals:
    """Proposals of `DeepBoreSampler` from the trials in the storage, in the space that the leader has left there.

    A trial is in the storage, with a sign of life, before it has a configuration, so that workers know of one another.

    Args:
        storage: of the study.
        name: of the study.
    """

    def __init__(self, storage: BaseStorage, name: str):
        self.storage = get_storage(storage)
        self.study_id = self.storage.get_study_id_from_name(name)
        self.space = SearchSpace.from_dict(self.storage.get_study_user_attrs(self.study_id)[ALONE]["space"])
        self.study = load_study(study_name=name, storage=self.storage, sampler=DeepBoreSampler(space=self.space))

    def propose(self, mark: Mapping[str, Any], limit: int | None) -> FrozenTrial | None:
        """A new trial, which is this worker's.

        Args:
            mark: the worker's sign of life.
            limit: how many trials there are to be in all; None for no limit.

        Returns:
            the trial; None if there are as many already, or the storage is away.
        """
        if limit is not None and sum(map(counts, patiently(self.study.get_trials, deepcopy=False))) >= limit:
            return None
        begun = create_trial(state=TrialState.RUNNING, system_attrs={BEAT: {**mark, "count": 0}})
        identity = patiently(self.storage.create_new_trial, self.study_id, begun)
        try:
            with Beats(partial(self.storage.set_trial_system_attr, identity, BEAT), dict(mark)):
                params = self.space.plain(suggest(trial := Trial(self.study, identity), self.space))
                self.storage.set_trial_system_attr(identity, TRIAL, own_task(trial.number, params))
            return self.storage.get_trial(identity)
        except UpdateFinishedTrialError:  # a leader took it for lost
            return None
        except BaseException as error:
            self._give_up(identity, error)
            if is_away(error) or isinstance(error, TrialPruned):
                return None
            raise

    def _give_up(self, identity: int, error: BaseException) -> None:
        """Ends a trial that has no configuration."""
        log.warning("no configuration was found: %s", error.__cause__ or error)
        with suppress(Exception):  # the next leader ends it
            self.storage.set_trial_user_attr(identity, "reason", f"no configuration was found: {error}")
            self.storage.set_trial_state_values(identity, TrialState.FAIL)


def counts(trial: FrozenTrial) -> bool:
    """Whether a trial of the storage is one of the study, or is to become one."""
    return TRIAL in trial.system_attrs or (BEAT in trial.system_attrs and trial.state == TrialState.RUNNING)
