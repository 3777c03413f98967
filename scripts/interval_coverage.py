#!/usr/bin/env python
"""How often intervals of a geometric mean of ratios hold it, by residuals that benchmarks have.

    python scripts/interval_coverage.py docs/results/coverage.json           # a minute
    python scripts/interval_coverage.py docs/results/coverage.json --show    # the table only

The populations are the duels of docs/results/benchmark/: the log ratios of regret of deepbore by those of another
method, one for each problem (the mean over seeds), of each suite with eight problems or more and at each checkpoint.
From each, `SAMPLES` samples of n problems are drawn with replacement, and each kind of interval either holds the mean
of the population or does not. Of each kind and n: the mean coverage over populations, that of the worst tenth of them,
and the median width in standard deviations of the population.

    t 95 %, t 99 %, t 99.5 %      Student's t
    percentile, BCa               bootstraps of 95 %, with 1000 draws; BCa after Efron (JASA 82, 1987)
    bootstrap-t 95 %, 99 %        quantiles of the studentised mean of 1000 draws
    signed rank 95 %              of Wilcoxon's test: it is to hold the pseudo-median of the population, not the mean
"""

import json
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from harness.measuring import of_one_file
from reporting import facts as known, regrets, rows
from reporting.intervals import Typical
from reporting.sections import Comparisons

Array = NDArray[np.float64]
Interval = tuple[Array, Array]  # the ends, one of each sample
RESULTS = Path(__file__).parent.parent / "docs" / "results"
REFERENCE, SMALLEST = "deepbore", 8
SIGNED_RANK = "signed rank 95 %"
SIZES = (3, 4, 5, 6, 7, 8, 10, 11, 12, 16, 24)
SAMPLES, DRAWS = 200, 1000


def populations() -> list[Array]:
    """The log ratios of each duel, by problem."""
    runs = rows.read([RESULTS / "benchmark"])
    facts = known.gather({run.problem for run in runs}, RESULTS / "problems.json")
    compared = Comparisons(runs, facts, regrets.scales(runs, facts))
    found = []
    for section in compared.runs:
        for k in section.checkpoints:
            comparison = compared.summary(section, k)
            for method in comparison.methods:
                duel = comparison.duel(REFERENCE, method) if method != REFERENCE else None
                if duel and len(duel.ratios) >= SMALLEST:
                    found.append(np.array([*duel.ratios.values()]))
    return found


def student(samples: Array, confidence: float) -> Interval:
    """Student's t of each row."""
    n, mean = samples.shape[1], samples.mean(1)
    half = stats.t.ppf((1 + confidence) / 2, n - 1) * samples.std(1, ddof=1) / np.sqrt(n)
    return mean - half, mean + half


def bootstraps(samples: Array, stream: np.random.Generator) -> dict[str, Interval]:
    """Percentiles, BCa and studentised ones of each row, from the same draws."""
    count, n = samples.shape
    mean, error = samples.mean(1), samples.std(1, ddof=1) / np.sqrt(n)
    draws = samples[:, stream.integers(0, n, (DRAWS, n))]  # count x DRAWS x n
    drawn = draws.mean(2)
    with np.errstate(divide="ignore", invalid="ignore"):
        studentised = (drawn - mean[:, None]) / (draws.std(2, ddof=1) / np.sqrt(n))
    studentised = np.clip(np.nan_to_num(studentised, nan=0.0), -1e3, 1e3)  # draws of one value have no deviation
    found = {"percentile": _quantiles(drawn, np.full(count, 0.025), np.full(count, 0.975))}
    below = (drawn < mean[:, None]).mean(1) + (drawn == mean[:, None]).mean(1) / 2
    bias = stats.norm.ppf(np.clip(below, 1 / DRAWS, 1 - 1 / DRAWS))
    without = (samples.sum(1, keepdims=True) - samples) / (n - 1)
    apart = without.mean(1, keepdims=True) - without
    skew = (apart**3).sum(1) / (6 * (apart**2).sum(1) ** 1.5 + 1e-300)
    shares = [stats.norm.cdf(bias + (bias + z) / (1 - skew * (bias + z))) for z in stats.norm.ppf([0.025, 0.975])]
    found["BCa"] = _quantiles(drawn, *shares)
    for confidence in (0.95, 0.99):
        low, high = np.quantile(studentised, [(1 - confidence) / 2, (1 + confidence) / 2], axis=1)
        found[f"bootstrap-t {100 * confidence:g} %"] = mean - high * error, mean - low * error
    return found


def _quantiles(drawn: Array, low: Array, high: Array) -> Interval:
    ends = [np.array([np.quantile(row, share) for row, share in zip(drawn, of, strict=True)]) for of in (low, high)]
    return ends[0], ends[1]


def measured(of: list[Array], n: int) -> list[dict[str, object]]:
    """A row for each kind of interval of n problems."""
    stream = np.random.default_rng(n)
    held: dict[str, list[float]] = {}
    widths: dict[str, list[float]] = {}
    for population in of:
        samples = population[stream.integers(0, len(population), (SAMPLES, n))]
        kinds = {f"t {100 * confidence:g} %": student(samples, confidence) for confidence in (0.95, 0.99, 0.995)}
        kinds |= bootstraps(samples, stream)
        of_tests = [Typical.of(sample) for sample in samples]
        kinds[SIGNED_RANK] = np.array([each.low for each in of_tests]), np.array([each.high for each in of_tests])
        middle = Typical.of(population).middle
        for kind, (low, high) in kinds.items():
            truth = middle if kind == SIGNED_RANK else population.mean()
            slack = 1e-9 * (1 + abs(truth))
            held.setdefault(kind, []).append(float(np.mean((low <= truth + slack) & (high >= truth - slack))))
            widths.setdefault(kind, []).append(float(np.median(high - low) / population.std()))
    return [
        {
            "kind": kind,
            "problems": n,
            "coverage": round(float(np.mean(of)), 3),
            "worst tenth": round(float(np.quantile(of, 0.1)), 2),
            "width": round(width, 2) if math.isfinite(width := float(np.median(widths[kind]))) else None,
        }
        for kind, of in held.items()
    ]


def show(found: list[dict[str, object]]) -> None:
    kinds, sizes = (list(dict.fromkeys(row[name] for row in found)) for name in ("kind", "problems"))
    print(f"| mean coverage with so many problems | {' | '.join(map(str, sizes))} |\n{'|---' * (len(sizes) + 1)}|")
    for kind in kinds:
        print(f"| {kind} | " + " | ".join(f"{row['coverage']:.3f}" for row in found if row["kind"] == kind) + " |")


def main() -> None:
    given = of_one_file(__doc__).parse_args()
    if not given.show:
        of = populations()
        found = [row for n in SIZES for row in measured(of, n)]
        lines = ",\n".join(json.dumps(row) for row in found)
        given.file.write_text(f'{{"populations": {len(of)}, "samples of each": {SAMPLES}, "rows": [\n{lines}\n]}}\n')
    show(json.loads(given.file.read_text())["rows"])


if __name__ == "__main__":
    main()
