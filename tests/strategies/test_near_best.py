"""Every other proposal is by a model of the rows near the best one, where it knows them."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from deepbore import (
    Categorical,
    EpsilonGreedy,
    GreedyBatch,
    KernelPLS,
    LocalSearch,
    LogExpectedImprovement,
    Outcome,
    RandomForest,
    RandomSearch,
    Real,
    SearchSpace,
    Study,
    ThresholdLabels,
)
from deepbore.candidates import Search
from deepbore.classifiers.kernel.least_squares import ROWS
from deepbore.loop.engine import Engine
from deepbore.strategies import Evolution, ModelStrategy, Turns
from deepbore.strategies.near_best import LocalAxes, NearBest, NearModel, n_good, near_rows
from plane import SQUARE
from thread_ranks import on_ranks
from tried import asked_by, noisy_bowl, some_bowl
from valleys import (
    BOX,
    around,
    around_the_middle,
    bowl,
    go_on,
    near_best,
    near_model_of,
    noisy,
    rugged,
    slope,
    strategy,
    told,
    with_points,
)

# --- the turns -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_it_goes_on_down_a_valley_across_the_parameters():
    found = {}
    for near in (False, True):
        study = told(ROWS + 20, **strategy(near))
        go_on(study, 30)
        found[near] = study.best_trial.value
    assert found[True] < found[False] / 3


@pytest.fixture
def turns(monkeypatch):
    """Whether each search was by the head."""
    turns, original = [], LocalSearch.ranked
    monkeypatch.setattr(
        LocalSearch,
        "ranked",
        lambda self, search, q: turns.append(isinstance(search.classifier, NearModel)) or original(self, search, q),
    )
    return turns


@pytest.mark.slow
@pytest.mark.parametrize("missing", [2, 3])
def test_the_head_proposes_every_other_time_from_the_first_that_it_can(turns, missing):
    go_on(told(n_good(6) - missing, objective=slope), missing + 5, slope)
    assert turns == [False] * missing + [True, False, True, False, True]


@pytest.mark.slow
@pytest.mark.parametrize("objective", [rugged, noisy])
@pytest.mark.parametrize("n", [100, ROWS + 20])
def test_where_the_head_does_not_know_the_near_rows_the_classifier_goes_on_alone(objective, n):
    alone, together = (go_on(told(n, objective=objective, **strategy(near)), 4, objective) for near in (False, True))
    assert together == alone


@pytest.mark.slow
@pytest.mark.parametrize(("q", "by_the_head"), [(2, 1), (5, 3)])
def test_half_of_a_batch_is_by_the_head(turns, monkeypatch, q, by_the_head):
    rankings, original = [], LocalSearch.ranked

    def ranked(self, search, q):
        rankings.append(original(self, search, q))
        return rankings[-1]

    monkeypatch.setattr(LocalSearch, "ranked", ranked)
    points = go_on(told(ROWS + 10, objective=bowl), 4, bowl, q=q)
    assert turns[-4:] == [True, False] * 2  # what the head knows goes on from one batch to the next
    assert len(set(points)) == 4 * q
    asked = BOX.encode([dict(zip(BOX.names, point, strict=True)) for point in points])  # all within the bounds
    near = (asked[-q:, None] - rankings[-2]).abs().amax(-1).amin(-1) < 1e-9
    assert near.tolist() == [True] * by_the_head + [False] * (q - by_the_head)


MIXED = SearchSpace({**{f"x{i}": Real(-1, 1) for i in range(5)}, "x5": Categorical([-1.0, 1.0])})


@pytest.mark.parametrize(
    ("space", "prepare"),
    [
        (MIXED, lambda study: None),
        (BOX, lambda study: study.fix({"x0": 0.5})),
        (BOX, lambda study: study.add({name: [0.1] for name in BOX.names}, [1.0], task="earlier")),
    ],
    ids=["categories", "fixed", "earlier tasks"],
)
def test_where_it_does_not_apply_nothing_changes(space, prepare):
    asked = []
    for near in (False, True):
        turns = Turns([ModelStrategy(KernelPLS()), NearBest()])
        study = told(ROWS + 5, space=space, strategy=turns if near else turns.first)
        prepare(study)
        asked.append(go_on(study, 2))
    assert asked[0] == asked[1]


@pytest.mark.parametrize(
    "settings",
    [
        {"classifier": RandomForest(trees=5)},
        {"labels": ThresholdLabels()},
        {"candidates": RandomSearch()},
        {"candidates": GreedyBatch(RandomSearch())},
        {"classifier": KernelPLS(kernel="rbf")},
        {"classifier": KernelPLS(length_scale=0.3)},
        {"classifier": KernelPLS(regularisation=1e-4)},
    ],
    ids=["a forest", "one threshold", "another search", "another search in a batch", "rbf", "scale", "lambda"],
)
def test_it_is_no_part_of_the_default_with_other_parts(settings):
    assert isinstance(Study(BOX, **settings)._state.strategy, ModelStrategy)


def test_it_is_part_of_the_default_with_settings_of_the_kernel():
    strategy = Study(BOX, classifier=KernelPLS(rows=100))._state.strategy
    assert [type(each) for each in strategy.others] == [NearBest, Evolution]
    assert strategy.others[0]._settings["rows"] == 100


@pytest.mark.parametrize("nearby", [True, False])
def test_the_argument_of_version_0_2_leaves_it_out(nearby):
    with pytest.warns(DeprecationWarning, match="strategy="):
        search = LocalSearch(nearby=nearby)
    strategy = Study(BOX, candidates=EpsilonGreedy(GreedyBatch(search)))._state.strategy
    assert isinstance(strategy, Turns) == nearby


def test_a_batch_keeps_apart_across_its_shares():
    study = told(ROWS + 10, objective=bowl)
    seen = []
    for _ in range(2):
        points = BOX.encode([trial.params for trial in study.ask(6)])
        seen.append(points)
        distance = torch.cdist(points, points) + torch.eye(6)
        assert distance.min() > 1e-4
    assert len(set(BOX.points.identify(torch.cat(seen)))) == 12


@pytest.mark.slow
def test_once_there_are_constraints_the_classifier_goes_on_alone(turns):
    study = told(2 * n_good(6), objective=bowl)
    go_on(study, 6, bowl)
    turns.clear()
    go_on(study, 4, lambda params: Outcome(bowl(params), constraints=[params["x0"] - 0.9]))
    assert turns == [True, False, False, False]


def test_the_newest_rows_near_the_best_one_are_learned_though_a_thousand_others_are_better():
    best, others = around_the_middle(1, 0.0), around_the_middle(2000, 1.0)
    others = best + 0.4 * (others - best) / (others - best).norm(dim=-1, keepdim=True)
    points = torch.cat([best, others, around_the_middle(150, 0.001)])
    _, rows = near_best(with_points(points, torch.linspace(0, 1, len(points)).tolist()))
    assert int(((rows.points - best).norm(dim=-1) < 0.1).sum()) == 1 + 150


def test_what_has_failed_is_nowhere_among_the_rows_that_axes_are_found_from():
    points = torch.cat([around_the_middle(10, 0.001), around_the_middle(100, 0.1).clamp(0, 1)])
    good, _ = near_best(with_points(points, [*range(10), *[math.nan] * 100]))
    assert float(LocalAxes.principal(good).axes.norm(dim=0).max()) < 0.01


@pytest.mark.parametrize(("failed", "counted"), [(1, 0), (9, 0), (12, 12)])
def test_few_failures_near_the_best_one_are_crashes_and_many_a_wall(failed, counted):
    points = around_the_middle(100 + failed, 0.1).clamp(0, 1)
    _, rows = near_best(with_points(points, [*(math.nan for _ in range(failed)), *range(100)]))
    assert len(rows) == 100 + counted
    assert int((rows.z == 0).sum()) == counted


@pytest.mark.slow
def test_a_crash_near_the_best_one_leaves_the_head_its_turns(turns):
    study = told(100, objective=bowl)
    go_on(study, 5, bowl)
    (trial,) = study.ask()
    study.tell(trial, failed=True)
    turns.clear()
    go_on(study, 6, bowl)
    assert turns in ([True, False] * 3, [False, True] * 3)


@pytest.mark.slow
def test_a_loaded_study_goes_on_with_the_turn_bit_for_bit(tmp_path):
    whole, part = (told(ROWS + 3, tmp_path / f"{k}.jsonl") for k in "ab")
    expected = go_on(whole, 6)
    begun = go_on(part, 3)
    part.close()
    assert begun + go_on(Study.load(tmp_path / "b.jsonl"), 3) == expected


@pytest.mark.slow
def test_forbidden_configurations_are_kept_away_from():
    space = SearchSpace({f"x{i}": Real(-1, 1) for i in range(6)}, constraints=["x0 + x1 <= 0.2"])
    study = told(ROWS + 20, space=space)
    assert all(point[0] + point[1] <= 0.2 + 1e-9 for point in go_on(study, 6))


def test_two_ranks_share_the_search_and_propose_the_same():
    searches = []
    for _ in range(2):
        study = told(ROWS + 20)
        stream = torch.Generator().manual_seed(7)
        model = near_model_of(study)
        searches.append(Search(LogExpectedImprovement(), model, study.observations, stream, **around(model)))

    def task(ranks):
        return GreedyBatch().propose(replace(searches[ranks.rank], ranks=ranks), 3)

    one, other = on_ranks(task)
    assert torch.equal(one, other)
    assert len(set(BOX.points.identify(one))) == 3


@pytest.mark.slow
@pytest.mark.parametrize("q", [1, 3])
def test_two_ranks_take_turns_alike(turns, q):
    states = []
    for _ in range(2):
        study = told(2 * n_good(6), objective=bowl)
        go_on(study, 6, bowl)
        study._state.data.labelled()
        states.append(study._state)
    turns.clear()
    one, other = on_ranks(lambda ranks: Engine(states[ranks.rank], ranks).propose(q).points)
    assert turns == ([True] * 2 if q == 1 else [True, True, False, False])
    assert torch.equal(one, other)


def test_its_cost_does_not_grow_with_the_rows():
    assert [len(near_best(told(n))[1]) for n in (500, 5000)] == [ROWS, ROWS]


def test_values_that_single_precision_does_not_tell_apart_are_graded_apart():
    points = 0.2 + 1e-6 * torch.randn(50, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    study = told(ROWS, objective=bowl)
    study.add(dict(zip(BOX.names, points.T.numpy(), strict=True)), (points - 0.2).square().sum(1).numpy())
    batch, values = study._state.data.labelled(), study.observations.averaged.values
    assert len(batch.z[-50:].unique()) == 1
    assert len(near_rows(batch, values)[1].z[-50:].unique()) == 50


@pytest.mark.slow
def test_the_heads_learn_as_the_classifier_does(monkeypatch):
    models, original = set(), LocalSearch.ranked
    monkeypatch.setattr(
        LocalSearch, "ranked", lambda self, search, q: models.add(search.classifier) or original(self, search, q)
    )
    settings = {"rows": 50, "iterations": 10, "prior": False, "crashes": False}
    go_on(told(ROWS, objective=slope, classifier=KernelPLS(**settings)), 4, slope)
    assert any(isinstance(model, NearModel) for model in models)
    assert all({name: getattr(model, name) for name in settings} == settings for model in models)


# regression: each of these was wrong once
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
    asked_by(study, 5)
    assert known == [n + 2, n + 4]
