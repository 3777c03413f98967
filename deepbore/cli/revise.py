"""The commands that change what a run was told: `deepbore withdraw` and `deepbore correct`.

They need no torch, import no module of the user's, and are refused while another process writes the run.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from deepbore.cli.inspect import Parser, summary
from deepbore.cli.run_directory import Run
from deepbore.data.journal import Journal
from deepbore.data.journal_format import Event, corrected, withdrawn
from deepbore.data.outcome import Outcome, corrected_outcome
from deepbore.data.replay import Replay

RUN = "a run directory or a journal"


def withdraw(args: Sequence[str]) -> None:
    """`deepbore withdraw RUN ID ...`."""
    parser = Parser("withdraw", "takes trials back, as if they had never been told; they stay in the history")
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument("trials", nargs="+", type=int, metavar="ID", help="the number of a trial")
    parser.add_argument("--reason", metavar="TEXT", help="why, for the history")
    given = parser.parse_args(_with_negative_numbers(args))
    rows = sorted(given.trials)
    _write(Path(given.run), lambda _: withdrawn(rows, given.reason))
    print(f"withdrawn: {', '.join(map(str, rows))}")
    print(summary(Run(Path(given.run)).record))


def correct(args: Sequence[str]) -> None:
    """`deepbore correct RUN ID VALUE ...`."""
    parser = Parser("correct", "replaces the outcome of a trial; what is not given stays")
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument("trial", type=int, metavar="ID", help="the number of the trial")
    parser.add_argument("values", nargs="*", type=float, metavar="VALUE", help="one for each objective; nan for none")
    parser.add_argument("--constraints", nargs="+", type=float, metavar="C", help="feasible where all are <= 0")
    parser.add_argument("--noise", type=float, metavar="SD", help="standard deviation of the value")
    parser.add_argument("--failed", action="store_true", help="the trial has failed after all")
    given = parser.parse_intermixed_args(_with_negative_numbers(args))

    def event(state: Replay) -> Event:
        known = state.correctable(given.trial)
        about = {"constraints": given.constraints, "failed": given.failed, "noise": given.noise}
        return corrected(given.trial, corrected_outcome(known, given.values or None, **about))

    known = _write(Path(given.run), event).former[given.trial][-1]
    print(f"corrected: trial {given.trial}, which was {_shown(known)}")
    print(summary(Run(Path(given.run)).record))


COMMANDS: dict[str, Callable[[Sequence[str]], None]] = {"withdraw": withdraw, "correct": correct}


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


def _write(path: Path, event: Callable[[Replay], Event]) -> Replay:
    """Writes an event to the journal of a run; the state after it.

    Args:
        path: of the run.
        event: function of the state that returns the event.

    Raises:
        JournalError: for a missing or damaged journal, or one that another process writes.
        TrialError, ValueTypeError: for an event that does not fit.
    """
    with _closing(Journal(Run(path).journal)) as journal:
        events = list(journal.read())
        state = Replay.of(journal.path, events)
        new = event(state)
        state.apply(new, len(events) + 1)
        journal.write(new)
    return state


@contextmanager
def _closing(journal: Journal) -> Iterator[Journal]:
    try:
        yield journal
    finally:
        journal.close()
