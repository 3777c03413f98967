"""The commands that change what a run was told: `deepbore withdraw`, `deepbore correct` and `deepbore rerun`.

They need no torch, import no module of the user's, and are refused while another process writes the run.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from deepbore.cli.inspect import Parser, summary
from deepbore.data.outcome import Outcome, corrected_outcome
from deepbore.data.runs import Run
from deepbore.data.trial import Status
from deepbore.errors import TrialError

if TYPE_CHECKING:
    from deepbore.data.events import Event
    from deepbore.data.ledger import Ledger

RUN = "a run directory or a journal"


def withdraw(args: Sequence[str]) -> None:
    """`deepbore withdraw RUN ID ...`."""
    from deepbore.data.events import Withdrawn  # NumPy

    parser = Parser("withdraw", "takes trials back, as if they had never been told; they stay in the history")
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument("trials", nargs="+", type=int, metavar="ID", help="the number of a trial")
    parser.add_argument("--reason", metavar="TEXT", help="why, for the history")
    given = parser.parse_args(_with_negative_numbers(args))
    rows = sorted(given.trials)
    _write(Run.named(given.run).path, lambda _: Withdrawn(rows, given.reason))
    print(f"withdrawn: {', '.join(map(str, rows))}")
    print(summary(Run.named(given.run).record))


def correct(args: Sequence[str]) -> None:
    """`deepbore correct RUN ID VALUE ...`."""
    from deepbore.data.events import Corrected, correctable  # NumPy

    parser = Parser("correct", "replaces the outcome of a trial; what is not given stays")
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument("trial", type=int, metavar="ID", help="the number of the trial")
    parser.add_argument("values", nargs="*", type=float, metavar="VALUE", help="one for each objective; nan for none")
    parser.add_argument("--constraints", nargs="+", type=float, metavar="C", help="feasible where all are <= 0")
    parser.add_argument("--noise", type=float, metavar="SD", help="standard deviation of the value")
    parser.add_argument("--failed", action="store_true", help="the trial has failed after all")
    given = parser.parse_intermixed_args(_with_negative_numbers(args))

    def event(ledger: "Ledger") -> "Event":
        known = correctable(ledger, given.trial)
        about = {"constraints": given.constraints, "failed": given.failed, "noise": given.noise}
        return Corrected(given.trial, corrected_outcome(known, given.values or None, **about)).normal(ledger)

    known = _write(Run.named(given.run).path, event).notes.former[given.trial][-1]
    print(f"corrected: trial {given.trial}, which was {_shown(known)}")
    print(summary(Run.named(given.run).record))


def rerun(args: Sequence[str]) -> None:
    """`deepbore rerun RUN [ID ...]`."""
    from deepbore.data.events import Enqueued, Withdrawn  # NumPy

    parser = Parser("rerun", "queues configurations again: of trials, or without any of all that have failed")
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument(
        "trials", nargs="*", type=int, metavar="ID", help="the number of a trial (all that have failed)"
    )
    given = parser.parse_args(list(args))
    path = Run.named(given.run).path
    ledger = Run.named(given.run).record
    own = [trial for trial in ledger.trials if trial.task is None]
    chosen = [ledger.trial(ledger.checked(row)) for row in dict.fromkeys(given.trials)]
    found = chosen or [trial for trial in own if trial.status is Status.FAILED]
    if waiting := [trial.id for trial in found if trial.status is Status.PENDING]:
        raise TrialError(f"a trial runs again once it has ended, but {waiting[0]} has not.")
    failed = [trial.id for trial in found if trial.status is Status.FAILED]
    events: list[Event] = [Enqueued(trial.params) for trial in found]
    events += [Withdrawn(failed, "run again")] if failed else []
    _write(path, *(lambda _, event=event: event for event in events))
    print(f"queued again: {', '.join(str(trial.id) for trial in found) or 'none'}")


COMMANDS: dict[str, Callable[[Sequence[str]], None]] = {"withdraw": withdraw, "correct": correct, "rerun": rerun}


def _with_negative_numbers(args: Sequence[str]) -> list[str]:
    """The arguments with a blank before negative numbers: argparse takes -1e-3 for an option."""
    return [f" {each}" if each.startswith("-") and _is_number(each) else each for each in args]


def _is_number(text: str) -> bool:
    with suppress(ValueError):
        float(text)
        return True
    return False


def _shown(outcome: Outcome) -> str:
    return "failed" if outcome.has_failed else ", ".join(f"{value:.8g}" for value in outcome.values)


def _write(path: Path, *events: "Callable[[Ledger], Event]") -> "Ledger":
    """Writes events to the journal of a run; the ledger after them.

    Args:
        path: of the run.
        events: functions of the ledger that return an event.

    Raises:
        JournalError: for a missing or damaged journal, or one that another process writes.
        TrialError, ValueTypeError: for an event that does not fit.
    """
    from deepbore.data.amending import amend  # NumPy

    return amend(Run(path).journal, *events)
