"""Mutants of a room, and which of them its quick tests notice.

    python scripts/mutants labels                            # all mutants of deepbore/labels, hours
    python scripts/mutants labels --sample 40 --seed 1       # 40 of them, minutes
    python scripts/mutants data/ranking.py --sample 20       # of one file, or several

A mutant is the room with one expression, condition or call changed; texts, annotations and what is raised are left
alone. A run without a mutant finds which of the room's quick tests run which lines; those of the changed line then run
with the mutant, in a fork of this process, so tests of new processes meet no mutant. equivalent.txt lists mutants that
change nothing that a user or a caller can observe, each with a reason. The exit status is 1 if less than 90 % of the
others are noticed.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from mutants.forks import forked
from mutants.fresh import NO_TEST, notices, prepare, run_pytest
from mutants.live import Live
from mutants.mutation import Mutant, sampled_mutants
from mutants.tracing import Trace, Tracing, statement_in_function

SHARE = 0.9
HOUR = 3600
EQUIVALENT = Path(__file__).with_name("equivalent.txt")


def equivalents(text: str) -> set[tuple[str, str, str]]:
    """Changes that make no difference: blocks of a path, `- before`, `+ after` and `= reason`."""
    changes = set()
    for block in filter(None, text.strip().split("\n\n")):
        path, *change = block.splitlines()
        if [line[:2] for line in change] != ["- ", "+ ", "= "]:
            raise ValueError(f"not a path, - before, + after and = reason:\n{block}")
        changes.add((path, change[0][2:], change[1][2:]))
    return changes


def files_of(target: str) -> list[Path]:
    """The files of a room, or one of them."""
    path = Path("deepbore", target)
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def traced(files: list[Path], room: Path) -> Trace:
    """Which tests run which lines, from a run without a mutant."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        if forked(lambda: run_pytest([str(room)], Tracing(files, path)), HOUR):
            sys.exit(f"{room}: a quick test fails without a mutant")
        return Trace(path)


class Report:
    """A line for each mutant as soon as it is known whether tests notice it, in this process or a fork."""

    def __init__(self, path: Path):
        self.path = path
        path.touch()

    def __call__(self, mutant: Mutant, noticed: bool | None) -> None:
        word = {True: "killed", False: "survived", None: "equivalent"}[noticed]
        print(f"{word:10} {mutant.path}:{mutant.line}  {mutant.before}  ->  {mutant.after}", flush=True)
        with self.path.open("a") as file:
            file.write(json.dumps([word, hash(mutant)]) + "\n")

    def words(self) -> dict[int, str]:
        """What became of the mutants, by their hashes."""
        return {key: word for word, key in map(json.loads, self.path.read_text().splitlines())}


def try_all(mutants: list[Mutant], trace: Trace, room: Path, report: Report) -> None:
    """All mutants: those in functions in a process that has collected the tests, the others in fresh ones."""
    live = [mutant for mutant in mutants if statement_in_function(mutant.path, mutant.line)]
    if forked(lambda: run_pytest([str(room)], Live(live, trace, report)), 100 * HOUR, quiet=False) not in (0, NO_TEST):
        sys.exit("not all mutants were tried")
    known = report.words()
    for mutant in mutants:
        if hash(mutant) not in known:
            report(mutant, notices(mutant, trace.files(mutant), trace.limit(trace.seconds)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="+", help="a room of deepbore/, or files of one")
    parser.add_argument("--sample", type=int, help="number of mutants, drawn at random (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    files = [file for target in args.targets for file in files_of(target)]
    room = Path("tests", files[0].relative_to("deepbore").parts[0])
    listed = equivalents(EQUIVALENT.read_text())
    prepare()
    trace = traced(files, room)
    with tempfile.TemporaryDirectory() as folder:
        report = Report(Path(folder, "report.jsonl"))
        mutants = sampled_mutants(files, args.sample, args.seed)
        for mutant in mutants:
            if mutant.change in listed:
                report(mutant, None)
        try_all([mutant for mutant in mutants if mutant.change not in listed], trace, room, report)
        counts = Counter(report.words().values())
    print(", ".join(f"{counts[word]} {word}" for word in ("killed", "survived", "equivalent")))
    return int(counts["killed"] < SHARE * (counts["killed"] + counts["survived"]))


if __name__ == "__main__":
    sys.exit(main())
