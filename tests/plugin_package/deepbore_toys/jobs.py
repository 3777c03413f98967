"""An evaluator: every trial is a job of its own, started by a command, as batch queues have it."""

import pickle
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from deepbore.data.outcome import Outcome
from deepbore.data.trial import Trial
from deepbore.evaluators import Evaluator, Finished, Objective
from deepbore.validation import whole
from deepbore.worker.objective import evaluate

COMMAND = (sys.executable, "-m", "deepbore_toys.jobs")


class JobEvaluator(Evaluator):
    """Writes a file for each trial and runs a command on it, which leaves the outcome beside it.

    Args:
        objective: configuration -> value; picklable.
        workers: how many jobs there are at the same time.
        command: takes the file's name as its last argument: `("srun", *COMMAND)` on a cluster.
    """

    def __init__(self, objective: Objective, workers: int = 2, command: Sequence[str] = COMMAND):
        whole(1, workers=workers)
        self.objective, self.workers, self.command = objective, workers, command
        self._waiting: deque[Trial] = deque()
        self._jobs: dict[int, tuple[Trial, Path, subprocess.Popen[bytes]]] = {}
        self._folder = TemporaryDirectory()

    def submit(self, trial: Trial) -> None:
        self._waiting.append(trial)
        self._start()

    def collect(self) -> list[Finished]:
        while self._jobs:
            done = [row for row, (_, _, process) in self._jobs.items() if process.poll() is not None]
            finished = [self._finished(*self._jobs.pop(row)) for row in done]
            self._start()
            if finished:
                return finished
            time.sleep(0.02)
        return []

    @property
    def outstanding(self) -> int:
        return len(self._waiting) + len(self._jobs)

    def close(self) -> None:
        self._waiting.clear()
        for _, _, process in self._jobs.values():
            process.kill()
            process.wait()
        self._jobs.clear()

    def _start(self) -> None:
        while self._waiting and len(self._jobs) < self.workers:
            trial = self._waiting.popleft()
            file = Path(self._folder.name, f"{trial.id}.pickle")
            file.write_bytes(pickle.dumps((self.objective, trial)))
            self._jobs[trial.id] = trial, file, subprocess.Popen([*self.command, str(file)])

    def _finished(self, trial: Trial, file: Path, process: "subprocess.Popen[bytes]") -> Finished:
        if process.returncode != 0:
            return Finished(trial, Outcome.failure(f"its job ended with code {process.returncode}"))
        return Finished(trial, pickle.loads(file.with_suffix(".outcome").read_bytes()))


if __name__ == "__main__":
    job = Path(sys.argv[1])
    job.with_suffix(".outcome").write_bytes(pickle.dumps(evaluate(*pickle.loads(job.read_bytes()))))
