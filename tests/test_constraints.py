"""Black-box constraints: their grades, the heads that learn them, and runs under them, from the first to the last."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings, strategies as st
from scipy import stats

import cases
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
from deepbore.classifiers.feasibility import HEADS, REST, ConstraintHead, Feasibility, graded_columns
from deepbore.data.observations import Observations
from deepbore.errors import SettingError
from deepbore.labels import LabelledObservations, ValueGradedLabels
from deepbore.labels.constraints import graded
from thread_ranks import on_ranks

SQUARE = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})
MIXED = SearchSpace({"x": Real(0, 1), "k": Integer(0, 7), "c": Categorical(["a", "b"])})


def disc(params):
    """x + y, at least 0.3 from (0, 0) and below the diagonal: best at 0.3 along the axis of x."""
    x, y = params["x"], params["y"]
    return Outcome(x + y, constraints=[0.3 - math.hypot(x, y), 10 * (y - x)])


def steps(params):
    x, k = params["x"], params["k"]
    return Outcome(x + k / 7 + (params["c"] == "b"), constraints=[0.8 - x - k / 7])


def go_on(study, objective, n):
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, objective(trial.params))
    return study


def some_rows(n=30, seed=0, space=SQUARE, objective=disc):
    """Observations of random configurations."""
    observations = Observations(space)
    for row in observations.reserve(space.sample(n, torch.Generator().manual_seed(seed))):
        observations.tell(row, objective(observations.trial(row).params))
    return observations


# --- grades ----------------------------------------------------------------------------------------------------------


def test_a_grade_is_a_half_on_the_border_and_keeps_distances_up_to_the_last_tenth():
    column = torch.tensor([0.0, math.nan, *range(-5, 5), 1000.0], dtype=torch.float64)  # ten sizes above 0, nine to 5
    grades = graded(column[:, None])[:, 0].tolist()
    assert grades == pytest.approx([1 / 2, math.nan, *(1 / 2 - c / 20 for c in range(-5, 5)), 5 / 4000], nan_ok=True)


@pytest.mark.parametrize("slack", [1e-3, 1e-9])
def test_one_row_that_barely_keeps_a_constraint_does_not_make_violations_penalties(slack):
    violated = torch.linspace(0.05, 1.5, 20, dtype=torch.float64)
    barely, well = (graded(torch.cat([violated, violated.new_tensor([-by])])[:, None]) for by in (slack, 0.05))
    assert torch.equal(barely[:-1], well[:-1])


def test_penalties_among_few_violations_do_not_hide_how_far_these_are():
    c = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5, 1e6, 1e6, 1e6], dtype=torch.float64)  # none is kept
    grades = graded(c[:, None])[:, 0]
    assert grades[0] - grades[4] > 0.05


def test_the_scale_of_many_rows_is_found_from_some_of_them():
    column = torch.randn(200_001, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    scale = float(column.abs().quantile(0.9))
    grades = graded(column)[:, 0]
    near = column[:, 0].abs() < scale / 2
    assert torch.allclose(grades[near], 0.5 - column[near, 0] / scale / 4, atol=0.01)


@given(
    st.lists(st.floats(-1e6, 1e6).filter(lambda c: c == 0 or abs(c) > 1e-6), min_size=1, max_size=20),
    st.floats(1e-3, 1e3),
)
@settings(max_examples=50)
def test_the_unit_of_a_constraint_does_not_matter_and_its_order_stays(values, unit):
    column = torch.tensor(values, dtype=torch.float64)[:, None]
    grades = graded(column)
    assert torch.allclose(grades, graded(unit * column), atol=1e-9)
    assert ((grades >= 0) & (grades <= 1)).all()
    assert torch.equal(grades >= 0.5, column <= 0)
    order = column[:, 0].argsort()
    assert (grades[order, 0].diff() <= 1e-12).all()


@pytest.mark.parametrize("name", cases.LABELLINGS)
def test_labels_grade_all_values_and_improve_on_the_best_feasible_one(name):
    labelling = cases.LABELLINGS[name]()
    if labelling.objectives != 1 or labelling.outputs > 1:
        pytest.skip("grades several values, or has a column for each threshold")
    with_constraints, without = some_rows(), some_rows(objective=lambda params: disc(params).values[0])
    labels, plain = labelling(with_constraints), cases.LABELLINGS[name]()(without)
    assert torch.equal(labels.z, plain.z)
    feasible = with_constraints.feasible
    assert float(labels.best) == pytest.approx(float(labels.z[feasible].max()))
    assert torch.equal((labels.constraints >= 0.5).all(-1), feasible)
    assert plain.constraints is None


def test_what_is_unknown_has_no_grade_and_failures_are_far_outside_while_nothing_is_feasible():
    observations = Observations(SQUARE)
    columns = {"x": [0.1, 0.2, 0.3], "y": [0.9, 0.8, 0.7]}
    observations.add(columns, [1.0, 2.0, math.nan], constraints=[[1.0], [2.0], [math.nan]])
    observations.reserve(SQUARE.sobol(1, seed=0))
    grades = ValueGradedLabels()(observations).constraints[:, 0].tolist()
    assert grades[2] == 0.0
    assert math.isnan(grades[3])
    observations.add({"x": 0.9, "y": 0.1}, 3.0, constraints=[-1.0])
    grades = ValueGradedLabels()(observations).constraints[:, 0].tolist()
    assert math.isnan(grades[2])
    assert grades[4] > 0.5


# --- heads -----------------------------------------------------------------------------------------------------------


def fitted(observations):
    feasibility = Feasibility()
    batch = LabelledObservations(observations, ValueGradedLabels()).labelled()
    feasibility.fit(batch, SQUARE, torch.Generator().manual_seed(0))
    return feasibility, batch


def test_the_probability_is_that_of_independent_gaussian_grades():
    feasibility, batch = fitted(some_rows())
    points = SQUARE.sobol(20, seed=1)
    expected = torch.zeros(20, dtype=torch.float64)
    for column in batch.constraints.T:
        head = ConstraintHead().bind(SQUARE)
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
    assert feasibility.is_alone
    grades, points = batch.constraints[:, 0] - 0.5, SQUARE.sobol(20, seed=1)
    head = ConstraintHead().bind(SQUARE)
    head.learn(replace(batch, z=(grades - grades.mean())[:, None], weight=torch.ones(len(batch)), constraints=None))
    posterior = head.posterior(points)
    expected = stats.norm.logcdf(((posterior.mean + grades.mean()) / posterior.std).numpy())
    assert feasibility.log_probability(points).numpy() == pytest.approx(expected, rel=1e-6)


def test_the_probability_has_the_gradient_of_its_differences():
    feasibility, _ = fitted(some_rows())
    points = SQUARE.sobol(5, seed=2)
    leaf = points.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(feasibility.log_probability(leaf).sum(), leaf)
    for j in range(2):
        move = torch.zeros(2, dtype=torch.float64)
        move[j] = 1e-5
        change = feasibility.log_probability(points + move) - feasibility.log_probability(points - move)
        assert torch.allclose(gradient[:, j], change / 2e-5, rtol=1e-3, atol=1e-5)


def test_of_many_constraints_those_that_are_violated_least_often_share_a_head():
    c = HEADS + 3
    grades = torch.ones(c, c + 1, dtype=torch.float64)  # the last is never violated
    for j in range(c):
        grades[: j + 1, j] = 0.1 * (j + 1) / c
    columns = graded_columns(grades)
    shared = list(range(c - HEADS + 1))
    assert list(columns) == [*range(len(shared), c), REST]
    assert torch.equal(columns[REST], grades[:, shared].min(-1).values)
    assert list(graded_columns(grades[:, :HEADS])) == list(range(HEADS))


@pytest.mark.slow
def test_constraints_that_are_always_kept_change_nothing():
    free = go_on(Study(SQUARE, seed=2, n_initial=4), lambda params: disc(params).values[0], 9)
    kept = go_on(Study(SQUARE, seed=2, n_initial=4), lambda params: Outcome(disc(params).values[0], [-1.0]), 9)
    assert torch.equal(free.observations.points, kept.observations.points)


# --- searches --------------------------------------------------------------------------------------------------------


def new_search():
    study = Study(SQUARE, n_initial=4)
    trials = [(observations := some_rows(25)).trial(row) for row in range(25)]
    columns = {name: [trial.params[name] for trial in trials] for name in SQUARE.names}
    study.add(columns, [trial.value for trial in trials], constraints=[trial.constraints for trial in trials])
    trained = study.fit(2)
    feasibility, _ = fitted(observations)
    generator = torch.Generator().manual_seed(7)
    return Search(study.recipe.acquisition, trained, study.observations, generator, feasibility=feasibility)


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
    with pytest.raises(SettingError, match=r"no say in black-box constraints.*GreedyBatch"):
        BoTorchBatch().propose(search, 2)
