"""`SharedEvaluator`: each rank of a distributed run evaluates its share of a batch."""

from deepbore.compute.distributed import Ranks
from deepbore.data.trial import Trial
from deepbore.evaluators.base import Evaluator, Finished


class SharedEvaluator(Evaluator):
    """Trial k of a batch goes to rank k mod world, which evaluates it by an evaluator of its own, on its own device.

    All ranks submit the same trials, and collect the same outcomes: those of the whole batch, in the order of trials,
    when the slowest rank is done. So a run depends on the number of ranks, not on which is faster.

    Args:
        own: this rank's evaluator.
        ranks: the processes.
    """

    def __init__(self, own: Evaluator, ranks: Ranks):
        self.own: Evaluator = own.own if isinstance(own, SharedEvaluator) else own  # one share, however often wrapped
        self.ranks = ranks
        self.workers = ranks.world * self.own.workers
        self._submitted = 0

    def open(self) -> None:
        self.own.open()

    def submit(self, trial: Trial) -> None:
        if self._submitted % self.ranks.world == self.ranks.rank:
            self.own.submit(trial)
        self._submitted += 1

    def collect(self) -> list[Finished]:
        finished: list[Finished] = []
        while self.own.outstanding:
            finished += self.own.collect()
        self._submitted = 0
        everything = [one for part in self.ranks.gather(finished) for one in part]
        return sorted(everything, key=lambda one: one.trial.id)

    @property
    def outstanding(self) -> int:
        return self._submitted

    @property
    def free(self) -> int:
        """All workers or none: a batch is waited for as a whole."""
        return min(0, self.workers - self._submitted) if self._submitted else self.workers

    def close(self) -> None:
        self._submitted = 0
        self.own.close()
