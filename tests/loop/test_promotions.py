"""Cheap fidelities: who is promoted, and when."""

import itertools
import math
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import assume, given, settings, strategies as st

import deepbore
from deepbore import (
    Budget,
    Categorical,
    ExecutorEvaluator,
    Outcome,
    ProcessEvaluator,
    Real,
    SearchSpace,
    SerialEvaluator,
    Study,
    minimize,
)
from deepbore.data.journal import Journal
from deepbore.data.observations import Observations, Status
from deepbore.data.replay import read_record, replay
from deepbore.errors import JournalError, SettingError, SpaceExhausted
from deepbore.evaluators import Timed
from deepbore.loop.promotions import Promotions
from plane import LINE, SQUARE
from rungs import EPOCHS, run


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
        assume(not study.suspicious)  # such a trial is not promoted
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
    continued = set(observations.ledger.notes.resumed.values())
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


# regression: each of these was wrong once
def test_budgets_of_a_study_without_any_are_the_same_in_one_call_and_in_two():
    study = Study(LINE)
    study.add({"x": [0.1]}, [1.0], budgets=1)
    study.add({"x": [0.2]}, [1.5])
    with pytest.raises(SettingError, match=r"several budgets \(1, 81\)"):
        study.add({"x": [0.3]}, [2.0], budgets=81)
    study.add({"x": [0.4]}, [2.0], budgets=81, task="another")
    assert len(study.trials) == 3


NINE_EPOCHS = Budget("epochs", 1, 9)


def go_on(study, n):
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, (trial.params["x"] - 0.3) ** 2)


def test_promoted_trials_count_once_in_the_design():
    study = Study(LINE, budget=NINE_EPOCHS, n_initial=6)
    go_on(study, 6)  # two of them again
    assert study.observations.n_distinct < 6
    assert study._state.n_missing > 0
    assert study.recommended == study.best_trial


def first_promoted(unit):
    """The configuration that is promoted first where nothing is feasible and the first constraint is in this unit."""
    study = Study(SQUARE, seed=0, budget=Budget("epochs", 1, 9), n_initial=6)
    for _ in range(16):
        (trial,) = study.ask()
        x, y = trial.params["x"], trial.params["y"]
        if trial.budget > 1:
            return x, y
        study.tell(trial, x, constraints=[unit * (1 + x), 2 - x + y])
    return None


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_the_unit_of_a_constraint_does_not_matter_to_promotions(unit):
    assert first_promoted(unit) == pytest.approx(first_promoted(1.0), abs=1e-6)


def test_promotions_of_one_call_are_written_at_once_or_not_at_all(tmp_path):
    study = Study(LINE, budget=NINE_EPOCHS, journal=tmp_path / "run.jsonl")
    for trial in study.ask(6):
        study.tell(trial, float(trial.id))
    journal = study.observations.journal
    write_all, calls = journal.append, []

    def full_from_the_second_on(events):
        calls.append(events)
        if len(calls) > 1:
            raise JournalError("disk full")
        write_all(events)

    journal.append = full_from_the_second_on
    assert [(trial.params, trial.budget) for trial in study.ask(2)] == [(study.trials[k].params, 3) for k in (0, 1)]


def test_a_trial_that_reports_goes_on_itself_whoever_waits_to_be_promoted(tmp_path):
    path = tmp_path / "run.jsonl"
    study = Study(LINE, budget=NINE_EPOCHS, journal=path)
    *told, good, bad = study.ask(8)
    for trial in told:
        study.tell(trial, float(trial.id))
    study.ask(2)  # trials 0 and 1 go on
    study.close()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2]))  # it died before the journal had it
    loaded = Study.load(path)
    assert not loaded.report(bad.id, 9.0, step=1)
    assert loaded.report(good.id, -1.0, step=1)
    assert loaded.trials[-1].resume_from.id == good.id
    assert [trial.resume_from.id for trial in loaded.ask(2)] == [0, 1]


def test_a_promotion_takes_nothing_off_the_queue(tmp_path):
    path = tmp_path / "run.jsonl"
    study = Study(LINE, budget=NINE_EPOCHS, journal=path)
    trials = study.ask(3)
    for trial in trials[:2]:
        study.report(trial, 1.0 + trial.id, step=1)
    study.enqueue(trials[2].params)
    assert study.report(trials[2], 0.0, step=1)  # goes on
    study.close()
    assert len(replay(Journal(path)).queue) == len(read_record(path).queue) == 1
    (trial,) = Study.load(path).ask()
    assert (trial.params, trial.budget) == (trials[2].params, 1)


def place(params):
    return params["x"]


def place_after(params, trial):
    return params["x"] + 1 / trial.budget


def test_budgets_are_refused_where_the_objective_within_an_evaluator_never_hears_of_them(tmp_path):
    with ThreadPoolExecutor(1) as thread:
        deaf = [SerialEvaluator(place), ExecutorEvaluator(place, thread), ProcessEvaluator(place)]
        for evaluator in [*deaf, Timed(SerialEvaluator(place), tmp_path / "times")]:
            with pytest.raises(SettingError, match=r"objective\(params, trial\)"):
                minimize(evaluator, LINE, 8, budget=NINE_EPOCHS)
            with pytest.raises(SettingError, match="takes the configuration alone"):
                Study(LINE, budget=NINE_EPOCHS).optimize(evaluator, 8)
        result = minimize(ExecutorEvaluator(place_after, thread), LINE, 8, budget=NINE_EPOCHS, seed=0)
    assert result.study.best_trial.budget == 3


def test_trials_with_other_values_than_the_fixed_ones_are_not_promoted():
    space = SearchSpace({"x": Real(0, 1), "o": Categorical(["a", "b"])})
    study = Study(space, budget=NINE_EPOCHS, seed=0, n_initial=40)
    for trial in study.ask(12):
        assert not study.report(trial, trial.id + 100 * (trial.params["o"] == "b"), step=1) or trial.id == 2
    study.fix({"o": "b"})
    later = study.ask(6)
    assert {trial.params["o"] for trial in later} == {"b"}
    study.fix({})
    assert study.ask()[0].resume_from.params["o"] == "a"


def test_a_step_is_at_its_rung_however_the_rung_is_rounded():
    study = Study(LINE, budget=Budget("share", 0.1, 0.9), n_initial=3, seed=0)
    for trial in study.ask(3):
        for step in (0.1, 0.3, 0.9):
            if not study.report(trial, 1 - step - trial.id / 100, step=step):
                break
    told = {trial.budget: trial.value for trial in study.trials if trial.params == study.trials[2].params}
    assert list(told.values()) == pytest.approx([0.88, 0.68])
