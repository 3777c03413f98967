"""The documents that `scripts/report_benchmark.py` writes."""

import json

import pytest

from deepbore.problems import Coco, suites
from reporting import ablation, facts as known, pages, rows, tables
from reporting.runs_table import commands
from reporting.sections import Comparisons
from test_report import ROOT, A, B, C, finals, report, row, runs_of, scaled, three_methods


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "docs" / "results" / "benchmark"
    folder.mkdir(parents=True)
    (folder / "bbob.jsonl").write_text("".join(json.dumps(one) + "\n" for one in three_methods()))
    (tmp_path / "README.md").write_text("before\n<!-- results -->\n<!-- /results -->\nafter\n")
    return tmp_path


def test_a_report_is_written_and_stays_as_it_is(repository, monkeypatch, capsys):
    assert report(monkeypatch, "--root", repository, "--check") == 1
    assert "results.md is out of date" in capsys.readouterr().err
    assert report(monkeypatch, "--root", repository) == 0
    page = (repository / "docs" / "results.md").read_text()
    assert report(monkeypatch, "--root", repository, "--check") == 0
    for title in ("### bbob, 5-D: development", "### bbob, 5-D: held out", "what is recommended", "## Optimiser time"):
        assert title in page
    assert "| deepbore | **1.00** | **1.00** | **1.00** | **1.00** |" in page
    assert "| *problems (with seeds)* | 8 (24) | 8 (24) | 8 (24) | 8 (24) |" in page
    assert "| tpe | 0.10 | 0.10 | 0.10 | 0.10 |" in page  # recommended; the best that were seen tie
    assert "| deepbore | 10 | 10 |" in page  # milliseconds
    readme = (repository / "README.md").read_text()
    assert readme.startswith("before\n<!-- results -->\n")
    assert readme.endswith("<!-- /results -->\nafter\n")
    assert "| bbob (12) | **1.00** |" in readme
    drawn = repository / "docs" / "pictures" / "bbob-targets.png"
    assert "(pictures/bbob-targets.png)" in page
    assert 3_000 < drawn.stat().st_size < 60_000


@pytest.mark.parametrize(("workers", "at"), [(1, [25, 50, 100, 200]), (8, [25, 50, 100, 200]), (64, [128, 192])])
def test_large_batches_are_compared_after_whole_rounds(workers, at):
    runs = finals({(A, "deepbore", 0): 1.0, (A, "tpe", 0): 2.0}, workers=workers, n=200)
    facts = known.gather({A})
    comparisons = Comparisons(runs, facts, scaled(runs, facts))
    (section,) = comparisons.runs
    assert [comparison.k for comparison in comparisons.of(section)] == at


def test_the_page_says_how_its_runs_are_made():
    given = [row(f"bbob/f01/i{i:02d}/d05", m, s, n=n) for i in (1, 6) for m in ("tpe", "deepbore") for s in (2, 3)
             for n in (200, 1000)]  # fmt: skip
    given.append(row("hpolib/x", "deepbore, asynchronous", workers=8))
    halves = {"bbob/f01/i01/d05": "development", "bbob/f01/i06/d05": "held_out", "hpolib/x": "held_out"}
    assert commands(runs_of(*given), "deepbore", halves) == [
        "python scripts/benchmark.py --suite bbob --half all --dimensions 5 --instances 1 6 --methods deepbore tpe "
        f"--first-seed 2 --seeds 2 --trials {n}"
        for n in (200, 1000)
    ] + [
        "python scripts/benchmark.py --suite tables --half held_out --methods deepbore --seeds 1 --trials 200 "
        "--workers 8 --asynchronous"
    ]


def test_new_runs_make_the_documents_stale(repository, monkeypatch):
    report(monkeypatch, "--root", repository)
    with (repository / "docs" / "results" / "benchmark" / "new.jsonl").open("w") as file:
        file.write(json.dumps(row(method="hebo")) + "\n")
    assert report(monkeypatch, "--root", repository, "--check") == 1


def test_without_runs_the_readme_stays_as_it_is(repository, monkeypatch):
    (repository / "docs" / "results" / "benchmark" / "bbob.jsonl").unlink()
    before = (repository / "README.md").read_text()
    assert report(monkeypatch, "--root", repository) == 0
    assert (repository / "README.md").read_text() == before
    assert "no runs yet" in (repository / "docs" / "results.md").read_text()


def test_an_ablation_compares_with_its_reference(repository, monkeypatch, capsys):
    folder = repository / "docs" / "results" / "benchmark"
    assert report(monkeypatch, "--root", repository, "--rows", folder, "--reference", "tpe") == 0
    page = capsys.readouterr().out
    assert "### bbob, 5-D: development" in page
    assert "### bbob-noisy, 5-D: development, recommended" in page
    assert "| deepbore | 1 | 0.10 | 0.10 | 0.10 | 0.10 | 1.00 |" in page
    assert "### Overall" in page
    assert "100 / 0 / 0 (200)" in page


def test_an_ablation_of_incomplete_runs():
    runs = runs_of(row(A, "deepbore", n=100), row(A, "variant", n=50), row(B, "other"), row(C, "deepbore"))
    page = ablation.page(Comparisons(runs, known.gather(r.problem for r in runs), scaled(runs)), "deepbore")
    assert "| variant | 1 | 1.0 | 1.0 | 1.50 | 1.50 | 0 / 100 / 0 (50) |" in page
    alone = Comparisons(runs[-1:], known.gather([C]), scaled(runs))
    assert "No run of another method" in ablation.page(alone, "deepbore")


def test_a_readme_without_markers_stays():
    assert pages.with_table("text", "table") == "text"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.617, "0.62"), (0.0234, "0.023"), (1.0, "1.0"), (12.34, "12"), (1234.5, "1234"), (1.2e-4, "1.2e-4")],
)
def test_numbers_are_short(value, text):
    assert tables.short(value) == text


def test_the_committed_documents_are_those_of_the_committed_runs(monkeypatch):
    assert report(monkeypatch, "--check") == 0


def test_no_committed_run_is_better_than_the_optimum():
    facts = known.read(ROOT / "docs" / "results" / "problems.json")
    for run in rows.read([ROOT / "docs" / "results" / "benchmark", ROOT / "docs" / "results" / "ablation"]):
        optimum = facts[run.problem].optimum if run.problem in facts else None
        found = [value for _, value in (*run.best, *run.recommended)]
        if optimum is not None and found:
            assert min(found) >= optimum - 5e-6 * max(1, abs(optimum)), run.key  # some have six digits


def test_the_committed_facts_are_those_of_the_suites():
    kept = known.read(ROOT / "docs" / "results" / "problems.json")
    assert kept
    halves = {
        name: half
        for suite in suites.SUITES
        if suite not in Coco.DIMENSIONS
        for half in ("development", "held_out")
        for name in suites.suite(suite, half)
    }
    for name, fact in kept.items():
        if name.startswith("bbob-constrained/"):
            expected = "development" if "/i01/" in name else "held_out"
        else:
            expected = "development" if name.split("/")[-1].split("-")[0] in suites.CENTRED else halves[name]
        assert fact.half == expected, f"{name}: delete docs/results/problems.json, report anew"
        if "/" not in name or name.startswith("bbob-constrained/"):
            assert fact.optimum == suites.problem(name).optimum
