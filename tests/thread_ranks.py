"""Ranks of a run as threads of one process."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier

from deepbore.compute.distributed import Ranks


@dataclass(frozen=True)
class ThreadRanks(Ranks):
    """Ranks in threads, which gather over a list; `group` is the list and a barrier."""

    def gather(self, item):
        slots, barrier = self.group
        slots[self.rank] = item
        barrier.wait(timeout=60)
        gathered = list(slots)
        barrier.wait(timeout=60)
        return gathered

    def gather_tensors(self, part):
        return self.gather(part)


def on_ranks(task, world=2):
    """What task(ranks) returns on each rank; an error on one ends all."""
    group = ([None] * world, Barrier(world))

    def run(rank):
        try:
            return task(ThreadRanks(rank, world, group))
        except BaseException:
            group[1].abort()
            raise

    with ThreadPoolExecutor(world) as threads:
        return [done.result() for done in [threads.submit(run, rank) for rank in range(world)]]
