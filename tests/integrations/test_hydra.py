"""`hydra/sweeper: deepbore`: overrides as a search space, and a real program swept by it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser

import deepbore
import deepbore as db
import forked
from deepbore import Categorical, Integer, Normal, Ordinal, Real, Study
from deepbore.errors import SettingError
from deepbore.integrations.hydra import Plan, parameter_of
from processes import ROOT

pytest.importorskip("hydra")

EXAMPLE = ROOT / "examples" / "hydra_sweep"


def parsed(*overrides):
    return OverridesParser.create().parse_overrides(list(overrides))


# --- overrides -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "parameter"),
    [
        ("interval(-1, 2)", Real(-1, 2)),
        ("tag(log, interval(1e-5, 1))", Real(1e-5, 1, log=True)),
        ("int(interval(1, 10))", Integer(1, 10)),
        ("tag(log, int(interval(1, 64)))", Integer(1, 64, log=True)),
        ("range(1, 10)", Integer(1, 9)),
        ("range(10, 1, -1)", Integer(2, 10)),
        ("range(0, 31, 10)", Integer(0, 30, step=10)),
        ("tag(log, range(1, 65))", Integer(1, 64, log=True)),
        ("range(0, 1, 0.25)", Ordinal(["0.0", "0.25", "0.5", "0.75"])),
        ("16,32,64", Ordinal(["16", "32", "64"])),
        ("tag(categorical, choice(16, 32, 64))", Categorical(["16", "32", "64"])),
        ("shuffle(choice(16, 32, 64))", Ordinal(["16", "32", "64"])),
        ("64,16", Categorical(["64", "16"])),
        ("tag(ordinal, choice(small, large))", Ordinal(["small", "large"])),
        ("choice(relu, tanh)", Categorical(["relu", "tanh"])),
        ("true,false", Categorical(["True", "False"])),
        ("'a, b',[1,2],null", Categorical(["'a, b'", "[1,2]", "null"])),
    ],
)
def test_what_an_override_sweeps_over(values, parameter):
    (override,) = parsed(f"x={values}")
    assert parameter_of(override) == parameter


def test_a_plan_parts_what_is_swept_from_what_is_fixed_and_the_last_one_counts():
    plan = Plan.of(parsed("lr=1,2", "seed=3", "~old", "+model=small,large", "one=choice(5)", "lr=interval(0, 1)"))
    assert plan.space == deepbore.SearchSpace({"lr": Real(0, 1), "+model": Categorical(["small", "large"])})
    assert plan.fixed == ["seed=3", "~old", "one=5"]
    assert plan.overrides({"lr": 1e-5, "+model": "small"}) == [*plan.fixed, "lr=1e-05", "+model=small"]
    pinned = Plan.of(parsed("++x=interval(0, 1)", "+y=1,2", "z=1,2", "x=0.5", "++y=3", "z=4,5"))
    assert pinned.space == deepbore.SearchSpace({"z": Ordinal(["4", "5"])})
    assert pinned.fixed == ["++x=0.5", "++y=3"]
    (again,) = parsed("lr=1e-05")
    assert again.value() == 1e-5


def test_priors_are_given_by_the_names_of_what_is_swept():
    plan = Plan.of(parsed("lr=tag(log, interval(1e-5, 1))", "+width=16,32", "model=small,large"))
    told = {"lr": {"centre": 1e-3, "spread": 3}, "width": {16: 1, 32: 2}, "model": [3, 1]}
    believed = plan.with_priors(told).space.parameters
    assert believed["lr"].prior == Normal(1e-3, 3.0)
    assert believed["+width"].prior == (1.0, 2.0)
    assert believed["model"].prior == (3.0, 1.0)
    for priors, says in [
        ({"rate": [1, 2]}, "what is swept"),
        ({"lr": {"centre": 3, "spread": 3}}, "the prior of 'lr'"),
    ]:
        with pytest.raises(SettingError, match=says):
            plan.with_priors(priors)


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("x=3", "needs a parameter to sweep over"),
        ("x=interval(2, 1)", "x=interval(2, 1): "),
        ("x=tag(log, interval(0, 1))", "low > 0"),
        ("x=tag(logarithm, interval(1, 2))", "must be among ['log'], but got ['logarithm']"),
        ("x=tag(log, choice(1, 2))", "must be among ['categorical', 'ordinal']"),
        ("x=1,1", "differ"),
    ],
)
def test_what_makes_no_parameter_is_refused(override, says):
    with pytest.raises(SettingError) as refused:
        Plan.of(parsed(override))
    assert says in str(refused.value)


# --- a real program --------------------------------------------------------------------------------------------------


def swept(*overrides, cwd, program=EXAMPLE / "train.py"):
    """The finished process of a sweep."""
    command = [sys.executable, str(program), "--multirun", "hydra.sweep.dir=sweep", *overrides]
    env = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return forked.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=500, check=False)


@pytest.mark.slow
def test_a_program_is_swept_in_batches_fails_in_places_and_goes_on(tmp_path):
    settings = ["hydra.sweeper.batch_size=2", "hydra.sweeper.n_initial=3"]
    first = swept(*settings, "hydra.sweeper.n_trials=4", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    again = swept(*settings, "hydra.sweeper.n_trials=7", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert "Launching 2 jobs" in first.stdout
    assert "#3" not in again.stdout  # it goes on where it ended
    folder = tmp_path / "sweep"
    study = Study.load(folder / "journal.jsonl")
    assert len(study.trials) == 7
    for trial in study.trials:
        job = folder / str(trial.id) / ".hydra"
        config = yaml.safe_load((job / "config.yaml").read_text())
        assert config["optimizer"]["lr"] == trial.params["optimizer.lr"]
        assert config["width"] == int(trial.params["width"])
        assert config["optimizer"]["name"] == trial.params["optimizer"]
        assert (trial.value is None) == (config["optimizer"]["lr"] > 0.3)  # there the example diverges
    results = yaml.safe_load((folder / "optimization_results.yaml").read_text())
    assert results == {"name": "deepbore", "best_params": study.best_trial.params, "best_value": study.best_trial.value}
    other = swept(*settings, "width=1,2", cwd=tmp_path)
    assert other.returncode == 1
    assert "deepbore: " in other.stderr
    assert "width" in other.stderr  # that the journal has another
    assert "Traceback" not in other.stderr


PROGRAM = """
import hydra

@hydra.main(version_base=None, config_path=None, config_name=None)
def main(config):
    {body}

main()
"""


@pytest.mark.slow
def test_more_is_better_where_it_is_said_and_parts_are_given_by_target(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM.format(body="return -abs(config.n - 2)"))
    settings = ["hydra/sweeper=deepbore", "hydra.sweeper.direction=maximize", "hydra.sweeper.n_initial=2"]
    head = "+hydra.sweeper.classifier._target_=deepbore.RandomForest"
    done = swept(*settings, head, "hydra.sweeper.n_trials=9", "+n=range(0, 5)", cwd=tmp_path, program="program.py")
    assert done.returncode == 0, done.stderr
    study = Study.load(tmp_path / "sweep" / "journal.jsonl")
    assert study.best_trial.params == {"+n": 2}
    assert len(study.trials) == 5  # then all are tried
    assert isinstance(study.classifier, deepbore.RandomForest)


@pytest.mark.slow
def test_a_job_that_returns_no_value_has_failed_and_the_others_of_its_batch_are_told(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM.format(body="return 'far' if config.n > 2 else config.n"))
    settings = ["hydra/sweeper=deepbore", "hydra.sweeper.n_trials=6", "hydra.sweeper.batch_size=3"]
    done = swept(*settings, "+n=range(0, 6)", cwd=tmp_path, program="program.py")
    assert done.returncode == 0, done.stderr
    outcomes = {trial.params["+n"]: trial.value for trial in Study.load(tmp_path / "sweep" / "journal.jsonl").trials}
    assert outcomes == {n: n if n < 3 else None for n in range(6)}


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 3])
def test_a_job_that_ends_its_process_has_failed_and_no_other(tmp_path, batch):
    body = "__import__('sys').exit(3) if config.n == 2 else None; return config.n"
    (tmp_path / "program.py").write_text(PROGRAM.format(body=body))
    settings = ["hydra/sweeper=deepbore", "hydra.sweeper.n_trials=6", f"hydra.sweeper.batch_size={batch}"]
    done = swept(*settings, "+n=range(0, 6)", cwd=tmp_path, program="program.py")
    assert done.returncode == 0, done.stderr
    outcomes = {trial.params["+n"]: trial.value for trial in Study.load(tmp_path / "sweep" / "journal.jsonl").trials}
    assert outcomes == {n: None if n == 2 else n for n in range(6)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "setting", "says"),
    [
        ("pass", "hydra.sweeper.seed=1", "must return a number, several, or an Outcome, but returned None"),
        ("raise ArithmeticError('no way')", "hydra.sweeper.max_failures=2", "ArithmeticError: no way"),
        ("return 0", "hydra.sweeper.n_trials=0", "n_trials >= 1"),
        ("return 0", "hydra.sweeper.n_trails=1", "n_trails"),
    ],
)
def test_a_sweep_that_can_not_work_ends_with_one_clear_line(tmp_path, body, setting, says):
    (tmp_path / "program.py").write_text(PROGRAM.format(body=body))
    done = swept("hydra/sweeper=deepbore", setting, "+x=interval(0, 1)", cwd=tmp_path, program="program.py")
    assert done.returncode == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    journal = tmp_path / "sweep" / "journal.jsonl"
    told = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    assert sum(event["event"] == "asked" for event in told) <= 10


def test_the_plugin_imports_no_torch():
    code = "import sys, hydra_plugins.deepbore_sweeper; print(*{'torch', 'lightning', 'deepbore'} & set(sys.modules))"
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True, text=True)
    assert done.stdout.split() == []


SWEPT = """
import hydra

@hydra.main(version_base=None, config_path=".", config_name="base")
def main(config):
    return config.scale * config.x

main()
"""

BASE = """
scale: 1
default: 7
hydra: {sweeper: {params: {+given: "${default}"}}}
"""


def swept_over_x(*overrides):
    """The finished process of a sweep over x."""
    settings = ["hydra/sweeper=deepbore", "hydra.sweep.dir=sweep", "hydra.sweeper.n_initial=2", "+x=interval(0, 1)"]
    command = [sys.executable, "program.py", "--multirun", *settings, *overrides]
    env = os.environ | {"PYTHONPATH": str(Path(db.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    return forked.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)


# regression: each of these was wrong once
@pytest.mark.slow
def test_a_sweep_goes_on_with_the_fixed_overrides_that_it_began_with(empty_folder):
    pytest.importorskip("hydra")
    Path("program.py").write_text(SWEPT)
    Path("base.yaml").write_text(BASE)
    first = swept_over_x("scale=1", "hydra.sweeper.n_trials=2")
    assert first.returncode == 0, first.stderr
    kept = {name: Path("sweep", name).read_bytes() for name in ("journal.jsonl", "multirun.yaml")}
    for override, says in [
        ("scale=1000", "scale=1 was given, scale=1000 was not given"),
        ("+x=interval(0, 2)", "holds a run on another"),
    ]:
        other = swept_over_x("scale=1", override, "hydra.sweeper.n_trials=4")
        assert other.returncode == 1
        assert says in other.stderr
        assert {name: Path("sweep", name).read_bytes() for name in kept} == kept
    again = swept_over_x("scale=1", "hydra.sweeper.n_trials=3", "hydra.sweeper.batch_size=2")
    assert again.returncode == 0, again.stderr
    assert len(Study.load("sweep/journal.jsonl").trials) == 3


@pytest.mark.slow
def test_so_it_does_in_a_journal_of_its_own_and_another_folder(empty_folder):
    pytest.importorskip("hydra")
    Path("program.py").write_text(SWEPT)
    Path("base.yaml").write_text(BASE)
    journal = "hydra.sweeper.journal=kept/run.jsonl"
    first = swept_over_x("scale=1", journal, "hydra.sweeper.n_trials=2")
    assert first.returncode == 0, first.stderr
    other = swept_over_x("scale=1000", journal, "hydra.sweep.dir=elsewhere", "hydra.sweeper.n_trials=4")
    assert other.returncode == 1
    assert "scale=1 was given, scale=1000 was not given" in other.stderr
    again = swept_over_x("scale=1", journal, "hydra.sweep.dir=elsewhere", "hydra.sweeper.n_trials=3")
    assert again.returncode == 0, again.stderr
    assert len(Study.load("kept/run.jsonl").trials) == 3


KILLED = """
import os, signal
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig

@hydra.main(version_base=None, config_path=".", config_name="base")
def main(config):
    mark = Path(os.environ["DEEPBORE_TEST_MARKS"], str(HydraConfig.get().job.num))
    if mark.exists():
        mark.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return (config.x - 0.3) ** 2

main()
"""


@pytest.mark.slow
def test_a_sweep_that_is_killed_goes_on_as_if_it_had_not_been(empty_folder, monkeypatch):
    pytest.importorskip("hydra")
    Path("program.py").write_text(KILLED)
    Path("base.yaml").write_text(BASE)
    marks = Path("marks").absolute()
    marks.mkdir()
    monkeypatch.setenv("DEEPBORE_TEST_MARKS", str(marks))
    assert swept_over_x("hydra.sweeper.n_trials=6", "hydra.sweep.dir=whole").returncode == 0
    for job in (0, 2, 4):  # of the design, and of models
        (marks / str(job)).touch()
    ends = [swept_over_x("hydra.sweeper.n_trials=6").returncode for _ in range(4)]
    assert ends == [-signal.SIGKILL] * 3 + [0]
    found, whole = (Study.load(f"{folder}/journal.jsonl").trials for folder in ("sweep", "whole"))
    assert [(trial.params, trial.value) for trial in found] == [(trial.params, trial.value) for trial in whole]
    assert Path("sweep/optimization_results.yaml").read_text() == Path("whole/optimization_results.yaml").read_text()
