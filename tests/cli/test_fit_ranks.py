"""`deepbore fit` on two ranks: one run, one directory, also after a rank was killed."""

import json
import time

import pytest

from commands import LAUNCHERS, deepbore as command, on_ranks_of
from deepbore import Study
from deepbore.cli.new_run import new_run
from deepbore.data.replay import timed_in
from deepbore.errors import SettingError

OBJECTIVE = """
import hashlib, os, signal, time
from pathlib import Path
import torch
from lightning.pytorch import Callback

RANK = os.environ.get("LOCAL_RANK", "0")

def objective(params):
    with Path(f"evaluated-{RANK}").open("a") as file:
        file.write(f"{params['x']!r}\\n")
    time.sleep(int.from_bytes(os.urandom(1)) / 5000)  # sometimes one rank is first, sometimes the other
    return (params["x"] - 0.3) ** 2 + (params["y"] + 0.2) ** 2

def deadly(params):
    calls = Path("evaluated-1").read_text().count("\\n") if Path("evaluated-1").exists() else 0
    if RANK == "1" and calls == 3:  # its fourth evaluation, while rank 0 is at its fifth
        os.kill(os.getpid(), signal.SIGKILL)
    return objective(params)

def deadly_and_slow(params):
    value = deadly(params)
    if RANK == "0" and Path("evaluated-0").read_text().count("\\n") == 5:
        time.sleep(300)
    return value

class Checksums(Callback):
    def on_train_epoch_end(self, trainer, module):
        sums = hashlib.sha256()
        for _, tensor in sorted(module.state_dict().items()):
            for part in tensor.values() if isinstance(tensor, dict) else [tensor]:
                sums.update(torch.as_tensor(part).cpu().numpy().tobytes())
        with Path(f"sums-{trainer.global_rank}").open("a") as file:
            file.write(sums.hexdigest() + "\\n")
"""

CONFIG = """
problem:
  class_path: deepbore.problems.FunctionProblem
  init_args:
    function: mine.objective
    space: {x: {type: real, low: -1, high: 1}, y: {type: real, low: -1, high: 1}}
loop: {n_trials: 15, n_initial: 5, seed: 3}
trainer: {devices: 2, strategy: ddp, accelerator: cpu, callbacks: [{class_path: mine.Checksums}]}
"""


def launched(launcher, folder, *args, cold=False):
    """Runs `deepbore fit` on two ranks in a folder with the files above."""
    folder.mkdir(exist_ok=True)
    (folder / "mine.py").write_text(OBJECTIVE)
    (folder / "mine.yaml").write_text(CONFIG)
    config = [] if "--resume" in args else ["--config", "mine.yaml"]
    return on_ranks_of(launcher, folder, "fit", *config, *args, cold=cold)


def events(folder):
    """All events but the first, which has the run's own id, and without the checksums, which depend on it."""
    lines = (folder / "journal.jsonl").read_text().splitlines()[1:]
    return [json.loads(line) | {"crc": None} for line in lines]


@pytest.mark.slow
@pytest.mark.parametrize("model", ["KernelPLS", "DeepEnsemble"])
def test_a_run_on_two_ranks_is_one_run(tmp_path, model):
    done = launched("lightning", tmp_path / "one", "--model", model, cold=model == "KernelPLS")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 4  # one summary
    assert "recommended" not in done.stderr  # advice of Lightning's, which is about other kinds of training
    assert [path.name for path in (tmp_path / "one" / "runs").iterdir()] == ["objective-1"]
    folder = tmp_path / "one" / "runs" / "objective-1"
    names = {path.name for path in folder.iterdir()} - {"journal.jsonl.lock"}
    assert names == {"journal.jsonl", "journal.jsonl.ckpt", "journal.jsonl.times", "config.yaml", "metrics.csv"}
    study = Study.load(folder / "journal.jsonl")
    assert (
        len({tuple(trial.params.items()) for trial in study.trials})
        == study.observations.ledger.statistics.n_complete
        == 15
    )
    for trial in study.trials:
        assert trial.value == (trial.params["x"] - 0.3) ** 2 + (trial.params["y"] + 0.2) ** 2
    first, second = ((tmp_path / "one" / f"evaluated-{rank}").read_text().splitlines() for rank in range(2))
    assert sorted(first + second) == sorted(repr(trial.params["x"]) for trial in study.trials)
    assert (len(first), len(second)) == (8, 7)
    one, other = ((tmp_path / "one" / f"sums-{rank}").read_text().splitlines() for rank in range(2))
    assert one == other
    assert len(set(one)) == len(one) == 5

    again = launched("torchrun", tmp_path / "other", "--model", model, "--run", "mine")
    assert again.returncode == 0, again.stderr
    assert events(tmp_path / "other" / "mine") == events(folder)


@pytest.mark.slow
def test_two_ranks_refuse_a_directory_with_a_run(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "journal.jsonl").write_text("somebody's\n")
    for launcher in LAUNCHERS:
        done = launched(launcher, tmp_path, "--run", "mine")
        assert done.returncode != 0
        assert "holds a run already" in done.stderr
        assert (tmp_path / "mine" / "journal.jsonl").read_text() == "somebody's\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launcher", "objective", "says"),
    [
        ("lightning", "deadly", "rank 0 of 2 has lost another one"),
        ("lightning", "deadly_and_slow", "terminated with code -9"),
        ("torchrun", "deadly_and_slow", "SIGKILL"),
    ],
)
def test_a_killed_rank_ends_the_run_and_the_journal_stays_whole(tmp_path, launcher, objective, says):
    started = time.perf_counter()
    done = launched(launcher, tmp_path, "--run", "mine", "--problem.function", f"mine.{objective}")
    assert done.returncode != 0
    assert time.perf_counter() - started < 120  # the slow one would sleep for 300 s
    assert says in done.stderr
    study = Study.load(tmp_path / "mine" / "journal.jsonl")
    assert study.observations.ledger.statistics.n_complete == 7
    assert len(study.trials) == 9


@pytest.mark.slow
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_run_that_lost_a_rank_is_resumed_on_all_as_if_nothing_had_happened(tmp_path, launcher):
    whole = launched(launcher, tmp_path / "whole", "--run", "mine")
    assert whole.returncode == 0, whole.stderr
    broken = launched(launcher, tmp_path / "broken", "--run", "mine", "--problem.function", "mine.deadly")
    assert broken.returncode != 0
    resumed = launched(launcher, tmp_path / "broken", "--resume", "mine", "--problem.function", "mine.objective")
    assert resumed.returncode == 0, resumed.stderr
    assert events(tmp_path / "broken" / "mine") == events(tmp_path / "whole" / "mine")
    assert (tmp_path / "broken" / "mine" / "metrics-1.csv").exists()
    assert "best_value" in (tmp_path / "broken" / "mine" / "metrics.csv").read_text().splitlines()[0]


WIDE_CONFIG = """
problem:
  class_path: deepbore.problems.FunctionProblem
  init_args: {function: mine.objective, space: {x: {type: real, low: -1, high: 1}}}
loop: {n_trials: 12}
"""

FAR_BOWL = """
import time

def objective(params):
    return (params["x"] - 0.3) ** 2

def slow(params):
    time.sleep(0.5)
    return objective(params)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(FAR_BOWL)
    (tmp_path / "mine.yaml").write_text(WIDE_CONFIG)
    return tmp_path


def on_two_ranks(launcher, folder, *args):
    """A command of `deepbore` on two ranks, in a folder; its whole output if it fails."""
    done = on_ranks_of(launcher, folder, *args, "--trainer.devices", "2", "--trainer.strategy", "ddp")
    assert done.returncode == 0, done.stdout + done.stderr
    return done


# regression: each of these was wrong once
def test_other_ranks_have_the_run_of_the_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.delenv("DEEPBORE_RUN", raising=False)
    with pytest.raises(SettingError, match="name its directory by --run"):
        new_run("branin")
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("DEEPBORE_RUN", "of another run, before")
    first = new_run("branin")
    monkeypatch.setenv("RANK", "1")
    assert new_run("branin") == first.absolute()


@pytest.mark.slow
def test_results_that_a_run_has_already_are_not_added_twice(folder):
    (folder / "earlier.csv").write_text("x,value\n0.5,0.04\n-0.5,0.64\n0.7,\n")
    done = command("fit", "--config", "mine.yaml", "--run", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    before = (folder / "run" / "config.yaml").read_text()
    for _ in range(2):  # as if it had died when it had added them, and before it could note that
        (folder / "run" / "config.yaml").write_text(before)
        done = command("fit", "--resume", "run", "--warm_start", "earlier.csv", cwd=folder)
        assert done.returncode == 0, done.stderr
    assert len(Study.load(folder / "run" / "journal.jsonl").trials) == 15


@pytest.mark.slow
def test_ranks_of_torchrun_take_in_earlier_results_once(folder):
    (folder / "earlier.csv").write_text("x,value\n" + "".join(f"{k / 10},{(k / 10 - 0.3) ** 2}\n" for k in range(5)))
    done = command("fit", "--config", "mine.yaml", "--run", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    on_two_ranks("torchrun", folder, "fit", "--resume", "run", "--warm_start", "earlier.csv", "--loop.n_trials", "16")
    study = Study.load(folder / "run" / "journal.jsonl")
    assert (len(study.trials), study.observations.ledger.n_asked) == (21, 16)


@pytest.mark.slow
def test_ranks_keep_all_of_a_run_in_one_place_and_its_time(folder):
    problem = ["--problem.init_args.function", "mine.slow", "--loop.batch_size", "40", "--loop.n_trials", "60"]
    on_two_ranks("lightning", folder, "fit", "--config", "mine.yaml", *problem, "--loop.timeout", "2")
    (run,) = (folder / "runs").iterdir()
    study = Study.load(run / "journal.jsonl")
    told = study.observations.ledger.statistics.n_complete
    assert 2 <= told < 20
    assert len({each.row for each in timed_in(run / "journal.jsonl.times")}) == told
    assert all(trial.duration is not None for trial in study.trials if trial.value is not None)
