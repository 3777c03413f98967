"""`deepbore fit`: an optimisation wired up by LightningCLI and kept in a run directory."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from shlex import quote
from typing import Any

from jsonargparse import ArgumentError

from deepbore.classifiers import KernelPLS
from deepbore.cli import fit_help
from deepbore.cli.misspelt import explained
from deepbore.cli.run_cli import RunCLI
from deepbore.cli.run_directory import CONFIG, TIMES, Run
from deepbore.cli.summary import summary
from deepbore.component import has_default_settings
from deepbore.data.imported import EarlierResults, ImportedResults, read_csv
from deepbore.data.journal_format import JOURNAL
from deepbore.data.observations import Observations
from deepbore.data.trial import Trial
from deepbore.errors import DeepBoreError, JournalError, SettingError, TableError
from deepbore.evaluators import Evaluator, Timed
from deepbore.evaluators.warning import EvaluationWarning
from deepbore.loop.lightning import quiet
from deepbore.problems.base import make_working_directory_importable
from deepbore.study import Study
from deepbore.study.opening import holds_run
from deepbore.study.running import Steered, check_objective
from deepbore.study.view import Parts

WRITTEN = "# lightning.pytorch=="  # how the configuration that a run writes begins
log = logging.getLogger(__name__)


def run_fit(args: Sequence[str]) -> None:
    """Parses the configuration, runs it and prints what it has found; `--resume RUN` goes on with a run.

    Raises:
        KeyboardInterrupt: after a run that Ctrl-C has ended, and its summary.
    """
    args, resumed = _resumed(args)
    make_working_directory_importable()  # for classes of the user's own
    cli = _parsed(args)
    check_objective(cli.problem, cli.loop.budget)
    evaluator = Timed(cli.evaluator, cli.run / TIMES)  # made before anything is written
    study = _loaded(cli) if resumed else _new(cli)
    if resumed and _is_done(cli, study):
        print(summary(study.observations, cli.problem.optimum))
        print(f"{cli.run} has its {cli.loop.n_trials} trials already; for more, give --loop.n_trials")
        study.close()
        return
    if cli.trainer.is_global_zero:
        _set_aside(cli.run / "metrics.csv")
    interrupted = False
    try:
        with _plain_warnings():
            _optimize(cli, study, evaluator)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        study.close()
    if not cli.trainer.is_global_zero:
        return
    has_one = not interrupted and study.observations.k == 1  # several objectives have a front
    print(summary(study.observations, cli.problem.optimum, _recommended(study) if has_one else None))
    if interrupted:
        print(f"interrupted; go on with: deepbore fit --resume {quote(str(cli.run))}")
        raise KeyboardInterrupt
    print(f"kept in {cli.run}: `deepbore plot {quote(str(cli.run))}` draws it")


def _is_done(cli: RunCLI, study: Study) -> bool:
    """Whether a run that is taken up again has all its trials."""
    observations, wanted = study.observations, cli.loop.n_trials
    return wanted is not None and observations.n_asked >= wanted and not len(observations.pending_rows)


def _resumed(args: Sequence[str]) -> tuple[list[str], bool]:
    """The arguments with a run's own configuration in the place of --resume RUN, and whether there was one."""
    parts = _apart(args, "--resume")
    if "--resume" not in parts:
        return parts, False
    at = parts.index("--resume")
    others = [*parts[:at], *parts[at + 2 :]]
    if surplus := [part for part in others if part.split("=")[0] in ("--resume", "--run")]:
        raise SettingError(f"a run goes on where it is, but beside --resume stands {surplus[0]}. Leave it out.")
    if not parts[at + 1 :]:
        raise JournalError("--resume needs the directory of a run, but none is named.")
    run = Path(parts[at + 1]).expanduser()
    if not (run / CONFIG).exists() or not (run / JOURNAL).exists():
        raise JournalError(f"--resume needs the directory of a run, with {CONFIG} and {JOURNAL}, but got {run}.")
    return ["--config", str(run / CONFIG), *others, "--run", str(run)], True


def _apart(args: Sequence[str], option: str) -> list[str]:
    """The arguments with an option and its value as two, where they are one: --resume=RUN."""
    return [part for arg in args for part in (arg.split("=", 1) if arg.startswith(f"{option}=") else [arg])]


def _parsed(args: Sequence[str]) -> RunCLI:
    shown = [part for part in args if part.split("=")[0] == "--print_config"]  # it shows what stands before it
    try:
        with quiet():
            return RunCLI([part for part in args if part not in shown] + shown)
    except ArgumentError as error:
        said = explained(str(error), fit_help.OPTIONS)
        raise SettingError(f"{said}\n`deepbore fit --help-all` lists every setting.") from None
    except UnicodeDecodeError as error:
        files = [path for option, path in pairwise(_apart(args, "--config")) if option == "--config"]
        raise SettingError(
            f"a configuration must be a text in UTF-8, but not all of {' and '.join(files)} is: {error}. Save it anew."
        ) from None
    except ValueError as error:
        raise _ours(error) from None


def _ours(error: BaseException) -> BaseException:
    """The error of ours that jsonargparse has wrapped while it made the objects, or else the error itself."""
    inner: BaseException | None = error
    while inner is not None and not isinstance(inner, DeepBoreError):
        inner = inner.__cause__ or inner.__context__
    return inner or error


# --- the study of a run ----------------------------------------------------------------------------------------------


def _new(cli: RunCLI) -> Study:
    """A study in a new journal, before any work is done; it refuses a directory with a run.

    The first rank writes, before it starts the others.
    """
    loop, problem, is_first = cli.loop, cli.problem, cli.trainer.is_global_zero
    if is_first:
        _refuse_what_is_there(cli.run)
    earlier = [(path, results) for path, task in _files(cli) for results in _read(cli, path, task)]
    of_settings = partial(
        Study, problem.space, directions=problem.directions, seed=loop.seed, budget=loop.budget, **_parts(cli)
    )
    if is_first:
        problem.prepare()
        rehearsed = of_settings()  # what is wrong is said before anything is written
        rehearsed._check_run(loop.n_trials, cli.trainer, _steered(cli))
        addable = _addable(rehearsed, earlier)
        _refuse_what_is_there(cli.run)  # another run may have begun meanwhile
        cli.save_config()  # before the journal: wherever the process dies, the run can be begun again or resumed
    study = of_settings(journal=cli.run / JOURNAL if is_first else None)
    study._append(addable if is_first else _addable(study, earlier))
    return study


def _refuse_what_is_there(run: Path) -> None:
    """Raises JournalError for a directory with a run, or with a config.yaml that no run has written."""
    if holds_run(run / JOURNAL):
        raise JournalError(
            f"{run} holds a run already. Go on with deepbore fit --resume {quote(str(run))}, or name another by --run."
        )
    if (run / CONFIG).is_file() and not Run(run).configuration.startswith(WRITTEN):
        raise JournalError(
            f"{run} holds a {CONFIG} of yours, which that of the run would replace. Give it another name, or name "
            "another directory by --run."
        )


def _loaded(cli: RunCLI) -> Study:
    """The study in the run's journal; every rank reads it for itself: none writes before all have met."""
    loop, problem, path = cli.loop, cli.problem, cli.run / JOURNAL
    was_warm = Run(cli.run).settings.get("warm_start")  # before the journal is read: the first rank changes it last
    study = Study.load(path, space=problem.space, **_parts(cli))
    observations = study.observations
    kept = {"directions": observations.directions, "loop.seed": study.seed, "loop.budget": observations.budget}
    wanted = {"directions": tuple(problem.directions), "loop.seed": loop.seed, "loop.budget": loop.budget}
    if other := [name for name in kept if kept[name] != wanted[name]]:
        said = "; ".join(f"{name} was {kept[name]}, not {wanted[name]}" for name in other)
        raise JournalError(f"a run goes on as it began, but in {path} {said}. Leave it as it was, or begin a new run.")
    study._check_run(loop.n_trials, cli.trainer, _steered(cli))
    missing = _addable(study, _missing(cli, study, was_warm))  # all of them, before the first is added
    if cli.trainer.is_global_zero:
        problem.prepare()
        if observations.journal is not None:
            observations.journal.open()  # before anything is written: another process may go on with the run
    else:
        observations.journal = None  # the first rank writes what all add
    study._append(missing)
    if cli.trainer.is_global_zero:
        cli.save_config()  # what was given behind --resume counts from now on
    return study


def _parts(cli: RunCLI) -> Parts:
    """The parts of the study that are configured."""
    loop = cli.loop
    parts: Parts = {"labels": cli.labels, "strategy": loop.strategy, "n_initial": loop.n_initial}
    stands_there_by_default = type(cli.model) is KernelPLS and has_default_settings(cli.model)
    if loop.strategy is None or not stands_there_by_default:
        parts |= {"classifier": cli.model}
    return parts | {"acquisition": loop.acquisition, "candidates": loop.candidates}


def _missing(cli: RunCLI, study: Study, was_warm: str | None) -> list[tuple[str, EarlierResults]]:
    """Earlier results that the run does not have yet, and their files: of a new one, or it died before it had all."""
    observations = study.observations
    has_own = len(observations) > observations.n_asked + observations.n_earlier
    tasks = [*observations.task_names, *([None] if has_own else [])]
    missing = []
    for path, task in _files(cli):
        is_other = task is None and Path(path).resolve() != Path(was_warm or "").resolve()
        known = [] if is_other else tasks
        try:
            missing += [(path, results) for results in _read(cli, path, task) if results.task not in known]
        except TableError as error:
            if task not in known:
                raise
            log.info("%s has done its service, and can't be read any more: %s", path, error)
    return missing


def _addable(study: Study, earlier: Sequence[tuple[str, EarlierResults]]) -> list[ImportedResults]:
    """Earlier results, read, of which each can be added after those before it, but for those that the run has already,
    as one that died when it had just added them. Adds nothing.

    Raises:
        DeepBoreError: that of `Study.add`, with the file.
    """
    observations, found = study.observations, []
    together = Observations(observations.space, observations.directions, budget=observations.budget)
    for path, results in earlier:
        try:
            added = observations.appendable(study._read(**vars(results)))
            together.append(added)
        except DeepBoreError as error:
            raise type(error)(f"{path}: {error}") from None
        if added.task is not None or not observations.has(added):
            found.append(added)
    return found


def _files(cli: RunCLI) -> list[tuple[str, str | None]]:
    """The files of earlier results, and the task of those that name none: the warm start's are of this run."""
    begun = [] if cli.warm_start is None else [(cli.warm_start, None)]
    return [*begun, *((path, task) for task, path in cli.earlier_tasks.items())]


def _read(cli: RunCLI, path: str, task: str | None) -> list[EarlierResults]:
    """The results in a file, those of each task by themselves."""
    objectives, has_budget = len(cli.problem.directions), cli.loop.budget is not None
    return read_csv(path, cli.problem.space, objectives=objectives, task=task, has_budget=has_budget)


def _optimize(cli: RunCLI, study: Study, evaluator: Evaluator) -> None:
    wanted = cli.loop.n_trials
    left = None if wanted is None else max(0, wanted - study.observations.n_asked)
    study.optimize(evaluator, left, trainer=cli.trainer, **_steered(cli))


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Our warnings as words alone: who runs a command has no use for the line in deepbore that it begins at."""
    before = warnings.formatwarning

    def formatted(message: Warning | str, category: type[Warning], *place: Any, **line: Any) -> str:
        return f"{message}\n" if issubclass(category, EvaluationWarning) else before(message, category, *place, **line)

    warnings.formatwarning = formatted
    try:
        yield
    finally:
        warnings.formatwarning = before


def _steered(cli: RunCLI) -> Steered:
    """How the run goes, when it ends, and who looks on."""
    loop = cli.loop
    return {
        "timeout": loop.timeout,
        "stop_when": loop.stop_when or (),
        "max_failures": loop.max_failures,
        "callbacks": (),
        "progress": cli.shows_progress,
        "batch_size": loop.batch_size,
    }


def _recommended(study: Study) -> Trial | None:
    """What the study recommends; None, with a warning, where its classifier can't say."""
    try:
        return study.recommended
    except SettingError as error:
        log.warning("%s", error)
        return None


def _set_aside(metrics: Path) -> None:
    """Renames the metrics of the run so far, which the logger would begin anew: metrics-1.csv, metrics-2.csv, ..."""
    if metrics.exists():
        free = next(k for k in range(1, 1_000_000) if not metrics.with_name(f"metrics-{k}.csv").exists())
        metrics.rename(metrics.with_name(f"metrics-{free}.csv"))
