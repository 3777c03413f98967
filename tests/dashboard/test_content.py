"""What is drawn of a long run: some trials, and among them each that was the best once."""

import json

import numpy as np
import pytest

from deepbore.dashboard.comparing import best_line
from deepbore.dashboard.content import SHOWN, Content, part_of, some_rows
from deepbore.dashboard.runs import JournalEntry
from deepbore.data.array_ranking import best_so_far
from deepbore.data.log import first_line, written
from deepbore.data.runs import Run

SPACE = {"x": {"type": "real", "low": 0.0, "high": 1.0}, "<b>&": {"type": "categorical", "choices": ["<script>", "b"]}}


def long_run(path, n, seed=0, direction="minimize"):
    """A journal of n told trials, some of which failed, and their values."""
    random, crc = np.random.default_rng(seed), 0
    values = random.normal(size=n)
    values[random.random(n) < 0.1] = np.nan
    lines = [first_line({"space": SPACE, "directions": [direction], "seed": 0, "recipe": {}})]
    for k, value in enumerate(values.tolist()):
        params = {"x": random.random(), "<b>&": ["<script>", "b"][k % 2]}
        lines.append({"event": "asked", "trial": k, "params": params})
        told = (
            {"event": "failed", "reason": "<img src=x onerror=alert(1)>"}
            if np.isnan(value)
            else {"event": "told", "value": value}
        )
        lines.append({**told, "trial": k})
    with path.open("wb") as file:
        for line in lines:
            raw, crc = written(line, 2, crc)
            file.write(raw)
    return values


def entry_of(path):
    entry = JournalEntry(Run(path), path.parent)
    while entry.look():
        pass
    return entry


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_each_trial_that_was_the_best_once_is_drawn(tmp_path, direction):
    values = long_run(tmp_path / "run.jsonl", 4000, direction=direction)
    ledger = entry_of(tmp_path / "run.jsonl").ledger
    sign = 1 if direction == "minimize" else -1
    records, lowest = [], np.inf
    for k, value in enumerate(values):  # an oracle by a loop
        if sign * value < lowest:
            records.append(k)
            lowest = sign * value
    rows = some_rows(ledger)
    assert set(records) <= set(rows.tolist())
    assert len(rows) <= SHOWN + len(records)
    assert np.all(np.diff(rows) > 0)
    part = part_of(ledger)
    assert [trial.id for trial in part.trials] == rows.tolist()
    assert len(part) == 4000
    assert part.best.id == int(np.nanargmin(sign * values))


# regression: the page spoke of 3000, which the report has
def test_a_page_says_how_many_trials_it_draws(tmp_path):
    long_run(tmp_path / "run.jsonl", 700)
    text = Content(entry_of(tmp_path / "run.jsonl")).news([])
    assert f"Of 700 trials {SHOWN} at most are drawn" in text


def test_a_short_run_is_drawn_whole(tmp_path):
    long_run(tmp_path / "run.jsonl", 50)
    ledger = entry_of(tmp_path / "run.jsonl").ledger
    assert part_of(ledger) is ledger


def test_the_best_so_far_of_a_comparison_is_that_of_all_trials(tmp_path):
    values = long_run(tmp_path / "run.jsonl", 500, seed=3, direction="maximize")
    x, y = best_line(entry_of(tmp_path / "run.jsonl").ledger)
    assert x[-1] == 500
    best = -best_so_far(-values)
    assert np.allclose(y, best[x - 1])
    assert len(np.unique(best[np.isfinite(best)])) == len(np.unique(y))


def test_texts_of_the_user_are_escaped_and_no_number_is_lost(tmp_path):
    long_run(tmp_path / "run.jsonl", 40)
    answer = json.loads(Content(entry_of(tmp_path / "run.jsonl")).news([]))
    for name, part in answer["parts"].items():
        html = part["html"] if not name.startswith("*") else ""
        charts = json.dumps(part["charts"]) if not name.startswith("*") else ""
        assert "<script" not in html
        assert "<img" not in html
        assert "<script" not in charts.replace("<br>", "").replace("<b>", "")
    assert all("<script" not in text and "<img" not in text for text in answer["parts"]["*about"].values())
