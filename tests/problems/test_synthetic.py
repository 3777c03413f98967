"""Synthetic functions: closed forms, BoTorch's test functions, recorded optima."""

import json
import math
from pathlib import Path

import botorch.test_functions as oracle
import numpy as np
import pytest
import torch

import deepbore
from deepbore.errors import PointError, SettingError
from deepbore.problems import (
    Ackley,
    Branin,
    Forrester,
    Hartmann,
    Levy,
    Michalewicz,
    Rosenbrock,
    SineParabola,
    SixHumpCamel,
)
from deepbore.problems.benchmarks import synthetic

PEERS = Path(deepbore.__file__).parents[2] / "shared" / "bench" / "peers.json"

SYNTHETIC = {
    "branin": Branin,
    "camel": SixHumpCamel,
    "forrester": Forrester,
    "sine-parabola": SineParabola,
    "hartmann3": lambda: Hartmann(3),
    "hartmann6": lambda: Hartmann(6),
    "ackley10": lambda: Ackley(10),
    "rosenbrock5": lambda: Rosenbrock(5),
    "levy10": lambda: Levy(10),
    "levy20, shifted": lambda: Levy(20, seed=0),
    "michalewicz2": lambda: Michalewicz(2),
    "michalewicz5": lambda: Michalewicz(5),
    "michalewicz10": lambda: Michalewicz(10),
}

# where the literature has the minima
HARTMANN3 = [0.114614, 0.555649, 0.852547]

HARTMANN6 = [0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573]

MICHALEWICZ = [2.202906, 1.570796, 1.284992, 1.923058, 1.720470, 1.570796, 1.454414, 1.756087, 1.655717, 1.570796]

MINIMISERS = [
    ("branin", [-math.pi, 12.275]),
    ("branin", [math.pi, 2.275]),
    ("branin", [3 * math.pi, 2.475]),
    ("camel", [0.0898, -0.7126]),
    ("camel", [-0.0898, 0.7126]),
    ("forrester", [0.757249]),
    ("sine-parabola", [-0.3593945]),
    ("hartmann3", HARTMANN3),
    ("hartmann6", HARTMANN6),
    ("ackley10", [0.0] * 10),
    ("rosenbrock5", [1.0] * 5),
    ("levy10", [1.0] * 10),
    ("levy20, shifted", Levy(20, seed=0).lowest),
    ("michalewicz2", MICHALEWICZ[:2]),
    ("michalewicz5", MICHALEWICZ[:5]),
    ("michalewicz10", MICHALEWICZ),
]


def in_double_precision(hartmann):
    """BoTorch's constants are rounded to float32; they have one decimal, or two."""
    hartmann.A, hartmann.ALPHA = (c.double().round(decimals=2) for c in (hartmann.A, hartmann.ALPHA))
    return hartmann


BOTORCH = {
    "branin": oracle.Branin(),
    "camel": oracle.SixHumpCamel(),
    "hartmann3": in_double_precision(oracle.Hartmann(3)),
    "hartmann6": in_double_precision(oracle.Hartmann(6)),
    "ackley10": oracle.Ackley(10),
    "rosenbrock5": oracle.Rosenbrock(5),
    "levy10": oracle.Levy(10),
    "michalewicz5": oracle.Michalewicz(5),
}


def named(x):
    return {f"x{i}": float(value) for i, value in enumerate(x)}


@pytest.mark.parametrize(("name", "x"), MINIMISERS)
def test_known_minimisers_reach_the_optimum(name, x):
    problem = SYNTHETIC[name]()
    assert problem(named(x)) == pytest.approx(problem.optimum, abs=1e-6)


@pytest.mark.parametrize(("name", "x"), MINIMISERS)
def test_nothing_near_a_minimiser_beats_the_optimum(name, x):
    problem = SYNTHETIC[name]()
    steps = np.random.default_rng(0).normal(size=(4000, len(x))) * np.logspace(-8, -1, 4000)[:, None]
    assert problem.formula(np.array(x) + steps).min() >= problem.optimum - 1e-12


@pytest.mark.parametrize("name", SYNTHETIC)
def test_nothing_in_the_box_beats_the_optimum(name):
    problem = SYNTHETIC[name]()
    low, high = np.array([(p.low, p.high) for p in problem.space.parameters.values()]).T
    values = problem.formula(np.random.default_rng(0).uniform(low, high, size=(20_000, len(low))))
    assert values.shape == (20_000,)
    assert values.min() >= problem.optimum


@pytest.mark.parametrize("name", BOTORCH)
def test_values_and_boxes_are_botorchs(name):
    problem, reference = SYNTHETIC[name](), BOTORCH[name].double()
    params = problem.space.decode(problem.space.points.sample(50, torch.Generator().manual_seed(0)))
    x = torch.tensor([list(row.values()) for row in params], dtype=torch.float64)
    np.testing.assert_allclose([problem(row) for row in params], reference(x), rtol=1e-10, atol=1e-12)
    box = [(p.low, p.high) for p in problem.space.parameters.values()]
    np.testing.assert_allclose(box, reference.bounds.T)


def test_forrester_by_hand():
    x = 0.3
    assert Forrester()({"x0": x}) == pytest.approx((6 * x - 2) ** 2 * math.sin(12 * x - 4))


@pytest.mark.parametrize("name", ["branin", "camel", "hartmann3", "hartmann6", "ackley10", "rosenbrock5", "levy10"])
def test_optima_are_those_the_peers_were_measured_with(name):
    assert SYNTHETIC[name]().optimum == pytest.approx(recorded_optima()[name], abs=1e-5)  # rounded there


def test_formulas_take_any_batch_shape():
    x = np.random.default_rng(0).uniform(size=(3, 4, 6))
    for formula in (synthetic.hartmann, synthetic.ackley, synthetic.rosenbrock, synthetic.levy, synthetic.michalewicz):
        assert formula(x).shape == (3, 4)
        assert formula(x)[1, 2] == pytest.approx(float(formula(x[1, 2])), rel=1e-14)


def test_the_names_decide_not_their_order():
    assert Branin()({"x1": 2.0, "x0": 3.0}) == Branin()({"x0": 3.0, "x1": 2.0}) != Branin()({"x0": 2.0, "x1": 3.0})


@pytest.mark.parametrize("params", [{"x0": 0.0}, {"x0": 0.0, "x1": 0.0, "x2": 0.0}, {"x0": 0.0, "x1": 99.0}])
def test_a_configuration_outside_the_box_is_refused(params):
    with pytest.raises(PointError):
        Branin()(params)


@pytest.mark.parametrize(("kind", "dim"), [(Hartmann, 4), (Hartmann, 3.0), (Ackley, 0), (Rosenbrock, 1), (Levy, 2.5)])
def test_impossible_dimensions_are_refused(kind, dim):
    with pytest.raises(SettingError, match=r"dim .* but got"):
        kind(dim)


def recorded_optima():
    if not PEERS.exists():
        pytest.skip("the peers' results are not beside this checkout")
    return json.loads(PEERS.read_text())["optimum"]
