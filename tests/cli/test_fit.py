"""`deepbore fit` as a user runs it, in processes of its own: a run is kept whole, and not written over."""

import contextlib
import csv
import json
import sys
import textwrap
from pathlib import Path

import pytest
import yaml

import forked
from commands import BRANIN, deepbore
from deepbore import KernelPLS, Ordinal, SearchSpace, Study
from deepbore.cli.load import load_run
from deepbore.cli.main import main
from deepbore.errors import SettingError
from processes import ENV


class Theirs(KernelPLS):
    """A classifier that is not deepbore's."""

    __module__ = "theirs"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One run of `deepbore fit` and its directory."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "branin.yaml").write_text(BRANIN)
    done = deepbore("fit", "--config", "branin.yaml", "--run", "runs/mine", "--loop.seed", 3, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "runs" / "mine", done


def test_a_run_is_kept_whole(run):
    folder, done = run
    events = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    assert [event["event"] for event in events[1:]] == ["asked", "told"] * 14
    config = yaml.safe_load((folder / "config.yaml").read_text())
    assert config["loop"]["n_trials"] == 14
    assert config["loop"]["seed"] == 3
    assert (folder / "journal.jsonl.ckpt").exists()
    rows = list(csv.DictReader((folder / "metrics.csv").open()))
    assert [float(row["trials"]) for row in rows] == [11, 12, 13, 14]
    assert all(float(row["tau"]) and float(row["loss"]) for row in rows)
    best = min(event["value"] for event in events if event["event"] == "told")
    assert f"best value {best:.8g}" in done.stdout


def test_the_console_shows_one_bar_and_a_summary(run):
    _, done = run
    assert len(done.stdout.splitlines()) == 4  # best value, two parameters, where it is kept
    bars = done.stderr.replace("\r", "\n").strip().splitlines()
    assert all(line.startswith("trials:") for line in bars if line.strip())
    assert "14/14" in bars[-1]
    assert "best=" in bars[-1]


def test_a_finished_run_can_be_looked_at(run, deepbore_here):
    folder, done = run
    assert deepbore_here("best", folder).stdout.splitlines()[1:3] == done.stdout.splitlines()[1:3]
    assert deepbore_here("plot", folder).returncode == 0
    assert (folder / "history.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_run_is_reported_on_one_page(run, deepbore_here):
    folder, done = run
    shown = deepbore_here("report", folder)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.strip() == str(folder / "report.html")
    page = (folder / "report.html").read_text()
    for title in (
        "History",
        "Importance",
        "Slices: predicted value",
        "Predictions of unseen trials",
        "Timeline",
        "Trials",
    ):
        assert f"<h2>{title}" in page
    for said in ("<h1>mine</h1>", "KernelPLS", "n_trials: 14", done.stdout.split()[2]):
        assert said in page
    assert '"every":null' in page


def test_a_run_keeps_when_its_trials_were_evaluated(run):
    folder, _ = run
    times = [json.loads(line) for line in (folder / "journal.jsonl.times").read_text().splitlines()]
    assert times.pop() == {"finished": 14}
    assert [each["trial"] for each in times] == list(range(14))
    assert all(0 < each["began"] <= each["ended"] for each in times)


def test_a_finished_run_that_is_resumed_stays_as_it_is(run, deepbore_here):
    folder, done = run
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".csv", ".jsonl")}
    again = deepbore_here("fit", "--resume", folder)
    assert again.returncode == 0
    assert "has its 14 trials already" in again.stdout
    assert again.stdout.splitlines()[0] == done.stdout.splitlines()[0]
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".csv", ".jsonl")} == before


def journal_of_version_1(journal, folder):
    """The same run as version 0.1 has kept it: without a recipe and checksums."""
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    kept = [{name: value for name, value in line.items() if name not in ("crc", "id", "recipe")} for line in lines]
    kept[0] |= {"version": 1, "direction": kept[0].pop("directions")[0]}
    (folder / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in kept))


def test_a_run_of_version_0_1_is_looked_at_with_the_parts_of_its_configuration(run, tmp_path):
    folder, _ = run
    assert type(load_run(folder).classifier).__name__ == "KernelPLS"
    journal_of_version_1(folder / "journal.jsonl", tmp_path)
    assert type(load_run(tmp_path).classifier).__name__ == "KernelPLS"  # without a configuration
    (tmp_path / "config.yaml").write_text(
        """
model: {class_path: deepbore.classifiers.DeepEnsemble, init_args: {members: 2, training: {steps: 20}}}
data: {labels: {class_path: deepbore.labels.ThresholdLabels, init_args: {gamma: 0.2}}}
"""
    )
    study = load_run(tmp_path)
    assert len(study.trials) == 14
    assert study.classifier.training_plan.steps == 20
    assert study.state.recipe.labels.gamma == 0.2
    (tmp_path / "config.yaml").write_text("model: {class_path: deepbore.classifiers.Nowhere}")
    with pytest.raises(SettingError, match="Nowhere"):
        load_run(tmp_path)


@pytest.mark.parametrize(
    "hostile",
    [
        "model: {class_path: subprocess.Popen, init_args: {args: [touch, hacked]}}",
        "model: {class_path: os.system, init_args: {command: touch hacked}}",
        "model: {class_path: deepbore.classifiers.MLPClassifier, init_args: {network: os.kill}}",
        "model: {class_path: deepbore.MLPClassifier, init_args: {hidden: !!python/object/apply:os.abort []}}",
        "model: !!python/object/apply:os.system [touch hacked]",
        "data: {labels: {class_path: subprocess.Popen, init_args: {args: [touch, hacked]}}}",
        "data: {labels: {class_path: deepbore.classifiers.KernelPLS}}",
    ],
)
def test_a_runs_configuration_can_only_name_classes_of_the_kind_that_is_meant(
    run, tmp_path, monkeypatch, caplog, hostile
):
    folder, _ = run
    monkeypatch.chdir(tmp_path)
    journal_of_version_1(folder / "journal.jsonl", tmp_path)
    (tmp_path / "config.yaml").write_text(hostile)
    with contextlib.suppress(SettingError):
        load_run(tmp_path)
        assert "is not a class of deepbore" in caplog.text  # else it was refused
    assert not (tmp_path / "hacked").exists()


def test_looking_at_a_run_imports_nobodys_module(tmp_path, deepbore_here, caplog):
    (tmp_path / "theirs.py").write_text("open('hacked', 'w')\n")
    Study(SearchSpace({"k": Ordinal([1, 2, 3])}), classifier=Theirs(), journal=tmp_path / "journal.jsonl").close()
    for command in ("best", "plot"):
        assert deepbore_here(command, tmp_path).returncode == 0
    load_run(tmp_path)
    assert "Theirs is not a class of deepbore" in caplog.text
    assert not (tmp_path / "hacked").exists()


@pytest.mark.slow
def test_the_same_configuration_and_seed_give_the_same_run(run, tmp_path, deepbore_here):
    folder, _ = run
    again = deepbore_here("fit", "--config", folder / "config.yaml", "--run", tmp_path / "again")
    assert again.returncode == 0, again.stderr
    one, other = (Study.load(place / "journal.jsonl").trials for place in (folder, tmp_path / "again"))
    assert one == other


def test_a_run_is_not_written_over(run, deepbore_here):
    folder, _ = run
    before = (folder / "journal.jsonl").read_text()
    again = deepbore_here("fit", "--config", folder / "config.yaml", "--run", folder)
    assert again.returncode == 2
    assert f"holds a run already. Go on with deepbore fit --resume {folder}" in again.stderr
    assert (folder / "journal.jsonl").read_text() == before


# regression: killed at the start of `deepbore fit`
KILLED = """
    import os, signal, sys
    import deepbore.cli.fit  # once, and then each command in a process that is forked off
    from deepbore.cli.main import main
    begin, resume = ["fit", "--config", "branin.yaml", "--run", "mine"], ["fit", "--resume", "mine"]
    def dies_at(at):
        steps = []
        def audited(event, arguments):
            if event in ("open", "os.rename", "os.mkdir") and "mine" in str(arguments[:2]):
                steps.append(1)
                if len(steps) == at:
                    os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(audited)
    def status(args, at=0):
        child = os.fork()
        if not child:
            dies_at(at)
            os._exit(main(args))
        return os.waitpid(child, 0)[1]
    for at in range(1, 9):
        os.mkdir(str(at))
        os.chdir(str(at))
        os.symlink("../branin.yaml", "branin.yaml")
        assert status(begin, at) == signal.SIGKILL
        assert status(begin) == 0 or status(resume) == 0, at
        os.chdir("..")
"""


@pytest.mark.slow
def test_a11_a_run_that_is_killed_at_its_start_can_be_begun_or_resumed(tmp_path):
    (tmp_path / "branin.yaml").write_text(
        "problem: {class_path: deepbore.problems.Branin}\nloop: {n_trials: 3, n_initial: 3}\n"
    )
    (tmp_path / "killed.py").write_text(textwrap.dedent(KILLED))
    command = [sys.executable, "killed.py"]
    done = forked.run(command, cwd=tmp_path, env=ENV, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for at in range(1, 9):
        assert Study.load(tmp_path / str(at) / "mine" / "journal.jsonl").observations.ledger.statistics.n_complete == 3


def fit(*args):
    return main(["fit", "--config", "mine.yaml", *map(str, args)])


# regression: this was wrong once
def test_how_often_to_validate_is_refused_before_any_evaluation(at_home, capsys):
    assert fit("--run", "run", "--trainer.val_check_interval", "3") == 2
    assert "trainer.val_check_interval does nothing" in capsys.readouterr().err
    assert not Path("run").exists()
