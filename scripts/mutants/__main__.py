"""Mutants of a room, and which of them its quick tests notice.

    python scripts/mutants labels                            # all mutants of deepbore/labels, hours
    python scripts/mutants labels --sample 40 --seed 1       # 40 of them, minutes
    python scripts/mutants data/ranking.py --sample 20       # of one file

A mutant is the room with one expression, condition or call changed; texts, annotations and what is raised are left
alone. A run without a mutant finds which of the room's quick tests run which lines; those of the changed line then run
with the mutant, in a fork of this process, so tests of new processes meet no mutant. equivalent.txt lists mutants that
change nothing that a user or a caller can observe, each with a reason. The exit status is 1 if less than 90 % of the
others are noticed.
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from mutants.mutation import Mutant, sampled_mutants
from mutants.tracing import Only, Trace, Tracing
from mutants.trial import prepare, tests_pass

SHARE = 0.9
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


def files_of(target: str) -> tuple[list[Path], Path]:
    """The files of a room, or one of them, and the folder of the room's tests."""
    path = Path("deepbore", target)
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return files, Path("tests", path.relative_to("deepbore").parts[0])


def notices(trace: Trace, mutant: Mutant) -> bool:
    """Whether a test fails of those that run the changed line, or of their files: a fixture may be shared there."""
    tests = trace.tests(mutant)
    if not tests:
        return False
    files = sorted({test.split("::")[0] for test in tests})
    seconds = 10 + 4 * sum(trace.seconds.values())
    return not tests_pass(mutant, files, [Only(tests)], seconds) or not tests_pass(mutant, files, [], seconds)


def traced(files: list[Path], room: Path) -> Trace:
    """Which tests run which lines, from a run without a mutant."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        if not tests_pass(None, [str(room)], [Tracing(files, path)], 1800):
            sys.exit(f"{room}: a quick test fails without a mutant")
        return Trace(path)


def report(word: str, mutant: Mutant) -> None:
    """One line: what became of the mutant, where it is and what it changes."""
    print(f"{word:10} {mutant.path}:{mutant.line}  {mutant.before}  ->  {mutant.after}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", help="a room of deepbore/, or a file in one")
    parser.add_argument("--sample", type=int, help="number of mutants, drawn at random (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    files, room = files_of(args.target)
    listed = equivalents(EQUIVALENT.read_text())
    prepare()
    trace = traced(files, room)
    counts = {"killed": 0, "survived": 0, "equivalent": 0}
    for mutant in sampled_mutants(files, args.sample, args.seed):
        word = "equivalent" if mutant.change in listed else "killed" if notices(trace, mutant) else "survived"
        report(word, mutant)
        counts[word] += 1
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    return int(counts["killed"] < SHARE * (counts["killed"] + counts["survived"]))


if __name__ == "__main__":
    sys.exit(main())
