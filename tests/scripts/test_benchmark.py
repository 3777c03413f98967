"""scripts/benchmark.py: what a run's row says, and what is not run again."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

import bench_suggest
import benchmark
import failures
import forked
from deepbore import Real, SearchSpace
from deepbore.data.outcome import Outcome
from deepbore.problems import Problem
from deepbore.problems.suites import problem as problem_of
from harness.files import append, left
from harness.job import Job
from harness.ledger import Ledger
from harness.measuring import complete, longest, measure_or_show, rows
from harness.running import optimise, run
from peers.base import Peer
from processes import ROOT, is_gone

SCRIPTS = ROOT / "scripts"


class Told(Peer):
    """Goes through given values of x."""

    packages = ("deepbore",)

    def __init__(self, values, **settings):
        super().__init__(SearchSpace({"x": Real(-10, 10)}), 0, **settings)
        self.queue = list(values)

    def ask(self, q):
        taken, self.queue = self.queue[:q], self.queue[q:]
        return [{"x": value} for value in taken]


class Line(Problem):
    """x itself; raises at -1, fails at -2, is not a number at -3."""

    space = SearchSpace({"x": Real(-10, 10)})
    optimum = 0.0

    def __call__(self, params):
        if params["x"] == -1:
            raise ValueError("no")
        return {-2: Outcome.failure("no"), -3: math.nan}.get(params["x"], params["x"])


class Upwards(Line):
    direction = "maximize"


class Noisy(Line):
    """Seen is 10 - x, true is x."""

    def __call__(self, params):
        return 10 - params["x"]

    def true_value(self, params):
        return params["x"]


def job(trials, **settings):
    return Job("branin", "random", 0, trials, **settings)


def ledger_of(problem, values, job_, **settings):
    peer, ledger = Told(values, **settings), Ledger(problem)
    optimise(peer, ledger, job_)
    return peer, ledger


# --- a run ------------------------------------------------------------------------------------------------------------


def test_a_row_says_where_the_best_value_changes():
    peer, ledger = ledger_of(Line(), [5, 7, 3.00000049, 3, 4], job(5))
    assert ledger.best == [(1, 5.0), (3, 3.0)]  # six digits
    assert peer.values == [5, 7, 3.00000049, 3, 4]
    assert ledger.recommended == []


def test_failures_of_all_sorts_are_told_as_none():
    peer, ledger = ledger_of(Line(), [-1, -2, -3, 2], job(4))
    assert peer.values == [None, None, None, 2]
    assert ledger.failed == 3
    assert ledger.best == [(4, 2.0)]
    assert peer.recommend() == {"x": 2}
    assert peer.filled() == [2, 2, 2, 2]


def test_what_is_maximised_is_negated():
    peer, ledger = ledger_of(Upwards(), [5, 7, 3], job(3))
    assert peer.values == [-5, -7, -3]
    assert ledger.best == [(1, -5.0), (2, -7.0)]


def test_with_noise_true_values_are_kept_and_recommendations_asked_for():
    _, ledger = ledger_of(Noisy(), [float(x % 9) for x in range(30)], job(30), noisy=True)
    assert ledger.best == [(1, 0.0), (2, 1.0), *((n, n - 1.0) for n in range(3, 10))]
    assert ledger.recommended == [(25, 8.0)]


def test_a_run_ends_where_nothing_is_left():
    _, ledger = ledger_of(Line(), [1, 2, 3], job(10, workers=2))
    assert ledger.n == 3


@pytest.mark.parametrize("asynchronous", [False, True])
def test_batches_are_asked_for_together_and_told_one_by_one(asynchronous):
    rounds = []

    class Counted(Told):
        def ask(self, q):
            rounds.append((q, len(self.values)))
            return super().ask(q)

    peer = Counted(range(1, 11))
    optimise(peer, Ledger(Line()), job(7, workers=3, asynchronous=asynchronous))
    assert rounds == ([(3, 0), *((1, n) for n in range(1, 5))] if asynchronous else [(3, 0), (3, 3), (1, 6)])
    assert len(peer.values) == 7


def test_a_run_makes_the_row_of_the_contract():
    row = run(Job("branin", "random", 1, 12))
    assert " ".join(row) == "problem method seed workers n best recommended seconds failed version"
    assert row["version"].startswith("deepbore ")
    assert row["best"][0][0] == 1
    assert row["best"] == sorted(row["best"], key=lambda pair: -pair[1])
    assert row == run(Job("branin", "random", 1, 12)) | {"seconds": row["seconds"]}


# --- many runs --------------------------------------------------------------------------------------------------------


def test_what_is_there_for_long_enough_is_not_run_again(tmp_path):
    out = tmp_path / "rows.jsonl"
    jobs = [Job("branin", "random", seed, 50) for seed in range(4)]
    for seed, n in ((0, 50), (1, 100), (2, 49)):
        row = {"problem": "branin", "method": "random", "seed": seed, "workers": 1, "n": n, "best": [[1, 2.0]]}
        append(out, row)
    out.write_text(out.read_text() + '{"problem": "branin", "meth')  # one who was killed
    append(out, row | {"seed": 2, "n": 10})
    assert [job.seed for job in left(jobs, benchmark.known(jobs, out))] == [2, 3]
    batches = [Job("branin", "random", 0, 50, workers=8)]
    assert left(batches, benchmark.known(batches, out)) == batches


@pytest.mark.slow
def test_a_benchmark_that_is_terminated_leaves_no_worker_behind(tmp_path):
    options = ["--problems", "branin", "--seeds", "99", "--trials", "200", "--processes", "1"]
    command = [sys.executable, SCRIPTS / "benchmark.py", *options, "--out", tmp_path / "rows.jsonl"]
    with forked.Popen(command, stderr=subprocess.PIPE, text=True) as script:
        assert script.stderr.readline(1)  # of the progress: a run is done, others go on
        workers = [int(pid) for pid in Path(f"/proc/{script.pid}/task/{script.pid}/children").read_text().split()]
        script.terminate()
        assert "goes on from here" in script.stderr.read()
    assert script.returncode == 130
    assert workers
    assert all(is_gone(pid) for pid in workers)


def test_rows_go_to_the_file_of_their_suite():
    names = {"bbob-mixint/f01/i01/d05": "bbob-mixint", "branin": "functions", "hpolib/protein_structure": "tables"}
    for name, file in names.items():
        assert benchmark.place(Job(name, "random", 0, 1), None).name == f"{file}.jsonl"


def script(*arguments):
    command = [sys.executable, SCRIPTS / "benchmark.py", *map(str, arguments)]
    return forked.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
def test_the_script_writes_rows_goes_on_and_reports_failures(tmp_path):
    out = tmp_path / "rows.jsonl"
    given = ["--problems", "branin", "--methods", "random", "--trials", 12, "--processes", 1, "--out", out]
    first = script(*given, "--seeds", 1)
    assert first.returncode == 0, first.stderr
    assert "branin: random" in first.stdout
    again = script(*given, "--seeds", 2)
    assert "1 of 1 runs" in again.stderr
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["seed"] for row in rows] == [0, 1]
    failing = script(*given, "--seeds", 3, "--limit", 1e-6)
    assert failing.returncode == 1
    assert "took longer than" in failing.stderr
    unknown = script("--problems", "nothing", *given[2:])
    assert unknown.returncode == 1
    assert "must be that of a problem" in unknown.stderr


def test_a_measurement_goes_on_where_it_was_interrupted(tmp_path):
    out, made = tmp_path / "new" / "rows.jsonl", []

    def measure(who, trials):
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append((who, trials))
        return {"found": trials * len(who)}

    wanted = [{"who": "a", "trials": 5}, {"who": "bb", "trials": 5}, {"who": "ccc", "trials": 5}]
    with pytest.raises(KeyboardInterrupt):
        complete(out, wanted, measure, length="trials")
    assert rows(out) == [{**wanted[0], "found": 5}, {**wanted[1], "found": 10}]
    made.clear()
    assert [row["found"] for row in complete(out, wanted, measure, length="trials")] == [5, 10, 15]
    assert made == [("ccc", 5)]
    complete(out, [{"who": "a", "trials": 3}, {"who": "a", "trials": 8}], measure, length="trials")
    assert made == [("ccc", 5), ("a", 8)]  # the shorter one is there, in a longer one
    assert {row["who"]: row["trials"] for row in longest(out, "trials", "who")} == {"a": 8, "bb": 5, "ccc": 5}


def test_a_script_of_one_file_measures_what_is_missing_or_only_shows(tmp_path, monkeypatch):
    file, shown = tmp_path / "rows.jsonl", []
    wanted = [{"n": 2}, {"n": 3}]
    for arguments, there in ((["--show"], []), ([], [4, 9]), (["--show"], [4, 9])):
        monkeypatch.setattr(sys, "argv", ["script.py", str(file), *arguments])
        measure_or_show("about", wanted, lambda n: {"square": n * n}, shown.append)
        assert [row["square"] for row in shown[-1]] == there


@pytest.mark.slow
def test_lost_evaluations_are_counted(capsys):
    crashing = failures.Crashing(problem_of("branin"), "region", 0)
    failures.by_chance(crashing, 10, 0)
    assert len(crashing.regrets) == 10
    row = failures.run("region", "branin", 0, "random", 10)
    lost = [math.isnan(regret) for regret in crashing.regrets]
    assert (row["crashed"], row["late"]) == (sum(lost), sum(lost[5:]))
    both = [
        {"how": "region", "problem": "branin", "method": method, "seed": 0, **row} for method in ("random", "deepbore")
    ]
    failures.show(both)
    assert (
        f"| region | random | {sum(lost)}.0 | {sum(lost[5:])} | 1 [0, inf] | 1 [0, inf] | 1 [0, inf] |"
        in capsys.readouterr().out
    )


def test_what_a_suggestion_costs(monkeypatch, capsys):
    monkeypatch.setattr(bench_suggest, "NUMBERS", (20, 1000))
    monkeypatch.setattr(bench_suggest, "ROUNDS", 1)
    row = bench_suggest.measured("nine ordinals", "one network")
    assert set(row["ms"]) == {"20", "1000", bench_suggest.BARE}
    assert min(row["ms"].values()) > 0
    bench_suggest.show([{"space": "nine ordinals", "head": "one network", **row}])
    printed = capsys.readouterr().out
    assert "nine ordinals, n = 1 000 |" in printed
    few, many = (row["ms"][n] / row["ms"][bench_suggest.BARE] for n in ("20", "1000"))
    assert f"| one network | {few:.2f} | {many:.2f} |" in printed
