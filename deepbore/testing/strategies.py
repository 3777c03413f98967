"""Checks of the contract of a strategy."""

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from deepbore.classifiers import Classifier, KernelPLS
from deepbore.errors import SpaceExhausted
from deepbore.space import Params, SearchSpace
from deepbore.strategies import ModelStrategy, Proposal, Strategy, Turns, View
from deepbore.study import Study
from deepbore.testing.require import require, require_raises, untouched_randomness
from deepbore.testing.study import check_resume, know_toys
from deepbore.testing.toys import TOY_SPACES, toy_objective

N_INITIAL = 6
ASKED = (1, 1, 4, 1)  # so many points a proposal, a batch among them


def check_strategy(make: Callable[[], Strategy], spaces: Sequence[str] = tuple(TOY_SPACES)) -> None:
    """Runs all checks of a strategy: its proposals, its state dict, and how a run with it is resumed.

    One without models of its own, as those that take turns with others, is checked in `Turns`, after
    `ModelStrategy(KernelPLS())`.

    Args:
        make: gives a new strategy.
        spaces: which of `TOY_SPACES`.

    Raises:
        AssertionError: with the rule that is broken, and the values.

    Example:
        >>> from deepbore import KernelPLS
        >>> check_strategy(lambda: ModelStrategy(KernelPLS()), spaces=["finite"])
    """
    check_models(make())
    for name in spaces:
        check_strategy_proposals(make, TOY_SPACES[name])
        check_resume(strategy=lambda: complete(make()), space=TOY_SPACES[name])
    if "finite" in spaces:
        check_strategy_exhaustion(make)


def complete(strategy: Strategy) -> Strategy:
    """A strategy that has a model: itself, or turns of a kernel and it."""
    return strategy if strategy.models else Turns([ModelStrategy(KernelPLS()), strategy])


def check_models(strategy: Strategy) -> None:
    """`models` gives the same classifiers whenever it is asked, each once."""
    models = strategy.models
    wrong = [type(each).__name__ for each in models if not isinstance(each, Classifier)]
    require(not wrong, f"`models` must be classifiers, but has {', '.join(wrong)}")
    again = strategy.models
    same = len(models) == len(again) and all(one is other for one, other in zip(models, again, strict=True))
    require(same, "`models` must give the same classifiers each time, but gives others")
    require(len(set(map(id, models))) == len(models), "`models` must name each classifier once")


def check_strategy_proposals(make: Callable[[], Strategy], space: SearchSpace) -> None:
    """Proposals are q distinct new configurations, by the stream of the run alone, and the same for the same seed."""
    where = f"in ({', '.join(space.names)})"
    with untouched_randomness():
        one, other = (_asked(Study(space, strategy=_Watched(make(), where), n_initial=N_INITIAL)) for _ in range(2))
    differ = next((f"{a} and {b}" for a, b in zip(one, other, strict=True) if a != b), None)
    require(differ is None, f"{where}, the same seed must give the same proposals, but gave {differ}")


def check_strategy_exhaustion(make: Callable[[], Strategy]) -> None:
    """A finite space is proposed to its last configuration, and then refused."""
    space = TOY_SPACES["finite"]
    study = Study(space, strategy=complete(make()), n_initial=N_INITIAL)
    points = space.points.enumerate()
    known, left = points[:-3], points[-3:]
    configurations = space.decode(known)
    columns = {name: [each[name] for each in configurations] for name in space.names}
    study.add(columns, toy_objective(space, known).tolist())
    found = [trial.params for trial in (*study.ask(1), *study.ask(2))]
    missed = [params for params in space.decode(left) if params not in found]
    require(not missed, f"the last configurations must be proposed, but {missed} were not")
    require_raises(SpaceExhausted, lambda: study.ask(1), "a proposal where no configuration is left")


class _Watched(Strategy):
    """Another strategy, each proposal of which is checked."""

    def __init__(self, strategy: Strategy, where: str):
        self.own, self.where = complete(strategy), where

    @property
    def models(self) -> tuple[Classifier, ...]:
        return self.own.models

    def fit(self, view: View) -> bool:
        return self.own.fit(view)

    def propose(self, view: View, q: int) -> Proposal:
        proposal = self.own.propose(view, q)
        points, space = proposal.points, view.space
        shape = tuple(points.shape)
        require(shape == (q, len(space)), f"{self.where}, {q} points must be proposed, but their shape is {shape}")
        count = len(set(space.points.identify(points)))
        require(count == q, f"{self.where}, {q} proposals must be {q} configurations, but are {count}")
        old = view.observations.columns.unseen(points).count(False)
        require(old == 0, f"{self.where}, proposals must be new, but {old} of {q} are evaluated or pending")
        apart = float((space.encode(space.decode(points)) - points).abs().max())
        require(apart <= 1e-9, f"{self.where}, proposals must be points of configurations (`space.snap`)")
        return proposal

    def state_dict(self) -> dict[str, Any]:
        state = self.own.state_dict()
        buffer = io.BytesIO()
        torch.save(state, buffer)
        buffer.seek(0)
        try:
            torch.load(buffer, weights_only=True)
        except Exception as error:
            raise AssertionError(f"a state dict must hold tensors and plain data only: {error}") from error
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.own.load_state_dict(state)


def _asked(study: Study) -> list[Params]:
    """The configurations that a study asks for, with earlier results and without."""
    know_toys(study)
    for q in ASKED:
        for trial in study.ask(q):
            study.tell(trial, float(toy_objective(study.space, study.space.encode([trial.params]))))
    return [trial.params for trial in study.trials]
