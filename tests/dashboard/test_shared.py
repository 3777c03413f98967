"""A shared study in an Optuna storage is shown as a run, and changed as far as its storage and its leader allow."""

import json
import math
import threading
import time

import pytest

optuna = pytest.importorskip("optuna")

from deepbore import Real, Study  # noqa: E402
from deepbore.dashboard.commands import command  # noqa: E402
from deepbore.dashboard.content import Content  # noqa: E402
from deepbore.dashboard.runs import row_of  # noqa: E402
from deepbore.dashboard.shared import studies_in  # noqa: E402
from deepbore.data.inbox import VERBS  # noqa: E402
from deepbore.errors import JournalError, SettingError, ValueTypeError  # noqa: E402
from deepbore.integrations.shared import Leader  # noqa: E402
from deepbore.worker.shared import open_storage, work  # noqa: E402
from deepbore.worker.shared_inbox import COMMAND, StorageInbox  # noqa: E402


def objective(trial):
    x, kind = trial.suggest_float("x", 0, 1), trial.suggest_categorical("kind", ["a", "b", None])
    trial.suggest_int("n", 1, 8)
    if trial.number == 2:
        raise optuna.TrialPruned
    if trial.number == 3:
        return float("nan")
    trial.report(x, 1)
    return x + (kind == "a")


def study_and_entry(folder, name="mine", trials=0):
    """A study of Optuna with some trials, and how the dashboard has it."""
    url = f"sqlite:///{folder}/study.db"
    study = optuna.create_study(study_name=name, storage=url)
    study.optimize(objective, trials)
    (entry,) = studies_in(url)
    return study, entry


@pytest.mark.usefixtures("quiet_optuna")
def test_a_study_is_a_run_that_goes_on(tmp_path):
    study, entry = study_and_entry(tmp_path, "<b>mine</b>", 6)
    entry.look()
    assert not entry.error
    row = row_of(entry)
    assert row["name"] == "<b>mine</b>"
    assert row["trials"] == 6
    assert row["value"] == study.best_value
    assert row["counts"] == {"failed": 1, "pruned": 1}
    assert row["state"] == "running"
    assert [trial.params for trial in entry.ledger.trials] == [trial.params for trial in study.trials]
    assert "history" in Content(entry).news([])
    study.optimize(objective, 1)
    entry._looked = 0.0
    entry.look()
    assert row_of(entry)["trials"] == 7


@pytest.mark.usefixtures("quiet_optuna")
def test_an_error_of_the_storage_says_nothing_of_its_address(tmp_path, monkeypatch):
    _, entry = study_and_entry(tmp_path)

    def fail(*_args, **_named):
        raise RuntimeError("postgresql://me:secret@db is away")

    monkeypatch.setattr(entry._storage, "get_all_trials", fail)
    entry.look()
    assert "RuntimeError" in entry.error
    assert "secret" not in entry.error


@pytest.mark.usefixtures("quiet_optuna")
@pytest.mark.parametrize("url", ["sqlite:///{}/nothing.db", "sqlite:///{}/no/folder.db", "nonsense://me:secret@x"])
def test_a_storage_that_is_none_is_refused_in_words(tmp_path, url):
    with pytest.raises(SettingError, match="storage") as refused:
        studies_in(url.format(tmp_path))
    assert "secret" not in str(refused.value)


# --- commands --------------------------------------------------------------------------------------------------------


def seen(entry):
    entry._looked = -math.inf
    entry.look()
    assert not entry.error
    return json.loads(Content(entry).news([]))["parts"]


def say(entry, verb, **said):
    return command(entry, {"verb": verb, **said}).says


@pytest.mark.usefixtures("quiet_optuna")
def test_a_study_of_optuna_alone_takes_what_its_storage_allows_and_says_why_not_more(tmp_path):
    study, entry = study_and_entry(tmp_path, trials=5)
    run = seen(entry)["*run"]
    assert run["verbs"] == ["enqueue", "note"]
    assert "deepbore lead" in run["why"]
    for verb, said in {"withdraw": {"trials": [0]}, "fix": {"params": {"x": 0.5}}, "stop": {}}.items():
        with pytest.raises(SettingError, match="deepbore lead"):
            say(entry, verb, **said)
    with pytest.raises(ValueTypeError, match="x"):
        say(entry, "enqueue", params={"x": 3})
    assert "worker" in say(entry, "enqueue", params={"x": 0.25, "kind": None})
    assert say(entry, "note", note="odd", trial=1, tags=["a"]) == "Done."
    assert say(entry, "note", note="the first try") == "Done."
    study.optimize(objective, 1)
    assert (study.trials[5].params["x"], study.trials[5].params["kind"]) == (0.25, None)
    parts = seen(entry)
    assert parts["*run"]["note"] == "the first try"
    assert parts["*logged"]["1"] == {"note": "odd", "tags": ["a"], "metrics": [], "artifacts": []}
    assert [each["refused"] for each in parts["*run"]["answers"]] == ["", ""]
    (again,) = studies_in(f"sqlite:///{tmp_path}/study.db")  # another dashboard
    assert seen(again)["*run"]["note"] == "the first try"


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.usefixtures("quiet_optuna")
def test_a_led_study_does_what_its_page_asks_for(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    storage = open_storage(url, creates=True)
    asked, found = [], {}

    def train(params):
        if len(asked) == 0 and len(found["study"].trials) > 4:
            (entry,) = studies_in(url)
            parts = seen(entry)
            assert (parts["*run"]["verbs"], parts["*run"]["why"]) == (list(VERBS), "")
            asked.append(entry)
            assert "leader" in say(entry, "withdraw", trials=[0], reason="by hand")
            say(entry, "enqueue", params={"x": 0.125, "y": 0.5})
            say(entry, "enqueue", params={"x": 0.375, "y": 0.5})
            say(entry, "fix", params={"y": 0.75})
            say(entry, "note", note="odd", trial=1, tags=["a"])
            StorageInbox(entry._storage, entry._id).put("note", note="n", trial=10_000)
            assert len(seen(entry)["*run"]["waiting"]) == 6
        elif len(asked) == 1 and found["study"].trials[1].note and len(found["study"].trials) > 14:
            asked.append(say(asked[0], "stop"))
        time.sleep(0.02)
        return params["x"]

    with Study({"x": Real(0, 1), "y": Real(0, 1)}, seed=0, journal=tmp_path / "run.jsonl", strategy="random") as study:
        found["study"] = study
        worker = threading.Thread(target=work, args=(train, storage, "s"), kwargs={"poll": 0.01, "patience": 20})
        worker.start()
        Leader(storage, "s", study, poll=0.02).run(5000, progress=False)
        worker.join()
        assert 14 < len(study.trials) < 5000  # stopped
        assert (study.trials[0].status.name, study.trials[0].reason) == ("WITHDRAWN", "by hand")
        assert {0.125, 0.375} <= {trial.params["x"] for trial in study.trials}
        assert study.trials[len(study.trials) - 1].params["y"] == 0.75
        assert study.trials[1].note == "odd"
    parts = seen(asked[0])
    assert parts["*run"]["waiting"] == []
    refused = [each["refused"] for each in parts["*run"]["answers"] if each["refused"]]
    assert len(refused) == 1
    assert "10000" in refused[0]
    assert parts["*logged"]["1"]["note"] == "odd"
    assert parts["*run"]["fixed"] == [["y", "0.75"]]
    assert asked[0].ledger.trials[0].status.name == "WITHDRAWN"
    assert asked[0].state == "ended"


@pytest.mark.usefixtures("quiet_optuna")
def test_what_waits_for_a_leader_that_never_comes_waits_and_an_old_stop_ends_no_later_run(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    storage = open_storage(url, creates=True)

    def led(n):
        with Study({"x": Real(0, 1)}, journal=tmp_path / "run.jsonl", strategy="random", if_exists="load") as study:
            given = (lambda params: params["x"], storage, "s")
            worker = threading.Thread(target=work, args=given, kwargs={"poll": 0.01})
            worker.start()
            Leader(storage, "s", study, poll=0.02).run(n, progress=False)
            worker.join()
            return len(study.trials), study.trials[0].note

    assert led(2) == (2, "")
    (entry,) = studies_in(url)
    seen(entry)
    say(entry, "stop")
    say(entry, "note", note="kept", trial=0)
    StorageInbox(storage, entry._id)._write(COMMAND + "5-00000000", {"verb": "explode <b>"})
    parts = seen(entry)
    assert [each["says"].split()[0] for each in parts["*run"]["waiting"]] == ["stop", "note"]
    assert "its verb must be one of" in parts["*run"]["malformed"][0]
    assert led(4) == (4, "kept")
    assert [bool(each["refused"]) for each in seen(entry)["*run"]["answers"]] == [True, False]


@pytest.mark.usefixtures("quiet_optuna")
def test_a_storage_that_can_not_be_written_is_told_without_its_address(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path}/study.db"
    optuna.create_study(study_name="mine", storage=url).optimize(objective, 1)
    (entry,) = studies_in(url)
    seen(entry)

    def fail(*_args, **_named):
        raise RuntimeError("postgresql://me:secret@db is away")

    monkeypatch.setattr(entry._storage, "set_study_system_attr", fail)
    with pytest.raises(JournalError, match="RuntimeError") as refused:
        say(entry, "note", note="mine")
    assert "secret" not in str(refused.value)
