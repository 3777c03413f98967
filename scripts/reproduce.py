#!/usr/bin/env python
"""Repeats figures of the papers, and says which of their claims hold here.

    python scripts/reproduce.py --list                       # the figures, their sizes, and what is missing
    python scripts/reproduce.py bore-3 --jobs 2              # a figure, at the size that fits hours
    python scripts/reproduce.py bore-6 bore-7 --seeds 100    # as many seeds as the paper has
    python scripts/reproduce.py bore-3 --methods deepbore random --problems hpolib/naval_propulsion
    python scripts/reproduce.py --smoke                      # all of it on one figure, in a minute
    python scripts/reproduce.py --report                     # docs/results/papers.md, from the rows
    python scripts/reproduce.py --check                      # exits 1 if that page would change

Rows go to docs/results/papers/FIGURE.jsonl as soon as a run is done, as those of scripts/benchmark.py; beside them is
the picture. What any figure's file holds for at least as many evaluations is not run again, so an interrupted command
goes on where it stopped. A run that fails, or takes longer than --limit, is reported, and the exit code is 1 at the
end.
"""

import argparse
import math
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from figures import drawing, page
from figures.catalogue import FIGURES, RACES
from figures.kinds import Demonstration, Figure, Race
from figures.optima import Optima, optima, write
from figures.places import Results
from figures.running import SMOKE_SEEDS, SMOKE_TRIALS, Size, compute_on, lacking, race_on
from figures.scores import Scores

ROOT = Path(__file__).parent.parent
SMOKED = "bore-11"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", nargs="*", metavar="FIGURE", choices=[*FIGURES, []], help="see --list")
    parser.add_argument("--seeds", type=int, help="how many, of every method")
    parser.add_argument("--trials", type=int, help="evaluations a run; of a demonstration, its size")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at the same time")
    parser.add_argument("--problems", nargs="+", default=[], help="only these of a race")
    parser.add_argument("--methods", nargs="+", default=[], help="only these of a race")
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds that a run may take")
    parser.add_argument("--list", action="store_true", help="say what there is")
    parser.add_argument("--smoke", action="store_true", help="at tiny size, in a folder of its own")
    parser.add_argument("--report", action="store_true", help="write the page and the pictures")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the page is out of date")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository whose results are meant")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    if given.list:
        print("\n".join(map(described, FIGURES.values())))
        return 0
    results = Results(given.root / "docs" / "results" / "papers")
    if given.check:
        return check(results)
    size = Size(given.seeds, given.trials, given.problems, given.methods, given.limit)
    try:
        if given.smoke:
            with tempfile.TemporaryDirectory() as folder:
                return smoke(given, Results(Path(folder) / "papers"))
        failures = [make(FIGURES[name], size, given.jobs, results) for name in given.figures]
    except KeyboardInterrupt:
        return 130
    if given.report:
        report(results)
    return 1 if any(failures) else 0


def make(figure: Figure, size: Size, jobs: int | None, results: Results) -> int:
    """Runs what is missing of a figure and draws it; returns how many runs failed."""
    if isinstance(figure, Race):
        failures = race_on(figure, size, jobs, results)
        draw(figure, results)
        return failures
    assert isinstance(figure, Demonstration)
    failures = compute_on(figure, size, jobs, results)
    draw(figure, results)
    return failures


def draw(figure: Figure, results: Results) -> None:
    """The picture of a demonstration that has numbers, or of a race with runs of two methods."""
    if isinstance(figure, Demonstration):
        if numbers := results.numbers(figure):
            drawing.save(figure.draw(numbers), results.picture(figure))
        return
    assert isinstance(figure, Race)
    scores = Scores(figure, results.runs(), known(results, [figure]))
    if any(scores.columns(panel) for panel in figure.panels):
        drawing.save(drawing.draw(scores), results.picture(figure))


def known(results: Results, races: Iterable[Race]) -> Optima:
    """The optima of the problems that have runs."""
    ran = {run.problem for run in results.runs()}
    return optima({problem for race in races for problem, _ in race.pairs} & ran, results.optima)


def report(results: Results) -> None:
    """Writes the page and the pictures."""
    write(known(results, RACES.values()), results.optima)
    for figure in FIGURES.values():
        draw(figure, results)
    results.page.write_text(text(results))


def check(results: Results) -> int:
    """1 and a message if the page is not what the rows say, else 0."""
    if results.page.exists() and results.page.read_text() == text(results):
        return 0
    print(f"{results.page.name} is out of date: run python scripts/reproduce.py --report", file=sys.stderr)
    return 1


def text(results: Results) -> str:
    """The page that the rows give."""
    return page.document(results, results.runs(), known(results, RACES.values()))


def described(figure: Figure) -> str:
    """A figure in a line, and what it lacks here in others."""
    if not isinstance(figure, Race):
        return f"{figure.name:14s}{figure.caption}"
    methods = len({method for _, method in figure.pairs})
    size = f"{methods} methods, {figure.trials} evaluations, {figure.seeds} seeds"
    lines = dict.fromkeys(lacking(figure.pairs).values())
    return "\n".join([f"{figure.name:14s}{figure.caption} ({size})", *(f"{'':14s}{line}" for line in lines)])


def smoke(given: argparse.Namespace, results: Results) -> int:
    """Everything at tiny size."""
    for name in given.figures or [SMOKED]:
        figure = FIGURES[name]
        trials = SMOKE_TRIALS if isinstance(figure, Race) else getattr(figure, "tiny", 0)
        size = Size(SMOKE_SEEDS, trials, given.problems, given.methods, given.limit)
        if make(figure, size, given.jobs, results):
            return 1
    report(results)
    section = page.section(FIGURES[name], results, results.runs(), known(results, RACES.values()))
    print(section[0])
    return check(results)


if __name__ == "__main__":
    sys.exit(main())
