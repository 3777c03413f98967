"""docs/results/papers.md: every figure with what its paper reports, what was measured, and what holds."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from figures.catalogue import FIGURES
from figures.kinds import Demonstration, Figure, Finding, Panel, Race
from figures.optima import Optima
from figures.places import Results
from figures.scores import Scores, interval
from reporting import intervals
from reporting.rows import Run
from reporting.tables import NONE, table

VERDICTS = ("reproduced", "refuted", "undecided", "not contradicted", UNTESTED := "no runs")
DIGITS = {"value": 4, "regret": 3, "cumulative regret": 3}
HEAD = """# The papers, repeated

Every figure of the papers, by one command each: `python scripts/reproduce.py FIGURE`. What is below was made by the
commands given; the rows of every seed are in `docs/results/papers/`, and `python scripts/reproduce.py --report` makes
this page from them.

Claims are what a paper says of a figure, taken apart. A method is *ahead* of another if its value is lower on the same
seed. One test decides all of them, that of [the results](method.md): Wilcoxon's signed-rank test at 5 % over the seeds
that both methods have. Beside a claim are the difference that is typical of the seeds with the 95 % interval of that
test, from six seeds on; seeds won / tied / lost; and p. *Reproduced*: the interval is below 0. *Refuted*: above.
*Undecided*: it holds 0, or there are fewer than six seeds; then comes the number of seeds that would tell with a power
of .8, if the differences had the mean and the spread of those seen. Where it is more than a hundred, the interval says
how great a lead is excluded. *Not contradicted*: it was said that neither is ahead, and the interval holds 0. A claim
of more evaluations than were made here is tested where the runs end, which is said. Tests are not corrected for their
number: of twenty true ties one is found to be a difference. Means over seeds have intervals by Student's t of 99.5 %,
from six seeds on. [At the end](#by-paper) is a table by paper.
"""


def document(results: Results, runs: Sequence[Run], optima: Optima) -> str:
    """The whole page."""
    parts = {name: section(figure, results, runs, optima) for name, figure in FIGURES.items()}
    lines = [[f"[{name}](#{name.lower()})", FIGURES[name].paper, *counts(of)] for name, (_, of) in parts.items()]
    summary = table(["figure", "of", *VERDICTS], lines)
    return "\n".join(
        [HEAD, summary, *(text for text, _ in parts.values()), by_paper({k: of for k, (_, of) in parts.items()})]
    )


def by_paper(found: Mapping[str, Iterable[Finding]]) -> str:
    """How many claims of each paper there are of each verdict."""
    papers: dict[str, list[Finding]] = defaultdict(list)
    for name, findings in found.items():
        papers[FIGURES[name].paper.partition(",")[0]] += findings
    return "## By paper\n\n" + table(["paper", *VERDICTS], [[paper, *counts(of)] for paper, of in papers.items()])


def counts(findings: Iterable[Finding]) -> list[str]:
    """How many claims there are of each verdict."""
    of = Counter(finding.verdict for finding in findings)
    return [str(of[verdict] or NONE) for verdict in VERDICTS]


def section(figure: Figure, results: Results, runs: Sequence[Run], optima: Optima) -> tuple[str, Sequence[Finding]]:
    """One figure, and its findings."""
    head = [f"## {figure.name}\n", f"{figure.paper}. {figure.caption}\n", f"**Reported:** {figure.reports}\n"]
    head += [f"**Departures:** {figure.departures}\n"] if figure.departures else []
    if isinstance(figure, Race):
        scores = Scores(figure, runs, optima)
        body, findings = race_body(scores), scores.findings
    else:
        assert isinstance(figure, Demonstration)
        numbers = results.numbers(figure)
        body, findings = demonstration_body(figure, numbers), figure.findings(numbers) if numbers else []
    drawn = len(body) > 1 and results.picture(figure).exists()
    picture = [f"![{figure.caption}](papers/{figure.name}.png)\n"] if drawn else []
    tail = [f"**What was found:** {figure.explanation}\n"] if figure.explanation else []
    return "\n".join([*head, *body[:1], *picture, *body[1:], *claims(findings), *tail]), findings


def claims(findings: Sequence[Finding]) -> list[str]:
    """The claims that were tested as a table, and how many were not."""
    tested = [finding for finding in findings if finding.verdict != UNTESTED]
    lines = [[finding.claim, finding.verdict, finding.evidence or NONE] for finding in tested]
    found = [table(["claim", "verdict", "difference; won/tied/lost; p"], lines)] if lines else []
    left = len(findings) - len(tested)
    return found + ([f"Of {left} of {len(findings)} claims there are no runs of both methods yet.\n"] if left else [])


# --- races ------------------------------------------------------------------------------------------------------------


def race_body(scores: Scores) -> list[str]:
    """How it was made, then a table for each panel."""
    race = scores.race
    if not scores.runs:
        return [f"No runs are here yet: `python scripts/reproduce.py {race.name}`.\n"]
    size = f"{race.paper_trials or 'not said how many'} evaluations, {race.paper_seeds or 'not said how many'} seeds"
    made = "\n".join(f"    {command}" for command in commands(scores))
    return [f"The paper: {size}. Here:\n\n{made}\n", *(panel_text(scores, panel) for panel in race.panels)]


def panel_text(scores: Scores, panel: Panel) -> str:
    """Means and intervals at checkpoints, and the end of every seed."""
    columns = scores.columns(panel)
    if not columns:
        return f"### {panel.title}\n\nNo runs of two methods.\n"
    metric = scores.metric(panel.problem)
    lines, ends = [], []
    for method in panel.methods:
        n = min(scores.length(panel.problem, method), columns[-1])
        last = scores.at(panel.problem, method, n) if n else {}
        if last:
            cells = [_cell(scores.at(panel.problem, method, k), DIGITS[metric]) for k in columns]
            lines.append([method, str(len(last)), *cells])
            ends.append([method, " ".join(f"{value:.{DIGITS[metric]}g}" for value in last.values())])
    head = [f"{metric} after", "seeds", *map(str, columns)]
    return f"### {panel.title}\n\n{table(head, lines)}\n{table(['method', 'every seed at the end'], ends)}"


def _cell(values: Mapping[int, float], digits: int) -> str:
    return interval(intervals.mean([*values.values()]), digits) if values else NONE


def commands(scores: Scores) -> list[str]:
    """What makes the runs that are there: methods of the same size in one line."""
    race = scores.race
    sizes: dict[tuple[int, int], list[tuple[str, str]]] = defaultdict(list)
    for pair, default in race.pairs.items():
        if of := scores.runs.get(pair):
            n = max(run.n for run in of.values())
            seeds = sum(run.n == n for run in of.values())
            has_usual_size = n >= default and seeds >= race.few.get(pair[1], race.seeds)
            sizes[(0, 0) if has_usual_size else (n, seeds)].append(pair)
    found = []
    for (n, seeds), pairs in sorted(sizes.items()):
        every = set(pairs) == set(race.pairs)
        problems, methods = (list(dict.fromkeys(pair[place] for pair in pairs)) for place in (0, 1))
        part = f" --problems {_quoted(problems)} --methods {_quoted(methods)}" if not every else ""
        size = f" --trials {n} --seeds {seeds}" if n else ""
        found.append(f"python scripts/reproduce.py {race.name}{part}{size}")
    return found


def _quoted(names: Iterable[str]) -> str:
    return " ".join(f"'{name}'" if " " in name else name for name in names)


# --- demonstrations ---------------------------------------------------------------------------------------------------


def demonstration_body(figure: Demonstration, numbers: Mapping[int, Mapping[str, object]]) -> list[str]:
    """How it was made, then its table."""
    if not numbers:
        return [f"Nothing is here yet: `python scripts/reproduce.py {figure.name}`.\n"]
    seeds = f" --seeds {len(numbers)}" if len(numbers) != figure.seeds else ""
    return [f"    python scripts/reproduce.py {figure.name}{seeds}\n", figure.table(numbers)]
