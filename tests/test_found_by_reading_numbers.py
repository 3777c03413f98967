"""Numbers at their edges: defects that attacking labels, heads and searches has found."""

import math

import numpy as np
import pytest
import torch

from deepbore import KernelPLS, Real, SearchSpace, Study, ValueGradedLabels
from deepbore.acquisition import LogExpectedImprovement
from deepbore.candidates import BoTorchBatch
from deepbore.candidates.botorch import feasible, in_points
from deepbore.classifiers import GPClassifier
from deepbore.data.observations import Observations
from deepbore.errors import SettingError
from deepbore.labels import ChebyshevLabels, ImprovementLabels, LabelledBatch, LabelledObservations
from deepbore.testing import fit
from test_found_by_reading import SQUARE

LINE = SearchSpace({"x": Real(0, 1)})
TENTHS = {"x": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}


def noisy_bowl(n, seed=0):
    """Columns and values."""
    generator = np.random.default_rng(seed)
    x, y = generator.uniform(size=(2, n))
    values = (x - 0.4) ** 2 + (y - 0.6) ** 2 + 0.3 * generator.standard_normal(n)
    return {"x": x.tolist(), "y": y.tolist()}, values.tolist()


def test_a_batch_of_botorch_under_noise_draws_from_its_own_stream():
    proposed = []
    for seed in (1, 2, 3):
        torch.manual_seed(seed)
        candidates = BoTorchBatch(samples=50, restarts=2, iterations=5)
        study = Study(SQUARE, seed=0, n_initial=5, classifier=KernelPLS(noisy=True), candidates=candidates)
        study.add(*noisy_bowl(40))
        before = torch.get_rng_state()
        proposed.append([trial.params for trial in study.ask(2)])
        assert torch.equal(torch.get_rng_state(), before)
    assert proposed[0] == proposed[1] == proposed[2]


@pytest.mark.slow
def test_the_heads_of_the_near_rows_learn_the_same_few_and_go_on_exactly(tmp_path):
    def valley(params):
        return (params["x"] - 0.3) ** 2 + 10 * (params["y"] - 0.6 * params["x"]) ** 2

    def go_on(study, n):
        for _ in range(n):
            (trial,) = study.ask()
            study.tell(trial, valley(trial.params))

    columns, _ = noisy_bowl(70)
    values = [valley({"x": x, "y": y}) for x, y in zip(*columns.values(), strict=True)]
    whole, part = (
        Study(SQUARE, seed=0, n_initial=5, classifier=KernelPLS(rows=50), journal=tmp_path / f"{name}.jsonl")
        for name in "ab"
    )
    for study in (whole, part):
        study.add(columns, values)
    go_on(whole, 8)
    go_on(part, 4)
    part.close()
    again = Study.load(tmp_path / "b.jsonl")
    go_on(again, 4)
    assert [trial.params for trial in again.trials] == [trial.params for trial in whole.trials]
    heads = whole._state.strategy.others[0]._models
    assert len(heads) == 3
    assert len({tuple(head._data[:, 0].tolist()) for head in heads}) == 1


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_an_inequality_is_the_same_in_any_unit(unit):
    space = SearchSpace({"x": Real(0, unit), "y": Real(0, unit)})
    points = space.sobol(256, seed=0)
    met = feasible(points, [in_points(space, ([0, 1], [1.0, 1.0], 1.2 * unit))])
    assert met.equal(points.sum(-1) >= 1.2)


def test_a_gp_takes_steps_enough_to_learn_its_hyperparameters():
    with pytest.raises(SettingError, match="steps"):
        GPClassifier(steps=5)
    observations = Observations(LINE)
    observations.add(TENTHS, [0.1, 0.4, 0.2, 0.6, 0.9, 0.7])
    one, other = (GPClassifier(steps=6).bind(LINE) for _ in range(2))
    fit(one, LabelledObservations(observations), epochs=3)
    assert not torch.equal(one.gp.theta, other.gp.theta)


def test_a_head_that_is_loaded_says_the_same_of_noisy_values():
    observations = Observations(SQUARE)
    observations.add(*noisy_bowl(40))
    head = fit(KernelPLS(noisy=True), LabelledObservations(observations), epochs=3)
    loaded = KernelPLS(noisy=True).bind(SQUARE)
    loaded.load_state_dict(head.state_dict())
    points = SQUARE.sobol(8, seed=1)
    one, other = (LogExpectedImprovement()(each.posterior(points), each.best_label) for each in (head, loaded))
    assert torch.allclose(one, other)


def test_a_row_whose_constraints_are_unknown_is_feasible_for_all_or_for_none():
    observations = Observations(LINE)
    observations.add({"x": [0.1, 0.2, 0.3]}, [3.0, 2.0, 1.0], constraints=[[-1.0], [-1.0], [2.0]])
    observations.add({"x": [0.5]}, [-5.0])
    batch = LabelledBatch.of(observations, ValueGradedLabels())
    assert batch.may_be_best.tolist() == observations.feasible.tolist() == [True, True, False, True]
    assert batch.z[batch.may_be_best].max() == batch.best


def test_gains_that_can_not_be_added_up_are_gains():
    observations = Observations(LINE)
    observations.add(TENTHS, [-1.2e308, -1e308, 0.0, 1e308, 1.2e308, 1.5e308])
    z = ImprovementLabels(0.5)(observations).z[:, 0]
    assert z.sort(descending=True).values.equal(z)
    assert z[0] > z[1] > 0


def test_trade_offs_between_values_as_far_apart_as_can_be_are_graded():
    values = [1e308, 1.2e308, -1e308, -1.2e308, 0.0, 1.5e308]
    far, near = (Observations(LINE, ["minimize"] * 2) for _ in range(2))
    far.add(TENTHS, [[value, -value] for value in values])
    near.add(TENTHS, [[value / 1e308, -value / 1e308] for value in values])
    labels = ChebyshevLabels()(far)
    assert torch.allclose(labels.z, ChebyshevLabels()(near).z)
    assert math.isfinite(labels.best)
    assert labels.z.max() > 0
