"""Several objectives: fronts, hypervolumes, labels, expected improvement of the hypervolume, and runs."""

import math

import numpy as np
import pytest
import torch
from botorch.acquisition.multi_objective.analytic import ExpectedHypervolumeImprovement
from botorch.models.deterministic import GenericDeterministicModel
from botorch.posteriors import GPyTorchPosterior
from botorch.utils.multi_objective.box_decompositions.non_dominated import FastNondominatedPartitioning
from botorch.utils.multi_objective.hypervolume import Hypervolume
from gpytorch.distributions import MultitaskMultivariateNormal
from hypothesis import given, settings, strategies as st

from deepbore import LogExpectedImprovement, Outcome, Real, SearchSpace, Study
from deepbore.acquisition import LogHypervolumeImprovement
from deepbore.classifiers import ColumnsPosterior, GaussianPosterior, Link
from deepbore.data.array_ranking import crowding, hypervolume, non_dominated
from deepbore.data.observations import Observations
from deepbore.errors import SettingError
from deepbore.labels import ChebyshevLabels, NonDominationLabels, ObjectiveLabels, front_rows
from deepbore.labels.objectives import simplex_point

PLANE = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})
BOTH = ("minimize", "maximize")
START = 0.2  # label of the reference
SMALL = [0, 1, 2, 3]
tables = st.integers(1, 4).flatmap(
    lambda k: st.lists(st.lists(st.sampled_from(SMALL), min_size=k, max_size=k), min_size=1, max_size=12)
)


def trade_off(params):
    """Small and large at once: y is waste, x trades one for the other on a concave front."""
    return [params["x"] + params["y"], 1 - params["x"] ** 2 - params["y"]]


def told(values, directions=("minimize", "minimize"), constraints=None):
    observations = Observations(PLANE, directions)
    points = PLANE.sample(len(values), torch.Generator().manual_seed(0))
    for index, (row, value) in enumerate(zip(observations.reserve(points), values, strict=True)):
        limits = () if constraints is None else [constraints[index]]
        observations.tell(row, Outcome(value, constraints=limits))
    return observations


def run(study, n):
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, trade_off(trial.params))
    return study


# --- fronts and volumes ----------------------------------------------------------------------------------------------


def beats(one, other):
    return all(a <= b for a, b in zip(one, other, strict=True)) and one != other


@given(tables)
def test_the_front_is_what_no_row_beats(rows):
    expected = [not any(beats(other, row) for other in rows) for row in rows]
    assert non_dominated(np.array(rows, dtype=float)).tolist() == expected


@given(tables)
def test_the_hypervolume_counts_the_cells_that_some_row_dominates(rows):
    k = len(rows[0])
    cells = np.stack(np.meshgrid(*[SMALL] * k, indexing="ij"), -1).reshape(-1, k)
    dominated = sum(any(all(a <= b for a, b in zip(row, cell, strict=True)) for row in rows) for cell in cells)
    assert hypervolume(np.array(rows, dtype=float), [4.0] * k) == dominated


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_hypervolume_is_that_of_botorch(k):
    values = torch.rand(40, k, generator=torch.Generator().manual_seed(k), dtype=torch.float64)
    reference = torch.full((k,), 0.9, dtype=torch.float64)
    inside = values[(values < reference).all(-1)]
    inside = inside[torch.from_numpy(non_dominated(inside.numpy()))]
    assert hypervolume(values.numpy(), reference.numpy()) == pytest.approx(Hypervolume(-reference).compute(-inside))


def test_the_ends_of_a_front_have_the_most_room():
    room = crowding(np.array([[0.0, 4.0], [1.0, 3.0], [2.0, 0.5], [4.0, 0.0]]))
    assert room[[0, 3]].tolist() == [math.inf] * 2
    assert room[1] == pytest.approx(2 / 4 + 3.5 / 4)
    assert room[2] == pytest.approx(3 / 4 + 3 / 4)


# --- expected improvement --------------------------------------------------------------------------------------------


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


# --- labels ----------------------------------------------------------------------------------------------------------


def test_the_best_labels_are_those_of_the_feasible_front():
    values = [[0.0, 4.0], [1.0, 1.0], [4.0, 0.0], [3.0, 3.0], [0.0, 0.0]]
    observations = told(values, constraints=[-1.0, -1.0, -1.0, -1.0, 1.0])
    assert front_rows(observations).tolist() == [0, 1, 2]
    labels = ObjectiveLabels(2)(observations)
    assert torch.equal(labels.best[1:].float(), labels.z[[0, 1, 2]])
    assert labels.constraints.shape == (5, 1)


def test_behind_a_front_of_one_trial_gains_begin_at_the_third_quartile():
    labels = ObjectiveLabels(2)(told([[0.0, 0.0], [1.0, 4.0], [2.0, 3.0], [3.0, 2.0], [4.0, 1.0]]))
    assert labels.best[0].float().tolist() == [labels.z[3, 0], labels.z[2, 1]]
    assert labels.best[1:].tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize("values", [[[2.0, 5.0]], [[2.0, 5.0]] * 4, [[2.0, 5.0]] * 9 + [[3.0, 9.0]]])
def test_where_most_trials_are_alike_gains_begin_below_their_label(values):
    best = ObjectiveLabels(2)(told(values)).best
    assert ((best[0] > 0) & (best[0] < 1)).all()
    assert (best[1:] == 1).all()


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


@pytest.mark.parametrize("reference", [[1.0], [1.0, 2.0, 3.0], 1.0, "ab", [1.0, math.nan], [1.0, "2"], []])
def test_a_reference_has_a_number_for_each_objective(reference):
    with pytest.raises(SettingError, match="reference must be 2 finite numbers"):
        ObjectiveLabels(2, reference)


@pytest.mark.slow
def test_what_is_worse_than_the_reference_is_not_looked_for(tmp_path):
    """Of the whole front x -> (x, 1 - x), a tenth is worth something."""
    path = tmp_path / "journal.jsonl"
    labels = ObjectiveLabels(2, reference=[0.55, 0.55])
    study = Study(PLANE, directions=["minimize"] * 2, labels=labels, journal=path, seed=0)
    for _ in range(25):
        (trial,) = study.ask()
        x, y = trial.params["x"], trial.params["y"]
        study.tell(trial, [x + y, 1 - x + y])
    late = [trial.params for trial in study.trials[12:]]
    assert sum(0.4 < params["x"] < 0.6 and params["y"] < 0.1 for params in late) >= 10
    study.close()
    assert Study.load(path).labels.reference == (0.55, 0.55)


@pytest.mark.slow
@given(st.floats(1e-3, 1e3), st.floats(-100, 100))
@settings(max_examples=20)
def test_the_units_of_an_objective_do_not_matter(scale, shift):
    values = np.random.default_rng(0).random((15, 2))
    moved = values * [1, scale] + [0, shift]
    for make in (lambda: ObjectiveLabels(2), ChebyshevLabels, NonDominationLabels):
        assert torch.allclose(make()(told(values.tolist())).z, make()(told(moved.tolist())).z, atol=1e-4)


def test_values_a_million_times_worse_leave_the_others_apart():
    x = np.linspace(0, 1, 20)
    one, other = np.where(x < 0.1, 1e6, x), 1 - x  # two of the first ten
    z = ObjectiveLabels(2)(told(np.stack([one, other], -1).tolist())).z[:, 0]
    assert z[1] == z.min() >= 0
    assert z[2:].max() - z[2:].min() > 0.3


def test_each_objective_keeps_its_order_and_direction():
    values = np.random.default_rng(1).random((20, 2))
    z = ObjectiveLabels(2)(told(values.tolist(), directions=BOTH)).z
    assert (z[:, 0].argsort(descending=True).numpy() == values[:, 0].argsort()).all()
    assert (z[:, 1].argsort().numpy() == values[:, 1].argsort()).all()


def test_chebyshev_weights_fill_the_simplex_and_change_with_each_row():
    points = torch.stack([simplex_point(n, 3) for n in range(512)])
    assert torch.allclose(points.sum(-1), torch.ones(512, dtype=torch.float64))
    assert torch.allclose(points.mean(0), torch.full((3,), 1 / 3, dtype=torch.float64), atol=0.01)
    assert (points >= 0).all()
    observations = told(np.random.default_rng(0).random((15, 2)).tolist())
    labels = ChebyshevLabels()
    once = labels(observations).z
    assert torch.equal(once, labels(observations).z)  # looking changes nothing
    observations.reserve(PLANE.sample(1, torch.Generator().manual_seed(3)))
    assert not torch.equal(once, labels(observations).z[:-1])


def test_of_trials_whose_worst_objective_is_alike_the_one_with_the_better_other_is_better():
    observations = told([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1], [0.1, 1.0]])
    for number in range(20):  # with each row the weights are others
        z = ChebyshevLabels()(observations).z[:, 0]
        assert z[0] > z[2]
        assert z[1] > z[3]
        observations.reserve(PLANE.sample(1, torch.Generator().manual_seed(number)))


def test_non_domination_labels_of_equal_trials_have_nothing_to_tell_apart():
    assert not NonDominationLabels()(told([[1.0, 2.0]] * 3)).separable
    assert NonDominationLabels()(told([[1.0, 2.0], [1.0, 2.0], [1.0, 3.0]])).separable
    assert NonDominationLabels()(told([[1.0, 2.0], [math.nan, math.nan]])).separable


def test_non_domination_labels_peel_front_after_front():
    z = NonDominationLabels(gamma=1.0)(told([[0, 2], [1, 1], [2, 0], [2, 2], [3, 3]])).z[:, 0]
    assert z[:3].min() > z[3] > z[4]
    assert z[1] < z[0]  # it has less room than the ends
