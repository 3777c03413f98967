"""Problems under black-box constraints, and the peers of the benchmark that are told them."""

import itertools

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from deepbore import Outcome, Real, SearchSpace
from deepbore.problems import Coco, DigitsUnderLimit, PressureVessel, Problem, WeldedBeam, suites
from deepbore.testing import check_problem
from harness.job import Job
from harness.ledger import Ledger
from harness.running import optimise
from peers import methods

FEW = {"learning_rate": 0.01, "width": 16, "depth": 1, "dropout": 0.0, "weight_decay": 1e-6, "optimizer": "adam"}


@pytest.mark.slow
def test_no_vessel_costs_less_than_the_optimum():
    vessel = PressureVessel()
    costs = []
    for shell, ends in itertools.product(range(1, 30), repeat=2):
        thickest = min(0.0625 * shell / 0.0193, 0.0625 * ends / 0.00954)  # radius that both plates bear
        for radius in np.linspace(0.8, 1, 41) * thickest:
            length = (1_296_000 - 4 / 3 * np.pi * radius**3) / (np.pi * radius**2)
            if radius >= 10 and 10 <= length <= 240:
                params = {"shell": shell, "ends": ends, "radius": float(radius), "length": float(length)}
                outcome = vessel(params)
                assert max(outcome.constraints) < 1e-6
                costs.append(outcome.values[0])
    assert min(costs) == pytest.approx(vessel.optimum, rel=1e-11)


def test_no_beam_costs_less_than_the_optimum():
    beam = WeldedBeam()
    bounds = [(parameter.low, parameter.high) for parameter in beam.space.parameters.values()]

    def evaluated(x):
        return beam(dict(zip(beam.space.parameters, np.clip(x, *np.transpose(bounds)).tolist(), strict=True)))

    kept = {"type": "ineq", "fun": lambda x: -np.array(evaluated(x).constraints) / [1e4, 1e4, 1, 1, 1e4]}
    starts = ([0.3, 3.0, 8.0, 0.3], [1.0, 5.0, 5.0, 1.0], [0.2, 5.0, 9.0, 0.5])
    ends = [minimize(lambda x: evaluated(x).values[0], start, bounds=bounds, constraints=kept) for start in starts]
    assert min(end.fun for end in ends if end.success) == pytest.approx(beam.optimum, rel=1e-5)


def test_the_size_of_a_network_is_that_of_torch():
    network = torch.nn.Sequential(torch.nn.Linear(64, 16), torch.nn.Linear(16, 16), torch.nn.Linear(16, 10))
    weights = sum(each.numel() for each in network.parameters())
    outcome = DigitsUnderLimit(limit=1000, epochs=1)({**FEW, "depth": 2})
    assert outcome.constraints == (weights / 1000 - 1,)
    assert 0.1 < outcome.values[0] <= 1


@pytest.mark.parametrize("function", [1, 8, 27])
def test_constrained_functions_are_cocos(function, tmp_path, monkeypatch):
    cocoex = pytest.importorskip("cocoex")
    ours = Coco("bbob-constrained", function, 2, 5)
    suite = cocoex.Suite("bbob-constrained", "instances: 2", f"function_indices: {function} dimensions: 5")
    theirs = suite.get_problem(0)
    others = [Coco("bbob-constrained", other, 1, 2) for other in (3, 30)]  # a suite that moves on frees its problems
    for params in ours.space.decode(ours.space.sample(3, torch.Generator().manual_seed(0))):
        x = list(params.values())
        outcome = ours(params)
        assert outcome.values == (float(theirs(x)),)
        assert outcome.constraints == tuple(theirs.constraint(x))
    monkeypatch.chdir(tmp_path)  # where COCO writes
    theirs._best_parameter("print")
    best = np.loadtxt("._bbob_problem_best_parameter.txt")
    assert max(theirs.constraint(best)) <= 1e-12
    assert ours.optimum == float(theirs(best)) < outcome.values[0]
    assert ours.constraints == theirs.number_of_constraints == len(outcome.constraints)
    assert ours(dict.fromkeys(params, 0.0)).is_feasible == (max(theirs.constraint(np.zeros(5))) <= 0)
    check_problem(others[0])


def test_every_design_has_a_name():
    assert suites.suite("designs") == ["pressure-vessel", "welded-beam", "digits-under-limit"]
    made = [suites.problem(name) for name in suites.suite("designs")]
    assert all(isinstance(problem, Problem) and problem.constraints for problem in made)
    assert suites.suite("bbob-constrained", dimensions=[2], instances=[1])[-1] == "bbob-constrained/f54/i01/d02"


# --- peers ------------------------------------------------------------------------------------------------------------


class Ramp(Problem):
    """x, at least 0.4."""

    space = SearchSpace({"x": Real(0, 1)})
    constraints = 1
    optimum = 0.4

    def __call__(self, params):
        return Outcome(params["x"], constraints=[0.4 - params["x"]])


@pytest.mark.parametrize("name", ["deepbore", "optuna-tpe", "optuna-gp", "botorch"])
def test_a_peer_that_knows_constraints_comes_near_the_border(name):
    pytest.importorskip({"optuna-tpe": "optuna", "optuna-gp": "optuna", "botorch": "botorch"}.get(name, "torch"))
    problem = Ramp()
    ledger = Ledger(problem)
    peer = methods.make(name, problem.space, 0, n_initial=5, constrained=True)
    optimise(peer, ledger, Job("ramp", name, 0, 30 if name == "optuna-tpe" else 10))
    assert all(value >= 0.4 for _, value in ledger.best)
    assert ledger.best[-1][1] < (0.5 if name == "optuna-tpe" else 0.42)
    assert ledger.failed == 0


def test_to_a_peer_that_knows_none_what_is_infeasible_has_failed():
    peer = methods.make("random", Ramp.space, 0)
    ledger = Ledger(Ramp())
    optimise(peer, ledger, Job("ramp", "random", 0, 20))
    assert [value is None for value in peer.values] == [params["x"] < 0.4 for params in peer.params]
    assert ledger.failed == 0
