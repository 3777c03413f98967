"""A network of your own reads sequences: a one-dimensional convolution learns motifs wherever they stand.

    python examples/sequence_encoder.py --trials 200

A sequence of 24 letters is one choice for each position. A network gets the one-hot code of all, 24 x 4 numbers a
sequence, and may do with them what it likes. The value is the share of the letters of two motifs that the best place in
the sequence has, multiplied: nobody sees a motif but by its letters together.
"""

import argparse

from torch import Tensor, nn

from deepbore import Categorical, DeepEnsemble, Study, Training

LETTERS, LENGTH, BATCH = "ACGT", 24, 25
MOTIFS = ("GATTAC", "CCGTAG")


class Convolution(nn.Module):
    """Motifs of five letters, then of motifs close to each other; of each only where it fits best."""

    def __init__(self, features: int, outputs: int):
        super().__init__()
        assert features == LENGTH * len(LETTERS)
        self.motifs = nn.Sequential(
            nn.Conv1d(len(LETTERS), 32, 5, padding=2), nn.ReLU(), nn.Conv1d(32, 32, 5, padding=2), nn.ReLU()
        )
        self.score = nn.Linear(32, outputs)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.motifs(x.unflatten(-1, (LENGTH, len(LETTERS))).mT)
        score: Tensor = self.score(found.amax(-1))
        return score


def objective(params: dict[str, str]) -> float:
    """The product over both motifs of the share that the best place has."""
    sequence, value = "".join(params.values()), 1.0
    for motif in MOTIFS:
        windows = [sequence[start : start + len(motif)] for start in range(LENGTH - len(motif) + 1)]
        value *= max(sum(a == b for a, b in zip(motif, each, strict=True)) for each in windows) / len(motif)
    return value


def main() -> None:
    """Looks for the best sequence."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=200)
    n_trials = parser.parse_args().trials

    space = {f"position_{place:02}": Categorical(list(LETTERS)) for place in range(LENGTH)}
    model = DeepEnsemble(members=3, network=Convolution, training=Training(steps=60))
    study = Study(space, direction="maximize", classifier=model, n_initial=BATCH, seed=0)
    while len(study.trials) < n_trials:
        for trial in study.ask(min(BATCH, n_trials - len(study.trials))):
            study.tell(trial, objective(trial.params))
    print(f"{study.best_value:.2f} of 1 after {len(study.trials)} sequences: {''.join(study.best_params.values())}")


if __name__ == "__main__":
    main()
