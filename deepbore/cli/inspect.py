"""The commands that read runs: their best trials, pictures, lists and pages.

They change no run, import no module of the user's, and need no torch, except for the classifier's part of a page.
"""

import argparse
import logging
import math
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from deepbore.data.inbox import Inbox
from deepbore.data.journal import refuse_link, replace_file
from deepbore.data.runs import Run, ago, runs_in
from deepbore.data.trial import LATEST, Status, Trial
from deepbore.errors import DeepBoreError, JournalError, SettingError
from deepbore.text import visible
from deepbore.validation import as_path

if TYPE_CHECKING:
    from deepbore.data.ledger import Ledger
    from deepbore.study import Study

EVERY = 5.0  # seconds between two looks at a run
SOON = 3.0  # seconds after which an open page is reloaded for the classifier's part
LONGEST_REASON = 300  # characters of why a page is without the classifier
FRONT = 10  # trials of several objectives that are shown
log = logging.getLogger(__name__)


def best(args: Sequence[str]) -> None:
    """`deepbore best RUN`."""
    parser = Parser("best", "the best configuration of a run")
    print(summary(_run(parser, args).record))


def summarise(args: Sequence[str]) -> None:
    """`deepbore summary RUN`."""
    print(_in_ten_lines(_run(Parser("summary", "a run in ten lines"), args)))


def plot(args: Sequence[str]) -> None:
    """`deepbore plot RUN`."""
    run = _run(Parser("plot", "a picture of a run: RUN/history.png"), args)
    record = run.record
    from deepbore.plots.history_chart import history

    target = run.beside("history.png")
    history(record, title=run.name, path=target)
    print(visible(str(target)))


def compare(args: Sequence[str]) -> None:
    """`deepbore compare RUN RUN ...`."""
    parser = Parser("compare", "compares runs; those that differ in their seed only are grouped")
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run directory or a journal")
    parser.add_argument("--output", default="comparison.png", metavar="FILE", help="the picture (comparison.png)")
    given = parser.parse_args(list(args))
    from deepbore.cli.compare import grouped, table
    from deepbore.plots.history_chart import comparison

    runs = [Run.named(each) for each in given.runs]
    groups, direction = grouped(runs), runs[0].record.direction
    print(table(groups, direction))
    comparison(groups, direction=direction, path=given.output)
    print(given.output)


def list_runs(args: Sequence[str]) -> None:
    """`deepbore list DIR`."""
    parser = Parser("list", "the runs in a folder")
    parser.add_argument("folder", nargs="?", default="runs", metavar="DIR", help="the folder (runs)")
    folder = as_path(parser.parse_args(list(args)).folder, "a folder of runs")
    rows = [_row(run, folder) for run in runs_in(folder)]
    if not rows:
        print(f"no run in {visible(str(folder))}")
        return
    from deepbore.cli.compare import aligned

    head = ["run", "trials", "failed", "withdrawn", "best", "state", "last event"]
    if all(row[3] in ("0", "-") for row in rows):
        head, *rows = [each[:3] + each[4:] for each in (head, *rows)]
    print("\n".join(aligned([head, *rows])))


def report(args: Sequence[str]) -> None:
    """`deepbore report RUN ...`."""
    parser = Parser("report", "a page about a run: RUN/report.html; of several runs beside each other: runs.html")
    _add_runs(parser)
    parser.add_argument("--quick", action="store_true", help="without the classifier: what the journal says, at once")
    parser.add_argument("--live", nargs="?", type=float, const=EVERY, metavar="S", help=_LIVE)
    given = parser.parse_args(list(args))
    _write(given.runs, given.output, quick=given.quick, every=_checked(given.live))


def watch(args: Sequence[str]) -> None:
    """`deepbore watch RUN ...`."""
    parser = Parser("watch", "a page about a running run: RUN/report.html; of several: runs.html")
    _add_runs(parser)
    parser.add_argument("--every", type=float, default=EVERY, metavar="S", help=_LIVE)
    parser.add_argument("--quick", action="store_true", help="without the classifier")
    given = parser.parse_args(list(args))
    _write(given.runs, given.output, quick=given.quick, every=_checked(given.every))


_LIVE = f"seconds from one look to the next ({EVERY:g}); ends with the run, or by Ctrl-C"
COMMANDS: dict[str, Callable[[Sequence[str]], None]] = {
    "best": best,
    "summary": summarise,
    "plot": plot,
    "compare": compare,
    "list": list_runs,
    "report": report,
    "watch": watch,
}


# --- parsing ----------------------------------------------------------------------------------------------------------


class Parser(argparse.ArgumentParser):
    """A parser that raises SettingError."""

    def __init__(self, command: str, says: str):
        super().__init__(prog=f"deepbore {command}", description=says, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise SettingError(f"{message}\n{self.format_usage().strip()}")


def _run(parser: Parser, args: Sequence[str]) -> Run:
    parser.add_argument("run", metavar="RUN", help="a run directory or a journal")
    return Run.named(parser.parse_args(list(args)).run)


def _add_runs(parser: Parser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run directory or a journal")
    parser.add_argument("--output", metavar="FILE", help="the page (RUN/report.html; of several runs runs.html)")


def _checked(every: float | None) -> float | None:
    if every is not None and not 0 < every < math.inf:
        raise SettingError(f"seconds between two looks must be above 0, but got {every:g}.")
    return every


# --- a run in a few lines ---------------------------------------------------------------------------------------------


def summary(
    run: "Ledger", optimum: float | None = None, recommended: Trial | None = None, n_left: float = math.inf
) -> str:
    """The best of a run, in a few lines.

    Args:
        run: what it knows.
        optimum: the best possible value; None if it is unknown.
        recommended: `study.recommended`, which is shown unless it is the best trial; None to leave it out.
        n_left: how many configurations are left; infinite where that is unknown.
    """
    statuses = run.status.tolist()
    parts = [f"{len(statuses)} trials"]
    others = (Status.FAILED, Status.PRUNED, Status.PENDING, Status.WITHDRAWN)
    parts += [f"{n} {status}" for status in others if (n := statuses.count(status))]
    if n_left == 0:
        parts.append("every configuration of the space")
    counts = ", ".join(parts)
    if len(run.directions) > 1:
        return "\n".join(_of_several(run, counts))
    best = run.best
    if best is None or best.value is None:
        return _no_value(run, counts)
    regret = "" if optimum is None else f", {abs(best.value - optimum):.3g} from the optimum"
    named = f"best {visible(names[0])}" if (names := _names(run)) else "best value"
    lines = [f"{named} {best.value:.8g} in trial {best.id} ({counts}{regret})"]
    lines += _configuration(best)
    if best.suspicious:
        lines.append(f"  suspicious: {visible(str(best.suspicious))}")
    if recommended is not None and recommended.id != best.id:
        lines.append(f"recommended if values are noisy: trial {recommended.id}, value {recommended.value:.8g}")
        lines += _configuration(recommended)
    return "\n".join(lines)


def _names(run: "Ledger") -> list[str]:
    """The names of the objectives; empty where they have none."""
    return [str(name) for name in run.header.get("objectives") or ()]


def _of_several(run: "Ledger", counts: str) -> list[str]:
    best = run.front
    if not best:
        return [_no_value(run, counts)]
    some = "" if len(best) <= FRONT else ", of which some are shown"
    lines = [f"{len(best)} trials that no other beats in every value ({counts}){some}"]
    for trial in best[:: math.ceil(len(best) / FRONT)]:
        names = [f"{visible(name)} " for name in _names(run)] or [""] * len(run.directions)
        values = [f"{name}{value:.8g}" for name, value in zip(names, trial.values or (), strict=False)]
        lines.append(f"trial {trial.id}: {', '.join(values)}")
        lines += _configuration(trial)
    return lines


def _no_value(run: "Ledger", counts: str) -> str:
    """A line without a best trial, and whether constraints are the reason."""
    has_one = bool(((run.status == Status.COMPLETE) & (run.tasks == 0)).any())
    return f"no {'feasible ' if has_one else ''}value yet ({counts})"


def _configuration(trial: Trial) -> list[str]:
    return [f"  {visible(f'{name}: {value}')}" for name, value in trial.params.items()]


def _row(run: Run, folder: Path) -> list[str]:
    """The cells of a run in the list, or of one that can't be read."""
    name = str(run.path.relative_to(folder)) if run.path != folder else run.name
    try:
        record = run.record
        told = [trial for trial in record.trials if trial.status is not Status.PENDING]
        if record.k > 1:
            found = f"{len(record.front)} on the front"
        else:
            found = "-" if record.best is None else f"{record.best.value:.6g}"
        n = [str(sum(each.status is status for each in told)) for status in (Status.FAILED, Status.WITHDRAWN)]
        return [name, str(len(told)), *n, found, run.state, f"{ago(run.last_event)} ago"]
    except DeepBoreError as error:
        return [name, "-", "-", "-", "-", "damaged" if isinstance(error, JournalError) else "unreadable", ""]


# --- the page of a run ------------------------------------------------------------------------------------------------


def _write(paths: Sequence[str], output: str | None, *, quick: bool, every: float | None) -> None:
    """Writes the page of a run, or of several, once or for as long as one is running."""
    runs = [Run.named(each) for each in paths]
    several = len(runs) > 1
    target = as_path(output, "a page") if output else Path("runs.html") if several else runs[0].beside("report.html")
    seen: list[float] = []
    while True:
        fresh = [Run(run.path) for run in runs]
        is_running = every is not None and any(run.is_locked is not False for run in fresh)
        if seen != (now := [run.last_change for run in fresh]) or not is_running:
            seen, again = now, every if is_running else None
            if several:
                _write_several(fresh, target, every=again)
            else:
                write_report(fresh[0], target, quick=quick, every=again)
        if not is_running or every is None:
            break
        time.sleep(every)
    print(visible(str(target)))
    if not several and every is None:
        print(_in_ten_lines(fresh[0]), file=sys.stderr)  # the page alone is what other programs want


def _in_ten_lines(run: Run) -> str:
    """What was found, what limits the run, and what to do next."""
    from deepbore.data.summary import summary_of

    record = run.record
    return str(summary_of(record, record.header.get("space") or {}, _names(record)))


def _write_several(runs: Sequence[Run], target: Path, *, every: float | None) -> None:
    """Writes the page of several runs."""
    from deepbore.cli.compare import check_directions
    from deepbore.plots.page.several import NamedRun, report_of_several
    from deepbore.plots.timeline_chart import spans_of

    check_directions(runs)
    names = [run.name for run in runs]
    shown = [
        NamedRun(
            name if names.count(name) == 1 else str(run.path),
            run.record,
            spans_of(run.record, _times(run)),
            {"state": run.state, "last event": f"{ago(run.last_event)} ago"},
        )
        for name, run in zip(names, runs, strict=True)
    ]
    replace_file(target, report_of_several(shown, every=every).encode(errors="replace"))


def _times(run: Run) -> Path:
    return refuse_link(run.journal.with_name(f"{run.journal.name}.times"))


def write_report(run: Run, target: Path, *, quick: bool = False, every: float | None = None) -> None:
    """Writes the page, at first without the classifier, which takes seconds to import and to train.

    Args:
        run: the run.
        target: where to.
        quick: whether the classifier is left out.
        every: seconds after which the page reloads itself; None for never.
    """
    last = datetime.fromtimestamp(min(run.last_event, LATEST)).astimezone()  # clocks may be anywhere
    facts = {"state": run.state, "last event": f"{last:%Y-%m-%d %H:%M:%S}"}
    times, inbox, text = _times(run), Inbox(run.journal, None), run.configuration

    from deepbore.plots.page.page import report

    def write(shown: "Ledger | Study", again: float | None) -> None:
        page = report(shown, title=run.name, facts=facts, configuration=text, times=times, every=again, inbox=inbox)
        replace_file(target, page.encode(errors="replace"))  # a reason may hold a file name that is no text

    if quick or every is None or not target.exists():  # later the former page stays until the new one is complete
        write(run.record, every if quick else every or SOON)
    if quick:
        return
    from deepbore.cli.load import load_run  # torch and Lightning

    try:
        study = load_run(run.path)
        study.fit()
        write(study, every)
    except Exception as error:  # any error of a classifier: the rest of the page stays
        log.warning("the page is without the classifier: %s", error)
        facts["learned"] = f"not shown: {error}".partition("\n")[0][:LONGEST_REASON]
        write(run.record, every)
