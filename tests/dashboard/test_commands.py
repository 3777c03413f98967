"""Commands from the page: to a run that goes on by its inbox, to another by its journal; with the token only."""

import json

import pytest

from deepbore import Study
from deepbore.data.inbox import Inbox
from deepbore.data.replay import read_record
from watched import TOKEN, begun, key_of

MINE = {"x-deepbore-token": TOKEN}


def send(found, name, headers=MINE, **said):
    return found.post(f"/api/run/{key_of(found, name)}/command", headers=headers, content=json.dumps(said))


def page(found, name):
    while found.live.look():
        pass
    return found.get(f"/api/run/{key_of(found, name)}").json()["parts"]


@pytest.mark.parametrize("name", ["ended", "live"])
@pytest.mark.parametrize("headers", [{}, {"x-deepbore-token": "no" * 10}, {**MINE, "origin": "http://evil.example"}])
def test_without_the_token_or_from_another_page_nothing_changes(client, folder, name, headers):
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert send(client(), name, headers, verb="note", note="mine").status_code in (401, 403)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("name", ["ended", "live"])
@pytest.mark.parametrize("said", [{"verb": "note", "note": "x"}, {"verb": "withdraw", "trials": [0]}, {"verb": "stop"}])
def test_read_only_nothing_changes_even_with_the_token(client, folder, name, said):
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert send(client(read_only=True), name, **said).status_code == 403
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_run_that_has_ended_is_changed_at_once(client, folder):
    found = client()
    assert send(found, "ended", verb="withdraw", trials=[1, 2], reason="wrong data").json()["says"] == "Done."
    assert send(found, "ended", verb="note", note="looked at", tags=["good", "good"]).status_code == 200
    assert send(found, "ended", verb="note", note="odd", trial=0).status_code == 200
    record = read_record(folder / "ended.jsonl")
    assert [trial.status.name for trial in record.trials[:4]] == ["COMPLETE", "WITHDRAWN", "WITHDRAWN", "COMPLETE"]
    parts = page(found, "ended")
    assert (parts["*run"]["note"], parts["*run"]["tags"]) == ("looked at", ["good"])
    assert parts["*logged"]["0"]["note"] == "odd"
    assert next(row for row in found.live.rows.values() if row["name"] == "ended")["tags"] == ["good"]
    Study.load(folder / "ended.jsonl").close()


def test_what_is_enqueued_or_fixed_waits_for_the_next_start(client, folder):
    found = client()
    assert "next start" in send(found, "ended", verb="enqueue", params={"x": 0.5}).json()["says"]
    assert send(found, "ended", verb="fix", params={"layers": 3}).status_code == 200
    assert len(page(found, "ended")["*run"]["waiting"]) == 2
    with Study.load(folder / "ended.jsonl") as study:
        assert study.ask_one().params["x"] == 0.5
        assert study.ask_one().params["layers"] == 3
    parts = page(found, "ended")
    assert parts["*run"]["waiting"] == []
    assert [each["refused"] for each in parts["*run"]["answers"]] == ["", ""]
    assert parts["*run"]["fixed"] == [["layers", "3"]]


def test_a_run_that_goes_on_takes_commands_up(client, folder, tmp_path):
    path = tmp_path / "going" / "run.jsonl"
    study = begun(path, 3)
    found = client(tmp_path / "going")
    before = path.read_bytes()
    assert "next trial" in send(found, "run", verb="withdraw", trials=[1]).json()["says"]
    assert send(found, "run", verb="enqueue", params={"x": 0.5, "layers": 5}).json()["id"]
    assert path.read_bytes() == before  # one writer
    parts = page(found, "run")
    assert [each["says"].split()[0] for each in parts["*run"]["waiting"]] == ["withdraw", "enqueue"]
    trial = study.ask_one()
    assert (trial.params["x"], trial.params["layers"]) == (0.5, 5)
    assert study.trials[1].status.name == "WITHDRAWN"
    assert page(found, "run")["*run"]["waiting"] == []
    study.close()


def test_a_run_is_stopped_from_the_page(client, tmp_path):
    from deepbore import SearchSpace
    from watched import SPACE, value_of

    study = Study(SearchSpace(SPACE), seed=0, journal=tmp_path / "going" / "run.jsonl")
    found = client(tmp_path / "going")

    def objective(params):
        if len(study.trials) == 4:
            found.live.look()
            assert send(found, "run", verb="stop").status_code == 200
        return value_of(params)

    study.optimize(objective, 30, progress=False)
    assert len(study.trials) == 4
    study.close()


@pytest.mark.parametrize(
    ("said", "status", "why"),
    [
        ({"verb": "explode"}, 400, "verb"),
        ({}, 400, "verb"),
        ([], 400, "verb"),
        ({"verb": "stop"}, 400, "nothing to stop"),
        ({"verb": "withdraw", "trials": []}, 409, "at least one"),
        ({"verb": "withdraw", "trials": [77]}, 409, "77"),
        ({"verb": "withdraw", "trials": ["../../etc"]}, 409, "whole numbers"),
        ({"verb": "withdraw", "trials": [0], "reason": 3}, 409, "reason"),
        ({"verb": "enqueue", "params": {"x": 2}}, 409, "[0"),
        ({"verb": "enqueue", "params": {}}, 409, "at least 1"),
        ({"verb": "enqueue", "params": {"layers": 2.5}}, 409, "whole number"),
        ({"verb": "enqueue", "params": {"opt": "<script>"}}, 400, "opt"),
        ({"verb": "fix", "params": {"nothing": 2}}, 400, "nothing"),
        ({"verb": "fix", "params": {"x": None}}, 400, "x"),
        ({"verb": "note", "note": "x" * 10_001}, 409, "10,000"),
        ({"verb": "note", "tags": "one"}, 409, "tags"),
        ({"verb": "note", "trial": 99, "note": "x"}, 409, "99"),
        ({"verb": "note", "trial": "0", "note": "x"}, 409, "0"),
    ],
)
def test_what_does_not_fit_is_refused_in_words_and_nothing_changes(client, folder, said, status, why):
    found = client()
    before = (folder / "ended.jsonl").read_bytes()
    answer = found.post(f"/api/run/{key_of(found, 'ended')}/command", headers=MINE, content=json.dumps(said))
    assert why in answer.text
    assert answer.status_code in (400, 409)
    assert answer.headers["content-type"].startswith("text/plain")
    assert (folder / "ended.jsonl").read_bytes() == before
    assert not Inbox(folder / "ended.jsonl", None).mail().waiting


@pytest.mark.parametrize("content", [b"", b"no JSON", b"[" * 50_000, b'{"verb": "note", "note": NaN', b"\xff\xfe"])
def test_what_is_no_json_is_refused(client, content):
    found = client()
    answer = found.post(f"/api/run/{key_of(found, 'ended')}/command", headers=MINE, content=content)
    assert answer.status_code == 400


def test_a_command_that_is_too_long_is_refused(client):
    found = client()
    answer = found.post(f"/api/run/{key_of(found, 'ended')}/command", headers=MINE, content=b" " * 200_000)
    assert answer.status_code == 413


def test_commands_to_unknown_runs_are_not_found(client):
    found = client()
    assert found.post("/api/run/nothing/command", headers=MINE, content=b"{}").status_code == 404


def test_a_command_that_cannot_be_removed_is_not_done_again_and_again(folder, monkeypatch):
    inbox, done = Inbox(folder / "ended.jsonl", None), []
    inbox.put("stop")
    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.unlink", lambda *_args, **_more: (_ for _ in ()).throw(PermissionError()))
        inbox.take(done.append)
        inbox.take(done.append)
    assert done == []
    inbox.take(done.append)
    assert len(done) == 1


@pytest.mark.parametrize("name", ["ended", "live"])
def test_no_command_is_put_behind_a_link(client, folder, tmp_path, name):
    found = client()
    (tmp_path / "outside").mkdir()
    journal = next(entry.journal for entry in found.live.shelf.entries.values() if entry.name == name)
    journal.with_name(f"{journal.name}.inbox").symlink_to(tmp_path / "outside", target_is_directory=True)
    answer = send(found, name, verb="enqueue", params={"x": 0.5})
    assert answer.status_code == 409
    assert "link" in answer.text
    assert not list((tmp_path / "outside").iterdir())


# --- artifacts -------------------------------------------------------------------------------------------------------

PNG = b"\x89PNG\r\n\x1a\n and more"


@pytest.fixture
def made(tmp_path):
    """A run whose trial has made a picture, a page with a script, and names a file elsewhere."""
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    study = begun(tmp_path / "made" / "run.jsonl", 1)
    trial = study.ask_one()
    trial.log_artifact(PNG, "a.png")
    trial.log_artifact(b"<script>alert(1)</script>", "<b>x</b>.html")
    trial.log({"accuracy": 0.5})
    study.tell(trial, 1)
    study.close()
    return tmp_path / "made"


def test_pictures_are_shown_and_all_else_is_saved(client, made):
    found = client(made)
    logged = page(found, "run")["*logged"]["1"]
    assert logged["metrics"] == [["accuracy", 0.5, 1]]
    picture, html = logged["artifacts"]
    key = key_of(found, "run")
    answer = found.get(f"/api/run/{key}/artifact/{picture['digest']}")
    assert (answer.content, answer.headers["content-type"]) == (PNG, "image/png")
    answer = found.get(f"/api/run/{key}/artifact/{html['digest']}")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert "sandbox" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_only_what_a_run_has_logged_is_given_and_only_as_it_was(client, made, tmp_path):
    found = client(made)
    key, folder = key_of(found, "run"), made / "run.jsonl.artifacts"
    (digest, *_) = [each["digest"] for each in page(found, "run")["*logged"]["1"]["artifacts"]]
    for other in ("0" * 64, "..%2f..%2fsecret", "../../secret", digest.upper(), digest[:-1]):
        assert found.get(f"/api/run/{key}/artifact/{other}").status_code == 404
    file = folder / digest[:2] / digest
    file.write_bytes(b"other content")
    assert found.get(f"/api/run/{key}/artifact/{digest}").status_code == 404
    file.unlink()
    file.symlink_to(tmp_path / "secret")
    assert found.get(f"/api/run/{key}/artifact/{digest}").status_code == 404
