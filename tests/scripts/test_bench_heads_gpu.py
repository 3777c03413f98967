"""`scripts/bench_heads_gpu.py`, in small, on two processes with gloo."""

import subprocess
import sys
from pathlib import Path

import pytest

import bench_heads_gpu
from harness.measuring import rows

SCRIPT = Path(bench_heads_gpu.__file__)


@pytest.mark.slow
def test_heads_are_measured_on_two_ranks(tmp_path):
    file = tmp_path / "rows.jsonl"
    command = [sys.executable, str(SCRIPT), str(file), "--small", "--ranks", "2"]
    found = subprocess.run(command, check=True, capture_output=True, text=True, timeout=900, cwd=SCRIPT.parents[1])
    measured = rows(file)
    assert [row["part"] for row in measured] == list(bench_heads_gpu.PARTS)
    assert all(row["seconds"] > 0 and row["ranks"] == 2 for row in measured)
    assert "| one network, in small | CPU | 2 |" in found.stdout


def test_the_table_has_the_seconds_of_one_rank_as_the_unit(capsys):
    row = {"part": "one network", "small": False, "device": "a GPU"}
    bench_heads_gpu.show([{**row, "ranks": 1, "seconds": 4.0}, {**row, "ranks": 2, "seconds": 3.0}])
    assert capsys.readouterr().out.splitlines()[-1] == "| one network | a GPU | 2 | 3 | 0.75 |"


def test_networks_are_large_enough_to_be_shared():
    from deepbore.loop.lightning import LARGE

    for size in (bench_heads_gpu.FULL, bench_heads_gpu.SMALL):
        head = bench_heads_gpu.one(size)["classifier"].bind(bench_heads_gpu.SPACE)
        assert sum(each.numel() for each in head.parameters()) > LARGE
