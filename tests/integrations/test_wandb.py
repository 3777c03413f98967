"""Sweeps of W&B, read as spaces; their package is not needed."""

import json
import math

import pytest

from deepbore import Categorical, Integer, Normal, Ordinal, Real, SearchSpace
from deepbore.cli.tune import fit_arguments
from deepbore.errors import SpaceError
from deepbore.integrations.wandb import from_sweep, sweep_in


def space_of(**parameters):
    return from_sweep({"method": "bayes", "parameters": parameters})


@pytest.mark.parametrize(
    ("declared", "parameter"),
    [
        ({"values": ["relu", "tanh"]}, Categorical(["relu", "tanh"])),
        ({"values": [16, 32, 64]}, Ordinal([16, 32, 64])),
        ({"values": [64, 16]}, Categorical([64, 16])),
        ({"values": [True, False]}, Categorical([True, False])),
        ({"values": ["a", "b"], "probabilities": [0.75, 0.25]}, Categorical(["a", "b"], prior=[0.75, 0.25])),
        ({"min": 0.5, "max": 2.0}, Real(0.5, 2)),
        ({"min": 1, "max": 9}, Integer(1, 9)),
        ({"min": 0, "max": 1.0}, Real(0, 1)),
        ({"distribution": "uniform", "min": 0, "max": 1}, Real(0, 1)),
        ({"distribution": "int_uniform", "min": 2, "max": 5}, Integer(2, 5)),
        ({"distribution": "q_uniform", "min": 0, "max": 1, "q": 0.25}, Real(0, 1, step=0.25)),
        ({"distribution": "log_uniform_values", "min": 1e-4, "max": 0.1}, Real(1e-4, 0.1, log=True)),
        ({"distribution": "log_uniform", "min": 0, "max": 2}, Real(1, math.exp(2), log=True)),
        ({"distribution": "q_log_uniform_values", "min": 2, "max": 64}, Integer(2, 64, log=True)),
        ({"distribution": "normal", "mu": 1.0, "sigma": 0.5}, Real(-1, 3, prior=Normal(1.0, 0.5))),
    ],
)
def test_each_distribution_has_its_parameter(declared, parameter):
    assert space_of(x=declared) == SearchSpace({"x": parameter})


def test_nested_names_are_joined_and_constants_are_left_out(tmp_path):
    path = tmp_path / "sweep.yaml"
    path.write_text(
        "program: train.py\nmethod: bayes\nmetric: {name: val_acc, goal: maximize}\nparameters:\n"
        "  epochs: {value: 3}\n  optimizer: {parameters: {lr: {min: 0.001, max: 0.1}, name: {values: [sgd, adam]}}}\n"
    )
    assert from_sweep(path).names == ["optimizer.lr", "optimizer.name"]
    found = sweep_in(path)
    assert (found.fixed, found.metric, found.direction) == ({"epochs": 3}, "val_acc", "maximize")


@pytest.mark.parametrize(
    ("sweep", "says"),
    [
        ({"method": "bayes"}, "must have parameters"),
        ({"parameters": {"x": {"value": 1}}}, "all are constant"),
        ({"parameters": {"x": 3}}, "must be a mapping, but x is 3"),
        ({"parameters": {"x": {"distribution": "inv_log_uniform", "min": 1, "max": 2}}}, "inv_log_uniform"),
        ({"parameters": {"x": {"distribution": "beta"}}}, "must be one of categorical"),
        ({"parameters": {"x": {"min": 1}}}, "'x' of a sweep, a uniform, is not complete: KeyError: 'max'"),
        ({"parameters": {"x": {"min": "a", "max": "b"}}}, "'x'"),
        ({"parameters": {"x": {"min": 5, "max": 1}}}, "x"),
        (
            {"parameters": {"x": {"distribution": "q_log_uniform_values", "min": 2, "max": 64, "q": 2}}},
            "no equal steps, but q=2; give values",
        ),
        ({"parameters": {"x": {"min": 1, "max": 2}}, "metric": {"goal": "most"}}, "minimize or maximize"),
    ],
)
def test_what_has_no_counterpart_is_refused_by_name(sweep, says):
    with pytest.raises(SpaceError, match=says):
        from_sweep(sweep)


@pytest.mark.parametrize("content", ["[" * 5000, "a: [", "3"])
def test_a_file_that_is_no_sweep_is_refused(content, tmp_path):
    (tmp_path / "sweep.yaml").write_text(content)
    with pytest.raises(SpaceError, match="sweep"):
        from_sweep(tmp_path / "sweep.yaml")
    with pytest.raises(SpaceError, match="sweep"):
        from_sweep(tmp_path / "missing.yaml")


def test_a_shell_takes_a_sweep_for_a_space(tmp_path):
    path = tmp_path / "sweep.yaml"
    path.write_text(
        "method: bayes\nmetric: {name: val_acc, goal: maximize}\n"
        "parameters: {model.lr: {min: 0.001, max: 0.1}, trainer.max_epochs: {value: 3}}\n"
    )
    given = fit_arguments(["--space", str(path), "--run", str(tmp_path / "run")])
    problem = json.loads(given[given.index("--problem") + 1])["init_args"]
    assert (problem["metric"], problem["direction"]) == ("val_acc", "maximize")
    assert problem["arguments"] == ["--trainer.max_epochs=3"]
    assert SearchSpace.from_dict(problem["space"]) == SearchSpace({"model.lr": Real(0.001, 0.1)})
    other = fit_arguments(["--space", str(path), "--metric", "loss", "--direction", "minimize"])
    problem = json.loads(other[other.index("--problem") + 1])["init_args"]
    assert (problem["metric"], problem["direction"]) == ("loss", "minimize")
