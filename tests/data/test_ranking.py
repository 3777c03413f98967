"""What is best: feasible first, fronts and hypervolumes, rungs, and tau."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from botorch.utils.multi_objective.hypervolume import Hypervolume
from hypothesis import given, strategies as st

import deepbore as db
from deepbore import Budget, Outcome, Study, plots
from deepbore.cli.main import main
from deepbore.data.array_ranking import best_and_tau, crowding, hypervolume, non_dominated
from deepbore.data.observations import Observations
from deepbore.data.replay import read_record
from deepbore.loop.metrics import progress
from deepbore.plots.page.curves import history_section
from plane import LINE, SQUARE
from rungs import EPOCHS


def test_the_best_trial_is_that_of_the_largest_budget(tmp_path):
    study = Study(LINE, budget=EPOCHS, direction="maximize", journal=tmp_path / "run.jsonl")
    for trial, value in zip(study.ask(3), (5.0, 7.0, 6.0), strict=True):
        study.tell(trial, value)
    (promoted,) = study.ask()
    assert study.best_trial.value == 7.0
    study.tell(promoted, 4.0)
    assert study.best_trial.id == promoted.id
    assert read_record(tmp_path / "run.jsonl").best.id == promoted.id
    assert study.observations.centres.best_rows(3).tolist() == [
        promoted.id,
        2,
        0,
    ]  # of a configuration the largest budget


def test_a_first_result_of_a_larger_budget_is_an_improvement_and_a_better_one_of_a_smaller_is_none():
    study = Study(LINE, budget=EPOCHS, n_initial=100)
    for trial, value in zip(study.ask(3), (5.0, 7.0, 6.0), strict=True):
        study.tell(trial, value)
    assert study.observations.ledger.ranking.n_since_best == 2
    study.tell(study.ask()[0], 9.0)  # after three epochs
    assert study.observations.ledger.ranking.n_since_best == 0
    study.tell(study.ask()[0], 1.0)  # after one
    assert study.observations.ledger.ranking.n_since_best == 1
    assert study.best_trial.value == 9.0


def test_of_the_best_rows_feasible_ones_come_first_whatever_their_budget():
    observations = Observations(LINE, budget=EPOCHS)
    x, limits = [0.1, 0.2, 0.3, 0.4], [[1.0], [-1.0], [-1.0], [1.0]]
    observations.add({"x": x}, [0.0, 3.0, 2.0, 1.0], budgets=[27, 3, 1, 1], constraints=limits)
    assert observations.centres.best_rows(4).tolist() == [1, 2, 0, 3]


def test_best_and_tau_take_a_schedule():
    best, tau = best_and_tau(np.array([3.0, np.nan, 1.0, 2.0, 0.0]), lambda n: 0.5)
    assert best.tolist() == [3, 3, 1, 1, 0]
    assert tau.tolist() == [3, 3, 1, 2, 1]


SMALL = [0, 1, 2, 3]

tables = st.integers(1, 4).flatmap(
    lambda k: st.lists(st.lists(st.sampled_from(SMALL), min_size=k, max_size=k), min_size=1, max_size=12)
)


def beats(one, other):
    return all(a <= b for a, b in zip(one, other, strict=True)) and one != other


@given(tables)
def test_the_front_is_what_no_row_beats(rows):
    expected = [not any(beats(other, row) for other in rows) for row in rows]
    assert non_dominated(np.array(rows, dtype=float)).tolist() == expected


@given(tables)
def test_the_hypervolume_counts_the_cells_that_some_row_dominates(rows):
    k = len(rows[0])
    cells = np.stack(np.meshgrid(*[SMALL] * k, indexing="ij"), -1).reshape(-1, k)
    dominated = sum(any(all(a <= b for a, b in zip(row, cell, strict=True)) for row in rows) for cell in cells)
    assert hypervolume(np.array(rows, dtype=float), [4.0] * k) == dominated


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_hypervolume_is_that_of_botorch(k):
    values = torch.rand(40, k, generator=torch.Generator().manual_seed(k), dtype=torch.float64)
    reference = torch.full((k,), 0.9, dtype=torch.float64)
    inside = values[(values < reference).all(-1)]
    inside = inside[torch.from_numpy(non_dominated(inside.numpy()))]
    assert hypervolume(values.numpy(), reference.numpy()) == pytest.approx(Hypervolume(-reference).compute(-inside))


def test_the_ends_of_a_front_have_the_most_room():
    room = crowding(np.array([[0.0, 4.0], [1.0, 3.0], [2.0, 0.5], [4.0, 0.0]]))
    assert room[[0, 3]].tolist() == [math.inf] * 2
    assert room[1] == pytest.approx(2 / 4 + 3.5 / 4)
    assert room[2] == pytest.approx(3 / 4 + 3 / 4)


ELSEWHERE = np.linspace(0, 0.9, 30)


def with_one(value: float, times: int) -> Observations:
    """Thirty configurations, and one that has been evaluated so many times (NaN: it fails)."""
    observations = Observations(LINE)
    observations.add({"x": [*ELSEWHERE, *[1.0] * times]}, [*ELSEWHERE, *[value] * times])
    return observations


# regression: each of these was wrong once
def test_the_best_rows_are_distinct_configurations():
    observations = with_one(-1.0, 25)
    assert observations.points[observations.centres.best_rows(4), 0].tolist() == pytest.approx([1, *ELSEWHERE[:3]])
    assert len(observations.centres.best_rows(100)) == 31


def test_a_front_of_thousands_takes_no_pairs():
    a = np.random.default_rng(0).permutation(3000) / 3000
    study = Study(LINE, directions=["minimize", "minimize"])
    study.add({"x": np.linspace(0, 1, 3001)}, np.stack([[*a, 0.5], [*(1 - a), 0.6]], axis=-1))
    front = study.pareto_front
    assert [trial.values[0] for trial in front] == sorted(a)
    assert 3000 not in {trial.id for trial in front}


def test_only_feasible_rows_may_be_the_best_beside_an_earlier_task(monkeypatch):
    seen = []
    learn = db.KernelPLS.learn
    monkeypatch.setattr(db.KernelPLS, "learn", lambda self, batch: seen.append(batch) or learn(self, batch))
    study = db.Study(SQUARE, seed=0, classifier=db.KernelPLS(noisy=True), n_initial=4)
    x = np.linspace(0.05, 0.95, 12)
    study.add({"x": x, "y": x[::-1].copy()}, ((x - 0.3) ** 2).tolist(), task="earlier")
    for row in range(8):
        (trial,) = study.ask()
        study.tell(trial, (trial.params["x"] - 0.3) ** 2, constraints=[1.0 if row % 2 else -1.0])
    study.ask()
    batch = next(batch for batch in reversed(seen) if batch.n_earlier)
    assert batch.constraints[: batch.n_earlier].isnan().all()
    assert len(batch.constraints) == len(batch)
    assert batch.constraints[batch.n_earlier :].isfinite().any()


def test_observations_of_a_part_know_their_best():
    observations = Observations(SQUARE)
    observations.add({"x": [0.1, 0.2, 0.3], "y": [0.0, 0.0, 0.0]}, [3.0, 1.0, 2.0])
    assert observations.part(torch.tensor([0, 2])).best.value == 2.0


NINE_EPOCHS = Budget("epochs", 1, 9)


@pytest.mark.parametrize("n_initial", [1, 20])
def test_with_a_budget_all_speak_of_the_same_trial(n_initial):
    study = Study(LINE, budget=NINE_EPOCHS, n_initial=n_initial)
    study.add({"x": [0.1, 0.2]}, [0.1, 0.5], budgets=[1, 9])
    assert study.best_trial.id == 1
    assert study.recommended.id == 1
    assert [trial.id for trial in study.pareto_front] == [1]


def test_without_a_feasible_trial_the_front_is_empty():
    study = Study(LINE)
    (trial,) = study.ask()
    study.tell(trial, 1.0, constraints=[1.0])
    assert study.pareto_front == []


def test_with_a_budget_the_least_violation_comes_first_while_nothing_is_feasible():
    found = []
    for budget in (None, NINE_EPOCHS):
        study = Study(LINE, budget=budget)
        for trial, violation in zip(study.ask(3), [3.0, 1.0, 2.0], strict=True):
            study.tell(trial, 0.0, constraints=[violation])
        found.append(study.observations.centres.best_rows(3).tolist())
    assert found == [[1, 2, 0]] * 2


def test_of_equal_values_the_first_trial_is_the_best_whatever_the_order_of_telling(tmp_path):
    study = Study(LINE, journal=tmp_path / "run.jsonl")
    first, second = study.ask(2)
    study.tell(second, 1.0)
    study.tell(first, 1.0)
    assert study.best_trial.id == read_record(tmp_path / "run.jsonl").best.id == 0


def run_here(*args):
    return main([*map(str, args)])


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_without_a_budget_all_speak_of_the_same_best_whatever_outcomes_say_of_theirs(empty_folder, capsys, direction):
    study = Study(LINE, journal="run.jsonl", direction=direction)
    sign = 1 if direction == "minimize" else -1
    for trial, value, budget in zip(study.ask(3), [1.0, 5.0, 7.0], [1, 9, 3], strict=True):
        study.tell(trial, Outcome(sign * value, budget=budget))
    assert study.best_trial.value == sign
    assert run_here("compare", "run.jsonl") == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["run", "1", "3", str(sign)]
    record = read_record(Path("run.jsonl"))
    for run in (study, record):
        (line,) = (each for each in plots.history(run).axes[0].lines if each.get_label() == "best so far")
        assert set(line.get_ydata()) == {sign}
    (steps,) = (trace for trace in history_section(record).charts[0].data if trace.get("name") == "best so far")
    assert set(steps["y"]) == {sign}


def test_an_earlier_task_makes_no_front_feasible():
    study = Study(SQUARE, directions=["minimize", "minimize"], seed=0)
    study.add({"x": [0.1, 0.9], "y": [0.1, 0.5]}, [[1, 2], [2, 1]], task="old")
    for trial in study.ask(6):
        study.tell(trial, [trial.params["x"], trial.params["y"]], constraints=[1.0])
    assert study.pareto_front == []
    assert progress(study.observations)["hypervolume"] == 0
