"""A program with Hydra, swept by deepbore: in this folder

    python train.py --multirun                                # what config.yaml says
    python train.py --multirun 'width=8,16' hydra.sweeper.n_trials=30

Nothing in here knows of deepbore: config.yaml names the sweeper, and what it sweeps over. Needs deepbore[hydra].
"""

import math

import hydra
from omegaconf import DictConfig


@hydra.main(version_base=None, config_path=".", config_name="config")
def train(config: DictConfig) -> float:
    """The loss of a pretended training; what raises is a failed trial."""
    if config.optimizer.lr > 0.3:
        raise FloatingPointError("the loss is NaN")
    loss = (math.log10(config.optimizer.lr) + 2.5) ** 2 + 4 / config.width
    return loss + (abs(config.optimizer.momentum - 0.9) if config.optimizer.name == "sgd" else 0.2)


if __name__ == "__main__":
    train()
