"""What type checkers see of a program of a user's, under mypy and pyright, as strict as they can be."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from processes import ROOT

HERE = Path(__file__).parent
RIGHT, WRONG = HERE / "users_program.py", HERE / "mistaken_program.py"
MISTAKES = {number for number, line in enumerate(WRONG.read_text().splitlines(), 1) if re.search(r"\)?  # \w", line)}
ENV = os.environ | {"PYTHONPATH": str(ROOT), "MYPYPATH": str(ROOT)}
PYRIGHT = Path(sys.executable).with_name("basedpyright")  # pyright with its JavaScript in a wheel


def by_mypy(tmp_path):
    """File -> lines with an error of mypy."""
    options = ["--strict", "--enable-error-code=deprecated", "--follow-imports=silent", "--disallow-any-unimported"]
    command = [sys.executable, "-m", "mypy", *options, "--cache-dir", tmp_path / "cache", RIGHT, WRONG]
    done = subprocess.run(command, cwd=tmp_path, env=ENV, capture_output=True, text=True, check=False)
    said = re.findall(r"^(.*?):(\d+): error: (.*)$", done.stdout, re.MULTILINE)
    return [(Path(name).name, int(line), text) for name, line, text in said]


def by_pyright(tmp_path):
    """File -> lines with an error of pyright, or with a former name."""
    settings = {"include": [str(RIGHT), str(WRONG)], "extraPaths": [str(ROOT)], "typeCheckingMode": "strict"}
    settings |= {"reportDeprecated": "error", "pythonVersion": "3.11", "reportMissingModuleSource": "none"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [PYRIGHT, "--outputjson", "--pythonpath", sys.executable, "--project", tmp_path]
    done = subprocess.run(command, cwd=tmp_path, env=ENV, capture_output=True, text=True, check=False)
    said = json.loads(done.stdout)["generalDiagnostics"]
    return [
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1, each["message"])
        for each in said
        if each["severity"] == "error"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("check", [by_mypy, by_pyright])
def test_a_program_is_typed_through_and_its_mistakes_are_found(check, tmp_path):
    if check is by_pyright and shutil.which(PYRIGHT) is None:
        pytest.skip("there is no basedpyright")
    found = check(tmp_path)
    assert [each for each in found if each[0] == RIGHT.name] == []
    assert {line for name, line, _ in found if name == WRONG.name} == MISTAKES


def test_the_program_runs_as_far_as_it_defines_something(tmp_path, monkeypatch):
    text = RIGHT.read_text().partition("result = minimize")[0]
    assert 80 <= len(RIGHT.read_text().splitlines()) <= 120
    names = {"__name__": "users_program"}
    exec(compile(text, str(RIGHT), "exec"), names)
    params = {"lr": 0.5, "units": 8, "act": "relu"}
    assert names["plain"](params) == 0.25
    assert names["by_names"](**params) == 16
    assert names["two_values"](params) == {"loss": 0.5, "size": 8.0}
