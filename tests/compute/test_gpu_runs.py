"""Runs on a real GPU: outcomes, resuming, Trainers, workers, commands, ranks. Skipped where there is none, as in CI."""

import json
import subprocess
import sys
from contextlib import nullcontext

import pytest
import torch
from lightning.pytorch import Trainer

import kinds
import objectives
from cases import CLASSIFIERS
from commands import BRANIN, deepbore
from deepbore import ExpectedImprovementBelow, ProcessEvaluator, Study, minimize, plots
from deepbore.data.outcome import Status
from deepbore.loop.quiet import quiet
from deepbore.testing import TOY_SPACES, toy_objective
from on_gpu import GPU, bowl, go_on, in_range, new_study, on_the_gpu

if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)


@pytest.mark.parametrize("space", TOY_SPACES)
def test_the_default_finds_the_best(space):
    study = new_study(space, n_initial=None)
    go_on(study, 45)
    assert study.best_trial.value < {"continuous": 1e-3, "finite": 0.02, "mixed": 0.501}[space]
    in_range(study)


@pytest.mark.parametrize("name", ["KernelPLS", "DeepEnsemble", "LaplaceGGN", "MCDropout", "DeepPLS", "FourierLogistic"])
def test_the_same_seed_gives_the_same_run_and_a_loaded_one_goes_on(name, tmp_path):
    def settings():
        return {"classifier": CLASSIFIERS[name](), "device": GPU}

    whole = go_on(new_study(**settings()), 20)
    begun = new_study(**settings(), journal=tmp_path / "run.jsonl")
    assert go_on(begun, 14) == whole[:14]
    begun.close()
    assert go_on(Study.load(tmp_path / "run.jsonl", **settings()), 6) == whole[14:]


@pytest.mark.parametrize(("first", "then"), [("cpu", GPU), (GPU, "cpu")])
def test_a_run_goes_on_with_another_device(first, then, tmp_path):
    begun = new_study(device=first, journal=tmp_path / "run.jsonl")
    begun.optimize(bowl(begun.space), 14)
    begun.close()
    study = Study.load(tmp_path / "run.jsonl", device=then)
    go_on(study, 6)
    study.optimize(bowl(study.space), 4)
    in_range(study)
    assert len(study.trials) == 24


def test_auto_is_the_gpu():
    with on_the_gpu():
        go_on(new_study(device="auto"), 10)


KINDS = [
    *((kind,) for kind in kinds.KINDS),
    ("constraints", "several objectives", "earlier tasks"),
    ("constraints", "earlier tasks", "noise"),
    ("constraints", "cheap fidelities"),
]


@pytest.mark.parametrize("of", KINDS, ids=", ".join)
def test_any_outcome(of):
    study = kinds.go_on(kinds.begun(of, device=GPU), of, 14)
    for trial in study.ask(3):
        kinds.told(study, trial, of)
    assert study.pareto_front if "several objectives" in of else study.recommended
    assert len(study.trials) >= 17


def test_failures_and_pending_trials():
    study = new_study(n_initial=6)
    value = bowl(study.space)
    for trial in study.ask(6):
        study.tell(trial, value(trial.params))
    for k in range(14):
        trial, _waits = study.ask(2)
        if k % 3:
            study.tell(trial, value(trial.params))
        else:
            study.tell(trial, failed=True)
    assert len(study.pending) == 14
    assert {trial.status for trial in study.trials} == set(Status) - {Status.WITHDRAWN}
    in_range(study)


def test_many_rows():
    space = TOY_SPACES["continuous"]
    study, points = new_study("continuous"), space.points.sample(30_000, torch.Generator().manual_seed(1))
    columns = {name: parameter.decode(points[:, i]) for i, (name, parameter) in enumerate(space.parameters.items())}
    study.add(columns, toy_objective(space, points).numpy())
    go_on(study, 8, q=4)
    assert study.best_trial.value < 1e-3
    assert study.recommended.value is not None


MODES = {
    "inference_mode": torch.inference_mode,
    "no_grad": torch.no_grad,
    "autocast": lambda: torch.autocast("cuda", dtype=torch.bfloat16),
    "device": lambda: torch.device("cuda"),
    "nothing": nullcontext,
}


@pytest.mark.parametrize("mode", MODES)
def test_proposals_are_the_same_in_any_mode(mode):
    usual, study = go_on(new_study(), 12), new_study()
    found = []
    for k in range(12):
        with MODES[mode]():
            (trial,) = study.ask()
        study.tell(trial, bowl(study.space)(trial.params))
        found.append(trial.params)
        assert found == usual[: k + 1]


def test_a_trainer_and_rules_of_ones_own():
    study = new_study("continuous")
    with quiet():
        trainer = Trainer(
            accelerator="gpu",
            devices=1,
            logger=False,
            enable_checkpointing=False,
            max_epochs=100,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
    study.optimize(bowl(study.space), 16, trainer=trainer, stop_when=[ExpectedImprovementBelow(1e-12)])
    assert len(study.trials) <= 16
    in_range(study)
    study.fit(2)
    assert study.recommended is not None
    result = minimize(bowl(study.space), study.space, n_trials=12, seed=0, device=GPU)
    assert len(result.study.trials) == 12


def test_pictures_are_drawn():
    pytest.importorskip("matplotlib").use("Agg")
    study = kinds.go_on(kinds.begun((), device=GPU), (), 16)
    study.fit(1)
    for draw in (plots.landscape, plots.slices, plots.importance, plots.shares, plots.calibration, plots.pairs):
        draw(study)
    assert "<svg" in plots.report(study)


def test_a_worker_has_the_gpu():
    study = new_study()
    study.optimize(ProcessEvaluator(objectives.on_a_gpu, workers=2, devices=[0]), 4)
    assert [trial.value for trial in study.trials] == [1.0] * 4


# --- commands --------------------------------------------------------------------------------------------------------


COLD = ["-u"]  # importing torch starts threads where there is a GPU, and such a process can't be forked


def fit_command(folder, *more):
    (folder / "branin.yaml").write_text(BRANIN)
    return deepbore(
        "fit", "--config", "branin.yaml", "--run", "run", "--trainer.accelerator", "gpu", *more, cwd=folder, flags=COLD
    )


def test_fit_runs_and_resumes(tmp_path):
    done = fit_command(tmp_path)
    assert done.returncode == 0, done.stderr
    again = deepbore("fit", "--resume", "run", "--loop.n_trials", 20, cwd=tmp_path, flags=COLD)
    assert again.returncode == 0, again.stderr
    events = [json.loads(line)["event"] for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines()]
    assert events.count("told") == 20


def test_fit_runs_under_ddp_with_nccl(tmp_path):
    done = fit_command(tmp_path, "--trainer.strategy", "ddp", "--trainer.devices", 1)
    assert done.returncode == 0, done.stderr


SHARED = """
import torch
from torch import distributed
from deepbore import Real, SearchSpace, DistributedStudy

distributed.init_process_group("gloo")
space = SearchSpace({"x": Real(-1, 1), "y": Real(-1, 1)})
suggester = DistributedStudy(space, seed=3, n_initial=6, device="cuda")
for _ in range(5):
    mine = suggester.share(suggester.ask(4))
    suggester.tell({trial.id: trial.params["x"] ** 2 + trial.params["y"] ** 2 for trial in mine})
assert torch.cuda.max_memory_allocated() > 0
print(suggester.study.best_trial.value)
distributed.destroy_process_group()
"""


def test_ranks_share_a_gpu(tmp_path):
    (tmp_path / "shared.py").write_text(SHARED)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "shared.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    one, other = map(float, done.stdout.split())
    assert one == other < 0.1
