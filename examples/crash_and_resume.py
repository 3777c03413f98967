"""A run that survives its own death: start it, kill it whenever you like, start it again.

    python examples/crash_and_resume.py --trials 40 --crash-after 15   # dies after 15 evaluations
    python examples/crash_and_resume.py --trials 40                    # goes on, with the same proposals

All that happens is in run.jsonl before it takes effect, and beside it, in run.jsonl.ckpt, is the state of the run: the
classifier's weights, the random numbers and all the rest. The trial that was under way when the process died is pending
in the journal, and evaluated first.
"""

import argparse
import os
import signal
from pathlib import Path

import deepbore
from deepbore.data.observations import Trial
from deepbore.data.outcome import Status

SPACE = deepbore.SearchSpace({"x": deepbore.Real(-5, 10), "y": deepbore.Real(0, 15)})


def open_study(journal: Path) -> deepbore.Study:
    """The study in the journal, or a new one."""
    if journal.exists():
        return deepbore.Study.load(journal)
    return deepbore.Study(SPACE, seed=0, journal=journal)


def objective(params: dict[str, float]) -> float:
    """A valley with its lowest place at x = 3, y = 9."""
    return (params["y"] - params["x"] ** 2) ** 2 / 10 + (params["x"] - 3) ** 2


def next_trial(study: deepbore.Study) -> Trial:
    """One that a killed process has left behind, or else a new one."""
    left = [trial for trial in study.trials if trial.status == Status.PENDING]
    return left[0] if left else study.ask()[0]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=40, help="in all, those before a crash included")
    parser.add_argument("--crash-after", type=int, help="kill this process with a trial under way after so many")
    parser.add_argument("--journal", type=Path, default=Path("run.jsonl"))
    args = parser.parse_args()
    study = open_study(args.journal)
    print(f"{len(study.trials)} trials in {args.journal}")
    while (done := sum(trial.status == Status.COMPLETE for trial in study.trials)) < args.trials:
        trial = next_trial(study)
        if done == args.crash_after:
            os.kill(os.getpid(), signal.SIGKILL)  # nothing is tidied up: no atexit, no finally
        study.tell(trial, objective(trial.params))
    print(f"best of {len(study.trials)}: {study.best_trial.value:.6f} with {study.best_trial.params}")
