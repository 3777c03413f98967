"""`RunCLI`: LightningCLI that reads the configuration of a run; it runs nothing by itself."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentError, Namespace
from lightning.pytorch import LightningDataModule, Trainer
from lightning.pytorch.cli import ArgsType, LightningArgumentParser, LightningCLI
from lightning.pytorch.loggers import CSVLogger

from deepbore import problems
from deepbore.acquisition import Acquisition
from deepbore.candidates import Candidates
from deepbore.classifiers import Classifier
from deepbore.cli.run_directory import CONFIG, N_TRIALS, new_run
from deepbore.cli.yaml_file import MODE, dump_yaml, load_yaml, with_texts
from deepbore.data.journal import replace_file
from deepbore.data.trial import Budget
from deepbore.errors import JournalError, SettingError
from deepbore.evaluators import Evaluator, ProcessEvaluator, SerialEvaluator
from deepbore.labels import Labelling
from deepbore.loop.stopping import StopRule
from deepbore.problems import Problem
from deepbore.strategies import Strategy
from deepbore.study.running import MAX_FAILURES, refuse_steps
from deepbore.validation import above, required, whole


@dataclass(frozen=True)
class LoopSettings:
    """How a run goes.

    Args:
        n_trials: evaluations, those of a resumed run included, earlier results not; None to let the trainer decide.
        strategy: what proposes, in the place of model, acquisition and candidates; default: see `deepbore.strategies`.
        acquisition: what is maximised; default: see `deepbore.acquisition.default_acquisition`.
        candidates: how it is maximised; default `GreedyBatch()` over `LocalSearch()`.
        n_initial: trials of a Sobol design before the classifier is asked; default 10.
        batch_size: q, trials proposed in one iteration; more where more workers are free.
        seed: of everything random.
        timeout: seconds, the initial design included, after which no further trial begins.
        stop_when: rules that end the run, each as class_path and init_args: deepbore.study.NoImprovement, ...
        max_failures: if the first so many evaluations have all failed, the run ends with an error.
        budget: cheap fidelities, as unit, low, high and factor; default: evaluations that are all equal.
    """

    n_trials: int | None = N_TRIALS
    strategy: Strategy | None = None
    acquisition: Acquisition | None = None
    candidates: Candidates | None = None
    n_initial: int | None = None
    batch_size: int = 1
    seed: int = 0
    timeout: float | None = None
    stop_when: list[StopRule] | None = None
    max_failures: int | None = MAX_FAILURES
    budget: Budget | None = None

    def __post_init__(self) -> None:
        required(batch_size=self.batch_size)
        whole(1, n_trials=self.n_trials, n_initial=self.n_initial, batch_size=self.batch_size)
        whole(1, max_failures=self.max_failures)
        above(0, timeout=self.timeout)


class LabelSettings(LightningDataModule):
    """How outcomes become labels. The study makes the data module that is trained on.

    Args:
        labels: the labelling; default: see `deepbore.labels.default_labels`.
    """

    def __init__(self, labels: Labelling | None = None):
        super().__init__()
        self.labels = labels


@dataclass(frozen=True)
class Evaluation:
    """How trials are evaluated: by default in this process, one after the other; else see `ProcessEvaluator`.

    Args:
        workers: how many at the same time, each in a process of its own if there are several.
        timeout: seconds that one attempt may take.
        retries: how many times a trial is tried again that raised, timed out or lost its worker.
        devices: GPUs, of which each worker sees one.
    """

    workers: int = 1
    timeout: float | None = None
    retries: int = 0
    devices: list[int | str] | None = None

    def evaluator(self, problem: Problem) -> Evaluator:
        """The evaluator that these settings describe."""
        if self == Evaluation() and not problem.isolated:
            return SerialEvaluator(problem)
        return ProcessEvaluator(problem, self.workers, self.timeout, self.retries, self.devices)


class RunCLI(LightningCLI):
    """LightningCLI with a problem, a loop and a run directory.

    Args:
        args: command line, without the command.

    Attributes:
        problem: what is optimised.
        loop: how the run goes.
        labels: how outcomes become labels; None for the default.
        run: the run directory.
        warm_start: CSV file of earlier results, or None.
        earlier_tasks: CSV files of earlier tasks, by the name of the task.
    """

    def __init__(self, args: Sequence[str]):
        super().__init__(
            model_class=Classifier,
            subclass_mode_model=True,
            datamodule_class=LabelSettings,
            args=list(args),
            run=False,
            parser_kwargs={"exit_on_error": False, "prog": "deepbore fit", "parser_mode": MODE, "allow_abbrev": False},
            auto_configure_optimizers=False,
            seed_everything_default=False,  # the run's own stream is the only one
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

    def init_parser(self, **kwargs: Any) -> LightningArgumentParser:
        """Lightning's parser, which dumps a configuration with its texts as texts."""
        parser = super().init_parser(**kwargs)
        parser.dump = partial(dumped, parser.dump)  # `save` and --print_config call it
        return parser

    def parse_arguments(self, parser: LightningArgumentParser, args: ArgsType) -> None:
        """Parses the command line; imports the benchmarks if that fails, since `--problem Branin` names no module."""
        try:
            super().parse_arguments(parser, args)
        except ArgumentError:
            for name in dir(problems):
                getattr(problems, name)
            super().parse_arguments(parser, args)

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Adds the problem, the loop, the labels, the evaluator and the run directory."""
        parser.add_subclass_arguments(Problem, "problem", required=True)
        parser.add_argument("--run", type=str | None, default=None, help="directory that keeps the run")
        parser.add_argument("--warm_start", type=str | None, default=None, help="CSV file of earlier results")
        parser.add_argument(
            "--earlier_tasks", type=dict[str, str] | None, default=None, help="CSV files of earlier tasks by their name"
        )
        parser.add_class_arguments(LoopSettings, "loop")
        parser.add_class_arguments(Evaluation, "evaluation")
        parser.add_argument(
            "--evaluator",
            type=Callable[[Any], Evaluator] | None,
            default=None,
            help="class of an evaluator, in place of the evaluation settings; its objective is the problem",
        )
        parser.set_defaults({"model": {"class_path": "deepbore.classifiers.KernelPLS"}})

    def before_instantiate_classes(self) -> None:
        """Raises SettingError for a group of settings that is none, as in `loop: 5`, and for Lightning's own seed."""
        if (seed := self.config.get("seed_everything")) not in (None, False):
            raise SettingError(
                f"a run has one seed, loop.seed, so seed_everything does nothing for it, but got {seed!r}. Give "
                "--loop.seed, and leave it out."
            )
        for name in ("loop", "evaluation", "data", "trainer"):
            if not isinstance(given := self.config.get(name), Namespace):
                raise SettingError(f"{name} must hold settings by name, as {{n_trials: 50}}, but got {given!r}.")

    def instantiate_classes(self) -> None:
        """The parts by their names here, and the trainer with the run directory behind it."""
        super().instantiate_classes()
        made = self.config_init
        self.loop: LoopSettings = made.loop
        self.labels: Labelling | None = self.datamodule.labels
        self.warm_start: str | None = made.warm_start
        self.earlier_tasks: dict[str, str] = made.earlier_tasks or {}
        self._evaluation: Evaluation = made.evaluation
        self._evaluator: Callable[[Any], Evaluator] | None = made.evaluator
        if self._evaluator is not None and self._evaluation != Evaluation():
            raise SettingError(
                f"an evaluator of your own has settings of its own, but got {self._evaluation} beside it. Leave "
                "--evaluation.* out, and give what the evaluator takes as --evaluator.NAME."
            )

    def instantiate_trainer(self, **kwargs: Any) -> Trainer:
        """The trainer with a CSV logger in the run directory, and without Lightning's bar, which counts batches."""
        self.problem: Problem = self.config_init.problem
        named = self.config_init.run
        self.run = new_run(type(self.problem).__name__.lower()) if named is None else Path(named).expanduser()
        settings = self.config_init.trainer
        refuse_steps(settings)
        if settings.get("logger") in (None, True):
            kwargs["logger"] = CSVLogger(self.run.absolute(), name="", version="")  # also if the problem goes elsewhere
        self.shows_progress = settings.get("enable_progress_bar") is not False
        try:
            return super().instantiate_trainer(enable_progress_bar=False, **kwargs)
        except Exception as error:  # whatever Lightning says of the settings
            raise SettingError(f"trainer: Lightning can't make it of these settings: {error}") from error

    @property
    def evaluator(self) -> Evaluator:
        """A new evaluator of the problem."""
        return self._evaluation.evaluator(self.problem) if self._evaluator is None else self._evaluator(self.problem)

    def save_config(self) -> None:
        """Writes config.yaml into the run directory, whole or not at all."""
        try:
            self.run.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise JournalError(
                f"{self.run} can't be the directory of a run ({error}). Name another by --run."
            ) from error
        replace_file(self.run / CONFIG, self.parser.dump(self.config, skip_none=False).encode())


def dumped(dump: Callable[..., str], config: Namespace, **settings: Any) -> str:
    """A configuration as jsonargparse dumps it, but for its texts; with comments, for people, as it is."""
    text = dump(config, **settings)
    if any(given and name.endswith("comments") for name, given in settings.items()):
        return text
    header = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))
    return header + dump_yaml(with_texts(load_yaml(text), config.as_dict()))
