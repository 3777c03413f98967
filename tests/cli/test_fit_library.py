"""`deepbore fit` from YAML with a library in files."""

import os
import re
import sys
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


def test_a_run_in_a_library_has_the_model_for_libraries(here):
    assert fit("--config", "mine.yaml", "--run", "run") == 0
    library = {"molecule": Library("bits.npy", names="molecules.smi")}
    assert type(Study.load("run/journal.jsonl", space=library).classifier) is type(Study(library).classifier)
    assert fit("--config", "mine.yaml", "--run", "other", "--model", "KernelPLS", "--model.rows", 100) == 0
    assert type(Study.load("other/journal.jsonl", space=library).classifier).__name__ == "KernelPLS"


# --- its page --------------------------------------------------------------------------------------------------------

TABLE = """
problem:
  function: chemistry.score
  space:
    molecule: {type: categorical, choices: [C, CC, CCC, CCCC, CCCCC], features: table.csv}
    dose: {type: real, low: 0, high: 1}
loop: {n_trials: 14, n_initial: 8}
"""
BESIDE = """
problem:
  function: chemistry.score
  space:
    solvent: {type: categorical, choices: [water, oil]}
    molecule: {type: library, features: bits.npy, names: molecules.smi, when: {solvent: [water, oil]}, default: CC}
    dose: {type: real, low: 0, high: 1}
loop: {n_trials: 14, n_initial: 8}
"""
NUMBERED = """
problem:
  function: numbered.score
  space:
    molecule: {type: library, features: bits.npy}
loop: {n_trials: 14, n_initial: 8}
"""
PREDICTIONS = "<h2>Predictions of unseen trials</h2>"


def page_of(run="run"):
    """The page that the command line writes, as far as it is text; the user's modules can't be imported."""
    Path("chemistry.py").write_text("raise SystemExit('imported')")
    sys.modules.pop("chemistry", None)
    assert main(["report", str(run)]) == 0
    return (Path(run) / "report.html").read_text().partition('<script id="data"')[0]


@pytest.mark.parametrize("text", [CONFIG, TABLE, BESIDE, NUMBERED], ids=["alone", "choices", "beside", "numbers"])
def test_the_page_of_a_run_from_yaml_has_its_model(here, text):
    Path("table.csv").write_text("name,a,b\n" + "".join(f"{'C' * k},{k},{k**2}\n" for k in range(1, 6)))
    Path("numbered.py").write_text("def score(params): return float(params['molecule'])")
    Path("mine.yaml").write_text(text)
    assert fit("--config", "mine.yaml", "--run", "run") == 0
    page = page_of()
    assert PREDICTIONS in page, re.findall("not shown[^<]*", page)
    assert "<h2>Slices: predicted value</h2>" in page
    assert ("<h2>Importance</h2>" in page) == (text in (TABLE, BESIDE))  # one parameter alone has all of it


def test_the_files_of_a_run_are_found_from_elsewhere(here, tmp_path_factory, monkeypatch):
    assert fit("--config", "mine.yaml", "--run", "runs/a") == 0
    run = Path("runs/a").resolve()
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert PREDICTIONS in page_of(run)


def others():
    np.save("bits.npy", np.packbits(~BITS, axis=1))


def renamed():
    Path("molecules.smi").write_text("".join(f"{'N' * (k + 1)}\n" for k in range(60)))


def archive():
    np.savez("other.npz", a=BITS)
    Path("other.npz").replace("bits.npy")


def pipe():
    Path("molecules.smi").unlink()
    os.mkfifo("molecules.smi")


def endless():
    Path("bits.npy").unlink()
    Path("bits.npy").symlink_to("/dev/zero")


def lengthy():
    with Path("molecules.smi").open("r+b") as file:
        file.truncate(10**9)


def abroad():
    config = Path("run/config.yaml")
    config.write_text(config.read_text().replace("bits.npy", "//host/share/bits.npy"))


def gone():
    Path("bits.npy").unlink()


def unnamed():
    Path("run/config.yaml").unlink()


WRONG = {
    others: "are others than the run had",
    renamed: "are others than the run had",
    archive: "is no .npy file",
    pipe: "must be a regular file",
    endless: "must be a regular file",
    lengthy: "are read at most",
    abroad: "may be on another machine",
    gone: "FileNotFoundError",
    unnamed: "names no file of them",
}


@pytest.mark.parametrize(("spoil", "said"), WRONG.items(), ids=[each.__name__ for each in WRONG])
def test_a_page_without_the_features_says_why(here, caplog, spoil, said):
    assert fit("--config", "mine.yaml", "--run", "run") == 0
    spoil()
    page = page_of()
    assert PREDICTIONS not in page
    assert "not shown: the features of &#x27;molecule&#x27; are not at hand" in page
    assert said in caplog.text
    assert "<h2>In ten lines</h2>" in page
