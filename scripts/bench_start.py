"""What a start costs: CPU and memory of imports, of a first and a fitted `ask`, and of looking at a run.

Each is a process of its own, with one thread, whose byte code is compiled already; of several repetitions the least CPU
counts, as whatever else the machine does only adds to it. With --base, a checkout of another version is measured beside
this one, in turns.

    python scripts/bench_start.py --base ../deepbore-0.2
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULT = ROOT / "docs" / "results" / "start.json"
STUDY = """
import deepbore
study = deepbore.Study(deepbore.SearchSpace({"x": deepbore.Real(0, 1), "y": deepbore.Real(0, 1)}), n_initial=3, seed=0)
"""
OPTUNA = """
import optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.create_study(sampler=optuna.samplers.TPESampler(n_startup_trials=3, seed=0))
def ask():
    trial = study.ask()
    return trial, trial.suggest_float("x", 0, 1) + trial.suggest_float("y", 0, 1)
"""
STARTS = {
    "import torch": "import torch",
    "import deepbore": "import deepbore",
    "a space": "import deepbore; deepbore.SearchSpace({'x': deepbore.Real(0, 1)})",
    "the first ask": STUDY + "study.ask()",
    "a fitted ask": STUDY + "for _ in range(4): study.tell(*study.ask(), 1.0 + len(study.observations) % 3)",
    "minimize": "import deepbore\n"
    "deepbore.minimize(lambda p: p['x'], deepbore.SearchSpace({'x': deepbore.Real(0, 1)}), 8, n_initial=4)",
    "deepbore best RUN": "from deepbore.cli.main import main; main(['best', 'run.jsonl'])",
    "Optuna: the first ask": OPTUNA + "ask()",
    "Optuna: a fitted ask, TPE": OPTUNA + "for _ in range(4): study.tell(*ask())",
}
MEASURED = """
import json, os, resource, sys
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, len(sys.modules)]))
sys.stdout.flush()
os._exit(0)
"""


def measured(code: str, tree: Path, folder: Path) -> list[float]:
    """CPU seconds, MB and modules of a process that runs some code with the deepbore of a tree."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env |= {"PYTHONPATH": str(tree), "PYTHONPYCACHEPREFIX": str(folder / "compiled"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code + MEASURED]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=True)
    numbers: list[float] = json.loads(done.stdout.splitlines()[-1])
    return numbers


def compared(trees: dict[str, Path], repetitions: int) -> dict[str, Any]:
    """The least CPU, and memory and modules, of each start with each version."""
    rows: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = STUDY.replace("seed=0", "seed=0, journal='run.jsonl'") + "study.tell(*study.ask(), 1.0)"
        measured(run, next(iter(trees.values())), folder)
        for repetition in range(repetitions + 1):  # the first compiles
            for start, code in STARTS.items():
                for version, tree in trees.items():
                    seconds, *rest = measured(code, tree, folder)
                    if repetition:
                        least = min(seconds, rows.setdefault(start, {}).get(version, [seconds])[0])
                        rows[start][version] = [round(least, 3), *map(round, rest)]
    return rows


def table(rows: dict[str, Any], versions: list[str]) -> str:
    """The rows as a table in Markdown; CPU also in units of `import torch`."""
    lines = [f"| start | {' | '.join(f'{version}: CPU s (of torch), MB' for version in versions)} |"]
    lines += [f"|---|{'---|' * len(versions)}"]
    for start, of in rows.items():
        torch = {version: rows["import torch"][version][0] for version in versions}
        cells = [f"{of[each][0]:.2f} ({of[each][0] / torch[each]:.2f}), {of[each][1]}" for each in versions]
        lines += [f"| {start} | {' | '.join(cells)} |"]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, help="the checkout of another version")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--write", action="store_true", help=f"keep the result in {RESULT.relative_to(ROOT)}")
    given = parser.parse_args()
    trees = {"this": ROOT} | ({"base": given.base.resolve()} if given.base else {})
    rows = compared(trees, given.repetitions)
    if given.write:
        RESULT.write_text(json.dumps(rows, indent=1) + "\n")
    print(table(rows, list(trees)))


if __name__ == "__main__":
    main()
