"""`alone`: a test in a process of its own, where a crash of an engine is a failed test and not the end of pytest."""

import os
import signal
import subprocess
import sys
import tempfile
from functools import wraps
from pathlib import Path

import pytest

import forked
from processes import is_gone

SECONDS = 300  # of a test; after twice as many pytest ends it, and with it all that its process had to do
SKIPPED = 77  # automake's exit status of a skipped test

CODE = f"""
import sys
from pathlib import PosixPath
import pytest
from {{module}} import {{name}} as test
try:
    test.__wrapped__(**{{given!r}})
except pytest.skip.Exception as skipped:
    print(skipped)
    sys.exit({SKIPPED})
"""


def alone(test):
    """A test that runs in a process and session of its own, by arguments with a `repr`, such as `tmp_path`.

    It fails if its process ends by anything but success, or if a process of its session is left: Ray and dask start
    their nodes and workers there.
    """

    @wraps(test)
    def start(**given):
        env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # workers import the file, too
        code = CODE.format(module=test.__module__, name=test.__name__, given=given)
        with tempfile.TemporaryFile("w+") as shown:  # a pipe would be held open by what is left
            streams = {"stdout": shown, "stderr": subprocess.STDOUT}
            process = forked.Popen([sys.executable, "-c", code], env=env, start_new_session=True, **streams)
            try:
                status = process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                status = f"no end within {SECONDS} s"
            left = [name for pid, name in session(process.pid) if not is_gone(pid, 30)]
            end(process)
            shown.seek(0)
            if status == SKIPPED:
                pytest.skip(shown.read()[-500:])
            assert (status, left) == (0, []), shown.read()[-5000:]

    return start


def session(leader):
    """(id, name) of the processes of a session."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, tail = path.read_text().rpartition(")")
        except OSError:  # it has ended
            continue
        if int(tail.split()[3]) == leader:
            yield int(path.parent.name), head.partition("(")[2]


def end(process):
    """Kills a process and what is left of its session."""
    for pid, _ in session(process.pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait()
