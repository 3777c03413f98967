"""`deepbore fit`: an optimisation wired up by LightningCLI and kept in a run directory; `load_run` takes it up."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from jsonargparse import ArgumentError, ArgumentParser
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI
from lightning.pytorch.loggers import CSVLogger

from deepbore.classifiers import Classifier
from deepbore.cli.main import summary
from deepbore.cli.progress import RunProgress
from deepbore.cli.run_directory import CONFIG, JOURNAL, journal_of, new_run
from deepbore.data.csv_file import Columns, read_csv
from deepbore.data.journal import Journal
from deepbore.data.observations import Observations
from deepbore.errors import DeepBoreError, JournalError, SettingError
from deepbore.evaluators import Evaluator, ProcessEvaluator, SerialEvaluator
from deepbore.labels import Labelling, suited_labels
from deepbore.labels.datamodule import LabelledObservations
from deepbore.loop.controller import LoopController
from deepbore.loop.lightning import quiet
from deepbore.loop.resume import History, replay, take_up
from deepbore.problems import Problem
from deepbore.problems.function import make_working_directory_importable
from deepbore.study import Study

N_TRIALS = 100


def run_fit(args: Sequence[str]) -> None:
    """Parses the configuration, runs it and prints what it has found; `--resume RUN` goes on with a run.

    Raises:
        KeyboardInterrupt: after a run that Ctrl-C has ended, and its summary.
    """
    args, resumed = _resumed(args)
    make_working_directory_importable()  # for classes of the user's own
    try:
        with quiet():
            cli = RunCLI(args, resumed)
    except ArgumentError as error:
        raise SettingError(f"{error}\n`deepbore fit --help-all` lists every setting.") from None
    except ValueError as error:
        raise _ours(error) from None
    if not cli.trainer.is_global_zero:
        return
    study = Study.load(cli.run / JOURNAL)
    print(summary(study, cli.problem.optimum))
    if cli.interrupted:
        print(f"interrupted; go on with: deepbore fit --resume {cli.run}")
        raise KeyboardInterrupt
    print(f"kept in {cli.run}: `deepbore plot {cli.run}` draws it")


def _resumed(args: Sequence[str]) -> tuple[list[str], bool]:
    """The arguments with a run's own configuration in the place of --resume RUN, and whether there was one."""
    parts = [part for arg in args for part in (arg.split("=", 1) if arg.startswith("--resume=") else [arg])]
    if "--resume" not in parts:
        return parts, False
    at = parts.index("--resume")
    run = Path(*parts[at + 1 : at + 2])
    if not (run / CONFIG).exists() or not (run / JOURNAL).exists():
        raise JournalError(f"--resume needs the directory of a run, with {CONFIG} and {JOURNAL}, but got {run}.")
    return ["--config", str(run / CONFIG), *parts[:at], *parts[at + 2 :], "--run", str(run)], True


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


def load_run(run: Path) -> Study:
    """The study of a run directory, with the classifier (untrained) and the labels that its config.yaml names.

    Args:
        run: the directory; or a journal alone, for the defaults.

    Raises:
        JournalError: for a missing or damaged journal.
        SettingError: if the configuration names what cannot be made.
    """
    config = run / CONFIG
    make_working_directory_importable()
    parts = _parts(config.read_text(encoding="utf-8")) if config.exists() else {}
    return Study.load(journal_of(run), **parts)


def _parts(text: str) -> dict[str, Any]:
    """Classifier and labels of a configuration, by their names in a study."""
    parser = ArgumentParser(exit_on_error=False)
    parser.add_subclass_arguments(Classifier, "classifier")
    parser.add_subclass_arguments(Labelling, "labels")
    try:
        config = yaml.safe_load(text) or {}
        named = {"classifier": config.get("model"), "labels": (config.get("data") or {}).get("labels")}
        parsed = parser.parse_object({name: settings for name, settings in named.items() if settings})
        return {name: part for name, part in vars(parser.instantiate_classes(parsed)).items() if part is not None}
    except (ArgumentError, ValueError, yaml.YAMLError) as error:
        raise SettingError(f"the classifier and labels can't be made from the run's config.yaml: {error}") from None


class RunCLI(LightningCLI):
    """LightningCLI with a problem, a loop and a run directory.

    Args:
        args: command line, without the command.
        resumed: go on with the run in the run directory.
    """

    def __init__(self, args: Sequence[str], resumed: bool = False):
        self.resumed, self.interrupted = resumed, False
        super().__init__(
            model_class=Classifier,
            datamodule_class=LabelledObservations,
            subclass_mode_model=True,
            args=["fit", *args],
            parser_kwargs={"fit": {"exit_on_error": False}, "exit_on_error": False},
            auto_configure_optimizers=False,
            seed_everything_default=False,  # the loop owns the run's only stream
            save_config_callback=None,  # it saves where the logger does; ours belongs into the run directory
            trainer_defaults={
                "accelerator": "cpu",
                "max_epochs": -1,
                "devices": 1,
                "enable_model_summary": False,
                "enable_checkpointing": False,  # the snapshot beside the journal is what a run is resumed from
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
        parser.add_argument("--warm_start", type=str | None, default=None, help="CSV file of earlier results")
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
        bar = [] if settings.get("enable_progress_bar") is False else [RunProgress(self._loop)]
        kwargs["enable_progress_bar"] = False  # Lightning's, which counts batches
        kwargs["callbacks"] = [*(settings.get("callbacks") or []), *bar]
        trainer = super().instantiate_trainer(**kwargs)
        callbacks: list[Callback] = trainer.callbacks  # type: ignore[attr-defined]  # Lightning's types don't have it
        callbacks.sort(key=lambda each: not isinstance(each, (RunProgress, LoopController)))
        return trainer  # so the user's callbacks see the metrics of the iteration that has just ended

    def before_fit(self) -> None:
        """Opens the journal, before any work is done or anything is written; it refuses a directory with a run.

        The first rank does, before it starts the others; Lightning tells these where the run is kept. What is resumed
        every rank reads for itself: none writes before all have met.
        """
        earlier = self._earlier()
        if self.trainer.is_global_zero:
            self.problem.prepare()
            _set_aside(self.run / "metrics.csv")
        self._open_journal()
        observations = self.datamodule.observations
        if earlier is not None:
            observations.add(*earlier)
        if self._loop.n_trials is not None:  # the setting counts what is asked, the loop also what was added
            self._loop.n_trials += len(observations) - observations.n_asked

    def _earlier(self) -> tuple[Columns, list[float]] | None:
        """The results to start with; a run that goes on has them in its journal, unless it died before that."""
        path = self._get(self.config_init, "warm_start")
        begun = self.resumed and (self.run / JOURNAL).read_bytes().count(b"\n") > 1
        return None if path is None or begun else read_csv(path, self.problem.space)

    def _open_journal(self) -> None:
        observations = self.datamodule.observations
        if self.resumed:
            self._take_up(replay(Journal(self.run / JOURNAL)))
        elif self.trainer.is_global_zero:
            observations.journal = Journal.begin(self.run / JOURNAL, observations.header(self._loop.seed))
            path = self.run / CONFIG
            self._parser("fit").save(self.config.fit, path, skip_none=False, overwrite=True, multifile=False)

    def _take_up(self, history: History) -> None:
        observations, loop, data = history.observations, self._loop, self.datamodule
        if observations.header(history.seed) != data.observations.header(loop.seed):
            raise JournalError(
                f"{history.journal.path} is of another problem, direction or seed than the configuration."
            )
        if self.trainer.is_global_zero:
            history.journal.open()
            observations.journal = history.journal
        data.observations = observations
        data.labels = data.labels or suited_labels(self.model.estimates_labels)
        loop.data = data
        take_up(history, loop, self.model)

    def _run_subcommand(self, subcommand: str) -> None:
        try:
            super()._run_subcommand(subcommand)
        except (KeyboardInterrupt, SystemExit):  # Lightning ends gracefully, and then exits
            self.interrupted = True
        finally:
            if (journal := self.datamodule.observations.journal) is not None:
                journal.close()

    @property
    def _loop(self) -> LoopController:
        loop = self._get(self.config_init, "loop")
        assert isinstance(loop, LoopController)
        return loop

    def _run_directory(self) -> Path:
        named = self._get(self.config_init, "run")
        return new_run(type(self.problem).__name__.lower()) if named is None else Path(named)


def _set_aside(metrics: Path) -> None:
    """Renames the metrics of the run so far, which the logger would begin anew: metrics-1.csv, metrics-2.csv, ..."""
    if metrics.exists():
        free = next(k for k in range(1, 1_000_000) if not metrics.with_name(f"metrics-{k}.csv").exists())
        metrics.rename(metrics.with_name(f"metrics-{free}.csv"))


def _ours(error: BaseException) -> BaseException:
    """The error of ours that jsonargparse has wrapped while it made the objects, or else the error itself."""
    inner: BaseException | None = error
    while inner is not None and not isinstance(inner, DeepBoreError):
        inner = inner.__cause__ or inner.__context__
    return inner or error


def _observe(problem: Problem) -> Observations:
    return Observations(problem.space, problem.direction)


def _evaluator(problem: Problem, evaluation: Evaluation) -> Evaluator:
    if evaluation == Evaluation() and not problem.apart:
        return SerialEvaluator(problem)
    return ProcessEvaluator(problem, evaluation.workers, evaluation.timeout, evaluation.retries)
