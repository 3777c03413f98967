"""`LightningCLIProblem`: your own LightningCLI program as a problem, one process a trial."""

import json
import math
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from itertools import count
from pathlib import Path
from typing import IO, Any, Literal

import torch
import yaml

from deepbore.data.observations import Direction
from deepbore.data.trial import Budget, Trial
from deepbore.errors import NeverLogged, SettingError, TrainingFailed, TrialPruned
from deepbore.problems.base import Problem, as_direction
from deepbore.space import Params, SearchSpace
from deepbore.validation import as_path, one_of
from deepbore.worker.reporting import ADDRESS, JudgeServer, RemoteJudge, Reporting

KEEPER = "deepbore.integrations.lightning_cli.KeepTrial"
CHECKPOINT = "continue.ckpt"  # of KeepTrial, whose module imports Lightning
LAST_LINES, ENOUGH = 5, 5000  # lines of a log that give the reason of a failure, and bytes that contain them
LAUNCHERS = ("LOCAL_RANK", "NODE_RANK", "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID")


class LightningCLIProblem(Problem):
    """The hyperparameters of a LightningCLI program, by a metric that it logs.

    A trial is one process, started in the current working directory:

        python train.py fit --config fit.yaml --model.lr=0.01 ...

    The program needs no code for deepbore, but its environment must have the package: a callback, named on the command
    line, writes the metric. `trainer.default_root_dir` becomes the trial's folder, FOLDER/<id>, with the files of the
    program and

    | file | content |
    |---|---|
    | overrides.yaml | the values of the tuned parameters |
    | config.yaml | the whole configuration of the run, as LightningCLI saves it |
    | log.txt | the output of the program |
    | metrics.json | the metric after each validation and epoch, which the trial reports, and all final metrics |

    A program that ends with an error, never logs the metric, or logs NaN, is a failed trial. The folder of an earlier
    attempt of the same trial is renamed to FOLDER/<id>-attempt-<k>.

    In a study with a budget, in whole epochs, `trainer.max_epochs` is that of the trial. Each trial then writes a
    checkpoint, continue.ckpt, from which a promoted configuration continues by `--ckpt_path`; without the file it
    starts again. The last two checkpoints of a configuration are kept, for a trial that is interrupted and repeated.

    In a study with a pruner the callback asks it after each validation, or epoch, and ends the training where it says
    so.

    Args:
        program: arguments of Python before the settings: a script (or "-m" and a module) and LightningCLI's subcommand.
        space: the space, or its declaration as `SearchSpace.from_dict` takes it; parameters have their names on the
            program's command line, such as "model.lr", "model.init_args.lr" or "data.batch_size".
        metric: name of the logged metric, as in `trainer.callback_metrics`.
        direction: "minimize" or "maximize".
        metric_mode: "last", the value when training ends, or "best", the best of all epochs, in the direction.
        config: the program's configuration files.
        arguments: further arguments for every trial, such as "--trainer.max_epochs=3".
        folder: of the trials.

    Raises:
        SettingError: for an unknown direction or mode, or no program.
        SpaceError: for a declaration that makes no valid space.
    """

    isolated = True

    def __init__(
        self,
        space: dict[str, Any] | SearchSpace,
        metric: str,
        program: Sequence[str] = ("train.py", "fit"),
        config: Sequence[str] = (),
        direction: Direction = "minimize",
        metric_mode: Literal["last", "best"] = "last",
        arguments: Sequence[str] = (),
        folder: str = "trials",
    ):
        one_of(("last", "best"), metric_mode=metric_mode)
        if not (isinstance(metric, str) and metric):
            raise SettingError(f"metric must name what the program logs, as val_loss, but got {metric!r:.100}.")
        if not program:
            raise SettingError("program must name a script, but is empty. Give [train.py, fit].")
        self.space = space if isinstance(space, SearchSpace) else SearchSpace.from_dict(space)
        self.metric, self.directions, self.metric_mode = metric, (as_direction(direction),), metric_mode
        self.folder = as_path(folder, "the folder of the trials")
        config = [str(as_path(path, "a configuration")) for path in config]
        configs = [part for path in config for part in ("--config", path)]
        self._files = [*(part for part in program[:1] if not part.startswith("-")), *config]
        self._command = [sys.executable, *program, *configs, *arguments]

    def check_budget(self, budget: Budget) -> None:
        """Raises SettingError unless all rungs are whole numbers: a Trainer takes no others as `max_epochs`."""
        if any(not float(rung).is_integer() for rung in budget.rungs):
            raise SettingError(
                f"a program trains for whole epochs, but low={budget.low} and factor={budget.factor} make rungs of "
                f"{', '.join(f'{rung:g}' for rung in budget.rungs)}. Give whole numbers, such as low=1 and factor=2."
            )

    def prepare(self) -> None:
        """Lets the program parse configurations that together name every parameter, without training.

        Raises:
            SettingError: if it refuses a parameter or replaces its value.
        """
        for path in self._files:
            if not Path(path).is_file():
                raise SettingError(f"the program and its configurations must be files, but {path} is none here.")
        for params in _covering(self.space):
            command = [*self._with(params, self.folder), "--print_config"]
            done = _run(command, subprocess.PIPE)
            if done.returncode != 0:
                raise SettingError(
                    "the program must take every parameter of the space as an argument, but this failed:\n"
                    f"{shlex.join(command)}\n{_last_lines(done.stdout)}\n"
                    "Name the parameters of the space as `fit --help` of the program does."
                )
            _check_arrived(params, done.stdout)

    def __call__(self, params: Params, trial: Trial | int | None = None) -> float:
        """The metric of one training run.

        Args:
            params: the configuration.
            trial: the trial or its id; None for the next free id.

        Raises:
            TrainingFailed: if there is no finite value.
            TrialPruned: if the study has ended the training.
        """
        folder = self._new_folder(trial.id if isinstance(trial, Trial) else trial)
        known = trial if isinstance(trial, Trial) else None
        self._delete_old_checkpoint(known)
        (folder / "overrides.yaml").write_text(yaml.safe_dump(params, sort_keys=False), encoding="utf-8")
        with (folder / "log.txt").open("wb") as log, _reporting(known) as variables:
            status = _run(self._with(params, folder, known), log, variables).returncode
        if status != 0:
            raise self._failure(folder, f"the program ended with status {status}")
        return self._value(folder, known)

    def _with(self, params: Params, folder: Path, trial: Trial | None = None) -> list[str]:
        keeper: dict[str, Any] = {"folder": str(folder.resolve()), "metric": self.metric}
        tuned = [f"--{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in params.items()]
        if trial is not None and trial.budget is not None:
            keeper["checkpoint"] = True
            tuned += self._epochs(trial)
        callback = json.dumps({"class_path": KEEPER, "init_args": keeper})
        return [*self._command, *tuned, f"--trainer.default_root_dir={folder}", f"--trainer.callbacks+={callback}"]

    def _epochs(self, trial: Trial) -> list[str]:
        """The arguments for the epochs and the checkpoint of a trial with a budget."""
        limit = [f"--trainer.max_epochs={json.dumps(trial.budget)}"]
        if trial.resume_from is None:
            return limit
        kept = self._checkpoint(trial.resume_from)
        return [*limit, f"--ckpt_path={kept.resolve()}"] if kept.exists() else limit

    def _delete_old_checkpoint(self, trial: Trial | None) -> None:
        """Deletes the checkpoint of the trial's grandparent, which is not needed again."""
        if trial is None or trial.resume_from is None or trial.resume_from.resume_from is None:
            return
        kept = self._checkpoint(trial.resume_from.resume_from)
        if kept.is_dir():  # a sharded checkpoint
            shutil.rmtree(kept)
        else:
            kept.unlink(missing_ok=True)

    def _checkpoint(self, trial: Trial) -> Path:
        return self.folder / str(trial.id) / CHECKPOINT

    def _new_folder(self, trial: int | None) -> Path:
        """The empty folder of a trial; that of an earlier attempt is renamed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if trial is None:
            trial = next(k for k in count() if not (self.folder / str(k)).exists())
        folder = self.folder / str(trial)
        if folder.exists():
            earlier = (self.folder / f"{trial}-attempt-{k}" for k in count(1))
            folder.rename(next(path for path in earlier if not path.exists()))
        folder.mkdir()
        return folder

    def _value(self, folder: Path, trial: Trial | None = None) -> float:
        metrics = folder / "metrics.json"
        if not metrics.exists():
            raise self._failure(folder, "the program ended without a `fit`")
        kept = json.loads(metrics.read_text(encoding="utf-8"))
        history: list[float] = kept["history"]
        if not history:
            raise NeverLogged(
                f"the program must log {self.metric!r}, but has only logged {sorted(kept['final'])}. Name one of them"
            )
        if trial is not None and trial.reporter is not None:
            for step, value in zip(kept.get("steps", range(1, len(history) + 1)), history, strict=True):
                trial.report(value, step)
        if kept.get("pruned"):
            raise TrialPruned(f"{self.metric} after {kept['steps'][-1]} epochs")
        finite = [value for value in history if math.isfinite(value)]
        if not finite or (self.metric_mode == "last" and not math.isfinite(history[-1])):
            raise self._failure(folder, f"{self.metric} is {history[-1]}")
        if self.metric_mode == "last":
            return history[-1]
        return min(finite) if self.direction == "minimize" else max(finite)

    def _failure(self, folder: Path, why: str) -> TrainingFailed:
        with (folder / "log.txt").open("rb") as log:
            log.seek(-min(ENOUGH, log.seek(0, os.SEEK_END)), os.SEEK_END)
            return TrainingFailed(f"{why}; the end of {log.name}:\n{_last_lines(log.read())}")


@contextmanager
def _reporting(trial: Trial | None) -> Iterator[dict[str, str]]:
    """The environment variables by which the program of a trial reaches the study's pruner, if it has one."""
    reporting = Reporting.of(trial)
    if trial is None or reporting is None or reporting.judge is None:
        yield {}
        return
    judge = reporting.judge
    with nullcontext(judge) if isinstance(judge, RemoteJudge) else closing(JudgeServer(judge)) as reached:
        address = reached.address if isinstance(reached, JudgeServer) else reached
        yield {ADDRESS: json.dumps([trial.id, address.as_text])}


def _run(
    command: Sequence[str], output: int | IO[bytes], variables: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[bytes]":
    """Runs a program to its end, without the environment variables of a launcher: it is not one of the ranks."""
    environment = {name: value for name, value in os.environ.items() if name not in LAUNCHERS} | dict(variables or {})
    quiet: Any = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT}
    return subprocess.run(command, check=False, env=environment, **quiet)


def _check_arrived(params: Params, printed: bytes) -> None:
    """Raises SettingError for a parameter that the program has accepted, but then dropped or replaced.

    Args:
        params: the given configuration.
        printed: the output of `--print_config`; not checked if it is no YAML.
    """
    try:
        config = yaml.safe_load(printed)
    except yaml.YAMLError:  # the program prints more than its configuration
        return
    for name, value in params.items() if isinstance(config, dict) else ():
        found = list(_under(config, name.split(".")))
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not found or (is_number and all(isinstance(each, (int, float)) and each != value for each in found)):
            raise SettingError(
                f"{name}={value} must arrive in the program, but it goes on with {found[0] if found else 'another'}: "
                "its LightningCLI links or sets that argument. Tune the argument that it is computed from."
            )


def _under(config: Any, names: Sequence[str]) -> Iterator[Any]:
    """The values under a dotted name in a configuration, which may omit `init_args`."""
    if not names:
        yield config
    elif isinstance(config, list):
        for each in config:
            yield from _under(each, names)
    elif isinstance(config, dict):
        if names[0] in config:
            yield from _under(config[names[0]], names[1:])
        for omitted in ("init_args", "dict_kwargs"):
            yield from _under(config.get(omitted), names)


def _last_lines(log: bytes) -> str:
    lines = [line.rstrip() for line in log.decode(errors="replace").splitlines() if line.strip()]
    return "\n".join(lines[-LAST_LINES:])


def _covering(space: SearchSpace) -> list[Params]:
    """Configurations in which every parameter is active at least once; one in an unconditional space."""
    candidates = space.decode(space.points.sample(1000, torch.Generator().manual_seed(0)))
    chosen: list[Params] = []
    missing = {name for params in candidates for name in params}
    while missing:
        chosen.append(max(candidates, key=lambda params: len(missing & params.keys())))
        missing -= chosen[-1].keys()
    return chosen
