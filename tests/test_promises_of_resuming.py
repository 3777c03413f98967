"""What docstrings and guides promise of failures, and of runs that go on after one."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from deepbore import Budget, ExecutorEvaluator, Real, SearchSpace, Study
from deepbore.data.journal import Journal
from deepbore.data.outcome import Status
from deepbore.data.replay import read_record, replay
from deepbore.errors import JournalError, SettingError
from deepbore.loop.engine import Engine
from deepbore.loop.lightning import new_trainer

LINE = SearchSpace({"x": Real(0, 1)})
EPOCHS = Budget("epochs", 1, 9)


def test_what_an_engine_would_not_take_is_evaluated_by_the_next_run():
    class Away(ThreadPoolExecutor):
        calls = 0

        def submit(self, *call, **settings):
            self.calls += 1
            if self.calls == 2:
                raise RuntimeError("engine away")
            return super().submit(*call, **settings)

    study = Study(LINE, n_initial=4)
    with Away(4) as pool, pytest.raises(RuntimeError, match="engine away"):
        study.optimize(ExecutorEvaluator(lambda p: p["x"], pool, workers=4), 4, batch_size=4)
    study.optimize(lambda p: p["x"], 0)
    assert [trial.status for trial in study.trials] == [Status.COMPLETE] * 4


@pytest.mark.parametrize("at", [1, 2, 3])
def test_what_ctrl_c_left_reserved_and_not_begun_is_evaluated_by_the_next_run(monkeypatch, at):
    study = Study(LINE, n_initial=2)
    elsewhere = study.ask()[0]
    reserve, calls = study.observations.reserve, iter(range(1, 9))

    def interrupted(*rows, **settings):
        reserved = reserve(*rows, **settings)
        if next(calls) == at:
            raise KeyboardInterrupt
        return reserved

    with monkeypatch.context() as patch:
        patch.setattr(study.observations, "reserve", interrupted)
        with pytest.raises(KeyboardInterrupt):
            study.optimize(lambda p: p["x"], 5)
    study.optimize(lambda p: p["x"], 0)
    assert study.pending == [elsewhere]
    assert len(study.trials) == 1 + at


def test_ctrl_c_while_a_proposal_is_forecast_reserves_nothing(monkeypatch):
    study = Study(LINE, seed=0, n_initial=3)
    with monkeypatch.context() as patch:
        patch.setattr(Engine, "expected_labels", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            study.optimize(lambda p: p["x"], 6, trainer=new_trainer())
    study.optimize(lambda p: p["x"], 2)
    assert [trial.status for trial in study.trials] == [Status.COMPLETE] * 5


def test_promotions_of_one_call_are_written_at_once_or_not_at_all(tmp_path):
    study = Study(LINE, budget=EPOCHS, journal=tmp_path / "run.jsonl")
    for trial in study.ask(6):
        study.tell(trial, float(trial.id))
    journal = study.observations.journal
    write_all, calls = journal.write_all, []

    def full_from_the_second_on(events):
        calls.append(events)
        if len(calls) > 1:
            raise JournalError("disk full")
        write_all(events)

    journal.write_all = full_from_the_second_on
    assert [(trial.params, trial.budget) for trial in study.ask(2)] == [(study.trials[k].params, 3) for k in (0, 1)]


def test_a_trial_that_reports_goes_on_itself_whoever_waits_to_be_promoted(tmp_path):
    path = tmp_path / "run.jsonl"
    study = Study(LINE, budget=EPOCHS, journal=path)
    *told, good, bad = study.ask(8)
    for trial in told:
        study.tell(trial, float(trial.id))
    study.ask(2)  # trials 0 and 1 go on
    study.close()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2]))  # it died before the journal had it
    loaded = Study.load(path)
    assert not loaded.report(bad.id, 9.0, step=1)
    assert loaded.report(good.id, -1.0, step=1)
    assert loaded.trials[-1].resume_from.id == good.id
    assert [trial.resume_from.id for trial in loaded.ask(2)] == [0, 1]


def test_a_stream_that_was_begun_anew_goes_on_after_loading(tmp_path):
    ahead = {}
    for name in ("live", "loaded"):
        study = Study(LINE, seed=0, journal=tmp_path / f"{name}.jsonl")
        study.reseed(7)
        for trial in study.ask(2):
            study.tell(trial, 0.0)
        if name == "loaded":
            study.close()
            study = Study.load(tmp_path / "loaded.jsonl")
        ahead[name] = [trial.params for trial in study.ask(2)]
    assert ahead["live"] == ahead["loaded"]
    assert study.seed == 7


def test_a_promotion_takes_nothing_off_the_queue(tmp_path):
    path = tmp_path / "run.jsonl"
    study = Study(LINE, budget=EPOCHS, journal=path)
    trials = study.ask(3)
    for trial in trials[:2]:
        study.report(trial, 1.0 + trial.id, step=1)
    study.enqueue(trials[2].params)
    assert study.report(trials[2], 0.0, step=1)  # goes on
    study.close()
    assert len(replay(Journal(path)).queue) == len(read_record(path).queue) == 1
    (trial,) = Study.load(path).ask()
    assert (trial.params, trial.budget) == (trials[2].params, 1)


def test_an_objective_may_tell_the_trial_that_runs():
    study = Study(LINE)

    def tells(params):
        if len(study.observations) == 2:
            study.tell(1, 0.5)
        return params["x"]

    study.optimize(tells, 4)
    assert study.trials[1].value == 0.5
    assert study.observations.n_complete == 4


def test_a_file_is_added_whole_or_not_at_all(tmp_path):
    (tmp_path / "earlier.csv").write_text("x,value,task\n0.1,1,\n0.2,2,old\n")
    study = Study(LINE, budget=EPOCHS)
    with pytest.raises(SettingError, match="earlier tasks do not combine with budgets"):
        study.add_csv(tmp_path / "earlier.csv")
    assert len(study.trials) == 0
