"""What a first hour at the console meets: ~, folders that can't be written, other encodings, settings in any order."""

from pathlib import Path

import pytest
import yaml

from deepbore import Real, SearchSpace, Study
from deepbore.cli.main import main
from deepbore.cli.run_directory import Run

DECLARED = {
    "problem": {
        "class_path": "deepbore.problems.FunctionProblem",
        "init_args": {"function": "objective_at_home.squared", "space": {"x": {"type": "real", "low": 0, "high": 1}}},
    },
    "loop": {"n_trials": 3, "n_initial": 3},
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with an objective and its configuration, and a home of its own within."""
    (tmp_path / "objective_at_home.py").write_text("def squared(params):\n    return min(params.values()) ** 2\n")
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(DECLARED))
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


def fit(*args):
    return main(["fit", "--config", "mine.yaml", *map(str, args)])


def test_a_run_may_be_kept_at_home_and_taken_up_again_there(here):
    assert fit("--run=~/run") == 0
    assert not (here / "~").exists()
    assert Run(here / "home" / "run").settings["loop"]["n_trials"] == 3
    assert main(["fit", "--resume", "~/run", "--loop.n_trials", "4"]) == 0
    assert len(Study.load(here / "home" / "run").trials) == 4


def test_a_folder_that_can_not_be_written_is_said_in_one_line(here, capsys):
    run = here / "run"
    (run / "config.yaml").mkdir(parents=True)  # where the configuration would be: root may write anywhere
    assert fit("--run", run) == 2
    said = capsys.readouterr().err.strip()
    assert said.startswith(f"deepbore: {run}/config.yaml can't be written")
    assert "\n" not in said


@pytest.mark.parametrize("given", [["--config", "latin.yaml"], ["--config=latin.yaml"]])
def test_a_configuration_in_another_encoding_is_said_in_one_line(here, capsys, given):
    Path("latin.yaml").write_bytes("# gr\u00f6\u00dfe\n".encode("latin-1") + Path("mine.yaml").read_bytes())
    assert main(["fit", *given]) == 2
    said = capsys.readouterr().err.strip()
    assert "must be a text in UTF-8, but not all of latin.yaml is" in said
    assert "\n" not in said


def test_print_config_shows_all_that_is_given_wherever_it_stands(here, capsys):
    with pytest.raises(SystemExit):
        main(["fit", "--print_config", "--config", "mine.yaml", "--loop.n_trials", "77", "--model", "DeepPLS"])
    shown = yaml.safe_load(capsys.readouterr().out)
    assert shown["loop"]["n_trials"] == 77
    assert shown["model"]["class_path"] == "deepbore.DeepPLS"


def test_constraints_of_a_space_can_be_given_on_the_command_line(here):
    assert fit("--run", "run", "--problem.init_args.space.constraints", '["x >= 0.4"]') == 0
    assert all(trial.params["x"] >= 0.4 for trial in Study.load("run").trials)


def test_a_space_without_parameters_is_said_in_one_line(here, capsys):
    empty = DECLARED | {"problem": {**DECLARED["problem"], "init_args": {"function": "math.cos", "space": {}}}}
    Path("mine.yaml").write_text(yaml.safe_dump(empty))
    assert fit() == 2
    assert capsys.readouterr().err.strip() == "deepbore: a search space needs at least one parameter, but got none."


def test_how_often_to_validate_is_refused_before_any_evaluation(here, capsys):
    assert fit("--run", "run", "--trainer.val_check_interval", "3") == 2
    assert "trainer.val_check_interval does nothing" in capsys.readouterr().err
    assert not Path("run").exists()


def test_a_page_needs_a_name(here, capsys):
    assert fit("--run", "run") == 0
    assert main(["compare", "run", "--output", "."]) == 2
    assert "\ndeepbore: . can't be written" in capsys.readouterr().err


def test_a_run_of_fit_is_no_run_of_tune(here, capsys):
    assert fit("--run", "run") == 0
    assert main(["tune", "--resume", "run"]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == "deepbore: run is no run of `deepbore tune`. Go on with: deepbore fit --resume run"


def test_a_rule_that_is_no_list_is_told_to_name_a_class(here, capsys):
    assert fit("--loop.stop_when.trials", "3") == 2
    assert "It has none: name a class." in capsys.readouterr().err


def test_a_frame_of_a_parameter_named_value_comes_back_from_its_file(here):
    study, again = (Study(SearchSpace({"value": Real(0, 1)}), seed=0) for _ in range(2))
    for trial in study.ask(3):
        study.tell(trial, trial.params["value"] ** 2)
    study.to_frame().to_csv("results.csv", index=False)
    again.add_csv("results.csv")
    assert [(trial.params, trial.value) for trial in again.trials] == [(t.params, t.value) for t in study.trials]
