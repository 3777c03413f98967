"""A shared study whose processes are killed: the script that counts what is lost, with few trials."""

import json
import sys

import pytest

import forked
from harness import postgres
from processes import ROOT

pytestmark = pytest.mark.slow
CLEAN = {"lost": 0, "doubled": 0, "orphaned": 0, "junk": 0, "failed": 0, "equal": True}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_kills_of_workers_and_leader_lose_nothing(tmp_path, kind):
    if kind == "postgresql" and (missing := postgres.missing()):
        pytest.skip(missing)
    script, file = ROOT / "scripts" / "shared_kills.py", tmp_path / "kills.jsonl"
    few = ["--storage", kind, "--runs", "1", "--kills", "4", "--trials", "16"]
    done = forked.run([sys.executable, script, file, *few], capture_output=True, text=True, timeout=200, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    row = json.loads(file.read_text())
    assert {name: row[name] for name in CLEAN} == CLEAN
    assert row.get("workers", 0) + row.get("leader", 0) > 0
    shown = forked.run([sys.executable, script, file, "--show"], capture_output=True, text=True, timeout=100, cwd=ROOT)
    assert f"| {kind} | 1 | 16 |" in shown.stdout
