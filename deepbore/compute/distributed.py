"""`Ranks`: the processes of a distributed run and what they exchange."""

from collections.abc import Iterator
from contextlib import contextmanager
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
        with self._reached(), clean_torch_state():  # pickled items become tensors
            distributed.all_gather_object(items, item, group=self.group)
        return items

    def gather_tensors(self, part: Tensor) -> list[Tensor]:
        """The tensors of all ranks, on the CPU, in the order of ranks.

        Args:
            part: this rank's; all have the same type, and the same shape but for the number of rows.

        Raises:
            RankError: if a rank has died.
        """
        if self.world == 1:
            return [part]
        shape, size = part.shape[1:], part.shape[1:].numel() * part.element_size()  # bytes of a row
        sent = part.detach().cpu().contiguous().flatten().view(torch.uint8)
        counts = [torch.zeros(1, dtype=torch.long, device="cpu") for _ in range(self.world)]
        with self._reached():
            distributed.all_gather(counts, counts[0].new_tensor([len(part)]), group=self.group)
            most = max(map(int, counts)) * size  # gloo exchanges tensors of one shape
            found = [sent.new_empty(most) for _ in range(self.world)]
            distributed.all_gather(found, nn.functional.pad(sent, (0, most - len(sent))), group=self.group)
        return [
            each[: int(count) * size].view(part.dtype).reshape(int(count), *shape)
            for count, each in zip(counts, found, strict=True)
        ]

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """A context that raises RankError where another rank has died."""
        try:
            yield
        except RuntimeError as error:
            raise RankError(
                f"rank {self.rank} of {self.world} has lost another one, which has died or can't be reached. What was "
                f"told until now is in the journal. See what the other rank said last. ({error})"
            ) from error

    def agreed(self, item: T) -> T:
        """The item of the first rank."""
        return self.gather(item)[0]

    def agreed_rows(self, rows: Tensor) -> Tensor:
        """The rows of the first rank, on the CPU."""
        return self.gather_tensors(rows)[0]

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
        return torch.cat(self.gather_tensors(part)).to(part.device) if self.world > 1 else part

    def share(self, count: int) -> slice:
        """This rank's contiguous share of so many rows, at least one for each rank."""
        rows = self.part(torch.arange(count, device="cpu")).tolist()
        return slice(rows[0], rows[-1] + 1)


def leave_apart(module: nn.Module, witness: str) -> None:
    """Excludes a module from DDP's synchronisation, except one untrained parameter, which DDP requires.

    Ranks that learn the same batch with the same stream have the same weights, so averaging gradients is redundant.
    """
    names = [name for name, _ in [*module.named_parameters(), *module.named_buffers()] if name != witness]
    nn.parallel.DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, names)
