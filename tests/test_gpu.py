"""All that computes, on a real GPU: heads, searches, outcomes, ways to run. Skipped where there is none, as in CI.

    python -m pytest tests/test_gpu.py

What can be said of devices without one is in `test_devices.py`.
"""

import json
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from functools import partial

import pytest
import torch
from botorch.acquisition import qUpperConfidenceBound
from lightning.pytorch import Trainer
from torch import nn

import kinds
import objectives
from cases import ACQUISITIONS, CANDIDATES, CLASSIFIERS, CONTINUOUS_ONLY, LABELLINGS, ONLY_FOR, SEARCHES_ONLY
from commands import BRANIN, deepbore
from deepbore import (
    Budget,
    Calibrated,
    ExpectedImprovementBelow,
    KernelPLS,
    LaplaceGGN,
    MCDropout,
    MLPClassifier,
    ProcessEvaluator,
    RandomForest,
    Study,
    Training,
    minimize,
    plots,
)
from deepbore.classifiers import PerColumn
from deepbore.data.outcomes import Status
from deepbore.integrations.botorch import BoTorchClassifier
from deepbore.loop.lightning import new_trainer, quiet, run
from deepbore.testing import TOY_SPACES, fit, toy_data, toy_objective

DEVICE = "cuda"
if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)

BUDGET = Budget("epochs", 1, 9)
TRADE_OFFS = {"ObjectiveLabels", "ChebyshevLabels", "NonDominationLabels"}
SETTINGS = {  # of a study, that some heads ask for
    "AtBudgets": lambda: {"budget": BUDGET},
    "Relaxed": lambda: {"candidates": CANDIDATES["RelaxedSearch"]()},
}


@contextmanager
def on_the_gpu():
    """Something is computed there within."""
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.max_memory_allocated()
    yield
    assert torch.cuda.max_memory_allocated() > before


def new_study(space="mixed", device=DEVICE, **settings):
    return Study(TOY_SPACES[space], device=device, **{"seed": 0, "n_initial": 8, **settings})


def bowl(space):
    """An objective of configurations: the toy bowl."""
    return lambda params: float(toy_objective(space, space.encode([params])))


def go_on(study, n, q=1):
    """Asks for so many trials, in batches of q, and tells the bowl's values; the configurations."""
    value, found = bowl(study.space), []
    while len(found) < n:
        for trial in study.ask(q):
            study.tell(trial, value(trial.params))
            found.append(trial.params)
    return found


def in_range(study):
    """All trials are of the space, and none comes again, unless budgets promote it."""
    points = study.space.encode([trial.params for trial in study.trials])
    assert torch.equal(points, study.space.snap(points))
    assert len(set(study.space.identify(points))) == len(points) or study.trials[0].budget is not None


# --- parts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", TOY_SPACES)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_head_learns_and_proposes(name, space):
    if (name, space) == ("Relaxed", "continuous"):
        pytest.skip("there is nothing to relax")
    study = new_study(space, classifier=CLASSIFIERS[name](), **SETTINGS.get(name, dict)())
    with on_the_gpu():
        go_on(study, 12)
        go_on(study, 4, q=4)
    in_range(study)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_head_learns_the_same_as_on_a_cpu(name):
    space = TOY_SPACES["continuous"]
    points, scores = space.sample(500, torch.Generator().manual_seed(3)), []
    for device in ("cpu", DEVICE):
        classifier, data = CLASSIFIERS[name](), toy_data(space, 80)
        run(new_trainer(device), classifier, data, 6)
        classifier.to(DEVICE)
        scores.append(classifier.posterior(points.to(DEVICE)).mean.detach().double())
        assert scores[-1].device.type == DEVICE
    assert torch.corrcoef(torch.stack(scores))[0, 1] > 0.95


@pytest.mark.parametrize("name", [name for name in CLASSIFIERS if name != "PerColumn"])
def test_a_head_that_moves_says_the_same(name):
    space = TOY_SPACES["mixed"]
    classifier = fit(CLASSIFIERS[name](), toy_data(space, 60), epochs=3)
    points = space.sample(50, torch.Generator().manual_seed(3))
    found = {}
    for device in ("cpu", DEVICE):
        posterior = classifier.to(device).posterior(points.to(device))
        parts = [posterior.mean, *([posterior.std] if "std" in classifier.capabilities else [])]
        assert {part.device.type for part in parts} == {torch.device(device).type}
        found[device] = torch.stack(parts).cpu().double()
    assert torch.allclose(found["cpu"], found[DEVICE], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("q", [1, 5])
@pytest.mark.parametrize("name", CANDIDATES)
def test_a_search_proposes(name, q):
    space = "continuous" if name in CONTINUOUS_ONLY else "mixed"
    head = CLASSIFIERS[SEARCHES_ONLY.get(name, "DeepEnsemble")]()
    study = new_study(space, classifier=head, candidates=CANDIDATES[name]())
    go_on(study, 10)
    with on_the_gpu():
        go_on(study, 2 * q, q=q)
    in_range(study)


@pytest.mark.parametrize("name", [name for name in ACQUISITIONS if name != "LogHypervolumeImprovement"])
def test_an_acquisition_ranks(name):
    head = CLASSIFIERS[ONLY_FOR.get(name, "LaplaceGGN")]()
    study = new_study("continuous", classifier=head, acquisition=ACQUISITIONS[name]())
    go_on(study, 14)
    in_range(study)


@pytest.mark.parametrize("name", LABELLINGS)
def test_a_labelling_labels(name):
    labels = LABELLINGS[name]()
    head = partial(PerColumn, KernelPLS(), 2) if labels.outputs == 2 else CLASSIFIERS["MLPClassifier"]
    several = {"directions": ["minimize", "minimize"]} if name in TRADE_OFFS else {}
    budget = {"budget": BUDGET} if name == "RungLabels" else {}
    study = new_study(classifier=head(), labels=labels, **several, **budget)
    value = bowl(study.space)
    for trial in (trial for _ in range(14) for trial in study.ask()):
        study.tell(trial, [value(trial.params), -trial.params["units"]] if several else value(trial.params))
    in_range(study)


def dropping(features, outputs):
    return nn.Sequential(nn.Linear(features, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, outputs))


OWN = {
    "Calibrated": lambda: Calibrated(KernelPLS()),
    "MCDropout": lambda: MCDropout(training=Training(steps=30)),
    "own network": lambda: MLPClassifier(network=dropping, training=Training(steps=30)),
    **{
        f"own network, {structure}": partial(LaplaceGGN, network=dropping, structure=structure)
        for structure in ("full", "kron", "diag", "last_layer")
    },
    **{structure: partial(LaplaceGGN, structure=structure) for structure in ("kron", "diag", "last_layer")},
    "noisy": lambda: KernelPLS(noisy=True),
    "without crashes": lambda: KernelPLS(crashes=False),
    "near": lambda: KernelPLS(additive=False),
    "forest": lambda: RandomForest(trees=20),
}


@pytest.mark.parametrize("name", OWN)
def test_other_heads_and_settings(name):
    study = new_study("continuous", classifier=OWN[name]())
    found = go_on(study, 14)
    copied = deepcopy(study)
    found += go_on(study, 2)
    assert go_on(copied, 2) == found[-2:]
    assert go_on(new_study("continuous", classifier=OWN[name]()), 16) == found
    in_range(study)


def test_botorchs_acquisitions_take_a_head():
    space = TOY_SPACES["continuous"]
    classifier = fit(KernelPLS(), toy_data(space, 40), epochs=3).to(DEVICE)
    acquisition = qUpperConfidenceBound(BoTorchClassifier(classifier), beta=1.0)
    values = acquisition(space.sample(6, torch.Generator().manual_seed(0)).view(2, 3, -1).to(DEVICE))
    assert values.device.type == DEVICE
    assert values.isfinite().all()


# --- runs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", TOY_SPACES)
def test_the_default_finds_the_best(space):
    study = new_study(space, n_initial=None)
    go_on(study, 45)
    assert study.best_trial.value < {"continuous": 1e-3, "finite": 0.02, "mixed": 0.501}[space]
    in_range(study)


@pytest.mark.parametrize("name", ["KernelPLS", "DeepEnsemble", "LaplaceGGN", "MCDropout", "DeepPLS", "FourierLogistic"])
def test_the_same_seed_gives_the_same_run_and_a_loaded_one_goes_on(name, tmp_path):
    def settings():
        return {"classifier": CLASSIFIERS[name](), "device": DEVICE}

    whole = go_on(new_study(**settings()), 20)
    begun = new_study(**settings(), journal=tmp_path / "run.jsonl")
    assert go_on(begun, 14) == whole[:14]
    begun.close()
    assert go_on(Study.load(tmp_path / "run.jsonl", **settings()), 6) == whole[14:]


@pytest.mark.parametrize(("first", "then"), [("cpu", DEVICE), (DEVICE, "cpu")])
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
    study = kinds.go_on(kinds.begun(of, device=DEVICE), of, 14)
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
    assert {trial.status for trial in study.trials} == set(Status)
    in_range(study)


def test_many_rows():
    space = TOY_SPACES["continuous"]
    study, points = new_study("continuous"), space.sample(30_000, torch.Generator().manual_seed(1))
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
    result = minimize(bowl(study.space), study.space, n_trials=12, seed=0, device=DEVICE)
    assert len(result.study.trials) == 12


def test_pictures_are_drawn():
    pytest.importorskip("matplotlib").use("Agg")
    study = kinds.go_on(kinds.begun((), device=DEVICE), (), 16)
    study.fit(1)
    for draw in (plots.landscape, plots.slices, plots.importance, plots.shares, plots.calibration, plots.pairs):
        draw(study)
    assert "<svg" in plots.report(study)


def test_a_worker_has_the_gpu():
    study = new_study()
    study.optimize(ProcessEvaluator(objectives.on_a_gpu, workers=2, devices=[0]), 4)
    assert [trial.value for trial in study.trials] == [1.0] * 4


# --- commands --------------------------------------------------------------------------------------------------------


def fit_command(folder, *more):
    (folder / "branin.yaml").write_text(BRANIN)
    return deepbore("fit", "--config", "branin.yaml", "--run", "run", "--trainer.accelerator", "gpu", *more, cwd=folder)


def test_fit_runs_and_resumes(tmp_path):
    done = fit_command(tmp_path)
    assert done.returncode == 0, done.stderr
    again = deepbore("fit", "--resume", "run", "--loop.n_trials", 20, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    events = [json.loads(line)["event"] for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines()]
    assert events.count("told") == 20


def test_fit_runs_under_ddp_with_nccl(tmp_path):
    done = fit_command(tmp_path, "--trainer.strategy", "ddp", "--trainer.devices", 1)
    assert done.returncode == 0, done.stderr


SHARED = """
import torch
from torch import distributed
from deepbore import Real, SearchSpace, Suggester

distributed.init_process_group("gloo")
space = SearchSpace({"x": Real(-1, 1), "y": Real(-1, 1)})
suggester = Suggester(space, seed=3, n_initial=6, device="cuda")
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
