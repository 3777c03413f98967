"""Strategies that each break one rule, and the words of the check that catches them."""

import torch

from deepbore import DeepEnsemble, KernelPLS, LocalSearch, RandomForest, Training
from deepbore.candidates import EpsilonGreedy
from deepbore.strategies import ModelStrategy, NearBest, OtherBranches, Proposal, Turns
from deepbore.testing import TOY_SPACES, strategies


class Sound(ModelStrategy):
    """A sound strategy, whose proposals `change` spoils."""

    def __init__(self):
        super().__init__(KernelPLS(additive=False), candidates=LocalSearch(samples=100, climbers=0))

    def propose(self, view, q):
        return Proposal(self.change(super().propose(view, q).points, view), self.classifier)

    def change(self, points, view):
        return points


class NewModels(Sound):
    @property
    def models(self):
        return (KernelPLS(),)


class NoClassifier(Sound):
    @property
    def models(self):
        return (self.classifier, "a model")


class ModelTwice(Sound):
    @property
    def models(self):
        return (self.classifier, self.classifier)


class TooMany(Sound):
    def change(self, points, view):
        return torch.cat([points, points])


class Repeated(Sound):
    def change(self, points, view):
        return points[:1].expand(len(points), -1)


class SeenBefore(Sound):
    def change(self, points, view):
        return view.observations.points[: len(points)]


class Unsnapped(Sound):
    def change(self, points, view):
        return (points + 1e-3).clamp(max=1)


class AnyStream(Sound):
    def change(self, points, view):
        return view.space.points.snap(torch.rand(points.shape, dtype=points.dtype))


class StreamOfItsOwn(Sound):
    def change(self, points, view):
        stream = torch.Generator()
        stream.seed()
        return view.space.points.sample(len(points), stream)


class NoPlainState(Sound):
    def state_dict(self):
        return {**super().state_dict(), "strategy": self}


class AtTheBestAlone(Sound):
    """Proposes the best points again where few others are left."""

    def change(self, points, view):
        return points if view.observations.columns.n_left > 10 else view.observations.points[: len(points)]


def models(make):
    strategies.check_models(make())


def proposals(make):
    strategies.check_strategy_proposals(make, TOY_SPACES["continuous"])


def on_mixed(make):
    strategies.check_strategy_proposals(make, TOY_SPACES["mixed"])


def exhaustion(make):
    strategies.check_strategy_exhaustion(make)


CASES = [
    (NewModels, models, "the same classifiers each time"),
    (NoClassifier, models, "must be classifiers, but has str"),
    (ModelTwice, models, "must name each classifier once"),
    (TooMany, proposals, "1 points must be proposed, but their shape is"),
    (Repeated, proposals, "4 proposals must be 4 configurations, but are 1"),
    (SeenBefore, proposals, "proposals must be new, but 1 of 1"),
    (Unsnapped, on_mixed, "points of configurations"),
    (AnyStream, proposals, "global random numbers must stay untouched|must give the same proposals"),
    (StreamOfItsOwn, proposals, "the same seed must give the same proposals"),
    (NoPlainState, proposals, "a state dict must hold tensors and plain data only"),
    (AtTheBestAlone, exhaustion, "the last configurations must be proposed, but"),
]
SOUND = [(Sound, check) for check in (models, proposals, on_mixed, exhaustion)]


# --- each line of state, forgotten -----------------------------------------------------------------------------------


def forgets(key, make):
    """A strategy whose state dict has an entry as a new one has it, or lacks it, wherever it stands."""

    def forgetful(state, new):
        if isinstance(state, list) and isinstance(new, list) and len(state) == len(new):
            return [forgetful(each, other) for each, other in zip(state, new, strict=True)]
        if not isinstance(state, dict) or not isinstance(new, dict):
            return state
        kept = {name: forgetful(each, new.get(name, {})) for name, each in state.items() if name != key}
        return kept | ({key: new[key]} if key in state and key in new else {})

    strategy, new = make(), make().state_dict()
    original = strategy.state_dict
    strategy.state_dict = lambda: forgetful(original(), new)
    return strategy


def near_best():
    return Turns([ModelStrategy(KernelPLS()), NearBest()])


def other_branches():
    return Turns([ModelStrategy(KernelPLS()), OtherBranches()])


def two_models():
    return Turns([ModelStrategy(KernelPLS()), ModelStrategy(RandomForest(trees=5))])


def network():
    return ModelStrategy(DeepEnsemble(members=2, training=Training(steps=10)))


class Alternates(LocalSearch):
    """A search that remembers how often it was asked."""

    def __init__(self):
        super().__init__(samples=200, climbers=0)
        self.asked = 0

    def ranked(self, search, q):
        self.asked += 1
        ranked = super().ranked(search, q)
        return ranked[self.asked % 2 :]

    def state_dict(self):
        return {"asked": self.asked}

    def load_state_dict(self, state):
        self.asked = state.get("asked", 0)


def remembering_search():
    return ModelStrategy(KernelPLS(), candidates=EpsilonGreedy(Alternates(), epsilon=0))


FORGETFUL = [  # what is forgotten, by which strategy, in which space
    ("weights", lambda: ModelStrategy(KernelPLS()), "continuous"),
    ("optimizers", network, "continuous"),
    ("candidates", remembering_search, "continuous"),
    ("waited", near_best, "continuous"),
    ("strategies", near_best, "continuous"),
    ("thetas", near_best, "continuous"),
    ("steepness", near_best, "continuous"),
    ("waited", other_branches, "mixed"),
    ("theta", other_branches, "mixed"),
    ("waited", two_models, "mixed"),
]
