"""`Ranks`: the processes of a distributed run, what they exchange, and whether they live."""

import atexit
import logging
import pickle
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, distributed, nn
from torch.distributed import distributed_c10d as c10d
from torch.distributed.constants import default_pg_nccl_timeout, default_pg_timeout

from deepbore.compute.torch_state import clean_torch_state
from deepbore.errors import RankError

T = TypeVar("T")
EVALUATION = timedelta(days=30)  # timeout of the group: others wait while one rank evaluates
PATIENCE = 90.0  # seconds without a sign of life after which a rank is lost
SLICE = 0.5  # seconds between two looks at the other ranks
GRACE = 5.0  # seconds that the end of the program waits for a beat
log = logging.getLogger(__name__)


class Heartbeat:
    """Signs of life of the ranks over the store of torch.distributed: each counts up a number of its own there.

    A background thread does so; it stops where its process is stopped or frozen, or can't reach the store. Time is
    counted in looks, so that a process which was itself stopped for an hour does not take the others for lost.

    Args:
        store: of the ranks.
        rank: number of this process.
        world: number of processes.
        patience: seconds after which a rank without a sign of life is lost.
    """

    _latest: "Heartbeat | None" = None  # of this process: one thread does for all runs

    def __init__(self, store: Any, rank: int, world: int, patience: float):
        self.store, self.rank, self.patience = store, rank, patience
        self._others = [each for each in range(world) if each != rank]
        self._beats: dict[int, int] = {}  # as the thread has found them
        self._own = 0  # that have reached the store
        self._seen: dict[int | None, int] = {}  # as they were at the latest look; None for the store itself
        self._silent: dict[int | None, float] = dict.fromkeys([*self._others, None], 0.0)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()
        atexit.register(self.end)

    @classmethod
    def of_program(cls) -> "Heartbeat":
        """That of this process, begun with the first run after `init_process_group`."""
        store, latest = c10d._get_default_store(), Heartbeat._latest
        if latest is not None and latest.store is store:
            return latest
        if latest is not None:
            latest.end()
        Heartbeat._latest = cls(store, distributed.get_rank(), distributed.get_world_size(), patience_of_program())
        return Heartbeat._latest

    def end(self) -> None:
        """Ends the thread: Python, as it ends, would abort the process if that were within a call of torch."""
        self._is_over.set()
        self._thread.join(GRACE)

    def look(self) -> None:
        """Counts another `SLICE` of waiting, and logs which rank has been silent for a third of the patience.

        Raises:
            RankError: if one has been silent for longer than that.
        """
        now: dict[int | None, int] = dict(self._beats) | {None: self._own}
        for each in self._silent:
            is_new = now.get(each, 0) != self._seen.get(each, 0)
            self._silent[each] = 0.0 if is_new else self._silent[each] + SLICE
        self._seen = now
        who = None if self._silent[None] >= max(self._silent.values()) else max(self._others, key=self._silent_for)
        seconds = self._silent[who]
        if seconds >= self.patience:
            raise RankError(f"{self._named(who)} has given no sign of life for {seconds:.0f} s: {LOST}")
        if seconds >= self.patience / 3 > seconds - SLICE:
            words = "rank %d waits: %s has given no sign of life for %.0f s; after %.0f s it is lost"
            log.warning(words, self.rank, self._named(who), seconds, self.patience)

    def first_silent(self) -> str:
        """The rank that gives no more signs of life, after another has found its connections closed."""
        enough = 3 * self._interval + 2 * SLICE
        for _ in range(int(2 * enough / SLICE) + 1):
            threading.Event().wait(SLICE)
            with suppress(RankError):
                self.look()
            for each in (None, *self._others):
                if self._silent[each] >= enough:
                    return self._named(each)
        return "another rank"

    @property
    def _interval(self) -> float:
        """Seconds between two beats."""
        return min(1.0, self.patience / 10)

    def _silent_for(self, rank: int) -> float:
        return self._silent[rank]

    def _named(self, rank: int | None) -> str:
        if rank is not None:
            return f"rank {rank}"
        return "rank 0, or the launcher, which keeps the store of the ranks,"

    def _beat(self) -> None:
        """Counts up this rank's number, and reads those of the others."""
        own = self.store
        with suppress(Exception):  # a connection of its own, where the store can have several
            own = self.store.clone()
        while not self._is_over.wait(self._interval):
            try:
                beats = own.add(f"deepbore/beat/{self.rank}", 1)
                self._beats = {each: own.add(f"deepbore/beat/{each}", 0) for each in self._others}
                self._own = beats
            except distributed.DistNetworkError:  # the store is gone: torch would warn of it at each beat
                return
            except Exception:  # it is late
                log.debug("the store of the ranks is late", exc_info=True)


LOST = (
    "it is stopped, its machine is gone, or it can't be reached. What was told until now is in the journal: continue "
    "it on as many ranks. Where an evaluation keeps Python's lock that long, give init_process_group a longer timeout."
)


def patience_of_program() -> float:
    """Seconds after which a silent rank is lost: the timeout of `init_process_group`, if it is not torch's default."""
    with suppress(Exception):  # torch says nowhere how to read it
        group = c10d._get_default_group()
        backend = distributed.get_backend(group)
        given = group._get_backend(torch.device("cpu" if backend == "gloo" else "cuda")).options._timeout
        if given not in (default_pg_timeout, default_pg_nccl_timeout):
            return float(given.total_seconds())
    return PATIENCE


@dataclass(frozen=True)
class Ranks:
    """This process among the `world` processes of a run; with one process each method is a no-op.

    Attributes:
        rank: number of this process, from 0.
        world: number of processes.
        group: process group of torch.distributed, on gloo, for data on the CPU and with a long timeout.
        heartbeat: signs of life of the other processes.
    """

    rank: int = 0
    world: int = 1
    group: Any = None
    heartbeat: Heartbeat | None = field(default=None, compare=False)

    @classmethod
    def found(cls) -> "Ranks":
        """The processes that a launcher has started and Lightning has joined; all of them must call this."""
        if not (distributed.is_available() and distributed.is_initialized()) or distributed.get_world_size() == 1:
            return cls()
        group = distributed.new_group(backend="gloo", timeout=EVALUATION)
        return cls(distributed.get_rank(), distributed.get_world_size(), group, Heartbeat.of_program())

    @property
    def is_first(self) -> bool:
        """Whether this is the rank that writes files and logs."""
        return self.rank == 0

    def gather(self, item: T) -> list[T]:
        """The items of all ranks, in the order of ranks.

        Raises:
            RankError: if a rank has died, is stopped or can't be reached; it names that rank.
        """
        if self.world == 1:
            return [item]
        with clean_torch_state():  # pickled items become tensors
            own = torch.frombuffer(bytearray(pickle.dumps(item)), dtype=torch.uint8)
            sizes = [int(size) for size in self._gathered(torch.tensor([len(own)]))]
            whole = self._gathered(nn.functional.pad(own, (0, max(sizes) - len(own))))
            return [pickle.loads(each[:size].numpy().tobytes()) for each, size in zip(whole, sizes, strict=True)]

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
        counts = [int(count) for count in self._gathered(torch.tensor([len(part)], device="cpu"))]
        found = self._gathered(nn.functional.pad(sent, (0, max(counts) * size - len(sent))))  # gloo: of one shape
        return [
            each[: count * size].view(part.dtype).reshape(count, *shape)
            for count, each in zip(counts, found, strict=True)
        ]

    def _gathered(self, part: Tensor) -> list[Tensor]:
        """The tensors of all ranks, of equal shapes; watches the others while it waits for them."""
        parts = [torch.empty_like(part) for _ in range(self.world)]
        try:
            work = distributed.all_gather(parts, part, group=self.group, async_op=True)
            while not self._is_done(work):
                if self.heartbeat is not None:
                    self.heartbeat.look()
        except RuntimeError as error:
            if isinstance(error, RankError):
                raise RankError(f"rank {self.rank} of {self.world} ends, since {error}") from None
            log.warning("rank %d of %d has lost another one, and looks which: %s", self.rank, self.world, error)
            lost = "another rank" if self.heartbeat is None else self.heartbeat.first_silent()
            raise RankError(
                f"rank {self.rank} of {self.world} has lost {lost}, which has died: {LOST} ({error})"
            ) from error
        return parts

    def _is_done(self, work: Any) -> bool:
        """Waits for an exchange, a moment at most."""
        try:
            work.wait(timedelta(seconds=SLICE))
        except RuntimeError:
            if not work.is_completed():
                return False
            work.wait(timedelta(seconds=SLICE))  # raises its own error, if it has one
        return True

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
