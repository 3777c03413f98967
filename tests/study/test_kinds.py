"""Kinds of outcomes: alone they are killed and go on; any two run together, bit for bit resumed, or are refused."""

import itertools
import os
import signal
import sys
import time
from pathlib import Path

import pytest
import torch

import deepbore
import forked
import kinds
from deepbore import Study
from deepbore.errors import SettingError, ValueTypeError

REFUSED = {
    frozenset(pair)
    for pair in (
        ("several objectives", "cheap fidelities"),
        ("several objectives", "preferences"),
        ("several objectives", "noise"),
        ("cheap fidelities", "earlier tasks"),
        ("cheap fidelities", "preferences"),
        ("constraints", "preferences"),
        ("earlier tasks", "preferences"),
        ("preferences", "noise"),
    )
}
PAIRS = list(itertools.combinations(kinds.KINDS, 2))
TOGETHER = [pair for pair in PAIRS if frozenset(pair) not in REFUSED]
APART = [pair for pair in PAIRS if frozenset(pair) in REFUSED]
DOCS = Path(deepbore.__file__).parents[1] / "docs" / "outcomes.md"


def same(one, other):
    assert torch.equal(one.observations.points, other.observations.points)
    assert one.trials == other.trials


@pytest.mark.parametrize("pair", TOGETHER, ids=" and ".join)
def test_what_goes_together_is_resumed_bit_for_bit(tmp_path, pair):
    whole = kinds.go_on(kinds.begun(pair), pair, 12)
    part = kinds.go_on(kinds.begun(pair, tmp_path / "run.jsonl"), pair, 7)
    part.close()
    part = kinds.go_on(Study.load(tmp_path / "run.jsonl"), pair, 12)
    same(part, whole)
    assert part.observations.ledger.statistics.n_failed == 0
    assert part.observations.ledger.statistics.n_complete >= 12


@pytest.mark.parametrize("pair", APART, ids=" and ".join)
def test_what_does_not_go_together_is_refused_at_the_first_evaluation_at_the_latest(pair):
    with pytest.raises((SettingError, ValueTypeError)):
        kinds.go_on(kinds.begun(pair), pair, 2)


def test_the_table_of_the_guide_says_so():
    section = DOCS.read_text().split("## Combinations\n\n")[1]
    head, _, *lines = (
        [cell.strip() for cell in line.split("|")[1:-1]] for line in section.split("\n\n")[0].splitlines()
    )
    said = {
        frozenset((row, column)): cell.startswith("refused")
        for row, *cells in lines
        for column, cell in zip(head[1:], cells, strict=True)
        if cell
    }
    assert said == {frozenset(pair): frozenset(pair) in REFUSED for pair in PAIRS}


@pytest.mark.slow
@pytest.mark.parametrize("kind", kinds.KINDS)
def test_a_killed_run_goes_on_with_the_same_trials(tmp_path, kind):
    program, journal = Path(kinds.__file__), tmp_path / "run.jsonl"
    command = [sys.executable, program, journal, "16", kind]
    environment = os.environ | {"PYTHONPATH": str(DOCS.parents[1])}
    for lines in (8, 19):
        process = forked.Popen(command, env=environment)
        while process.poll() is None and (not journal.exists() or len(journal.read_bytes().splitlines()) < lines):
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
    forked.run(command, env=environment, check=True)
    same(Study.load(journal), kinds.go_on(kinds.begun([kind]), [kind], 16))
