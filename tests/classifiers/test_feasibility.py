"""The chance that all black-box constraints are kept, on any space and in every search."""

import math
from dataclasses import replace

import pytest
import torch
from scipy import stats

import cases
from constrained import disc, fitted, go_on, some_rows
from deepbore import Categorical, Integer, KernelPLS, Outcome, Real, SearchSpace, Study
from deepbore.candidates import (
    BoTorchBatch,
    DifferentialEvolution,
    GreedyBatch,
    LocalSearch,
    MultiStartLBFGS,
    RandomSearch,
    RelaxedSearch,
    Search,
    SVGDCandidates,
    ThompsonBatch,
)
from deepbore.classifiers import MLPClassifier, RandomForest, Relaxed
from deepbore.classifiers.feasibility import MAX_MODELS, SHARED, ConstraintModel, graded_columns
from deepbore.errors import SettingError
from plane import SQUARE
from thread_ranks import on_ranks

MIXED = SearchSpace({"x": Real(0, 1), "k": Integer(0, 7), "c": Categorical(["a", "b"])})


def steps(params):
    x, k = params["x"], params["k"]
    return Outcome(x + k / 7 + (params["c"] == "b"), constraints=[0.8 - x - k / 7])


def test_the_probability_is_that_of_independent_gaussian_grades():
    feasibility, batch = fitted(some_rows())
    points = SQUARE.points.sobol(20, seed=1)
    expected = torch.zeros(20, dtype=torch.float64)
    for column in batch.constraints.T:
        head = ConstraintModel().bind(SQUARE)
        head.learn(replace(batch, z=column[:, None] - 0.5, weight=torch.ones(len(batch)), constraints=None))
        posterior = head.posterior(points)
        expected += torch.from_numpy(stats.norm.logcdf((posterior.mean / posterior.std).numpy()))
    assert torch.allclose(feasibility.log_probability(points), expected, rtol=1e-6)
    kept = torch.tensor([disc(each).is_feasible for each in SQUARE.decode(points)])
    probability = feasibility.log_probability(points).exp()
    assert (probability[kept].mean() - probability[~kept].mean()) > 0.5


def test_while_nothing_is_feasible_the_unknown_is_as_likely_as_what_is_known_on_average():
    def never(params):
        return Outcome(0.0, constraints=[2 + math.sin(40 * params["x"]) * math.cos(40 * params["y"])])

    feasibility, batch = fitted(some_rows(objective=never))
    assert feasibility.none_feasible
    grades, points = batch.constraints[:, 0] - 0.5, SQUARE.points.sobol(20, seed=1)
    head = ConstraintModel().bind(SQUARE)
    head.learn(replace(batch, z=(grades - grades.mean())[:, None], weight=torch.ones(len(batch)), constraints=None))
    posterior = head.posterior(points)
    expected = stats.norm.logcdf(((posterior.mean + grades.mean()) / posterior.std).numpy())
    assert feasibility.log_probability(points).numpy() == pytest.approx(expected, rel=1e-6)


def test_the_probability_has_the_gradient_of_its_differences():
    feasibility, _ = fitted(some_rows())
    points = SQUARE.points.sobol(5, seed=2)
    leaf = points.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(feasibility.log_probability(leaf).sum(), leaf)
    for j in range(2):
        move = torch.zeros(2, dtype=torch.float64)
        move[j] = 1e-5
        change = feasibility.log_probability(points + move) - feasibility.log_probability(points - move)
        assert torch.allclose(gradient[:, j], change / 2e-5, rtol=1e-3, atol=1e-5)


def test_of_many_constraints_those_that_are_violated_least_often_share_a_head():
    c = MAX_MODELS + 3
    grades = torch.ones(c, c + 1, dtype=torch.float64)  # the last is never violated
    for j in range(c):
        grades[: j + 1, j] = 0.1 * (j + 1) / c
    columns = graded_columns(grades)
    shared = list(range(c - MAX_MODELS + 1))
    assert list(columns) == [*range(len(shared), c), SHARED]
    assert torch.equal(columns[SHARED], grades[:, shared].min(-1).values)
    assert list(graded_columns(grades[:, :MAX_MODELS])) == list(range(MAX_MODELS))


@pytest.mark.slow
def test_constraints_that_are_always_kept_change_nothing():
    free = go_on(Study(SQUARE, seed=2, n_initial=4), lambda params: disc(params).values[0], 9)
    kept = go_on(Study(SQUARE, seed=2, n_initial=4), lambda params: Outcome(disc(params).values[0], [-1.0]), 9)
    assert torch.equal(free.observations.points, kept.observations.points)


def new_search():
    study = Study(SQUARE, n_initial=4)
    trials = [(observations := some_rows(25)).trial(row) for row in range(25)]
    columns = {name: [trial.params[name] for trial in trials] for name in SQUARE.names}
    study.add(columns, [trial.value for trial in trials], constraints=[trial.constraints for trial in trials])
    trained = study.fit(2)
    feasibility, _ = fitted(observations)
    generator = torch.Generator().manual_seed(7)
    return Search(study.state.recipe.acquisition, trained, study.observations, generator, feasibility=feasibility)


SEARCHES = [
    RandomSearch(),
    LocalSearch(),
    GreedyBatch(),
    ThompsonBatch(),
    SVGDCandidates(steps=10),
    MultiStartLBFGS(restarts=2, samples=50, iterations=10),
    DifferentialEvolution(evaluations=300, population=20),
]


@pytest.mark.slow
@pytest.mark.parametrize("candidates", SEARCHES, ids=lambda each: type(each).__name__)
def test_every_search_heeds_constraints_alike_on_all_ranks(candidates):
    searches = [new_search() for _ in range(2)]

    def task(ranks):
        return candidates.propose(replace(searches[ranks.rank], ranks=ranks), 2)

    one, other = on_ranks(task)
    assert torch.equal(one, other)
    likely = searches[0].feasibility.log_probability(one).exp()
    assert likely.max() > 0.2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("classifier", "candidates"),
    [
        (lambda: RandomForest(trees=10), None),
        (lambda: MLPClassifier(training=cases.QUICK), None),
        (lambda: Relaxed(KernelPLS()), lambda: RelaxedSearch(MultiStartLBFGS(restarts=2, samples=50, iterations=5))),
    ],
    ids=["RandomForest", "MLPClassifier", "Relaxed"],
)
def test_every_head_has_constraints_on_any_space(classifier, candidates):
    study = Study(MIXED, seed=1, n_initial=6, classifier=classifier(), candidates=candidates and candidates())
    go_on(study, steps, 14)
    proposed = study.observations.feasible[6:].float().mean()
    assert proposed >= 0.5  # of random configurations a half


@pytest.mark.slow
def test_batches_of_botorch_refuse_and_say_the_way_out():
    search = new_search()
    with pytest.raises(SettingError, match=r"does not support black-box constraints.*GreedyBatch"):
        BoTorchBatch().propose(search, 2)
