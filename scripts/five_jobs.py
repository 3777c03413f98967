"""Five jobs that people come with, done as the documentation says in a fresh environment with the wheel, and timed.

    python scripts/five_jobs.py docs/results/five_jobs.json
    python scripts/five_jobs.py docs/results/five_jobs.json --show

The environment has the wheel of this tree and, of the environment that runs this, the packages that it needs (torch
alone is gigabytes), but no deepbore from there. What is run are the files of `examples/`, copied, by the commands that
docs/examples.md has, and it is looked at what each must have done. A time has all imports in it.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
MINUTES = 600  # seconds after which a command has failed
ALONE = "import deepbore, pathlib, sys; assert pathlib.Path(deepbore.__file__).is_relative_to(sys.prefix)"
CLEAN = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
Shell = Callable[..., str]


def environment(folder: Path) -> Path:
    """The programs of a fresh environment with the wheel."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "wheel", ROOT, "--no-deps", "--wheel-dir", folder], check=True, env=CLEAN)
    venv.create(folder / "env", with_pip=False)
    programs = folder / "env" / "bin"
    (wheel,) = folder.glob("deepbore-*.whl")
    into = ["--python", programs / "python", "install", "--no-deps", "--no-index", wheel]
    subprocess.run([*pip, *into], check=True, env=CLEAN)
    (packages,) = (folder / "env").glob("lib/python*/site-packages")
    (packages / "lent.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return programs


def lightning_module(run: Shell, _folder: Path) -> None:
    """A LightningModule, pruned, on two workers."""
    said = run("python pruned_training.py --trials 16 --workers 2")
    assert re.search(r"16 trials, \d+ pruned", said), said


def lightning_cli(run: Shell, folder: Path) -> None:
    """A LightningCLI program, as it is."""
    os.chdir(folder / "tune_lightningcli")
    run("deepbore tune --config fit.yaml --space space.yaml --metric val_loss --n_trials 12 --evaluation.workers 2")
    assert "model.lr" in run("deepbore best runs/tune-1")


def pipeline(run: Shell, _folder: Path) -> None:
    """A scikit-learn pipeline with conditions."""
    said = run("python pipeline.py --trials 25")
    assert float(re.search(r"unseen rows (\S+)", said)[1]) > 0.9, said


def yaml_run(run: Shell, folder: Path) -> None:
    """A YAML run, killed and resumed."""
    os.chdir(folder / "yaml_run")
    killed = run("deepbore fit --config run.yaml --run mine", killed_after=Path("mine/journal.jsonl"))
    assert "kept in" not in killed
    assert "stopped" in run("deepbore list .")
    assert "(40 trials" in run("deepbore fit --resume mine")
    assert "finished" in run("deepbore list .")


def from_optuna(run: Shell, folder: Path) -> None:
    """An Optuna script, and the same moved over."""
    os.chdir(folder / "from_optuna")
    for name in ("before", "after"):
        said = run(f"python {name}.py")
        assert float(said.split()[0]) > 0.9, said


JOBS = (lightning_module, lightning_cli, pipeline, yaml_run, from_optuna)


def shell(programs: Path) -> Shell:
    """Function that runs a command line in the environment, and gives what it prints."""
    env = CLEAN | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}

    def run(line: str, killed_after: Path | None = None) -> str:
        begun = {"env": env, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(shlex.split(line), start_new_session=True, **begun)
        if killed_after is not None:
            ended = time.monotonic() + MINUTES
            while time.monotonic() < ended and _told(killed_after) < 15:
                time.sleep(0.05)
            os.killpg(process.pid, signal.SIGKILL)
        out, errors = process.communicate(timeout=MINUTES)
        assert process.returncode == (0 if killed_after is None else -signal.SIGKILL), f"{line}\n{out}\n{errors}"
        return out

    return run


def _told(journal: Path) -> int:
    return journal.read_text().count('"told"') if journal.exists() else 0


def measured(jobs: tuple[Callable[[Shell, Path], None], ...] = JOBS) -> dict[str, Any]:
    """The seconds of each job."""
    took = {}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = shell(environment(folder))
        for job in jobs:
            shutil.copytree(ROOT / "examples", folder / job.__name__)
            os.chdir(folder / job.__name__)
            run(f"python -c {shlex.quote(ALONE)}")
            start = time.perf_counter()
            job(run, folder / job.__name__)
            took[job.__doc__.strip(".")] = round(time.perf_counter() - start, 1)
            os.chdir(before)
    return {"python": sys.version.split()[0], "cores": len(os.sched_getaffinity(0)), "seconds": took}


def table(found: dict[str, Any]) -> str:
    """The times in Markdown."""
    rows = [f"| {job} | {seconds:.0f} s |" for job, seconds in found["seconds"].items()]
    return "\n".join(["| job | took |", "|---|---|", *rows])


def main() -> None:
    """Measures, or shows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    output = given.output.resolve()
    if not given.show:
        output.write_text(json.dumps(measured(), indent=1, ensure_ascii=False) + "\n")
    print(table(json.loads(output.read_text())))


if __name__ == "__main__":
    main()
