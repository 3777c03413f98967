"""A network of your own reads images: a convolution over 8 x 8 pixels learns which patterns are good.

    python examples/image_encoder.py --trials 150

An image of 64 bits, such as the layout of an antenna, is one choice for each pixel. The value is the share of pixels
that equal a hidden shape, wherever it stands: its places look alike to a convolution, not to a kernel.
"""

import argparse

import torch
from torch import Tensor, nn

from deepbore import Categorical, DeepEnsemble, Study, Training

SIDE, BATCH = 8, 25
SHAPE = torch.tensor([[0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0]])  # a ring


class Convolution(nn.Module):
    """Two layers of 3 x 3 filters; of each feature only the place where it fits best."""

    def __init__(self, features: int, outputs: int):
        super().__init__()
        assert features == SIDE * SIDE * 2  # one-hot
        self.filters = nn.Sequential(nn.Conv2d(2, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU())
        self.score = nn.Linear(32, outputs)

    def forward(self, x: Tensor) -> Tensor:
        images = x.unflatten(-1, (SIDE, SIDE, 2)).movedim(-1, -3)
        score: Tensor = self.score(self.filters(images).amax((-2, -1)))
        return score


def objective(params: dict[str, int]) -> float:
    """The share of the ring's pixels at the best place."""
    image = torch.tensor(list(params.values())).view(SIDE, SIDE)
    windows = image.unfold(0, 4, 1).unfold(1, 4, 1)
    return float((windows == SHAPE).float().mean((-2, -1)).max())


def main() -> None:
    """Looks for an image with the hidden shape."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=150)
    n_trials = parser.parse_args().trials

    space = {f"pixel_{place:02}": Categorical([0, 1]) for place in range(SIDE * SIDE)}
    model = DeepEnsemble(members=3, network=Convolution, training=Training(steps=40))
    study = Study(space, direction="maximize", classifier=model, n_initial=BATCH, seed=0)
    while len(study.trials) < n_trials:
        for trial in study.ask(min(BATCH, n_trials - len(study.trials))):
            study.tell(trial, objective(trial.params))
    print(f"{study.best_value:.2f} of 1 after {len(study.trials)} images")


if __name__ == "__main__":
    main()
