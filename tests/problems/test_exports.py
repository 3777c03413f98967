"""Exports of the room: benchmarks are imported when they are named, also by `deepbore fit`."""

import subprocess
import sys

import pytest

from deepbore import problems

LOADED = "print(any(name.startswith('deepbore.problems.benchmarks.') for name in sys.modules))"
FUNCTION = """
from deepbore.cli.run_cli import RunCLI
FUNCTION = {"function": "math.fsum", "space": {"x": {"type": "real", "low": 0, "high": 1}}}
PROBLEM = {"class_path": "deepbore.problems.FunctionProblem", "init_args": FUNCTION}
RunCLI(["--problem", json.dumps(PROBLEM)])
"""
SHORT = """
cli = RunCLI(["--problem", "Branin"])
print(cli.config.problem.class_path)
"""


def test_every_export_is_there_and_a_wrong_one_is_refused():
    assert all(getattr(problems, name) is not None for name in problems.__all__)
    with pytest.raises(AttributeError, match="Branni"):
        _ = problems.Branni


def test_a_function_as_a_problem_imports_no_benchmark_and_a_benchmark_needs_no_module():
    code = f"import json, sys{FUNCTION}{LOADED}{SHORT}{LOADED}"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "deepbore.problems.Branin", "True"]
