#!/usr/bin/env python
"""Compares methods by the runs that scripts/benchmark.py has written.

python scripts/report_benchmark.py            # docs/results/benchmark/*.jsonl -> docs/results.md, docs/results/*.md,
                                              # docs/compared.md, pictures
python scripts/report_benchmark.py --check    # exits 1 if a page would change
python scripts/report_benchmark.py --rows FILE_OR_FOLDER... --reference deepbore    # variants of one method:
                                              # Markdown to stdout, each against the reference
"""

import argparse
import json
import sys
from pathlib import Path

from reporting import ablation, facts as known, pages, pictures, regrets, rows
from reporting.sections import Comparisons

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
    names = {run.problem for run in ran}
    series = {} if given.rows else {path.stem: rows.read([path]) for path in sorted((results / "ablation").glob("*"))}
    tried = [run for of in series.values() for run in of]
    facts = known.gather(names | {run.problem for run in tried}, results / "problems.json")
    register = json.loads(path.read_text()) if (path := results / "held_out.json").exists() else {}
    everything = {run.key: run for run in [*committed, *ran] if run.problem in names}
    scales = regrets.scales(everything.values(), facts)
    compared = Comparisons(ran, known.with_looks(facts, register), scales)
    if given.rows:
        print(ablation.page(compared, given.reference))
        return 0
    summary, planned = given.root / "docs" / "compared.md", pictures.plan(compared)
    texts = {
        **{
            given.root / "docs" / name: text
            for name, text in pages.documents(compared, given.reference, planned, register).items()
        },
        summary: pages.with_table(summary.read_text(), pages.summary(compared, given.reference)),
    }
    if tried:
        scales = regrets.scales({run.key: run for run in [*committed, *tried]}.values(), facts)
        variants = {name: Comparisons(of, facts, scales) for name, of in series.items()}
        texts[results / "variants.md"] = ablation.verdicts(variants)
    if given.check:
        return check(texts)
    known.write(facts, results / "problems.json")
    pictures.draw(planned, given.reference, given.root / "docs" / "pictures")
    for path, text in texts.items():
        path.write_text(text)
    return 0


def check(texts: dict[Path, str]) -> int:
    """1 and their names on stderr if documents are not what the runs say, else 0."""
    stale = [path for path, text in texts.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        print(f"{path.name} is out of date: run python scripts/report_benchmark.py", file=sys.stderr)
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main())
