"""A program to tune that starts at once, and what its trials leave."""

import json
import os
import time
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[1] / "examples" / "tune_lightningcli"
SPACE = {"x": {"type": "real", "low": 0, "high": 1}}
# A program without Lightning, which starts at once: it leaves what KeepTrial would, and then does what x says.
PROGRAM = """
import json, os, sys, time
from pathlib import Path

settings = dict(arg[2:].split("=", 1) for arg in sys.argv[1:] if "=" in arg)
if "--print_config" in sys.argv:
    sys.exit(0 if set(settings) <= {"x", "y", "kind", "trainer.default_root_dir", "trainer.callbacks+"} else "unknown")
keeper = json.loads(settings["trainer.callbacks+"])["init_args"]
print("started with", settings, flush=True)
kind = settings.get("kind", "fine")
if kind == "raises":
    raise FloatingPointError("the loss is NaN")
if kind == "hangs":
    (Path(keeper["folder"]) / "pid").write_text(str(os.getpid()))
    time.sleep(600)
x = float(settings.get("x", 0.5))
reached = os.environ.get("DEEPBORE_REPORTS")
history = {"nan": [x, float("nan")], "silent": []}.get(kind, [x + 1, x, x + 2])
if kind != "no fit":
    kept = {"history": history, "final": {"train_loss": x}}
    if reached:
        from deepbore.worker.reporting import RemoteJudge

        trial, address = json.loads(reached)
        judge, kept["pruned"] = RemoteJudge.from_text(address), False
        kept["steps"] = list(range(1, len(history) + 1))
        for step, value in enumerate(history, 1):
            kept["pruned"] = kept["pruned"] or judge(trial, {step: value})
    (Path(keeper["folder"]) / "metrics.json").write_text(json.dumps(kept))
"""


def in_a_folder_with_train_py(folder, monkeypatch):
    """Works in a folder with the program that starts at once."""
    monkeypatch.chdir(folder)
    (folder / "train.py").write_text(PROGRAM)
    return folder


def events(journal):
    return [json.loads(line) for line in Path(journal).read_text().splitlines()]


def assert_gone(pid):
    """A killed process may stay for a moment, until its new parent has looked."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        stat = Path(f"/proc/{pid}/stat")
        if stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return
        time.sleep(0.05)
    pytest.fail(f"process {pid} lives on")
