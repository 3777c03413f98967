"""Looking at runs from the command line: what is shown, that it comes at once, and that it only ever reads."""

import fcntl
import subprocess
import sys

import pytest

import deepbore as db
from commands import deepbore
from deepbore import MLPClassifier, Real, Study
from deepbore.cli.compare import grouped, table
from deepbore.cli.load import load_run
from deepbore.cli.main import main
from deepbore.data.runs import Run, ago, runs_in
from deepbore.errors import JournalError, SettingError
from deepbore.labels import Labels, ThresholdLabels
from plane import LINE, SQUARE
from tried import net, tried
from written_runs import VALUES, write_journal, write_run

HEAVY = {"torch", "lightning", "scipy", "botorch", "pandas", "sklearn"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with three runs, two of them repetitions."""
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "runs" / "mine-1", VALUES)
    write_run(tmp_path / "runs" / "mine-2", [4.0, 2.5, 2.0, "pending"], seed=1)
    write_run(tmp_path / "runs" / "other", [5.0, 4.0, 0.5], config=None)
    return tmp_path


def shown(capsys, *args, status=0):
    """What a command prints; its errors, if these are expected."""
    assert main([str(arg) for arg in args]) == status
    printed = capsys.readouterr()
    return printed.err if status else printed.out


@pytest.mark.slow
@pytest.mark.parametrize(
    "args",
    [
        ["best", "runs/mine-1"],
        ["plot", "runs/mine-1"],
        ["compare", "runs/mine-1", "runs/mine-2"],
        ["list", "runs"],
        ["report", "runs/mine-1", "--quick"],
        ["watch", "runs/mine-1", "--quick"],
    ],
    ids=lambda args: args[0],
)
def test_looking_imports_neither_torch_nor_lightning(folder, args):
    code = (
        f"import sys; from deepbore.cli.main import main; assert main({args!r}) == 0; print({HEAVY} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "set()"
    if args[0] in ("best", "list"):
        assert "matplotlib" not in done.stderr


def test_the_best_is_shown_with_what_failed(folder, capsys):
    said = shown(capsys, "best", "runs/mine-1").splitlines()
    assert said[0] == "best value 1 in trial 2 (4 trials, 1 failed)"
    assert said[1].startswith("  lr: ")
    assert shown(capsys, "best", folder / "runs" / "mine-1" / "journal.jsonl").splitlines() == said


def test_of_several_values_the_front_is_shown(tmp_path, capsys):
    values = [(1.0, 5.0), (2.0, 6.0), (3.0, 1.0), (3.0, 7.0)]
    write_run(tmp_path, values, directions=["minimize", "maximize"])
    said = shown(capsys, "best", tmp_path)
    assert said.startswith("3 trials that no other beats in every value (4 trials)")
    assert [line for line in said.splitlines() if line.startswith("trial")] == [
        "trial 0: 1, 5",
        "trial 1: 2, 6",
        "trial 3: 3, 7",
    ]


def test_values_of_objectives_with_names_are_shown_with_them(tmp_path, capsys):
    space = {"x": Real(0, 1)}
    both = {"loss": "minimize", "size": "maximize"}
    with Study(space, journal=tmp_path / "both.jsonl", directions=both) as study:
        study.tell(study.ask_one(), {"loss": 0.5, "size": 3.0})
    assert "\ntrial 0: loss 0.5, size 3\n" in shown(capsys, "best", tmp_path / "both.jsonl")
    with Study(space, journal=tmp_path / "one.jsonl", directions={"accuracy": "maximize"}) as study:
        study.tell(study.ask_one(), 0.75)
    assert shown(capsys, "best", tmp_path / "one.jsonl").startswith("best accuracy 0.75 in trial 0")


@pytest.mark.slow
def test_a_picture_is_drawn(folder, capsys):
    assert shown(capsys, "plot", "runs/mine-1").strip() == "runs/mine-1/history.png"
    assert (folder / "runs/mine-1/history.png").read_bytes().startswith(b"\x89PNG")
    assert shown(capsys, "plot", "runs/other/journal.jsonl").strip() == "runs/other/journal.png"


def test_runs_are_listed_with_their_state(folder, capsys):
    with (folder / "runs/other/journal.jsonl.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        rows = {line.split()[0]: line.split() for line in shown(capsys, "list", "runs").splitlines()}
    assert rows["mine-1"][1:5] == ["4", "1", "1", "finished"]
    assert rows["mine-2"][1:5] == ["3", "0", "2", "stopped"]
    assert rows["other"][1:5] == ["3", "0", "0.5", "running"]
    assert rows["mine-1"][-1] == "ago"


def test_a_damaged_run_does_not_hide_the_others(folder, capsys):
    journal = folder / "runs/mine-1/journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"value": 3.0', b'"value": 1.0'))
    rows = {line.split()[0]: line.split() for line in shown(capsys, "list", "runs").splitlines()}
    assert rows["mine-1"][-1] == "damaged"
    assert rows["other"][3] == "0.5"


def test_a_folder_without_runs_is_said(tmp_path, capsys):
    assert "no run in" in shown(capsys, "list", tmp_path)
    assert "must be a folder" in shown(capsys, "list", tmp_path / "nowhere", status=2)


def test_other_journals_and_files_in_a_folder(tmp_path):
    write_journal(tmp_path / "a.jsonl", [])
    (tmp_path / "b.jsonl").write_text('{"some": "lines"}\n')
    (tmp_path / "c.jsonl").symlink_to(tmp_path / "a.jsonl")
    assert [run.path.name for run in runs_in(tmp_path)] == ["a.jsonl"]


def test_repetitions_stand_together(folder, capsys):
    write_run(folder / "runs" / "mine-3", [9.0, 8.0], seed=2, recipe={"n_initial": 3})  # other settings
    runs = [Run(folder / "runs" / name) for name in ("mine-1", "mine-2", "other", "mine-3")]
    groups = {group.name: group for group in grouped(runs)}
    assert list(groups) == ["mine-1 and 1 more", "other", "mine-3"]
    assert list(grouped(runs[:3])[0].bests[1]) == [4.0, 2.5, 2.0]
    together = grouped(runs[:3])[0]
    assert together.name == "mine"
    low, middle, high = together.band
    assert middle.tolist() == [3.5, 2.75, 1.5]
    assert (low.tolist(), high.tolist()) == ([3.0, 2.5, 1.0], [4.0, 3.0, 2.0])


PROBLEM = "problem: {class_path: my.P, init_args: {folder: runs/mine-K/trials, metric: loss}}\n"


@pytest.mark.parametrize(
    "settings",
    [
        "loop: {n_trials: 4, batch_size: 12}",
        "loop: {n_trials: 4}\nwarm_start: known.csv",
        "loop: {n_trials: 4}\nevaluation: {workers: 2}",
        "loop: {n_trials: 4}\nproblem: {class_path: my.P, init_args: {metric: accuracy}}",
        "loop: {n_trials: 4}\nproblem: {class_path: my.P, init_args: {metric: loss, seed: 3}}",  # another problem
    ],
)
def test_runs_that_differ_in_more_than_their_seed_stand_apart(tmp_path, settings):
    """Their seed, how long they are, and where `tune` keeps their trials."""
    alike = [f"{PROBLEM.replace('K', str(k))}loop: {{n_trials: {k + 3}, seed: {k}}}" for k in range(2)]
    runs = [
        Run(write_run(tmp_path / f"mine-{k}", VALUES, config, seed=k)) for k, config in enumerate([*alike, settings])
    ]
    assert [group.name for group in grouped(runs)] == ["mine-0 and 1 more", "mine-2"]


def test_a_comparison_is_a_table_and_a_picture(folder, capsys):
    said = shown(capsys, "compare", *sorted((folder / "runs").iterdir()))
    rows = {line.split()[0]: line.split() for line in said.splitlines()[1:3]}
    assert rows["mine"] == ["mine", "2", "3", "to", "4", "1.5", "1", "2"]
    assert rows["other"] == ["other", "1", "3", "0.5"]
    assert said.splitlines()[1].startswith("other")  # the best first
    assert (folder / "comparison.png").read_bytes().startswith(b"\x89PNG")


def test_runs_of_the_same_name_in_numbered_folders_stand_together(tmp_path):
    for k in range(3):
        write_run(tmp_path / "tuned" / f"seed{k}", VALUES, seed=k)
    (group,) = grouped([Run(tmp_path / "tuned" / f"seed{k}") for k in range(3)])
    assert (group.name, len(group.bests)) == ("tuned", 3)


def test_a_table_of_runs_without_values_is_no_error(tmp_path):
    runs = [Run(write_run(tmp_path / "a", [None, None])), Run(write_run(tmp_path / "b", []))]
    assert table(grouped(runs), "minimize").count("-") >= 2


def test_what_cannot_be_compared_is_refused(tmp_path, capsys):
    write_run(tmp_path / "up", VALUES, directions=["maximize"])
    write_run(tmp_path / "down", VALUES)
    write_run(tmp_path / "both", [(1.0, 2.0)], directions=["minimize", "minimize"])
    assert "must have one direction" in shown(capsys, "compare", tmp_path / "up", tmp_path / "down", status=2)
    assert "has 2" in shown(capsys, "compare", tmp_path / "both", status=2)


def test_times_are_said_in_words():
    import time

    assert [ago(time.time() - s) for s in (5, 200, 8000, 200_000)] == ["5 s", "3 min", "2 h", "2 d"]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["bset", "x"], "Did you mean best?"),
        (["watch", "x", "--every", "0"], "must be above 0"),
        (["compare"], "usage: deepbore compare"),
        (["best", "a", "b"], "usage: deepbore best"),
        (["report", "nowhere", "--quick"], "nowhere can't be read"),
    ],
)
def test_mistakes_on_the_command_line_are_said(args, says, capsys):
    assert says in shown(capsys, *args, status=2)


def state_of(folder):
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def test_looking_changes_nothing_but_its_pictures(folder, capsys):
    before = state_of(folder)
    for args in (["best"], ["plot"], ["compare"], ["report", "--quick"]):
        shown(capsys, *args, "runs/mine-1")
    shown(capsys, "list")
    after = state_of(folder)
    assert {path: after[path] for path in before} == before
    assert {path.name for path in after.keys() - before} == {"history.png", "report.html", "comparison.png"}


def test_links_are_not_followed(folder, tmp_path, capsys):
    run, secret = folder / "runs/mine-1", tmp_path / "secret"
    secret.write_text("private: words\n")
    for name in ("history.png", "report.html"):
        (run / name).symlink_to(secret)
    shown(capsys, "plot", run)
    shown(capsys, "report", run, "--quick")
    assert secret.read_text() == "private: words\n"
    assert not any((run / name).is_symlink() for name in ("history.png", "report.html"))
    for name in ("config.yaml", "journal.jsonl.times", "journal.jsonl"):
        kept = (run / name).read_bytes() if (run / name).exists() else None
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to(secret)
        said = shown(capsys, "report", run, "--quick", status=2)
        assert "is a link" in said
        assert "private" not in said
        (run / name).unlink()
        if kept is not None:
            (run / name).write_bytes(kept)


@pytest.mark.slow
def test_a_folder_that_is_looked_at_gives_no_modules(folder):
    run = folder / "runs/mine-1"
    for name in ("matplotlib", "numpy", "yaml", "theirs"):
        (run / f"{name}.py").write_text("open('hacked', 'w')\n")
    (run / "config.yaml").write_text("problem: {class_path: theirs.Problem}\n")
    for args in (["best", "."], ["plot", "."], ["report", ".", "--quick"], ["list", "."], ["compare", "."]):
        command = [sys.executable, "-m", "deepbore.cli", *args]
        done = subprocess.run(command, cwd=run, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert not (run / "hacked").exists()


def test_a_run_without_a_journal_is_an_error(tmp_path):
    with pytest.raises(JournalError, match="can't be read"):
        _ = Run(tmp_path).record
    with pytest.raises(SettingError):
        grouped([Run(write_run(tmp_path / "x", [(1.0, 2.0)], directions=["minimize"] * 2))])


def fit(*args):
    return main(["fit", "--config", "mine.yaml", *map(str, args)])


# regression: each of these was wrong once
def test_a_page_needs_a_name(at_home, capsys):
    assert fit("--run", "run") == 0
    assert main(["compare", "run", "--output", "."]) == 2
    assert "\ndeepbore: . can't be written" in capsys.readouterr().err


class TheirLabels(ThresholdLabels):
    objectives = None

    def __call__(self, observations):
        return Labels.none(observations)


@pytest.mark.parametrize("within", [False, True])
def test_a_run_of_two_objectives_is_looked_at_without_labels_that_are_somebody_elses(tmp_path, within):
    labels = db.labels.EmphasiseChanges(TheirLabels()) if within else TheirLabels()
    path = tmp_path / "journal.jsonl"
    study = db.Study(SQUARE, directions=["minimize"] * 2, classifier=db.KernelPLS(), labels=labels, journal=path)
    tried(study, 3, lambda params: [params["x"], params["y"]])
    study.close()
    assert type(load_run(tmp_path).state.recipe.labels).__name__ == "ChebyshevLabels"


def run_here(*args):
    return main([*map(str, args)])


def test_seeds_of_a_run_with_a_function_among_its_parts_stand_together(empty_folder, capsys):
    for seed in range(2):
        study = Study(LINE, classifier=MLPClassifier(network=net()), seed=seed, journal=f"mine-{seed}.jsonl")
        study.tell(*study.ask(), 1.0)
    study = Study(LINE, classifier=MLPClassifier(network=net(), activation="tanh"), journal="mine-2.jsonl")
    study.tell(*study.ask(), 2.0)
    study.close()
    assert run_here("compare", *sorted(empty_folder.glob("*.jsonl"))) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["mine-0", "and", "1", "more", "2", "1", "1", "1", "1"] in rows, rows


def told(path, values, n_initial):
    study = Study(SQUARE, seed=0, journal=path, n_initial=n_initial)
    for trial, value in zip(study.ask(len(values) + 1), values, strict=False):
        study.tell(trial, value)
    study.close()


def test_runs_are_ranked_though_some_have_no_value_yet(tmp_path):
    told(tmp_path / "worst.jsonl", [3.0] * 4, 20)
    told(tmp_path / "failing.jsonl", [float("nan")] * 4, 21)
    told(tmp_path / "best.jsonl", [1.0] * 4, 22)
    told(tmp_path / "begun.jsonl", [], 23)
    names = ["worst.jsonl", "failing.jsonl", "begun.jsonl", "best.jsonl"]
    done = deepbore("compare", *names, cwd=tmp_path)
    assert [line.split()[0] for line in done.stdout.splitlines()[1:5]] == ["best", "worst", "failing", "begun"]


def test_a_repetition_that_has_just_begun_hides_no_others(tmp_path):
    for seed, values in enumerate([[4.0] * 12, [2.0] * 12, [3.0] * 12, []]):
        told(tmp_path / f"rep-{seed}.jsonl", values, 20)
    done = deepbore("compare", *(f"rep-{seed}.jsonl" for seed in range(4)), cwd=tmp_path)
    assert done.stdout.splitlines()[1].split() == ["rep", "4", "0", "to", "12", "3", "2", "4", "3"]


def test_journals_of_any_name_have_pictures_of_their_own(tmp_path):
    for name in ("lr0.01", "lr0.001", "exp.seed0.jsonl"):
        told(tmp_path / name, [1.0, 2.0], 20)
    runs = [Run(tmp_path / name) for name in ("lr0.01", "lr0.001", "exp.seed0.jsonl")]
    assert [run.name for run in runs] == ["lr0.01", "lr0.001", "exp.seed0"]
    assert [run.beside("history.png").name for run in runs] == ["lr0.01.png", "lr0.001.png", "exp.seed0.png"]
