"""What docs/dashboard.md says of costs is what scripts/bench_dashboard.py has measured."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def said(row):
    """The numbers of a row of the table, by its beginning."""
    line = re.search(rf"^\| {row}[^|]*\|(.*)$", (ROOT / "docs/dashboard.md").read_text(encoding="utf-8"), re.MULTILINE)
    return [float(cell.split()[0]) for cell in line[1].strip(" |").split("|")]


def test_the_table_of_costs_is_what_was_measured():
    result = json.loads((ROOT / "docs/results/dashboard.json").read_text(encoding="utf-8"))
    parts = [result["many_runs"], result["long_run"]]
    painted = [part["first_paint"]["when_read"] for part in parts]
    for row, measured, within in (
        ("CPU of an update", [part["update"]["median_ms"] for part in parts], 0.5),
        ("the largest of 30", [part["update"]["largest_ms"] for part in parts], 0.5),
        ("CPU of a look", [part["idle_look"]["median_ms"] for part in parts], 0.5),
        ("CPU of reading all", [part["read_all_s"] for part in parts], 0.05),
        ("the list is painted", [each["list_s"] for each in painted], 0.051),
        ("the page of a run", [each["first_picture_s"] for each in painted], 0.005),
        ("its history as a chart", [each["run_page_s"] for each in painted], 0.051),
        ("CPU of the browser", [each["run_page_cpu_s"] for each in painted], 0.05),
    ):
        assert all(abs(a - b) <= within for a, b in zip(said(row), measured, strict=True)), (row, said(row), measured)


def test_the_page_of_a_long_run_is_painted_within_a_second():
    result = json.loads((ROOT / "docs/results/dashboard.json").read_text(encoding="utf-8"))
    assert max(result[part]["first_paint"]["when_read"]["first_picture_s"] for part in ("many_runs", "long_run")) < 1


def test_updates_stay_below_a_tenth_of_a_second():
    result = json.loads((ROOT / "docs/results/dashboard.json").read_text(encoding="utf-8"))
    assert (result["runs"], result["long"]) == (100, 100_000)
    assert max(result[part]["update"]["largest_ms"] for part in ("many_runs", "long_run")) < 100
