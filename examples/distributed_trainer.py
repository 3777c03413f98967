"""The loop under a Lightning Trainer of your own, on one device or on several that share candidates and evaluations.

    python examples/distributed_trainer.py --trials 40
    torchrun --nproc-per-node 2 examples/distributed_trainer.py --trials 40

`Study` and `deepbore fit` make these four objects by themselves. Every rank holds the same observations and weights.
"""

import argparse
import os

from lightning.pytorch import Callback, LightningModule, Trainer

from deepbore import KernelPLS, SerialEvaluator
from deepbore.labels.datamodule import LabelledObservations
from deepbore.loop import LoopController
from deepbore.data.observations import Observations
from deepbore.problems import Branin
from deepbore.loop.lightning import quiet

RANKS = int(os.environ.get("WORLD_SIZE", "1"))  # set by torchrun


class BestSoFar(Callback):
    """Any callback of Lightning's works: an iteration is an epoch. This one prints each improvement."""

    best = float("inf")

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Called after the loop's own hook, where this callback stands behind it in the list."""
        value = float(trainer.callback_metrics["best_value"])
        if trainer.is_global_zero and value < self.best:
            self.best = value
            print(f"iteration {trainer.current_epoch:2d}: {value:.6f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=40)
    problem = Branin()
    observations = Observations(problem.space)
    loop = LoopController(SerialEvaluator(problem), n_trials=parser.parse_args().trials, seed=0)
    with quiet():  # Lightning's tips are about other kinds of training
        trainer = Trainer(
            accelerator="cpu",
            devices=RANKS,
            strategy="ddp" if RANKS > 1 else "auto",
            max_epochs=-1,
            callbacks=[loop, BestSoFar()],
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(KernelPLS(), datamodule=LabelledObservations(observations))
    if trainer.is_global_zero:
        iterations = trainer.current_epoch
        print(f"{len(observations)} trials in {iterations} iterations on {RANKS} ranks: {observations.best}")
