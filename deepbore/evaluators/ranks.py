"""`SharedEvaluator`: each rank of a distributed run evaluates its share of a batch."""

from deepbore.compute.distributed import Ranks
from deepbore.data.trial import Trial
from deepbore.evaluators.base import Evaluator, Finished


class SharedEvaluator(Evaluator):
    """Trial k of a batch goes to rank k mod world, which evaluates it by an evaluator of its own, on its own device.

    All ranks submit the same trials and collect the same outcomes, a round at a time: in a round each rank's evaluator
    collects once, and outcomes are sorted by trial when the slowest rank has answered. So a rank that dies costs no
    more than a round. No new trial begins before the whole batch is done: the proposals of a run depend on the
    number of ranks, not on which is faster.

    Args:
        own: this rank's evaluator.
        ranks: the processes.
    """

    def __init__(self, own: Evaluator, ranks: Ranks):
        self.own: Evaluator = own.own if isinstance(own, SharedEvaluator) else own  # shared once only
        self.ranks = ranks
        self.workers = ranks.world * self.own.workers
        self._submitted = self._outstanding = 0

    def open(self) -> None:
        self.own.open()

    def submit(self, trial: Trial) -> None:
        if self._submitted % self.ranks.world == self.ranks.rank:
            self.own.submit(trial)
        self._submitted += 1
        self._outstanding += 1

    def collect(self) -> list[Finished]:
        finished = self.own.collect() if self.own.outstanding else ()
        everything = [one for part in self.ranks.gather(list(finished)) for one in part]
        self._count_down(len(everything))
        return sorted(everything, key=lambda one: one.trial.id)

    @property
    def outstanding(self) -> int:
        return self._outstanding

    @property
    def free(self) -> int:
        """All workers or none: a batch is waited for as a whole."""
        return min(0, self.workers - self._outstanding) if self._outstanding else self.workers

    def withdraw(self) -> list[Trial]:
        everything = [trial for part in self.ranks.gather(list(self.own.withdraw())) for trial in part]
        self._count_down(len(everything))
        return sorted(everything, key=lambda trial: trial.id)

    def close(self) -> None:
        self._submitted = self._outstanding = 0
        self.own.close()

    def _count_down(self, count: int) -> None:
        """Counts trials that are no longer outstanding; after the last one a new batch begins with the first rank."""
        self._outstanding -= count
        self._submitted = self._submitted if self._outstanding else 0
