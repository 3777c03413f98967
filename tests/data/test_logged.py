"""What trials log: it is in records, journals and frames, wherever trials run, and changes no run."""

import hashlib
import logging

import numpy as np
import pytest

from deepbore import Outcome, ProcessEvaluator, Real, SearchSpace, Study
from deepbore.data.journal import Journal
from deepbore.data.logged import LARGEST, LOGGED, Artifact, artifacts_path, content_path, kept
from deepbore.data.replay import read_record
from deepbore.errors import JournalError, TrialError, ValueTypeError

SPACE = {"x": Real(0, 1)}
CONTENT = b"\x89PNG of a confusion matrix"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


def logging_objective(params, trial):
    for epoch in range(3):
        trial.log({"accuracy": epoch / 10, "lr": 1e-3}, step=epoch)
    trial.log("parameters", 1234)
    trial.log_artifact(CONTENT, "confusion.png")
    if params["x"] > 2:
        raise ValueError
    return params["x"]


def checked(trial):
    assert trial.metrics == {
        "accuracy": {0: 0, 1: 0.1, 2: 0.2},
        "lr": {0: 1e-3, 1: 1e-3, 2: 1e-3},
        "parameters": {0: 1234},
    }
    (artifact,) = trial.artifacts
    assert (artifact.name, artifact.size, artifact.digest) == ("confusion.png", len(CONTENT), DIGEST)


@pytest.mark.parametrize("workers", [0, 2])
def test_what_an_objective_logs_is_kept_wherever_it_runs(tmp_path, workers):
    path = tmp_path / "run.jsonl"
    study = Study(SearchSpace(SPACE), seed=0, journal=path)
    study.optimize(
        ProcessEvaluator(logging_objective, workers=workers) if workers else logging_objective, 3, progress=False
    )
    study.close()
    for source in (study.trials, Study.load(path).trials, read_record(path).trials):
        for trial in source:
            checked(trial)
            assert LOGGED not in trial.attributes
    assert content_path(artifacts_path(path), DIGEST).read_bytes() == CONTENT
    assert len(list(artifacts_path(path).rglob("*"))) == 2  # the same content is there once, in a folder
    frame = study.to_frame()
    assert frame["metric_accuracy"].tolist() == [0.2] * 3
    assert frame["metric_parameters"].tolist() == [1234] * 3
    assert frame["artifacts"].tolist() == [["confusion.png"]] * 3


def test_a_run_that_logs_is_the_run_that_does_not(tmp_path):
    asked = []
    for objective in (logging_objective, lambda params: params["x"]):
        study = Study(SearchSpace(SPACE), seed=0, journal=tmp_path / f"{len(asked)}.jsonl")
        study.optimize(objective, 14, progress=False)
        asked.append([trial.params for trial in study.trials])
        study.close()
    assert asked[0] == asked[1]


def test_a_trial_that_fails_keeps_what_it_has_logged():
    study = Study(SearchSpace({"x": Real(3, 4)}), seed=0)

    def failing(params, trial):
        trial.log("loss", 7)
        raise ValueError("no")

    with pytest.warns(RuntimeWarning):
        study.optimize(failing, 1, progress=False, max_failures=None)
    assert study.trials[0].metrics == {"loss": {0: 7}}
    assert study.trials[0].status.name == "FAILED"


def test_a_trial_that_was_asked_for_logs_at_once_and_after_its_end(tmp_path):
    study = Study(SearchSpace(SPACE), seed=0, journal=tmp_path / "run.jsonl")
    trial = study.ask_one()
    trial.log("accuracy", 0.5)
    trial.log({"accuracy": 0.6})
    assert study.trials[0].metrics == {"accuracy": {0: 0.5, 1: 0.6}}
    study.tell(trial, 1)
    trial.log("accuracy", float("inf"), step=1)
    assert np.isnan(study.trials[0].metrics["accuracy"][1])
    trial.log_artifact(b"one", "a")
    trial.log_artifact(b"two", "b")
    trial.log_artifact(b"three", "a")
    assert [each.name for each in study.trials[0].artifacts] == ["b", "a"]
    assert read_record(tmp_path / "run.jsonl").trials[0].artifacts == study.trials[0].artifacts
    study.close()


def test_notes_and_tags_of_trials_and_of_the_run(tmp_path):
    path = tmp_path / "run.jsonl"
    study = Study(SearchSpace(SPACE), seed=0, journal=path)
    study.tell(study.ask_one(), 1)
    study.trials.note("first run of the week", tags=["week 3", "a", "a"])
    study.trials.note("odd", 0)
    study.trials.note(trial=0, tags=["again"])
    study.close()
    for ledger in (study.observations.ledger, read_record(path), Study.load(path).observations.ledger):
        assert ledger.remarks == {None: "first run of the week", 0: "odd"}
        assert ledger.tags == {None: ("week 3", "a"), 0: ("again",)}
    assert (study.trials[0].note, study.trials[0].tags) == ("odd", ("again",))


@pytest.mark.parametrize(
    "wrong",
    [{"tags": "one text"}, {"tags": [""]}, {"tags": ["x" * 51]}, {"tags": [3]}, {"text": 3}, {"text": "x" * 10_001}],
)
def test_what_is_no_note_is_refused_and_nothing_written(tmp_path, wrong):
    path = tmp_path / "run.jsonl"
    study = Study(SearchSpace(SPACE), seed=0, journal=path)
    before = path.read_bytes()
    with pytest.raises(ValueTypeError):
        study.trials.note(**wrong)
    assert path.read_bytes() == before
    study.close()


@pytest.mark.parametrize(
    "wrong",
    [({"a": "text"},), ("a", "text"), ({3: 1},), ({},), (5,), ("", 1), ("a", 1, -1), ("a", 1, "x"), ("a" * 201, 1)],
)
def test_what_is_no_metric_is_refused(wrong):
    trial = Study(SearchSpace(SPACE), seed=0).ask_one()
    with pytest.raises(ValueTypeError):
        trial.log(*wrong)


def test_a_record_of_a_trial_logs_nothing():
    study = Study(SearchSpace(SPACE), seed=0)
    study.ask_one()
    with pytest.raises(TrialError, match="a record"):
        study.trials[0].log("a", 1)


def test_artifacts_are_content_or_references(tmp_path):
    folder, file = tmp_path / "kept", tmp_path / "weights.pt"
    file.write_bytes(b"w" * 10)
    assert kept(file, None, folder) == Artifact("weights.pt", 10, hashlib.sha256(b"w" * 10).hexdigest())
    assert kept(str(file), "best", None) == Artifact("best", 10, path=str(file))
    assert kept(tmp_path, None, folder).path == str(tmp_path)
    with file.open("r+b") as opened:
        opened.truncate(LARGEST + 1)  # of holes
    assert kept(file, None, folder) == Artifact("weights.pt", LARGEST + 1, path=str(file))


@pytest.mark.parametrize(
    ("content", "name", "error"),
    [
        (b"x", None, ValueTypeError),
        (3, "x", ValueTypeError),
        ("", "x", ValueTypeError),
        ("/nowhere/at/all", None, TrialError),
    ],
)
def test_what_is_no_artifact_is_refused(tmp_path, content, name, error):
    with pytest.raises(error):
        kept(content, name, tmp_path)


def test_bytes_need_a_journal():
    with pytest.raises(TrialError, match="journal"):
        Study(SearchSpace(SPACE), seed=0).ask_one().log_artifact(b"x", "x")


@pytest.mark.parametrize("digest", ["../../etc/passwd", "0" * 63, "G" * 64, "0" * 64 + "/x", 3])
def test_a_journal_names_no_path_by_a_checksum(digest):
    with pytest.raises(ValueTypeError):
        Artifact.of({"name": "x", "size": 1, "digest": digest})


@pytest.mark.parametrize(
    "carried", [3, {"metrics": 3}, {"metrics": {"a": "x"}}, {"artifacts": [3]}, {"artifacts": [{"name": "a"}]}]
)
def test_an_outcome_with_a_malformed_log_is_kept_without_it(caplog, carried):
    study = Study(SearchSpace(SPACE), seed=0)
    with caplog.at_level(logging.WARNING):
        study.tell(study.ask_one(), Outcome(1.0, attributes={LOGGED: carried, "a": 1}))
    assert "is lost" in caplog.text
    assert study.trials[0].value == 1
    assert study.trials[0].attributes == {"a": 1}


def test_an_older_version_refuses_the_events_with_a_clear_error(tmp_path, monkeypatch):
    from deepbore.data import events

    path = tmp_path / "run.jsonl"
    study = Study(SearchSpace(SPACE), seed=0, journal=path)
    study.ask_one().log("a", 1)
    study.close()
    assert [line["event"] for line in Journal(path).read()] == ["created", "asked", "logged"]
    monkeypatch.delitem(events.READ, "logged")
    with pytest.raises(JournalError, match=r"line 3 of .*logged"):
        Study.load(path)


def test_a_step_in_the_place_of_the_value_is_named_in_the_error():
    trial = Study(SPACE, seed=0).ask_one()
    with pytest.raises(ValueTypeError, match="step=3"):
        trial.log({"accuracy": 0.5}, 3)


@pytest.mark.parametrize("name", ["\ud800", "a\udcff"])
def test_a_name_that_no_file_can_hold_is_refused(tmp_path, name):
    trial = Study(SPACE, seed=0, journal=tmp_path / "run.jsonl").ask_one()
    with pytest.raises(ValueTypeError, match="Unicode"):
        trial.log(name, 1.0)
    with pytest.raises(ValueTypeError, match="Unicode"):
        trial.log_artifact(b"x", name)


def test_a_path_that_is_none_is_refused(tmp_path):
    trial = Study(SPACE, seed=0, journal=tmp_path / "run.jsonl").ask_one()
    with pytest.raises(TrialError, match="can't be read"):
        trial.log_artifact("a\x00b")


def test_content_that_is_too_large_to_be_shown_is_not_kept(tmp_path):
    with pytest.raises(TrialError, match="log its path"):
        kept(bytes(LARGEST + 1), "large", tmp_path / "artifacts")
    assert not (tmp_path / "artifacts").exists()
