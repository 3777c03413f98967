"""`Sampled`: configurations for a worker of a shared study that has no leader."""

from collections.abc import Mapping
from typing import Any

from deepbore.errors import MissingPackage
from deepbore.integrations.optuna import DeepBoreSampler, suggest
from deepbore.space import SearchSpace

try:
    from optuna import Trial, load_study
    from optuna.storages import BaseStorage, get_storage
except ImportError:
    raise MissingPackage("a shared study needs Optuna: pip install 'deepbore[optuna]'.") from None


class Sampled:
    """A study in a storage, and what `DeepBoreSampler` proposes from its trials.

    Args:
        storage: of the study.
        name: of the study.
        space: its search space, as plain data.
    """

    def __init__(self, storage: BaseStorage, name: str, space: Mapping[str, Any]):
        self.storage, self.space = get_storage(storage), SearchSpace.from_dict(space)
        self.study = load_study(study_name=name, storage=self.storage, sampler=DeepBoreSampler(space=self.space))

    def params(self, identity: int) -> dict[str, Any]:
        """The configuration for a trial that is in the storage already, as plain data."""
        return self.space.points.plain(suggest(Trial(self.study, identity), self.space))
