"""Expected improvement of the hypervolume against BoTorch's, brute force and limits."""

import pytest
import torch
from botorch.acquisition.multi_objective.analytic import ExpectedHypervolumeImprovement
from botorch.models.deterministic import GenericDeterministicModel
from botorch.posteriors import GPyTorchPosterior
from botorch.utils.multi_objective.box_decompositions.non_dominated import FastNondominatedPartitioning
from gpytorch.distributions import MultitaskMultivariateNormal

from deepbore import LogExpectedImprovement, Study
from deepbore.acquisition import LogHypervolumeImprovement
from deepbore.acquisition.hypervolume import over_thresholds
from deepbore.acquisition.improvement import log_improvement
from deepbore.classifiers import ColumnsPosterior, GaussianPosterior, Link
from deepbore.data.array_ranking import hypervolume, non_dominated
from deepbore.data.observations import Observations
from deepbore.labels import ImprovementLabels, ObjectiveLabels
from plane import LINE, SQUARE
from trading_off import BOTH, told

START = 0.2  # label of the reference


class Independent(GaussianPosterior):
    """A Gaussian without covariances."""

    def covariance(self):
        return self.std.square().diag()


def columns(mean, std):
    return ColumnsPosterior(
        [Independent(m, s, Link.IDENTITY) for m, s in zip(mean.mT, std.mT, strict=True)], Link.IDENTITY
    )


def some(k, front_size=6):
    generator = torch.Generator().manual_seed(k)
    mean = torch.rand(20, k, generator=generator, dtype=torch.float64)
    std = 0.05 + 0.3 * torch.rand(20, k, generator=generator, dtype=torch.float64)
    front = 0.4 + 0.5 * torch.rand(front_size, k, generator=generator, dtype=torch.float64)
    front = front[torch.from_numpy(non_dominated(-front.numpy()))]
    return mean, std, torch.cat([torch.full((1, k), START, dtype=torch.float64), front])


@pytest.mark.parametrize("k", [2, 3])
def test_the_expected_improvement_is_that_of_botorch(k):
    mean, std, front = some(k)

    class Model(GenericDeterministicModel):
        def posterior(self, X, **_):
            row = int(X.flatten()[0])
            covariance = torch.diag(std[row].square())
            return GPyTorchPosterior(MultitaskMultivariateNormal(mean[row][None], covariance))

    theirs = ExpectedHypervolumeImprovement(
        Model(lambda X: X), front[0], FastNondominatedPartitioning(front[0], front[1:])
    )
    rows = torch.arange(20, dtype=torch.float64).view(20, 1, 1, 1)
    expected = torch.stack([theirs(row).reshape(()) for row in rows])
    assert torch.allclose(LogHypervolumeImprovement()(columns(mean, std), front).exp(), expected, rtol=1e-6)


def test_of_four_objectives_it_is_an_average_over_thresholds():
    _, std, known = some(4)
    mean = 0.75 + 0.5 * torch.rand(20, 4, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    found = LogHypervolumeImprovement()(columns(mean.clamp(max=known[1:].max(0).values), 1e-3 * std), known).exp()
    before = hypervolume(-known[1:].numpy(), [-START] * 4)
    for row in range(20):
        reached = mean[row].clamp(max=known[1:].max(0).values)
        gain = hypervolume(-torch.cat([known[1:], reached[None]]).numpy(), [-START] * 4) - before
        assert float(found[row]) == pytest.approx(gain, rel=0.1, abs=2e-3)


def test_of_one_column_it_is_expected_improvement():
    mean, std, front = some(1)
    best = front.max()
    posterior = columns(mean, std)
    found = LogHypervolumeImprovement()(posterior, front)
    assert torch.allclose(found, LogExpectedImprovement()(posterior.columns[0], best))


@pytest.mark.parametrize("k", [2, 4])
def test_improvement_is_over_the_front_of_now_however_often_it_is_asked(k):
    mean, std, front = some(k)
    posterior, asked_before = columns(mean, std), LogHypervolumeImprovement()
    grown = torch.cat([front, torch.full((1, k), 0.95, dtype=torch.float64)])
    values = [asked_before(posterior, known) for known in (front, grown, front + 0.1, front)]
    for known, value in zip((front, grown, front + 0.1), values, strict=False):
        assert torch.equal(value, LogHypervolumeImprovement()(posterior, known))
    assert torch.equal(values[3], values[0])
    assert (values[1] < values[0]).all()


def test_hopeless_points_have_gradients():
    mean, std, front = some(2)
    mean = (mean - 20).requires_grad_(True)
    value = LogHypervolumeImprovement()(columns(mean, std), front)
    (gradient,) = torch.autograd.grad(value.sum(), mean)
    assert value.isfinite().all()
    assert (gradient > 0).all()


def test_behind_a_front_of_one_trial_gains_begin_at_the_third_quartile():
    labels = ObjectiveLabels(2)(told([[0.0, 0.0], [1.0, 4.0], [2.0, 3.0], [3.0, 2.0], [4.0, 1.0]]))
    assert labels.best[0].float().tolist() == [labels.z[3, 0], labels.z[2, 1]]
    assert labels.best[1:].tolist() == [[1.0, 1.0]]


def test_a_reference_that_is_known_is_where_gains_begin():
    values = [[0.0, 4.0], [1.0, 1.0], [4.0, 0.0], [3.0, 3.0], [2.5, 3.5]]
    for directions, signs in ((("minimize", "minimize"), (1, 1)), (BOTH, (1, -1))):
        given = [[signs[0] * one, signs[1] * other] for one, other in values]
        reference = [signs[0] * 2.5, signs[1] * 3.5]
        labels = ObjectiveLabels(2, reference)(told(given, directions=directions))
        free = ObjectiveLabels(2)(told(given, directions=directions))
        assert torch.allclose(labels.best[0].float(), labels.z[4])
        assert torch.equal(labels.z, free.z)
        assert torch.equal(labels.best[1:], free.best[1:])


@pytest.mark.slow
def test_what_is_worse_than_the_reference_is_not_looked_for(tmp_path):
    """Of the whole front x -> (x, 1 - x), a tenth is worth something."""
    path = tmp_path / "journal.jsonl"
    labels = ObjectiveLabels(2, reference=[0.55, 0.55])
    study = Study(SQUARE, directions=["minimize"] * 2, labels=labels, journal=path, seed=0)
    for _ in range(25):
        (trial,) = study.ask()
        x, y = trial.params["x"], trial.params["y"]
        study.tell(trial, [x + y, 1 - x + y])
    late = [trial.params for trial in study.trials[12:]]
    assert sum(0.4 < params["x"] < 0.6 and params["y"] < 0.1 for params in late) >= 10
    study.close()
    assert Study.load(path).state.recipe.labels.reference == (0.55, 0.55)


class Certain(GaussianPosterior):
    def covariance(self):
        return self.std.square().diag()


def front_of_five():
    observations = Observations(LINE, directions=("minimize",) * 2)
    values = [[10.0, 50.0], [12.0, 40.0], [14.0, 30.0], [16.0, 20.0], [20.0, 18.0]]
    observations.add({"x": [0.1, 0.2, 0.3, 0.4, 0.5]}, values)
    return observations


# regression: each of these was wrong once
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


TENTHS = {"x": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}


def test_gains_that_can_not_be_added_up_are_gains():
    observations = Observations(LINE)
    observations.add(TENTHS, [-1.2e308, -1e308, 0.0, 1e308, 1.2e308, 1.5e308])
    z = ImprovementLabels(0.5)(observations).z[:, 0]
    assert z.sort(descending=True).values.equal(z)
    assert z[0] > z[1] > 0
