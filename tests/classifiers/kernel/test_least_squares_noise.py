"""`KernelPLS(noisy=True)`: improvement over what the labels may be without their noise."""

import random

import numpy as np
import pytest
import torch
from botorch.acquisition.logei import qLogExpectedImprovement, qLogNoisyExpectedImprovement
from scipy.stats import norm

import deepbore as db
from deepbore import KernelPLS
from deepbore.acquisition import LogExpectedImprovement
from deepbore.acquisition.botorch import joint_acquisition
from deepbore.candidates import Search
from deepbore.classifiers.kernel.kernels import matern52
from deepbore.classifiers.kernel.posterior import noiseless_scenarios
from deepbore.data.observations import Observations
from deepbore.labels import LabelledObservations
from deepbore.testing import fit
from plane import SQUARE
from tried import noisy_bowl


def noisy_study(n=30, sd=0.3, **settings):
    noise = random.Random(0)
    settings = {"classifier": db.KernelPLS(noisy=True), "seed": 0} | settings
    study = db.Study(db.SearchSpace({"x": db.Real(0, 1), "y": db.Real(0, 1)}), **settings)
    while len(study.trials) < n:
        (trial,) = study.ask()
        study.tell(trial, (trial.params["x"] - 0.3) ** 2 + trial.params["y"] + noise.gauss(0, sd))
    return study


def learned(*given, **settings):
    study = noisy_study(*given, **settings)
    study.fit()
    return study


@pytest.mark.slow
def test_scenarios_without_noise_average_to_the_posterior():
    study = learned()
    posterior = study.classifier.posterior(study.space.points.sobol(50, seed=1))
    scenarios = posterior.noiseless
    torch.testing.assert_close(scenarios.mean.mean(-1), posterior.mean, rtol=0, atol=1e-4)
    total = scenarios.std.square() + scenarios.mean.var(-1, correction=0)
    torch.testing.assert_close(total.mean(), posterior.std.square().mean(), rtol=0.25, atol=0)


@pytest.mark.slow
def test_improvement_is_the_mean_over_the_scenarios():
    study = learned()
    points = study.space.points.sobol(20, seed=1)
    s = study.classifier.posterior(points).noiseless
    over = s.mean - s.shift - float(study.classifier.best_label)
    u = (over / s.std[:, None]).numpy()
    expected = (s.std[:, None].numpy() * (norm.pdf(u) + u * norm.cdf(u))).mean(-1)
    found = LogExpectedImprovement()(study.classifier.posterior(points), study.classifier.best_label).exp()
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


@pytest.mark.slow
def test_where_it_was_looked_already_nothing_improves():
    study = learned()
    improvement, best = LogExpectedImprovement(), study.classifier.best_label
    told = improvement(study.classifier.posterior(study.observations.points), best)
    elsewhere = improvement(study.classifier.posterior(study.space.points.sobol(200, seed=1)), best)
    assert told.max() < min(-9, elsewhere.max())


@pytest.mark.slow
def test_what_has_no_noise_has_no_scenarios_and_neither_has_what_was_not_told_of_it():
    points = learned(12).space.points.sobol(3, seed=1)
    assert learned(20, sd=0).classifier.posterior(points).noiseless is None
    assert learned(20, classifier=db.KernelPLS()).classifier.posterior(points).noiseless is None


def test_the_best_of_a_scenario_is_a_feasible_row_of_this_run():
    x = torch.linspace(0, 1, 20, dtype=torch.float64)[:, None]
    covariance = matern52((x - x.T).square() / 0.04)
    root = torch.linalg.inv(torch.linalg.cholesky(covariance + 0.1 * torch.eye(20)))
    z = 1 - x[:, 0]
    late = torch.arange(20) >= 15
    some = noiseless_scenarios(covariance, root, z, 0.1, late)
    assert ((covariance @ some.coefficients)[late].amax(0) - some.shift).numpy() == pytest.approx(float(z[15]))


@pytest.mark.parametrize("tell", ["constraints", "task"])
def test_noise_goes_with_constraints_and_earlier_tasks(tell):
    study, noise = noisy_study(0), np.random.default_rng(0)
    x, y = noise.random((2, 30))
    values = (x - 0.3) ** 2 + y + noise.normal(0, 0.3, 30)
    if tell == "task":
        study.add({"x": x, "y": y}, (x - 0.3) ** 2 + y, task="before")
        x, y = noise.random((2, 30))
        values = (x - 0.3) ** 2 + y + noise.normal(0, 0.3, 30)
    study.add({"x": x, "y": y}, values, constraints=(0.4 - y)[:, None] if tell == "constraints" else None)
    study.fit()
    told, best = study.observations, study.classifier.best_label
    scenarios = study.classifier.posterior(told.points).noiseless
    may_be_best = told.feasible & (told.columns.tasks == 0)
    of_those, of_others = (scenarios.mean[rows].amax(0) for rows in (may_be_best, ~may_be_best))
    assert (of_others > of_those).any()
    assert (of_those - scenarios.shift).numpy() == pytest.approx(float(best), abs=1e-4)


def test_a_noisy_run_is_resumed_exactly(tmp_path):
    path = tmp_path / "run.jsonl"
    noisy_study(15, journal=path).close()
    study = db.Study.load(path)
    assert study.classifier.noisy
    again = noisy_study(15)
    assert study.ask()[0].params == again.ask()[0].params


@pytest.mark.slow
def test_batches_of_botorch_improve_on_the_best_row_without_its_noise():
    study = learned(30, candidates=db.BoTorchBatch())
    head, rows, points = study.classifier, study.observations.points, study.space.points.sobol(10, seed=1)
    joint = joint_acquisition(head, seed=0, baseline=rows)
    posterior = head.posterior(torch.cat([points, rows]))
    stream = np.random.default_rng(0)
    drawn = stream.multivariate_normal(posterior.mean.numpy(), posterior.covariance().numpy(), 20_000)
    expected = (drawn[:, :10] - drawn[:, 10:].max(1, keepdims=True)).clip(min=0).mean(0)
    assert joint(points[:, None]).detach().exp().numpy() == pytest.approx(expected, rel=0.3, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("noisy", [False, True])
def test_a_search_by_botorch_asks_the_head_whether_values_are_noisy(noisy):
    study = learned(30, candidates=db.BoTorchBatch(samples=100), classifier=db.KernelPLS(noisy=noisy))
    kind = qLogNoisyExpectedImprovement if noisy else qLogExpectedImprovement
    search = Search(LogExpectedImprovement(), study.classifier, study.observations, torch.Generator().manual_seed(0))
    assert type(db.BoTorchBatch().monte_carlo(search)) is kind
    assert len(study.ask(3)) == 3


# regression: this was wrong once
def test_a_head_that_is_loaded_says_the_same_of_noisy_values():
    observations = Observations(SQUARE)
    observations.add(*noisy_bowl(40))
    head = fit(KernelPLS(noisy=True), LabelledObservations(observations), epochs=3)
    loaded = KernelPLS(noisy=True).bind(SQUARE)
    loaded.load_state_dict(head.state_dict())
    points = SQUARE.points.sobol(8, seed=1)
    one, other = (LogExpectedImprovement()(each.posterior(points), each.best_label) for each in (head, loaded))
    assert torch.allclose(one, other)
