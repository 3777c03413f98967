"""`Ranks`: the processes of a distributed run and what they exchange."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, distributed, nn

from deepbore.compute.torch_state import clean_torch_state
from deepbore.errors import RankError

T = TypeVar("T")
PATIENCE = timedelta(days=30)  # timeout while one rank evaluates; a dead rank is detected at once


@dataclass(frozen=True)
class Ranks:
    """This process among the `world` processes of a run; with one process each method is a no-op.

    Attributes:
        rank: number of this process, from 0.
        world: number of processes.
        group: process group of torch.distributed, on gloo, for data on the CPU and with a long timeout.
    """

    rank: int = 0
    world: int = 1
    group: Any = None

    @classmethod
    def found(cls) -> "Ranks":
        """The processes that a launcher has started and Lightning has joined; all of them must call this."""
        if not (distributed.is_available() and distributed.is_initialized()) or distributed.get_world_size() == 1:
            return cls()
        group = distributed.new_group(backend="gloo", timeout=PATIENCE)
        return cls(distributed.get_rank(), distributed.get_world_size(), group)

    @property
    def is_first(self) -> bool:
        """Whether this is the rank that writes files and logs."""
        return self.rank == 0

    def gather(self, item: T) -> list[T]:
        """The items of all ranks, in the order of ranks.

        Raises:
            RankError: if a rank has died.
        """
        if self.world == 1:
            return [item]
        items: list[Any] = [None] * self.world
        try:
            with clean_torch_state():  # pickled items become tensors
                distributed.all_gather_object(items, item, group=self.group)
        except RuntimeError as error:
            raise RankError(
                f"rank {self.rank} of {self.world} has lost another one, which has died or can't be reached. What was "
                f"told until now is in the journal. See what the other rank said last. ({error})"
            ) from error
        return items

    def agreed(self, item: T) -> T:
        """The item of the first rank."""
        return self.gather(item)[0]

    def stream(self, generator: torch.Generator) -> torch.Generator:
        """A stream of this rank's own on the same device, seeded by one draw from the common one."""
        if self.world == 1:
            return generator
        drawn = int(torch.randint(2**62, (), generator=generator, device=generator.device))
        (seed,) = np.random.SeedSequence([drawn, self.rank]).generate_state(1, np.uint64)
        return torch.Generator(generator.device).manual_seed(int(seed >> np.uint64(1)))

    def part(self, rows: Tensor) -> Tensor:
        """This rank's contiguous share of rows."""
        return rows.tensor_split(self.world)[self.rank]

    def whole(self, part: Tensor) -> Tensor:
        """The rows of all ranks, put together from their shares."""
        return torch.cat(self.gather(part.cpu())).to(part.device) if self.world > 1 else part


def leave_apart(module: nn.Module, witness: str) -> None:
    """Excludes a module from DDP's synchronisation, except one untrained parameter, which DDP requires.

    Ranks that learn the same batch with the same stream have the same weights, so averaging gradients is redundant.
    """
    names = [name for name, _ in [*module.named_parameters(), *module.named_buffers()] if name != witness]
    nn.parallel.DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, names)
