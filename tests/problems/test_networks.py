"""Small networks trained by torch: deterministic or noisy, without a trace in global random state."""

import math

import pytest
import torch

from deepbore.errors import PointError, SettingError
from deepbore.problems import NetworkRun, suites
from deepbore.problems.benchmarks.networks import TASKS
from deepbore.problems.benchmarks.networks.data import DATA, load
from deepbore.problems.benchmarks.networks.training import factor

GOOD = {"lr": 1e-2, "weight_decay": 1e-4}


def test_there_are_sixteen_tasks_or_more_half_of_them_kept_aside():
    names = suites.suite("networks", half="all")
    assert len(names) == len(TASKS) >= 16
    halves = [
        suites.suite(name, half=half) for name in ("networks", "networks-noisy") for half in ("development", "held_out")
    ]
    assert {len(half) for half in halves} == {len(names) // 2}
    bare = [[name.partition("/")[2] for name in half] for half in halves]
    assert bare[:2] == bare[2:]


def test_tasks_have_two_to_fifteen_parameters_with_branches_and_without():
    sizes = {name: len(NetworkRun(name).space) for name in TASKS}
    assert min(sizes.values()) == 2
    assert max(sizes.values()) == 15
    conditional = [NetworkRun(name).space.points.is_conditional for name in TASKS]
    assert sum(conditional) >= 8
    assert len(TASKS) - sum(conditional) >= 6


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_every_task_can_be_run(name):
    problem = NetworkRun(name)
    points = problem.space.points.sobol(3, seed=1)
    values = [problem(params) for params in problem.space.decode(points)]
    assert sum(math.isfinite(value) for value in values) >= 2
    assert len(set(values)) >= 2


def test_without_noise_a_value_is_the_same_again_and_leaves_global_state_alone():
    problem = NetworkRun("rate-digits")
    torch.manual_seed(3)
    first = problem(GOOD)
    drawn = torch.rand(3)
    torch.manual_seed(4)
    assert problem(GOOD) == NetworkRun("rate-digits")(GOOD) == problem.true_value(GOOD) == first
    torch.manual_seed(3)
    assert torch.equal(torch.rand(3), drawn)
    assert NetworkRun("rate-digits", seed=1)(GOOD) != first


def test_with_noise_each_evaluation_differs_and_a_run_can_be_repeated():
    one, again = (NetworkRun("rate-digits", noisy=True, seed=2) for _ in range(2))
    values = [one(GOOD) for _ in range(2)]
    assert values[0] != values[1]
    assert values == [again(GOOD) for _ in range(2)]
    assert NetworkRun("rate-digits", noisy=True, seed=3)(GOOD) not in values
    expected = sum(NetworkRun("rate-digits").trained(GOOD, seed) for seed in range(4)) / 4
    assert one.true_value(GOOD) == again.true_value(GOOD) == pytest.approx(expected)
    noisy = suites.problem("networks-noisy/rate-digits", seed=2)
    assert noisy(GOOD) == values[0]


def test_a_rate_that_is_too_high_diverges():
    value = NetworkRun("descent-moons")({"lr": 10.0, "momentum": 0.99, "width": 128, "batch_size": 16})
    assert not value < 1  # NaN, or a large loss


def test_early_stopping_gives_the_best_measure():
    at = {"lr": 0.1, "weight_decay": 1e-6, "width": 128, "dropout": 0.0}
    problem = NetworkRun("perceptron-wine")
    assert problem({**at, "patience": 20}) <= problem({**at, "patience": 1})


@pytest.mark.parametrize("inference", [True, False])
def test_it_trains_where_the_caller_has_no_gradients(inference):
    with torch.inference_mode(inference), torch.no_grad():
        assert NetworkRun("rate-digits")(GOOD) == NetworkRun("rate-digits")(GOOD)


@pytest.mark.parametrize("name", DATA)
def test_a_third_of_the_rows_is_held_out(name):
    data = load(name)
    total = len(data.x) + len(data.held_x)
    assert len(data.held_x) == pytest.approx(total / 3, abs=1)
    assert len(data.y) == len(data.x)
    for each in (data.x, data.held_x, data.y, data.held_y):
        assert not each.is_floating_point() or bool(each.isfinite().all())
    if not data.y.is_floating_point():
        assert int(max(data.y.max(), data.held_y.max())) < data.outputs
    else:
        assert data.y.shape[1] == data.outputs


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, [1, 1, 1]),
        ({"schedule": "cosine", "floor": 0.2}, [1, 0.6, 0.2]),
        ({"schedule": "steps", "gamma": 0.1, "drops": 2}, [1, 0.1, 0.01]),
        ({"schedule": "exponential", "end": 0.01}, [1, 0.1, 0.01]),
        ({"warmup": 0.8}, [0.0125, 0.625, 1]),
    ],
)
def test_schedules_begin_at_one(params, expected):
    assert [factor(params, done) for done in (0, 0.5, 1)] == pytest.approx(expected)


def test_what_is_no_task_or_configuration_is_refused():
    with pytest.raises(SettingError):
        NetworkRun("digits")
    with pytest.raises(SettingError):
        NetworkRun("rate-digits", seed=-1)
    with pytest.raises(PointError):
        NetworkRun("rate-digits")({"lr": 1e-2})
