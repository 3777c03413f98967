#!/usr/bin/env python
"""Compares methods by the runs that scripts/benchmark.py has written.

    python scripts/report_benchmark.py            # docs/results/benchmark/*.jsonl -> docs/results.md, README, pictures
    python scripts/report_benchmark.py --check    # exits 1 if docs/results.md or the README would change
    python scripts/report_benchmark.py --rows FILE_OR_FOLDER... --reference deepbore    # variants of one method:
                                                  # Markdown to stdout, each against the reference

The same rows give the same text: the bootstrap's seed is fixed.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from reporting import ablation, facts as known, regrets, rows

ROOT = Path(__file__).parent.parent


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a document is out of date")
    parser.add_argument("--rows", type=Path, nargs="+", help="compare the runs in these files with the reference")
    parser.add_argument("--reference", default="deepbore", help="the method that others are compared with")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository whose results and documents are meant")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    results = given.root / "docs" / "results"
    folder = results / "benchmark"
    committed = rows.read([folder] if folder.is_dir() else [])
    ran = rows.read(given.rows) if given.rows else committed
    everything = list({run.key: run for run in [*committed, *ran]}.values())
    names = {run.problem for run in ran}
    facts = known.gather(names, results / "problems.json")
    scales = regrets.scales((run for run in everything if run.problem in names), facts)
    if given.rows:
        print(ablation.page(ran, facts, scales, given.reference))
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
