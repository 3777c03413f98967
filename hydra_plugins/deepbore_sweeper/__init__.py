"""`hydra/sweeper: deepbore`, in the place where Hydra looks for plugins.

Every program with Hydra imports this file when it starts, so it imports nothing of deepbore until a sweep begins.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.errors import CompactHydraException
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


@dataclass
class DeepBoreSweeperConf:
    """The settings, as Hydra checks them: see `deepbore.integrations.hydra.Sweep`."""

    _target_: str = "hydra_plugins.deepbore_sweeper.DeepBoreSweeper"
    n_trials: int = 20
    batch_size: int = 1
    direction: str = "minimize"
    seed: int = 0
    n_initial: int | None = None
    max_failures: int | None = 10
    journal: str | None = None
    classifier: Any = None
    acquisition: Any = None
    candidates: Any = None
    labels: Any = None
    priors: dict[str, Any] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)


ConfigStore.instance().store(group="hydra/sweeper", name="deepbore", node=DeepBoreSweeperConf, provider="deepbore")


class DeepBoreSweeper(Sweeper):
    """Hydra's side of a sweep."""

    def __init__(self, params: Mapping[str, str], **settings: Any):
        self.params, self.settings = dict(params), settings

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keeps what a sweep needs, and makes the launcher."""
        self.hydra_context, self.config = hydra_context, config
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> Any:
        """Runs the jobs, and returns deepbore's result."""
        from deepbore.errors import DeepBoreError
        from deepbore.integrations.hydra import Sweep  # takes seconds to import: only for a sweep

        given = [f"{name}={values}" for name, values in self.params.items()]
        try:
            return Sweep(self, **self.settings).run([*given, *arguments])
        except DeepBoreError as error:
            raise CompactHydraException(f"deepbore: {error}") from error  # Hydra shows it without a traceback
