"""What YAML says: words are words, also on, off, yes and no."""

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, strategies as st

from deepbore import Study
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
    assert study.observations.n_complete == 6
    assert {trial.params["mode"] for trial in study.trials} == {"on", "off"}
