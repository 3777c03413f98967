"""scripts/reproduce.py: figures, runs that are not made twice, what becomes of claims, and the page."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from scipy import stats

import forked
import reproduce
from deepbore.problems.suites import problem as problem_of
from figures import drawing, page, running
from figures.catalogue import FIGURES, RACES
from figures.kinds import Claim, Demonstration, Finding, Panel, Race
from figures.looks import shown
from figures.places import Results
from figures.running import Size, jobs, race_on
from figures.scores import Scores, verdict
from figures.statistics import Paired, best_so_far, cumulative_regret_of, paired
from harness.job import Job
from harness.running import run
from peers import methods
from processes import ROOT
from reporting.intervals import Typical
from reporting.rows import Run

TINY = Race(
    name="bore-3",  # rows go where those of a real figure go, so that they are found
    paper="A paper",
    caption="Two blind searches.",
    reports="Random search is ahead.",
    panels=(Panel("branin", "branin", ("random", "sobol")), Panel("camel", "camel", ("random",), trials=8)),
    trials=12,
    seeds=3,
    paper_trials=100,
    paper_seeds=None,
    few={"sobol": 2},
    checkpoints=(5,),
    claims=(Claim("branin", "random", "sobol", 12), Claim("camel", "random", "sobol", 12)),
)
QUICK = ("bore-1", "bore-2", "bore-9", "bore-13")


def run_of(method, seed, best, n=12, **others):
    row = {"problem": "branin", "method": method, "seed": seed, "workers": 1, "n": n, "best": best} | others
    return Run.from_row(row)


@pytest.fixture
def at_once(monkeypatch):
    """Jobs run in this process; the list of those that did."""
    ran = []

    def work(todo, processes, make, keep, name):
        for job in todo:
            ran.append(name(job))
            keep(job, make(job))
        return 0

    monkeypatch.setattr(running, "work", work)
    return ran


# --- the figures ------------------------------------------------------------------------------------------------------


def test_every_figure_of_the_papers_is_there():
    bore, boggn = ({f"{paper}-{n}" for n in range(1, last + 1)} for paper, last in (("bore", 13), ("boggn", 4)))
    assert set(FIGURES) == bore | boggn | {"batch-theory", "batch-1", "batch-2", "batch-E1"}
    assert all(figure.name == name for name, figure in FIGURES.items())


@pytest.mark.parametrize("name", RACES)
def test_claims_are_of_methods_in_a_panel_and_within_the_race(name):
    race = RACES[name]
    assert race.claims
    for claim in race.claims:
        for method in (claim.first, claim.second):
            assert race.pairs[claim.problem, method] >= (claim.at or 1), claim


def test_every_method_of_a_race_is_one_of_the_harness():
    assert {method for race in RACES.values() for _, method in race.pairs} <= set(methods.names())


def test_the_list_names_each_figure_once(capsys, monkeypatch):
    monkeypatch.setattr(running, "why_no_problem", lambda name: "no cream cheese" if name == "racing/ucb" else "")
    monkeypatch.setattr(sys, "argv", ["reproduce.py", "--list"])
    assert reproduce.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line[0] != " "] == list(FIGURES)
    assert sum("no cream cheese" in line for line in lines) == 4


# --- races ------------------------------------------------------------------------------------------------------------


def test_jobs_have_the_sizes_of_the_race_or_those_given():
    sizes = {(job.problem, job.method): job.trials for job in jobs(TINY, Size())}
    assert sizes == {("branin", "random"): 12, ("branin", "sobol"): 12, ("camel", "random"): 8}
    assert [job.seed for job in jobs(TINY, Size())] == [0, 0, 0, 1, 1, 1, 2, 2]
    assert {job.trials for job in jobs(TINY, Size(seeds=5, trials=7))} == {7}
    assert len(jobs(TINY, Size(seeds=5, problems=["branin"], methods=["random"]))) == 5


def test_what_any_figure_has_run_is_not_run_again(tmp_path, at_once):
    results = Results(tmp_path)
    race_on(TINY, Size(seeds=1), 1, results)
    assert len(at_once) == 3
    race_on(replace(TINY, name="bore-4"), Size(seeds=2), 1, results)
    assert at_once[3:] == ["branin, random, seed 1", "branin, sobol, seed 1", "camel, random, seed 1"]
    race_on(TINY, Size(seeds=2), 1, results)
    assert len(at_once) == 6
    race_on(replace(TINY, metric="cumulative regret"), Size(seeds=1), 1, results)
    assert len(at_once) == 9  # those had no sums of rounds


def test_what_is_missing_is_left_out_with_a_word(tmp_path, at_once, capsys):
    race = replace(TINY, panels=(Panel("branin", "branin", ("random", "crystal-ball")), Panel("x", "x", ("random",))))
    race_on(race, Size(seeds=1), 1, Results(tmp_path))
    assert at_once == ["branin, random, seed 0"]
    said = capsys.readouterr().err
    assert "crystal-ball is left out" in said
    assert "the problem x is left out" in said


# --- what runs say ----------------------------------------------------------------------------------------------------


def test_curves_are_those_of_the_evaluations():
    job = Job("branin", "random", 2, 25, workers=10, rounds=True)
    made, branin = Run.from_row(run(job)), problem_of("branin")
    peer = methods.make("random", branin.space, 2, workers=10)
    values = np.array([branin(params) for q in (10, 10, 5) for params in peer.ask(q)])
    assert best_so_far(made, 25) == pytest.approx(np.minimum.accumulate(values))
    total = cumulative_regret_of(made, 25, branin.optimum)
    assert len(total) == 25
    assert total[[9, 19, 24]] == pytest.approx((values - branin.optimum).cumsum()[[9, 19, 24]])


def test_the_paired_test_is_that_of_scipy():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=12), rng.normal(0.5, size=12)
    found = paired(dict(enumerate(first)), {**dict(enumerate(second)), 99: 0.0})
    assert (found.difference.sign != 0) == (found.p <= 0.05)
    assert found.p == pytest.approx(stats.wilcoxon(first, second).pvalue)
    assert (found.won, found.lost, found.seeds) == ((first < second).sum(), (first > second).sum(), 12)
    assert paired({0: 1.0}, {0: 2.0}) is None
    assert paired({0: 1.0, 1: 2.0}, {0: 1.0, 1: 2.0}).p == 1


@pytest.mark.parametrize(
    ("low", "high", "ahead", "level"),
    [
        (-2, -1, "reproduced", "refuted"),
        (1, 2, "refuted", "refuted"),
        (-1, 1, "undecided", "not contradicted"),
        (0, 0, "undecided", "not contradicted"),
    ],
)
def test_a_verdict_is_what_the_interval_says(low, high, ahead, level):
    compared = Paired(Typical((low + high) / 2, low, high), 0.5, 6, 1, 1, 1)
    assert verdict(Claim("branin", "a", "b", 5), compared) == ahead
    assert verdict(Claim("branin", "a", "b", 5, level=True), compared) == level
    assert verdict(Claim("branin", "a", "b", 5), None) == "no runs"


def test_claims_compare_regrets_at_their_evaluations_or_over_all():
    runs = [run_of("random", seed, [[1, 3.0 + seed / 8], [7, 1.0]]) for seed in range(6)]
    runs += [run_of("sobol", seed, [[1, 2.0]]) for seed in range(6)] + [run_of("sobol", 7, [[1, 0.0]], n=4)]
    scores = Scores(TINY, runs, {"branin": 0.5})
    assert scores.at("branin", "random", 6) == {seed: 2.5 + seed / 8 for seed in range(6)}
    assert scores.compared(Claim("branin", "random", "sobol", 12)).difference.middle == -1
    over_all = scores.compared(Claim("branin", "random", "sobol", None)).difference.middle
    assert over_all == pytest.approx((6 * (3.3125 - 2) + 6 * (1 - 2)) / 12)
    assert [finding.verdict for finding in scores.findings] == ["reproduced", "no runs"]
    later = scores.found(Claim("branin", "random", "sobol", 500))  # the runs end at 12
    assert later.claim == "branin, after 500 (here 12): random ahead of sobol"
    assert later.verdict == "reproduced"
    assert Scores(TINY, runs, {}).at("branin", "random", 12)[0] == 1.0  # no optimum: the value itself


def test_something_shown_is_reproduced_on_nearly_all_seeds():
    seeds = [{seed: seed < k for seed in range(20)} for k in (19, 18, 10)]
    assert [shown("it rains", holds, "").verdict for holds in seeds] == ["reproduced", "undecided", "refuted"]


# --- the page ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_has_the_numbers_of_the_rows(tmp_path, at_once, monkeypatch):
    results = Results(tmp_path / "papers")
    monkeypatch.setitem(RACES, "bore-3", TINY)
    monkeypatch.setattr(page, "FIGURES", {"bore-3": TINY})
    assert reproduce.make(TINY, Size(), 1, results) == 0
    assert results.picture(TINY).stat().st_size < 80_000
    reproduce.report(results)
    text = results.page.read_text()
    ends = [
        run.best[-1][1] - problem_of("branin").optimum for run in results.runs() if run.key[:2] == ("branin", "random")
    ]
    assert f"{np.mean(ends):.3g}" in text
    assert "    python scripts/reproduce.py bore-3\n" in text
    assert "(papers/bore-3.png)" in text
    assert reproduce.check(results) == 0
    monkeypatch.setattr(page, "FIGURES", {"bore-3": replace(TINY, explanation="Bad luck.")})
    assert reproduce.check(results) == 1


def test_commands_say_what_was_run(tmp_path, at_once):
    results = Results(tmp_path)
    race_on(TINY, Size(seeds=2, trials=9), 1, results)
    race_on(TINY, Size(problems=["branin"], methods=["sobol"]), 1, results)
    found = page.commands(Scores(TINY, results.runs(), {}))
    assert found == [
        "python scripts/reproduce.py bore-3 --problems branin --methods sobol",
        "python scripts/reproduce.py bore-3 --problems branin camel --methods random --trials 9 --seeds 2",
    ]


def test_without_rows_the_page_says_so(tmp_path):
    text = page.document(Results(tmp_path), [], {})
    assert text.count("is here yet") + text.count("are here yet") == len(FIGURES)


# --- demonstrations ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", QUICK)
def test_a_demonstration_computes_draws_and_finds(name, tmp_path, at_once):
    figure, results = FIGURES[name], Results(tmp_path)
    assert isinstance(figure, Demonstration)
    for _ in range(2):
        assert reproduce.make(figure, Size(seeds=2, trials=figure.tiny or None), 1, results) == 0
    assert len(at_once) == 2
    rows = [json.loads(line) for line in results.rows(figure).read_text().splitlines()]
    assert [row["seed"] for row in rows] == [0, 1]
    with Image.open(results.picture(figure)) as picture:
        assert min(picture.size) > 100
    text, findings = page.section(figure, results, [], {})
    assert figure.table(results.numbers(figure)) in text
    assert all(isinstance(finding, Finding) for finding in findings)
    assert findings[0].verdict == "reproduced"  # each begins with what is a theorem


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FIGURES if name not in {*RACES, *QUICK}])
def test_a_slow_demonstration_computes_draws_and_finds(name, tmp_path, at_once):
    figure, results = FIGURES[name], Results(tmp_path)
    assert reproduce.make(figure, Size(seeds=1, trials=figure.tiny), 1, results) == 0
    text, _ = page.section(figure, results, [], {})
    assert figure.table(results.numbers(figure)) in text
    assert results.picture(figure).stat().st_size < 80_000


def test_a_picture_of_a_race_without_runs_is_empty():
    assert drawing.draw(Scores(TINY, [], {})).axes


@pytest.mark.slow
def test_smoke_runs_a_figure_by_the_command():
    command = [sys.executable, ROOT / "scripts" / "reproduce.py", "--smoke", "--jobs", "2"]
    done = forked.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    assert "## bore-11" in done.stdout
