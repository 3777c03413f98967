"""The command `deepbore` itself: its version, and pipes that break."""

import os
import subprocess
import sys

import pytest

from deepbore.cli import looking
from deepbore.cli.main import main


@pytest.mark.parametrize("args", [["--help"], ["fit", "--help"]])
def test_a_reader_that_has_seen_enough_is_no_error(args):
    reader, writer = os.pipe()
    os.close(reader)  # as `| head` does
    command = [sys.executable, "-m", "deepbore.cli", *args]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=300, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_pipe_that_breaks_elsewhere_is_an_error(monkeypatch):
    def breaking(args):
        raise BrokenPipeError("of a worker")

    monkeypatch.setitem(looking.COMMANDS, "best", breaking)
    with pytest.raises(BrokenPipeError, match="of a worker"):
        main(["best", "run"])


# regression: this was wrong once
def test_the_package_is_a_command_and_says_its_version():
    done = subprocess.run(
        [sys.executable, "-m", "deepbore", "--version"], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.startswith("deepbore 0.")
