"""What deepbore does about Windows: run by `test_platforms.py` within the simulation."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import deepbore
from deepbore.data.journal import replace_file
from deepbore.worker import process
from processes import is_gone

SPACE = {"größe": deepbore.Real(-1, 1), "x": deepbore.Integer(0, 5)}


def bowl(params):
    return params["größe"] ** 2 + params["x"]


def test_it_is_simulated(tmp_path):
    assert not hasattr(os, "fork")
    assert not hasattr(signal, "SIGKILL")
    (tmp_path / "a.txt").write_bytes("→".encode())
    assert (tmp_path / "a.txt").read_text() == "â†’"
    with (tmp_path / "a.txt").open(), pytest.raises(PermissionError):
        (tmp_path / "a.txt").unlink()
    with pytest.raises(OSError, match="incorrect"):
        (tmp_path / "a:b").write_text("")


def test_a_snapshot_that_is_held_for_a_moment_is_written_and_one_that_is_held_for_long_ends_no_run(tmp_path, caplog):
    study = deepbore.Study(SPACE, journal=tmp_path / "run.jsonl", n_initial=3)
    study.optimize(bowl, 5, progress=False)
    snapshot = tmp_path / "run.jsonl.ckpt"
    before = snapshot.read_bytes()
    study.optimize(bowl, 1, progress=False)
    assert snapshot.read_bytes() != before
    with snapshot.open("rb"):  # as by a backup
        study.optimize(bowl, 2, progress=False)
    study.close()
    assert len(deepbore.Study.load(tmp_path / "run.jsonl").trials) == 8


def test_a_file_that_is_held_for_a_moment_is_replaced(tmp_path):
    path = tmp_path / "kept.txt"
    path.write_bytes(b"old")
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"


def test_names_beyond_the_code_page_are_kept(tmp_path):
    path = tmp_path / "run.jsonl"
    deepbore.minimize(bowl, SPACE, 4, journal=path, progress=False)
    study = deepbore.Study.load(path)
    assert sorted(study.space.names) == sorted(SPACE)
    study.to_json(tmp_path / "run.json")
    assert list(json.loads((tmp_path / "run.json").read_text())["space"]) == list(SPACE)


def test_a_worker_ends_with_what_it_has_started():
    code = "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(90)']); "
    code += "print(p.pid, flush=True); time.sleep(90)"
    worker = subprocess.Popen([sys.executable, "-S", "-c", code], stdout=subprocess.PIPE, text=True)
    child = int(worker.stdout.readline())
    process.kill_group(worker.pid)
    worker.wait()
    worker.stdout.close()
    assert is_gone(child)


def test_two_workers_evaluate_where_there_are_no_groups_of_processes():
    began = time.monotonic()
    assert len(deepbore.minimize(bowl, SPACE, 3, workers=2, progress=False).values) == 3
    assert time.monotonic() >= began
