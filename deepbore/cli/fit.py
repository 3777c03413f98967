"""`deepbore fit`: an optimisation wired up by LightningCLI and kept in a run directory."""

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from shlex import quote
from typing import Any

from jsonargparse import ArgumentError

from deepbore.cli import fit_help
from deepbore.cli.config import RunCLI, as_model, explained
from deepbore.cli.inspect import summary
from deepbore.cli.slips import as_nested
from deepbore.data.imported import EarlierResults, ImportedResults, read_csv
from deepbore.data.ledger import Ledger
from deepbore.data.log import JOURNAL
from deepbore.data.observations import Observations
from deepbore.data.runs import CONFIG, Run
from deepbore.data.trial import Trial
from deepbore.errors import DeepBoreError, JournalError, SettingError, TableError
from deepbore.evaluators import Evaluator
from deepbore.evaluators.base import EvaluationWarning, SuspiciousValue
from deepbore.loop.quiet import quiet
from deepbore.problems.base import make_working_directory_importable
from deepbore.study import Study
from deepbore.study.opening import holds_run
from deepbore.study.running import check_run, check_takes_trial
from deepbore.study.study import results_for, study_of
from deepbore.validation import as_path

WRITTEN = "# lightning.pytorch=="  # the first characters of a configuration that a run has written
log = logging.getLogger(__name__)


def run_fit(args: Sequence[str], connect: Callable[[Study, int | None], Evaluator] | None = None) -> None:
    """Parses the configuration, runs it and prints the best; `--resume RUN` continues a run.

    Args:
        args: the command line, without the command.
        connect: function of the study, and of its number of trials, that gives its evaluator, in place of the
            configuration's.

    Raises:
        KeyboardInterrupt: after a run that Ctrl-C has ended, and its summary.
    """
    args, resumed = _resumed(as_nested(args))
    make_working_directory_importable()  # for classes of the user's own
    cli = _parsed(args)
    check_takes_trial(cli.problem, cli.loop.budget, cli.loop.pruner)
    own = cli.evaluator  # made before anything is written
    study = _loaded(cli) if resumed else _new(cli)
    evaluator = own if connect is None else connect(study, cli.loop.n_trials)
    if resumed and connect is None and _is_done(cli, study):
        print(summary(_described(study), cli.problem.optimum, n_left=study.observations.columns.n_left))
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
    recommended = _recommended(study) if has_one else None
    print(summary(_described(study), cli.problem.optimum, recommended, study.observations.columns.n_left))
    if interrupted:
        print(f"interrupted; go on with: deepbore fit --resume {quote(str(cli.run))}")
        raise KeyboardInterrupt
    print(f"kept in {cli.run}: `deepbore plot {quote(str(cli.run))}` draws it")


def _described(study: Study) -> Ledger:
    """What a run knows, with the names of its objectives, as its journal has them."""
    return study.observations.ledger.described(study.state.header())


def _is_done(cli: RunCLI, study: Study) -> bool:
    """Whether a resumed run has all its trials."""
    observations, wanted = study.observations, cli.loop.n_trials
    return wanted is not None and observations.ledger.n_asked >= wanted and not len(observations.columns.pending_rows)


def _resumed(args: Sequence[str]) -> tuple[list[str], bool]:
    """The arguments with a run's own configuration in the place of --resume RUN, and whether there was one."""
    parts = _split_option(args, "--resume")
    if "--resume" not in parts:
        return parts, False
    at = parts.index("--resume")
    others = [*parts[:at], *parts[at + 2 :]]
    if surplus := [part for part in others if part.split("=")[0] in ("--resume", "--run")]:
        raise SettingError(f"a run goes on where it is, but beside --resume stands {surplus[0]}. Leave it out.")
    if not parts[at + 1 :]:
        raise JournalError("--resume needs the directory of a run, but none is named.")
    run = as_path(parts[at + 1], "a run", JournalError)
    if not (run / CONFIG).exists() or not (run / JOURNAL).exists():
        raise JournalError(f"--resume needs the directory of a run, with {CONFIG} and {JOURNAL}, but got {run}.")
    return ["--config", str(run / CONFIG), *others, "--run", str(run)], True


def _split_option(args: Sequence[str], option: str) -> list[str]:
    """The arguments with an option and its value as two, where they are one: --resume=RUN."""
    return [part for arg in args for part in (arg.split("=", 1) if arg.startswith(f"{option}=") else [arg])]


def _parsed(args: Sequence[str]) -> RunCLI:
    shown = [part for part in args if part.split("=")[0] == "--print_config"]  # it shows the options before it only
    try:
        with quiet():
            return RunCLI(as_model([part for part in args if part not in shown] + shown))
    except ArgumentError as error:
        said = explained(str(error), fit_help.OPTIONS)
        raise SettingError(f"{said}\n`deepbore fit --help-all` lists every setting.") from None
    except UnicodeDecodeError as error:
        files = [path for option, path in pairwise(_split_option(args, "--config")) if option == "--config"]
        raise SettingError(
            f"a configuration must be a text in UTF-8, but not all of {' and '.join(files)} is: {error}. Save it anew."
        ) from None
    except ValueError as error:
        raise _ours(error) from None


def _ours(error: BaseException) -> BaseException:
    """The error of deepbore that jsonargparse has wrapped when it made the objects, or else the error itself."""
    inner: BaseException | None = error
    while inner is not None and not isinstance(inner, DeepBoreError):
        inner = inner.__cause__ or inner.__context__
    return inner or error


# --- the study of a run ----------------------------------------------------------------------------------------------


def _new(cli: RunCLI) -> Study:
    """A study with a new journal, before any evaluation; a directory with a run is refused.

    The first rank writes, before it starts the other ranks.
    """
    loop, problem, is_first = cli.loop, cli.problem, cli.trainer.is_global_zero
    if is_first:
        _refuse_occupied(cli.run)
    earlier = [(path, results) for path, task in _files(cli) for results in _read(cli, path, task)]
    if is_first:
        problem.prepare()
        rehearsed = study_of(problem.space, loop)  # errors come before anything is written
        check_run(rehearsed.state, loop.n_trials, cli.trainer, loop)
        addable = _addable(rehearsed, earlier)
        _refuse_occupied(cli.run)  # another run may have begun meanwhile
        cli.save_config()  # before the journal: wherever the process dies, the run can be begun again or resumed
    study = study_of(problem.space, replace(loop, journal=cli.run / JOURNAL if is_first else None))
    for added in addable if is_first else _addable(study, earlier):
        study.observations.append(added)
    return study


def _refuse_occupied(run: Path) -> None:
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
    """The study in the run's journal. Every rank reads it, and none writes before all have read."""
    loop, problem, path = cli.loop, cli.problem, cli.run / JOURNAL
    was_warm = Run(cli.run).settings.get("warm_start")  # before the journal is read: the first rank changes it last
    study = Study.load(path, space=problem.space, **loop.parts)
    observations = study.observations
    kept = {"directions": observations.directions, "loop.seed": study.state.seed, "loop.budget": observations.budget}
    wanted = {"directions": tuple(loop.all_directions), "loop.seed": loop.seed, "loop.budget": loop.budget}
    if other := [name for name in kept if kept[name] != wanted[name]]:
        said = "; ".join(f"{name} was {kept[name]}, not {wanted[name]}" for name in other)
        raise JournalError(f"a run goes on as it began, but in {path} {said}. Leave it as it was, or begin a new run.")
    check_run(study.state, loop.n_trials, cli.trainer, loop)
    missing = _addable(study, _missing(cli, study, was_warm))  # all of them, before the first is added
    if cli.trainer.is_global_zero:
        problem.prepare()
        if observations.journal is not None:
            observations.journal.open()  # before anything is written: another process may have the run
    else:
        observations.journal = None  # the first rank writes for all
    for added in missing:
        observations.append(added)
    if cli.trainer.is_global_zero:
        cli.save_config()  # options after --resume replace the former ones
    return study


def _missing(cli: RunCLI, study: Study, was_warm: str | None) -> list[tuple[str, EarlierResults]]:
    """Earlier results that the run lacks, with their files: of new files, or after a crash before all were added."""
    observations = study.observations
    has_own = int((observations.columns.tasks == 0).sum()) > observations.ledger.n_asked
    tasks = [*observations.ledger.task_names, *([None] if has_own else [])]
    missing = []
    for path, task in _files(cli):
        is_other = task is None and as_path(path, "a table").resolve() != as_path(was_warm or "", "a table").resolve()
        known = [] if is_other else tasks
        try:
            missing += [(path, results) for results in _read(cli, path, task) if results.task not in known]
        except TableError as error:
            if task not in known:
                raise
            log.info("%s can't be read any more, and its results are in the journal: %s", path, error)
    return missing


def _addable(study: Study, earlier: Sequence[tuple[str, EarlierResults]]) -> list[ImportedResults]:
    """Earlier results that can be added, each after those before it; none that the run has already. Adds nothing.

    Raises:
        DeepBoreError: that of `Study.add`, with the file.
    """
    observations, found = study.observations, []
    together = Observations(observations.space, observations.directions, budget=observations.budget)
    for path, results in earlier:
        try:
            added = observations.appendable(results_for(study.state, **vars(results)))
            together.append(added)
        except DeepBoreError as error:
            raise type(error)(f"{path}: {error}") from None
        if added.block.task is not None or not observations.has(added):
            found.append(added)
    return found


def _files(cli: RunCLI) -> list[tuple[str, str | None]]:
    """The files of earlier results, and the task of rows that name none: None for this run's, in the warm start."""
    begun = [] if cli.warm_start is None else [(cli.warm_start, None)]
    return [*begun, *((path, task) for task, path in cli.earlier_tasks.items())]


def _read(cli: RunCLI, path: str, task: str | None) -> list[EarlierResults]:
    """The results in a file, one entry for each task."""
    return read_csv(
        path,
        cli.problem.space,
        objectives=len(cli.problem.directions),
        names=cli.problem.objectives,
        task=task,
        has_budget=cli.loop.budget is not None,
        defaults=cli.warm_start_defaults,
    )


def _optimize(cli: RunCLI, study: Study, evaluator: Evaluator) -> None:
    wanted = cli.loop.n_trials
    left = None if wanted is None else max(0, wanted - study.observations.ledger.n_asked)
    study.optimize(evaluator, left, trainer=cli.trainer, **cli.loop.of_run)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Within, warnings of trials are shown without a line of code, which does not help users of a command."""
    before = warnings.formatwarning

    def formatted(message: Warning | str, category: type[Warning], *place: Any, **line: Any) -> str:
        is_ours = issubclass(category, (EvaluationWarning, SuspiciousValue))
        return f"{message}\n" if is_ours else before(message, category, *place, **line)

    warnings.formatwarning = formatted
    try:
        yield
    finally:
        warnings.formatwarning = before


def _recommended(study: Study) -> Trial | None:
    """The recommended trial; None, with a warning, where the classifier can't recommend."""
    try:
        return study.recommended
    except SettingError as error:
        log.warning("%s", error)
        return None


def _set_aside(metrics: Path) -> None:
    """Renames the metrics of the run so far, which the logger would overwrite: metrics-1.csv, metrics-2.csv, ..."""
    if metrics.exists():
        free = next(k for k in range(1, 1_000_000) if not metrics.with_name(f"metrics-{k}.csv").exists())
        metrics.rename(metrics.with_name(f"metrics-{free}.csv"))
