"""The commands of a shared study: `deepbore lead` and `deepbore work`. A worker imports no torch."""

import logging
import sys
import time
from argparse import ArgumentError, ArgumentParser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from deepbore.cli.inspect import Parser
from deepbore.cli.new_run import RUNS
from deepbore.data.journal import Journal, holds_anything
from deepbore.data.log import JOURNAL
from deepbore.errors import JournalError, JournalInUse, SettingError
from deepbore.validation import as_path
from deepbore.worker.target import function_at

STANDBY = 2.0  # seconds between two looks at the lock of a leader
log = logging.getLogger(__name__)

LEAD = """deepbore lead: proposes for one study that workers on many machines evaluate; they share an Optuna storage

  deepbore lead --storage postgresql://db/team --study resnet --config resnet.yaml
  deepbore work --storage postgresql://db/team --study resnet train.py:train      on each machine, as often as you like

  --storage URL            an Optuna storage: sqlite:///FILE for processes of one machine, postgresql://..., or
                           grpc://HOST:PORT of Optuna's proxy
  --study NAME             the study in it; it is made if it is missing
  --run DIR                where the run is kept (default runs/NAME); if it is there, it goes on. A second leader of it
                           waits until the first one has ended or died, and goes on from its journal
  --ahead A                trials that wait for workers: a share of those that run, or a number from 1 on (default .05)
  --poll S                 seconds between two looks at the storage (default .5)
  --heartbeat S            seconds between two signs of life, for `deepbore work --propose_after` (default 10)

Everything else is as in `deepbore fit`: --config, --problem, --loop.*, --model, ...; the problem gives the space and
the directions, and loop.n_trials says how many trials there are in all. The evaluation is the workers'.
"""


# --- lead ------------------------------------------------------------------------------------------------------------


def lead(args: Sequence[str]) -> None:
    """`deepbore lead --storage URL --study NAME ...`."""
    if list(args) in ([], ["-h"], ["--help"]):
        print(LEAD)
        return
    parser = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for name in ("storage", "study", "run"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--ahead", type=float, default=0.05)
    parser.add_argument("--poll", type=float, default=0.5)
    parser.add_argument("--heartbeat", type=float, default=10.0)
    try:
        given, others = parser.parse_known_args(args)
    except ArgumentError as error:
        raise SettingError(f"{error}. `deepbore lead --help` lists the settings.") from None
    for name in ("storage", "study"):
        if not getattr(given, name):
            raise SettingError(f"--{name} must be given, but is missing. `deepbore lead --help` says more.")
    from deepbore.cli.fit import run_fit
    from deepbore.integrations.shared import StorageEvaluator

    run = as_path(given.run or RUNS / given.study, "a run", JournalError)
    evaluators: list[StorageEvaluator] = []

    def connect(study: Any, n_trials: int | None) -> StorageEvaluator:
        shared = StorageEvaluator(given.storage, given.study, study, given.ahead, given.poll, n_trials, given.heartbeat)
        evaluators.append(shared)
        return shared

    while True:
        try:
            _wait_for_leader(run / JOURNAL)
            exists = holds_anything(run / JOURNAL)
            run_fit([*(["--resume", str(run)] if exists else ["--run", str(run)]), *others], connect)
            break
        except JournalInUse:  # another one was faster
            continue
    evaluators[-1].end()


def _wait_for_leader(path: Path) -> None:
    """Waits until nobody writes a journal."""
    is_first = True
    while holds_anything(path):
        journal = Journal(path)
        try:
            journal.open()
            return
        except JournalInUse:
            if is_first:
                print(f"another process leads {path.parent}: waiting for its end", file=sys.stderr, flush=True)
            is_first = False
            time.sleep(STANDBY)
        finally:
            journal.close()


# --- work ------------------------------------------------------------------------------------------------------------


def work(args: Sequence[str]) -> None:
    """`deepbore work --storage URL --study NAME TARGET`."""
    parser = Parser("work", "evaluates trials of a shared study until its leader says that there are no more")
    parser.add_argument(
        "target", metavar="TARGET", help="a function of the configuration: train.py:train, module:train"
    )
    parser.add_argument("--storage", required=True, metavar="URL", help="an Optuna storage, as of the leader")
    parser.add_argument("--study", required=True, metavar="NAME", help="the study in it, which is waited for")
    parser.add_argument("--heartbeat", type=float, default=60.0, metavar="S", help="seconds between signs of life (60)")
    parser.add_argument("--retries", type=int, default=3, metavar="N", help="how often a trial may lose its worker (3)")
    parser.add_argument("--n_trials", type=int, metavar="N", help="how many trials (default: no limit)")
    parser.add_argument("--patience", type=float, metavar="S", help="seconds without a trial (default: no limit)")
    parser.add_argument("--poll", type=float, default=1.0, metavar="S", help="seconds between two looks (1)")
    parser.add_argument("--propose_after", type=float, metavar="S", help="seconds without a leader, then it proposes")
    given = vars(parser.parse_args(list(args)))
    objective = _function(given.pop("target"))
    from deepbore.worker.shared import work as evaluate_trials

    print(f"evaluated: {evaluate_trials(objective, **given)} trials")


def _function(target: str) -> Callable[..., Any]:
    """The function that a text names: train.py:train, package.module:train, package.module.train.

    Raises:
        SettingError: if there is none.
    """
    try:
        found = function_at(target)
    except (ImportError, AttributeError, ValueError, OSError) as error:
        raise SettingError(f"TARGET must name a function, as train.py:train, but got {target!r}: {error}") from error
    if not callable(found):
        raise SettingError(f"TARGET must name a function of the configuration, but {target!r} is {found!r:.100}.")
    return found  # type: ignore[no-any-return]


COMMANDS: dict[str, Callable[[Sequence[str]], None]] = {"lead": lead, "work": work}
