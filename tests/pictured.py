"""Studies of which pictures are drawn."""

import torch

from deepbore import Real, SearchSpace, Study


def told_at_random(space, values, **settings):
    """A trained study of random configurations with these values; a function makes them of the configuration."""
    study = Study(space, **settings)
    n = values if isinstance(values, int) else len(values)
    for k, row in enumerate(study.observations.reserve(space.points.sample(n, torch.Generator().manual_seed(0)))):
        params = study.observations.trial(row).params
        study.tell(
            row, sum(v for v in params.values() if isinstance(v, float)) if isinstance(values, int) else values[k]
        )
    study.fit(epochs=1)
    return study


def tried_on(space, value, n=12, **settings):
    study = Study(space, seed=0, **settings)
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, value(trial.params))
    return study


STEM = "model.init_args.optimizer.init_args."
DOTTED = SearchSpace({STEM + name: Real(0, 1) for name in ("lr", "weight_decay", "momentum")})
