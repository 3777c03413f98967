"""A leader that is killed, workers that propose without it, one of which is killed, and the next leader."""

import json
import sys
import time

import optuna
import pytest

import forked
from deepbore.worker.shared import TRIAL, is_own, open_storage

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
TRIALS = 30
LEAD = """
import deepbore, sys
from deepbore.integrations.shared import Leader
space = {{"x": deepbore.Real(0, 1), "kind": deepbore.Categorical(["a", "b"])}}
study = deepbore.Study(space, seed=0, journal="run.jsonl", if_exists="load")
Leader({url!r}, "mine", study, poll=.1, heartbeat=.2).run({trials}, progress=False)
"""
WORK = """
import time
from deepbore.worker.shared import work

def train(params):
    time.sleep(.2)
    return (params["x"] - .3) ** 2 + (params["kind"] == "b")

work(train, {url!r}, "mine", heartbeat=.5, poll=.05, propose_after=1)
"""


def until(condition):
    ends = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < ends, "it lasts too long"
        time.sleep(0.1)


def test_a_killed_leader_and_a_killed_worker_lose_nothing(tmp_path):
    url, processes = f"sqlite:///{tmp_path}/storage.db", []

    def start(program):
        processes.append(forked.Popen([sys.executable, "-c", program.format(url=url, trials=TRIALS)], cwd=tmp_path))
        return processes[-1]

    def events(*names):
        lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
        return [event for event in lines if event["event"] in names]

    def stored():
        return optuna.load_study(study_name="mine", storage=open_storage(url)).get_trials()

    try:
        first = start(LEAD)
        workers = [start(WORK), start(WORK)]
        until(lambda: (tmp_path / "run.jsonl").exists() and len(events("told")) >= 5)
        first.kill()
        until(lambda: sum(map(is_own, stored())) >= 5)
        workers[0].kill()
        second = start(LEAD)
        assert second.wait(60) == 0
        assert workers[1].wait(60) == 0
    finally:
        for process in processes:
            process.kill()
            process.wait()
    here, values = {event["trial"]: event["params"] for event in events("asked")}, events("told", "failed", "pruned")
    assert sorted(event["trial"] for event in values) == sorted(here)  # each is told, and once
    there = [trial for trial in stored() if TRIAL in trial.system_attrs]
    assert {trial.state.name for trial in there} == {"COMPLETE"}
    told = [(here[event["trial"]], event["value"]) for event in values]
    assert sorted(map(repr, told)) == sorted(repr((each.system_attrs[TRIAL]["params"], each.value)) for each in there)
    assert len(there) == TRIALS
