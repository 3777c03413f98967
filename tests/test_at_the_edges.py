"""Numbers where formulas meet their ends: probabilities of 0 and 1, references beyond the front, first levels."""

import pytest
import torch

from deepbore import (
    DeepEnsemble,
    Integer,
    MCDropout,
    MLPClassifier,
    Ordinal,
    Real,
    SearchSpace,
    SVGDCandidates,
    ValueGradedLabels,
)
from deepbore.acquisition import ClassProbability, LogHypervolumeImprovement
from deepbore.acquisition.hypervolume import over_thresholds
from deepbore.acquisition.improvement import log_improvement
from deepbore.candidates import Search
from deepbore.classifiers import ColumnsPosterior, GaussianPosterior, Link
from deepbore.classifiers.posterior import PointEstimate
from deepbore.data.observations import Observations
from deepbore.labels import ObjectiveLabels

LINE = SearchSpace({"x": Real(0, 1)})


# --- the mean of several columns -------------------------------------------------------------------------------------


@pytest.mark.parametrize("head", [MLPClassifier(), DeepEnsemble(members=3), MCDropout()])
@pytest.mark.parametrize("biases", [(-40.0, -41.0, -42.0), (40.0, 41.0, 42.0), (-2.0, 0.0, 1.0)])
def test_the_score_of_several_columns_is_the_logit_of_their_mean_however_sure_they_are(head, biases):
    head.bind(LINE, outputs=3)
    with torch.no_grad():
        head.net.layers[-1].weight.zero_()
        head.net.layers[-1].bias.copy_(torch.tensor(biases).expand_as(head.net.layers[-1].bias))
    mean = torch.tensor(biases, dtype=torch.float64).sigmoid().mean()
    other = torch.tensor(biases, dtype=torch.float64).neg().sigmoid().mean()  # 1 - mean, to all its digits
    scores = head.posterior(torch.tensor([[0.2], [0.7]], dtype=torch.float64)).mean
    assert scores.tolist() == pytest.approx([float(mean.log() - other.log())] * 2, rel=1e-5)


def test_a_sure_head_of_several_columns_still_has_a_gradient():
    head = MLPClassifier().bind(LINE, outputs=3)
    with torch.no_grad():
        head.net.layers[-1].weight.mul_(100)
        head.net.layers[-1].bias.fill_(-60)
    points = torch.tensor([[0.2], [0.7]], dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(head.posterior(points).mean.sum(), points)
    assert bool((gradient != 0).all())


# --- several objectives ----------------------------------------------------------------------------------------------


class Certain(GaussianPosterior):
    def covariance(self):
        return self.std.square().diag()


def front_of_five():
    observations = Observations(LINE, directions=("minimize",) * 2)
    values = [[10.0, 50.0], [12.0, 40.0], [14.0, 30.0], [16.0, 20.0], [20.0, 18.0]]
    observations.add({"x": [0.1, 0.2, 0.3, 0.4, 0.5]}, values)
    return observations


def test_nothing_is_gained_by_what_is_worse_than_a_reference_beyond_the_front():
    labels = ObjectiveLabels(2, reference=[5.0, 10.0])(front_of_five())
    z = labels.z.double()

    def gain(first, second):
        """Of a certain point: labels are linear in the values, so those of two rows tell that of any other."""
        mean = (z[0, 0] + (first - 10) * (z[1, 0] - z[0, 0]) / 2, z[4, 1] + (second - 18) * (z[3, 1] - z[4, 1]) / 2)
        columns = [Certain(each[None], torch.full((1,), 1e-9), Link.IDENTITY) for each in mean]
        return float(LogHypervolumeImprovement()(ColumnsPosterior(columns, Link.IDENTITY), labels.best).exp())

    assert labels.best[0].min() > 1
    assert gain(7.0, 13.0) < 1e-6
    assert gain(4.0, 9.0) > 1e-4


@pytest.mark.parametrize("k", [4, 5, 6])
def test_of_many_objectives_whose_front_is_behind_the_reference_the_gain_is_the_product_of_gains(k):
    generator = torch.Generator().manual_seed(0)
    reference = torch.full((k,), 0.5, dtype=torch.float64)
    front = 0.45 * torch.rand(6, k, generator=generator, dtype=torch.float64)
    mean = torch.tensor([[0.55] * k, [0.7] * k, [0.9] * k], dtype=torch.float64)
    std = torch.full((3, k), 0.1, dtype=torch.float64)
    exact = log_improvement(mean, std, 0.5).sum(-1)
    assert over_thresholds(reference, front)(mean, std).tolist() == pytest.approx(exact.tolist(), rel=1e-6)


# --- noise that was told ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1e-34, 1e-20, 1e200])
def test_what_a_noisy_value_is_worth_does_not_depend_on_the_unit(unit):
    noise = [3.0, 0.0, 2.0, 0.5, 1.0]

    def weights(unit):
        observations = Observations(LINE)
        values, deviations = [unit * y for y in (3, 1, 2, 5, 4)], [unit * s for s in noise]
        observations.add({"x": [0.1, 0.3, 0.5, 0.7, 0.9]}, values, noise=deviations)
        return ValueGradedLabels()(observations).weight.tolist()

    assert weights(unit) == pytest.approx(weights(1.0), rel=1e-6)


# --- Metropolis steps ------------------------------------------------------------------------------------------------


class Level(MLPClassifier):
    """Scores are the logarithm of how much a level counts."""

    def __init__(self, parameter, counts):
        super().__init__()
        self.parameter, self.counts = parameter, torch.tensor(counts, dtype=torch.float64)

    def posterior(self, points):
        score = self.counts[self.parameter.to_level(points[:, 0]).long()].log()
        return PointEstimate(score, Link.LOGIT, "Level")


class Density(ClassProbability):
    def log_density(self, posterior, best):
        return posterior.mean


@pytest.mark.parametrize("parameter", [Ordinal([1, 2, 4]), Integer(1, 5), Real(0, 1, step=0.5), Ordinal([1, 2])])
def test_particles_on_levels_settle_as_their_density_says(parameter):
    space = SearchSpace({"level": parameter})
    counts = [1.0, 1.0, 2.0, 1.0, 1.0][: parameter.levels]
    head = Level(parameter, counts).bind(space)
    search = Search(Density(), head, Observations(space), torch.Generator().manual_seed(0))
    settled = SVGDCandidates(sweeps=40)._metropolis(search, space.sample(20_000, search.generator))
    shares = torch.bincount(parameter.to_level(settled[:, 0]).long(), minlength=parameter.levels) / len(settled)
    assert shares.tolist() == pytest.approx([count / sum(counts) for count in counts], abs=0.015)
