"""Functions of six parameters with a valley, a slope and rougher ground, and studies that know random rows of them."""

import numpy as np
import torch
from scipy.stats import ortho_group

from deepbore import KernelPLS, Real, SearchSpace, Study
from deepbore.strategies import ModelStrategy
from deepbore.strategies.near_best import LocalAxes, NearModel, near_rows

BOX = SearchSpace({f"x{i}": Real(-1, 1) for i in range(6)})
ROTATION = ortho_group.rvs(6, random_state=0)
SCALES = 10.0 ** np.linspace(0, 3, 6)  # of curvature: a valley a thousand times as long as it is wide, across the axes


def valley(params):
    along = ROTATION @ (np.array([params[name] for name in BOX.names]) - 0.2)
    return float(SCALES @ along**2)


def bowl(params):
    return float(sum((x - 0.2) ** 2 for x in params.values()))


def slope(params):
    return sum(params.values())


def rugged(params):
    return sum(x**2 - np.cos(40 * x) for x in params.values())


def noisy(params):
    chance = np.random.default_rng(hash(tuple(params.values())) % 2**32)
    return bowl(params) + chance.normal()


def told(n, journal=None, space=BOX, objective=valley, **settings):
    """A study that knows n random configurations."""
    study = Study(space, seed=0, journal=journal, **settings)
    configurations = space.decode(space.points.sample(n, torch.Generator().manual_seed(1)))
    columns = {name: [each[name] for each in configurations] for name in space.names}
    study.add(columns, [objective(each) for each in configurations])
    return study


def go_on(study, n, objective=valley, q=1):
    asked = []
    for _ in range(n):
        for trial in study.ask(q):
            study.tell(trial, objective(trial.params))
            asked.append(tuple(trial.params.values()))
    return asked


def strategy(near):
    """Settings of a study with the default strategy, or with its model of all rows alone."""
    return {} if near else {"strategy": ModelStrategy(KernelPLS())}


def near_best(study):
    """Points of the good rows of a study, and the rows near the best one."""
    return near_rows(study._state.data.labelled(), study.observations.averaged.values)


def near_model_of(study):
    """The model that has learned a study's rows near the best one."""
    good, rows = near_best(study)
    model = NearModel(rows=200, iterations=15, prior=True, crashes=True)
    model.bind(BOX)
    model.learn_in_axes(LocalAxes.principal(good), rows)
    return model


def around(model):
    """What a search is told of the axes of a model of near rows."""
    return {"centre": model.coordinates.centre, "axes": model.coordinates.axes}


def with_points(points, values):
    """A study that knows these points (n x d) with their values."""
    study, configurations = Study(BOX), BOX.decode(points)
    study.add({name: [each[name] for each in configurations] for name in BOX.names}, values)
    return study


def around_the_middle(n, deviation):
    return 0.5 + deviation * torch.randn(n, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
