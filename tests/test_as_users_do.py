"""What users do first: another seed, a network of their own, a Trainer of their own, the script once more."""

import subprocess
import sys
from pathlib import Path

import pytest
from lightning.pytorch import Trainer
from torch import nn

from commands import BRANIN
from deepbore import (
    DeepEnsemble,
    LaplaceGGN,
    MCDropout,
    MLPClassifier,
    Outcome,
    Real,
    SearchSpace,
    SerialEvaluator,
    Study,
    minimize,
)
from deepbore.cli.load import load_run
from deepbore.cli.main import main
from deepbore.errors import NeverLogged, ObjectiveError, SettingError, SpaceError
from deepbore.problems import LightningCLIProblem
from trainers import QUIET, quiet_trainer

SPACE = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})
LINKED = """
from lightning.pytorch.cli import LightningCLI
from lightning.pytorch.demos.boring_classes import BoringDataModule, BoringModel

class Network(BoringModel):
    def __init__(self, lr: float = 0.1, batch_size: int = 8):
        super().__init__()

class Data(BoringDataModule):
    def __init__(self, batch_size: int = 32):
        super().__init__()

class CLI(LightningCLI):
    def add_arguments_to_parser(self, parser):
        parser.link_arguments("data.batch_size", "model.init_args.batch_size")

if __name__ == "__main__":
    CLI(Network, Data, subclass_mode_model=True)
"""


def value(params):
    return (params["x"] - 0.3) ** 2 + params["y"]


@pytest.mark.parametrize("option", [["--seed", "3"], ["--seed_everything", "5"], ["--loop.n_trial", "20"]])
def test_an_option_that_does_nothing_is_refused(tmp_path, monkeypatch, capsys, option):
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(BRANIN)
    assert main(["fit", "--config", "mine.yaml", *option]) == 2
    shown = capsys.readouterr().err
    assert option[0].strip("-") in shown
    assert "--loop." in shown
    assert not Path("runs").exists()


@pytest.mark.parametrize("limit", ["--trainer.max_epochs=1", "--trainer.max_steps"])
def test_how_long_a_program_trains_stands_behind_the_dashes(tmp_path, monkeypatch, capsys, limit):
    monkeypatch.chdir(tmp_path)
    assert main(["tune", "--space", "space.yaml", "--metric", "loss", limit, "1"]) == 2
    assert "behind --" in capsys.readouterr().err


@pytest.mark.slow
def test_an_argument_that_a_program_links_is_no_parameter(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(LINKED)
    batch_size = {"type": "ordinal", "choices": [16, 64]}
    rate = {"type": "real", "low": 1e-5, "high": 0.1, "log": True}
    program = {"arguments": ["--model=Network"]}
    with pytest.raises(SettingError, match=r"model\.batch_size=\d+ must arrive .* links"):
        LightningCLIProblem({"model.lr": rate, "model.batch_size": batch_size}, "loss", **program).prepare()
    LightningCLIProblem({"model.lr": rate, "data.batch_size": batch_size}, "loss", **program).prepare()


@pytest.mark.parametrize("head", [MLPClassifier, DeepEnsemble, LaplaceGGN, MCDropout])
@pytest.mark.parametrize(
    ("network", "says"),
    [
        (nn.Linear(2, 1), "a function that makes one"),
        (lambda features: nn.Linear(features, 1), "takes 1 positional argument|too many positional"),
        (lambda _, outputs: nn.Linear(7, outputs), "fails for two rows"),
        (lambda features, _: nn.Linear(features, 3), r"makes \(2, 3\)"),
        (lambda features, outputs: nn.Sequential(nn.Linear(features, outputs), nn.Flatten(0)), r"makes \(2,\)"),
        (lambda _features, _outputs: 3, "made 3"),
    ],
    ids=["module", "one argument", "inputs", "outputs", "flat", "number"],
)
def test_a_network_of_ones_own_is_tried_before_any_work(head, network, says):
    evaluated = []
    with pytest.raises(SettingError, match=says):
        minimize(evaluated.append, SPACE, 12, classifier=head(network=network))
    assert not evaluated


def test_a_trainer_that_says_nothing_of_epochs_ends_no_run():
    trainer = Trainer(accelerator="cpu", **QUIET)
    Study(SPACE, seed=0).optimize(value, 12, trainer=trainer)
    assert trainer.max_epochs == -1


@pytest.mark.slow
def test_a_trainer_that_ends_a_run_is_named(caplog):
    study = Study(SPACE, seed=0)
    study.optimize(value, 20, trainer=quiet_trainer(max_epochs=3))
    assert len(study.trials) == 13
    assert "ends after 13 of 20 trials, at trainer.max_epochs=3" in caplog.text


@pytest.mark.slow
def test_a_loop_of_ones_own_goes_on_with_what_it_was_at(tmp_path):
    def loop():
        study = Study(SPACE, seed=0, journal=tmp_path / "mine.jsonl", if_exists="load")
        while len(study.trials) < 15 or study.pending:
            (trial,) = study.pending or study.ask()
            if trial.id in (5, 8) and trial.id not in interrupted:
                interrupted.append(trial.id)
                study.close()
                raise KeyboardInterrupt
            study.tell(trial, value(trial.params))
        return study

    interrupted = []
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            loop()
    study = loop()
    assert [str(trial.status) for trial in study.trials] == ["complete"] * 15
    undisturbed = minimize(value, SPACE, 15, seed=0)
    assert [trial.value for trial in study.trials] == undisturbed.values.tolist()


@pytest.mark.parametrize(
    ("error", "says"),
    [(lambda: NeverLogged("the program must log 'val_los'"), "val_los"), (lambda: Outcome(None), "None")],
)
def test_an_objective_that_can_have_no_value_ends_the_run_at_once(error, says):
    def objective(_):
        raised = error()
        raise raised

    study = Study(SPACE, seed=0)
    with pytest.raises(ObjectiveError, match=f"first evaluation, because .*{says}"), pytest.warns(RuntimeWarning):
        study.optimize(SerialEvaluator(objective), 12)
    assert len(study.trials) == 1


def test_a_parameter_is_declared_whole():
    with pytest.raises(SpaceError, match="'lr' must be declared whole"):
        SearchSpace.from_dict({"lr": {"low": 1e-4}})


def test_the_package_is_a_command_and_says_its_version():
    done = subprocess.run(
        [sys.executable, "-m", "deepbore", "--version"], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.startswith("deepbore 0.")


def test_a_run_directory_is_named_as_a_journal_is(tmp_path):
    journal = tmp_path / "mine" / "journal.jsonl"
    minimize(value, SPACE, 11, seed=0, journal=journal).study.close()
    study = Study.load(tmp_path / "mine")
    assert len(study.trials) == len(load_run(str(tmp_path / "mine")).trials) == 11
    assert repr(study) == f"Study(11 trials, best {study.best_trial.value:.6g})"
