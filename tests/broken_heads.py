"""Heads and posteriors that each break one rule, and the words of the check that catches them."""

from dataclasses import replace

import torch

import deepbore
from deepbore import KernelPLS
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import GaussianPosterior, MembersPosterior, PointEstimate
from deepbore.testing import TOY_SPACES, classifiers


class StepsByItself(deepbore.MLPClassifier):
    """Steps an optimizer that no state knows of."""

    def __init__(self):
        super().__init__(training=deepbore.Training(steps=10))

    def configure_optimizers(self):
        made = torch.optim.SGD(self.parameters(), lr=0.1)
        made.step = lambda closure=None: (closure and closure(), self.hidden_step())
        return made

    def hidden_step(self):
        if not hasattr(self, "_own"):
            self._own = torch.optim.Adam(self.parameters(), lr=0.01)
        self._own.step()


MIXED, CONTINUOUS = TOY_SPACES["mixed"], TOY_SPACES["continuous"]


class Head(KernelPLS):
    """A sound head with one score a point, to be broken."""

    capabilities = frozenset()
    distance_aware = False

    def posterior(self, points):
        return PointEstimate(self.score(points, super().posterior(points).mean), self.link, "Head")

    def score(self, points, mean):
        return mean


class OfAnotherShape(Head):
    def score(self, points, mean):
        return mean[:, None]


class NeverReady(Head):
    def fit(self, batch):
        raise torch.linalg.LinAlgError("singular")


class OfAnotherLink(Head):
    def posterior(self, points):
        return PointEstimate(super().posterior(points).mean, Link.LOGIT, "Head")


class DependsOnTheOthers(Head):
    def score(self, points, mean):
        return mean - mean.mean()


class TakesAnyPoints(Head):
    def posterior(self, points):
        return super().posterior(torch.nn.functional.pad(points, (0, len(self.space) - points.shape[-1])))


class UpsideDown(Head):
    def score(self, points, mean):
        return -mean


class Unweighted(Head):
    def fit(self, batch):
        return super().fit(replace(batch, weight=torch.ones_like(batch.weight), pending=None))


class DrawsFromAll(Head):
    def fit(self, batch):
        torch.rand(1)
        return super().fit(batch)


class NeverTheSame(Head):
    made = 0

    def build(self, space, outputs):
        super().build(space, outputs)
        NeverTheSame.made += 1
        self.shift = 1e-3 * NeverTheSame.made

    def score(self, points, mean):
        return mean + self.shift


class Forgets(Head):
    fits = 0

    def fit(self, batch):
        self.fits += 1
        return super().fit(batch)

    def score(self, points, mean):
        return mean * self.fits


class Wavers(Head):
    """Has another taste after every fit, and forgets how many there were."""

    fits = 0

    def fit(self, batch):
        self.fits += 1
        return super().fit(batch)

    def score(self, points, mean):
        return mean + (7.0 * self.fits * points.sum(-1)).sin()


class ForgetsTheBest(Head):
    def build(self, space, outputs):
        super().build(space, outputs)
        self.register_buffer("best_label", torch.ones((), dtype=torch.float64), persistent=False)


class NeedsSpread(Head):
    spread = 1.0

    def fit(self, batch):
        self.spread = batch.points.double().std(0, correction=0).max()
        return super().fit(batch)

    def score(self, points, mean):
        return mean / self.spread


class NeedsFewParameters(Head):
    def score(self, points, mean):
        return mean * torch.tensor(1e3) ** len(self.space)


class OfAnotherSlope(Head):
    def score(self, points, mean):
        return mean + (points - points.detach()).sum(-1)


class Flat(Head):
    def score(self, points, mean):
        return mean.detach()


def shapes(make):
    classifiers.check_shapes(make(), MIXED)


def learning(make):
    classifiers.check_learning(make(), CONTINUOUS)


def weights(make):
    classifiers.check_weights(make())


def gradient(make):
    classifiers.check_gradient(make())


CLASSIFIERS = [
    (OfAnotherShape, shapes, r"the mean must have the shape \(7,\), but has \(7, 1\)"),
    (NeverReady, shapes, "a classifier must be ready"),
    (OfAnotherLink, shapes, "the link of its classifier, .*identity.*, but has .*logit"),
    (DependsOnTheOthers, shapes, "must not depend on the other points, but they are up to .* apart"),
    (TakesAnyPoints, shapes, "a column too few must raise ShapeError, but gave a PointEstimate"),
    (UpsideDown, learning, r"must be > 0.8, but is 0.0"),
    (Unweighted, weights, "beside rows of the weight 1e-6 with wrong labels the AUROC must be > 0.8, but is 0.[67]"),
    (DrawsFromAll, classifiers.check_same_seed, "global random numbers must stay untouched"),
    (NeverTheSame, classifiers.check_same_seed, "same seed and data must have equal scores, but they are up to 0.001"),
    (Forgets, classifiers.check_state_dict, "taken up the state dict of another must have its scores"),
    (ForgetsTheBest, classifiers.check_state_dict, "`best_label` must be in the state dict, but they are up to 0.5"),
    (StepsByItself, classifiers.check_learning_states, "must learn as that does, but they are up to"),
    (NeedsSpread, classifiers.check_degenerate_data, r"after equal points with the values .* must be finite"),
    (NeedsFewParameters, classifiers.check_wide_spaces, "points of 200 parameters must be finite, but 11 of 11"),
    (OfAnotherSlope, gradient, "the mean must change by gradient"),
    (Flat, gradient, "the mean must have a gradient"),
]


FORGETFUL = [({"classifier": Wavers}, "proposal . after the kill")]

# --- posteriors ------------------------------------------------------------------------------------------------------

N = 5
STD = frozenset({"std"})
MEMBERS = frozenset({"std", "members"})
ROOT = torch.randn(N, N, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
COVARIANCE = ROOT @ ROOT.mT + torch.eye(N)


class Joint(GaussianPosterior):
    """A sound posterior to be broken."""

    def __init__(self):
        super().__init__(torch.arange(N).double(), COVARIANCE.diagonal().sqrt(), Link.LOGIT)

    def covariance(self):
        return COVARIANCE


class SilentZero(PointEstimate):
    std = torch.zeros(N)


class NegativeDeviation(Joint):
    std = -COVARIANCE.diagonal().sqrt()


class LopSided(Joint):
    def covariance(self):
        return COVARIANCE + torch.ones(N, N).triu(1)


class OtherVariances(Joint):
    def covariance(self):
        return 2 * COVARIANCE


class Indefinite(Joint):
    def covariance(self):
        sign = 2 * torch.eye(N) - 1
        scale = COVARIANCE.diagonal().sqrt()
        return scale[:, None] * sign * scale


class SamplesAnew(Joint):
    def sample(self, count, generator):
        generator.seed()
        return super().sample(count, generator)


class ShiftedSamples(Joint):
    def sample(self, count, generator):
        return super().sample(count, generator) + 1


class IndependentSamples(Joint):
    def sample(self, count, generator):
        noise = torch.randn(count, N, dtype=torch.float64, generator=generator)
        return self.mean + noise * self.std


class BeyondOne(Joint):
    probability = torch.full((N,), 1.5)


class NotANumber(Joint):
    mean = torch.full((N,), torch.nan)


def silent_zero():
    return SilentZero(torch.zeros(N), Link.LOGIT, "Head")


def of_members():
    return MembersPosterior(ROOT, Link.LOGIT)


POSTERIORS = [
    (silent_zero, frozenset(), 'without "std" among the capabilities, std must raise SettingError, but gave a Tensor'),
    (NegativeDeviation, STD, "standard deviations must be >= 0, but the least is -"),
    (LopSided, STD, "must be symmetric"),
    (OtherVariances, STD, r"std\^2 on its diagonal"),
    (Indefinite, STD, "must be positive semidefinite, but has the eigenvalue -"),
    (SamplesAnew, STD, "equal generators must be equal"),
    (ShiftedSamples, STD, "the samples must have the posterior's mean"),
    (IndependentSamples, STD, "the samples must have the posterior's covariance"),
    (BeyondOne, STD, r"probabilities must be in \[0, 1\], but are in \[1.5, 1.5\]"),
    (NotANumber, STD, "the mean must be finite, but 5 of 5"),
    (Joint, MEMBERS, "the posterior's members are None"),
    (of_members, STD, 'members must be None, or "members" be among the capabilities'),
]
SOUND_POSTERIORS = [
    (Joint, STD),
    (of_members, MEMBERS),
    (lambda: PointEstimate(torch.zeros(N), Link.PROBIT, "Head"), frozenset()),
]


def check(make, capabilities):
    classifiers.check_posterior(make(), N, capabilities)
