"""A network that must stay small: the loss on handwritten digits, under a limit on the number of its weights.

    python examples/size_limit.py --trials 40 --limit 2500

The objective returns the loss and, as a black-box constraint, by how much the network is too large: what is <= 0 is
kept. Wide networks are the better ones, so the best feasible one lies near the limit, and the run learns where that
is. Had the size a formula that is known beforehand, a constraint of the search space would do (docs/spaces.md); the
peak of memory, or the latency on a phone, has none.
"""

import argparse
from itertools import pairwise

import deepbore
from deepbore.problems import Digits


class Limited:
    """The loss of a network, and how far it is over the limit, as a share of it.

    Args:
        limit: the most weights.
    """

    def __init__(self, limit: int):
        self.limit = limit
        self.digits = Digits(epochs=5)

    def __call__(self, params: dict) -> deepbore.Outcome:
        loss = self.digits(params)
        sizes = [64] + [params["width"]] * params["depth"] + [10]
        weights = sum((before + 1) * after for before, after in pairwise(sizes))
        return deepbore.Outcome(loss, constraints=[weights / self.limit - 1], attributes={"weights": weights})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--limit", type=int, default=2500)
    given = parser.parse_args()
    objective = Limited(given.limit)
    result = deepbore.minimize(objective, objective.digits.space, n_trials=given.trials, seed=0)
    feasible = result.study.observations.feasible.tolist()
    half = given.trials // 2
    print(f"feasible: {sum(feasible[:half])} in the first half, {sum(feasible[half:])} in the second")
    best = result.study.best_trial
    print(f"smallest loss: {best.value:.3f} with {best.attributes['weights']} weights and {best.params}")
