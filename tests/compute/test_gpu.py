"""Heads, searches, acquisitions and labels on a real GPU. Skipped where there is none, as in CI.

    python -m pytest tests/compute/test_gpu.py tests/compute/test_gpu_runs.py

What can be said of devices without one is in `test_devices.py`.
"""

from copy import deepcopy
from functools import partial

import pytest
import torch
from botorch.acquisition import qUpperConfidenceBound
from torch import nn

from cases import ACQUISITIONS, CANDIDATES, CLASSIFIERS, CONTINUOUS_ONLY, LABELLINGS, ONLY_FOR, SEARCHES_ONLY
from deepbore import (
    Budget,
    Calibrated,
    KernelPLS,
    LaplaceGGN,
    MCDropout,
    MLPClassifier,
    RandomForest,
    Training,
)
from deepbore.classifiers import PerColumn
from deepbore.integrations.botorch import BoTorchClassifier
from deepbore.loop.lightning import module_of, new_trainer, run
from deepbore.testing import TOY_SPACES, fit, toy_data
from on_gpu import GPU, bowl, go_on, in_range, new_study, on_the_gpu

if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)

BUDGET = Budget("epochs", 1, 9)
TRADE_OFFS = {"ObjectiveLabels", "ChebyshevLabels", "NonDominationLabels"}
SETTINGS = {  # of a study, that some heads ask for
    "AtBudgets": lambda: {"budget": BUDGET},
    "Relaxed": lambda: {"candidates": CANDIDATES["RelaxedSearch"]()},
}


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
    points, scores = space.points.sample(500, torch.Generator().manual_seed(3)), []
    for device in ("cpu", GPU):
        classifier, data = CLASSIFIERS[name](), toy_data(space, 80)
        run(new_trainer(device), module_of([classifier]), data, 6)
        classifier.to(GPU)
        scores.append(classifier.posterior(points.to(GPU)).mean.detach().double())
        assert scores[-1].device.type == GPU
    assert torch.corrcoef(torch.stack(scores))[0, 1] > 0.95


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_head_that_moves_says_the_same(name):
    space = TOY_SPACES["mixed"]
    classifier = fit(CLASSIFIERS[name](), toy_data(space, 60), epochs=3)
    points = space.points.sample(50, torch.Generator().manual_seed(3))
    found = {}
    for device in ("cpu", GPU):
        posterior = classifier.to(device).posterior(points.to(device))
        parts = [posterior.mean, *([posterior.std] if "std" in classifier.capabilities else [])]
        assert {part.device.type for part in parts} == {torch.device(device).type}
        found[device] = torch.stack(parts).cpu().double()
    assert torch.allclose(found["cpu"], found[GPU], rtol=1e-3, atol=1e-4)


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
    "without its rival": lambda: KernelPLS(additive=False),
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
    classifier = fit(KernelPLS(), toy_data(space, 40), epochs=3).to(GPU)
    acquisition = qUpperConfidenceBound(BoTorchClassifier(classifier), beta=1.0)
    values = acquisition(space.points.sample(6, torch.Generator().manual_seed(0)).view(2, 3, -1).to(GPU))
    assert values.device.type == GPU
    assert values.isfinite().all()
