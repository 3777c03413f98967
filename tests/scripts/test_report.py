"""scripts/report_benchmark.py: what it says of runs whose results are known, and the documents that it writes."""

import json
import math
import sys

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from scipy.stats import rankdata

import report_benchmark
from deepbore.problems import Coco, suites
from processes import ROOT
from reporting import ablation, facts as known, intervals, pages, pictures, regrets, rows, tables
from reporting.comparison import Comparison
from reporting.facts import Fact
from reporting.runs_table import commands
from reporting.sections import Comparisons


def row(problem="bbob/f01/i01/d05", method="deepbore", seed=0, best=((1, 1.0),), **others):
    default = {"workers": 1, "n": 200, "seconds": 2.0, "failed": 0, "version": "0"}
    return {"problem": problem, "method": method, "seed": seed, "best": best, **default, **others}


def runs_of(*given):
    return [rows.Run.from_row(one) for one in given]


def finals(values, **others):
    """Runs that see one value: {(problem, method, seed): value}."""
    return runs_of(*(row(p, m, s, [(1, value)], **others) for (p, m, s), value in values.items()))


def scaled(runs, facts=None):
    return regrets.scales(runs, facts or known.gather(run.problem for run in runs))


def compared(runs, k=100, **others):
    return Comparison(runs, k, scaled(runs), **others)


A, B, C = (f"bbob/f0{f}/i01/d05" for f in (1, 2, 3))


def three_methods():
    """Three methods on 4 functions, 3 instances of which one is held out, and one noisy problem, with 3 seeds."""
    stream, given = np.random.default_rng(0), []
    for f in (1, 3, 8, 15):
        for i in (1, 2, 6):
            for method, power in (("deepbore", 1.5), ("tpe", 0.7), ("random", 0.3)):
                for seed in range(3):
                    seen = np.minimum.accumulate(100 * np.exp(stream.normal(size=200)) * np.arange(1, 201) ** -power)
                    best = [[k + 1, float(f"{seen[k]:.6g}")] for k in range(200) if k == 0 or seen[k] < seen[k - 1]]
                    given.append(row(f"bbob/f{f:02d}/i{i:02d}/d05", method, seed, best))
    for method, value in (("deepbore", 1e-3), ("tpe", 1e-2)):
        name = "bbob-noisy/f101/i01/d05"
        given.append(row(name, method, 0, [[1, 9.0]], recommended=[[k, value] for k in (25, 50, 100, 200)]))
    return given


@pytest.fixture
def synthetic():
    return three_methods()


def report(monkeypatch, *given):
    monkeypatch.setattr(sys, "argv", ["report_benchmark.py", *map(str, given)])
    return report_benchmark.main()


# --- the runs --------------------------------------------------------------------------------------------------------


def test_a_run_knows_its_value_after_so_many_evaluations():
    (run,) = runs_of(row(best=[[2, 3.0], [10, 1.0]], recommended=[[25, 2.0]]))
    assert [run.at(k) for k in (1, 2, 9, 10, 500)] == [None, 3.0, 3.0, 1.0, 1.0]
    assert [run.at(k, recommended=True) for k in (24, 25)] == [None, 2.0]


def test_broken_lines_are_left_out_and_the_later_of_two_runs_counts(tmp_path, capsys):
    lines = [json.dumps(row(best=[[1, 5.0]])), json.dumps(row(best=[[1, 4.0]])), '{"problem": "bb', "[]", ""]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    (run,) = rows.read([tmp_path])
    assert run.best == ((1, 4.0),)
    assert capsys.readouterr().err.count("left out") == 2


@pytest.mark.parametrize(
    ("problem", "suite", "dimension", "cluster"),
    [
        ("bbob-mixint/f02/i07/d10", "bbob-mixint", 10, "bbob-mixint/f02"),
        ("hpolib/naval_propulsion", "tables", None, "hpolib/naval_propulsion"),
        ("nasbench201/cifar10", "tables", None, "nasbench201/cifar10"),
        ("training/svm", "training", None, "training/svm"),
        ("noisy/branin-cauchy", "noisy", None, "noisy/branin-cauchy"),
        ("branin", "functions", None, "branin"),
    ],
)
def test_names_say_what_a_problem_is(problem, suite, dimension, cluster):
    assert known.suite_of(problem) == suite
    assert known.dimension_of(problem) == dimension
    assert known.cluster_of(problem) == cluster


def test_the_halves_of_coco_are_its_instances():
    found = known.gather(["bbob/f01/i05/d05", "bbob/f01/i06/d05"])
    assert [fact.half for fact in found.values()] == ["development", "held_out"]


def test_facts_are_kept(tmp_path):
    kept = {"branin": Fact(0.397887, "development"), "training/x": Fact(None, "held_out")}
    known.write(kept | {A: Fact(0.0, "development"), "unknown": Fact(None, "all")}, tmp_path / "facts.json")
    assert known.read(tmp_path / "facts.json") == kept
    assert known.gather(["branin"], tmp_path / "facts.json") == {"branin": kept["branin"]}


# --- regrets ---------------------------------------------------------------------------------------------------------


def test_cocos_regrets_end_at_its_final_target():
    scale = scaled(finals({(A, "deepbore", 0): 1e-12}))[A]
    assert scale.regret(1e-12) == scale.floor == 1e-8
    assert scale.targets[[0, -1]] == pytest.approx([100, 1e-8])


def test_a_table_ends_at_a_tenth_of_the_smallest_regret_seen():
    optimum = 0.2213790123456789
    found = float(f"{optimum:.12g}")  # less than it, by rounding
    runs = finals({("hpolib/x", "deepbore", 0): found, ("hpolib/x", "random", 0): found + 1e-4})
    scale = scaled(runs, {"hpolib/x": Fact(optimum, "development")})["hpolib/x"]
    assert scale.floor == pytest.approx(1e-5)
    assert scale.regret(found) == scale.floor
    assert scale.targets[[0, -1]] == pytest.approx([1e-4, 1e-5])  # from the value of random search


def test_without_a_known_optimum_the_best_of_all_runs_is_it():
    runs = [*finals({("training/x", "tpe", 0): 0.3}), *finals({("training/x", "tpe", 0): 0.1}, n=1000)]
    assert scaled(runs, {"training/x": Fact(None, "development")})["training/x"].regret(0.3) == pytest.approx(0.2)


def test_differences_finer_than_the_digits_of_the_rows_do_not_count():
    runs = finals({("far", "deepbore", 0): 123456.0, ("hartmann6", "deepbore", 0): -3.32236801})
    scales = scaled(runs, {"far": Fact(123456.0, "development"), "hartmann6": Fact(-3.32236801141551, "development")})
    assert scales["far"].floor == pytest.approx(1e-6)
    assert scales["hartmann6"].floor == 1e-8


def test_a_run_that_has_seen_nothing_has_the_worst_regret():
    runs = runs_of(row(A, "deepbore", best=[]), row(A, "tpe", best=[[1, 7.0], [3, 2.0]]))
    assert compared(runs).regrets[A, 0] == {"deepbore": 7.0, "tpe": 2.0}


# --- comparisons -----------------------------------------------------------------------------------------------------


def test_ranks_are_means_over_seeds_then_problems():
    values = {(p, m, s): float(v) for p, m, s, v in [
        (A, "deepbore", 0, 1), (A, "tpe", 0, 2), (A, "deepbore", 1, 3), (A, "tpe", 1, 2),
        (A, "deepbore", 2, 5), (A, "tpe", 2, 5), (B, "deepbore", 0, 1), (B, "tpe", 0, 2),
    ]}  # fmt: skip
    ranks = compared(finals(values)).ranks()
    assert ranks["deepbore"].mean == pytest.approx(((1 + 2 + 1.5) / 3 + 1) / 2)
    assert ranks["tpe"].mean == pytest.approx(((2 + 1 + 1.5) / 3 + 2) / 2)


def test_ranks_and_duels_agree_with_loops(synthetic):
    comparison = compared(runs_of(*synthetic[:-2]), k=50)
    by_problem, logs, reached = {}, {}, {}
    for (problem, _), row_ in comparison.regrets.items():
        regret = [row_[m] for m in comparison.main]
        by_problem.setdefault(problem, []).append(rankdata(regret))
        logs.setdefault(problem, []).append(math.log(row_["deepbore"] / row_["tpe"]))
        reached.setdefault(problem, []).append(sum(row_["tpe"] <= t for t in np.logspace(2, -8, 51)) / 51)
    expected = np.mean([np.mean(of, 0) for of in by_problem.values()], 0)
    assert [estimate.mean for estimate in comparison.ranks().values()] == pytest.approx(expected)
    duel = comparison.duel("deepbore", "tpe")
    assert duel.ratio.mean == pytest.approx(np.mean([np.mean(of) for of in logs.values()]))
    assert duel.worst == max(logs, key=lambda problem: np.mean(logs[problem]))
    assert duel.worst_ratio == pytest.approx(math.exp(max(np.mean(of) for of in logs.values())))
    assert comparison.reached()["tpe"].mean == pytest.approx(np.mean([np.mean(of) for of in reached.values()]))
    assert pictures.curve(comparison, "tpe", np.array([50]))[0] == pytest.approx(comparison.reached()["tpe"].mean)


def test_a_duel_counts_pairs_won_tied_and_lost():
    values = {}
    for seed, (mine, other) in enumerate([(1, 2), (1, 2), (2, 1), (1e-9, 1e-10)]):  # the last two: below the floor
        values |= {(A, "deepbore", seed): mine, (A, "tpe", seed): other}
    duel = compared(finals(values)).duel("deepbore", "tpe")
    assert (duel.won, duel.tied, duel.lost) == (0.5, 0.25, 0.25)
    assert compared(finals(values)).duel("deepbore", "hebo") is None


def test_who_misses_many_problems_is_compared_apart():
    values = {(p, m, 0): 1.0 for p in (A, B, C) for m in ("deepbore", "tpe")} | {(A, "smac", 0): 0.5}
    comparison = compared(finals(values | {("bbob/f09/i01/d05", "deepbore", 0): 1.0}))
    assert (comparison.main, comparison.subset) == (["deepbore", "tpe"], ["smac"])  # what one alone ran does not count
    assert set(comparison.ranks()) == {"deepbore", "tpe"}
    assert comparison.ranks(["deepbore", "smac"])["smac"].mean == 1
    assert comparison.duel("deepbore", "smac").problems == 1


def test_the_best_peer_is_the_best_of_others():
    values = {(A, name, 0): float(v) for v, name in enumerate(["deepbore, asynchronous", "tpe", "deepbore", "random"])}
    peer, duel = compared(finals(values)).against_best("deepbore")
    assert (peer, duel.worst_ratio) == ("tpe", pytest.approx(2))
    assert compared(finals({(A, "deepbore", 0): 1.0})).against_best("deepbore") is None


def test_only_seeds_that_all_have_are_ranked():
    values = {(A, "deepbore", 0): 2.0, (A, "tpe", 0): 1.0, (A, "deepbore", 1): 0.0, (B, "deepbore", 0): 1.0}
    comparison = compared(finals(values))
    assert comparison.pairs(comparison.main) == [(A, 0)]
    assert comparison.ranks()["deepbore"].mean == 2


def test_the_shortest_run_that_is_long_enough_counts():
    runs = [r for n, v in ((50, 1.0), (200, 2.0), (1000, 3.0)) for r in finals({(A, "deepbore", 0): v}, n=n)]
    assert [compared(runs, k).regrets[A, 0]["deepbore"] for k in (25, 50, 100, 1000)] == [1, 1, 2, 3]
    assert not compared(runs, 5000).regrets


def test_means_are_of_clusters():
    values = np.array([[0.0], [0.0], [1.0], [1.0]])
    (together,) = intervals.means(values, ["a", "a", "b", "b"])
    (apart,) = intervals.means(values, ["a", "b", "c", "d"])
    assert together.mean == apart.mean == 0.5
    assert apart.error == pytest.approx(stats.sem([0, 0, 1, 1]))
    assert together.error == pytest.approx(stats.sem([0, 1]))
    assert math.isinf(intervals.means(values, ["a"] * 4)[0].error)


def test_means_have_the_interval_of_students_t_from_six_problems_on():
    x = np.random.default_rng(0).normal(size=6)
    found = intervals.mean(x).interval
    assert found == pytest.approx(tuple(stats.ttest_1samp(x, 0).confidence_interval(0.995)))
    assert intervals.mean(x[:5]).interval == (-math.inf, math.inf)


@given(arrays(float, st.integers(1, 14), elements=st.floats(-9, 9).map(lambda x: round(x, 3)), unique=True))
def test_what_is_typical_has_the_interval_of_the_signed_rank_test(x):
    found = intervals.Typical.of(x)
    assert found.low <= found.middle <= found.high
    if len(x) < 6:
        assert (found.low, found.high) == (-math.inf, math.inf)
        return
    for shift, is_outside in ((found.low - 1e-7, True), (found.low + 1e-7, False), (found.high + 1e-7, True)):
        p = stats.wilcoxon(x - shift, method="exact").pvalue
        assert (p <= 0.05) == is_outside or found.high - found.low < 1e-6


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([-1.0, -1.1, -1.2, -1.3, -1.4, -0.1], "ahead"),
        ([1.0, 1.1, 1.2, 1.3, 1.4, 0.1], "behind"),
        ([-1.0] * 5, "undecided"),  # five are too few
        ([-1.0, -1.1, -1.2, -1.3, -1.4, 0.1], "undecided"),
        ([-0.1, 0.1, 0.05, -0.05, 0.2, -0.2], "level"),
        ([0.0] * 6, "level"),
    ],
)
def test_one_rule_says_who_is_ahead(values, verdict):
    assert intervals.Typical.of(values).verdict == verdict


def test_the_number_that_would_decide_gives_the_test_its_power():
    rng = np.random.default_rng(1)
    few = rng.normal(0.5, 1.0, size=4000)
    n = intervals.needed(few)
    told = [intervals.Typical.of(rng.normal(0.5, 1.0, size=n)).sign == 1 for _ in range(400)]
    assert np.mean(told) == pytest.approx(0.8, abs=0.08)
    assert intervals.needed([1.0, 1.01, 1.02]) == 6
    assert math.isinf(intervals.needed([-1.0, 1.0]))


def test_a_mean_is_told_without_what_favours_it_most():
    logs = [-14, -13, -12, -11, 1, 1, 1, 2]
    values = {
        (f"bbob/f0{k}/i01/d05", method, 0): math.exp(log) if method == "deepbore" else 1.0
        for k, log in enumerate(logs, start=1)
        for method in ("deepbore", "tpe")
    }
    duel = compared(finals(values)).duel("deepbore", "tpe")
    assert (duel.without_best, duel.signs) == (pytest.approx(1.25), (4, 0, 4))
    assert duel.ratio.mean == pytest.approx(np.mean(logs))
    assert duel.typical.verdict == "undecided"


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "docs" / "results" / "benchmark"
    folder.mkdir(parents=True)
    (folder / "bbob.jsonl").write_text("".join(json.dumps(one) + "\n" for one in three_methods()))
    (tmp_path / "docs" / "compared.md").write_text("before\n<!-- results -->\n<!-- /results -->\nafter\n")
    return tmp_path


def test_a_report_is_written_and_stays_as_it_is(repository, monkeypatch, capsys):
    assert report(monkeypatch, "--root", repository, "--check") == 1
    assert "results.md is out of date" in capsys.readouterr().err
    assert report(monkeypatch, "--root", repository) == 0
    page = (repository / "docs" / "results.md").read_text()
    assert report(monkeypatch, "--root", repository, "--check") == 0
    assert "| [bbob, 5-D](results/bbob.md) | 4 | 1.00 | tpe 2.00 | **undecided** |" in page  # of four functions
    of = {name: (repository / "docs" / "results" / f"{name}.md").read_text() for name in ("bbob", "bbob-noisy", "runs")}
    for title in ("### bbob, 5-D: development", "### bbob, 5-D: validation"):
        assert title in of["bbob"]
    assert "what is recommended" in of["bbob-noisy"]
    assert "## Optimiser time" in of["runs"]
    assert "| deepbore | **1.00** | **1.00** | **1.00** | **1.00** |" in of["bbob"]
    assert "| *problems (with seeds)* | 8 (24) | 8 (24) | 8 (24) | 8 (24) |" in of["bbob"]
    assert "| tpe | undecided: 0.10 (1/0/0, p 1.0); 0.10; – |" in of["bbob-noisy"]  # the best that were seen tie
    assert "| deepbore | 10 | 10 |" in of["runs"]  # milliseconds
    summary = (repository / "docs" / "compared.md").read_text()
    assert summary.startswith("before\n<!-- results -->\n")
    assert summary.endswith("<!-- /results -->\nafter\n")
    assert "| bbob (12) | **1.00** |" in summary
    drawn = repository / "docs" / "pictures" / "bbob-targets.png"
    assert "(../pictures/bbob-targets.png)" in of["bbob"]
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


def test_without_runs_the_comparisons_stay_as_they_are(repository, monkeypatch):
    (repository / "docs" / "results" / "benchmark" / "bbob.jsonl").unlink()
    before = (repository / "docs" / "compared.md").read_text()
    assert report(monkeypatch, "--root", repository) == 0
    assert (repository / "docs" / "compared.md").read_text() == before
    assert "no runs yet" in (repository / "docs" / "results.md").read_text()


def test_an_ablation_compares_with_its_reference(repository, monkeypatch, capsys):
    folder = repository / "docs" / "results" / "benchmark"
    assert report(monkeypatch, "--root", repository, "--rows", folder, "--reference", "tpe") == 0
    page = capsys.readouterr().out
    assert "### bbob, 5-D: development" in page
    assert "### bbob-noisy, 5-D: development, recommended" in page
    assert f"| deepbore | 1 | {' | '.join(['undecided: 0.10 (1/0/0, p 1.0); 0.10; –'] * 4)} | 1.00 |" in page
    assert "### Overall" in page
    assert "100 / 0 / 0 (200)" in page


def test_an_ablation_of_incomplete_runs():
    runs = runs_of(row(A, "deepbore", n=100), row(A, "variant", n=50), row(B, "other"), row(C, "deepbore"))
    page = ablation.page(Comparisons(runs, known.gather(r.problem for r in runs), scaled(runs)), "deepbore")
    cell = "undecided: 1.0 (0/1/0, p 1.0); 1.0; –"
    assert f"| variant | 1 | {cell} | {cell} | 1.50 | 1.50 | 0 / 100 / 0 (50) |" in page
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
