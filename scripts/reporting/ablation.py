"""The page for variants of one method: each against a reference."""

from collections import Counter, defaultdict
from collections.abc import Mapping

from reporting import intervals, tables
from reporting.comparison import Comparison, Duel
from reporting.intervals import Estimate
from reporting.sections import Comparisons

Ratios = dict[tuple[str, int], list[Estimate]]  # (method, evaluations) -> one of each section


REFERENCES = {  # of series whose rows are compared with another method than the default
    "doubt": "deepbore:over-the-best-label",
    "middle": "deepbore:sobol-first",
    "nearby": "deepbore:classifier-alone",
    "prototypes": "deepbore:former",
}
SHOWN = (25, 50, 100)  # evaluations after which there is a column; the last one is for what comes later

VERDICTS = """# Variants, by the one rule

Written by `python scripts/report_benchmark.py` from the rows in `docs/results/ablation/`; do not edit.

Each variant of [what was tried](../ablation.md) beside what its series compares it with: the regret of the first by
that of the second, typical of the problems, and the verdict on it. {rule} Where a series is compared with rows of other
files, too, its section has the command.

Of {total} comparisons at their last column {counts}.

"""


def verdicts(series: Mapping[str, Comparisons]) -> str:
    """A page of all series: each variant on each suite, with the verdict of the one rule."""
    lines, found = [], Counter[str]()
    for name, compared in series.items():
        reference = REFERENCES.get(name, "deepbore")
        for section in compared.runs:
            comparisons = [compared.summary(section, k) for k in section.checkpoints]
            for method in sorted({m for c in comparisons for m in c.methods} - {reference}):
                duels = {c.k: duel for c in comparisons if (duel := c.duel(method, reference))}
                if duels:
                    last = duels[max(duels)]
                    found[last.typical.verdict] += 1
                    later = f"{_verdict(last)} ({max(duels)})" if max(duels) > SHOWN[-1] else tables.NONE
                    cells = [*(_verdict(duels.get(k)) for k in SHOWN), later]
                    lines.append([name, method, reference, section.suite_title, str(len(last.ratios)), *cells])
    counts = ", ".join(f"{found[word]} are {word}" for word in ("ahead", "level", "behind", "undecided"))
    header = ["series", "variant", "beside", "suite", "problems", *map(str, SHOWN), "later"]
    head = VERDICTS.format(rule=intervals.RULE, total=found.total(), counts=counts)
    return head + tables.table(header, lines)


def _verdict(duel: Duel | None) -> str:
    return f"{duel.typical.verdict} {tables.typical(duel)}" if duel else tables.NONE


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
