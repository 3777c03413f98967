"""What the dashboard answers: the list, the page of a run, several runs."""

import asyncio
import json
import shutil
from functools import partial

import pytest

from deepbore import Study
from deepbore.dashboard.comparing import MOST_RUNS
from deepbore.dashboard.live import ABREAST
from deepbore.dashboard.runs import Shelf
from deepbore.errors import JournalError
from watched import key_of, value_of


def rows_of(found):
    return {row["name"]: row for row in found.live.rows.values()}


def page(found, name, known=()):
    return found.get(f"/api/run/{key_of(found, name)}?known={','.join(known)}").json()


def marks(answer):
    return dict(answer["order"])


def test_the_list_says_how_each_run_is(client):
    rows = rows_of(client())
    assert {name: row["state"] for name, row in rows.items()} == {"ended": "ended", "dead": "dead", "live": "running"}
    assert rows["dead"]["counts"] == {"running": 2}
    assert rows["ended"]["trials"] == 6
    assert rows["live"]["value"] == pytest.approx(float(rows["live"]["best"]), rel=1e-4)


def test_a_run_that_cannot_be_read_says_why_and_the_others_stay(client, folder):
    content = (folder / "ended.jsonl").read_bytes()
    (folder / "damaged.jsonl").write_bytes(content.replace(b'"value": ', b'"value": 1', 1))
    rows = rows_of(client())
    assert rows["damaged"]["state"] == "unreadable"
    assert "damaged" in rows["damaged"]["error"]
    assert rows["ended"]["state"] == "ended"


def test_new_runs_are_found(client, folder):
    found = client()
    Study.load(folder / "dead.jsonl").close()
    (folder / "copy.jsonl").write_bytes((folder / "ended.jsonl").read_bytes())
    found.live.shelf.scanned = -100.0
    while found.live.look():
        pass
    assert rows_of(found)["copy"]["trials"] == 6


def test_links_within_a_folder_are_no_runs(client, folder, tmp_path):
    (tmp_path / "outside.jsonl").write_bytes((folder / "ended.jsonl").read_bytes())
    (folder / "link.jsonl").symlink_to(tmp_path / "outside.jsonl")
    (folder / "linked").symlink_to(tmp_path, target_is_directory=True)
    assert set(rows_of(client())) == {"ended", "dead", "live"}


def test_a_run_that_comes_to_lie_outside_is_read_no_more(client, folder, tmp_path):
    found = client()
    (folder / "live").rename(tmp_path / "elsewhere")
    (folder / "live").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    found.live.look()
    assert "outside" in rows_of(found)["live"]["error"]


def test_nothing_at_a_path_is_said_at_once(tmp_path):
    with pytest.raises(JournalError, match="no run"):
        Shelf.of([str(tmp_path / "nothing")])


def test_a_page_has_the_sections_of_the_report(client):
    answer = page(client(), "ended")
    assert list(marks(answer))[:3] == ["history", "best-configuration", "parallel-coordinates"]
    assert {"values-by-parameter", "trials", "*facts", "*table", "*scales", "*about"} <= set(marks(answer))
    assert set(answer["parts"]) == set(marks(answer))
    assert len(answer["parts"]["*table"]["rows"]) == 6
    assert len(answer["parts"]["values-by-parameter"]["charts"]) == 4


def test_a_page_gets_what_it_does_not_have(client, folder):
    found = client()
    first = page(found, "ended")
    again = page(found, "ended", marks(first).values())
    assert again["parts"] == {}
    assert again["order"] == first["order"]
    with Study.load(folder / "ended.jsonl") as study:
        study.optimize(value_of, 1, progress=False)
    while found.live.look():
        pass
    news = page(found, "ended", marks(first).values())
    assert {"history", "*table", "*facts"} <= set(news["parts"])
    assert "*scales" not in news["parts"]
    assert len(news["parts"]["*table"]["rows"]) == 7


def test_an_unknown_run_is_not_found(client):
    found = client()
    assert found.get("/api/run/000000000000").status_code == 404
    assert found.get("/api/run/").status_code == 404


def test_several_runs_are_lines_of_one_chart(client):
    found = client()
    keys = [key_of(found, name) for name in ("ended", "live")]
    answer = found.get(f"/api/compare?runs={','.join(keys)},nonsense").json()
    assert [trace["name"] for trace in answer["chart"]["data"]] == ["ended", "live"]
    for trace, name in zip(answer["chart"]["data"], ("ended", "live"), strict=True):
        assert trace["y"][-1] == pytest.approx(rows_of(found)[name]["value"])
        assert trace["x"][-1] == rows_of(found)[name]["trials"]


def test_runs_beyond_the_most_on_a_chart_are_named(client, folder):
    for k in range(MOST_RUNS + 1):
        (folder / f"copy{k:02}.jsonl").write_bytes((folder / "ended.jsonl").read_bytes())
    found = client()
    keys = [key_of(found, f"copy{k:02}") for k in range(MOST_RUNS + 1)]
    answer = found.get(f"/api/compare?runs={','.join(keys)}").json()
    assert len(answer["chart"]["data"]) == MOST_RUNS
    assert answer["left_out"] == [f"copy{MOST_RUNS} is one more than the {MOST_RUNS} runs of a chart"]


def test_runs_of_another_direction_are_left_out_and_named(client, folder):
    from watched import SPACE

    study = Study(SPACE, seed=0, journal=folder / "up.jsonl", direction="maximize")
    study.optimize(value_of, 3, progress=False)
    study.close()
    found = client()
    keys = [key_of(found, name) for name in ("ended", "up")]
    answer = found.get(f"/api/compare?runs={','.join(keys)}").json()
    assert answer["left_out"] == ["up does not minimize its values"]
    assert len(answer["chart"]["data"]) == 1


def test_events_begin_with_all_rows_and_go_on_with_changes(client, folder):
    live = client().live

    async def read():
        messages = live.messages()
        first = json.loads((await anext(messages)).removeprefix("data: "))
        with Study.load(folder / "ended.jsonl") as study:
            study.optimize(value_of, 1, progress=False)
        await asyncio.to_thread(live.look)
        return first, json.loads((await asyncio.wait_for(anext(messages), 20)).removeprefix("data: "))

    first, then = asyncio.run(read())
    assert first["all"]
    assert len(first["rows"]) == 3
    assert [(row["name"], row["trials"]) for row in then["rows"]] == [("ended", 7)]


def test_assets_are_kept_by_browsers_until_they_change(client):
    found = client()
    answer = found.get("/assets/dashboard.js")
    assert answer.headers["content-type"].startswith("text/javascript")
    assert found.get("/assets/dashboard.js", headers={"if-none-match": answer.headers["etag"]}).status_code == 304


def test_one_run_that_cannot_be_looked_at_does_not_hide_the_others(client, folder):
    found = client()
    for name in ("dead", "ended"):
        (folder / f"{name}.jsonl").rename(folder.parent / f"{name}.jsonl")
        (folder / f"{name}.jsonl").symlink_to(f"{name}.jsonl")  # a loop
    shutil.rmtree(folder / "live")
    found.live.look()
    assert {row["state"] for row in rows_of(found).values()} == {"unreadable"}
    for name in ("dead", "ended"):
        (folder / f"{name}.jsonl").unlink()
        (folder.parent / f"{name}.jsonl").rename(folder / f"{name}.jsonl")
    while found.live.look():
        pass
    assert rows_of(found)["ended"]["state"] == "ended"


def test_an_error_of_one_run_leaves_the_others_watched(client, monkeypatch):
    found = client()
    entries = list(found.live.shelf.entries.values())
    looked = []

    def fail(entry):
        looked.append(entry)
        raise IndexError

    for entry in entries:
        monkeypatch.setattr(entry, "look", partial(fail, entry))
    found.live.look()
    assert looked == entries


def test_a_reader_who_is_far_behind_misses_no_run(client):
    live = client().live

    async def read():
        messages = live.messages()
        await anext(messages)
        live.rows = {str(k): {"key": str(k)} for k in range(3 * ABREAST)}
        for row in live.rows.values():
            live._tell(json.dumps({"rows": [row]}))
        await asyncio.sleep(0.1)
        seen = set()
        while len(seen) < len(live.rows):
            told = json.loads((await asyncio.wait_for(anext(messages), 5)).removeprefix("data: "))
            seen = {row["key"] for row in told["rows"]} | (set() if told.get("all") else seen)
        return seen

    assert asyncio.run(read()) == set(live.rows)
