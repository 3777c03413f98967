"""A strategy around another one: a share of its proposals is random."""

from collections.abc import Mapping
from typing import Any

import torch

from deepbore.candidates import select_new
from deepbore.strategies import Proposal, Strategy, View


class RandomShare(Strategy):
    """With probability `share` uniform random points, else those of another strategy.

    Args:
        base: the other strategy.
        share: in [0, 1].
    """

    def __init__(self, base: Strategy, share: float = 0.2):
        self.base, self.share = base, share

    @property
    def models(self):
        return self.base.models

    def check(self, space, labels) -> None:
        self.base.check(space, labels)

    def fit(self, view: View) -> bool:
        return self.base.fit(view)

    def propose(self, view: View, q: int) -> Proposal:
        if float(torch.rand(1, generator=view.generator)) >= self.share:
            return self.base.propose(view, q)
        random = view.space.points.sample(100 * q, view.generator)
        return Proposal(select_new(random, view.observations, q, view.generator, view.chosen))

    def state_dict(self) -> dict[str, Any]:
        return {"base": self.base.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.base.load_state_dict(state["base"])
