"""The page for variants of one method: each against a reference."""

from collections import defaultdict

from reporting import intervals, tables
from reporting.comparison import Comparison
from reporting.intervals import Estimate
from reporting.sections import Comparisons

Ratios = dict[tuple[str, int], list[Estimate]]  # (method, evaluations) -> one of each section


def page(compared: Comparisons, reference: str) -> str:
    """Ratios of regrets to the reference's, ranks and wins, of each section of the runs and over all of them."""
    parts = [
        f"Regret by that of `{reference}`: {tables.CELL}. {intervals.RULE} Average rank among the methods with runs "
        f"on at least 80 % of the problems; pairs (problem, seed) won / tied / lost against `{reference}`, in percent, "
        "and the worst problem, at the last checkpoint.\n"
    ]
    ratios: Ratios = defaultdict(list)
    for section in compared.runs:
        for recommended in (False, True) if section.noisy else (False,):
            title = section.title + (", recommended" if recommended else "")
            parts.append(f"### {title}\n\n{_table(compared.of(section, recommended), reference, ratios)}")
    return "\n".join([*parts, *_overall(ratios, reference)])


def _table(comparisons: list[Comparison], reference: str, ratios: Ratios) -> str:
    """One section; its ratios are added to `ratios`."""
    there = [c for c in comparisons if reference in c.methods]
    if not there:
        return f"No run of another method to compare with `{reference}`.\n"
    ks = [str(c.k) for c in there]
    ranks = [c.ranks() for c in there]
    lines = []
    for method in tables.ordered({method for c in there for method in c.methods}, reference):
        duels = [c.duel(method, reference) for c in there]
        found = [(c.k, duel) for c, duel in zip(there, duels, strict=True) if duel]
        for k, duel in found:
            ratios[method, k].append(duel.ratio)
        k, last = found[-1] if found else (0, None)
        lines.append(
            [
                method,
                str(last.problems if last else 0),
                *(tables.duel(duel if method != reference else None) for duel in duels),
                *(tables.rank(of.get(method), interval=False) for of in ranks),
                f"{tables.wins(last)} ({k})" if last and method != reference else tables.NONE,
                f"{last.worst} {tables.short(last.worst_ratio)}" if last and method != reference else tables.NONE,
            ]
        )
    columns = [*(f"ratio at {k}" for k in ks), *(f"rank at {k}" for k in ks)]
    return tables.table(["method", "problems", *columns, "won / tied / lost", "worst problem"], lines)


def _overall(ratios: Ratios, reference: str) -> list[str]:
    """Means over the sections, each counting the same, at the checkpoints and for the methods that have any."""
    ks = sorted({k for _, k in ratios})
    methods = tables.ordered({method for method, _ in ratios} - {reference}, reference)
    if not methods:
        return []
    lines = [[method, *(_mean(ratios.get((method, k), [])) for k in ks)] for method in methods]
    header = ["method", *(f"ratio at {k}" for k in ks)]
    return [f"### Overall\n\nEach section counts the same; their number in braces.\n\n{tables.table(header, lines)}"]


def _mean(estimates: list[Estimate]) -> str:
    found = [estimate.mean for estimate in estimates]
    return f"{tables.ratio_of(sum(found) / len(found))} {{{len(found)}}}" if found else tables.NONE
