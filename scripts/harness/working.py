"""Jobs to rows, with a line that says how far it is."""

import signal
import sys
import time
from collections.abc import Callable, Sequence

from harness.pool import AnyJob, Row, finished


def work(
    jobs: Sequence[AnyJob],
    processes: int | None,
    run: Callable[[AnyJob], Row],
    keep: Callable[[AnyJob, Row], None],
    name: Callable[[AnyJob], str],
) -> int:
    """Runs the jobs and keeps each row as soon as it is there; says on stderr which ones failed.

    Args:
        jobs, processes, run: as `pool.finished` takes them.
        keep: what becomes of a row.
        name: of a job, for the message that it failed.

    Returns:
        How many failed.

    Raises:
        KeyboardInterrupt: by Ctrl-C or SIGTERM; no process is left behind.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    failures, started = 0, time.monotonic()
    try:
        for count, (job, row) in enumerate(finished(jobs, processes, run), 1):
            if isinstance(row, str):
                failures += 1
                print(f"\n{name(job)}: {row}", file=sys.stderr)
            else:
                keep(job, row)
            print(progress(started, count, len(jobs), failures), end="", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from here", file=sys.stderr)
        raise
    print(file=sys.stderr)
    return failures


def progress(started: float, count: int, total: int, failures: int) -> str:
    """How far it is, and when it will end."""
    minutes = (time.monotonic() - started) / count * (total - count) / 60
    return f"\r{count} of {total} runs, {failures} failed, {minutes:.0f} min left "
