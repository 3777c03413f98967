"""Quick tests of what touches the system, on Windows and macOS as far as they can be simulated on Linux.

`python tests/platforms/test_platforms.py windows FOLDER tests/study -x` runs others there; `... here` runs those of the
system that this is in truth, which .github/workflows/tests.yml does on Windows and macOS.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FILES = {
    "windows": """data/test_journal_writers.py data/test_notes.py data/test_running.py evaluators/test_process.py
        study/test_paths.py cli/test_config_yaml.py cli/test_run_directory.py platforms/on_windows.py""",
    "macos": """data/test_journal_writers.py data/test_running.py evaluators/test_process.py study/test_paths.py
        cli/test_run_directory.py platforms/on_macos.py""",
}
ELSEWHERE = {  # part of a test's name -> why it can't hold on that system
    "windows": {
        "unlink": "a file that is in use can't be deleted there",
        "replace-": "a file that is in use can't be replaced there",
        "link": "there are no links without a privilege",
        "pipe": "there are no pipes with names",
    },
    "macos": {},
}
ONLY_SIMULATED = ["is_simulated", "without_openmp", "gpu_without"]  # parts of names of tests
SLOW = {  # part of a test's name -> what takes so long where each worker starts anew
    "a_run_goes_on_beside": "each of its workers imports torch",
}


def simulated(system, folder, *arguments):
    """The command of a pytest on a simulated system, and its environment."""
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(f"import as_{system}\n", encoding="utf-8")
    paths = os.pathsep.join(map(str, [folder, HERE, ROOT]))
    env = {**os.environ, "PYTHONPATH": paths, "PYTHONUTF8": "0", "OMP_NUM_THREADS": "1"}
    if system == "windows":
        env["PYTHONIOENCODING"] = "cp1252"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--basetemp={folder / 'tests'}", *arguments]
    return command, env


def chosen(system, *more):
    """The arguments of a pytest that runs the files of a system, but for tests with these parts in their names."""
    names = [*ELSEWHERE[system], *more]
    wanted = ["-k", " and ".join(f"not {name}" for name in names)]
    return [*(f"tests/{name}" for name in FILES[system].split()), *wanted]


def here(*arguments):
    """The command of a pytest on this system."""
    system = {"win32": "windows", "darwin": "macos"}[sys.platform]
    return [sys.executable, "-m", "pytest", *chosen(system, *ONLY_SIMULATED), *arguments]


@pytest.mark.slow
@pytest.mark.parametrize("system", ["windows", "macos"])
def test_quick_tests_pass_there(system, tmp_path):
    command, env = simulated(system, tmp_path / system, *chosen(system, *SLOW), "-x", "--tb=short", "--timeout=300")
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, check=False)
    shown = done.stdout.decode(errors="replace")
    assert done.returncode == 0, shown[-6000:] + done.stderr.decode(errors="replace")[-2000:]
    assert int(re.search(r"(\d+) passed", shown)[1]) > 50


def test_files_that_are_chosen_are_there_and_each_part_of_a_name_is_one_of_a_test():
    for system, names in FILES.items():
        texts = [(HERE.parent / name).read_text(encoding="utf-8") for name in names.split()]
        tests = "\n".join(texts)
        assert [part for part in [*ELSEWHERE[system], *SLOW] if part.rstrip("-") not in tests] == []


if __name__ == "__main__":
    if sys.argv[1] == "here":
        sys.exit(subprocess.run(here(*sys.argv[2:]), cwd=ROOT, check=False).returncode)
    command, env = simulated(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
    sys.exit(subprocess.run(command, cwd=ROOT, env=env, check=False).returncode)
