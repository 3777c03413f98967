"""Cheap fidelities: who is promoted, what is learned of it, and what is kept."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

import deepbore
from deepbore import AtBudgets, Budget, KernelPLS, Outcome, Real, RungLabels, SearchSpace, Study
from deepbore.data.observations import Observations, Status
from deepbore.data.replay import read_record
from deepbore.errors import SettingError, SpaceExhausted
from deepbore.labels import LabelledObservations, ValueGradedLabels
from deepbore.loop.promotions import Promotions
from deepbore.testing import fit
from rungs import EPOCHS, LINE, run

# --- Budget ----------------------------------------------------------------------------------------------------------


@given(low=st.floats(0.01, 100), factor=st.floats(1.5, 5), count=st.integers(2, 6), more=st.floats(0, 0.3))
def test_rungs_go_from_low_by_the_factor_up_to_high(low, factor, count, more):
    rungs = Budget("seconds", low, low * factor ** (count - 1) * (1 + more), factor).rungs
    assert rungs == pytest.approx([low * factor**k for k in range(count)])


def test_whole_rungs_stay_whole():
    assert Budget("epochs", 1, 100).rungs == (1, 3, 9, 27, 81)
    assert all(type(rung) is int for rung in EPOCHS.rungs)
    trial = run(Study(LINE, budget=EPOCHS), 4).trials[3]
    assert type(trial.budget) is int
    assert list(range(trial.budget)) == [0, 1, 2]


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"unit": ""}, "unit must name"),
        ({"low": 0}, "low > 0"),
        ({"high": 1}, "high > 1"),
        ({"high": 2}, "two rungs"),
        ({"high": math.inf}, "finite"),
        ({"factor": 1}, "factor > 1"),
        ({"factor": None}, "factor must be given"),
    ],
)
def test_a_wrong_budget_is_refused(setting, says):
    with pytest.raises(SettingError, match=says):
        Budget(**{"unit": "epochs", "low": 1, "high": 27, "factor": 3} | setting)


# --- promotions ------------------------------------------------------------------------------------------------------


def asha(values, rungs, factor):
    """Algorithm 2 of Li et al. in plain lists, told each value at once: (configuration, rung) in their order."""
    told = [{} for _ in rungs]  # configuration -> value
    jobs, n = [], 0
    for _ in range(60):
        for k in range(len(rungs) - 2, -1, -1):
            ranked = sorted(told[k], key=lambda c, k=k: (told[k][c], list(told[k]).index(c)))
            top = [c for c in ranked[: len(ranked) // factor] if c not in told[k + 1] and told[k][c] < math.inf]
            if top:
                job = (top[0], k + 1)
                break
        else:
            job, n = (n, 0), n + 1
        jobs.append(job)
        told[job[1]][job[0]] = values[job[0]][job[1]]
    return jobs


@pytest.mark.slow
@settings(max_examples=15)
@given(st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=60, max_size=60))
def test_promotions_are_those_of_asha(values):
    values = [[math.inf if v == 9 else v + k / 7 for k, v in enumerate(each)] for each in values]  # 9 fails
    study = Study(LINE, budget=EPOCHS, n_initial=100)
    numbers, found = {}, []
    for _ in range(60):
        (trial,) = study.ask()
        number = numbers.setdefault(trial.params["x"], len(numbers))
        rung = EPOCHS.rungs.index(trial.budget)
        found.append((number, rung))
        study.tell(trial, values[number][rung])
    assert found == asha(values, EPOCHS.rungs, 3)


def test_a_promoted_trial_continues_its_predecessor():
    study = Study(LINE, budget=EPOCHS)
    for k, trial in enumerate(study.ask(3)):
        assert (trial.budget, trial.resume_from) == (1, None)
        study.tell(trial, Outcome(k, attributes={"checkpoint": f"{k}.ckpt"}))
    promoted, new = study.ask(2)
    assert promoted.params == study.trials[0].params
    assert promoted.budget == 3
    assert promoted.resume_from.id == 0
    assert promoted.resume_from.attributes["checkpoint"] == "0.ckpt"
    assert (new.budget, new.resume_from) == (1, None)


def promoted_one_by_one(observations):
    """(row, budget) of who is promoted, from the trials alone."""
    budget, found = observations.budget, []
    trials = [observations.trial(row) for row in range(len(observations))]
    tried = {(str(trial.params), trial.budget) for trial in trials}
    continued = set(observations.resumed.values())
    for low, up in reversed(list(itertools.pairwise(budget.rungs))):
        rung = [trial for trial in trials if trial.budget == low and trial.status is not Status.PENDING]
        complete = sorted((t for t in rung if t.status is Status.COMPLETE), key=lambda trial: trial.value)
        seen = set()
        for trial in complete[: math.floor(len(rung) / budget.factor + 1e-9)]:
            name = str(trial.params)
            if trial.id in continued or name in seen or (name, up) in tried:
                continue
            seen.add(name)
            found.append((trial.id, up))
    return found


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from([1, 3, 9, 27]), st.integers(0, 5)), max_size=40))
@settings(max_examples=60, deadline=None)
def test_who_is_promoted_is_found_without_looking_at_each(rows):
    observations = Observations(LINE, budget=EPOCHS)
    for x, budget, value in rows:
        observations.add({"x": x / 4}, math.nan if value == 0 else value, budgets=budget)
    study = run(Study(LINE, budget=EPOCHS, n_initial=5, seed=len(rows)), len(rows))
    for each in (observations, study.observations):
        expected = promoted_one_by_one(each)
        found = Promotions(each)
        assert len(found) == len(expected)
        assert [tuple(one) for one in found.first(100)] == expected
        assert [tuple(one) for one in found.first(2)] == expected[:2]
        for row, budget in expected[:3]:
            assert found.first(1, of=row) == [(row, budget)]


def test_a_failure_counts_as_a_result_and_is_never_promoted():
    study = Study(LINE, budget=EPOCHS)
    for trial in study.ask(3):
        study.tell(trial, failed=True)
    assert study.ask()[0].budget == 1
    for trial, value in zip(study.ask(2), (1.0, 2.0), strict=True):
        study.tell(trial, value)
    assert study.ask()[0].resume_from.id == 4  # the best of five results


def test_feasible_trials_are_promoted_first():
    study = Study(LINE, budget=EPOCHS)
    for trial, (value, violation) in zip(study.ask(6), [(0, 2), (1, 1), (5, -1), (2, 3), (3, 4), (4, 5)], strict=True):
        study.tell(trial, Outcome(value, constraints=[violation]))
    assert [trial.resume_from.id for trial in study.ask(2)] == [2, 1]


def test_a_finite_space_is_exhausted_when_nobody_is_left_to_promote():
    space = SearchSpace({"k": deepbore.Integer(1, 9)})
    result = deepbore.minimize(lambda params, trial: params["k"] / trial.budget, space, None, budget=EPOCHS)
    budgets = [trial.budget for trial in result.study.trials]
    assert budgets.count(1) == 9
    for rung, above in itertools.pairwise(EPOCHS.rungs):  # more than a third where a better one came later
        assert budgets.count(above) >= budgets.count(rung) // 3
    with pytest.raises(SpaceExhausted):
        result.study.ask()


def test_earlier_results_stand_on_their_rungs():
    study = Study(LINE, budget=EPOCHS)
    study.observations.add({"x": [0.1, 0.2, 0.3]}, [3.0, 2.0, 1.0], budgets=[1, 1, 1])
    study.add({"x": 0.9}, 0.5)  # without a budget: the highest
    assert study.trials[3].budget == 27
    assert study.best_trial.id == 3
    (trial,) = study.ask()
    assert (trial.params, trial.budget) == ({"x": 0.3}, 3)


# --- labels, classifier, best trial ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_labels_are_those_of_each_rung_by_itself():
    study = run(Study(LINE, budget=EPOCHS, seed=1), 40)
    study.tell(study.ask()[0], failed=True)
    study.ask()  # pending
    labels = RungLabels(ValueGradedLabels())(study.observations)
    budgets = study.observations.budgets
    for rung in budgets.unique():
        alone = Observations(LINE)
        for row in (budgets == rung).nonzero().squeeze(-1).tolist():
            (new,) = alone.reserve(study.observations.points[row : row + 1])
            trial = study.trials[row]
            if trial.status is not Status.PENDING:
                alone.tell(new, trial.value, failed=trial.status is Status.FAILED)
        here, n = len(alone), int(((budgets == 1) & (study.observations.status == Status.COMPLETE)).sum())
        beaten = max(0, n - alone.n_complete)  # those that stayed below, as bad as the worst of the rung
        alone.add({"x": np.linspace(0.5, 0.9, beaten)}, [float(alone.sorted_values[-1])] * beaten)
        expected = ValueGradedLabels()(alone)
        assert torch.equal(labels.z[budgets == rung], expected.z[:here])
        assert torch.equal(labels.weight[budgets == rung], expected.weight[:here])


def test_those_promoted_are_good_but_for_the_worst_of_each_rung():
    study = run(Study(LINE, budget=EPOCHS, n_initial=1000), 80)
    budgets, z = study.observations.budgets, RungLabels(ValueGradedLabels())(study.observations).z[:, 0]
    for rung in EPOCHS.rungs[1:]:
        assert z[budgets == rung].sort().values[1] >= 1 / 3  # the label of tau


def test_the_classifier_answers_for_the_highest_budget():
    observations = Observations(LINE, budget=EPOCHS)
    x = torch.linspace(0, 1, 21)
    for budget in EPOCHS.rungs:  # good is what is small at the lowest, and what is large at the highest
        slope = math.log(budget, 27)
        observations.add({"x": x.tolist()}, ((x - slope) ** 2).tolist(), budgets=budget)
    head = fit(AtBudgets(KernelPLS(), EPOCHS), LabelledObservations(observations, RungLabels(ValueGradedLabels())))
    expected = head.probability(LINE.encode([{"x": 0.0}, {"x": 1.0}]))
    assert expected[1] > 0.8
    assert expected[0] < 0.3


def test_the_classifier_knows_budgets_by_their_logarithm():
    class Recording(KernelPLS):
        def fit(self, batch):
            self.spent = batch.points[:, -1]
            return super().fit(batch)

    observations = Observations(LINE, budget=EPOCHS)
    observations.add({"x": [0.1, 0.3, 0.5, 0.7, 0.9]}, [3.0, 2.0, 1.0, 4.0, 5.0], budgets=[1, 3, 9, 27, math.nan])
    head = AtBudgets(Recording(), EPOCHS)
    fit(head, LabelledObservations(observations, RungLabels(ValueGradedLabels())), epochs=1)
    assert head.base.spent.tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1, 1])


def test_parameters_may_be_called_budget():
    space = SearchSpace({"budget": Real(0, 1), "budget_": Real(0, 1)})
    study = Study(space, budget=EPOCHS, n_initial=3)
    run(study, 8, lambda params, trial: params["budget"] / trial.budget)
    assert study.classifier.base.space.names == ["budget", "budget_", "budget__"]


def test_the_best_trial_is_that_of_the_largest_budget(tmp_path):
    study = Study(LINE, budget=EPOCHS, direction="maximize", journal=tmp_path / "run.jsonl")
    for trial, value in zip(study.ask(3), (5.0, 7.0, 6.0), strict=True):
        study.tell(trial, value)
    (promoted,) = study.ask()
    assert study.best_trial.value == 7.0
    study.tell(promoted, 4.0)
    assert study.best_trial.id == promoted.id
    assert read_record(tmp_path / "run.jsonl").best.id == promoted.id
    assert study.observations.best_rows(3).tolist() == [promoted.id, 2, 0]  # of a configuration the largest budget


def test_a_first_result_of_a_larger_budget_is_an_improvement_and_a_better_one_of_a_smaller_is_none():
    study = Study(LINE, budget=EPOCHS, n_initial=100)
    for trial, value in zip(study.ask(3), (5.0, 7.0, 6.0), strict=True):
        study.tell(trial, value)
    assert study.observations.n_since_best == 2
    study.tell(study.ask()[0], 9.0)  # after three epochs
    assert study.observations.n_since_best == 0
    study.tell(study.ask()[0], 1.0)  # after one
    assert study.observations.n_since_best == 1
    assert study.best_trial.value == 9.0


def test_of_the_best_rows_feasible_ones_come_first_whatever_their_budget():
    observations = Observations(LINE, budget=EPOCHS)
    x, limits = [0.1, 0.2, 0.3, 0.4], [[1.0], [-1.0], [-1.0], [1.0]]
    observations.add({"x": x}, [0.0, 3.0, 2.0, 1.0], budgets=[27, 3, 1, 1], constraints=limits)
    assert observations.best_rows(4).tolist() == [1, 2, 0, 3]


@pytest.mark.slow
def test_a_search_by_budgets_finds_more_than_chance():
    space = SearchSpace({f"x{j}": Real(0, 1) for j in range(4)})  # on a line a Sobol sequence is hard to beat

    def bowl(params, trial):
        return sum((x - 0.3 - 0.05 / trial.budget) ** 2 for x in params.values())

    found = []
    for n_initial in (10, 1000):
        study = run(Study(space, budget=Budget("epochs", 1, 9), n_initial=n_initial, seed=0), 60, bowl)
        found.append(study.best_trial.value)
        assert study.best_trial.budget == 9
    assert found[0] < found[1] / 4


def test_trials_without_a_budget_are_graded_among_themselves():
    study = Study(LINE, labels=RungLabels(ValueGradedLabels()), n_initial=4)
    values = [3.0, 0.1, 2.0, 0.3, 1.0, 0.2]
    for trial, value in zip(study.ask(6), values, strict=True):
        study.tell(trial, Outcome(value, budget=1) if value < 1 else value)
    study.ask()  # pending, and so without one
    labels = RungLabels(ValueGradedLabels())(study.observations)
    graded = labels.z[:6].view(3, 2)
    assert torch.equal(graded[:, 0].argsort(), torch.tensor([0, 1, 2]))
    assert torch.equal(graded[:, 1].argsort(), torch.tensor([1, 2, 0]))
    assert graded.max(0).values.tolist() == [1, 1]
