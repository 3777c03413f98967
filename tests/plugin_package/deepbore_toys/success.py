"""A strategy of several models, of which the more successful ones propose more often."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from deepbore.strategies import ModelStrategy, Proposal, Strategy, View


class BySuccess(Strategy):
    """Several strategies, each chosen with a probability that grows with its past success.

    A strategy is successful when its proposal turns out better than all values before it: the share of its successes,
    with one of each kind to begin with, is its weight.

    Args:
        strategies: each with a model.
    """

    def __init__(self, strategies: Sequence[ModelStrategy]):
        self.strategies = list(strategies)
        self.successes = [1] * len(self.strategies)
        self.trials = [2] * len(self.strategies)
        self.waiting: dict[int, int] = {}  # row of a proposal -> by which strategy, until it is told
        self.best = float("inf")

    @property
    def models(self):
        return tuple(model for each in self.strategies for model in each.models)

    def check(self, space, labels) -> None:
        for each in self.strategies:
            each.check(space, labels)

    def fit(self, view: View) -> bool:
        """Counts what has become of the proposals."""
        pending = set(view.observations.columns.pending_rows.tolist())
        for row, number in list(self.waiting.items()):
            if row in pending or row >= len(view.values):
                continue
            del self.waiting[row]
            self.trials[number] += 1
            self.successes[number] += bool(view.values[row] < self.best)
        known = view.values[~view.values.isnan()]
        self.best = float(known.min()) if len(known) else self.best
        return super().fit(view)

    def propose(self, view: View, q: int) -> Proposal:
        weight = torch.tensor([s / n for s, n in zip(self.successes, self.trials, strict=True)])
        number = int(torch.multinomial(weight, 1, generator=view.generator))
        first = len(view.observations)
        self.waiting |= dict.fromkeys(range(first, first + q), number)
        return self.strategies[number].propose(view, q)

    def state_dict(self) -> dict[str, Any]:
        return {
            "strategies": [each.state_dict() for each in self.strategies],
            "successes": list(self.successes),
            "trials": list(self.trials),
            "waiting": dict(self.waiting),
            "best": self.best,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for each, own in zip(self.strategies, state["strategies"], strict=True):
            each.load_state_dict(own)
        self.successes, self.trials = list(state["successes"]), list(state["trials"])
        self.waiting, self.best = dict(state["waiting"]), state["best"]
