"""scripts/peers/variants, the later ones: warped parameters, several heads, a transformer, and evolution."""

import numpy as np
import pytest
import torch
from scipy.special import softmax
from scipy.stats import norm

import deepbore as db
from deepbore import Categorical, Real, SearchSpace, Study
from deepbore.classifiers.link import Link
from deepbore.errors import SettingError
from deepbore.testing import TOY_SPACES, fit, toy_data
from peers.variants import evolution, heads, in_context, warping
from peers.variants.heads import Marginals, MixtureImprovement, MixturePosterior
from peers.variants.in_context import Forecaster, drawn

SPACE = TOY_SPACES["continuous"]


def settled(classifier, n=12):
    """The classifier of a study of a bowl after n trials."""
    study = Study(SearchSpace({"a": Real(0, 1), "b": Real(0, 1)}), seed=0, n_initial=n, classifier=classifier)
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, (trial.params["a"] - 0.3) ** 2 + trial.params["b"])
    study.fit()
    return study._state.classifier


def test_a_warp_of_exponents_one_is_none(monkeypatch):
    monkeypatch.setattr(warping, "WARP_BOUNDS", (0.0, 0.0))
    points = SPACE.points.sobol(7, seed=1)
    warped, plain = (fit(make(), toy_data(SPACE)).posterior(points) for make in (warping.InputWarping, db.KernelPLS))
    assert torch.allclose(warped.mean, plain.mean, atol=0.02)  # either ascent ends where a step gains little
    assert torch.allclose(warped.std, plain.std, atol=0.02)


def test_a_warp_is_a_distribution_function_of_the_columns_that_it_names():
    a, b = torch.tensor([2.0]).double(), torch.tensor([3.0]).double()
    kernel = warping.WarpedKernel(None, torch.tensor([1]), a, b)
    x = torch.rand(50, 3, generator=torch.Generator().manual_seed(0)).double()
    rng = np.random.default_rng(0)
    samples = (1 - (1 - rng.random(200_000)) ** (1 / 3)) ** (1 / 2)  # Kumaraswamy's, by inversion
    assert torch.equal(kernel.warped(x)[:, [0, 2]], x[:, [0, 2]])
    assert np.allclose(kernel.warped(x)[:, 1], [(samples <= float(each)).mean() for each in x[:, 1]], atol=5e-3)


def test_exponents_are_learned_where_a_function_is_not_stationary():
    space = SearchSpace({"x": Real(0, 1)})
    study = Study(space, seed=0, n_initial=40, classifier=warping.InputWarping())
    for _ in range(40):
        (trial,) = study.ask()
        study.tell(trial, float(np.sin(12 * trial.params["x"] ** 4)))
    study.fit()
    a = float(study._state.classifier.theta[0].exp())
    assert a > 1.2  # stretches where it oscillates


def test_expected_improvement_of_a_mixture_is_the_mean_of_its_parts():
    means, stds = np.array([[0.1, 0.9], [0.5, 0.2]]), np.array([[0.3, 0.1], [0.2, 0.6]])
    parts = [Marginals(torch.tensor(m), torch.tensor(s), Link.IDENTITY) for m, s in zip(means, stds, strict=True)]
    weights = np.array([0.25, 0.75])
    u = (means - 1) / stds
    expected = weights @ (stds * (norm.pdf(u) + u * norm.cdf(u)))
    mixture = MixturePosterior(parts, torch.tensor(weights))
    assert np.allclose(MixtureImprovement()(mixture, 1.0).exp(), expected)
    assert np.allclose(mixture.mean, weights @ means)
    assert np.allclose(mixture.std**2, weights @ (stds**2 + means**2) - (weights @ means) ** 2)
    with pytest.raises(SettingError, match="one at a time"):
        mixture.covariance()


def test_heads_are_weighed_by_forecasts_of_what_they_had_not_seen():
    classifier = settled(heads.HeadsByForecasts([heads.Forest(trees=10)]))
    assert classifier.seen == 12
    assert classifier.weights.tolist() == [0.5, 0.5]  # nothing was forecast yet
    batch = toy_data(classifier.space, 20).labelled()
    points = batch.points[12:13]
    kernel, forest = classifier.parts(points)
    z = float(batch.z[12].mean())
    scores = [
        norm.logpdf(z, float(part.mean), np.hypot(float(part.std), heads.RESOLUTION)) for part in (kernel, forest)
    ]
    classifier.fit(batch.take(torch.arange(13)))
    assert np.allclose(classifier.weights, softmax(scores))


def test_a_deep_head_takes_over():
    classifier = settled(heads.DeepBeyond(heads.Network(members=1), after=13))
    assert type(classifier.posterior(classifier.space.points.sobol(2, seed=0))).__name__ == "KernelPosterior"
    classifier = settled(heads.DeepBeyond(heads.Network(members=1), after=12))
    assert type(classifier.posterior(classifier.space.points.sobol(2, seed=0))).__name__ == "LinearPosterior"


def test_what_is_forecast_depends_on_no_other_query_and_no_order():
    torch.manual_seed(0)
    network = Forecaster().eval()
    x, z, queries = torch.rand(2, 9, 3), torch.rand(2, 9), torch.rand(2, 5, 3)
    mean, std = network(x, z, queries)
    alone = network(x, z, queries[:, 2:3])
    order = torch.randperm(9)
    shuffled = network(x[:, order], z[:, order], queries)
    for all_of_them, one, again in zip((mean, std), alone, shuffled, strict=True):
        assert torch.allclose(all_of_them[:, 2:3], one, atol=1e-5)
        assert torch.allclose(all_of_them, again, atol=1e-5)


def test_drawn_functions_have_labels_as_those_of_a_run():
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        functions = drawn(4, generator)
        assert 4 <= functions.x.shape[1] <= in_context.ROWS
        assert 1 <= functions.x.shape[2] <= in_context.COORDINATES
        assert torch.equal(functions.z.max(-1).values, torch.ones(4))  # the best of the rows
        assert (functions.z >= 0).all()
        assert functions.answers.isfinite().all()
        assert ((functions.x >= 0) & (functions.x <= 1)).all()


@torch.no_grad()
def log_score(network):
    """The mean log score of forecasts of labels of functions that no training has seen."""
    functions = drawn(32, torch.Generator().manual_seed(99))
    mean, std = network(functions.x, functions.z, functions.queries)
    return float(torch.distributions.Normal(mean, std).log_prob(functions.answers).mean())


@pytest.mark.slow
def test_training_improves_forecasts(monkeypatch):
    monkeypatch.setattr(in_context, "FUNCTIONS", 4)
    assert log_score(in_context.trained(60)) > log_score(Forecaster()) + 0.1


def test_a_space_of_too_many_coordinates_is_refused():
    space = SearchSpace({"c": Categorical([str(i) for i in range(11)])})
    with pytest.raises(SettingError, match="knows 10 coordinates, not 11"):
        in_context.InContext(Forecaster()).bind(space)


@pytest.mark.parametrize("rough", [False, True])
def test_evolution_searches_apart_where_the_model_near_the_best_knows_its_rows(rough, monkeypatch):
    monkeypatch.setattr(evolution, "BEGIN", 30)
    turns, chance = evolution.WithEvolution(), np.random.default_rng(0)
    study = Study(SearchSpace({"a": Real(0, 1), "b": Real(0, 1)}), seed=0, n_initial=29, strategy=turns)
    for _ in range(50):
        (trial,) = study.ask()
        study.tell(trial, (trial.params["a"] - 0.3) ** 2 + trial.params["b"] + rough * chance.normal())
    assert turns.is_known is not rough
    assert (turns.apart.search is None) is rough
    assert rough or turns.apart.search.countiter >= 1  # it has been told a generation
