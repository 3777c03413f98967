"""`deepbore fit`: an optimisation wired up by LightningCLI and kept in a run directory."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentError
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI, SaveConfigCallback
from lightning.pytorch.loggers import CSVLogger

from deepbore.classifiers import Classifier
from deepbore.cli import JOURNAL, summary
from deepbore.datamodule import LabelledObservations
from deepbore.errors import DeepBoreError, SettingError
from deepbore.evaluators import Evaluator, ProcessEvaluator, SerialEvaluator
from deepbore.journal import Journal
from deepbore.loop import LoopController
from deepbore.observations import Observations
from deepbore.problems import Problem
from deepbore.progress import RunProgress
from deepbore.study import Study
from deepbore.trainer import quiet

RUNS = Path("runs")
N_TRIALS = 100


def run_fit(args: Sequence[str]) -> None:
    """Parses the configuration, runs it and prints what it has found."""
    try:
        with quiet():
            cli = RunCLI(args)
    except ArgumentError as error:
        raise SettingError(f"{error}\n`deepbore fit --help-all` lists every setting.") from None
    except ValueError as error:
        raise _ours(error) from None
    if not cli.trainer.is_global_zero:
        return
    study = Study.load(cli.run / JOURNAL)
    print(summary(study, cli.problem.optimum))
    print(f"kept in {cli.run}: `deepbore plot {cli.run}` draws it")


@dataclass(frozen=True)
class Evaluation:
    """How trials are evaluated: by default in this process, one after the other; else see `ProcessEvaluator`.

    Args:
        workers: how many at the same time, each in a process of its own if there are several.
        timeout: seconds that one attempt may take.
        retries: how many times a trial is tried again that raised, timed out or lost its worker.
    """

    workers: int = 1
    timeout: float | None = None
    retries: int = 0


class RunCLI(LightningCLI):
    """LightningCLI with a problem, a loop and a run directory.

    Args:
        args: command line, without the command.
    """

    def __init__(self, args: Sequence[str]):
        super().__init__(
            model_class=Classifier,
            datamodule_class=LabelledObservations,
            subclass_mode_model=True,
            args=["fit", *args],
            parser_kwargs={"fit": {"exit_on_error": False}, "exit_on_error": False},
            auto_configure_optimizers=False,
            seed_everything_default=False,  # the loop owns the run's only stream
            save_config_callback=SaveConfigCallback,
            save_config_kwargs={"overwrite": True},  # the journal is what refuses to be overwritten
            trainer_defaults={
                "accelerator": "cpu",
                "max_epochs": -1,
                "devices": 1,
                "enable_model_summary": False,
                "log_every_n_steps": 1,
            },
        )

    @staticmethod
    def subcommands() -> dict[str, set[str]]:
        """Only `fit`: there is nothing to validate or test."""
        return {"fit": {"model", "datamodule", "train_dataloaders", "val_dataloaders", "ckpt_path", "weights_only"}}

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Adds the problem, the loop and the run directory, and says what feeds what."""
        parser.add_subclass_arguments(Problem, "problem", required=True)
        parser.add_argument("--run", type=str | None, default=None, help="directory that keeps the run")
        parser.add_class_arguments(Evaluation, "evaluation")
        parser.add_lightning_class_args(LoopController, "loop")
        parser.set_defaults({"model": {"class_path": "deepbore.classifiers.KernelPLS"}, "loop.n_trials": N_TRIALS})
        parser.link_arguments("problem", "data.observations", _observe, apply_on="instantiate")
        parser.link_arguments(("problem", "evaluation"), "loop.evaluator", _evaluator, apply_on="instantiate")

    def instantiate_trainer(self, **kwargs: Any) -> Trainer:
        """The trainer with the run directory behind it."""
        self.problem = self._get(self.config_init, "problem")
        self.run = self._run_directory()
        settings = self._get(self.config_init, "trainer")
        if settings.get("logger") in (None, True):
            kwargs["logger"] = CSVLogger(self.run, name="", version="")
        keep = ModelCheckpoint(self.run, filename="last", enable_version_counter=False)
        bar = [] if settings.get("enable_progress_bar") is False else [RunProgress(self._loop)]
        kwargs["enable_progress_bar"] = False  # Lightning's, which counts batches
        kwargs["callbacks"] = [*(settings.get("callbacks") or []), *bar, keep]
        return super().instantiate_trainer(**kwargs)

    def before_fit(self) -> None:
        """Opens the journal, before any work is done or anything is written; it refuses a directory with a run.

        The first rank does, before it starts the others; Lightning tells these where the run is kept.
        """
        if not self.trainer.is_global_zero:
            return
        observations = self.datamodule.observations
        observations.journal = Journal.begin(self.run / JOURNAL, observations.header(self._loop.seed))

    @property
    def _loop(self) -> LoopController:
        loop = self._get(self.config_init, "loop")
        assert isinstance(loop, LoopController)
        return loop

    def _run_directory(self) -> Path:
        named = self._get(self.config_init, "run")
        if named is not None:
            return Path(named)
        stem = type(self.problem).__name__.lower()
        return next(RUNS / f"{stem}-{k}" for k in range(1, 1_000_000) if not (RUNS / f"{stem}-{k}").exists())


def _ours(error: BaseException) -> BaseException:
    """The error of ours that jsonargparse has wrapped while it made the objects, or else the error itself."""
    inner: BaseException | None = error
    while inner is not None and not isinstance(inner, DeepBoreError):
        inner = inner.__cause__ or inner.__context__
    return inner or error


def _observe(problem: Problem) -> Observations:
    return Observations(problem.space, problem.direction)


def _evaluator(problem: Problem, evaluation: Evaluation) -> Evaluator:
    if evaluation == Evaluation():
        return SerialEvaluator(problem)
    return ProcessEvaluator(problem, evaluation.workers, evaluation.timeout, evaluation.retries)
