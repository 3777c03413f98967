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
    """A first strategy, and others that make some of the proposals where they apply.

    Each of the others is due at every k-th proposal for which it applies (`Strategy.applies`), k being its `every`. A
    single point is proposed by the one that has waited longest, by its k, if it is ready after training
    (`Strategy.fit`); never right after another one that applies, so at most every second point is by others, unless one
    is urgent (`Strategy.is_urgent`). All others are by the first strategy. A batch is divided equally among the first
    and all others that are due and ready, but none of these proposes more than a k-th of it; later shares avoid earlier
    points.

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
        self._waited = [each.every - 1 for each in self.others]  # points proposed since its turn while it applied

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
        applying = [number for number, each in enumerate(self.others) if each.applies(view)]
        is_resting = q == 1 and any(self._waited[number] == 0 for number in applying)
        urgent = [number for number in applying if q == 1 and self.others[number].is_urgent(view)]
        late = sorted(
            applying, key=lambda number: (number not in urgent, -self._waited[number] / self.others[number].every)
        )
        due: list[Strategy] = []
        for number in late:
            each = self.others[number]
            has_waited = self._waited[number] + q >= each.every and not is_resting
            is_due = (has_waited or number in urgent) and not (due and q == 1)
            self._waited[number] = 0 if is_due else self._waited[number] + q
            failure = f"{type(each).__name__} could not learn its rows, so it is skipped: %s"
            if is_due and view.agreed(partial(each.fit, view), failure):
                due.append(each)
        return sorted(due, key=self.others.index)

    def _shared_batch(self, strategies: Sequence[Strategy], view: View, q: int) -> Proposal:
        """A batch with a share from each strategy; the first strategy is the last in the list, and has the rest."""
        parts = [view.observations.points[:0].cpu()]
        for number, each in enumerate(strategies):
            left = q - sum(map(len, parts))
            share = left if each is self.first else min(-(-left // (len(strategies) - number)), -(-q // each.every))
            if share:
                parts.append(each.propose(view.beside(torch.cat(parts)), share).points)
        return Proposal(torch.cat(parts), self.first.classifier)

    def state_dict(self) -> dict[str, Any]:
        states = [each.state_dict() for each in (self.first, *self.others)]
        return {"strategies": states, "waited": list(self._waited)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a state. One of an earlier version may know fewer strategies: then the last ones begin anew."""
        if len(state["strategies"]) > 1 + len(self.others):
            raise ValueError(f"a state of {len(state['strategies'])} strategies does not fit {1 + len(self.others)}")
        for each, own in zip((self.first, *self.others), state["strategies"], strict=False):
            each.load_state_dict(own)
        if "waited" in state:
            waited = list(state["waited"])
        else:  # version 0.3: whether each was used for the latest point
            turns = zip(state["had_turn"], self.others, strict=False)
            waited = [0 if had_turn else each.every - 1 for had_turn, each in turns]
        self._waited[: len(waited)] = waited
