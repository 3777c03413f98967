"""Lightning's Trainer, set up for an epoch that is one batch, and quiet."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lightning.pytorch import Callback, Trainer

from deepbore.classifiers.base import Classifier
from deepbore.labels.datamodule import LabelledObservations

LAUNCHER = "lightning.fabric.strategies.launchers.subprocess_script"


def new_trainer(callbacks: Sequence[Callback] = ()) -> Trainer:
    """A trainer that only trains, without logger, checkpoints or bars, on the CPU: the fastest for small models."""
    with quiet():
        return Trainer(
            accelerator="cpu",
            devices=1,
            max_epochs=-1,
            logger=False,
            callbacks=list(callbacks),
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )


def train(classifier: Classifier, data: LabelledObservations, epochs: int) -> Classifier:
    """Trains a classifier for some epochs, as the loop would, without proposing anything."""
    trainer = new_trainer()
    trainer.fit_loop.max_epochs = epochs
    with quiet():
        trainer.fit(classifier, datamodule=data)
    return classifier


@contextmanager
def quiet() -> Iterator[None]:
    """Silences Lightning's tips and reminders, which are about other kinds of training, but not the end of a rank."""
    loggers = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric", LAUNCHER)]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.INFO if logger.name == LAUNCHER else logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="lightning")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
