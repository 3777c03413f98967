"""Commands of `deepbore`, in this process and in others."""

import subprocess
import sys
from dataclasses import dataclass

BRANIN = """
problem: {class_path: deepbore.problems.Branin}
loop: {n_trials: 14}
"""


@dataclass
class Done:
    """What a command that ran in this process has left."""

    returncode: int
    stdout: str
    stderr: str


def deepbore(*args, cwd):
    """Runs a command in a process of its own."""
    command = [sys.executable, "-m", "deepbore.cli", *map(str, args)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)
