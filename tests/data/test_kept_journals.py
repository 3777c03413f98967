"""Journals that versions 0.2 and 0.3 have written: they say what these versions said of them, and their runs go on."""

import json
import shutil

import pytest

from deepbore import Real, SearchSpace, Study
from deepbore.data.replay import read_record
from kept_observations import KEPT

NAMES = sorted(path.stem for path in KEPT.glob("*_0_*.jsonl"))


@pytest.fixture(params=NAMES)
def journal(request, tmp_path):
    """A copy of a journal, and what the version that wrote it said of it."""
    path = tmp_path / "run.jsonl"
    shutil.copy(KEPT / f"{request.param}.jsonl", path)
    return path, json.loads((KEPT / f"{request.param}.json").read_text())


def said_of(trial, kept):
    """Those fields of a trial that a version knew, as plain data."""
    fields = {name: getattr(trial, name) for name in kept}
    fields |= {"status": str(trial.status)} | ({"attributes": dict(trial.attributes)} if "attributes" in kept else {})
    if "resume_from" in kept:
        fields["resume_from"] = trial.resume_from.id
    if "former" in kept:
        fields["former"] = [each.values for each in trial.former]
    return json.loads(json.dumps(fields))


def test_they_say_what_they_said(journal):
    path, said = journal
    study = Study.load(path)
    for trials in (study.trials, read_record(path).trials):
        assert [said_of(*each) for each in zip(trials, said["trials"], strict=True)] == said["trials"]
    best = [study.best_trial] if study.observations.k == 1 else study.pareto_front
    assert [trial.id for trial in best] == said["best"]


def test_their_runs_go_on_in_the_same_file(journal):
    path, said = journal
    before, study = path.read_bytes(), Study.load(path)
    waiting = len(study.pending)
    (new,) = study.ask()
    assert new.id == len(said["trials"])
    if said["queue"]:
        assert new.params.items() >= {"lr": 0.01, "n": 4, "opt": 3}.items()
    study.tell(new, failed=True)
    study.close()
    assert path.read_bytes().startswith(before)
    assert len(Study.load(path).pending) == waiting
    assert str(read_record(path).trials[-1].status) == "failed"


def test_there_are_some_of_each_version():
    assert {name.rpartition("_0_")[2] for name in NAMES} == {"2", "3"}


@pytest.mark.parametrize("name", ["conditional", "maximize"])
def test_runs_of_version_0_1_go_on(name, tmp_path):
    path = tmp_path / "run.jsonl"
    shutil.copy(KEPT / f"{name}.jsonl", path)
    study = Study.load(path)
    known = [(trial.id, trial.params, trial.value, str(trial.status)) for trial in study.trials]
    (new,) = study.ask()
    assert new.id == len(known) > 10
    study.tell(new, 0.25)
    study.close()
    again = [(trial.id, trial.params, trial.value, str(trial.status)) for trial in Study.load(path).trials]
    assert again[:-1] == known
    assert again[-1] == (new.id, new.params, 0.25, "complete")


def test_a_load_encodes_trials_together(tmp_path, monkeypatch):
    study = Study(SearchSpace({"x": Real(0, 1)}), journal=tmp_path / "run.jsonl", strategy="random")
    for trial in study.ask(30):
        study.tell(trial, trial.params["x"])
    study.close()
    encode, calls = SearchSpace.encode, []
    monkeypatch.setattr(SearchSpace, "encode", lambda self, params: calls.append(len(params)) or encode(self, params))
    again = Study.load(tmp_path / "run.jsonl")
    assert again.trials == study.trials
    assert max(calls) == 30
    assert len(calls) < 5
