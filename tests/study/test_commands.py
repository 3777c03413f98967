"""A study takes up what was left in the inbox beside its journal: once, in order, and says what became of it."""

import time

import pytest

from deepbore import Real, SearchSpace, Study
from deepbore.data.inbox import Inbox
from deepbore.errors import JournalError
from deepbore.plots import report

SPACE = {"x": Real(0, 1), "y": Real(0, 1)}


@pytest.fixture
def study(tmp_path):
    with Study(SearchSpace(SPACE), seed=0, journal=tmp_path / "run.jsonl") as study:
        yield study


def inbox_of(study):
    return Inbox(study.observations.journal.path, study.observations.journal.run_id)


def refusals(study):
    return [each["refused"] for each in inbox_of(study).answers()]


def test_an_ask_takes_up_what_waits(study):
    first = study.ask_one()
    study.tell(first, 1)
    inbox = inbox_of(study)
    inbox.put("withdraw", trials=[0], reason="by hand")
    inbox.put("fix", params={"y": 0.25})
    inbox.put("enqueue", params={"x": 0.5})
    inbox.put("note", note="watched", tags=["a"])
    inbox.put("note", note="odd", trial=0)
    assert [each.verb for each in inbox.mail().waiting] == ["withdraw", "fix", "enqueue", "note", "note"]
    trial = study.ask_one()
    assert trial.params == {"x": 0.5, "y": 0.25}
    assert study.trials[0].reason == "by hand"
    assert study.observations.ledger.remarks == {None: "watched", 0: "odd"}
    assert inbox.mail().waiting == []
    assert refusals(study) == [None] * 5


def test_a_run_takes_up_what_waits_when_a_trial_ends(study):
    inbox = inbox_of(study)

    def objective(params):
        if len(study.trials) == 3:
            inbox.put("enqueue", params={"x": 0.125, "y": 0.875})
        if len(study.trials) == 6:
            inbox.put("stop")
        return params["x"]

    study.optimize(objective, 50, progress=False)
    assert study.trials[3].params == {"x": 0.125, "y": 0.875}
    assert len(study.trials) == 6
    assert refusals(study) == [None, None]


def test_what_waits_at_the_start_of_a_run_comes_first(study):
    inbox_of(study).put("enqueue", params={"x": 0.125, "y": 0.875})
    study.optimize(lambda params: params["x"], 2, progress=False)
    assert study.trials[0].params == {"x": 0.125, "y": 0.875}


def test_a_wish_to_stop_an_earlier_run_stops_no_later_one(study):
    inbox_of(study).put("stop")
    time.sleep(0.01)
    study.optimize(lambda params: params["x"], 3, progress=False)
    assert len(study.trials) == 3
    assert "is over" in refusals(study)[0]


@pytest.mark.parametrize(
    ("verb", "said", "why"),
    [
        ("withdraw", {"trials": [99]}, "99"),
        ("withdraw", {"trials": ["0"]}, "whole numbers"),
        ("withdraw", {"trials": 0}, "must be a list, but is 0"),
        ("withdraw", {}, "'trials' of a command to withdraw must be a list, but is missing"),
        ("enqueue", {"params": {"x": 7}}, "x"),
        ("enqueue", {"params": {"z": 0}}, "z"),
        ("enqueue", {"params": 3}, "must be a mapping, but is 3"),
        ("fix", {"params": {"x": "no"}}, "x"),
        ("note", {"note": 3}, "note"),
        ("note", {"note": "a", "trial": 99}, "99"),
        ("note", {"tags": [3]}, "tag"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason_and_the_run_goes_on(study, verb, said, why):
    study.tell(study.ask_one(), 1)
    inbox_of(study).put(verb, **said)
    study.ask_one()
    (refused,) = refusals(study)
    assert why in refused
    assert inbox_of(study).mail().waiting == []


def test_a_command_for_another_run_in_the_same_place_is_refused(study):
    Inbox(study.observations.journal.path, "another").put("enqueue", params={"x": 0.5})
    study.ask_one()
    assert "another run" in refusals(study)[0]
    assert study.trials[0].params["x"] != 0.5


def test_what_is_no_command_is_told_in_words_and_passed_over(study, tmp_path):
    inbox = inbox_of(study)
    inbox.folder.mkdir()
    for name, content in {
        "1-00000000": b"no JSON",
        "2-00000000": b'{"verb": "explode"}',
        "3-00000000": b"[]",
        "4-00000000": b"[" * 100_000,
    }.items():
        (inbox.folder / name).write_bytes(content)
    (tmp_path / "secret").write_text('{"verb": "stop"}', encoding="utf-8")
    (inbox.folder / "5-00000000").symlink_to(tmp_path / "secret")
    (inbox.folder / "notes.txt").write_text("mine", encoding="utf-8")
    words = ["no JSON", "must be one of withdraw", "a mapping with a verb", "no JSON", "can't be read"]
    assert all(word in said for word, said in zip(words, inbox.mail().malformed, strict=True))
    page = report(study.observations.ledger, inbox=inbox)
    assert "no command: 2-00000000: its verb must be one of" in page
    assert str(tmp_path) not in page
    study.ask_one()
    assert inbox.mail().malformed == []
    assert all(word in said for word, said in zip(words, refusals(study), strict=True))
    assert "refused: a malformed command: its verb must be one of" in report(study.observations.ledger, inbox=inbox)
    assert [path.name for path in inbox.folder.iterdir()] == ["notes.txt"]
    assert (tmp_path / "secret").exists()


def test_too_many_or_too_long_commands_are_refused(study, monkeypatch):
    monkeypatch.setattr("deepbore.data.inbox.MOST", 2)
    inbox = inbox_of(study)
    for _ in range(2):
        inbox.put("stop")
    with pytest.raises(JournalError, match="wait"):
        inbox.put("stop")
    with pytest.raises(JournalError, match="bytes"):
        inbox.put("note", note="x" * 2**19)


def test_a_study_without_a_journal_has_no_inbox():
    study = Study(SearchSpace(SPACE), seed=0)
    study.ask_one()
    study.optimize(lambda params: params["x"], 1, progress=False)
    assert len(study.trials) == 2
