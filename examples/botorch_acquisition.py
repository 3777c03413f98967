"""Deepbore and BoTorch: a classifier under BoTorch's acquisitions, and batches under a linear constraint."""

import torch
from botorch.acquisition import qUpperConfidenceBound
from botorch.optim import optimize_acqf

from deepbore import BoTorchBatch, DeepEnsemble, Real, SearchSpace, Study
from deepbore.integrations.botorch import BoTorchClassifier, EveryMember

space = SearchSpace({"water": Real(0, 10), "sugar": Real(0, 10)})
at_most_12 = ((0, 1), (-1.0, -1.0), -12.0)  # -water - sugar >= -12


def objective(params: dict[str, float]) -> float:
    """The distance to a recipe that the bowl has no room for."""
    return (params["water"] - 9) ** 2 + (params["sugar"] - 5) ** 2


def batches() -> Study:
    """Four trials at a time, chosen together, all within the constraint but for the initial design."""
    study = Study(space, seed=0, candidates=BoTorchBatch(inequality_constraints=[at_most_12]), n_initial=8)
    for _ in range(5):
        for trial in study.ask(4):
            study.tell(trial, objective(trial.params))
    return study


def by_hand(study: Study) -> torch.Tensor:
    """Three points for the same data by an acquisition and an optimiser of BoTorch's, without a constraint."""
    ensemble = Study(space, seed=0, classifier=DeepEnsemble(), n_initial=1)
    ensemble.add(
        {name: [t.params[name] for t in study.trials] for name in space.names}, [trial.value for trial in study.trials]
    )
    ensemble.ask(1)  # trains it
    model = BoTorchClassifier(ensemble.classifier)
    acquisition = qUpperConfidenceBound(model, beta=1.0, sampler=EveryMember())
    points, _ = optimize_acqf(acquisition, bounds=space.points.bounds, q=3, num_restarts=4, raw_samples=64)
    return points


if __name__ == "__main__":
    study = batches()
    proposed = [trial.params for trial in study.trials[8:]]
    kept = all(params["water"] + params["sugar"] <= 12 + 1e-6 for params in proposed)
    print(f"{len(proposed)} proposals within the constraint: {kept}")
    print(f"best of them: {min(proposed, key=objective)}; by hand 8 and 4")
    print(f"three points of BoTorch's own: {space.decode(by_hand(study))}")
