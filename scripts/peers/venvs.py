#!/usr/bin/env python
"""Virtual environments for peers whose packages fight with deepbore's.

    .venv/bin/python scripts/peers/venvs.py          # makes them all, if they are missing
    .venv/bin/python scripts/peers/venvs.py hebo     # this one

Each has the packages of `requirements-NAME.txt`, pinned, in `.venvs/NAME`. What these don't bring, torch above all, it
takes from the environment that runs this script: torch alone is gigabytes.
"""

import importlib.util
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from filelock import FileLock

HERE = Path(__file__).parent


def python(name: str) -> Path:
    """The interpreter of an environment, made now if it is missing or out of date; once, whoever else is making it.

    Raises:
        SystemExit: where the environment that runs this has no torch to lend.
        CalledProcessError: if its packages can't be installed.
    """
    if importlib.util.find_spec("torch") is None:
        raise SystemExit(f"{sys.executable} has no torch, which peers take from it: run .venv/bin/python.")
    folder, requirements = HERE / ".venvs" / name, HERE / f"requirements-{name}.txt"
    interpreter, stamp = folder / "bin" / "python", folder / "installed-from"
    lent = sysconfig.get_paths()["purelib"] + "\n"
    wanted = requirements.read_text() + lent
    if stamp.exists() and stamp.read_text() == wanted:
        return interpreter
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        if not (stamp.exists() and stamp.read_text() == wanted):  # another process may have made it meanwhile
            make(folder, requirements, lent)
            stamp.write_text(wanted)
    return interpreter


def make(folder: Path, requirements: Path, lent: str) -> None:
    """An environment with the pinned packages, after which come those of a folder that is lent."""
    print(f"installing {requirements.name} into {folder}", file=sys.stderr)
    venv.create(folder, clear=True, with_pip=True)
    quiet = ["--quiet", "--disable-pip-version-check"]
    install = [folder / "bin" / "python", "-m", "pip", "install", *quiet, "--no-deps", "--requirement", requirements]
    subprocess.run(install, check=True, stdout=sys.stderr)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "zz-shared.pth").write_text(lent)  # comes after its own packages


if __name__ == "__main__":
    for chosen in sys.argv[1:] or sorted(path.stem.split("-", 1)[1] for path in HERE.glob("requirements-*.txt")):
        print(python(chosen))
