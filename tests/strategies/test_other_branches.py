"""In a space with branches, every other proposal leaves out those that are known in detail."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from deepbore import (
    Categorical,
    Condition,
    EmphasiseChanges,
    GreedyBatch,
    Integer,
    KernelPLS,
    LocalSearch,
    Outcome,
    RandomForest,
    Real,
    SearchSpace,
    Study,
    ThresholdLabels,
    ValueGradedLabels,
)
from deepbore.data.array_ranking import threshold
from deepbore.errors import SettingError
from deepbore.labels.grade import graded_by_value
from deepbore.loop.engine import Engine
from deepbore.loop.stopping import StopRule
from deepbore.strategies import ModelStrategy, OtherBranches, Turns
from deepbore.strategies.other_branches import ENOUGH, BranchModel, branches, is_among, remaining_branches
from thread_ranks import on_ranks

MODELS = "abcd"
BRANCHES = SearchSpace(
    {
        "model": Categorical(list(MODELS)),
        **{f"{m}{i}": Real(0, 1, when=Condition("model", m)) for m in MODELS for i in range(2)},
    }
)
FLAT = SearchSpace({"model": Categorical(list(MODELS)), "x": Real(0, 1), "y": Real(0, 1)})
BEST = {"a": (0.3, 0.3), "b": (0.25, 0.5), "c": (0.12, 0.8), "d": (0.0, 0.15)}  # value, and where
FAR = {"a": (0.1, 0.5, 0.8), "b": (0.05, 0.9, 0.95), "c": (0.1, 0.2, 0.3), "d": (0.9,)}


def loss(params):
    value, at = BEST[params["model"]]
    return value + sum((x - at) ** 2 for name, x in params.items() if name != "model")


def nothing_better(params):
    return 0.4


def go_on(study, n, objective=loss, q=1):
    for _ in range(n):
        for trial in study.ask(q):
            study.tell(trial, objective(trial.params))
    return [tuple(trial.params.items()) for trial in study.trials]


def knowing(rows, journal=None, space=BRANCHES, **settings):
    """A study that knows rows of a model, where in its two ranges, and a value; None for what has failed."""
    study = Study(space, seed=0, journal=journal, **settings)
    shared = space is FLAT
    columns = {"model": [model for model, _, _ in rows]}
    for name in space.names[1:]:
        columns[name] = [x if shared or name[0] == model else None for model, x, _ in rows]
    study.add(columns, [math.nan if value is None else value for _, _, value in rows])
    return study


def in_detail(n=30, **settings):
    """A study that has looked at all branches, and at one of them in detail."""
    rows = [(model, x) for model in MODELS for x in FAR[model]] + [("a", 0.3 + 1e-3 * k) for k in range(n)]
    return knowing([(m, x, BEST[m][0] + 2 * (x - BEST[m][1]) ** 2) for m, x in rows], **settings)


def rest(study):
    return remaining_branches(study._state.data.labelled(), study.observations, ValueGradedLabels())


def applies(study):
    """Whether `OtherBranches` has something to propose."""
    state = study._state
    state.data.labelled()
    return state.strategy.others[-1].applies(replace(Engine(state).view(), first=state.strategy.first))


def models_of(study, n):
    return [trial.params["model"] for trial in study.trials[-n:]]


# --- what is left ----------------------------------------------------------------------------------------------------


def test_a_branch_is_which_conditional_parameters_are_active():
    space = SearchSpace({"n": Integer(1, 3), "x2": Real(0, 1, when={"n": ">= 2"}), "x3": Real(0, 1, when={"n": "> 2"})})
    points = space.encode([{"n": 1}, {"n": 2, "x2": 0.5}, {"n": 3, "x2": 0.1, "x3": 0.2}, {"n": 2, "x2": 0.9}])
    found = branches(space, points)
    assert found.tolist() == [[False, False], [True, False], [True, True], [True, False]]
    assert is_among(found, found[1:2]).tolist() == [False, True, False, True]
    assert is_among(found, found[:0]).tolist() == [False] * 4


@pytest.mark.parametrize(("n", "known"), [(ENOUGH - 1, False), (ENOUGH, True)])
def test_a_branch_is_known_once_enough_of_its_trials_differ_by_details(n, known):
    assert (rest(in_detail(n)) is not None) == known


@pytest.mark.parametrize(("away", "known"), [(0.009, True), (0.011, False)])
def test_a_detail_is_a_hundredth_of_the_way_of_the_first_values(away, known):
    first = [("b", 0.1 * k, 1.0 + k) for k in range(10)]  # tau of which is 5, and the best value of all 0
    rows = [*first, ("a", 0.5, 0.0), *(("a", 0.5 + 1e-3 * k, 5 * away) for k in range(1, ENOUGH))]
    assert (rest(knowing(rows)) is not None) == known


def test_one_branch_after_another_is_excluded_and_the_rest_is_graded_by_itself():
    first = [("d", 0.1 * k, 1.0 + k) for k in range(10)]
    rows = [*first, *(("a", 0.01 * k, 0.0) for k in range(ENOUGH)), *(("c", 0.01 * k, 0.5) for k in range(ENOUGH))]
    rows += [("b", 0.1, 3.0), ("b", 0.2, None), ("c", 0.9, 0.6)]
    found = rest(knowing(rows))
    assert len(found.excluded) == 2  # the best one, and then the next
    values = np.array([value for _, _, value in first] + [3.0])
    expected = graded_by_value(torch.from_numpy(values), 1.0, threshold(np.sort(values), 0.5), 0.5)
    torch.testing.assert_close(found.batch.z[:, 0].double(), torch.cat([expected, torch.zeros(1)]).double())
    assert found.batch.best == 1.0
    assert found.ranked.tolist() == [0, 1, 2, 10 + 2 * ENOUGH, *range(3, 10), 11 + 2 * ENOUGH]


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [("a", 0.1, None)] * 12,
        [("a", 0.01 * k, 1.0) for k in range(9)],
        [("a", 0.01 * k, 1e-4 * k) for k in range(40)],
        [
            *(("a", 0.01 * k, 1.0 + k) for k in range(10)),
            *(("a", 0.5 + 0.01 * k, 0.0) for k in range(ENOUGH)),
            ("b", 0.1, None),
        ],
    ],
    ids=["nothing", "failures", "too few", "one branch", "nothing but a failure elsewhere"],
)
def test_where_nothing_is_left_nothing_is_excluded(rows):
    assert rest(knowing(rows)) is None


def test_the_head_expects_nothing_of_what_is_excluded_and_the_usual_elsewhere():
    study = in_detail()
    found, head, usual = rest(study), BranchModel(), KernelPLS()
    for each in (head, usual):
        each.bind(BRANCHES)
        each.learn(found.batch)
    head.excluded = found.excluded
    points = BRANCHES.points.sample(200, torch.Generator().manual_seed(0))
    out = is_among(branches(BRANCHES, points), found.excluded)
    assert out.any()
    assert not out.all()
    mine, theirs = head.posterior(points), usual.posterior(points)
    torch.testing.assert_close(mine.mean[~out], theirs.mean[~out])
    torch.testing.assert_close(mine.std, theirs.std)
    assert (mine.mean[out] < -100).all()


def test_its_cost_does_not_grow_with_the_rows():
    generator = np.random.default_rng(0)
    rows = [(MODELS[k % 4], float(generator.uniform()), float(generator.normal())) for k in range(5000)]
    study = knowing([*rows, *(("a", 0.5 + 1e-3 * k, -9.0) for k in range(ENOUGH))])
    assert len(rest(study).batch) <= 2000


# --- the turns -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_leaves_the_branch_that_it_knows_for_better_ones():
    found = {}
    for other_branches in (False, True):
        study = in_detail(**({} if other_branches else {"strategy": ModelStrategy(KernelPLS())}))
        go_on(study, 24)
        found[other_branches] = study.best_trial.value
    assert found[False] > 0.25  # what the branches that it looked at most have to give
    assert found[True] < 0.15


@pytest.mark.slow
def test_every_other_proposal_is_elsewhere():
    study = in_detail()
    go_on(study, 6, nothing_better)
    assert [model != "a" for model in models_of(study, 6)[::2]] == [True] * 3
    assert models_of(study, 6)[1::2] == ["a"] * 3


@pytest.mark.slow
def test_half_of_a_batch_is_elsewhere():
    study = in_detail()
    asked = go_on(study, 2, nothing_better, q=4)
    for batch in (models_of(study, 8)[:4], models_of(study, 4)):
        assert sum(model != "a" for model in batch) >= 2
    assert len(set(asked)) == len(asked)


@pytest.mark.parametrize(
    ("space", "settings"),
    [
        (FLAT, {}),
        (BRANCHES, {"classifier": RandomForest(trees=5)}),
        (BRANCHES, {"classifier": KernelPLS(length_scale=0.5)}),
        (BRANCHES, {"classifier": KernelPLS(noisy=True)}),
        (BRANCHES, {"labels": ThresholdLabels()}),
    ],
    ids=["no conditions", "another classifier", "a fixed kernel", "noise", "other labels"],
)
def test_where_it_does_not_apply_there_are_no_turns(space, settings):
    study = in_detail(space=space, **settings)
    others = getattr(study._state.strategy, "others", [])
    assert not any(isinstance(each, OtherBranches) for each in others)
    study.ask()


def test_once_there_are_constraints_or_earlier_tasks_there_are_no_turns():
    study = in_detail()
    (trial,) = study.ask()
    study.tell(trial, Outcome(0.4, constraints=[-1.0]))
    assert not applies(study)
    study = in_detail()
    assert applies(study)
    study.add({name: ["a" if name == "model" else 0.1] for name in BRANCHES.names}, [1.0], task="earlier")
    assert not applies(study)


@pytest.mark.parametrize("elsewhere", [True, False])
def test_the_argument_of_version_0_2_leaves_it_out(elsewhere):
    with pytest.warns(DeprecationWarning, match="strategy="):
        search = LocalSearch(elsewhere=elsewhere)
    others = Study(BRANCHES, candidates=GreedyBatch(search))._state.strategy.others
    assert any(isinstance(each, OtherBranches) for each in others) == elsewhere


def test_labels_without_thresholds_are_refused():
    turns = Turns([ModelStrategy(KernelPLS()), OtherBranches()])
    with pytest.raises(SettingError, match="thresholds"):
        Study(BRANCHES, strategy=turns, labels=EmphasiseChanges(ValueGradedLabels()))


@pytest.mark.slow
def test_a_loaded_study_goes_on_with_the_turn_bit_for_bit(tmp_path):
    whole, part = (in_detail(journal=tmp_path / f"{k}.jsonl") for k in "ab")
    expected = go_on(whole, 5, nothing_better)
    go_on(part, 2, nothing_better)
    part.close()
    assert go_on(Study.load(tmp_path / "b.jsonl"), 3, nothing_better) == expected


@pytest.mark.slow
@pytest.mark.parametrize("q", [1, 3])
def test_two_ranks_take_turns_alike(q):
    states = []
    for _ in range(2):
        study = in_detail()
        go_on(study, 2, nothing_better)
        study._state.data.labelled()
        states.append(study._state)
    one, other = on_ranks(lambda ranks: Engine(states[ranks.rank], ranks).propose(q).points)
    assert torch.equal(one, other)
    assert BRANCHES.decode(one)[0]["model"] != "a"


@pytest.mark.slow
def test_a_rule_that_ends_a_run_does_not_count_proposals_by_other_models(monkeypatch):
    turns, counted, original = [], [], OtherBranches.propose

    def propose(self, view, q):
        turns.append(len(view.observations))
        return original(self, view, q)

    monkeypatch.setattr(OtherBranches, "propose", propose)

    class Counting(StopRule):
        def predicts_little_gain(self, state, points):
            counted.append(len(state.observations))
            return False

    study = Study(BRANCHES, seed=0, n_initial=10, strategy=Turns([ModelStrategy(KernelPLS()), OtherBranches()]))
    study.optimize(loss, 45, stop_when=Counting())
    assert turns
    assert counted == [row for row in range(10, 45) if row not in turns]
