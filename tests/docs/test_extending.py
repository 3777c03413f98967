"""Parts from outside: a little package, installed by pip, whose files are the code of docs/extending.md."""

import os
import re
import sys
from pathlib import Path

import pytest

import forked
from processes import ROOT

PACKAGE = ROOT / "tests" / "plugin_package"
PAGE = ROOT / "docs" / "extending.md"
PARTS = {path.name for path in (PACKAGE / "deepbore_toys").glob("*.py")} - {"__init__.py"}


def run(*command, cwd, path=""):
    """Runs a command of this Python's, with a folder to import from."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(path), str(ROOT)])}
    command = [sys.executable, "-m", *map(str, command)]
    done = forked.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder that pip has installed the package into, from a copy without anything built."""
    pytest.importorskip("setuptools")
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("installed")
    for file in [PACKAGE / "pyproject.toml", *(PACKAGE / "deepbore_toys").glob("*.py")]:
        copy = source / file.relative_to(PACKAGE)
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(file.read_bytes())
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    run("pip", "install", *offline, "--target", target, source, cwd=source)
    return target


@pytest.mark.slow
def test_a_package_from_outside_passes_its_own_tests(installed, tmp_path):
    """Each part keeps its contract, and a run is made of them all; nothing of deepbore is changed for it."""
    (tmp_path / "test_toys.py").write_bytes((PACKAGE / "tests" / "test_toys.py").read_bytes())  # away from our settings
    said = run("pytest", "test_toys.py", "-p", "no:cacheprovider", cwd=tmp_path, path=installed)
    assert re.search(r"\d+ passed", said)
    assert "failed" not in said


@pytest.mark.slow
def test_parts_from_outside_are_named_in_a_configuration(installed, tmp_path):
    """By their class_path, like those of deepbore."""
    (tmp_path / "mine.yaml").write_text(
        "problem: {class_path: deepbore.problems.Branin}\n"
        "model: {class_path: deepbore_toys.smoother.KernelSmoother, init_args: {width: 0.2}}\n"
        "evaluator: {class_path: deepbore_toys.jobs.JobEvaluator, init_args: {workers: 3}}\n"
        "loop:\n"
        "  n_trials: 3\n"
        "  n_initial: 2\n"
        "  acquisition: {class_path: deepbore_toys.improvement.ProbabilityOfImprovement}\n"
    )
    run("deepbore.cli", "fit", "--config", "mine.yaml", "--run", "here", cwd=tmp_path, path=installed)
    kept = (tmp_path / "here" / "config.yaml").read_text()
    assert all(name in kept for name in ("KernelSmoother", "ProbabilityOfImprovement", "JobEvaluator"))
    told = [line for line in (tmp_path / "here" / "journal.jsonl").read_text().splitlines() if '"told"' in line]
    assert len(told) == 3


@pytest.mark.slow
def test_a_strategy_from_outside_is_named_in_a_configuration(installed, tmp_path):
    """As the page has it; the journal names it, and the run is longer when it is resumed."""
    loop = re.search(r"```yaml\n(loop:.*?)```", PAGE.read_text(), re.DOTALL)[1]
    (tmp_path / "mine.yaml").write_text(f"problem: {{class_path: deepbore.problems.Branin}}\n{loop}")
    small = ["--loop.n_initial", "4", "--loop.n_trials"]
    run("deepbore.cli", "fit", "--config", "mine.yaml", "--run", "here", *small, "6", cwd=tmp_path, path=installed)
    run("deepbore.cli", "fit", "--resume", "here", "--loop.n_trials", "8", cwd=tmp_path, path=installed)
    lines = (tmp_path / "here" / "journal.jsonl").read_text().splitlines()
    assert '"class_path": "deepbore_toys.random_share.RandomShare"' in lines[0]
    assert len([line for line in lines if '"told"' in line]) == 8


def test_the_page_shows_the_code_of_the_package():
    page = PAGE.read_text()
    shown = re.findall(r'--8<-- "tests/plugin_package/(\S+)"', page)
    assert {Path(name).name for name in shown} - {"test_toys.py", "pyproject.toml"} == PARTS
    assert all((PACKAGE / name).is_file() for name in shown)


def test_the_package_touches_only_what_is_public():
    """No name with an underscore is taken from deepbore, and no file of it is reached but by import."""
    for file in PACKAGE.rglob("*.py"):
        text = file.read_text()
        assert not re.search(r"from deepbore\S* import .*\b_\w", text), file
        assert not re.search(r"deepbore[\w.]*\._\w", text.replace("__main__", "")), file
