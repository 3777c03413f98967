"""What tripped users of version 0.1: rows B and C of its audit, one section a row; none must come back.

Where a row has tests elsewhere, its section names them. Rows without a section are tested where their subject is: C1
and C11 in test_looking.py and test_learned.py (what is imported, the page), C2 in test_steering.py and
test_steering_ends.py, C3 in test_parameters.py, C4 in test_space_constraints.py and test_space_several_conditions.py.
"""

import subprocess
import sys

import numpy as np
import pytest
import torch

import deepbore
from deepbore import KernelPLS, Real, SearchSpace, Study, minimize
from deepbore.errors import JournalError, SettingError
from objectives import bowl
from plane import DESIGN, PLANE
from processes import ENV, ROOT

# --- B12: laplace-torch is needed by all, and used by none -----------------------------------------------------------
# test_laplace_torch.py: LaplaceGGN of any network of your own runs on it, and it is imported only then


# --- C5: numbers of NumPy's and torch's (in studies; in spaces: see test_space.py) ------------------------------------


def test_c5_scalars_arrays_and_seeds_of_numpy_and_torch_are_welcome():
    study = Study(PLANE, seed=np.uint32(3), n_initial=np.int64(4), gamma=np.float64(0.5))
    study.enqueue({"x": np.float32(0.5), "y": np.int8(0)})
    values = [np.float32(0.5), np.array(0.25), torch.tensor(1.0), np.array([2.0]), np.int64(3), True + 1]
    for value in values:
        study.tell(study.ask(np.int32(1))[0], value)
    assert [trial.value for trial in study.trials] == [0.5, 0.25, 1.0, 2.0, 3.0, 2.0]
    study.add({"x": np.linspace(0, 1, 3), "y": torch.zeros(3)}, np.arange(3))
    study.add({"x": np.float64(0.1), "y": np.array(0.2)}, np.float64(4))
    assert study.observations.n_complete == 10
    result = minimize(
        lambda params: np.float32(bowl(params)), PLANE, np.int64(3), timeout=np.float64(60), n_initial=DESIGN
    )
    assert len(result.values) == 3
    assert type(result.best_value) is float


# --- C6, C7: wrong parts and numbers are found before the design -----------------------------------------------------
# also test_steering_ends.py: test_bad_settings_are_refused_before_a_journal_is_begun; test_ask.py


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"classifier": KernelPLS}, r"Give KernelPLS\(\)"),
        ({"classifier": deepbore.ThresholdLabels()}, "classifier must be a Classifier"),
        ({"labels": deepbore.LocalSearch()}, "labels must be a Labelling"),
        ({"candidates": "local"}, "candidates must be a Candidates"),
        ({"acquisition": deepbore.UpperConfidenceBound}, r"Give UpperConfidenceBound\(\)"),
        ({"n_trials": -1}, "n_trials >= 1"),
        ({"n_trials": 0}, "n_trials >= 1"),
        ({"n_trials": 2.5}, "n_trials must be a whole number"),
        ({"n_trials": "10"}, "n_trials must be a whole number"),
        ({"n_trials": True}, "n_trials must be a whole number"),
    ],
)
def test_c6_c7_are_found_before_anything_is_evaluated(settings, says):
    calls = []
    given = {"n_trials": 5, **settings}
    with pytest.raises(SettingError, match=says):
        minimize(lambda params: calls.append(1) or 1.0, PLANE, **given)
    assert not calls


# --- C8: typed keywords ----------------------------------------------------------------------------------------------

RIGHT = """
import deepbore
from deepbore import NoImprovement, Study, TargetReached, maximize, minimize


def f(params: dict[str, float]) -> float:
    return params["x"] ** 2


def look(study: Study, trial: deepbore.Trial) -> None:
    study.annotate(trial, {"best": study.best_trial.value if study.best_trial else None})
    study.stop()


space = deepbore.SearchSpace({"x": deepbore.Real(0, 1)})
rules = [NoImprovement(trials=20), TargetReached(0.1)]
result = minimize(f, space, 5, seed=0, timeout=60, stop_when=rules, callbacks=[look], progress=False, max_failures=3)
maximize(f, space, None, timeout=1.5, stop_when=TargetReached(1), journal="run.jsonl", if_exists="load")
value: float = result.best_value
study = deepbore.Study(space, direction="maximize", classifier=deepbore.DeepPLS(), if_exists="error")
study.optimize(f, 5, timeout=60, stop_when=deepbore.ExpectedImprovementBelow(share=0.01), callbacks=(look,))
for trial in study.ask(2):
    study.tell(trial, 0.5)
trace: str | None = study.trials[0].traceback
"""
WRONG = """
minimize(f, space, 5, sede=0)
deepbore.minimise
minimize(f, space, 5, if_exists="append")
minimize(f, space, 5, callbacks=[f])
minimize(f, space, "5")
Study(space, direction="up")
study.optimize(f, 5, time_out=3)
study.optimize(f, 5, stop_when=NoImprovement)
NoImprovement(20, 3)
study.annotate(0, "note")
Study.load("run.jsonl", clasifier=None)
"""


@pytest.mark.slow
def test_c8_mypy_finds_what_is_wrong_and_only_that(tmp_path):
    right, wrong = tmp_path / "right_code.py", tmp_path / "wrong_code.py"
    right.write_text(RIGHT)
    wrong.write_text(RIGHT + WRONG)
    first = len(RIGHT.splitlines()) + 2
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", "--follow-imports=silent"]
    done = subprocess.run([*command, right, wrong], cwd=tmp_path, env=ENV, capture_output=True, text=True, check=False)
    said = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert [line for line in said if "right_code.py" in line] == []
    found = {int(line.split(":")[1]) for line in said}
    assert found == set(range(first, first + len(WRONG.strip().splitlines()))), done.stdout


def test_c8_a_misspelt_keyword_or_name_is_an_error_that_names_it():
    with pytest.raises(TypeError, match=r"minimize\(\) got an unexpected keyword argument 'sede'"):
        minimize(bowl, PLANE, 5, sede=0)
    with pytest.raises(TypeError, match="'time_out'"):
        Study(PLANE).optimize(bowl, 5, time_out=3)


# --- C9: Optuna's constraints are ignored without a word -------------------------------------------------------------
# also test_optuna.py: by `set_constraint` and `constraints_func`, in both directions, and where little is feasible


@pytest.mark.slow
def test_c9_optunas_constraints_are_learned():
    optuna = pytest.importorskip("optuna")
    from deepbore.integrations.optuna import DeepBoreSampler

    def corner(trial):
        value = trial.suggest_float("x", 0, 1) + trial.suggest_float("y", 0, 1)
        trial.set_constraint("at least 1", 1 - value)
        return value

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=DeepBoreSampler(seed=0))
    study.optimize(corner, n_trials=22)
    assert sum(trial.value < 1 for trial in study.trials[10:]) < 12  # in version 0.1 all of them
    assert 1 <= study.best_value < 1.05


# --- C10: YAML `choices: [on, off]` become booleans ------------------------------------------------------------------
# also test_yaml_file.py: through `deepbore fit`, a resume, and `deepbore tune`


def test_c10_words_stay_words():
    from deepbore.cli.config import load_yaml

    declared = load_yaml("mode: {type: categorical, choices: [on, off, no, true]}")
    assert SearchSpace.from_dict(declared).parameters["mode"].choices == ("on", "off", "no", True)


# --- C12: a misspelt name --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "meant"), [("KernelPSL", "KernelPLS"), ("minimise", "minimize"), ("Int", "Integer")])
def test_c12_a_misspelt_name_says_what_was_meant(name, meant):
    with pytest.raises(AttributeError, match=f"Did you mean '{meant}'"):
        getattr(deepbore, name)


def test_c12_a_name_like_no_other_is_an_error_as_ever():
    with pytest.raises(AttributeError, match="no attribute 'zebra'"):
        _ = deepbore.zebra


# --- C13: a script that is run twice ---------------------------------------------------------------------------------

TWICE = """
import deepbore
space = deepbore.SearchSpace({"x": deepbore.Real(-1, 1)})
study = deepbore.Study(space, seed=0, journal="run.jsonl", if_exists="load", n_initial=50)
while len(study.trials) < 4:
    (trial,) = study.ask()
    study.tell(trial, trial.params["x"] ** 2)
result = deepbore.minimize(lambda p: p["x"] ** 2, space, 3, journal="other.jsonl", if_exists="load", n_initial=50)
print(len(study.trials), len(result.values))
"""


def test_c13_a_script_may_be_run_twice(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    kept = []
    for _ in range(2):
        names: dict = {}
        exec(TWICE, names)
        names["study"].close()
        names["result"].study.close()
        kept.append([(tmp_path / name).read_bytes() for name in ("run.jsonl", "other.jsonl")])
    assert capsys.readouterr().out == "4 3\n4 3\n"
    assert kept[0] == kept[1]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"space": SearchSpace({"x": Real(-1, 2), "y": Real(-1, 1)})}, r"'x' in the space is .*2.*, was .*1"),
        ({"space": SearchSpace({"x": Real(-1, 1)})}, "'y' is no longer in the space"),
        ({"space": SearchSpace({**PLANE.parameters, "z": Real(0, 1)})}, "'z' is new in the space"),
        ({"space": SearchSpace({"y": Real(-1, 1), "x": Real(-1, 1)})}, "the order of the space is"),
        ({"direction": "maximize"}, "direction is maximize, was minimize"),
        ({"seed": 4}, "seed is 4, was 3"),
        ({"classifier": deepbore.DeepPLS()}, r"classifier is DeepPLS\(\), was KernelPLS\(rows=99\)"),
        ({"classifier": None}, r"classifier is not given, was KernelPLS\(rows=99\)"),
        ({"n_initial": 9}, "n_initial is 9, was 5"),
    ],
)
def test_c13_another_run_than_the_journals_is_refused_with_what_differs(tmp_path, settings, says):
    path = tmp_path / "run.jsonl"
    own = {"space": PLANE, "seed": 3, "journal": path, "n_initial": 5, "classifier": KernelPLS(rows=99)}
    Study(**own).close()
    same = Study(**{**own, "if_exists": "load", "classifier": KernelPLS(rows=99)})
    same.close()
    with pytest.raises(JournalError, match=says):
        Study(**{**own, "if_exists": "load", **settings})
    with pytest.raises(JournalError, match="if_exists='load'"):
        Study(**own)


# --- C14: what the page on an index shows ----------------------------------------------------------------------------
# test_package.py: classifiers for the Pythons that were tried, wheel and sdist; no home of the project is known, so
# there are no URLs, and the README's pictures are shown in the repository and not on an index


# --- C15: the site cuts lines of code --------------------------------------------------------------------------------


def test_c15_lines_of_code_wrap_where_they_have_no_room():
    config, sheet = (ROOT / "mkdocs.yml").read_text(), (ROOT / "docs" / "stylesheets" / "wide.css").read_text()
    assert "stylesheets/wide.css" in config
    assert "white-space: pre-wrap" in sheet


# --- C16: attributes of the user's own -------------------------------------------------------------------------------
# test_steering.py: test_notes_join_what_a_trial_has_and_survive


# --- C17: tqdm and PyYAML are imported, and not declared -------------------------------------------------------------
# test_package.py: test_what_is_imported_is_declared, of the whole package
