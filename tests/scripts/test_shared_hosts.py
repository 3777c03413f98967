"""A shared study on two hosts (network namespaces) whose link goes down: the script that counts what is lost."""

import json
import os
import shutil
import subprocess
import sys

import pytest

import forked
from harness import postgres
from processes import ROOT

CLEAN = {"lost": 0, "doubled": 0, "orphaned": 0, "junk": 0, "failed": 0, "equal": True}


def missing():
    """What is missing for namespaces and a database, in words; empty where there is everything."""
    if not shutil.which("ip") or os.geteuid() != 0:
        return "network namespaces need root and iproute2"
    name = f"deepbore-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return made.stderr or postgres.missing()


@pytest.mark.slow
def test_a_network_that_fails_loses_nothing(tmp_path):
    if why := missing():
        pytest.skip(why)
    command = [sys.executable, ROOT / "scripts" / "shared_hosts.py", tmp_path / "hosts.jsonl"]
    few = ["--storage", "grpc", "--runs", "1", "--cuts", "1", "--trials", "12"]
    done = forked.run([*command, *few], capture_output=True, text=True, timeout=200, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    row = json.loads((tmp_path / "hosts.jsonl").read_text())
    assert {name: row[name] for name in CLEAN} == CLEAN
    assert row["cuts"] == 1
    shown = forked.run([*command, "--show"], capture_output=True, text=True, timeout=100, cwd=ROOT)
    assert "| grpc | 1 | 12 | 1 |" in shown.stdout
