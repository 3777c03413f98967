"""The commands that look at runs: they read, import nobody's modules, and need no torch but for a whole report."""

import argparse
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from deepbore.cli.run_directory import Run, ago, runs_in
from deepbore.cli.summary import summary
from deepbore.data.outcome import Status
from deepbore.data.ranking import front
from deepbore.errors import DeepBoreError, JournalError, SettingError

EVERY = 5.0  # seconds between two looks at a run


def best(args: Sequence[str]) -> None:
    """`deepbore best RUN`."""
    parser = _Parser("best", "the best configuration of a run")
    print(summary(_run(parser, args).record))


def plot(args: Sequence[str]) -> None:
    """`deepbore plot RUN`."""
    run = _run(_Parser("plot", "a picture of a run: RUN/history.png"), args)
    record = run.record
    from deepbore.plots.history_chart import history

    target = run.beside("history.png")
    history(record, title=run.name, path=target)
    print(target)


def compare(args: Sequence[str]) -> None:
    """`deepbore compare RUN RUN ...`."""
    parser = _Parser("compare", "runs beside each other; those that differ in their seed only stand together")
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run directory or a journal")
    parser.add_argument("--output", default="comparison.png", metavar="FILE", help="the picture (comparison.png)")
    given = parser.parse_args(list(args))
    from deepbore.cli.compare import grouped, table
    from deepbore.plots.history_chart import comparison

    runs = [Run(Path(each)) for each in given.runs]
    groups, direction = grouped(runs), runs[0].record.direction
    print(table(groups, direction))
    comparison(groups, direction=direction, path=given.output)
    print(given.output)


def list_runs(args: Sequence[str]) -> None:
    """`deepbore list DIR`."""
    parser = _Parser("list", "the runs in a folder")
    parser.add_argument("folder", nargs="?", default="runs", metavar="DIR", help="the folder (runs)")
    folder = Path(parser.parse_args(list(args)).folder)
    rows = [_row(run, folder) for run in runs_in(folder)]
    if not rows:
        print(f"no run in {folder}")
        return
    from deepbore.cli.compare import aligned

    print("\n".join(aligned([["run", "trials", "failed", "best", "state", "last event"], *rows])))


def report(args: Sequence[str]) -> None:
    """`deepbore report RUN`."""
    parser = _Parser("report", "a page about a run: RUN/report.html")
    parser.add_argument("run", metavar="RUN", help="a run directory or a journal")
    parser.add_argument("--quick", action="store_true", help="without the classifier: what the journal says, at once")
    parser.add_argument("--live", nargs="?", type=float, const=EVERY, metavar="S", help=_LIVE)
    given = parser.parse_args(list(args))
    _write(Run(Path(given.run)), quick=given.quick, every=_checked(given.live))


def watch(args: Sequence[str]) -> None:
    """`deepbore watch RUN`."""
    parser = _Parser("watch", "a page about a run that goes on: RUN/report.html")
    parser.add_argument("run", metavar="RUN", help="a run directory or a journal")
    parser.add_argument("--every", type=float, default=EVERY, metavar="S", help=_LIVE)
    parser.add_argument("--quick", action="store_true", help="without the classifier")
    given = parser.parse_args(list(args))
    _write(Run(Path(given.run)), quick=given.quick, every=_checked(given.every))


_LIVE = f"seconds from one look to the next ({EVERY:g}); ends with the run, or by Ctrl-C"
COMMANDS: dict[str, Callable[[Sequence[str]], None]] = {
    "best": best,
    "plot": plot,
    "compare": compare,
    "list": list_runs,
    "report": report,
    "watch": watch,
}


# --- within ----------------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints are errors of ours."""

    def __init__(self, command: str, says: str):
        super().__init__(prog=f"deepbore {command}", description=says, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise SettingError(f"{message}\n{self.format_usage().strip()}")


def _run(parser: _Parser, args: Sequence[str]) -> Run:
    parser.add_argument("run", metavar="RUN", help="a run directory or a journal")
    return Run(Path(parser.parse_args(list(args)).run))


def _checked(every: float | None) -> float | None:
    if every is not None and not 0 < every < math.inf:
        raise SettingError(f"seconds between two looks must be above 0, but got {every:g}.")
    return every


def _row(run: Run, folder: Path) -> list[str]:
    """A line about a run, or about why there is none."""
    name = str(run.path.relative_to(folder)) if run.path != folder else run.name
    try:
        record = run.record
        told = [trial for trial in record.trials if trial.status is not Status.PENDING]
        if record.k > 1:
            found = f"{len(front(record.trials, record.directions))} on the front"
        else:
            found = "-" if record.best is None else f"{record.best.value:.6g}"
        failed = sum(trial.status is Status.FAILED for trial in told)
        return [name, str(len(told)), str(failed), found, run.state, f"{ago(run.last_event)} ago"]
    except DeepBoreError as error:
        return [name, "-", "-", "-", "damaged" if isinstance(error, JournalError) else "unreadable", ""]


def _write(run: Run, *, quick: bool, every: float | None) -> None:
    """Writes the page of a run, once or as long as the run goes on."""
    from deepbore.cli.report import write_report

    target = run.beside("report.html")
    seen: float | None = None
    while True:
        fresh = Run(run.path)
        going_on = every is not None and fresh.is_locked is not False
        if seen != fresh.last_event or not going_on:
            seen = fresh.last_event
            write_report(fresh, target, quick=quick, every=every if going_on else None)
        if not going_on or every is None:
            break
        time.sleep(every)
    print(target)
