"""`Timed`: keeps when each trial was evaluated, for the timeline in a run's report."""

import json
import os
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from deepbore.data.trial import Trial
from deepbore.evaluators.base import Evaluator, Finished


class Timed(Evaluator):
    """Another evaluator, and a file with a line for each trial that it has finished: when it began and ended.

        {"trial": 3, "began": 1763786712.25, "ended": 1763786719.5}

    Times are those of this process, in seconds since 1970: when a trial was handed to a free worker, and when it was
    collected. `deepbore fit` keeps them beside the journal (journal.jsonl.times); the journal itself has none, so that
    equal runs have equal journals. A file that can't be written is done without.

    Args:
        own: what evaluates.
        path: the file; lines are appended.
    """

    def __init__(self, own: Evaluator, path: str | os.PathLike[str]):
        self.own, self.path = own, Path(path).absolute()
        self.workers = own.workers
        self._began: dict[int, float] = {}
        self._waiting: deque[int] = deque()  # of what was submitted, these found no free worker

    def open(self) -> None:
        self.own.open()

    def submit(self, trial: Trial) -> None:
        if self.own.free > 0:
            self._began[trial.id] = time.time()
        else:
            self._waiting.append(trial.id)
        self.own.submit(trial)

    def collect(self) -> Sequence[Finished]:
        finished = self.own.collect()
        now = time.time()
        spans = [(one.trial.id, self._began.pop(one.trial.id, now)) for one in finished]
        while self._waiting and len(self._began) < self.workers:
            self._began[self._waiting.popleft()] = now
        self._keep(spans, now)
        return finished

    @property
    def outstanding(self) -> int:
        return self.own.outstanding

    @property
    def free(self) -> int:
        return self.own.free

    @property
    def lost(self) -> int:
        return self.own.lost

    def withdraw(self) -> Sequence[Trial]:
        withdrawn = self.own.withdraw()
        gone = {trial.id for trial in withdrawn}
        self._waiting = deque(row for row in self._waiting if row not in gone)
        for row in gone:
            self._began.pop(row, None)
        return withdrawn

    def close(self) -> None:
        self._began.clear()
        self._waiting.clear()
        self.own.close()

    def _keep(self, spans: list[tuple[int, float]], now: float) -> None:
        lines = [json.dumps({"trial": row, "began": round(began, 3), "ended": round(now, 3)}) for row, began in spans]
        if not lines:
            return
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
        except OSError:  # a timeline is not worth a run
            return
