"""What docstrings and guides promise of searches and heads where values are fixed, forbidden, pending or missing."""

from time import process_time

import numpy as np
import pytest
import torch

from deepbore import (
    BoTorchBatch,
    Calibrated,
    Categorical,
    ClassProbability,
    KernelPLS,
    LocalSearch,
    LogExpectedImprovement,
    MLPClassifier,
    MultiStartLBFGS,
    Ordinal,
    Real,
    Relaxed,
    RelaxedSearch,
    SearchSpace,
    Study,
    ThresholdLabels,
    Training,
)
from deepbore.candidates import Search
from deepbore.data.array_ranking import crowding, fronts, non_dominated
from deepbore.data.observations import Observations
from deepbore.labels import NonDominationLabels
from deepbore.space.relaxation import Relaxation
from deepbore.strategies.near_best import NearBest, n_good, near_rows

SQUARE = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})


def bowl(params):
    return sum((value - 0.3) ** 2 for value in params.values())


def go_on(study, n, objective=bowl):
    asked = []
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, objective(trial.params))
        asked.append(trial.params)
    return asked


def searched(study, seed=0):
    """What a search of the study may look at now."""
    return Search(LogExpectedImprovement(), study.fit(), study.observations, torch.Generator().manual_seed(seed))


# --- what is fixed during a run --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("search", [MultiStartLBFGS(), BoTorchBatch(), BoTorchBatch(joint=True)])
def test_searches_by_gradients_go_on_where_a_value_is_fixed_during_the_run(search):
    study = Study(SQUARE, seed=0, candidates=search)
    go_on(study, 12)
    study.fix({"x": 0.5})
    asked = go_on(study, 3)
    assert [params["x"] for params in asked] == [0.5] * 3
    assert min(abs(params["y"] - 0.3) for params in asked) < 0.05


@pytest.mark.slow
def test_searches_by_gradients_start_where_what_is_fixed_breaks_no_constraint():
    space = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)}, constraints=["x + y <= 1"])
    study = Study(space, seed=0, candidates=MultiStartLBFGS())
    go_on(study, 12)
    study.fix({"x": 0.9})  # the best rows so far have y > 0.1
    assert all(params["y"] <= 0.1 + 1e-9 for params in go_on(study, 3))


@pytest.mark.slow
def test_a_relaxed_search_searches_where_what_is_fixed_stands():
    space = SearchSpace({f"x{i}": Real(0, 1) for i in range(5)})
    study = Study(space, seed=0, classifier=Relaxed(KernelPLS()), candidates=RelaxedSearch(LocalSearch()))
    go_on(study, 20)
    study.fix({"x4": 0.5})
    asked = go_on(study, 10)
    assert {params["x4"] for params in asked} == {0.5}
    assert min(map(bowl, asked)) < 0.2**2 + 1e-3  # the best with what is fixed is 0.2^2


@pytest.mark.parametrize("fixed", [{"k": 2}, {"c": "b"}, {"c": "c", "k": 4}, {"c": "b", "x": 0.25}])
def test_the_box_of_a_space_stands_still_where_the_space_does(fixed):
    space = SearchSpace(
        {"c": Categorical(["a", "b", "c"]), "k": Ordinal([1, 2, 4]), "x": Real(0, 1, when={"c": "b"}), "y": Real(0, 1)}
    ).with_fixed(fixed)
    relaxation = Relaxation(space)
    vectors = relaxation.box.sample(50, torch.Generator().manual_seed(0))
    for params in space.decode(relaxation.points(vectors)):
        assert params.items() >= fixed.items()
    assert len(vectors.unique(dim=0)) == 50
    moving = {column for column in range(vectors.shape[1]) if len(vectors[:, column].unique()) > 1}
    assert not any(relaxation.box.names[column].split(",")[0] in fixed for column in moving)


# --- what is forbidden -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("joint", [False, True])
def test_what_botorch_climbs_to_stays_within_the_constraints_of_the_space(joint):
    space = SearchSpace({f"x{i}": Real(0, 1) for i in range(4)}, constraints=["x0 + x1 + x2 + x3 <= 1.6"])
    study = Study(space, seed=0)
    go_on(study, 20, lambda params: sum((value - 0.7) ** 2 for value in params.values()))
    search = searched(study)
    chosen = BoTorchBatch(joint=joint).ranked(search, 3)[:3]
    assert space.permitted(chosen).all()
    among_many = search.best_first(space.sample(1000, torch.Generator().manual_seed(1)))[1][0]
    assert float(search.values(chosen).max()) > float(among_many)


# --- what is pending -------------------------------------------------------------------------------------------------


def gap(trials):
    """The least distance of two configurations."""
    places = torch.tensor([list(trial.params.values()) for trial in trials], dtype=torch.float64)
    return float(torch.pdist(places).min())


@pytest.mark.slow
@pytest.mark.parametrize("joint", [False, True])
def test_botorch_keeps_away_from_pending_trials_as_from_those_of_its_batch(joint):
    one_by_one, at_once = (Study(SQUARE, seed=0, candidates=BoTorchBatch(joint=joint)) for _ in range(2))
    go_on(one_by_one, 16)
    go_on(at_once, 16)
    apart = gap([one_by_one.ask()[0] for _ in range(4)])
    assert apart > gap(at_once.ask(4)) / 4
    assert apart > 0.01


@pytest.mark.slow
def test_botorch_still_climbs_one_score_a_point_where_a_better_point_is_pending():
    study = Study(SQUARE, seed=0, classifier=MLPClassifier(training=Training(steps=50)), candidates=BoTorchBatch())
    go_on(study, 16)
    study.ask()
    search = Search(ClassProbability(), study.fit(), study.observations, torch.Generator().manual_seed(0))
    values = search.values(BoTorchBatch().propose(search, 1)), search.values(SQUARE.sobol(1000, seed=0))
    assert float(values[0]) > float(values[1].max())


# --- what improvement is over ----------------------------------------------------------------------------------------


def some_bowl(n, seed, chance=0.0):
    """n configurations, and values of a bowl around x = 0.2 with so much chance."""
    stream = np.random.default_rng(seed)
    x, y = stream.random((2, n))
    return {"x": x, "y": y}, (x - 0.2) ** 2 + (y - 0.5) ** 2 + chance * stream.normal(size=n)


def test_where_most_is_chance_improvement_is_over_a_feasible_row():
    study = Study(SQUARE, seed=0)
    columns, values = some_bowl(60, 0, chance=0.3)
    study.add(columns, values, constraints=(0.6 - columns["x"])[:, None])  # so the best place is infeasible
    classifier, points = study.fit(), study.observations.points
    expected = classifier.posterior(points).mean
    feasible = points[:, 0] >= 0.6
    assert float(classifier.best_label) == pytest.approx(float(expected[feasible].max()), abs=1e-6)
    assert float(expected.max()) > float(expected[feasible].max()) + 0.05


def test_where_most_is_chance_improvement_is_over_a_row_of_this_run():
    study = Study(SQUARE, seed=0, classifier=KernelPLS(regularisation=0.5))
    study.add(*some_bowl(12, 0))
    study.add(*some_bowl(150, 1), task="earlier")
    classifier, own = study.fit(), study.observations.tasks == 0
    expected = classifier.posterior(study.observations.points).mean
    assert float(classifier.best_label) == pytest.approx(float(expected[own].max()), abs=1e-6)
    assert float(expected.max()) > float(expected[own].max()) + 0.01


# --- what a class is made of -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_pending_trial_is_of_no_class_to_calibrate_by():
    head = Calibrated(KernelPLS(), min_per_class=5)
    study = Study(SQUARE, seed=0, classifier=head, labels=ThresholdLabels(0.84))
    study.add(*some_bowl(13, 0))  # of which 2 are bad
    for params in SQUARE.decode(SQUARE.sobol(9, seed=0)):
        study.enqueue(params)
    study.ask(9)
    study.fit()
    points = SQUARE.sobol(20, seed=1)
    assert torch.equal(head.posterior(points).mean, head.base.posterior(points).mean)


# --- the head of the rows near the best ------------------------------------------------------------------------------


def with_failures(n, failed):
    """A study that knows n values of a bowl, and of so many configurations that they have failed."""
    study = Study(SQUARE, seed=0)
    study.add(*some_bowl(n, 0))
    columns, values = some_bowl(failed, 1)
    study.add(columns, np.full_like(values, np.nan))
    return study


def test_axes_of_the_good_rows_are_none_of_failed_ones():
    axes = []
    for failed in (0, 50):
        study = with_failures(16, failed)
        axes.append(near_rows(study._state.data.labelled(), study.observations.averaged.values)[0])
    assert torch.equal(*axes)


@pytest.mark.slow
def test_turns_begin_once_enough_rows_have_values(monkeypatch):
    known = []
    monkeypatch.setattr(NearBest, "fit", lambda self, view: known.append(len(study.trials)))
    study = with_failures(n_good(2) - 2, 60)
    n = len(study.trials)
    go_on(study, 5)
    assert known == [n + 2, n + 4]


# --- ranks of fronts -------------------------------------------------------------------------------------------------


def of_several(values):
    """Observations with these values (n x k, to minimise)."""
    observations = Observations(SearchSpace({"x": Real(0, 1)}), ["minimize"] * values.shape[1])
    observations.add({"x": np.linspace(0, 1, len(values))}, values)
    return observations


def peeled(values):
    """The fronts of distinct rows, by their definition."""
    left, found = np.arange(len(values)), []
    while len(left):
        found.append(left[non_dominated(values[left])])
        left = np.setdiff1d(left, found[-1])
    return found


@pytest.mark.parametrize("gamma", [0.05, 0.5, 1.0])
@pytest.mark.parametrize(("n", "k", "levels"), [(1, 2, 3), (60, 1, 9), (200, 2, 1000), (200, 2, 6), (200, 3, 5)])
def test_fronts_that_are_not_looked_at_have_labels_of_0_all_the_same(n, k, levels, gamma):
    values = np.random.default_rng(n + k + levels).integers(0, levels, (n, k)).astype(float)
    distinct, which, count = np.unique(values, axis=0, return_inverse=True, return_counts=True)
    order = np.concatenate([each[np.argsort(-crowding(distinct[each]), kind="stable")] for each in peeled(distinct)])
    rank = np.empty(len(distinct))
    rank[order] = np.cumsum(count[order]) - count[order]
    expected = np.clip(1 - rank[which.reshape(-1)] / (gamma * n), 0, None)
    labels = NonDominationLabels(gamma)(of_several(values))
    assert labels.z[:, 0].numpy() == pytest.approx(expected, abs=1e-7)
    assert labels.separable == (len(distinct) > 1)


@pytest.mark.parametrize("enough", [0, 1, 5, 40])
def test_fronts_of_two_values_are_those_that_are_peeled_one_by_one(enough):
    values = np.random.default_rng(0).integers(0, 7, (40, 2)).astype(float)  # equal rows stand or fall together
    every = peeled(values)
    wanted = int((np.cumsum([0, *map(len, every[:-1])]) < enough).sum())
    assert [each.tolist() for each in fronts(values, enough)] == [each.tolist() for each in every[:wanted]]


def test_many_rows_of_two_values_are_ranked_at_once():
    values, seconds = np.random.default_rng(0).random((20_000, 2)), []
    for n in (2000, 20_000):
        observations = of_several(values[:n])
        begun = process_time()
        NonDominationLabels()(observations)
        seconds.append(process_time() - begun)
    assert seconds[1] < 40 * seconds[0]  # of all pairs there are a hundred times as many
