"""`deepbore fit --resume`: settings behind it count from then on; and what is refused before there is a run."""

import pytest
import yaml

from deepbore import Study
from deepbore.cli.looking import Run
from deepbore.cli.main import main

BRANIN = """
problem: {class_path: deepbore.problems.Branin}
loop: {n_trials: 3}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder with a configuration."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "branin.yaml").write_text(BRANIN)
    return tmp_path


def fit(*args):
    return main(["fit", *map(str, args)])


def test_settings_behind_resume_stay(here):
    assert fit("--config", "branin.yaml", "--run", "mine") == 0
    assert Run(here / "mine").state == "finished"
    assert fit("--resume", "mine", "--loop.n_trials", 5, "--trainer.max_epochs", 1) == 0  # ends before the fifth
    config = yaml.safe_load((here / "mine" / "config.yaml").read_text())
    assert config["loop"]["n_trials"] == 5
    begun = len(Study.load(here / "mine" / "journal.jsonl").trials)
    assert fit("--resume", "mine", "--trainer.max_epochs", -1) == 0
    assert begun <= len(Study.load(here / "mine" / "journal.jsonl").trials) == 5


def test_other_earlier_results_behind_resume_are_added_once(here, capsys):
    for name, x in (("one", 1), ("other", 2)):
        (here / f"{name}.csv").write_text(f"x0,x1,value\n{x},{x},{-x}\n")
    assert fit("--config", "branin.yaml", "--run", "mine", "--warm_start", "one.csv") == 0
    for n_trials in (4, 5):
        assert fit("--resume", "mine", "--loop.n_trials", n_trials, "--warm_start", "other.csv") == 0
    study = Study.load(here / "mine" / "journal.jsonl")
    assert [trial.value for trial in study.trials if trial.value < 0] == [-1, -2]
    assert study.observations.n_asked == 5


def test_a_run_goes_on_as_it_began_and_the_error_says_what_differs(here, capsys):
    assert fit("--config", "branin.yaml", "--run", "my run") == 0
    assert "`deepbore plot 'my run'` draws it" in capsys.readouterr().out
    config = (here / "my run" / "config.yaml").read_text()
    assert fit("--resume", "my run", "--loop.seed", 5) == 2
    assert "loop.seed was 0, not 5. Leave it as it was, or begin a new run" in capsys.readouterr().err
    assert (here / "my run" / "config.yaml").read_text() == config
    assert fit("--config", "branin.yaml", "--run", "my run") == 2
    assert "Go on with deepbore fit --resume 'my run', or name another" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setting", "value"), [("gradient_clip_val", 1), ("accumulate_grad_batches", 4), ("precision", 16)]
)
def test_settings_of_steps_are_refused_before_there_is_a_directory(here, capsys, setting, value):
    assert fit("--config", "branin.yaml", "--run", "mine", f"--trainer.{setting}", value) == 2
    assert f"so trainer.{setting} does nothing for it, but got" in capsys.readouterr().err
    assert not (here / "mine").exists()


def test_a_file_is_no_run_directory(here, capsys):
    assert fit("--config", "branin.yaml", "--run", "branin.yaml") == 2
    assert "branin.yaml can't be the directory of a run" in capsys.readouterr().err
    assert (here / "branin.yaml").read_text() == BRANIN
