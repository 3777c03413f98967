"""The rows of the audit of version 0.1, one section a row: each was reproduced there, and must not come back.

Where a row has tests elsewhere, its section names them. Rows without a section are tested where their subject is: A2
in test_space_conditions.py (no grid, chains), A16 in test_cli.py and test_looking.py (nobody's module, no links), A17
in test_parameters.py (bounds) and test_mistakes.py, C1 and C11 in test_looking.py and test_learned.py (what is
imported, the page), C2 in test_steering.py, C3 in test_parameters.py, C4 in test_space_constraints.py.
"""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import deepbore
from deepbore import (
    Categorical,
    Integer,
    KernelPLS,
    Ordinal,
    Outcome,
    Real,
    SearchSpace,
    SerialEvaluator,
    Study,
    minimize,
)
from deepbore.errors import JournalError, SettingError, SpaceError, SpaceExhausted, TrialError
from deepbore.loop.lightning import new_trainer

ROOT = Path(deepbore.__file__).parents[1]
ENV = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(__file__).parent)]), "OMP_NUM_THREADS": "1"}
PLANE = SearchSpace({"x": Real(-1, 1), "y": Real(-1, 1)})
DESIGN = 100  # trials of a design: these take next to no time


def bowl(params):
    return (params["x"] - 0.3) ** 2 + (params["y"] + 0.2) ** 2


def events(path):
    return [json.loads(line)["event"] for line in path.read_text().splitlines()]


# --- A1: a failed ask gives told trials again ------------------------------------------------------------------------
# also test_ask.py: test_a_failed_ask_leaves_the_study_as_it_was, for every error and classifier


def test_a1_a_failed_ask_gives_nothing_twice():
    study = Study(SearchSpace({"k": Integer(0, 13)}), n_initial=DESIGN)
    for trial in study.ask(12):
        study.tell(trial, 1.0)
    with pytest.raises(SpaceExhausted):
        study.ask(3)
    assert len(study.trials) == 12
    assert [study.ask()[0].id for _ in range(2)] == [12, 13]
    assert len({trial.params["k"] for trial in study.trials}) == 14


# --- A3: chdir sends events elsewhere --------------------------------------------------------------------------------


def test_a3_a_change_of_directory_within_the_objective_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def moves(params):
        (tmp_path / "other").mkdir(exist_ok=True)
        os.chdir(tmp_path / "other")
        return bowl(params)

    minimize(moves, PLANE, 3, journal="run.jsonl", n_initial=DESIGN)
    assert events(tmp_path / "run.jsonl") == ["created", *["asked", "told"] * 3]
    assert not list((tmp_path / "other").iterdir())


# --- A4: an interrupt during the write leaves an event twice ---------------------------------------------------------
# also test_journal.py: test_an_interrupt_at_any_line_leaves_both_or_none, test_signals_at_any_time_leave_both_or_none


@pytest.mark.parametrize("call", ["ask", "tell", "annotate"])
def test_a4_an_interrupt_during_the_fsync_and_the_call_again_leave_one_event(tmp_path, monkeypatch, call):
    path = tmp_path / "run.jsonl"
    study = Study(PLANE, journal=path, n_initial=DESIGN)
    (trial,) = study.ask()
    calls = {
        "ask": study.ask,
        "tell": lambda: study.tell(trial, 1.0),
        "annotate": lambda: study.annotate(trial, {"a": 1}),
    }
    whole, left = os.fsync, [1]

    def interrupted(descriptor):
        if left and os.readlink(f"/proc/self/fd/{descriptor}") == str(path):
            left.pop()
            raise KeyboardInterrupt
        whole(descriptor)

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        calls[call]()
    calls[call]()
    study.close()
    assert not left
    assert Study.load(path).trials == study.trials
    assert events(path)[2:] == [{"ask": "asked", "tell": "told", "annotate": "annotated"}[call]]


# --- A5: two journals share a snapshot; a user's file is overwritten -------------------------------------------------


def test_a5_snapshots_are_named_after_the_whole_journal_and_foreign_files_stay(tmp_path):
    (tmp_path / "model.ckpt").write_bytes(b"mine")
    for name in ("exp.0", "exp.1", "model.jsonl"):
        minimize(bowl, PLANE, 2, journal=tmp_path / name, n_initial=DESIGN)
    assert (tmp_path / "model.ckpt").read_bytes() == b"mine"
    assert (tmp_path / "exp.0.ckpt").read_bytes() != (tmp_path / "exp.1.ckpt").read_bytes()
    assert not (tmp_path / "exp.ckpt").exists()


# --- A6: a journal, or its lock, that is deleted or replaced ---------------------------------------------------------


@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.lock"])
def test_a6_a_deleted_or_replaced_file_is_not_written_to(tmp_path, name):
    study = Study(PLANE, journal=tmp_path / "run.jsonl", n_initial=DESIGN)
    study.ask()
    kept = (tmp_path / name).read_bytes()
    (tmp_path / name).unlink()
    with pytest.raises(JournalError, match="was deleted"):
        study.ask()
    (tmp_path / name).write_bytes(kept)
    with pytest.raises(JournalError, match="replaced"):
        study.ask()
    assert (tmp_path / name).read_bytes() == kept


# --- A8: a flipped bit loads other data ------------------------------------------------------------------------------
# also test_journal.py: test_no_flipped_bit_loads_other_data; test_recipe.py for snapshots


def test_a8_no_flipped_bit_in_notes_and_failures_loads_other_data(tmp_path):
    path = tmp_path / "run.jsonl"
    study = Study(PLANE, journal=path, n_initial=DESIGN)
    one, other = study.ask(2)
    study.annotate(one, {"host": "node7"})
    study.tell(other, Outcome.failure("diverged"))
    study.close()
    whole = path.read_bytes()
    for at in range(0, 8 * len(whole), 61):
        damaged = bytearray(whole)
        damaged[at // 8] ^= 1 << at % 8
        path.write_bytes(damaged)
        with pytest.raises(JournalError):
            Study.load(path)


# --- A9: state that is not in the snapshot; settings that differ -----------------------------------------------------
# also test_resume.py: test_every_classifier_goes_on_bit_for_bit_at_any_moment; test_recipe.py


@pytest.mark.parametrize("setting", [{"gamma": 0.3}, {"n_initial": 4}, {"acquisition": deepbore.QuantileBound()}])
def test_a9_other_settings_than_the_journals_are_refused_or_said(tmp_path, setting, caplog):
    path = tmp_path / "run.jsonl"
    minimize(bowl, PLANE, 7, journal=path, n_initial=5).study.close()
    Study.load(path, **setting).ask()
    assert "the settings differ" in caplog.text
    described = {"n_initial": 5, **setting}
    with pytest.raises(JournalError, match=r" is .*, was .*Study\.load"):
        Study(PLANE, journal=path, if_exists="load", **described)


# --- A10: Ctrl-C is SystemExit ---------------------------------------------------------------------------------------
# also test_ask.py: test_ctrl_c_reaches_the_caller_as_keyboard_interrupt; test_signals.py


def test_a10_except_keyboard_interrupt_runs():
    def pressed(params):
        signal.raise_signal(signal.SIGINT)
        return bowl(params)

    try:
        minimize(pressed, PLANE, 9, n_initial=DESIGN)
    except KeyboardInterrupt:
        return
    pytest.fail("no KeyboardInterrupt")


# --- A12: two threads get the same trial -----------------------------------------------------------------------------
# test_steering.py: test_threads_that_ask_and_tell_never_get_the_same_trial, test_other_threads_and_the_objective_...


# --- A13: another study's trial --------------------------------------------------------------------------------------


def test_a13_another_studys_trial_is_refused_by_tell_and_annotate():
    one, other = Study(PLANE, seed=0), Study(PLANE, seed=1)
    one.ask()
    (foreign,) = other.ask()
    for call in (lambda: one.tell(foreign, -123), lambda: one.annotate(foreign, {"a": 1})):
        with pytest.raises(TrialError, match="told to the run that gave it"):
            call()
    assert one.trials[0].value is None
    assert one.trials[0].attributes == {}


# --- A14: an objective that gives no values --------------------------------------------------------------------------
# test_steering.py: test_a_wrong_type_ends_a_run_with_the_first_evaluation, test_an_objective_that_always_fails_...


# --- A15: retries, exceptions that cannot be shown, huge messages, processes that stay ------------------------------
# test_evaluation.py: test_a_retry_gets_the_configuration_that_was_asked_for and those that follow


def test_a15_a_huge_message_does_not_swell_the_journal(tmp_path):
    def raises(params):
        raise ValueError("!" * 5_000_000)

    path = tmp_path / "run.jsonl"
    with pytest.warns(RuntimeWarning, match="failed"):
        minimize(raises, PLANE, 3, journal=path, n_initial=DESIGN)
    assert path.stat().st_size < 20_000


# --- A18: modes of torch ---------------------------------------------------------------------------------------------
# also test_ask.py: test_modes_of_torch_change_nothing


def test_a18_modes_around_ask_and_optimize_change_nothing():
    plain = minimize(bowl, PLANE, 6, n_initial=4).values.tolist()
    with torch.inference_mode(), torch.autocast("cpu"):
        within = minimize(bowl, PLANE, 6, n_initial=4).values.tolist()
    assert within == plain


# --- A19: a too big ask reserves the queue ---------------------------------------------------------------------------


def test_a19_a_too_big_ask_leaves_the_queued_trial_in_the_queue():
    study = Study(SearchSpace({"k": Ordinal([1, 2, 3])}))
    study.enqueue({"k": 2})
    with pytest.raises(SpaceExhausted):
        study.ask(4)
    assert not study.trials
    assert study.ask()[0].params == {"k": 2}


# --- A20: a million rows ---------------------------------------------------------------------------------------------
# test_journal.py: test_a_million_rows_are_kept_and_read_in_seconds_and_in_little_memory


def test_a20_many_rows_are_few_lines(tmp_path):
    x = np.linspace(-1, 1, 25_000)
    study = Study(PLANE, journal=tmp_path / "run.jsonl")
    study.add({"x": x, "y": x}, x**2)
    assert events(tmp_path / "run.jsonl") == ["created", *["added"] * 3]


# --- A21: the evaluator is wrapped at every setup --------------------------------------------------------------------
# also test_ranks.py: test_an_evaluator_is_shared_once_however_often_a_run_is_set_up


def test_a21_repeated_fits_evaluate_each_trial_once():
    seen = []
    evaluator = SerialEvaluator(lambda params: seen.append(params) or bowl(params))
    study, trainer = Study(PLANE, n_initial=DESIGN), new_trainer()
    for _ in range(3):
        study.optimize(evaluator, 3, trainer=trainer)
    assert seen == [trial.params for trial in study.trials]
    assert [trial.id for trial in study.trials] == list(range(9))


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
# also test_steering.py: test_bad_settings_are_refused_before_a_journal_is_begun; test_ask.py


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


# --- C16: attributes of the user's own -------------------------------------------------------------------------------
# test_steering.py: test_notes_join_what_a_trial_has_and_survive


# --- A11: killed at the start of `deepbore fit` ----------------------------------------------------------------------

KILLED = """
    import os, signal, sys
    from pathlib import Path
    from deepbore.cli.main import main
    at = int(sys.argv[1])
    steps = []
    def step(*_):
        steps.append(1)
        if len(steps) == at:
            os.kill(os.getpid(), signal.SIGKILL)
    def audited(event, arguments):
        if event in ("open", "os.rename", "os.mkdir") and "mine" in str(arguments[:2]):
            step()
    sys.addaudithook(audited)
    sys.exit(main(["fit", "--config", "branin.yaml", "--run", "mine"]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("at", range(1, 9))
def test_a11_a_run_that_is_killed_at_its_start_can_be_begun_or_resumed(tmp_path, at):
    (tmp_path / "branin.yaml").write_text(
        "problem: {class_path: deepbore.problems.Branin}\nloop: {n_trials: 3, n_initial: 3}\n"
    )
    (tmp_path / "killed.py").write_text(textwrap.dedent(KILLED))
    subprocess.run([sys.executable, "killed.py", str(at)], cwd=tmp_path, env=ENV, capture_output=True, check=False)
    time.sleep(0.1)
    begin = ["fit", "--config", "branin.yaml", "--run", "mine"]
    for args in (begin, ["fit", "--resume", "mine"]):
        command = [sys.executable, "-m", "deepbore.cli", *args]
        done = subprocess.run(command, cwd=tmp_path, env=ENV, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stderr
    assert Study.load(tmp_path / "mine" / "journal.jsonl").observations.n_complete == 3


# --- A7: choices that JSON can't carry run, and can never be loaded --------------------------------------------------


@pytest.mark.parametrize("choices", [[(1, 2), (3, 4)], [[1], [2]], [{"a": 1}, {}], [1.0, float("nan")], [Path(), "b"]])
@pytest.mark.parametrize("kind", [Categorical, Ordinal])
def test_a7_choices_that_a_journal_cannot_give_back_are_refused_at_once(kind, choices):
    with pytest.raises(SpaceError, match=r"choices must be strings.* but got .*Give each choice a name"):
        kind(choices)


def test_a7_choices_come_back_from_a_journal_as_they_were(tmp_path):
    choices = ["a", 1, 2.5, True, None, np.float32(0.5), np.int64(7)]
    study = Study(SearchSpace({"c": Categorical(choices)}), journal=tmp_path / "run.jsonl", n_initial=DESIGN)
    given = [trial.params["c"] for trial in study.ask(7)]
    study.close()
    loaded = [trial.params["c"] for trial in Study.load(tmp_path / "run.jsonl").trials]
    assert [(type(c), c) for c in loaded] == [(type(c), c) for c in given]


# --- B12: laplace-torch is needed by all, and used by none -----------------------------------------------------------
# test_laplace_torch.py: LaplaceGGN of any network of your own runs on it, and it is imported only then


# --- C9: Optuna's constraints are ignored without a word -------------------------------------------------------------
# also test_optuna.py: by `set_constraint` and `constraints_func`, in both directions, and where little is feasible


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
    from deepbore.cli.yaml_file import load_yaml

    declared = load_yaml("mode: {type: categorical, choices: [on, off, no, true]}")
    assert SearchSpace.from_dict(declared).parameters["mode"].choices == ("on", "off", "no", True)


# --- C14: what the page on an index shows ----------------------------------------------------------------------------
# test_package.py: classifiers for the Pythons that were tried, wheel and sdist; no home of the project is known, so
# there are no URLs, and the README's pictures are shown in the repository and not on an index


# --- C15: the site cuts lines of code --------------------------------------------------------------------------------


def test_c15_lines_of_code_wrap_where_they_have_no_room():
    config, sheet = (ROOT / "mkdocs.yml").read_text(), (ROOT / "docs" / "stylesheets" / "wide.css").read_text()
    assert "stylesheets/wide.css" in config
    assert "white-space: pre-wrap" in sheet


# --- C17: tqdm and PyYAML are imported, and not declared -------------------------------------------------------------
# test_package.py: test_what_is_imported_is_declared, of the whole package
