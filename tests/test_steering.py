"""Steering a run from Python: who looks on, what is shown and noted, and what other threads may do."""

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from deepbore import ExecutorEvaluator, Ordinal, Outcome, SearchSpace, Study, minimize
from deepbore.errors import StudyRunning, TrialError, ValueTypeError
from deepbore.loop.lightning import new_trainer
from deepbore.study import running
from objectives import bowl
from plane import DESIGN, PLANE, statuses

# --- callbacks -------------------------------------------------------------------------------------------------------


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
        "reseed": lambda study: study.reseed(3),
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


# --- progress --------------------------------------------------------------------------------------------------------


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


# --- notes -----------------------------------------------------------------------------------------------------------


def test_notes_join_what_a_trial_has_and_survive(tmp_path):
    path = tmp_path / "run.jsonl"
    study = Study(PLANE, journal=path, n_initial=DESIGN)
    first, second = study.ask(2)
    study.annotate(first, {"host": "node7", "n": 1})
    study.tell(first, Outcome(0.5, attributes={"epoch": 3}))
    study.annotate(first.id, {"n": 2, "curve": [1.0, float("nan")], "of": {"depth": 2}})
    study.annotate(second, {})
    study.add({"x": 0.5, "y": 0.5}, 1.0)
    study.annotate(2, {"from": "last year"})
    noted = {"host": "node7", "n": 2, "epoch": 3, "curve": [1.0, None], "of": {"depth": 2}}
    study.close()
    for each in (study, Study.load(path)):
        assert [trial.attributes for trial in each.trials] == [noted, {}, {"from": "last year"}]
    events = [json.loads(line)["event"] for line in path.read_text().splitlines()]
    assert events == ["created", "asked", "asked", "annotated", "told", "annotated", "added", "annotated"]
    assert study.to_frame()["attribute_host"].tolist()[0] == "node7"
    from deepbore.data.record import read_record

    assert [trial.attributes for trial in read_record(path).trials] == [noted, {}, {"from": "last year"}]


@pytest.mark.parametrize("bad", [{"x": object()}, {1: 2}, [("a", 1)], {"f": len}, "note", None])
def test_notes_that_are_no_json_are_refused_and_change_nothing(tmp_path, bad):
    study = Study(PLANE, journal=tmp_path / "run.jsonl")
    (trial,) = study.ask()
    kept = (tmp_path / "run.jsonl").read_text()
    with pytest.raises(ValueTypeError, match="plain JSON data by name"):
        study.annotate(trial, bad)
    with pytest.raises(TrialError, match="exist"):
        study.annotate(7, {"a": 1})
    assert study.trials[0].attributes == {}
    assert (tmp_path / "run.jsonl").read_text() == kept


# --- threads ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_threads_that_ask_and_tell_never_get_the_same_trial(tmp_path):
    space = SearchSpace({"k": Ordinal(list(range(500)))})
    study = Study(space, n_initial=1000, journal=tmp_path / "run.jsonl")
    begin, given = threading.Barrier(8), []

    def work(q):
        begin.wait()
        for _ in range(8):
            trials = study.ask(q)
            given.extend(trials)
            for trial in trials:
                study.annotate(trial, {"thread": q})
                study.tell(trial, float(trial.params["k"]))
            study.add({"k": 0}, 1.0, task="old")

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(work, 1 + k % 3) for k in range(8)]:
            future.result()
    assert len(given) == len({trial.id for trial in given}) == len({trial.params["k"] for trial in given})
    own = [trial for trial in study.trials if trial.task is None]
    assert sorted(trial.id for trial in own) == sorted(trial.id for trial in given)
    assert all(trial.value == trial.params["k"] for trial in own)
    study.close()
    assert Study.load(tmp_path / "run.jsonl").trials == study.trials


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
