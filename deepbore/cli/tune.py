"""`deepbore tune`: its settings as those of `deepbore fit` with a `LightningCLIProblem`. Light to import."""

import json
from argparse import ArgumentError, ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Any, get_args

from deepbore.cli.new_run import new_run
from deepbore.data.runs import CONFIG, Run
from deepbore.data.trial import Direction
from deepbore.errors import JournalError, SettingError
from deepbore.integrations.wandb import is_sweep, sweep_in
from deepbore.validation import as_path, one_of

TRIALS = "trials"  # folder in a run directory
PROBLEM = "deepbore.problems.LightningCLIProblem"
OF_THE_PROBLEM = ("space", "metric", "direction", "metric_mode", "script", "config")

HELP = """deepbore tune: the hyperparameters of your own LightningCLI program, each trial a training run of its own

  deepbore tune --config fit.yaml --space space.yaml --metric val_loss
  deepbore tune --config fit.yaml --space space.yaml --metric val_acc --direction maximize --n_trials 50 --run runs/mine
  deepbore tune --resume runs/mine

A trial is `python train.py fit --config fit.yaml --model.lr=0.01 ...` in a new process; train.py needs no change.
space.yaml names what is tuned as train.py's command line does, for instance

  model.lr: {type: real, low: 1.0e-5, high: 0.1, log: true}
  data.init_args.batch_size: {type: ordinal, choices: [16, 32, 64]}
  model.act: {type: categorical, choices: [relu, tanh]}

  --space FILE             YAML or JSON that declares the space; or a sweep of W&B's, with its metric and constants
  --metric NAME            a metric that the program logs
  --direction D            minimize (default) or maximize
  --metric_mode M          last (default): its value when training ends; best: the best of all epochs
  --script FILE            the program (default train.py)
  --config FILE            its configuration; may be given more than once
  --n_trials N             trials (default 100)
  --loop.budget SETTINGS   epochs by promotions: '{unit: epochs, low: 1, high: 27}'. All train the fewest, the best
                           third goes on from its checkpoint, as a trial of its own, and the others have ended
  --pruner NAME            ends trainings early by what they log: MedianPruner, SuccessiveHalvingPruner, PatientPruner
  --run DIR                where the run is kept (default runs/tune and a number); DIR/trials/<id>/ has each trial's
                           overrides.yaml, config.yaml, log.txt and metrics.json
  --resume RUN             go on with a run that was interrupted, from the same folder
  -- ARGUMENTS             all that follows goes to the program: -- --trainer.max_epochs 3

Everything else is as in `deepbore fit`, which does the work: --evaluation.* (workers, timeout, retries,
devices), --loop.*, --model (deepbore's classifier), --trainer.* (deepbore's own), ...
"""


def fit_arguments(args: Sequence[str]) -> list[str]:
    """The command line of `deepbore tune` -> the one of `deepbore fit`.

    Raises:
        SettingError: for a setting that is missing or wrong, or a space that can't be read.
    """
    end = list(args).index("--") if "--" in args else len(args)
    given, others = _parsed(args[:end])
    _refuse_limits(others)
    for name in ("n_trials", "pruner"):
        others += [] if getattr(given, name) is None else [f"--loop.{name}", getattr(given, name)]
    arguments = list(args[end + 1 :])
    if given.resume is not None:
        _check_nothing_else(given, arguments)
        run = as_path(given.resume, "a run", JournalError)
        _check_is_of_tune(run)
        return ["--resume", str(run), "--problem.init_args.folder", str(run / TRIALS), *others]
    is_one_process = not any(part.startswith(("--trainer.devices", "--trainer.num_nodes")) for part in others)
    run = as_path(given.run or new_run("tune", is_one_process), "a run", JournalError)
    return ["--problem", json.dumps(_problem(given, arguments, run)), "--run", str(run), *others]


def _parsed(args: Sequence[str]) -> tuple[Namespace, list[str]]:
    """The settings of `tune` itself, None where not given, and all other arguments."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for name in (*OF_THE_PROBLEM, "n_trials", "pruner", "run", "resume"):
        parser.add_argument(f"--{name}", action="append" if name == "config" else "store")
    parser.set_defaults(fixed=[])
    try:
        return parser.parse_known_args(args)
    except ArgumentError as error:
        raise SettingError(f"{error}. `deepbore tune --help` lists the settings.") from None


def _refuse_limits(others: Sequence[str]) -> None:
    """Raises SettingError for limits of the program's training in a place where they would limit deepbore's run."""
    for name in ("--trainer.max_epochs", "--trainer.max_steps", "--trainer.max_time"):
        if any(part.split("=")[0] == name for part in others):
            raise SettingError(
                f"before -- {name} is of deepbore's own trainer, whose epochs are its proposals. For your program give "
                f"it behind --, as in: -- {name} 3. How many trials there are says --n_trials."
            )


def _check_is_of_tune(run: Path) -> None:
    """Raises SettingError for the run of another problem; `deepbore fit` refuses other directories."""
    if (run / CONFIG).exists() and "folder" not in Run(run).settings.get("problem", {}).get("init_args", {}):
        raise SettingError(f"{run} is no run of `deepbore tune`. Go on with: deepbore fit --resume {quote(str(run))}")


def _check_nothing_else(given: Namespace, arguments: Sequence[str]) -> None:
    changed = [f"--{name}" for name in (*OF_THE_PROBLEM, "run") if getattr(given, name) is not None]
    if changed or arguments:
        surplus = ", ".join(changed) or "--"
        raise SettingError(f"a run goes on as it was set up, but beside --resume stands {surplus}. Leave it out.")


def _problem(given: Namespace, arguments: Sequence[str], run: Path) -> dict[str, Any]:
    """The problem as in a configuration of `deepbore fit`."""
    declared = None if given.space is None else _declared(given.space)
    if is_sweep(declared):
        given, declared = _with_sweep(given, declared)
    for name in ("space", "metric"):
        if getattr(given, name) is None:
            raise SettingError(f"--{name} must be given, but is missing. `deepbore tune --help` says more.")
    if given.direction is not None:
        one_of(get_args(Direction), direction=given.direction)
    if given.metric_mode is not None:
        one_of(("last", "best"), metric_mode=given.metric_mode)
    if not given.metric:
        raise SettingError("--metric must name what the program logs, as val_loss, but is empty.")
    settings = {name: getattr(given, name) for name in ("metric", "direction", "metric_mode", "config")}
    settings |= {"space": declared, "arguments": [*given.fixed, *arguments], "folder": str(run / TRIALS)}
    settings |= {"program": [given.script or "train.py", "fit"]}
    return {"class_path": PROBLEM, "init_args": {name: value for name, value in settings.items() if value is not None}}


def _with_sweep(given: Namespace, declared: Any) -> tuple[Namespace, dict[str, Any]]:
    """The settings with what a sweep of W&B says of metric, direction and constants; and its space."""
    sweep = sweep_in(declared)
    fixed = [
        f"--{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in sweep.fixed.items()
    ]
    told = {"metric": given.metric or sweep.metric, "direction": given.direction or sweep.direction, "fixed": fixed}
    return Namespace(**{**vars(given), **told}), sweep.space


def _declared(path: str) -> dict[str, Any]:
    """The declaration of a space in a file."""
    import yaml

    from deepbore.cli.config import load_yaml  # here: Lightning is slow to import

    try:
        declared = load_yaml(as_path(path, "the declaration of a space").read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise SettingError(f"--space must be a YAML or JSON file, but {path} can't be read: {error}") from None
    if not isinstance(declared, dict):
        raise SettingError(f"--space must map names to parameters, but {path} holds {declared!r}.")
    return declared
