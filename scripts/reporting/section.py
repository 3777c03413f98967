"""The tables of one section: a suite in one dimension, one half of it, one number of workers."""

from collections.abc import Callable

from reporting import tables
from reporting.comparison import Comparison
from reporting.intervals import Estimate
from reporting.sections import Comparisons, Section


def section_tables(section: Section, compared: Comparisons, reference: str) -> list[str]:
    """Ranks, ratios, wins and targets; on noisy problems also of what methods recommend."""
    parts = []
    for recommended in (False, True) if section.noisy else (False,):
        if comparisons := compared.of(section, recommended):
            parts.append(f"### {section.title}{_what(section, recommended)}\n")
            parts += [_ranks(comparisons, reference), _subset(comparisons, reference)]
            parts += [_ratios(comparisons, reference), _wins(comparisons, reference), _reached(comparisons, reference)]
    return [part for part in parts if part]


def _what(section: Section, recommended: bool) -> str:
    if not section.noisy:
        return ""
    return ", what is recommended" if recommended else ", the best that was seen"


def _ranks(comparisons: list[Comparison], reference: str) -> str:
    problems = []
    for comparison in comparisons:
        pairs = comparison.pairs(comparison.main)
        problems.append(f"{len({problem for problem, _ in pairs})} ({len(pairs)})")
    title = "Average rank after so many evaluations"
    body = _estimates(comparisons, reference, Comparison.ranks, tables.rank, low=True)
    return tables.table([title, *_ks(comparisons)], [*body, ["*problems (with seeds)*", *problems]])


def _reached(comparisons: list[Comparison], reference: str) -> str:
    body = _estimates(comparisons, reference, Comparison.reached, tables.share, low=False)
    return tables.table(["Targets reached, %", *_ks(comparisons)], body) if body else ""


def _estimates(
    comparisons: list[Comparison],
    reference: str,
    of: Callable[[Comparison], dict[str, Estimate]],
    text: Callable[[Estimate | None, bool], str],
    low: bool,
) -> list[list[str]]:
    """Methods by checkpoints, the best in bold."""
    found = [of(comparison) for comparison in comparisons]
    first = [tables.best(estimates, low) for estimates in found]
    methods = tables.ordered({method for estimates in found for method in estimates}, reference)
    return [
        [method, *(text(estimates.get(method), method in best) for estimates, best in zip(found, first, strict=True))]
        for method in methods
    ]


def _subset(comparisons: list[Comparison], reference: str) -> str:
    """The methods with too few problems, each ranked among the others on those it has; empty if there are none."""
    lines = []
    for method in tables.ordered({method for c in comparisons for method in c.subset}, reference):
        cells = []
        for comparison in comparisons:
            among = [*comparison.main, method]
            ranks = comparison.ranks(among) if method in comparison.subset else {}
            problems = len({problem for problem, _ in comparison.pairs(among)})
            others = f"; {reference} {ranks[reference].mean:.2f}" if reference in ranks else ""
            cells.append(f"{tables.rank(ranks[method])}{others} ({problems})" if ranks else tables.NONE)
        lines.append([method, *cells])
    title = f"On a subset: rank among the above; of {reference} (problems)"
    return tables.table([title, *_ks(comparisons)], lines) if lines else ""


def _ratios(comparisons: list[Comparison], reference: str) -> str:
    lines, worst = [], []
    best = []
    for comparison in comparisons:
        peer, duel = comparison.against_best(reference) or ("", None)
        best.append(f"{peer}: {tables.duel(duel)}" if duel else tables.NONE)
        if duel:
            worst.append(f"{tables.short(duel.worst_ratio)} on {duel.worst} after {comparison.k}")
    for peer in _peers(comparisons, reference):
        duels = [comparison.duel(reference, peer) for comparison in comparisons]
        lines.append([peer, *map(tables.duel, duels)])
    if not lines:
        return ""
    title = f"Regret of {reference} by that of"
    text = tables.table([title, *_ks(comparisons)], [["*the best peer*", *best], *lines])
    return text + (f"\nWorst problems against the best peer: {'; '.join(worst)}.\n" if worst else "")


def _wins(comparisons: list[Comparison], reference: str) -> str:
    lines = []
    for peer in _peers(comparisons, reference):
        duels = [comparison.duel(reference, peer) for comparison in comparisons]
        last = [duel for duel in duels if duel][-1:]
        worst = f"{tables.short(last[0].worst_ratio)} on {last[0].worst}" if last else tables.NONE
        lines.append([peer, *map(tables.wins, duels), worst])
    title = f"{reference} won / tied / lost, %, against"
    return tables.table([title, *_ks(comparisons), "worst problem"], lines) if lines else ""


def _peers(comparisons: list[Comparison], reference: str) -> list[str]:
    there = {method for c in comparisons if reference in c.methods for method in c.methods}
    return tables.ordered(there - {reference}, reference)


def _ks(comparisons: list[Comparison]) -> list[str]:
    return [str(comparison.k) for comparison in comparisons]
