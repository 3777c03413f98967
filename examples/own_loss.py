"""An ensemble with a loss of its own: pairs of rows are ranked, and what the scores mean is said by the subclass.

    python examples/own_loss.py --trials 40

The order of configurations is all that a search needs: the loss is that of pairs whose labels differ (RankNet).
"""

import argparse

from torch import Tensor
from torch.nn.functional import softplus

from deepbore import DeepEnsemble, Real, Study, Training
from deepbore.classifiers import Minibatch


class Ranking(DeepEnsemble):
    """Members that learn which of two rows is better; also logs the share of pairs in the right order."""

    def training_step(self, batch: Minibatch, batch_idx: int = 0) -> Tensor:
        scores = self.training_outputs(batch.x)[..., 0]  # members x rows
        better = batch.z[:, 0, None] - batch.z[:, 0] > 0
        difference = scores[:, :, None] - scores[:, None]
        self.log("ordered", (difference > 0)[:, better].float().mean())
        weight = better * batch.weight[:, None] * batch.weight
        return (softplus(-difference) * weight).sum() / weight.sum().clamp(min=1e-12)


def objective(params: dict[str, float]) -> float:
    """A bent valley."""
    return (params["x"] - 1) ** 2 + 10 * (params["y"] - params["x"] ** 2) ** 2


def main() -> None:
    """Looks for the bottom of the valley."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=40)
    n_trials = parser.parse_args().trials

    head = Ranking(members=3, training=Training(steps=30))
    study = Study({"x": Real(-2, 2), "y": Real(-1, 3)}, classifier=head, n_initial=10, seed=0)
    while len(study.trials) < n_trials:
        (trial,) = study.ask()
        study.tell(trial, objective(trial.params))
    print(f"best {study.best_value:.3g} after {len(study.trials)} trials")


if __name__ == "__main__":
    main()
