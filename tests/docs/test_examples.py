"""The examples, as a user runs them: small, in processes of their own.

Those for Optuna and Hydra run in tests/integrations, that for BoTorch in tests/acquisition, that for LightningCLI in
tests/cli/test_tune.py, and that by eye in test_by_eye.py.
"""

import ast
import json
import os
import re
import runpy
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import deepbore
import forked
from deepbore import Study
from processes import ROOT

EXAMPLES = ROOT / "examples"
TESTED_ELSEWHERE = {"by_eye.py", "optuna_sampler.py", "botorch_acquisition.py"}
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
HERE = {
    "train_digits.py",
    "crash_and_resume.py",
    "parallel_workers.py",
    "failing_region.py",
    "size_limit.py",
    "cheap_fidelities.py",
    "pruned_training.py",
    "fabric_loop.py",
    "pipeline.py",
    "accuracy_and_size.py",
    "warm_start.py",
    "earlier_tasks.py",
    "noisy_folds.py",
    "distributed_trainer.py",
    "logged_run.py",
    "sequence_encoder.py",
    "molecule_encoder.py",
    "image_encoder.py",
    "transformer_encoder.py",
    "own_loss.py",
}


def started(name, *args, cwd, launcher=()):
    """The finished process of an example."""
    command = [sys.executable, *launcher, EXAMPLES / name, *map(str, args)]
    env = os.environ | {"PYTHONPATH": str(Path(deepbore.__file__).parents[1])}  # the package under test
    start = forked.run if not launcher else subprocess.run  # one cold start of all that there is
    return start(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False)


def said(name, *args, cwd, launcher=()):
    """What an example prints."""
    done = started(name, *args, cwd=cwd, launcher=launcher)
    assert done.returncode == 0, done.stderr
    return done.stdout


def number(pattern, text):
    """The number in the one place that a pattern finds."""
    (found,) = re.findall(pattern, text)
    return float(found)


def events(path):
    """All that a journal says; each run has an id of its own, and checksums that start from it."""
    return [{**json.loads(line), "id": None, "crc": None} for line in path.read_text().splitlines()]


def test_every_example_is_tested():
    assert {path.name for path in EXAMPLES.glob("*.py")} == HERE | TESTED_ELSEWHERE


@pytest.mark.parametrize("name", sorted(HERE))
def test_an_example_says_how_to_run_it(name):
    text = (EXAMPLES / name).read_text()
    assert f"python examples/{name} --trials" in text
    assert len(text.splitlines()) <= 80


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.py")), ids=lambda path: path.name)
def test_an_example_can_be_imported_without_running_it(path):
    """As worker processes do."""
    body = ast.parse(path.read_text()).body
    calls = [node for node in body if isinstance(node, (ast.For, ast.While, ast.With))]
    calls += [node for node in body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    assert not [node for node in calls if "logging" not in ast.unparse(node)]
    is_module = all(isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef)) for node in body[1:])
    assert is_module or ast.unparse(body[-1]).startswith("if __name__ == '__main__':")


@pytest.mark.slow
def test_a_training_script_is_tuned_as_the_guide_says(tmp_path):
    first = said("tuned_digits/tune.py", "--trials", 4, cwd=tmp_path)
    again = said("tuned_digits/tune.py", "--trials", 11, cwd=tmp_path)
    assert first.startswith("best of 4: ")
    assert again.startswith("best of 11: ")
    assert number(r"loss (\S+)", again) < 0.5  # guessing gives log 10 = 2.3
    assert number(r"tuned: accuracy (\S+)", again) > 0.9
    assert {path.name for path in tmp_path.glob("*.png")} == {"history.png", "importance.png", "slices.png"}
    for command in ("best", "plot"):
        deepbore_cli = ["-m", "deepbore.cli", command]
        done = forked.run([sys.executable, *deepbore_cli, "digits.jsonl"], cwd=tmp_path, check=True, text=True,
                              capture_output=True)  # fmt: skip
        assert "digits" in done.stdout or "11" in done.stdout


KEPT = {"csv": "logs/**/metrics.csv", "tensorboard": "logs/**/events*", "mlflow": "mlflow.db",
        "wandb": "wandb/offline-run-*/*.wandb"}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("logger", KEPT)
def test_a_run_is_in_the_logger(logger, tmp_path, monkeypatch):
    if find_spec(logger) is None and logger in ("mlflow", "wandb"):
        pytest.skip(f"needs {logger}")
    monkeypatch.setenv("WANDB_MODE", "offline")
    assert "logged by" in said("logged_run.py", "--trials", 13, "--logger", logger, cwd=tmp_path)
    kept, *_ = tmp_path.glob(KEPT[logger])  # TensorBoard keeps the settings in a file of their own
    if logger == "csv":
        assert {"best_value", "tau", "trials", "recommended_value"} <= set(kept.read_text().splitlines()[0].split(","))
    if logger in ("mlflow", "wandb"):
        assert b"best_value" in kept.read_bytes()


def test_a_convolution_reads_sequences(tmp_path):
    text = said("sequence_encoder.py", "--trials", 40, cwd=tmp_path)
    assert re.fullmatch(r"0\.\d\d of 1 after 40 sequences: [ACGT]{24}\n", text)


def test_a_convolution_reads_images(tmp_path):
    assert 0.6 <= number(r"(\S+) of 1 after 30 images", said("image_encoder.py", "--trials", 30, cwd=tmp_path)) <= 1


def test_a_transformer_reads_orders_under_a_trainer(tmp_path):
    assert number(r"cost (\S+) after 22 orders", said("transformer_encoder.py", "--trials", 22, cwd=tmp_path)) < 7


def test_an_ensemble_has_its_own_loss(tmp_path):
    assert number(r"best (\S+) after 14 trials", said("own_loss.py", "--trials", 14, cwd=tmp_path)) < 10


def test_messages_along_bonds_rank_molecules(tmp_path):
    assert number(r"(\d+) of the best", said("molecule_encoder.py", "--trials", 80, cwd=tmp_path)) >= 5  # by chance 2


@pytest.mark.slow
def test_digits_are_learned(tmp_path):
    lines = said("train_digits.py", "--trials", 13, cwd=tmp_path).splitlines()
    losses = [number(r"loss (\S+)", line) for line in lines]
    assert len(losses) == 14
    assert losses[-1] == min(losses[:-1]) < 1  # guessing gives log 10 = 2.3
    assert all(("momentum" in line) == ("sgd" in line) for line in lines)


@pytest.mark.slow
def test_a_killed_run_goes_on_as_if_nothing_had_happened(tmp_path):
    killed = started("crash_and_resume.py", "--trials", 16, "--crash-after", 12, cwd=tmp_path)
    assert killed.returncode == -signal.SIGKILL
    assert Study.load(tmp_path / "run.jsonl").observations.ledger.statistics.n_complete == 12
    assert said("crash_and_resume.py", "--trials", 16, cwd=tmp_path).startswith("13 trials in run.jsonl")
    said("crash_and_resume.py", "--trials", 16, "--journal", "whole.jsonl", cwd=tmp_path)
    assert events(tmp_path / "run.jsonl") == events(tmp_path / "whole.jsonl")


@pytest.mark.slow
def test_workers_share_the_evaluations(tmp_path):
    shown = said("parallel_workers.py", "--trials", 14, "--workers", 2, cwd=tmp_path)
    assert shown.startswith("14 trials, ")
    assert 0 < number(r"(\d+) failed", shown) < 10
    assert number(r"best value (\S+)", shown) < 1


@pytest.mark.slow
def test_a_failing_region_is_left(tmp_path):
    shown = said("failing_region.py", "--trials", 60, cwd=tmp_path)
    first, second = re.findall(r"(\d+) in the", shown)
    assert int(second) < int(first)
    assert number(r"loss: (\S+)", shown) < -4


@pytest.mark.slow
def test_a_limit_is_learned(tmp_path):
    shown = said("size_limit.py", "--trials", 24, cwd=tmp_path)
    first, second = re.search(r"(\d+) in the first half, (\d+) in the second", shown).groups()
    assert int(second) > int(first)
    assert number(r"with (\d+) weights", shown) <= 2500
    assert number(r"smallest loss: (\S+)", shown) < 0.6


@pytest.mark.slow
def test_what_is_recommended_of_noisy_values_is_good(tmp_path):
    shown = said("noisy_folds.py", "--trials", 20, cwd=tmp_path)
    assert number(r"best value seen: (\S+)", shown) >= number(r"other folds (\S+)", shown) - 0.01
    assert number(r"other folds (\S+)", shown) > 0.96  # guessing has 0.4


@pytest.mark.slow
def test_most_networks_are_given_few_epochs(tmp_path):
    shown = said("cheap_fidelities.py", "--trials", 45, cwd=tmp_path)
    networks, spent, full = map(int, re.search(r"(\d+) networks in (\d+) epochs; all .* take (\d+)", shown).groups())
    assert full == 27 * networks
    assert spent < full / 2
    assert "after 27 epochs" in shown
    assert number(r"epochs: (\S+) with", shown) < 0.45


@pytest.mark.slow
def test_bad_networks_are_ended_early(tmp_path):
    shown = said("pruned_training.py", "--trials", 14, cwd=tmp_path)
    pruned, spent, full = map(int, re.search(r"(\d+) pruned.*: (\d+) epochs; .* take (\d+)", shown).groups())
    assert pruned
    assert spent < full == 27 * 14
    assert number(r"loss: (\S+) with", shown) < 0.4


def test_a_loop_under_fabric_is_ended_early(capsys):
    study = runpy.run_path(str(EXAMPLES / "fabric_loop.py"))["main"](trials=9, devices=1)
    ended = [trial for trial in study.trials if str(trial.status) == "pruned"]
    assert ended
    assert all(len(trial.reports) == 12 for trial in study.trials if trial not in ended)
    assert all(0 < len(trial.reports) < 12 for trial in ended)
    assert study.best_value < 0.4
    assert f"{len(ended)} pruned" in capsys.readouterr().out


@pytest.mark.slow
def test_processes_under_fabric_leave_the_loop_together(tmp_path):
    shown = said("fabric_loop.py", "--trials", 9, "--devices", 2, cwd=tmp_path)
    pruned, spent, full = map(int, re.search(r"(\d+) pruned.*: (\d+) epochs; .* take (\d+)", shown).groups())
    assert pruned
    assert spent < full == 12 * 9


@pytest.mark.slow
def test_a_pipeline_is_searched(tmp_path):
    shown = said("pipeline.py", "--trials", 12, cwd=tmp_path)
    assert shown.startswith("Study(12 trials")
    assert number(r"unseen rows (\S+)", shown) > 0.9


@pytest.mark.slow
def test_a_front_of_error_and_size_is_found(tmp_path):
    shown = said("accuracy_and_size.py", "--trials", 20, "--epochs", 3, cwd=tmp_path)
    front = re.findall(r"([\d.]+)% +(\d+) +\d x \d+", shown)
    errors, sizes = [float(error) for error, _ in front], [int(size) for _, size in front]
    assert len(front) >= 3
    assert errors == sorted(errors)
    assert sizes == sorted(sizes, reverse=True)
    assert min(errors) < 15
    assert min(sizes) < 1500


@pytest.mark.slow
def test_earlier_results_spare_the_design(tmp_path):
    shown = said("warm_start.py", "--trials", 4, cwd=tmp_path)
    assert "12 earlier results, the best of them 0.410" in shown
    assert number(r"best yield (\S+)", shown) > 0.41  # better than all that was known
    (tmp_path / "mine.csv").write_text("temperature,catalyst,yield\n20,A,0.1\n30,B,0.2\n")
    assert "2 earlier results" in said("warm_start.py", "--trials", 1, "--table", "mine.csv", cwd=tmp_path)


@pytest.mark.slow
def test_earlier_tasks_help(tmp_path):
    shown = said("earlier_tasks.py", "--trials", 12, cwd=tmp_path)
    alone, helped = map(float, re.findall(r"waste (\S+)", shown))
    assert helped < alone


@pytest.mark.slow
def test_two_ranks_need_half_the_iterations(tmp_path):
    alone = said("distributed_trainer.py", "--trials", 18, cwd=tmp_path)
    together = said("distributed_trainer.py", "--trials", 18, cwd=tmp_path, launcher=TORCHRUN)
    assert "18 trials in 8 iterations on 1 ranks" in alone
    assert "18 trials in 4 iterations on 2 ranks" in together
