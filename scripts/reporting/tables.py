"""Markdown: sections of runs, numbers, and tables."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from reporting.bootstrap import Estimate
from reporting.comparison import Comparison, Duel
from reporting.facts import ORDER, Fact, dimension_of, suite_of
from reporting.rows import Run

CHECKPOINTS = (25, 50, 100, 200, 1000, 5000)
HALVES = ("development", "held_out", "all")
NONE = "–"


@dataclass(frozen=True, order=True)
class Section:
    """Runs that belong into one table: of one suite, dimension, half and number of workers."""

    place: int
    suite: str
    dimension: int
    half: str
    workers: int

    @property
    def suite_title(self) -> str:
        return f"{self.suite}, {self.dimension}-D" if self.dimension else self.suite

    @property
    def half_title(self) -> str:
        return half_title(self.half) + (f", {self.workers} workers" if self.workers > 1 else "")

    @property
    def title(self) -> str:
        return f"{self.suite_title}: {self.half_title}"


def sections(runs: Iterable[Run], facts: dict[str, Fact]) -> dict[Section, list[Run]]:
    """The runs by their sections, in the order of a report."""
    found: dict[Section, list[Run]] = defaultdict(list)
    for run in runs:
        suite = suite_of(run.problem)
        place = ORDER.index(suite) if suite in ORDER else len(ORDER)
        half = facts[run.problem].half
        found[Section(place, suite, dimension_of(run.problem) or 0, half, run.workers)].append(run)
    return {section: found[section] for section in sorted(found)}


def half_title(half: str) -> str:
    """A half in words."""
    return {"all": "all problems"}.get(half, half.replace("_", " "))


def short(value: float) -> str:
    """A number in few characters.

    Example:
        >>> [short(value) for value in (0.617, 1.0, 12.34, 1234.5, 0.00012, 2.5e7)]
        ['0.62', '1.0', '12', '1234', '1.2e-4', '2.5e7']
    """
    if value != 0 and not 1e-2 <= abs(value) < 1e5:
        digits, exponent = f"{value:.1e}".split("e")
        return f"{digits}e{int(exponent)}"
    return f"{value:.0f}" if abs(value) >= 99.5 else f"{value:#.2g}".rstrip(".")


def rank(estimate: Estimate | None, bold: bool = False, interval: bool = True) -> str:
    """An average rank and its interval."""
    if estimate is None:
        return NONE
    return _bold(f"{estimate.mean:.2f}", bold) + (_interval(estimate, "{:.2f}".format) if interval else "")


def ratio(estimate: Estimate | None) -> str:
    """A geometric mean, from the mean of logs, and its interval."""
    if estimate is None:
        return NONE
    return short(math.exp(estimate.mean)) + _interval(estimate, lambda value: short(math.exp(value)))


def share(estimate: Estimate | None, bold: bool = False) -> str:
    """A share in percent and its interval."""
    if estimate is None:
        return NONE
    return _bold(f"{100 * estimate.mean:.0f}", bold) + _interval(estimate, lambda value: f"{100 * value:.0f}")


def wins(duel: Duel | None) -> str:
    """Pairs won, tied and lost, in percent."""
    return NONE if duel is None else " / ".join(f"{100 * part:.0f}" for part in (duel.won, duel.tied, duel.lost))


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def best(estimates: dict[str, Estimate], low: bool = True) -> set[str]:
    """Those with the best mean, as it is printed."""
    if not estimates:
        return set()
    means = {name: round(estimate.mean, 2) for name, estimate in estimates.items()}
    first = (min if low else max)(means.values())
    return {name for name, mean in means.items() if mean == first}


def ordered(methods: Iterable[str], reference: str) -> list[str]:
    """The reference, then the others by name, blind searches last."""
    return sorted(methods, key=lambda name: (name != reference, name in ("random", "sobol"), name.lower()))


def compared(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """Those at which at least two methods have runs."""
    return [comparison for comparison in comparisons if len(comparison.methods) > 1]


def _bold(text: str, bold: bool) -> str:
    return f"**{text}**" if bold else text


def _interval(estimate: Estimate, text: Callable[[float], str]) -> str:
    low, high = estimate.interval
    return "" if low == high else f" [{text(low)}, {text(high)}]"
