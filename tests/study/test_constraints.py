"""Runs with black-box constraints, and what is shown of them."""

import json
import math

import numpy as np
import pytest
import torch
from scipy import optimize

from constrained import disc, fitted, go_on, some_rows
from deepbore import Outcome, Real, SearchSpace, Study
from deepbore.cli.inspect import summary
from deepbore.data.events import Corrected
from deepbore.data.replay import read_record
from deepbore.errors import ValueTypeError
from deepbore.loop.state import load
from deepbore.loop.stopping import ExpectedImprovementBelow, TargetReached
from deepbore.plots.history_chart import history
from deepbore.plots.page.page import report
from deepbore.study.study import Result
from plane import SQUARE

# --- runs ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_finds_the_best_feasible_point():
    study = go_on(Study(SQUARE, seed=0, n_initial=8), disc, 20)
    assert study.best_trial.value < 0.33
    assert Outcome(0, study.best_trial.constraints).is_feasible
    assert study.recommended.value < 0.35
    assert Result.of(study).best_value == study.best_trial.value


@pytest.mark.slow
def test_while_nothing_is_feasible_the_search_is_for_something_that_is():
    def narrow(params):
        away = math.hypot(params["x"] - 0.62, params["y"] - 0.23)
        return Outcome(-params["x"], constraints=[away - 0.03])  # 0.3 % of the square

    study = go_on(Study(SQUARE, seed=1, n_initial=8), narrow, 30)
    assert not study.observations.feasible[:8].any()
    assert study.observations.feasible.any()


def test_batches_and_workers_that_come_and_go():
    study = Study(SQUARE, seed=3, n_initial=6)
    pending = study.ask(6)
    for _ in range(8):  # asynchronous: tell the oldest, ask for another
        study.tell(pending[0], disc(pending[0].params))
        pending = [*pending[1:], *study.ask(1)]
    for trial in pending:
        study.tell(trial, disc(trial.params).values[0], constraints=disc(trial.params).constraints)
    study.optimize(disc, 6, batch_size=3)
    assert study.observations.ledger.statistics.n_complete == 20
    assert study.best_trial.value < 0.45


@pytest.mark.slow
@pytest.mark.parametrize("moments", [(5, 8)])
def test_a_run_goes_on_bit_for_bit(tmp_path, moments):
    whole = Study(SQUARE, seed=4, n_initial=5, journal=tmp_path / "a.jsonl")
    part = Study(SQUARE, seed=4, n_initial=5, journal=tmp_path / "b.jsonl")
    for k in range(11):
        go_on(whole, disc, 1)
        go_on(part, disc, 1)
        if k in moments:
            part.close()
            part = Study.load(tmp_path / "b.jsonl")
    assert torch.equal(part.observations.points, whole.observations.points)
    assert torch.equal(part.observations.constraints, whole.observations.constraints)
    kept = load(part.observations.journal)["state"]["feasibility"]
    assert set(kept) == {0, 1}


def test_without_constraints_the_snapshot_says_nothing_of_them(tmp_path):
    study = go_on(Study(SQUARE, n_initial=3, journal=tmp_path / "run.jsonl"), lambda params: params["x"], 5)
    assert "feasibility" not in load(study.observations.journal)["state"]
    events = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert not any("constraints" in event for event in events)


def test_stop_rules_heed_constraints():
    def outside(params):
        return Outcome(-params["x"], constraints=[1.0 + params["x"]])

    rules = [TargetReached(-0.01), ExpectedImprovementBelow(0.99, proposals=1)]
    study = Study(SQUARE, seed=0, n_initial=5)
    study.optimize(outside, 8, stop_when=rules)  # values that low are there, but none is feasible
    assert study.observations.ledger.statistics.n_complete == 8
    study = Study(SQUARE, seed=0, n_initial=5)
    study.optimize(disc, 12, stop_when=rules[1])
    assert study.observations.ledger.statistics.n_complete < 12


def test_a_coreset_of_many_rows_keeps_the_cost_flat():
    observations = some_rows(600)
    feasibility, _ = fitted(observations)
    assert feasibility._models[0].get_extra_state()["x"].shape[0] == 200
    points = SQUARE.points.sobol(200, seed=3)
    said = feasibility.log_probability(points) > math.log(0.5)
    kept = torch.tensor([disc(each).is_feasible for each in SQUARE.decode(points)])
    assert (said == kept).float().mean() > 0.95


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"value": Outcome(1.0), "constraints": [1]}, "constraints are given with a value"),
        ({"failed": True, "constraints": [1]}, "constraints are given with a value"),
        ({"value": 1.0}, "number of constraints must be 1"),
        ({"value": 1.0, "constraints": [1, 2]}, "number of constraints must be 1"),
        ({"value": 1.0, "constraints": ["a"]}, "a constraint must be a number"),
        ({"constraints": [1.0]}, "an objective value must be a number"),
    ],
)
def test_what_is_told_wrongly_is_refused(told, message):
    study = Study(SQUARE)
    first, second = study.ask(2)
    study.tell(first, 1.0, constraints=np.array([0.5]))
    with pytest.raises(ValueTypeError, match=message):
        study.tell(second, **told)
    study.tell(second, 1.0, constraints=[-0.5])
    assert study.best_trial.id == second.id


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_the_search_follows_the_border_to_where_two_of_them_meet(seed):
    normals = np.array([[1, 2, 3, -1, 2], [2, -1, 1, 2, 1]])
    space = SearchSpace({f"x{i}": Real(0, 1) for i in range(5)})

    def objective(params):
        x = np.array(list(params.values()))
        return Outcome(float(x @ x), constraints=(1 - normals @ x).tolist())

    limits = {"type": "ineq", "fun": lambda x: normals @ x - 1}
    optimum = optimize.minimize(lambda x: x @ x, np.full(5, 0.5), bounds=[(0, 1)] * 5, constraints=limits).fun
    study = go_on(Study(space, seed=seed), objective, 40)
    assert optimum <= study.best_trial.value < optimum + 5e-4


# --- what is shown ---------------------------------------------------------------------------------------------------


@pytest.fixture
def journal(tmp_path):
    """A run of five trials whose best value is infeasible."""
    path = tmp_path / "run.jsonl"
    study = Study(SQUARE, journal=path)
    for trial, (value, constraint) in zip(
        study.ask(5), [(3.0, -1.0), (1.0, 2.0), (2.0, -1.0), (4.0, 0.0), (0.5, 1.0)], strict=True
    ):
        study.tell(trial, value, constraints=[constraint])
    study.close()
    return path


@pytest.mark.parametrize("read", [Study.load, read_record], ids=["study", "record"])
def test_the_best_so_far_is_feasible_in_pictures(journal, read):
    axes = history(read(journal)).axes[0]
    (line,) = (each for each in axes.lines if each.get_label() == "best so far")
    x, y = line.get_data()  # where it changes
    assert [y[np.searchsorted(x, trial, side="right") - 1] for trial in range(5)] == [3.0, 3.0, 2.0, 2.0, 2.0]
    marks = {each.get_label(): each.get_offsets()[:, 1].tolist() for each in axes.collections}
    assert marks["infeasible"] == [1.0, 0.5]


def test_the_page_and_the_summary_of_a_run_count_what_is_feasible(journal, capsys):
    page = report(read_record(journal))
    assert "3 of 5" in page
    assert "2 in trial 2" in page
    record = read_record(journal)
    assert summary(record).startswith("best value 2 in trial 2")
    for row in range(5):
        Corrected(row, Outcome(1.0, constraints=[1.0])).stage(record)()
    assert summary(record) == "no feasible value yet (5 trials)"
