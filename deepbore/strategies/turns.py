"""`Turns`: several strategies that take turns."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from deepbore.classifiers import Classifier
from deepbore.data.trial import Budget
from deepbore.errors import SettingError
from deepbore.labels import Labelling
from deepbore.space import SearchSpace
from deepbore.strategies.base import ModelStrategy, Proposal, Strategy, View


class Turns(Strategy):
    """A first strategy, and others that make every other proposal where they apply.

    A single point is proposed by the first of the others that applies (`Strategy.applies`) and is ready after training
    (`Strategy.fit`), unless one of those that apply was used for the previous point; then, and if there is none, by the
    first strategy. A batch is divided equally among the first and all others that apply and are ready; later shares
    avoid earlier points.

    Args:
        strategies: the first is a `ModelStrategy`, whose acquisition and optimiser the others use.

    Raises:
        SettingError: for anything else.

    Example:
        >>> from deepbore import KernelPLS, Real, SearchSpace, Study
        >>> from deepbore.strategies import NearBest
        >>> space = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})
        >>> study = Study(space, strategy=Turns([ModelStrategy(KernelPLS()), NearBest()]))
        >>> type(study.classifier).__name__
        'KernelPLS'
    """

    def __init__(self, strategies: Sequence[Strategy]):
        several = list(strategies) if isinstance(strategies, (list, tuple)) else []
        if not several or not all(isinstance(each, Strategy) for each in several):
            raise SettingError(f"strategies must be a list of strategies, but got {strategies!r:.100}.")
        if not isinstance(several[0], ModelStrategy):
            raise SettingError(
                f"the first of the strategies must be a ModelStrategy, whose acquisition and search the others use, "
                f"but is {type(several[0]).__name__}. Put it after ModelStrategy(KernelPLS())."
            )
        self.first, self.others = several[0], several[1:]
        self._had_turn = [False] * len(self.others)  # whether each was used for the latest point

    @property
    def models(self) -> tuple[Classifier, ...]:
        return tuple(model for each in (self.first, *self.others) for model in each.models)

    def check(self, space: SearchSpace, labels: Labelling) -> None:
        for each in (self.first, *self.others):
            each.check(space, labels)

    def at_budgets(self, budget: Budget) -> Strategy:
        return Turns([self.first.at_budgets(budget), *(each.at_budgets(budget) for each in self.others)])

    def accepts(self, space: SearchSpace, points: Tensor) -> Tensor:
        return self.first.accepts(space, points)

    def fit(self, view: View) -> bool:
        """Whether the first is ready; the others are trained when they are due."""
        return self.first.fit(view)

    def propose(self, view: View, q: int) -> Proposal:
        shared = replace(view, first=self.first)
        due = self._due(shared, q)
        if not due:
            return self.first.propose(shared, q)
        if q == 1:
            return due[0].propose(shared, 1)
        return self._shared_batch([*due, self.first], shared, q)

    def _due(self, view: View, q: int) -> list[Strategy]:
        """The other strategies that propose now, at most one for a single point."""
        due: list[Strategy] = []
        applying = [number for number, each in enumerate(self.others) if each.applies(view)]
        had_turn = any(self._had_turn[number] for number in applying)
        for number in applying:
            each = self.others[number]
            self._had_turn[number] = q > 1 or not had_turn
            failure = f"{type(each).__name__} could not learn its rows, so it is skipped: %s"
            if self._had_turn[number] and view.agreed(partial(each.fit, view), failure):
                due.append(each)
                if q == 1:
                    break
        return due

    def _shared_batch(self, strategies: Sequence[Strategy], view: View, q: int) -> Proposal:
        """A batch with an equal share from each strategy; the first strategy is the last in the list."""
        parts = [view.observations.points[:0].cpu()]
        for number, each in enumerate(strategies):
            share = -(-(q - sum(map(len, parts))) // (len(strategies) - number))  # rounded up
            if share:
                parts.append(each.propose(view.beside(torch.cat(parts)), share).points)
        return Proposal(torch.cat(parts), self.first.classifier)

    def state_dict(self) -> dict[str, Any]:
        states = [each.state_dict() for each in (self.first, *self.others)]
        return {"strategies": states, "had_turn": list(self._had_turn)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for each, own in zip((self.first, *self.others), state["strategies"], strict=True):
            each.load_state_dict(own)
        self._had_turn = list(state["had_turn"])
