"""Methods for several objectives, for scripts/trade_offs.py: each yields the values of trials, one by one."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from deepbore import KernelPLS, Study
from deepbore.labels import ObjectiveLabels
from peers.mbore import MODELS, SCORES, mbore

Method = Callable[[Any, int], Iterator[list[float]]]


def asked(problem: Any, **parts: Any) -> Iterator[list[float]]:
    """Values of a study of deepbore, one trial after another."""
    study = Study(problem.space, directions=problem.directions, **parts)
    while True:
        (trial,) = study.ask()
        outcome = problem(trial.params)
        study.tell(trial, outcome)
        yield list(outcome.values)


def told(problem: Any) -> ObjectiveLabels:
    """Labels that know the problem's reference point, as qLogNEHVI and MBORE do."""
    return ObjectiveLabels(len(problem.directions), problem.reference)


def random(problem: Any, seed: int) -> Iterator[list[float]]:
    """Values of random configurations."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        yield list(problem(problem.space.decode(problem.space.points.sample(1, generator))[0]).values)


def optuna(problem: Any, sampler: Any) -> Iterator[list[float]]:
    """Values of one of Optuna's samplers."""
    import optuna

    from peers.optuna_samplers import suggest

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=sampler, directions=problem.directions)
    while True:
        trial = study.ask()
        params = suggest(trial, problem.space)
        values = list(problem(params).values)
        study.tell(trial, values)
        yield values


def botorch(problem: Any, seed: int) -> Iterator[list[float]]:
    """Values of BoTorch's qLogNEHVI, one point at a time, on independent Gaussian processes, as in its tutorial.

    Its reference point is the problem's own, which deepbore's default is not told. The search has 4 restarts from 128
    points and 100 iterations, the tutorial's 10, 512 and 200. What it finds is rounded to a configuration.
    """
    from botorch import fit_gpytorch_mll
    from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.models.transforms import Standardize
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import SumMarginalLogLikelihood

    torch.manual_seed(seed)
    space, d = problem.space, len(problem.space)
    points, y = space.points.sobol(10, seed), []
    for params in space.decode(points):
        y.append(list(problem(params).values))
        yield y[-1]
    bounds, widths = torch.stack([torch.zeros(d), torch.ones(d)]).double(), space.points.bounds[1]
    while True:
        x, gains = points / widths, -torch.tensor(y, dtype=torch.float64)
        models = [SingleTaskGP(x, gains[:, [j]], outcome_transform=Standardize(1)) for j in range(gains.shape[1])]
        model = ModelListGP(*models)
        fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
        acquisition = qLogNoisyExpectedHypervolumeImprovement(
            model, ref_point=[-each for each in problem.reference], X_baseline=x, prune_baseline=True
        )
        point, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=4, raw_samples=128, options={"maxiter": 100})
        points = torch.cat([points, space.points.snap(point.detach() * widths)])
        y.append(list(problem(space.decode(points[-1:])[0]).values))
        yield y[-1]


def sampler(name: str, seed: int) -> Any:
    """One of Optuna's samplers."""
    import optuna

    if name == "TPE":
        return optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True)
    return optuna.samplers.NSGAIISampler(seed=seed, population_size=20)


METHODS: dict[str, Method] = {
    "deepbore": lambda problem, seed: asked(problem, seed=seed),
    "deepbore:told": lambda problem, seed: asked(problem, seed=seed, labels=told(problem)),
    "deepbore:chebyshev": lambda problem, seed: asked(problem, seed=seed, classifier=KernelPLS()),
    "optuna-tpe": lambda problem, seed: optuna(problem, sampler("TPE", seed)),
    "optuna-nsga2": lambda problem, seed: optuna(problem, sampler("NSGA-II", seed)),
    "random": random,
    "botorch-qlognehvi": botorch,
    **{f"mbore-{m}-{score}": partial(mbore, model=m, score=score) for m in MODELS for score in SCORES},
}
