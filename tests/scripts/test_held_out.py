"""scripts/harness/held_out.py: a set of problems that is held out is looked at once, by its release."""

import json

import pytest

from harness import held_out
from processes import ROOT
from reporting import rows

PROBLEM, OTHER = "bbob/f01/i07/d05", "bbob/f02/i07/d05"


@pytest.fixture
def kept(tmp_path, monkeypatch):
    said = {"rev-parse": "a" * 40, "status": ""}
    monkeypatch.setattr(held_out, "_git", lambda command, *_: said[command])
    path = tmp_path / "held_out.json"
    plan = [{"problems": [PROBLEM]}]
    seven = {"release": "0.3", "look": None, "plan": plan, "problems": [PROBLEM, OTHER]}
    path.write_text(json.dumps({"sets": {"seven": seven}}))
    return path, said


def test_a_set_is_looked_at_once(kept):
    path, said = kept
    held_out.register(["branin"], "0.3.0", path)
    assert json.loads(path.read_text())["sets"]["seven"]["look"] is None
    held_out.register([PROBLEM, "branin"], "0.3.0", path)
    assert json.loads(path.read_text())["sets"]["seven"]["look"]["commit"] == said["rev-parse"]
    held_out.register([PROBLEM], "0.3.0", path)  # an interrupted run goes on
    said["rev-parse"] = "b" * 40
    with pytest.raises(held_out.LookedError, match=r"was looked at on .* by aaaaaaa"):
        held_out.register([PROBLEM], "0.3.1", path)


def test_what_was_not_planned_is_not_looked_at(kept):
    path, _ = kept
    with pytest.raises(held_out.LookedError, match=r"bbob/f02/i07/d05 of seven is not in the plan"):
        held_out.register([PROBLEM, OTHER], "0.3.0", path)
    assert json.loads(path.read_text())["sets"]["seven"]["look"] is None


def test_only_its_release_looks_and_only_a_commit(kept):
    path, said = kept
    with pytest.raises(held_out.LookedError, match=r"for release 0\.3, and this is 0\.2\.0"):
        held_out.register([PROBLEM], "0.2.0", path)
    said["status"] = " M deepbore/study/study.py"
    with pytest.raises(held_out.LookedError, match="has changes"):
        held_out.register([PROBLEM], "0.3.0", path)


def test_nothing_that_is_held_out_was_run_before_its_look():
    register = json.loads(held_out.REGISTER.read_text())
    ran = {run.problem for run in rows.read([ROOT / "docs" / "results" / "benchmark"])}
    for each in register["sets"].values():
        assert each["look"] or not ran & set(each["problems"])
        planned = {problem for plan in each.get("plan", ()) for problem in plan["problems"]}
        assert ran & set(each["problems"]) <= planned <= set(each["problems"])
