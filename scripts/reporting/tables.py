"""Markdown: numbers and tables."""

import math
from collections.abc import Callable, Iterable, Sequence

from reporting import intervals
from reporting.comparison import DROPPED, Duel
from reporting.intervals import Estimate

NONE = "–"
CELL = (
    "the verdict; the ratio that is typical of the problems (Hodges and Lehmann's pseudo-median; below 1: ahead) with "
    f"its 95 % interval or, of fewer than {intervals.FEWEST} problems, how many are won/tied/lost with p of the sign "
    f"test; the geometric mean; the mean without the {DROPPED} problems that favour it most"
)


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
    return ratio_of(estimate.mean) + _interval(estimate, ratio_of)


def ratio_of(log: float) -> str:
    """A ratio, from its logarithm."""
    return short(math.exp(log))


def typical(of: Duel) -> str:
    """The typical ratio with its interval, or of few problems with the sign test."""
    found = of.typical
    if len(of.ratios) >= intervals.FEWEST:
        return f"{ratio_of(found.middle)} [{ratio_of(found.low)}, {ratio_of(found.high)}]"
    won, tied, lost = of.signs
    return f"{ratio_of(found.middle)} ({won}/{tied}/{lost}, p {short(intervals.sign_test(won, lost))})"


def duel(of: Duel | None) -> str:
    """What `CELL` says."""
    if of is None:
        return NONE
    return f"{of.typical.verdict}: {typical(of)}; {ratio_of(of.ratio.mean)}; {without_best(of)}"


def without_best(of: Duel) -> str:
    """The mean without what favours it most."""
    return NONE if of.without_best is None else ratio_of(of.without_best)


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


def _bold(text: str, bold: bool) -> str:
    return f"**{text}**" if bold else text


def _interval(estimate: Estimate, text: Callable[[float], str]) -> str:
    low, high = estimate.interval
    return "" if low == high or math.isinf(low) else f" [{text(low)}, {text(high)}]"
