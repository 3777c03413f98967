"""`RunCLI`: LightningCLI that reads the configuration of a run, with its YAML and its messages; it starts no run."""

import inspect
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml
from jsonargparse import ArgumentError, Namespace, set_loader
from jsonargparse.typing import Path as ConfigPath
from lightning.pytorch import LightningDataModule, Trainer
from lightning.pytorch.cli import ArgsType, LightningArgumentParser, LightningCLI
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.utilities import rank_zero_only

from deepbore import classifiers, problems
from deepbore.classifiers import Classifier, KernelPLS
from deepbore.cli.new_run import new_run
from deepbore.cli.slips import like
from deepbore.component import has_default_settings
from deepbore.data.journal import replace_file
from deepbore.data.runs import CONFIG, N_TRIALS
from deepbore.errors import JournalError, SettingError
from deepbore.evaluators import Evaluator, ProcessEvaluator, SerialEvaluator
from deepbore.labels import Labelling
from deepbore.loop.lightning import no_cluster
from deepbore.loop.stopping import StopRule
from deepbore.problems import Problem
from deepbore.study import Options
from deepbore.study.running import refuse_steps
from deepbore.validation import as_path, whole

# --- YAML: `choices: [on, off]` are two words, and so is `16:9`, as in YAML 1.2; no key stands twice ------------------


MODE = "deepbore"  # the name of this loader, for a parser's `parser_mode`
BOOLEAN, INTEGER, FLOAT, DATE, TEXT, MERGED = (
    f"tag:yaml.org,2002:{name}" for name in ("bool", "int", "float", "timestamp", "str", "merge")
)
LINE_ENDS = "\x85\u2028\u2029\ufeff"
WHOLE = re.compile(r"^[-+]?(?:0x[\da-fA-F_]+|0o[0-7_]+|0b[01_]+|\d[\d_]*)$")
NUMBER = re.compile(
    r"^[-+]?(?:(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][-+]?\d+)?|\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)

FASTEST: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Loader(FASTEST):
    """PyYAML's loader, without YAML 1.1's on, off, yes and no, dates, and numbers to the bases 60 and 8 (010)."""

    yaml_implicit_resolvers = {  # noqa: RUF012  # as PyYAML has it
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in (BOOLEAN, INTEGER, FLOAT, DATE)]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, stream: str):
        super().__init__(stream)
        self._flat: set[yaml.MappingNode] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Merges what `<<` names; each key stands once before that: the second would silently replace the first."""
        keys = [key.value for key, _ in node.value if key.tag != MERGED and node not in self._flat]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} stands more than once", node.start_mark)
        self._flat.add(node)  # a mapping that merges this one asks again, when it has merged keys itself
        super().flatten_mapping(node)

    def construct_whole(self, node: yaml.ScalarNode) -> int:
        """An integer; a 0 in front changes nothing."""
        text = self.construct_scalar(node).replace("_", "").lower()
        return int(text, 0) if set(text) & set("xob") else int(text)


Loader.add_constructor(INTEGER, Loader.construct_whole)
Loader.add_implicit_resolver(INTEGER, WHOLE, list("-+0123456789"))
Loader.add_implicit_resolver(BOOLEAN, re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
Loader.add_implicit_resolver(FLOAT, NUMBER, list("-+0123456789."))


class Dumper(yaml.SafeDumper):
    """Quotes each text that `Loader`, or PyYAML's own, would read as something else."""


def _written(dumper: Dumper, text: str) -> yaml.ScalarNode:
    """A text, in double quotes if PyYAML would read a character in it as the end of a line."""
    return dumper.represent_scalar(TEXT, text, style='"' if set(text) & set(LINE_ENDS) else None)


Dumper.add_implicit_resolver(INTEGER, WHOLE, list("-+0123456789"))
Dumper.add_implicit_resolver(FLOAT, NUMBER, list("-+0123456789."))
Dumper.add_representer(str, _written)


def load_yaml(text: str) -> Any:
    """The data of a text.

    Raises:
        yaml.YAMLError: for a text that is not YAML.
    """
    return yaml.load(text, Loader=Loader)  # a safe loader: plain data only


def dump_yaml(data: Any) -> str:
    """The YAML text of plain data."""
    return str(yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True))


def with_texts(dumped: Any, given: Any) -> Any:
    """A configuration as jsonargparse dumps it, with its texts unchanged.

    Values of any type, as in the declaration of a space, it would read again when it dumps: '16' would become 16.
    """
    if isinstance(given, str):
        return given
    if isinstance(dumped, dict) and isinstance(given, Mapping):
        return {name: with_texts(each, given.get(name)) for name, each in dumped.items()}
    if isinstance(dumped, list) and isinstance(given, (list, tuple)) and len(dumped) == len(given):
        return [with_texts(*pair) for pair in zip(dumped, given, strict=True)]
    return dumped


set_loader(MODE, load_yaml, (yaml.YAMLError,))


def as_model(args: Sequence[str]) -> list[str]:
    """Arguments, and texts of files after --config, in which `classifier` is named `model`, as LightningCLI has it."""
    option = re.compile(r"^--classifier(?=$|[.=])")
    parts = [part for arg in args for part in (arg.split("=", 1) if arg.startswith("--config=") else [arg])]
    named = [option.sub("--model", part) for part in parts]
    return [_of_model(part) if named[at - 1 : at] == ["--config"] else part for at, part in enumerate(named)]


def _of_model(path: str) -> str:
    """The path of a configuration, or its text if it names a `classifier` in place of a `model`."""
    read = _read(path)
    if "classifier" not in read:
        return path
    if "model" in read:
        raise SettingError(f"classifier and model are two names of one setting, but {path} has both. Leave out one.")
    return dump_yaml({"model" if name == "classifier" else name: value for name, value in read.items()})


def _read(path: str) -> dict[str, Any]:
    """The settings in a configuration file, or in its text; none where it is wrong, as the parser will say."""
    try:
        read = load_yaml(path if "\n" in path else Path(path).expanduser().read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return read if isinstance(read, dict) else {}


def names_model(args: Sequence[str]) -> bool:
    """Whether arguments, or the files after --config, name the class of the model.

    Only then is there no default: the parser would keep its settings where the class that is named has the same names.
    """
    files = [_read(part).get("model") for option, part in pairwise(args) if option == "--config"]
    in_files = any(isinstance(each, str) or (isinstance(each, dict) and "class_path" in each) for each in files)
    return in_files or any(part.split("=")[0] in ("--model", "--model.class_path") for part in args)


# --- messages: those of jsonargparse in fewer words, with the name that was meant -------------------------------------


ROOMS = {
    "model": "classifiers",
    "problem": "problems",
    "data.labels": "labels",
    "loop.acquisition": "acquisition",
    "loop.candidates": "candidates",
    "evaluator": "evaluators",
}
NO_PROBLEM = (
    " What is optimised is a function of yours with its space, as in problem: {function: my_module.objective, space: "
    "{lr: {type: real, low: 0, high: 1}}}, or --problem CLASS."
)
_KEY = re.compile(r'Parser key "([\w.]+)"')
_CLASS = re.compile(r"(?:Expected a dot import path string|Given value): ([\w.]+)\s*$", re.MULTILINE)
_OPTION = re.compile(r"[Uu]nrecognized arguments: --([\w.]+)")
_NO_MAPPING = "Unexpected config:"
_INSIDE = "Problem with given class_path '"
_NO_SETTING = re.compile(r"Option '([\w.]+)' is not accepted")
_NO_CLASS = re.compile(r"module '([\w.]+)' has no attribute '(\w+)'|No ([\w.]+) attribute (\w+)")  # of lazy_loader
_REQUIRED = re.compile(r"the following arguments are required: ([\w, ]+)")
_MADE = re.compile(r"class_path='(?:[\w.]+\.)?(\w+)'")
_STRANGER = re.compile(r"Import path ([\w.]+) does not correspond to a subclass of (\w+)")
_KIND = re.compile(r"Expected a (.+?)\. Got value: (.*)|Subtypes: \[(.+)\][\s\S]*?Given value: (.*)")


def explained(message: str, options: Collection[str]) -> str:
    """A message of jsonargparse, reduced to the unknown class, option or setting, or the wrong value.

    Args:
        message: of jsonargparse.
        options: the names of all options.
    """
    key, given, option = _KEY.search(message), _CLASS.search(message), _OPTION.search(message)
    if key and (lacking := _REQUIRED.search(message)) and (made := _MADE.search(message)):
        said = f"{key[1]}: {made[1]} needs {lacking[1].replace(', ', ' and ')}."
        return said + (NO_PROBLEM if made[1] == "FunctionProblem" else "")
    if option:
        return f"there is no option --{option[1]}.{like(option[1], options, '--{}')}"
    if key and _INSIDE in message:
        return _explained_inside(key[1], message) or message
    if key and (stranger := _STRANGER.search(message)):
        return f"{key[1]}: {stranger[1]} is no {stranger[2]}."
    if key is None or given is None or key[1] not in ROOMS:
        return _explained_file(message)
    room = f"deepbore.{ROOMS[key[1]]}"
    names: list[str] = import_module(room).__all__
    name = given[1].rpartition(".")[2]
    meant = like(name, names) or f" Of {room} there are {', '.join(n for n in names if n[0].isupper())}."
    said = f"{key[1]}: there is no class {given[1]}.{meant} A class of your own needs its module: my_module.{name}."
    return message if name in names else said


def _explained_file(message: str) -> str:
    """What a file must have that is empty or has no settings by name; other messages unchanged."""
    if not message.startswith(_NO_MAPPING):
        return message
    given = message.removeprefix(_NO_MAPPING).strip()
    return f"{_NO_MAPPING} it must have settings by name, but got {given!r:.100}.{NO_PROBLEM}"


def _explained_inside(key: str, message: str) -> str | None:
    """The mistake in the settings of a class, or of a class within them: the innermost one; None if unknown."""
    path, _, said = message.rpartition(_INSIDE)[2].partition("':")
    name = path.rpartition(".")[2]
    said = said.lstrip()
    if missing := _NO_CLASS.match(said):
        room, wrong = filter(None, missing.groups())
        return f"{key}: there is no class {room}.{wrong}.{like(wrong, _public(room))}"
    if missing := _NO_SETTING.match(said):
        if "." in missing[1]:  # of a nested part: jsonargparse has the same message for a wrong value
            return f"{key}: {missing[1]} of {name} does not fit: there is no such setting, or its value is wrong."
        known = _settings(path)
        meant = like(missing[1], known) or (f" It has {', '.join(known)}." if known else " It has none: name a class.")
        return f"{key}: {name} has no setting {missing[1]}.{meant}"
    if (setting := _KEY.match(said)) and (wrong := _KIND.search(said)):
        kinds = re.sub(r"<class '(?:[\w.]+\.)?(\w+)'>", r"\1", wrong[1] or wrong[3]).replace("NoneType", "null")
        rule = f"{setting[1]} of {name} must be {kinds.replace(', ', ' or ')}"
        return f"{key}: {rule}, but got {wrong[2] or wrong[4]}."
    return None


def _public(module: str) -> list[str]:
    return [name for name in dir(import_module(module)) if not name.startswith("_")]


def _settings(path: str) -> list[str]:
    """The names of a class's settings."""
    module, _, name = path.rpartition(".")
    parameters = inspect.signature(getattr(import_module(module), name)).parameters.values()
    return [one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]


# --- settings ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class LoopSettings(Options):
    """How a run goes.

    Args:
        n_trials: evaluations in all, those of a resumed run included, earlier results not; None to let the trainer
            decide.
        strategy: what proposes, in place of model, acquisition and candidates; default: see `deepbore.strategies`. By
            name without any model: random, sobol or grid.
        stop_when: rules that end the run, each as class_path and init_args: deepbore.study.NoImprovement, ...
    """

    n_trials: int | None = N_TRIALS
    stop_when: list[StopRule] | None = None  # type: ignore[assignment]  # [] once it is read

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(1, n_trials=self.n_trials)


ELSEWHERE = {"classifier", "labels", "gamma", "direction", "directions", "preferences"}  # of model, data and problem
OF_THE_COMMAND = {"journal", "if_exists", "device", "callbacks", "progress"}  # decided by the run directory and trainer


class LabelSettings(LightningDataModule):
    """How outcomes become labels. The study makes the data module that the classifier is trained on.

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


def _is_one_process(trainer: Mapping[str, Any]) -> bool:
    """Whether these settings of a Trainer are of one device, so that there are no ranks."""
    devices = trainer.get("devices")
    on_cpu = devices == "auto" and trainer.get("accelerator") == "cpu"
    is_one = devices in (1, "1") or (isinstance(devices, list) and len(devices) == 1)
    return (is_one or on_cpu) and trainer.get("num_nodes", 1) == 1


@contextmanager
def _utf8_files() -> Iterator[None]:
    """A context in which jsonargparse reads configurations in UTF-8, whatever the encoding of the system is."""
    paths: Any = ConfigPath
    own = paths.read_text

    def read_text(path: Any) -> Any:
        file = Path(path.absolute)
        return file.read_text(encoding="utf-8-sig") if file.is_file() else own(path)  # Windows' editors mark it

    paths.read_text = read_text
    try:
        yield
    finally:
        paths.read_text = own


class _Parser(LightningArgumentParser):
    """Lightning's parser, which takes any classifier: those in closed form are no LightningModules."""

    def add_lightning_class_args(
        self, lightning_class: Any, nested_key: str, subclass_mode: bool = False, required: bool = True
    ) -> list[str]:
        if lightning_class is Classifier:
            added: list[str] = self.add_subclass_arguments(Classifier, nested_key, fail_untyped=False, required=True)
            return added
        return super().add_lightning_class_args(lightning_class, nested_key, subclass_mode, required)


class RunCLI(LightningCLI):
    """LightningCLI with a problem, a loop and a run directory.

    Args:
        args: command line, without the command.

    Attributes:
        problem: what is optimised.
        labels: how outcomes become labels; None for the default.
        loop: how the run goes, with the options of the study from the other groups of the configuration.
        run: the run directory.
        warm_start: CSV file of earlier results, or None.
        warm_start_defaults: values of parameters that files of earlier results have no column for, by name.
        earlier_tasks: CSV files of earlier tasks, by the name of the task.
    """

    def __init__(self, args: Sequence[str]):
        self._names_model = names_model(args)
        super().__init__(
            model_class=Classifier,  # type: ignore[arg-type]  # typed as a LightningModule, but `_Parser` takes it
            subclass_mode_model=True,
            datamodule_class=LabelSettings,
            args=list(args),
            run=False,
            parser_class=_Parser,
            parser_kwargs={"exit_on_error": False, "prog": "deepbore fit", "parser_mode": MODE, "allow_abbrev": False},
            auto_configure_optimizers=False,
            seed_everything_default=False,  # the run's own stream is the only one
            save_config_callback=None,  # it would save where the logger does, not in the run directory
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
        """Lightning's parser, which dumps a configuration with its texts as texts, and knows every classifier."""
        parser = super().init_parser(**kwargs)
        for name in classifiers.__all__:  # --model KernelPLS is one of the classes that are imported
            getattr(classifiers, name)
        parser.dump = partial(dumped, parser.dump)  # `save` and --print_config call it
        return parser

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Adds the problem, the loop, the labels, the evaluator and the run directory."""
        parser.add_subclass_arguments(Problem, "problem", required=True)
        parser.add_argument("--run", type=str | None, default=None, help="directory that keeps the run")
        parser.add_argument("--warm_start", type=str | None, default=None, help="CSV file of earlier results")
        parser.add_argument(
            "--warm_start_defaults",
            type=dict[str, Any] | None,
            default=None,
            help="values of parameters that files of earlier results have no column for, by name",
        )
        parser.add_argument(
            "--earlier_tasks", type=dict[str, str] | None, default=None, help="CSV files of earlier tasks by their name"
        )
        parser.add_class_arguments(LoopSettings, "loop", skip=ELSEWHERE | OF_THE_COMMAND)
        parser.add_class_arguments(Evaluation, "evaluation")
        parser.add_argument(
            "--evaluator",
            type=Callable[[Any], Evaluator] | None,
            default=None,
            help="class of an evaluator, in place of the evaluation settings; its objective is the problem",
        )
        own = {"class_path": "deepbore.problems.FunctionProblem"}  # where problem has a function and no class
        usual = {} if self._names_model else {"model": {"class_path": "deepbore.classifiers.KernelPLS"}}
        parser.set_defaults({**usual, "problem": own})

    def parse_arguments(self, parser: LightningArgumentParser, args: ArgsType) -> None:
        """Parses the command line; imports the benchmarks if that fails, since `--problem Branin` names no module."""
        with _utf8_files():
            try:
                super().parse_arguments(parser, args)
            except ArgumentError:
                for name in dir(problems):
                    getattr(problems, name)
                super().parse_arguments(parser, args)

    def before_instantiate_classes(self) -> None:
        """Raises SettingError for a group without names, as in `loop: 5`, and for Lightning's own seed."""
        if (seed := self.config.get("seed_everything")) not in (None, False):
            raise SettingError(
                f"a run has one seed, loop.seed, so seed_everything does nothing for it, but got {seed!r}. Give "
                "--loop.seed, and leave it out."
            )
        for name in ("loop", "evaluation", "data", "trainer"):
            if not isinstance(given := self.config.get(name), Namespace):
                raise SettingError(f"{name} must hold settings by name, as {{n_trials: 50}}, but got {given!r}.")

    def instantiate_classes(self) -> None:
        """The parts by their names here, and then the trainer, which makes the run directory."""
        super().instantiate_classes()
        made = self.config_init
        self.labels: Labelling | None = self.datamodule.labels
        names, directions = self.problem.objectives, self.problem.directions
        self.loop: LoopSettings = replace(
            made.loop,
            directions=dict(zip(names, directions, strict=True)) if names else directions,
            classifier=None if _is_default(self.model) else self.model,  # as a study has it that is given none
            labels=self.labels,
            stop_when=made.loop.stop_when or [],
            progress=self.shows_progress,
        )
        self.warm_start: str | None = made.warm_start
        self.warm_start_defaults: dict[str, Any] = made.warm_start_defaults or {}
        self.earlier_tasks: dict[str, str] = made.earlier_tasks or {}
        self._evaluation: Evaluation = made.evaluation
        if self.loop.workers != 1:
            self._evaluation = replace(self._evaluation, workers=self.loop.workers)
            self.loop = replace(self.loop, workers=1)  # the evaluator has them
        self._evaluator: Callable[[Any], Evaluator] | None = made.evaluator
        if self._evaluator is not None and self._evaluation != Evaluation():
            raise SettingError(
                f"an evaluator of your own has settings of its own, but got {self._evaluation} beside it. Leave "
                "--evaluation.* out, and give what the evaluator takes as --evaluator.NAME."
            )

    def instantiate_trainer(self, **kwargs: Any) -> Trainer:
        """The trainer with a CSV logger in the run directory, and without Lightning's bar, which counts batches."""
        self.problem: Problem = self.config_init.problem
        named, settings = self.config_init.run, self.config_init.trainer
        alone = _is_one_process(settings)
        stem = _stem(self.problem)
        self.run = new_run(stem, alone) if named is None else as_path(named, "a run", JournalError)
        refuse_steps(settings, [self.config_init.model])
        if alone and not settings.get("plugins"):  # whatever job of a cluster this process is in
            kwargs["plugins"] = [no_cluster()]
            rank_zero_only.rank = 0  # type: ignore[attr-defined]  # as Lightning itself sets it
        if settings.get("logger") in (None, True):
            kwargs["logger"] = CSVLogger(self.run.absolute(), name="", version="")  # also if the problem goes elsewhere
        self.shows_progress = settings.get("enable_progress_bar") is not False
        try:
            return super().instantiate_trainer(enable_progress_bar=False, **kwargs)
        except Exception as error:  # any error of Lightning
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


def _stem(problem: Problem) -> str:
    """The name of a problem's runs: of a function of the user's own that of the function."""
    own = getattr(getattr(problem, "function", None), "__name__", "")
    return re.sub(r"\W", "", own).lower() or type(problem).__name__.lower()


def _is_default(model: Classifier) -> bool:
    """Whether it is the model of a configuration that names none."""
    return type(model) is KernelPLS and has_default_settings(model)


def dumped(dump: Callable[..., str], config: Namespace, **settings: Any) -> str:
    """A configuration as jsonargparse dumps it, with its texts unchanged; with comments, as it is."""
    text = dump(config, **settings)
    if any(given and name.endswith("comments") for name, given in settings.items()):
        return text
    header = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))
    return header + dump_yaml(with_texts(load_yaml(text), config.as_dict()))
