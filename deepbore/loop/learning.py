"""`learn`: training without proposals, and in closed form without a Trainer."""

from collections.abc import Sequence

import torch

from deepbore.classifiers.base import Classifier
from deepbore.compute.torch_state import clean_torch_state
from deepbore.labels import LabelledObservations


def learn(models: Sequence[Classifier], data: LabelledObservations, epochs: int, device: torch.device) -> None:
    """Trains models for some epochs as in a run, without proposals; Lightning is imported for gradient steps alone.

    Args:
        models: one or more.
        data: what they learn.
        epochs: so many times as in an iteration.
        device: where they learn.
    """
    if not all(model.closed_form for model in models):
        from deepbore.loop.lightning import module_of, new_trainer, run  # takes seconds

        run(new_trainer(device), module_of(models), data, epochs)
        return
    data.observations.to(device)
    for model in models:
        if model.space is None:
            model.bind_to(data)
        model.to(device)
    with clean_torch_state():
        for _ in range(epochs):
            batch = data.batch()
            for model in models:
                model.learned(batch, measure=False)
