"""Work that version 0.1 lost or corrupted: rows A of its audit, one section a row; none must come back.

Where a row has tests elsewhere, its section names them. Rows without a section are tested where their subject is: A2
in test_space_conditions.py (no grid, chains), A16 in test_cli.py and test_looking.py (nobody's module, no links), A17
in test_parameters.py (bounds) and test_mistakes.py.
"""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch

import deepbore
from deepbore import Categorical, Integer, Ordinal, Outcome, SearchSpace, SerialEvaluator, Study, minimize
from deepbore.errors import JournalError, SpaceError, SpaceExhausted, TrialError
from deepbore.loop.lightning import new_trainer
from objectives import bowl
from plane import DESIGN, PLANE
from processes import ENV


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
# also test_journal_interrupts.py: test_an_interrupt_at_any_line_leaves_both_or_none, test_signals_at_any_time_leave_...


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


# --- A8: a flipped bit loads other data ------------------------------------------------------------------------------
# also test_journal_damage.py: test_no_flipped_bit_loads_other_data; test_recipe.py for snapshots


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


@pytest.mark.slow
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


# --- A11: killed at the start of `deepbore fit` ----------------------------------------------------------------------

KILLED = """
    import os, signal, sys
    import deepbore.cli.fit  # once, and then each command in a process that is forked off
    from deepbore.cli.main import main
    begin, resume = ["fit", "--config", "branin.yaml", "--run", "mine"], ["fit", "--resume", "mine"]
    def dies_at(at):
        steps = []
        def audited(event, arguments):
            if event in ("open", "os.rename", "os.mkdir") and "mine" in str(arguments[:2]):
                steps.append(1)
                if len(steps) == at:
                    os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(audited)
    def status(args, at=0):
        child = os.fork()
        if not child:
            dies_at(at)
            os._exit(main(args))
        return os.waitpid(child, 0)[1]
    for at in range(1, 9):
        os.mkdir(str(at))
        os.chdir(str(at))
        os.symlink("../branin.yaml", "branin.yaml")
        assert status(begin, at) == signal.SIGKILL
        assert status(begin) == 0 or status(resume) == 0, at
        os.chdir("..")
"""


@pytest.mark.slow
def test_a11_a_run_that_is_killed_at_its_start_can_be_begun_or_resumed(tmp_path):
    (tmp_path / "branin.yaml").write_text(
        "problem: {class_path: deepbore.problems.Branin}\nloop: {n_trials: 3, n_initial: 3}\n"
    )
    (tmp_path / "killed.py").write_text(textwrap.dedent(KILLED))
    command = [sys.executable, "killed.py"]
    done = subprocess.run(command, cwd=tmp_path, env=ENV, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for at in range(1, 9):
        assert Study.load(tmp_path / str(at) / "mine" / "journal.jsonl").observations.n_complete == 3


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
# test_steering_ends.py: test_a_wrong_type_ends_a_run_with_the_first_evaluation, test_an_objective_that_always_fails_...


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
