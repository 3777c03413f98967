"""Parts that each break one rule, and the words of the check that catches them: (toy, check, words)."""

import itertools
from dataclasses import replace

import torch

from deepbore import KernelPLS, RandomSearch, ThresholdLabels, UpperConfidenceBound
from deepbore.labels import Labelling, Labels
from deepbore.labels.base import lighten_pending
from deepbore.testing import TOY_SPACES, acquisition, candidates, labels
from deepbore.testing.toys import toy_outcomes
from deepbore.validation import whole

# --- labels ----------------------------------------------------------------------------------------------------------


class Changed(ThresholdLabels):
    """Sound labels, of which `change` spoils something."""

    def __call__(self, observations):
        return self.change(super().__call__(observations), observations)

    def change(self, given, observations):
        return given


def changed(name, **fields):
    """Labels with other fields, each worked out from the sound labels."""

    def change(self, given, observations):
        return replace(given, **{key: make(given) for key, make in fields.items()})

    return type(name, (Changed,), {"change": change})


class OneColumnLess(Changed):
    outputs = 2


class ByUserValues(Labelling):
    """Takes the user's values, whatever the direction."""

    def __call__(self, observations):
        values = observations.columns.user_values[:, 0]
        z = torch.nan_to_num((values <= values.nanmedian()).float())
        return Labels(z[:, None], lighten_pending(torch.ones_like(z), observations))


class HeavyPending(Changed):
    def change(self, given, observations):
        return replace(given, weight=torch.ones_like(given.weight))


class PraisesFailures(Changed):
    def change(self, given, observations):
        return replace(given, z=torch.where(observations.values.isnan(), 1.0, given.z))


class Remembers(Changed):
    """Halves the weights of the second call, and has no state dict."""

    calls = 0

    def change(self, given, observations):
        self.calls += 1
        return replace(given, weight=given.weight / self.calls)


class Feasible(Changed):
    def change(self, given, observations):
        return replace(given, z=given.z * observations.feasible[:, None])


class IgnoresConstraints(Changed):
    def change(self, given, observations):
        values = observations.values[:, 0]
        return replace(given, z=(values <= values.nanmedian()).float()[:, None], constraints=None)


def shapes(make):
    labels.check_label_shapes(make(), toy_outcomes())


def order(make):
    labels.check_label_order(make(), toy_outcomes())


def valueless(make):
    labels.check_rows_without_value(make(), toy_outcomes())


def infeasible(make):
    labels.check_rows_without_value(make(), toy_outcomes(constraints=1))


def direction(make):
    labels.check_direction(make, 1, 0)


def nothing(make):
    labels.check_nothing_to_label(make(), 1)


def memory(make):
    labels.check_label_state(make, 1, 0)


LABELS = [
    (changed("OneDimensional", z=lambda given: given.z[:, 0]), shapes, r"z must have the shape \(42, 1\)"),
    (OneColumnLess, shapes, r"z must have the shape \(42, 2\), but has \(42, 1\)"),
    (changed("BeyondOne", z=lambda given: 2 * given.z), shapes, r"labels must be in \[0, 1\], but are in \[0, 2\]"),
    (changed("Weightless", weight=lambda given: 0 * given.weight), shapes, "weights must be > 0, but the least is 0"),
    (changed("NoBest", best=lambda given: 0.0), shapes, r"the best label must be in \(0, 1\], but is 0.0"),
    (changed("Inseparable", separable=lambda given: False), shapes, "must be separable, but are said not to be"),
    (changed("Measures", metrics=lambda given: {"tau": torch.ones(())}), shapes, "metrics must be floats, but tau is"),
    (changed("UpsideDown", z=lambda given: 1 - given.z), order, r"has the label \[0.0\] and .* has \[1.0\]"),
    (changed("AllBad", z=lambda given: 0 * given.z), order, "above 0, but all labels are 0"),
    (PraisesFailures, valueless, "a failed row must have the label 0, but one has 1"),
    (HeavyPending, valueless, "pending rows must weigh next to nothing .* but one weighs 1 of 1"),
    (IgnoresConstraints, infeasible, "an infeasible row must have the label 0, but one has 1"),
    (ByUserValues, direction, "minimised whatever the direction, but they are up to 1"),
    (changed("AlwaysSeparable", separable=lambda given: True), nothing, "no rows must not be separable"),
    (Remembers, memory, "go on as that one does: weights must be equal"),
]

# --- acquisitions ----------------------------------------------------------------------------------------------------


class Sound(UpperConfidenceBound):
    def __init__(self):
        super().__init__(kappa=1.0)


class DividesByDeviation(Sound):
    def __call__(self, posterior, best):
        return (posterior.mean - best) / posterior.std


class Relative(Sound):
    def __call__(self, posterior, best):
        values = super().__call__(posterior, best)
        return values - values.max()


class LowerIsBetter(Sound):
    def __call__(self, posterior, best):
        return -posterior.mean


class SaysNothing(Sound):
    needs = frozenset()


class OneTooFew(Sound):
    def __call__(self, posterior, best):
        return super().__call__(posterior, best)[1:]


class OneDensity(Sound):
    def log_density(self, posterior, best):
        return super().log_density(posterior, best).sum()


class Detached(Sound):
    def __call__(self, posterior, best):
        return super().__call__(posterior, best).detach()


def gradient(make):
    acquisition.check_value_gradient(make(), KernelPLS())


def needs(make):
    acquisition.check_declared_needs(make())


ACQUISITIONS = [
    (DividesByDeviation, needs, "values .* must be finite, but 1 of 9"),
    (Relative, needs, "must not depend on the other points"),
    (LowerIsBetter, needs, "a higher mean must not lower the value, but 0.5 more lowers one by 0.5"),
    (SaysNothing, needs, "nothing but their mean, `check` lets it through, but the call raises"),
    (OneTooFew, needs, r"must have the shape \(9,\), but has \(8,\)"),
    (OneDensity, needs, "log_density .* must have the shape"),
    (Detached, gradient, "values must have gradients"),
]

# --- candidates ------------------------------------------------------------------------------------------------------


class Proposes(RandomSearch):
    """A sound search, whose proposals `change` spoils."""

    def __init__(self):
        super().__init__(samples=300)

    def propose(self, search, q):
        return self.change(super().propose(search, q), search)

    def change(self, points, search):
        return points


class AllTheSame(Proposes):
    def change(self, points, search):
        return points[:1].expand(len(points), -1)


class AlreadySeen(Proposes):
    def change(self, points, search):
        return search.observations.points[: len(points)]


class BetweenLevels(Proposes):
    def change(self, points, search):
        return (points + 0.01).clamp(max=1.0)


class TheWorst(Proposes):
    def ranked(self, search, q):
        return super().ranked(search, q).flip(0)


class GlobalDraws(Proposes):
    def change(self, points, search):
        return points[torch.randperm(len(points))]


class ItsOwnDraws(Proposes):
    """Has an order of its own each time; two that were drawn could be equal by chance."""

    orders = itertools.count(1)

    def change(self, points, search):
        return points.roll(next(self.orders), 0)


class Moves(Proposes):
    """Looks elsewhere each time, and has no state dict."""

    asked = 0

    def ranked(self, search, q):
        self.asked += 1
        torch.rand(self.asked, generator=search.generator)
        return super().ranked(search, q)


class NeverExhausted(Proposes):
    def propose(self, search, q):
        return super().propose(search, int(min(q, search.observations.columns.n_left)))


class DrawsBeforeRefusal(Proposes):
    def propose(self, search, q):
        torch.rand(1, generator=search.generator)
        return super().propose(search, q)


class Refuses(Proposes):
    def check(self, space, classifier):
        whole(1, dimensions=0)


def proposals(make):
    candidates.check_proposals(make(), KernelPLS(), TOY_SPACES["finite"])


def on_mixed(make):
    candidates.check_proposals(make(), KernelPLS(), TOY_SPACES["mixed"])


def anywhere(make):
    candidates.check_candidates(make(), KernelPLS)


def exhaustion(make):
    candidates.check_exhaustion(make(), KernelPLS())


CANDIDATES = [
    (AllTheSame, proposals, "5 proposals must be 5 configurations, but are 1"),
    (AlreadySeen, proposals, "proposals must be new, but 5 of 5"),
    (BetweenLevels, on_mixed, "points of configurations"),
    (TheWorst, proposals, "proposals must be better than random ones"),
    (GlobalDraws, proposals, "must give the same proposals|global random numbers must stay untouched"),
    (ItsOwnDraws, proposals, "the same seed must give the same proposals"),
    (Moves, on_mixed, "taken up the state dict of another must propose what that one does"),
    (NeverExhausted, exhaustion, "three proposals where two are left must raise SpaceExhausted, but gave a Tensor"),
    (DrawsBeforeRefusal, exhaustion, "must leave the generator as it was"),
    (Refuses, anywhere, "at least one of the toy spaces"),
]

CASES = [*LABELS, *ACQUISITIONS, *CANDIDATES]
SOUND = [
    *((Changed, check) for check in (shapes, order, valueless, direction, nothing, memory)),
    (Feasible, infeasible),
    *((Sound, check) for check in (needs, gradient)),
    *((Proposes, check) for check in (proposals, on_mixed, exhaustion, anywhere)),
]
FORGETFUL = [({"labels": Remembers}, "proposal . after the kill"), ({"candidates": Moves}, "proposal 1 after the kill")]
