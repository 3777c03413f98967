"""What YAML says: words are words, also on, off, yes and no, and no key stands twice."""

import json
import os
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, strategies as st

from commands import BRANIN
from deepbore import SearchSpace, Study
from deepbore.cli.config import NUMBER, dump_yaml, load_yaml
from deepbore.cli.main import main
from deepbore.cli.tune import fit_arguments


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[on, off, yes, No, y]", ["on", "off", "yes", "No", "y"]),
        ("[true, False]", [True, False]),
        ("[1e-3, 1.0e-3, .5, 2., -1.5E+3]", [1e-3, 1e-3, 0.5, 2.0, -1500.0]),
        ("[1, -3, 1_000, 0x1F]", [1, -3, 1000, 31]),
        ("[2020-01-01, 1.2.3, ., '5', e5, ~, null]", ["2020-01-01", "1.2.3", ".", "5", "e5", None, None]),
        ("{inf: .inf, minus: -.inf}", {"inf": float("inf"), "minus": float("-inf")}),
        (json.dumps({"on": ["on", True, 1e-5]}), {"on": ["on", True, 1e-5]}),
    ],
)
def test_what_a_text_says(text, value):
    assert load_yaml(text) == value
    assert repr(load_yaml(text)) == repr(value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.from_regex(NUMBER),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1), inner, max_size=3),
        max_leaves=8,
    )
)
@example({"\x85": ["\u2028 ", "größer"]})
def test_what_is_dumped_is_read_as_it_was(data):
    assert repr(load_yaml(dump_yaml(data))) == repr(data)


def test_it_loads_plain_data_only():
    with pytest.raises(yaml.YAMLError):
        load_yaml("!!python/object/apply:os.getcwd []")


SPACE = "{mode: {type: categorical, choices: [on, off]}, x: {type: real, low: 1e-5, high: 1, log: true}}"


def test_words_of_a_space_to_tune_stay_words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("space.yaml").write_text(SPACE)
    _, problem, *_ = fit_arguments(["--space", "space.yaml", "--metric", "loss"])
    assert json.loads(problem)["init_args"]["space"]["mode"]["choices"] == ["on", "off"]


PROBLEM = """
problem:
  class_path: deepbore.problems.FunctionProblem
  init_args: {{function: my_switch.objective, space: {space}}}
"""


@pytest.mark.slow
def test_words_of_a_run_reach_the_objective_and_come_back_from_its_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("my_switch.py").write_text(
        "def objective(params):\n    return {'on': 0, 'off': 1}[params['mode']] + params['x']\n"
    )
    Path("mine.yaml").write_text(PROBLEM.format(space=SPACE))
    assert main(["fit", "--config", "mine.yaml", "--loop.n_trials", "4", "--run", "run"]) == 0
    assert main(["fit", "--resume", "run", "--loop.n_trials", "6"]) == 0
    study = Study.load("run/journal.jsonl")
    assert study.observations.ledger.statistics.n_complete == 6
    assert {trial.params["mode"] for trial in study.trials} == {"on", "off"}


# regression: YAML `choices: [on, off]` become booleans
def test_c10_words_stay_words():
    from deepbore.cli.config import load_yaml

    declared = load_yaml("mode: {type: categorical, choices: [on, off, no, true]}")
    assert SearchSpace.from_dict(declared).parameters["mode"].choices == ("on", "off", "no", True)


# regression: each of these was wrong once
@pytest.mark.usefixtures("beside_branin")
def test_a_configuration_of_ones_own_is_not_replaced(capsys):
    Path("mine").mkdir()
    Path("mine/config.yaml").write_text("# my own settings" + BRANIN)
    assert main(["fit", "--config", "mine/config.yaml", "--run", "mine"]) == 2
    assert "config.yaml of yours" in capsys.readouterr().err
    assert Path("mine/config.yaml").read_text() == "# my own settings" + BRANIN
    assert os.listdir("mine") == ["config.yaml"]


@pytest.mark.usefixtures("beside_branin")
def test_ratios_are_words_and_a_0_in_front_changes_nothing():
    assert load_yaml("[1:1, 4:3, 16:9, 08, 010, -0x1F, 0o17]") == ["1:1", "4:3", "16:9", 8, 10, -31, 15]


@pytest.mark.usefixtures("beside_branin")
def test_a_key_that_stands_twice_is_refused(capsys):
    with pytest.raises(yaml.YAMLError, match="'lr' stands more than once"):
        load_yaml("{lr: 1, lr: 2}")
    assert load_yaml("{one: &one {x: 1}, other: {<<: *one, x: 2}}")["other"] == {"x": 2}
    chained = "{a: &a {x: 1}, in: {b: &b {<<: *a, x: 2}}, c: {<<: *b}}"  # b is constructed after c has merged it
    assert load_yaml(chained)["in"] == {"b": {"x": 2}}
    Path("twice.yaml").write_text(BRANIN + "\nloop: {n_trials: 3}\n")
    assert main(["fit", "--config", "twice.yaml"]) == 2
    assert "'loop' stands more than once" in capsys.readouterr().err
