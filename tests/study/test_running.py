"""`minimize`, `maximize` and `optimize`: callbacks, bars, other threads, and other programs around them."""

import json
import logging
import os
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbclient
import nbformat
import pytest

import deepbore
import forked
from deepbore import ExecutorEvaluator, MLPClassifier, Outcome, SerialEvaluator, Study, minimize
from deepbore.errors import NeverLogged, ObjectiveError, StudyRunning
from deepbore.loop.lightning import new_trainer
from deepbore.study import running
from deepbore.study.study import reseed
from objectives import bowl
from plane import DESIGN, LINE, PLANE, SQUARE, statuses


def test_callbacks_see_each_trial_and_may_end_the_run():
    seen = []

    def look(study, trial):
        seen.append((trial.id, trial.value, study.best_trial.value, len(study.trials)))
        study.annotate(trial, {"seen": True})
        if trial.id == 1:
            study.enqueue({"x": 0.3, "y": -0.2})
        if trial.value == 0:
            study.stop()
        return True  # means nothing

    result = minimize(bowl, PLANE, 30, callbacks=[look], n_initial=DESIGN)
    assert [each[0] for each in seen] == list(range(len(result.values)))
    assert [each[1] for each in seen] == result.values.tolist()
    assert [each[2] for each in seen] == [min(result.values[: k + 1]) for k in range(len(seen))]
    assert all(trial.attributes == {"seen": True} for trial in result.study.trials)


@pytest.mark.slow
@pytest.mark.parametrize("when", [1, DESIGN + 1])
def test_what_a_callback_enqueues_is_tried_next(when):
    def look(study, trial):
        if trial.id == when:
            study.enqueue(wanted)

    wanted = {name: p.high for name, p in PLANE.parameters.items()}
    study = Study(PLANE, n_initial=DESIGN)
    study.optimize(bowl, DESIGN + 4, callbacks=[look])
    assert study.trials[when + 1].params == wanted
    assert len(study.trials) == DESIGN + 4


def test_a_stop_leaves_no_trial_behind():
    def look(study, trial):
        if trial.id == 1:
            study.stop()

    study = Study(PLANE, n_initial=DESIGN)
    study.optimize(bowl, 30, callbacks=[look], batch_size=6)
    assert statuses(study) == ["COMPLETE"] * 2 + ["PENDING"] * 4
    study.stop()  # nothing runs
    study.optimize(bowl, 2)
    assert statuses(study) == ["COMPLETE"] * 8


def test_an_error_in_a_callback_ends_the_run_and_keeps_what_was_told(tmp_path):
    def breaks(study, trial):
        if trial.id == 2:
            raise LookupError("no such file")

    path = tmp_path / "run.jsonl"
    with pytest.raises(LookupError, match="no such file"):
        minimize(bowl, PLANE, 9, callbacks=[breaks], journal=path, n_initial=DESIGN)
    assert statuses(Study.load(path)) == ["COMPLETE"] * 3


@pytest.mark.parametrize("call", ["ask", "fit", "optimize", "reseed"])
def test_what_would_disturb_a_run_is_refused_while_it_goes_on(call):
    calls = {
        "ask": lambda study: study.ask(),
        "fit": lambda study: study.fit(),
        "optimize": lambda study: study.optimize(bowl, 1),
        "reseed": lambda study: reseed(study, 3),
    }
    study = Study(PLANE, n_initial=DESIGN)
    with pytest.raises(StudyRunning, match=f"`{call}` was called"):
        study.optimize(bowl, 3, callbacks=[lambda study, trial: calls[call](study)])
    assert len(study.ask()) == 1


@pytest.mark.slow
def test_a_callback_may_ask_for_the_recommended_trial(tmp_path):
    found = []
    settings = {"journal": tmp_path / "run.jsonl", "n_initial": 4}
    minimize(bowl, PLANE, 6, callbacks=[lambda study, trial: found.append(study.recommended.id)], **settings)
    assert len(found) == 6
    plain = minimize(bowl, PLANE, 6, n_initial=4)
    loaded = Study.load(tmp_path / "run.jsonl")
    assert loaded.observations.values.tolist() == plain.study.observations.values.tolist()


def test_a_bar_is_shown_where_somebody_can_see_it(capsys, monkeypatch):
    minimize(bowl, PLANE, 3, n_initial=DESIGN)
    assert capsys.readouterr().err == ""  # no terminal
    minimize(bowl, PLANE, 3, n_initial=DESIGN, progress=True)
    assert "3/3" in (err := capsys.readouterr().err)
    assert "best=" in err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert running.is_interactive()
    minimize(bowl, PLANE, 3, n_initial=DESIGN, progress=False)
    assert capsys.readouterr().err == ""


def test_the_bar_of_a_run_that_goes_on_begins_where_it_was(capsys, tmp_path):
    settings = {"journal": tmp_path / "run.jsonl", "if_exists": "load", "n_initial": DESIGN, "progress": True}
    minimize(bowl, PLANE, 3, **settings).study.close()
    capsys.readouterr()
    minimize(bowl, PLANE, 5, **settings)
    shown = capsys.readouterr().err
    assert "3/5" in shown
    assert "5/5" in shown
    assert "1/5" not in shown


def test_a_bar_shows_what_a_trainer_of_ones_own_has_logged(capsys):
    Study(PLANE, n_initial=3).optimize(bowl, 5, trainer=new_trainer(), progress=True)
    assert "tau=" in capsys.readouterr().err


def test_other_threads_and_the_objective_use_a_study_while_it_runs():
    study = Study(PLANE, n_initial=DESIGN)
    (mine,) = study.ask()
    begun, told = threading.Event(), threading.Event()

    def objective(params):
        study.enqueue({"x": params["y"], "y": params["x"]})
        begun.set()
        assert told.wait(30)
        return bowl(params)

    def other():
        assert begun.wait(30)
        study.tell(mine, 0.5)
        study.annotate(mine, {"by": "hand"})
        with pytest.raises(StudyRunning):
            study.ask()
        study.stop()
        told.set()

    thread = threading.Thread(target=other)
    thread.start()
    with ThreadPoolExecutor(2) as pool:
        study.optimize(ExecutorEvaluator(objective, pool), 20)
    thread.join()
    assert study.trials[0].attributes == {"by": "hand"}
    assert len(study.trials) <= 4
    assert set(statuses(study)) == {"COMPLETE"}


# regression: each of these was wrong once
@pytest.mark.parametrize(
    ("error", "says"),
    [(lambda: NeverLogged("the program must log 'val_los'"), "val_los"), (lambda: Outcome(None), "None")],
)
def test_an_objective_that_can_have_no_value_ends_the_run_at_once(error, says):
    def objective(_):
        raised = error()
        raise raised

    study = Study(SQUARE, seed=0)
    with pytest.raises(ObjectiveError, match=f"first evaluation, because .*{says}"), pytest.warns(RuntimeWarning):
        study.optimize(SerialEvaluator(objective), 12)
    assert len(study.trials) == 1


OTHER = """
import sys
from deepbore import Study
from deepbore.errors import JournalError
try:
    Study.load(sys.argv[1]).optimize(lambda params: print("evaluated"), 3)
except JournalError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_run_is_refused_before_it_evaluates_what_another_process_is_at(tmp_path):
    study = Study(LINE, seed=0, n_initial=3, journal=tmp_path / "run.jsonl")
    study.ask()
    code = [sys.executable, "-c", OTHER, str(tmp_path / "run.jsonl")]
    said = forked.run(code, capture_output=True, text=True, check=True).stdout
    assert "another" in said
    assert "evaluated" not in said


def test_a_classifier_that_has_learned_in_another_run_is_named_once(caplog):
    classifier = MLPClassifier()
    minimize(lambda params: params["x"], LINE, 12, classifier=classifier)
    minimize(lambda params: params["x"], LINE, 11, classifier=classifier)
    assert caplog.text.count("has learned in another run") == 1


ENV = os.environ | {"PYTHONPATH": str(Path(deepbore.__file__).parents[1])}  # the package under test


@pytest.mark.slow
def test_a_notebook_runs_it(tmp_path):
    code = (
        "import deepbore\n"
        "space = deepbore.SearchSpace({'x': deepbore.Real(-1, 1)})\n"
        "deepbore.minimize(lambda params: params['x'] ** 2, space, n_trials=13).best_value"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    *bar, shown = notebook.cells[0].outputs
    assert "13/13" in str(bar)
    assert float(shown["data"]["text/plain"]) < 0.05


@pytest.mark.slow
def test_an_event_loop_runs_it():
    """What a notebook's kernel is to its cells: code within a running asyncio loop."""
    script = (
        "import asyncio, deepbore\n"
        "async def cell():\n"
        "    space = deepbore.SearchSpace({'x': deepbore.Real(-1, 1)})\n"
        "    return deepbore.minimize(lambda params: params['x'] ** 2, space, n_trials=13).best_value\n"
        "print(asyncio.run(cell()))\n"
    )
    done = forked.run([sys.executable, "-c", script], env=ENV, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("nproc", [2])
def test_under_a_launcher_each_rank_may_minimize_for_itself(tmp_path, nproc):
    """Without a process group the ranks of torchrun are strangers to each other, as any two processes."""
    script = tmp_path / "tune.py"
    script.write_text(
        "import json, os, deepbore\n"
        "rank = int(os.environ['RANK'])\n"
        "space = deepbore.SearchSpace({'x': deepbore.Real(-1, 1)})\n"
        "result = deepbore.minimize(lambda params: (params['x'] - rank) ** 2, space, n_trials=13, seed=rank)\n"
        "json.dump(result.values.tolist(), open(f'values-{rank}.json', 'w'))\n"
    )
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(nproc)]
    command = [*launcher, str(script)]
    forked.run(command, launcher=True, cwd=tmp_path, env=ENV, check=True, timeout=300, capture_output=True)
    values = [json.loads((tmp_path / f"values-{rank}.json").read_text()) for rank in range(nproc)]
    assert [len(each) for each in values] == [13] * nproc
    assert values[0] != values[1]


@pytest.mark.slow
def test_spawned_processes_run_one_each(tmp_path):
    script = tmp_path / "spawned.py"
    script.write_text(
        "import multiprocessing, deepbore\n"
        "def run(seed):\n"
        "    space = deepbore.SearchSpace({'x': deepbore.Real(-1, 1)})\n"
        "    return deepbore.minimize(lambda params: params['x'] ** 2, space, n_trials=13, seed=seed).best_value\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(2) as pool:\n"
        "        print(max(pool.map(run, range(2))))\n"
    )
    done = forked.run([sys.executable, str(script)], env=ENV, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 0.05


def test_an_objective_may_tell_the_trial_that_runs():
    study = Study(LINE)

    def tells(params):
        if len(study.observations) == 2:
            study.tell(1, 0.5)
        return params["x"]

    study.optimize(tells, 4)
    assert study.trials[1].value == 0.5
    assert study.observations.ledger.statistics.n_complete == 4


def test_what_an_objective_says_of_its_own_training_is_heard(caplog, monkeypatch):
    own = logging.getLogger("lightning.pytorch")
    for name, value in {"propagate": True, "handlers": []}.items():  # which hang on who had handlers at its import
        monkeypatch.setattr(own, name, value)

    def objective(params):
        own.warning("of an objective")
        with warnings.catch_warnings(record=True) as caught:
            warnings.warn_explicit("mine", UserWarning, "trainer.py", 1, module="lightning.pytorch.trainer")
        return float(len(caught))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        study = Study(LINE, seed=0)
        study.optimize(objective, 1, callbacks=[lambda *_: own.warning("of a callback")])
    assert study.trials[0].value == 1
    assert [record.message for record in caplog.records] == ["of an objective", "of a callback"]


def test_what_an_objective_warns_of_is_said_once():
    def objective(params):
        warnings.warn("the same each time", UserWarning, stacklevel=1)
        return params["x"]

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        Study(LINE, seed=0).optimize(objective, 12)
    assert len([each for each in caught if each.category is UserWarning]) == 1
