"""Commands of `deepbore`, in this process and in others."""

import os
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import forked
from deepbore import __file__ as package

BRANIN = """
problem: {class_path: deepbore.problems.Branin}
loop: {n_trials: 14}
"""
SQUARED_AT_HOME = {
    "problem": {
        "class_path": "deepbore.problems.FunctionProblem",
        "init_args": {"function": "objective_at_home.squared", "space": {"x": {"type": "real", "low": 0, "high": 1}}},
    },
    "loop": {"n_trials": 3, "n_initial": 3},
}
LAUNCHERS = {
    "lightning": [sys.executable, "-m"],
    "torchrun": [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "--"],
}


@dataclass
class Done:
    """What a command that ran in this process has left."""

    returncode: int
    stdout: str
    stderr: str


def deepbore(*args, cwd, flags=()):
    """Runs a command in a process of its own; in a cold one if there are flags of Python's."""
    command = [sys.executable, *flags, "-m", "deepbore.cli", *map(str, args)]
    return (subprocess if flags else forked).run(
        command, cwd=cwd, capture_output=True, text=True, timeout=300, check=False
    )


def on_ranks_of(launcher, folder, *args, cold=False):
    """Runs a command in a folder, in as many processes as the launcher starts."""
    env = os.environ | {"PYTHONPATH": str(Path(package).parents[1])}  # the package under test
    command = [*LAUNCHERS[launcher], "deepbore.cli", *args]
    run = subprocess.run if cold else partial(forked.run, launcher=True)
    return run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=180, check=False)
