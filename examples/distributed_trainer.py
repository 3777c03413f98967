"""The loop under a Lightning Trainer of your own, on one device or on several that share candidates and evaluations.

    python examples/distributed_trainer.py --trials 40
    torchrun --nproc-per-node 2 examples/distributed_trainer.py --trials 40

Every rank holds the same observations and weights. Without `trainer=` a study makes a Trainer of one device by itself.
"""

import argparse
import os

from lightning.pytorch import Callback, LightningModule, Trainer

from deepbore import Study
from deepbore.loop.lightning import quiet
from deepbore.problems import Branin

RANKS = int(os.environ.get("WORLD_SIZE", "1"))  # set by torchrun


class BestSoFar(Callback):
    """Any callback of Lightning's works: an iteration is an epoch. This one prints each improvement."""

    best = float("inf")

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Called after the loop's own hook, so what the loop has logged is there."""
        value = float(trainer.callback_metrics["best_value"])
        if trainer.is_global_zero and value < self.best:
            self.best = value
            print(f"iteration {trainer.current_epoch:2d}: {value:.6f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=40)
    problem = Branin()
    study = Study(problem.space, seed=0)
    with quiet():  # Lightning's tips are about other kinds of training
        trainer = Trainer(
            accelerator="cpu",
            devices=RANKS,
            strategy="ddp" if RANKS > 1 else "auto",
            max_epochs=-1,
            callbacks=[BestSoFar()],
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
    study.optimize(problem, n_trials=parser.parse_args().trials, trainer=trainer)
    if trainer.is_global_zero:
        iterations = trainer.current_epoch
        print(f"{len(study.trials)} trials in {iterations} iterations on {RANKS} ranks: {study.best_trial}")
