"""What tests on a real GPU share."""

from contextlib import contextmanager

import torch

from deepbore import Study
from deepbore.testing import TOY_SPACES, toy_objective

GPU = "cuda"


@contextmanager
def on_the_gpu():
    """Something is computed there within."""
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.max_memory_allocated()
    yield
    assert torch.cuda.max_memory_allocated() > before


def new_study(space="mixed", device=GPU, **settings):
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
    assert torch.equal(points, study.space.points.snap(points))
    assert len(set(study.space.points.identify(points))) == len(points) or study.trials[0].budget is not None
