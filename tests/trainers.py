"""Lightning's Trainers as tests have them: on the CPU, and silent."""

from lightning.pytorch import Trainer

from deepbore.loop.lightning import module_of, new_trainer, run
from deepbore.loop.quiet import quiet

QUIET = dict.fromkeys(["logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"], False)


def quiet_trainer(**settings):
    """A Trainer without logger, checkpoints or bars, but for what is asked for; epochs have no end unless told."""
    with quiet():
        return Trainer(**{"accelerator": "cpu", "max_epochs": -1} | QUIET | settings)


def trainer_of(classifier, data, epochs=1):
    """The Trainer that has trained a classifier, also one that needs none."""
    trainer = new_trainer()
    run(trainer, module_of([classifier]), data, epochs)
    return trainer
