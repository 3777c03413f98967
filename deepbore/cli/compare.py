"""Comparison of runs: which are repetitions, and a table of their best values. Without torch."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from deepbore.component import without_addresses
from deepbore.data.ledger import Ledger
from deepbore.data.ranking import best_among
from deepbore.data.runs import Run
from deepbore.data.trial import Direction, sign_of
from deepbore.errors import SettingError
from deepbore.plots.history_chart import Curves
from deepbore.text import visible

MOMENTS = (10, 25, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
COLUMNS = 4  # moments in a table
OF_ONE_RUN = ("loop.seed", "loop.n_trials", "problem.init_args.folder")  # the folder is that of `tune`


def grouped(runs: Sequence[Run]) -> list[Curves]:
    """The runs, grouped by their name without a number at its end, and by all settings but the seed.

    Raises:
        SettingError: for runs of another direction than the first, or with several values.
    """
    check_directions(runs)
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.stem, _settings(run)), []).append(run)
    stems = [stem for stem, _ in groups]
    return [
        Curves(_name(stem, together, stems), [_curve(run.record) for run in together])
        for (stem, _), together in groups.items()
    ]


def table(groups: Sequence[Curves], direction: Direction) -> str:
    """One line for each group: runs, trials, the best value of their last trial, and after fewer ones."""
    longest = max((group.length for group in groups), default=0)
    moments = [n for n in MOMENTS if n < longest][-COLUMNS:]
    rows = [["", "runs", "trials", "best", "from", "to", *(f"after {n}" for n in moments)]]
    for group in sorted(groups, key=partial(_rank, direction=direction)):
        ends = [best[-1] for best in group.bests if len(best)]
        known = sorted(float(end) for end in ends if np.isfinite(end))
        middle = _short(float(np.median(known))) if known else "-"
        ends_of = [_short(known[0]), _short(known[-1])] if len(known) > 1 else ["", ""]
        early = [_short(_median(group, n)) for n in moments]
        rows.append([group.name, str(len(group.bests)), _trials(group), middle, *ends_of, *early])
    return "\n".join(aligned(rows))


def _curve(record: Ledger) -> np.ndarray:
    """The best feasible value after each finished trial of this task, in the user's sign."""
    told = [trial for trial in record.trials if trial.status.is_told and trial.task is None]
    return best_among(told, record.direction, record.budget is not None)


def check_directions(runs: Sequence[Run]) -> None:
    """Raises SettingError for runs of another direction than the first, or with several values."""
    first = runs[0]
    for run in runs:
        if run.record.k > 1:
            raise SettingError(
                f"runs with one value can be compared, but {run.path} has {run.record.k}. See `deepbore report`."
            )
        if run.record.direction != first.record.direction:
            raise SettingError(
                f"runs must have one direction to be compared, but {first.path} is to {first.record.direction} and "
                f"{run.path} to {run.record.direction}. Leave one out."
            )


def _settings(run: Run) -> str:
    """The settings that are equal in repetitions."""
    header, settings = run.record.header, run.settings
    of_the_run = {name: header.get(name) for name in ("space", "directions", "recipe", "budget", "preferences")}
    names = ("problem", "loop", "evaluation", "evaluator", "trainer", "warm_start", "earlier_tasks")
    given = {name: _without_own(settings.get(name), name) for name in names}
    return without_addresses(json.dumps(_by_text([of_the_run, given]), sort_keys=True, default=str))


def _by_text(data: Any) -> Any:
    """Plain data with texts for keys: those of YAML may be anything."""
    if isinstance(data, dict):
        return {f"{type(name).__name__} {name}": _by_text(each) for name, each in data.items()}
    return [_by_text(each) for each in data] if isinstance(data, list) else data


def _without_own(settings: Any, path: str) -> Any:
    """The settings at a path (names joined by points) without those in which repetitions may differ."""
    if not isinstance(settings, dict):
        return settings
    inner = {name: f"{path}.{name}" for name in settings}
    return {name: _without_own(settings[name], at) for name, at in inner.items() if at not in OF_ONE_RUN}


def _name(stem: str, together: Sequence[Run], stems: Sequence[str]) -> str:
    """The stem, if no other group has it; else the name of its first run and the number of others."""
    if len(together) > 1 and stems.count(stem) == 1:
        return stem
    more = f" and {len(together) - 1} more" if len(together) > 1 else ""
    return f"{together[0].name}{more}"


def _median(group: Curves, n: int) -> float:
    """The median of the best values after n trials; NaN if a run has fewer, or none has a value."""
    if not 0 < n <= group.length:
        return float("nan")
    values = group.after(n)
    return float(np.nanmedian(values)) if np.isfinite(values).any() else float("nan")


def _rank(group: Curves, direction: Direction) -> tuple[bool, float]:
    """The key that sorts groups: the best first, those without a value last."""
    median = _median(group, group.length)
    return bool(np.isnan(median)), median * sign_of(direction)


def _trials(group: Curves) -> str:
    lengths = sorted(len(best) for best in group.bests)
    return str(lengths[0]) if lengths[0] == lengths[-1] else f"{lengths[0]} to {lengths[-1]}"


def _short(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.6g}"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table, the first column aligned to the left and the others to the right."""
    rows = [[visible(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(w) if not column else cell.rjust(w)
            for column, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
