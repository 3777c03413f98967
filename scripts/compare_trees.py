#!/usr/bin/env python
"""What a change of the code does to the results: the default method of two trees, on the same problems and seeds.

    python scripts/compare_trees.py ../before . --out docs/results/redesign_0_3.json [--rows FOLDER]

Each group runs `scripts/benchmark.py` of one tree and then of the other, one process with one thread. A run is the same
where its whole curve of best values is, to the digits that a row keeps. The rest is told by `ratio`: the regret at the
end in the second tree by that in the first, as is typical of the problems, with the interval of the signed-rank test
where there are six or more, and by `mean`, the geometric mean. `cpu` is the ratio of processor time in ask and tell.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from reporting import facts, regrets, rows
from reporting.intervals import Typical

ROOT = Path(__file__).parent.parent
MIXED = [f"bbob-mixint/f{function:02d}/i01/d05" for function in (1, 8, 15, 22)]
CONSTRAINED = [f"bbob-constrained/f{function:02d}/i01/d05" for function in (1, 20, 40)]
BRANCHES = ["branches/12x2-3", "branches/12x2-6", "branches/6x3-0", "branches/6x3-1"]
LEARNERS = ["levels/knn-cancer", "training/svm-diabetes"]
NOISY = ["noisy/branin-normal", "noisy/hartmann3-student", "noisy/hartmann6-loud", "noisy/hartmann6-cauchy"]
GROUPS = {
    "functions": "--suite functions --seeds 20 --trials 60",
    "two tables": "--problems hpolib/slice_localization nasbench201/cifar10 --seeds 20 --trials 60",
    "functions, batches of 8": "--suite functions --seeds 3 --trials 64 --workers 8",
    "branches, batches of 8": f"--problems {' '.join(BRANCHES)} --seeds 2 --trials 64 --workers 8",
    "bbob": "--suite bbob --dimensions 5 --instances 1 --seeds 1 --trials 60",
    "bbob-mixint": f"--problems {' '.join(MIXED)} --seeds 2 --trials 60",
    "bbob-constrained": f"--problems {' '.join(CONSTRAINED)} --seeds 1 --trials 40",
    "branches": f"--problems {' '.join(BRANCHES)} --seeds 1 --trials 60",
    "tables": "--suite tables --seeds 2 --trials 50",
    "levels and training": f"--problems {' '.join(LEARNERS)} --seeds 1 --trials 40",
    "noisy": f"--problems {' '.join(NOISY)} --seeds 1 --trials 50",
}


def run(tree: Path, options: str, out: Path) -> list[rows.Run]:
    """The runs of a tree's own benchmark; those that `out` has are not made again."""
    command = [sys.executable, "scripts/benchmark.py", *options.split(), "--processes", "1", "--out", str(out)]
    environment = os.environ | {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
    subprocess.run(command, cwd=tree, env=environment, check=True, stdout=subprocess.DEVNULL)
    return rows.read([out])


def commit(tree: Path) -> str:
    """The commit that is checked out in a tree."""
    command = ["git", "-C", str(tree), "describe", "--always", "--dirty"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def compared(before: list[rows.Run], after: list[rows.Run]) -> dict[str, object]:
    """A group: how many runs are the same, the ratios of regret and of processor time, and each run that differs."""
    known = facts.gather({each.problem for each in before}, ROOT / "docs" / "results" / "problems.json")
    scales = regrets.scales([*before, *after], known)
    differ, ratios, same = list[dict[str, object]](), dict[str, list[float]](), 0
    for one, other in zip(before, after, strict=True):
        assert one.key == other.key
        ends = [scales[one.problem].regret(each.at(each.n)) for each in (one, other)]
        ratios.setdefault(one.problem, []).append(math.log(ends[1] / ends[0]))
        if (one.best, one.recommended, one.failed) == (other.best, other.recommended, other.failed):
            same += 1
        else:
            differ.append({"problem": one.problem, "seed": one.seed, "regret": [float(f"{end:.4g}") for end in ends]})
    means = np.array([np.mean(each) for each in ratios.values()])
    found: dict[str, object] = {"problems": len(means), "runs": len(before), "same": same}
    if differ:
        typical = Typical.of(means)
        found["mean"], found["ratio"] = round(math.exp(means.mean()), 3), round(math.exp(typical.middle), 3)
        if math.isfinite(typical.low):
            found["interval"] = [round(math.exp(end), 3) for end in (typical.low, typical.high)]
    found["cpu"] = round(sum(each.seconds or 0 for each in after) / sum(each.seconds or 0 for each in before), 3)
    return found | {"differ": differ}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="the root of a tree, such as one by git worktree")
    parser.add_argument("after", type=Path)
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=list(GROUPS), metavar="GROUP")
    parser.add_argument("--out", type=Path, help="a file for what is found")
    parser.add_argument("--rows", type=Path, help="a folder for the rows, from which an interrupted comparison goes on")
    given = parser.parse_args()
    folder = given.rows or Path(tempfile.mkdtemp())
    about = {"command": " ".join(["python", *sys.argv]), "commits": [commit(given.before), commit(given.after)]}
    found = {}
    for name in given.groups:
        before, after = (
            run(tree.resolve(), GROUPS[name], folder.resolve() / which / f"{name}.jsonl")
            for which, tree in (("before", given.before), ("after", given.after))
        )
        found[name] = {"options": GROUPS[name]} | compared(before, after)
        print(name, json.dumps({key: value for key, value in found[name].items() if key != "differ"}), flush=True)
        if given.out:
            given.out.write_text(json.dumps(about | {"groups": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
