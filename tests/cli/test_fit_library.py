"""`deepbore fit` from YAML with a library in files."""

from pathlib import Path

import numpy as np
import pytest

from deepbore import Library, Study
from deepbore.cli.main import main

BITS = np.random.default_rng(0).random((60, 64)) < 0.3
CONFIG = """
problem:
  function: chemistry.score
  space:
    molecule: {type: library, features: bits.npy, names: molecules.smi}
loop: {n_trials: 20, n_initial: 8, batch_size: 4}
"""


@pytest.fixture
def here(empty_folder, monkeypatch):
    """A folder with a library, a configuration and an objective: the shorter a name, the better."""
    monkeypatch.delenv("DEEPBORE_RUN", raising=False)
    monkeypatch.syspath_prepend(".")
    np.save("bits.npy", np.packbits(BITS, axis=1))
    Path("molecules.smi").write_text("".join(f"{'C' * (k + 1)} number-{k}\n" for k in range(60)))
    Path("chemistry.py").write_text("def score(params): return float(len(params['molecule']))")
    Path("mine.yaml").write_text(CONFIG)
    return empty_folder


def fit(*args):
    return main(["fit", *map(str, args)])


def test_a_run_in_a_library_goes_on_until_it_ends(here, capsys):
    assert fit("--config", "mine.yaml", "--run", "run") == 0
    assert "molecule: C" in capsys.readouterr().out
    assert fit("--resume", "run", "--loop.n_trials", 100) == 0  # more than there are
    space = {"molecule": Library("bits.npy", names="molecules.smi")}
    trials = Study.load("run/journal.jsonl", space=space).trials
    assert sorted(len(trial.params["molecule"]) for trial in trials) == list(range(1, 61))
    assert all(trial.value == len(trial.params["molecule"]) for trial in trials)


def test_a_run_is_shown_without_its_library(here, capsys):
    assert fit("--config", "mine.yaml", "--run", "run") == 0
    Path("bits.npy").unlink()
    Path("molecules.smi").unlink()
    capsys.readouterr()
    assert main(["list", "."]) == 0
    assert "finished" in capsys.readouterr().out
    assert main(["report", "run", "--quick"]) == 0


def test_a_run_whose_library_has_changed_is_refused(here, capsys):
    assert fit("--config", "mine.yaml", "--run", "run") == 0
    before = Path("run/journal.jsonl").read_bytes()
    np.save("bits.npy", np.packbits(~BITS, axis=1))
    assert fit("--resume", "run", "--loop.n_trials", 24) == 2
    assert "'molecule' are others" in capsys.readouterr().err
    assert Path("run/journal.jsonl").read_bytes() == before


@pytest.mark.parametrize("missing", ["bits.npy", "molecules.smi"])
def test_a_file_that_is_missing_is_named(here, capsys, missing):
    Path(missing).unlink()
    assert fit("--config", "mine.yaml", "--run", "run") == 2
    assert missing in capsys.readouterr().err
    assert not Path("run").exists()
