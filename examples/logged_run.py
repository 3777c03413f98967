"""A run in MLflow, Weights & Biases or TensorBoard, by Lightning's own loggers.

An iteration is a step, and each trial is a run, or a row, of its own.

    python examples/logged_run.py --trials 20 --logger csv
    python examples/logged_run.py --trials 20 --logger mlflow   # pip install mlflow; into ./mlflow.db
    python examples/logged_run.py --trials 20 --logger wandb    # pip install wandb; WANDB_MODE=offline: ./wandb

From the command line it is, for instance:

    deepbore fit --config FILE --trainer.logger lightning.pytorch.loggers.WandbLogger --trainer.logger.project deepbore
"""

import argparse
from collections.abc import Callable

from lightning.pytorch import Trainer
from lightning.pytorch.loggers import CSVLogger, Logger, MLFlowLogger, TensorBoardLogger, WandbLogger

from deepbore import Study
from deepbore.loop.lightning import quiet
from deepbore.problems import Branin

LOGGERS: dict[str, Callable[[], Logger]] = {
    "csv": lambda: CSVLogger("logs"),
    "tensorboard": lambda: TensorBoardLogger("logs"),
    "mlflow": lambda: MLFlowLogger("deepbore", tracking_uri="sqlite:///mlflow.db"),
    "wandb": lambda: WandbLogger(project="deepbore"),
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--logger", choices=LOGGERS, default="csv")
    args = parser.parse_args()
    logger = LOGGERS[args.logger]()
    problem = Branin()
    study = Study(problem.space, seed=0)
    logger.log_hyperparams({"seed": study.state.seed, "classifier": type(study.classifier).__name__})
    with quiet():  # Lightning's tips are about other kinds of training
        trainer = Trainer(
            accelerator="cpu",
            devices=1,
            max_epochs=-1,
            logger=logger,
            log_every_n_steps=1,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
    study.optimize(problem, n_trials=args.trials, trainer=trainer)
    logger.log_metrics({"recommended_value": study.recommended.value}, step=trainer.current_epoch)
    logger.finalize("success")
    print(f"best of {len(study.trials)}: {study.best_trial.value:.6f}, logged by {type(logger).__name__}")
