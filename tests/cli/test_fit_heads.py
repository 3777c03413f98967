"""Deep heads from files and the command line, as LightningCLI takes them."""

import json

import pytest

from deepbore.cli.config import as_model
from deepbore.cli.fit import run_fit
from deepbore.data.runs import Run
from deepbore.errors import SettingError

FEW = ["--loop.n_trials", "8", "--loop.n_initial", "6", "--classifier.training.steps", "5"]
HEADS = ("mlp", "deep_ensemble", "hyper_deep_ensemble", "mc_dropout", "laplace_ggn", "deep_pls")


def classifier_of(run):
    created = json.loads((run / "journal.jsonl").read_text().splitlines()[0])
    return created["recipe"]["classifier"]


def test_there_is_a_configuration_of_each_head(pytestconfig):
    found = {path.stem for path in (pytestconfig.rootpath / "configs" / "heads").glob("*.yaml")}
    assert found == set(HEADS)


@pytest.mark.parametrize("name", HEADS)
def test_each_configuration_runs(name, pytestconfig, tmp_path, capsys):
    run_fit(
        [
            "--config",
            str(pytestconfig.rootpath / "configs" / "heads" / f"{name}.yaml"),
            *FEW,
            "--run",
            str(tmp_path / "run"),
        ]
    )
    assert "8 trials" in capsys.readouterr().out
    assert "unknown" not in json.dumps(classifier_of(tmp_path / "run"))


EVERYTHING = """
problem: {class_path: deepbore.problems.Branin}
classifier:
  class_path: deepbore.classifiers.DeepEnsemble
  init_args:
    members: 2
    activation: {class_path: torch.nn.LeakyReLU, init_args: {negative_slope: 0.2}}
    optimizer: {class_path: torch.optim.SGD, init_args: {lr: 0.1, momentum: 0.9}}
    lr_scheduler: {class_path: torch.optim.lr_scheduler.ExponentialLR, init_args: {gamma: 0.9}}
    loss: {class_path: torch.nn.SmoothL1Loss, init_args: {beta: 0.5}}
    training: {steps: 6, lr_interval: step}
    rows: null
loop: {n_trials: 8, n_initial: 6}
trainer: {precision: bf16-mixed, gradient_clip_val: 1.0, accumulate_grad_batches: 2}
"""


def test_a_file_with_everything_set_runs_and_goes_on(tmp_path, capsys):
    (tmp_path / "all.yaml").write_text(EVERYTHING)
    run_fit(["--config", str(tmp_path / "all.yaml"), "--run", str(tmp_path / "run")])
    settings = classifier_of(tmp_path / "run")["init_args"]
    assert settings["optimizer"]["factory"] == "torch.optim.SGD"
    assert settings["optimizer"]["init_args"]["momentum"] == 0.9
    assert settings["loss"] == {"class_path": "torch.nn.SmoothL1Loss", "init_args": {"beta": 0.5}}
    assert settings["rows"] is None
    run_fit(["--resume", str(tmp_path / "run"), "--loop.n_trials", "10"])
    assert "10 trials" in capsys.readouterr().out
    assert Run(tmp_path / "run").settings["trainer"]["accumulate_grad_batches"] == 2


def test_classifier_and_model_are_two_names_of_one_option(tmp_path):
    given = ["--classifier", "KernelPLS", "--classifier.noisy=true", "--classifiers", "--loop.seed", "1"]
    assert as_model(given) == ["--model", "KernelPLS", "--model.noisy=true", "--classifiers", "--loop.seed", "1"]
    (tmp_path / "both.yaml").write_text("classifier: KernelPLS\nmodel: KernelPLS\n")
    with pytest.raises(SettingError, match="has both"):
        as_model(["--config", str(tmp_path / "both.yaml")])


# regression: the settings of the default model leaked into another one with settings of the same names
def test_a_named_model_has_its_own_defaults(tmp_path):
    named = ["--problem", "deepbore.problems.Branin", "--model", "deepbore.classifiers.LaplaceGGN"]
    run_fit([*named, "--loop.n_trials", "2", "--run", str(tmp_path / "run")])
    assert classifier_of(tmp_path / "run")["init_args"]["rows"] == 256
